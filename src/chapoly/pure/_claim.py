"""The claim of a call on an object that serves one call at a time."""

from __future__ import annotations

from _thread import allocate_lock

from chapoly.errors import StateError

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")


class Claim:
    """Held during a call on an open object. Another call does not wait: it is refused.

    An exception may come at any moment, Ctrl-C for one. Wherever it comes, the object is then as it was, or
    as after the call, or refuses every call to come: as closed, or as claimed for good.
    """

    __slots__ = ("closed", "lock", "noun")

    def __init__(self, noun: str) -> None:
        self.closed = False
        self.lock = allocate_lock()
        self.noun = noun

    def take(self) -> None:
        """Claims the object, be it open or closed."""
        if not self.lock.acquire(blocking=False):
            raise StateError(f"another call on this {self.noun} is in progress")

    def give(self) -> None:
        """Ends the claim."""
        self.lock.release()

    def must_be_open(self) -> None:
        """Refuses a closed object."""
        if self.closed:
            raise StateError(f"{self.noun} is closed")

    def whole(self, change: Callable[..., Result], *arguments: object) -> Result:
        """Makes a change to the claimed object, which stays closed unless the change comes to its end."""
        self.closed = True
        result = change(*arguments)
        self.closed = False
        return result

    def __enter__(self) -> None:
        self.take()
        try:
            self.must_be_open()
        except BaseException:
            self.give()
            raise

    def __exit__(self, *exception: object) -> None:
        self.give()
