"""Poly1305, the one-time authenticator (RFC 8439 2.5), and its tags."""

from __future__ import annotations

from _operator import _compare_digest

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import key_octets, octets, view
from chapoly.pure._types import final

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import NoReturn, Self

    from chapoly.pure._arguments import Buffer

PIECE_SIZE = 16384  # bytes of a message looked at in one go

_P = 2**130 - 5
_CLAMP = 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF


@final
class Tag(bytes):
    """A tag."""

    __slots__ = ()
    __module__ = "chapoly"

    def __new__(cls, tag: Buffer) -> Self:
        return bytes.__new__(cls, octets("tag", tag, 16, InvalidTag))

    def __eq__(self, other: object) -> bool:
        try:
            memory = memoryview(other)  # type: ignore[arg-type]
        except TypeError:
            return NotImplemented
        with memory:
            return _compare_digest(self, memory.tobytes())

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> NoReturn:
        raise _unordered(self, "<", other)

    def __le__(self, other: object) -> NoReturn:
        raise _unordered(self, "<=", other)

    def __gt__(self, other: object) -> NoReturn:
        raise _unordered(self, ">", other)

    def __ge__(self, other: object) -> NoReturn:
        raise _unordered(self, ">=", other)

    def __repr__(self) -> str:
        return f"Tag('{self.hex()}')"

    __str__ = __repr__


def _unordered(left: object, sign: str, right: object) -> TypeError:
    return TypeError(
        f"'{sign}' not supported between instances of '{type(left).__name__}' and '{type(right).__name__}'"
    )


# ---- RFC 8439 2.5.1: the Poly1305 algorithm ----


def authenticate(key: bytes, pieces: Iterable[bytes]) -> Tag:
    """The tag of the message that the pieces make up, all of them but the last as long as some blocks."""
    r = int.from_bytes(key[:16], "little") & _CLAMP
    s = int.from_bytes(key[16:], "little")
    accumulator = 0
    for piece in pieces:
        accumulator = accumulate(accumulator, r, piece)
    return Tag((accumulator + s & 2**128 - 1).to_bytes(16, "little"))


def accumulate(a: int, r: int, piece: bytes) -> int:
    """a = (a + n) * r mod p for each block n of 16 bytes, with a bit set after its last."""
    for i in range(0, len(piece), 16):
        n = int.from_bytes(piece[i : i + 16] + b"\1", "little")
        a = (a + n) * r % _P
    return a


def in_pieces(message: memoryview) -> Iterator[bytes]:
    """Copies of parts of the message, in order."""
    return (bytes(message[i : i + PIECE_SIZE]) for i in range(0, len(message), PIECE_SIZE))


def mac(key: Buffer, message: Buffer) -> Tag:
    """The tag of a message."""
    secret = key_octets(key)
    with view("message", message) as memory:
        return authenticate(secret, in_pieces(memory))


def verify(key: Buffer, message: Buffer, tag: Buffer) -> None:
    """Verify."""
    secret = key_octets(key)
    with view("message", message) as memory:
        given = Tag(tag)
        if authenticate(secret, in_pieces(memory)) != given:
            raise InvalidTag("tag does not match")
