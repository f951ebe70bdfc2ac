"""Poly1305, the one-time authenticator (RFC 8439 2.5), and its tags."""

from __future__ import annotations

from _operator import _compare_digest

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import key_of, memory_of, octets, view
from chapoly.pure._claim import Claim
from chapoly.pure._types import final

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final, NoReturn, Self

    from chapoly.pure._arguments import Buffer

PIECE_SIZE = 16384  # bytes of a message that are copied at a time; a multiple of 64

P = 2**130 - 5
CLAMP = 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF


@final
class Tag(bytes):
    """The 16 bytes that authenticate a message. Tag(tag) takes exactly 16 bytes, else it raises InvalidTag.

    A Tag is bytes, and its slices and sums are plain bytes. But it compares in constant time, so that the
    time does not tell where two tags begin to differ: tag == x does for any bytes-like x, and x == tag if x
    is bytes or a Tag. A bytearray or memoryview on the left compares by itself in CPython, which is not
    constant-time; poly1305.verify() always is. Other lengths are unequal, and there is neither order
    nor hash.

        >>> from chapoly import Tag
        >>> tag = Tag(bytes.fromhex("a8061dc1305136c6c22b8baf0c0127a9"))
        >>> tag
        Tag('a8061dc1305136c6c22b8baf0c0127a9')
        >>> tag == bytes(16)
        False
    """

    __slots__ = ()
    __module__ = "chapoly"

    def __new__(cls, tag: Buffer) -> Self:  # noqa: D102
        return bytes.__new__(cls, octets("tag", tag, 16, InvalidTag))

    def __eq__(self, other: object) -> bool:
        memory = memory_of(other)
        if memory is None:
            return NotImplemented
        with memory:
            return _compare_digest(self, memory.tobytes())

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> NoReturn:
        raise _no_order(self, "<", other)

    def __le__(self, other: object) -> NoReturn:
        raise _no_order(self, "<=", other)

    def __gt__(self, other: object) -> NoReturn:
        raise _no_order(self, ">", other)

    def __ge__(self, other: object) -> NoReturn:
        raise _no_order(self, ">=", other)

    def __repr__(self) -> str:
        return f"Tag('{self.hex()}')"

    __str__ = __repr__


def _no_order(left: object, sign: str, right: object) -> TypeError:
    names = f"'{type(left).__name__}' and '{type(right).__name__}'"
    return TypeError(f"'{sign}' not supported between instances of {names}")


# ---- RFC 8439 2.5.1: the Poly1305 algorithms ----


class Mac:
    """The computation of one tag: the parts of a message go in, the tag comes out."""

    __slots__ = ("accumulator", "r", "rest", "s")

    def __init__(self, key: bytes) -> None:
        self.r = int.from_bytes(key[:16], "little") & CLAMP
        self.s = int.from_bytes(key[16:], "little")
        self.accumulator = 0
        self.rest = b""  # the block that is not full yet

    def update(self, parts: Iterable[bytes]) -> None:
        """Takes parts of the message, of any length."""
        for part in parts:
            known = self.rest + part
            whole = len(known) // 16 * 16
            self.accumulator = accumulate(self.accumulator, self.r, known[:whole])
            self.rest = known[whole:]

    def tag(self) -> Tag:
        """The tag of what has been taken."""
        accumulator = accumulate(self.accumulator, self.r, self.rest)
        return Tag(((accumulator + self.s) % 2**128).to_bytes(16, "little"))

    def forget(self) -> None:
        """Drops the key and what depends on it."""
        self.r = self.s = self.accumulator = 0
        self.rest = b""


def authenticate(key: bytes, parts: Iterable[bytes]) -> Tag:
    """The tag of the message that the parts make up."""
    mac = Mac(key)
    mac.update(parts)
    return mac.tag()


def accumulate(a: int, r: int, piece: bytes) -> int:
    """a = (a + n) * r mod p for each block n in turn, which has a bit set after its last byte.

    Only the last block may be shorter than 16 bytes. Four blocks at a time share one division:
    (((a + n1) * r + n2) * r + n3) * r + n4) * r = (a + n1) * r^4 + n2 * r^3 + n3 * r^2 + n4 * r.
    """
    number = int.from_bytes
    fours = len(piece) // 64 * 64
    if fours:
        r2 = r * r % P
        r3 = r2 * r % P
        r4 = r3 * r % P
        bits = ((r4 + r3 + r2 + r) << 128) % P  # what the bits after the last bytes add
        for i in range(0, fours, 64):
            a = (
                (a + number(piece[i : i + 16], "little")) * r4
                + number(piece[i + 16 : i + 32], "little") * r3
                + number(piece[i + 32 : i + 48], "little") * r2
                + number(piece[i + 48 : i + 64], "little") * r
                + bits
            ) % P
    for i in range(fours, len(piece), 16):
        a = (a + number(piece[i : i + 16] + b"\1", "little")) * r % P
    return a


def pieces_of(message: memoryview) -> Iterator[bytes]:
    """The message as bytes, a piece at a time."""
    return (bytes(message[i : i + PIECE_SIZE]) for i in range(0, len(message), PIECE_SIZE))


def mac(key: Buffer, message: Buffer) -> Tag:
    """The Tag of a message of any length under a one-time key: Poly1305 (RFC 8439 2.5).

    key is 32 bytes and must never be used for a second message: two tags give it away. message must not
    change during the call. Compare tags with verify(). Raises InvalidKey.

        >>> from chapoly import poly1305
        >>> key = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
        >>> poly1305.mac(key, b"Cryptographic Forum Research Group")
        Tag('a8061dc1305136c6c22b8baf0c0127a9')
    """
    key_bytes = key_of(key)
    with view("message", message) as memory:
        return authenticate(key_bytes, pieces_of(memory))


def verify(key: Buffer, message: Buffer, tag: Buffer) -> None:
    """Raises InvalidTag unless tag is that of the message under this key (RFC 8439 2.5).

    Compares in constant time.

    key is 32 bytes; tag is 16 bytes, and any other length does not match. message must not change during the
    call. Raises InvalidKey, InvalidTag.

        >>> from chapoly import poly1305
        >>> key = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
        >>> tag = bytes.fromhex("a8061dc1305136c6c22b8baf0c0127a9")
        >>> poly1305.verify(key, b"Cryptographic Forum Research Group", tag)
        >>> poly1305.verify(key, b"Cryptographic Forum Research Grope", tag)
        Traceback (most recent call last):
            ...
        chapoly.InvalidTag: tag does not match
    """
    key_bytes = key_of(key)
    with view("message", message) as memory:
        expected = Tag(tag)
        if authenticate(key_bytes, pieces_of(memory)) != expected:
            raise InvalidTag("tag does not match")


@final
class Poly1305:
    """The Tag of a message in parts, under a one-time key: Poly1305 (RFC 8439 2.5).

    key is 32 bytes, which are copied, and must never be used for a second message: two tags give it away. So
    there is no copy() either. Raises InvalidKey.

    update takes the parts. Then verify compares the tag with another in constant time, or finalize returns
    it, once; or digest and hexdigest do, as often as wanted. An object is for one call at a time: a second
    one meanwhile is a StateError, and so is any call after finalize or verify, and update after digest.

        >>> from chapoly import Poly1305
        >>> key = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
        >>> mac = Poly1305(key)
        >>> mac.update(b"Cryptographic Forum ")
        >>> mac.update(b"Research Group")
        >>> mac.finalize()
        Tag('a8061dc1305136c6c22b8baf0c0127a9')
    """

    __slots__ = ("_claim", "_mac", "_tag")
    __module__ = "chapoly"

    name: Final[str] = "poly1305"
    digest_size: Final[int] = 16
    block_size: Final[int] = 16

    _claim: Claim
    _mac: Mac
    _tag: Tag | None

    def __new__(cls, key: Buffer) -> Self:  # noqa: D102
        self = object.__new__(cls)
        self._mac = Mac(key_of(key))
        self._tag = None
        self._claim = Claim("MAC")
        return self

    def _end(self) -> Tag:
        """The tag; the object is claimed and open, and will be closed."""
        self._claim.closed = True
        tag = self._mac.tag()
        self._mac.forget()
        return tag

    def update(self, data: Buffer) -> None:
        """Takes the next bytes of the message, any number of them.

        data must not change during the call.

            >>> from chapoly import Poly1305
            >>> mac = Poly1305(bytes(range(32)))
            >>> mac.update(b"attack ")
            >>> mac.update(bytearray(b"at dawn"))
            >>> mac.hexdigest()
            'daf8f71535db4152c9b148bda19abcfa'
        """
        with view("data", data) as message, self._claim:
            self._claim.whole(self._mac.update, pieces_of(message))

    def finalize(self) -> Tag:
        """The Tag of the message, which ends with it.

        The object is closed: any further call is a StateError.

            >>> from chapoly import Poly1305
            >>> Poly1305(bytes(range(32))).finalize()
            Tag('101112131415161718191a1b1c1d1e1f')
        """
        with self._claim:
            return self._end()

    def verify(self, tag: Buffer) -> None:
        """Raises InvalidTag unless tag is that of the message, which ends with it.

        Compares in constant time. The object is then closed: any further call is a StateError. tag is 16
        bytes; any other length is an InvalidTag, too, but leaves the object open.

            >>> from chapoly import Poly1305
            >>> mac = Poly1305(bytes(range(32)))
            >>> mac.update(b"attack at dawn")
            >>> mac.verify(bytes.fromhex("daf8f71535db4152c9b148bda19abcfa"))
        """
        expected = Tag(tag)
        with self._claim:
            if self._end() != expected:
                raise InvalidTag("tag does not match")

    def digest(self) -> Tag:
        """The Tag of the message, which ends with it.

        Unlike finalize it may be called again, and so may hexdigest; all else is a StateError.

            >>> from chapoly import Poly1305
            >>> mac = Poly1305(bytes(range(32)))
            >>> mac.digest() == mac.digest()
            True
        """
        self._claim.take()
        try:
            if self._tag is None:
                self._claim.must_be_open()
                self._tag = self._end()
            return self._tag
        finally:
            self._claim.give()

    def hexdigest(self) -> str:
        """The Tag of the message, which ends with it, as 32 hexadecimal digits.

        It may be called again, and so may digest; all else is a StateError.

            >>> from chapoly import Poly1305
            >>> Poly1305(bytes(range(32))).hexdigest()
            '101112131415161718191a1b1c1d1e1f'
        """
        return self.digest().hex()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    __getstate__ = __reduce__
