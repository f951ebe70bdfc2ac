"""A call that is cut short, by Ctrl-C or a signal's handler that raises, leaves no object half changed.

Afterwards it is closed, or as it was, or as after the call. To go on from anything in between could use the
same keystream for other data.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any, NoReturn

import pytest
from entries import CIPHERING, DATA, ENTRIES, MADE, N12, STREAMS, K, make
from interpreter import PACKAGE

import chapoly.pure.chacha20

IN_PARTS = [*CIPHERING, "Poly1305"]
FIRST, NEXT = 77, 300  # bytes of zeros before the call and, where it takes data, in it
CHANGE_NOTHING = ("accumulate", "initial_rows", "permute", "quarter_round", "serialize")  # and take long


class Interrupted(BaseException):
    """As KeyboardInterrupt, which pytest would take for itself."""


@pytest.fixture(autouse=True)
def _many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pure takes a message in pieces of two blocks and not of 512: fewer bytes are interrupted as often."""
    monkeypatch.setattr(chapoly.pure.chacha20, "BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(chapoly.pure.poly1305, "PIECE_SIZE", 128)


def cut_short(call: Callable[[], object], moment: int) -> bool:
    """Makes the call, and raises at this event in chapoly's Python code; whether there were so many."""
    left = moment

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "exception" and argument[0] is chapoly.InvalidTag:
            sys.settrace(None)  # CPython 3.11 never forgets an exception that is met by another from here
            return None
        if not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return None
        left -= 1
        if left == 0:
            raise Interrupted
        return None if frame.f_code.co_name in CHANGE_NOTHING else trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False


def started(api: ModuleType, name: str, size: int = FIRST) -> Any:
    """An object that has taken so many zeros."""
    thing = make(api, name)
    thing.update(bytes(size))
    return thing


def tag_of(api: ModuleType, ciphertext: bytes) -> bytes:
    """The tag with which a made object ends (RFC 8439 2.8)."""
    blocks = b"x".ljust(16, b"\0") + ciphertext + bytes(-len(ciphertext) % 16)
    lengths = (1).to_bytes(8, "little") + len(ciphertext).to_bytes(8, "little")
    return bytes(api.poly1305.mac(api.chacha20.block(K, 0, N12)[:32], blocks + lengths))


def size_taken(api: ModuleType, name: str, thing: Any, sizes: tuple[int, ...]) -> int | None:
    """After how many zeros, of these numbers, the object stands in all that it does; None if it is closed."""
    try:
        last = thing.update(DATA)
    except api.StateError:
        closed(api, thing)
        return None
    if name == "Poly1305":
        tags = [api.poly1305.mac(ENTRIES[name]["key"], bytes(size) + DATA) for size in sizes]
        return sizes[tags.index(thing.digest())]
    (size,) = [size for size in sizes if started(api, name, size).update(DATA) == last]
    if name == "Encryptor":
        same = make(api, name)
        assert thing.finalize() == tag_of(api, same.update(bytes(size)) + last)
    elif name == "UnverifiedDecryptor":
        thing.verify(tag_of(api, bytes(size) + DATA))
    else:
        assert thing.tell() == size + len(DATA)
    return size


def closed(api: ModuleType, thing: Any) -> None:
    """Every call is refused, but for leaving `with` and for a digest that is known."""
    buf = bytearray(3)
    for method, arguments in (
        ("update", (b"abc",)),
        ("update_into", (buf, buf)),
        ("keystream", (3,)),
        ("seek", (0,)),
        ("tell", ()),
        ("finalize", ()),
        ("verify", (bytes(16),)),
        ("__enter__", ()),
    ):
        if hasattr(thing, method):
            with pytest.raises(api.StateError):
                getattr(thing, method)(*arguments)
    assert buf == bytes(3)


@pytest.mark.parametrize("name", IN_PARTS)
def test_updates_at_every_moment(api: ModuleType, name: str) -> None:
    sizes = (FIRST, FIRST + NEXT)
    for method in ("update", "keystream"):
        seen = set()
        moment = 1
        while hasattr(make(api, name), method):
            thing = started(api, name)
            argument = NEXT if method == "keystream" else bytes(NEXT)
            more = cut_short(lambda: getattr(thing, method)(argument), moment)  # noqa: B023
            seen.add(size_taken(api, name, thing, sizes))
            if not more:
                assert seen == ({*sizes, None} if moment > 1 else {FIRST + NEXT})
                break
            moment += 1


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", CIPHERING)
def test_updates_into_a_buffer_at_every_moment(api: ModuleType, name: str, in_place: bool) -> None:
    whole = started(api, name).update(bytes(NEXT))
    more, moment = True, 0
    while more:
        moment += 1
        thing, buf = started(api, name), bytearray(NEXT)
        data = buf if in_place else bytes(NEXT)
        more = cut_short(lambda: thing.update_into(data, buf), moment)  # noqa: B023
        written = bytes(buf)
        size = size_taken(api, name, thing, (FIRST, FIRST + NEXT))
        assert size is None or written == (bytes(NEXT) if size == FIRST else whole)
    assert size == FIRST + NEXT


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, method) for name in STREAMS for method in ("seek", "tell", "__exit__")),
        *((name, "__enter__") for name in CIPHERING),
        ("Encryptor", "finalize"),
        ("Encryptor", "__exit__"),
        ("UnverifiedDecryptor", "verify"),
        ("Poly1305", "finalize"),
        ("Poly1305", "verify"),
        ("Poly1305", "digest"),
        ("Poly1305", "hexdigest"),
    ],
)
def test_other_calls_at_every_moment(api: ModuleType, name: str, method: str) -> None:
    zeros = bytes(FIRST)
    right = tag_of(api, zeros) if name in MADE else api.poly1305.mac(ENTRIES["Poly1305"]["key"], zeros)
    arguments = {"seek": (5,), "verify": (right,)}.get(method, ())
    more, moment = True, 0
    while more:
        moment += 1
        thing = started(api, name)
        more = cut_short(lambda: getattr(thing, method)(*arguments), moment)  # noqa: B023
        sizes = (FIRST, 5) if method == "seek" else (FIRST,)
        size = size_taken(api, name, thing, sizes)
        if size is None and method in ("digest", "hexdigest"):
            try:
                assert thing.digest() == right
            except api.StateError:
                assert more


def test_a_verification_that_was_cut_short_has_not_verified(api: ModuleType) -> None:
    def verify(decryptor: Any) -> None:
        with contextlib.suppress(api.InvalidTag):
            decryptor.verify(bytes(16))

    more, moment = True, 0
    while more:
        moment += 1
        decryptor = make(api, "UnverifiedDecryptor")
        more = cut_short(lambda: verify(decryptor), moment)  # noqa: B023
        with pytest.raises((api.InvalidTag, api.StateError)):
            decryptor.__exit__(None, None, None)


def test_what_is_refused_before_it_begins_closes_nothing(api: ModuleType) -> None:
    for name in CIPHERING:
        thing = started(api, name)
        for data, buf in ((bytes(5), bytearray(4)), (bytes(5), bytes(5)), ("text", bytearray(5))):
            with pytest.raises((TypeError, ValueError)):
                thing.update_into(data, buf)
        assert size_taken(api, name, thing, (FIRST,)) == FIRST


# Windows has none; the tests above, which interrupt at every line, need no signal.
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this platform has no timers that send signals")
@pytest.mark.parametrize("name", IN_PARTS)
def test_a_signal(api: ModuleType, name: str) -> None:
    # Native calls are not interrupted: the handler runs after them. Wherever it falls, what is left is whole.
    size = 2**17 if api.kernel == "pure" else 2**22
    data = bytes(size)

    def raises(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, raises)
    try:
        for milliseconds in (1, 2, 5):
            thing = started(api, name)
            try:
                signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
                thing.update(data)
                while True:
                    time.sleep(0.001)
            except Interrupted:
                pass
            taken = size_taken(api, name, thing, (FIRST, FIRST + size))
            assert api.kernel == "pure" or taken is not None
    finally:
        signal.signal(signal.SIGALRM, before)
