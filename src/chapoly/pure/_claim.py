"""The claim of a call on an object that serves one call at a time."""

from __future__ import annotations

from _thread import allocate_lock

from chapoly.errors import StateError


class Claim:
    """Held during a call on an open object. Another call does not wait: it is refused."""

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

    def __enter__(self) -> None:
        self.take()
        try:
            self.must_be_open()
        except StateError:
            self.give()
            raise

    def __exit__(self, *exception: object) -> None:
        self.give()
