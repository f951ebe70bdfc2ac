"""ChaCha20 (RFC 8439 2.1 to 2.4), HChaCha20 (draft-irtf-cfrg-xchacha 2.2) and the streams made of them.

A Python int of any length is as good a vector register as any. Here one int holds four words of the state, a row, for
many blocks at once: each 32-bit word in a lane of 40 bits, first the row's first word in every block, then its second
word in every block, and so on. The code of one block is thereby the code of 256: the spare eight bits of a lane take up
what the additions carry, and the rotations leave it behind.
"""

from __future__ import annotations

from _thread import allocate_lock
from io import BytesIO

from chapoly.errors import InvalidNonce, StateError
from chapoly.pure._arguments import at_most, integer, key_octets, nonce_octets, number_of_rounds, octets, output
from chapoly.pure._arguments import position as checked_position
from chapoly.pure._arguments import shown, view
from chapoly.pure._types import final

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final, NoReturn, Self, SupportsIndex, overload

    from chapoly.pure._arguments import Buffer, WritableBuffer

BLOCK_SIZE = 64
BLOCKS_AT_ONCE = 256  # more gains little, and the working set outgrows a first-level cache (bench/pure_vs_tlslite.py)
LANE_BITS = 40

_EVERY_LANE = int.from_bytes(b"\1\0\0\0\0" * (4 * BLOCKS_AT_ONCE), "little")  # 1 in each lane of a row
_BLOCK_INDEX = int.from_bytes(b"".join(i.to_bytes(5, "little") for i in range(BLOCKS_AT_ONCE)), "little")  # 0, 1, 2 ...

_WORD = _EVERY_LANE * 0xFFFFFFFF
_UPPER_16, _LOWER_16 = _EVERY_LANE * 0xFFFF0000, _EVERY_LANE * 0x0000FFFF
_UPPER_20, _LOWER_12 = _EVERY_LANE * 0xFFFFF000, _EVERY_LANE * 0x00000FFF
_UPPER_24, _LOWER_8 = _EVERY_LANE * 0xFFFFFF00, _EVERY_LANE * 0x000000FF
_UPPER_25, _LOWER_7 = _EVERY_LANE * 0xFFFFFF80, _EVERY_LANE * 0x0000007F


# ---- RFC 8439 2.1: the ChaCha quarter round ----


def quarter_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    """The quarter round on four words, or on every lane of four rows.

    Words are below 2^32 when they come and go. In between a and c reach 3 * 2^32; x << n & upper | x >> 32 - n & lower
    is x <<< n whatever stands above its 32 bits.
    """
    a += b
    d ^= a
    d = d << 16 & _UPPER_16 | d >> 16 & _LOWER_16

    c += d
    b ^= c
    b = b << 12 & _UPPER_20 | b >> 20 & _LOWER_12

    a += b
    d ^= a
    d = d << 8 & _UPPER_24 | d >> 24 & _LOWER_8

    c += d
    b ^= c
    b = b << 7 & _UPPER_25 | b >> 25 & _LOWER_7

    return a & _WORD, b, c & _WORD, d


# ---- RFC 8439 2.3: the ChaCha20 block function ----


def initial_rows(key: bytes, counter: int, nonce: bytes, blocks: int) -> tuple[int, int, int, int]:
    """The four rows of the state: the constants, two of the key, and the counter with the nonce.

    The counter takes what the nonce leaves of the last row: 4 bytes in RFC 8439, 8 in the original cipher. It counts
    up from block to block, all in its low word: counter % 2^32 + blocks <= 2^32.
    """
    state = b"expand 32-byte k" + key + counter.to_bytes(16 - len(nonce), "little") + nonce
    word_bits = LANE_BITS * blocks
    every_block = _EVERY_LANE & (1 << word_bits) - 1
    words = [int.from_bytes(state[i : i + 4], "little") * every_block for i in range(0, 64, 4)]
    words[12] += _BLOCK_INDEX & (1 << word_bits) - 1
    a, b, c, d = (
        words[i] | words[i + 1] << word_bits | words[i + 2] << 2 * word_bits | words[i + 3] << 3 * word_bits
        for i in range(0, 16, 4)
    )
    return a, b, c, d


def permute(a: int, b: int, c: int, d: int, blocks: int, rounds: int) -> tuple[int, int, int, int]:
    """The rounds, a column round and a diagonal round in turn, each of four quarter rounds side by side."""
    one = LANE_BITS * blocks  # bits of one word of the row, in all blocks
    two, three = 2 * one, 3 * one
    first, first_two, first_three = (1 << one) - 1, (1 << two) - 1, (1 << three) - 1
    for _ in range(rounds // 2):
        a, b, c, d = quarter_round(a, b, c, d)

        b = b >> one | (b & first) << three  # rows turned by one, two and three words: diagonals become columns
        c = c >> two | (c & first_two) << two
        d = d >> three | (d & first_three) << one

        a, b, c, d = quarter_round(a, b, c, d)

        b = b >> three | (b & first_three) << one  # and back again
        c = c >> two | (c & first_two) << two
        d = d >> one | (d & first) << three
    return a, b, c, d


def serialize(rows: Iterable[int], blocks: int) -> bytes:
    """The words of the rows, block by block, little-endian."""
    lanes = bytearray().join(row.to_bytes(4 * blocks * LANE_BITS // 8, "little") for row in rows)
    del lanes[4::5]  # the spare bits, and a carry in them: here the additions become additions mod 2^32
    if blocks == 1:
        return bytes(lanes)
    by_word, by_block = memoryview(lanes).cast("I"), memoryview(bytearray(len(lanes))).cast("I")
    words = len(by_word) // blocks
    for i in range(words):
        by_block[i::words] = by_word[i * blocks : (i + 1) * blocks]
    return by_block.tobytes()


def key_blocks(key: bytes, counter: int, nonce: bytes, blocks: int, rounds: int) -> bytes:
    """The keystream of some blocks, at most BLOCKS_AT_ONCE."""
    rows = initial_rows(key, counter, nonce, blocks)
    mixed = permute(*rows, blocks, rounds)
    return serialize((row + first for row, first in zip(mixed, rows, strict=True)), blocks)


def block(key: Buffer, counter: SupportsIndex, nonce: Buffer) -> bytes:
    """The block function of ChaCha20: 64 bytes of keystream (RFC 8439 2.3)."""
    secret = key_octets(key)
    number = checked_position("counter", counter, 2**32 - 1)
    return key_blocks(secret, number, nonce_octets(nonce, 12), 1, 20)


# ---- draft-irtf-cfrg-xchacha 2.2: HChaCha20 ----


def subkey(key: bytes, nonce16: bytes, rounds: int) -> bytes:
    """The first and the last row after the rounds, with nothing added; the nonce stands where counter and nonce were."""
    a, _, _, d = permute(*initial_rows(key, 0, nonce16, 1), 1, rounds)
    return serialize((a, d), 1)


def hchacha20(key: Buffer, nonce16: Buffer) -> bytes:
    """HChaCha20."""
    return subkey(key_octets(key), octets("nonce16", nonce16, 16, InvalidNonce), 20)


# ---- RFC 8439 2.4: the ChaCha20 encryption algorithm ----


def keystream(key: bytes, nonce: bytes, rounds: int, start: int, size: int) -> Iterator[bytes]:
    """The keystream from byte `start` on, piece by piece, as many blocks at once as are needed.

    A piece ends where the low word of the counter does, so that the carry into the high word of the original cipher's
    64-bit counter falls between two pieces.
    """
    end = start + size
    while start < end:
        counter, skip = divmod(start, BLOCK_SIZE)
        blocks = min((skip + end - start + 63) // BLOCK_SIZE, BLOCKS_AT_ONCE, 2**32 - counter % 2**32)
        piece = key_blocks(key, counter, nonce, blocks, rounds)[skip : skip + end - start]
        yield piece
        start += len(piece)


def xor(data: memoryview, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data, each byte combined with one of the keystream, piece by piece."""
    done = 0
    for piece in pieces:
        size = len(piece)
        combined = int.from_bytes(data[done : done + size], "little") ^ int.from_bytes(piece, "little")
        yield combined.to_bytes(size, "little")
        done += size


def joined(pieces: Iterable[bytes]) -> bytes:
    """The pieces as one; unlike b"".join, this never holds them twice."""
    result = BytesIO()
    result.writelines(pieces)
    return result.getvalue()


def written(pieces: Iterable[bytes], memory: memoryview) -> int:
    """Puts the pieces into memory and says how many bytes they were."""
    done = 0
    for piece in pieces:
        memory[done : done + len(piece)] = piece
        done += len(piece)
    return done


if TYPE_CHECKING:

    @overload
    def cipher(
        key: Buffer,
        counter: SupportsIndex,
        nonce: Buffer,
        data: Buffer,
        *,
        rounds: SupportsIndex = 20,
        out: None = None,
    ) -> bytes: ...
    @overload
    def cipher(
        key: Buffer, counter: SupportsIndex, nonce: Buffer, data: Buffer, *, rounds: SupportsIndex = 20, out: WritableBuffer
    ) -> int: ...


def cipher(
    key: Buffer,
    counter: SupportsIndex,
    nonce: Buffer,
    data: Buffer,
    *,
    rounds: SupportsIndex = 20,
    out: WritableBuffer | None = None,
) -> bytes | int:
    """ChaCha20."""
    secret = key_octets(key)
    start = BLOCK_SIZE * checked_position("counter", counter, 2**32 - 1)
    number_once = nonce_octets(nonce, 12)
    with view("data", data) as text:
        at_most("data", len(text), 2**38 - start)
        result = xor(text, keystream(secret, number_once, number_of_rounds(rounds), start, len(text)))
        if out is None:
            return joined(result)
        with output("out", out, len(text), key=key, nonce=nonce, data=data) as memory:
            return written(result, memory)


# ---- Streams: the same keystream, with a position. ----


class _Claim:
    """A stream's one call at a time. A second one does not wait: it is refused."""

    __slots__ = ("closed", "lock")

    def __init__(self) -> None:
        self.closed = False
        self.lock = allocate_lock()

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            raise StateError("another call on this stream is in progress")
        if self.closed:
            self.lock.release()
            raise StateError("stream is closed")

    def __exit__(self, *exception: object) -> None:
        self.lock.release()


class _Stream:
    """What the three stream types share."""

    __slots__ = ("_claim", "_end", "_key", "_nonce", "_position", "_rounds")

    KEY_SIZE: Final[int] = 32
    NONCE_SIZE: int

    _claim: _Claim
    _end: int
    _key: bytes
    _nonce: bytes
    _position: int
    _rounds: int

    def __new__(
        cls, key: Buffer, nonce: Buffer, *, counter: SupportsIndex = 0, rounds: SupportsIndex = 20
    ) -> Self:
        self = object.__new__(cls)
        last_counter = 2**64 - 1 if cls.NONCE_SIZE == 8 else 2**32 - 1
        self._key = key_octets(key)
        self._nonce = nonce_octets(nonce, cls.NONCE_SIZE)
        self._position = BLOCK_SIZE * checked_position("counter", counter, last_counter)
        self._end = BLOCK_SIZE * (last_counter + 1)
        self._rounds = number_of_rounds(rounds)
        self._claim = _Claim()
        return self

    def update(self, data: Buffer) -> bytes:
        """Encrypts."""
        with view("data", data) as text, self._claim:
            at_most("data", len(text), self._end - self._position)
            result = joined(xor(text, keystream(self._key, self._nonce, self._rounds, self._position, len(text))))
            self._position += len(text)
            return result

    def update_into(self, data: Buffer, buf: WritableBuffer) -> int:
        """Encrypts."""
        with view("data", data) as text, view("buf", buf), self._claim:
            at_most("data", len(text), self._end - self._position)
            with output("buf", buf, len(text), data=data) as memory:
                pieces = keystream(self._key, self._nonce, self._rounds, self._position, len(text))
                self._position += written(xor(text, pieces), memory)
                return len(text)

    def keystream(self, n: SupportsIndex) -> bytes:
        """The next."""
        size = integer(n)
        with self._claim:
            if size < 0:
                raise ValueError(f"n must be 0 or more, got {shown(size)}")
            at_most("n", size, self._end - self._position)
        return self.update(bytes(size))

    def seek(self, byte: SupportsIndex) -> None:
        """Seek."""
        number = integer(byte)
        with self._claim:
            self._position = checked_position("byte", number, self._end)

    def tell(self) -> int:
        """Tell."""
        with self._claim:
            return self._position

    def __enter__(self) -> Self:
        """Enter."""
        with self._claim:
            return self

    def __exit__(self, *exception: object) -> None:
        """Exit."""
        with self._claim:
            self._claim.closed = True
            self._key = self._nonce = b""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


@final
class ChaCha20(_Stream):
    """ChaCha20 stream."""

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 12  # type: ignore[misc]


@final
class ChaCha20Legacy(_Stream):
    """Legacy."""

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 8  # type: ignore[misc]
