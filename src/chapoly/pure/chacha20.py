"""ChaCha20 (RFC 8439 2.1 to 2.4), HChaCha20 (draft-irtf-cfrg-xchacha 2.2) and the streams made of ChaCha20.

A Python int is a vector register of any length. Here one int holds a row of the state, four words, for many
blocks at once. Each word has a lane of 40 bits: first come the lanes of the row's first word, one for each
block, then those of its second word, and so on. So the code for one block is the code for 256 blocks. The
eight spare bits of a lane take up what its additions carry.
"""

from __future__ import annotations

from io import BytesIO

from chapoly.errors import InvalidNonce
from chapoly.pure._arguments import (
    at_most,
    check_output,
    check_threads,
    in_range,
    integer,
    key_of,
    nonce_of,
    octets,
    rounds_of,
    shown,
    view,
)
from chapoly.pure._claim import Claim
from chapoly.pure._types import final

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final, NoReturn, Self, SupportsIndex, overload

    from chapoly.pure._arguments import Buffer, WritableBuffer

BLOCK_SIZE = 64
LANE_BITS = 40
BLOCKS_AT_ONCE = 512  # more would gain little, and take more cache (bench/pure_vs_tlslite.py)

_EVERY_LANE = int.from_bytes(b"\1\0\0\0\0" * (4 * BLOCKS_AT_ONCE), "little")  # a row of words that are 1
_BLOCK_NUMBERS = int.from_bytes(b"".join(i.to_bytes(5, "little") for i in range(BLOCKS_AT_ONCE)), "little")

_WORD = _EVERY_LANE * 0xFFFFFFFF
_UPPER_16, _LOWER_16 = _EVERY_LANE * 0xFFFF0000, _EVERY_LANE * 0x0000FFFF
_UPPER_20, _LOWER_12 = _EVERY_LANE * 0xFFFFF000, _EVERY_LANE * 0x00000FFF
_UPPER_24, _LOWER_8 = _EVERY_LANE * 0xFFFFFF00, _EVERY_LANE * 0x000000FF
_UPPER_25, _LOWER_7 = _EVERY_LANE * 0xFFFFFF80, _EVERY_LANE * 0x0000007F


# ---- RFC 8439 2.1: the ChaCha quarter round ----


def quarter_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    """The quarter round on four words, or on four rows, lane by lane.

    The words are below 2^32 when they come and when they go; the lanes of a and c reach 3 * 2^32 in between.
    `x << n & upper | x >> 32 - n & lower` is `x <<< n` of each word, whatever its lane holds above it.
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
    """The rows of the state: the constants, two of the key, and the last with counter and nonce.

    The counter has what the nonce leaves of the last row: 4 bytes in RFC 8439, 8 in the original cipher. From
    block to block it counts up in its low word alone: counter mod 2^32 + blocks <= 2^32.
    """
    state = b"expand 32-byte k" + key + counter.to_bytes(16 - len(nonce), "little") + nonce
    lanes = [(state[i : i + 4] + b"\0") * blocks for i in range(0, 64, 4)]
    a, b, c, d = [int.from_bytes(b"".join(lanes[i : i + 4]), "little") for i in range(0, 16, 4)]
    return a, b, c, d + (_BLOCK_NUMBERS & (1 << LANE_BITS * blocks) - 1)


def permute(a: int, b: int, c: int, d: int, blocks: int, rounds: int) -> tuple[int, int, int, int]:
    """The rounds: column rounds and diagonal rounds in turn, the four quarter rounds of each side by side."""
    one = LANE_BITS * blocks  # bits of one word of a row, in all blocks
    two, three = 2 * one, 3 * one
    low_one, low_two, low_three = (1 << one) - 1, (1 << two) - 1, (1 << three) - 1
    for _ in range(rounds // 2):
        a, b, c, d = quarter_round(a, b, c, d)

        # Turn the rows by one, two and three words: now the diagonals stand where the columns stood.
        b = b >> one | (b & low_one) << three
        c = c >> two | (c & low_two) << two
        d = d >> three | (d & low_three) << one

        a, b, c, d = quarter_round(a, b, c, d)

        # And back.
        b = b >> three | (b & low_three) << one
        c = c >> two | (c & low_two) << two
        d = d >> one | (d & low_one) << three
    return a, b, c, d


def serialize(rows: list[int], blocks: int) -> bytes:
    """The words of the rows mod 2^32, little-endian, block by block."""
    lanes = bytearray().join([row.to_bytes(4 * blocks * LANE_BITS // 8, "little") for row in rows])
    del lanes[4::5]  # the spare byte of each lane, with any carry: what is left of a sum is the sum mod 2^32
    words = 4 * len(rows)
    by_word, by_block = memoryview(lanes).cast("I"), memoryview(bytearray(len(lanes))).cast("I")
    if blocks < words:  # both ways do the same; take the one with fewer copies
        for i in range(blocks):
            by_block[i * words : (i + 1) * words] = by_word[i::blocks]
    else:
        for i in range(words):
            by_block[i::words] = by_word[i * blocks : (i + 1) * blocks]
    return by_block.tobytes()


def keystream_blocks(key: bytes, counter: int, nonce: bytes, blocks: int, rounds: int) -> bytes:
    """The block function for up to BLOCKS_AT_ONCE blocks: the rounds, then the initial state is added."""
    initial = initial_rows(key, counter, nonce, blocks)
    final_rows = permute(*initial, blocks, rounds)
    return serialize([row + first for row, first in zip(final_rows, initial, strict=True)], blocks)


def block(key: Buffer, counter: SupportsIndex, nonce: Buffer) -> bytes:
    """One block of keystream, 64 bytes: the ChaCha20 block function (RFC 8439 2.3).

    key is 32 bytes, nonce 12 bytes, counter the number of the block, from 0 to 2^32 - 1.
    Raises InvalidKey, CounterOverflow, InvalidNonce.

        >>> from chapoly import chacha20
        >>> chacha20.block(bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000"))[:16].hex()
        '10f1e7e4d13b5915500fdd1fa32071c4'
    """
    key_bytes = key_of(key)
    number = in_range("counter", counter, 2**32 - 1)
    return keystream_blocks(key_bytes, number, nonce_of(nonce, 12), 1, 20)


# ---- draft-irtf-cfrg-xchacha 2.2: HChaCha20 ----


def subkey(key: bytes, nonce16: bytes, rounds: int) -> bytes:
    """The first row and the last after the rounds, with nothing added. The nonce was the whole last row."""
    a, _, _, d = permute(*initial_rows(key, 0, nonce16, 1), 1, rounds)
    return serialize([a, d], 1)


def hchacha20(key: Buffer, nonce16: Buffer) -> bytes:
    """A key of 32 bytes derived from a key and a nonce: HChaCha20 (draft-irtf-cfrg-xchacha 2.2).

    key is 32 bytes, nonce16 16 bytes. XChaCha20 encrypts with such a key for each nonce.
    Raises InvalidKey, InvalidNonce.

        >>> from chapoly import chacha20
        >>> chacha20.hchacha20(bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927")).hex()
        '82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc'
    """
    return subkey(key_of(key), octets("nonce16", nonce16, 16, InvalidNonce), 20)


# ---- RFC 8439 2.4: the ChaCha20 encryption algorithm ----


def keystream(key: bytes, nonce: bytes, rounds: int, start: int, size: int) -> Iterator[bytes]:
    """The keystream from byte `start` on, in pieces of as many blocks as are needed, up to BLOCKS_AT_ONCE.

    A piece also ends where the low word of the counter does: a 64-bit counter carries between two pieces.
    """
    end = start + size
    while start < end:
        counter, skip = divmod(start, BLOCK_SIZE)
        needed = -(-(skip + end - start) // BLOCK_SIZE)
        blocks = min(needed, BLOCKS_AT_ONCE, 2**32 - counter % 2**32)
        piece = keystream_blocks(key, counter, nonce, blocks, rounds)[skip : skip + end - start]
        yield piece
        start += len(piece)


def xor(data: memoryview, keystream_pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data xor the keystream, which is as long, piece by piece."""
    done = 0
    for piece in keystream_pieces:
        size = len(piece)
        combined = int.from_bytes(data[done : done + size], "little") ^ int.from_bytes(piece, "little")
        yield combined.to_bytes(size, "little")
        done += size


def joined(pieces: Iterable[bytes]) -> bytes:
    """The pieces as one; b"".join would hold all of them beside the result."""
    result = BytesIO()
    result.writelines(pieces)
    return result.getvalue()


def write(pieces: Iterable[bytes], target: memoryview) -> int:
    """Writes the pieces one after the other and returns how many bytes they are."""
    done = 0
    for piece in pieces:
        target[done : done + len(piece)] = piece
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
        key: Buffer,
        counter: SupportsIndex,
        nonce: Buffer,
        data: Buffer,
        *,
        rounds: SupportsIndex = 20,
        out: WritableBuffer,
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
    """Encrypts data, or decrypts it, which is the same: ChaCha20 (RFC 8439 2.4).

    key is 32 bytes, nonce 12 bytes. The keystream is taken from block `counter` on, 0 to 2^32 - 1; no data
    may go beyond block 2^32 - 1. rounds is 20, or 12 or 8 for ChaCha12 and ChaCha8.

    Returns the result, as long as data. If out is given, writes the result there and returns its length: out
    is a writable buffer exactly as long as data. It may start where data starts, to work in place; otherwise
    it must overlap neither data nor key nor nonce. Nothing that was passed in may change during the call.

    Never encrypt twice with the same key, nonce and block: together, both results give both texts away.
    Nothing here detects a forgery; ChaCha20Poly1305 does.

    Raises InvalidKey, InvalidNonce; CounterOverflow for a counter out of range or too much data; ValueError
    for other rounds, a wrong size of out, or an overlap. When it raises, it has written nothing.

        >>> from chapoly import chacha20
        >>> key, nonce = bytes(range(32)), bytes.fromhex("000000000000004a00000000")
        >>> chacha20.cipher(key, 1, nonce, b"Ladies and Gentlemen of the class of '99").hex()[:32]
        '6e2e359a2568f98041ba0728dd0d6981'
    """
    key_bytes = key_of(key)
    start = BLOCK_SIZE * in_range("counter", counter, 2**32 - 1)
    nonce_bytes = nonce_of(nonce, 12)
    with view("data", data) as source:
        at_most("data", len(source), 2**38 - start)
        result = xor(source, keystream(key_bytes, nonce_bytes, rounds_of(rounds), start, len(source)))
        if out is None:
            return joined(result)
        with view("out", out) as target:
            check_output("out", target, len(source), key=key, nonce=nonce, data=source)
            return write(result, target)


# ---- Streams: the same keystream, with a position in it ----


class _Stream:
    """What the three types of streams have in common. Buffers are acquired before the stream is claimed."""

    __slots__ = ("_claim", "_end", "_key", "_nonce", "_position", "_rounds")

    KEY_SIZE: Final[int] = 32
    NONCE_SIZE: int  # a constant of each type

    _claim: Claim
    _end: int
    _key: bytes
    _nonce: bytes
    _position: int
    _rounds: int

    def __new__(
        cls, key: Buffer, nonce: Buffer, *, counter: SupportsIndex = 0, rounds: SupportsIndex = 20
    ) -> Self:
        self = object.__new__(cls)
        blocks = 2**64 if cls.NONCE_SIZE == 8 else 2**32
        self._key = key_of(key)
        self._nonce = nonce_of(nonce, cls.NONCE_SIZE)
        self._position = BLOCK_SIZE * in_range("counter", counter, blocks - 1)
        self._rounds = rounds_of(rounds)
        self._end = BLOCK_SIZE * blocks
        self._claim = Claim("stream")
        return self

    def _next(self, data: memoryview) -> Iterator[bytes]:
        """The data xor the keystream that comes next; the stream moves on when all of it has been taken."""
        yield from xor(data, keystream(self._key, self._nonce, self._rounds, self._position, len(data)))
        self._position += len(data)

    def update(self, data: Buffer) -> bytes:
        """Encrypts or decrypts the next bytes of a message, and returns as many as data has.

        A message may come in parts of any length, as if it came in one.
        data must not change during the call.
        Raises CounterOverflow if fewer bytes of keystream are left; the position is then as before.

            >>> from chapoly import ChaCha20
            >>> stream = ChaCha20(bytes(range(32)), bytes(12))
            >>> (stream.update(b"attack ") + stream.update(b"at dawn")).hex()
            '58895f1cbaae390bf99d6716cfb2'
        """
        with view("data", data) as source, self._claim:
            at_most("data", len(source), self._end - self._position)
            return self._claim.whole(joined, self._next(source))

    def update_into(self, data: Buffer, buf: WritableBuffer, *, threads: SupportsIndex = 1) -> int:
        """Does what update does, but writes the result to buf and returns its length.

        buf is a writable buffer exactly as long as data. It may start where data starts, to work in place;
        otherwise they must not overlap. Neither may change during the call.
        Up to `threads` threads work on data together, fewer where each would have less than 256 KiB; the
        result is the same. The pure implementation checks the number and uses one thread.
        Raises CounterOverflow as update does, and ValueError; then it has written nothing.

            >>> from chapoly import ChaCha20
            >>> buf = bytearray(b"attack at dawn")
            >>> ChaCha20(bytes(range(32)), bytes(12)).update_into(buf, buf)
            14
            >>> buf.hex()
            '58895f1cbaae390bf99d6716cfb2'
        """
        with view("data", data) as source, view("buf", buf) as target:
            check_threads(threads)
            with self._claim:
                at_most("data", len(source), self._end - self._position)
                check_output("buf", target, len(source), data=source)
                return self._claim.whole(write, self._next(source), target)

    def keystream(self, n: SupportsIndex) -> bytes:
        """The next n bytes of keystream.

        Raises ValueError if n is negative, CounterOverflow if fewer bytes are left.

            >>> from chapoly import ChaCha20
            >>> ChaCha20(bytes(range(32)), bytes(12)).keystream(8).hex()
            '39fd2b7dd9c5196a'
        """
        size = integer(n)
        with self._claim:
            if size < 0:
                raise ValueError(f"n must be 0 or more, got {shown(size)}")
            at_most("n", size, self._end - self._position)
            zeros = memoryview(bytes(size))
            return self._claim.whole(joined, self._next(zeros))

    def seek(self, byte: SupportsIndex) -> None:
        """Moves to a byte of the keystream, counted from the start of block 0, wherever the stream began.

        One past the last byte is allowed; only empty updates work there.
        Raises CounterOverflow for a position that does not exist.

            >>> from chapoly import ChaCha20
            >>> stream = ChaCha20(bytes(range(32)), bytes(12), counter=1)
            >>> stream.seek(4)
            >>> stream.keystream(4).hex()
            'd9c5196a'
        """
        position = integer(byte)
        with self._claim:
            self._position = in_range("byte", position, self._end)

    def tell(self) -> int:
        """The position of the next byte of keystream.

        It is counted from the start of block 0, wherever the stream began.

            >>> from chapoly import ChaCha20
            >>> ChaCha20(bytes(range(32)), bytes(12), counter=1).tell()
            64
        """
        with self._claim:
            return self._position

    def __enter__(self) -> Self:
        """The stream itself."""
        with self._claim:
            return self

    def __exit__(self, *exception: object) -> None:
        """Closes the stream for good and wipes its key (the pure implementation can only drop it)."""
        self._claim.take()
        self._claim.closed = True
        self._key = self._nonce = b""
        self._claim.give()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    __getstate__ = __reduce__


@final
class ChaCha20(_Stream):
    """A ChaCha20 keystream with a position, for messages in parts and for random access (RFC 8439 2.4).

    key is 32 bytes, nonce 12 bytes. The stream begins at block `counter`, 0 to 2^32 - 1, of 64 bytes, and
    ends with block 2^32 - 1, at byte 2^38. rounds is 20, or 12 or 8 for ChaCha12 and ChaCha8. key and nonce
    are copied.
    Raises InvalidKey, InvalidNonce, CounterOverflow, ValueError.

    Never encrypt twice with the same key, nonce and position: together, both results give both texts away.
    Nothing here detects a forgery; ChaCha20Poly1305 does.

    A stream is for one call at a time: a second one meanwhile, and any call after the end of `with`, is a
    StateError.

        >>> from chapoly import ChaCha20
        >>> with ChaCha20(bytes(range(32)), bytes(12)) as stream:
        ...     ciphertext = stream.update(b"attack ") + stream.update(b"at dawn")
        ...     stream.seek(7)
        ...     stream.update(ciphertext[7:])
        b'at dawn'
    """

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 12  # type: ignore[misc]


@final
class ChaCha20Legacy(_Stream):
    """A keystream of the original ChaCha20, with a longer counter and a shorter nonce (Bernstein, 2008).

    key is 32 bytes, nonce 8 bytes: too few to choose at random. The stream begins at block `counter`, 0 to
    2^64 - 1, of 64 bytes, and ends at byte 2^70. For protocols that ask for it; in all else like ChaCha20.
    Raises InvalidKey, InvalidNonce, CounterOverflow, ValueError.

        >>> from chapoly import ChaCha20Legacy
        >>> ChaCha20Legacy(bytes(range(32)), bytes(8), counter=2**32).keystream(16).hex()
        'd838fb09536e2e3a10e8f23f486273a6'
    """

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 8  # type: ignore[misc]
