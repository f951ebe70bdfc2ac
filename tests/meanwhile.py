"""Calls of two threads on one object at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def calling(function: Callable[[], object], error: type[Exception], refusals: set[str]) -> Iterator[None]:
    """Another thread calls the function again and again meanwhile; why it was refused is gathered."""
    running, done = threading.Event(), threading.Event()

    def call() -> None:
        while not done.is_set():
            try:
                function()
            except error as refusal:
                refusals.add(str(refusal))
            running.set()

    thread = threading.Thread(target=call)
    thread.start()
    running.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def until_not_refused(function: Callable[[], Any], error: type[Exception]) -> Any:
    """What the function returns once no call of another thread is in progress."""
    while True:
        try:
            return function()
        except error:
            continue
