"""XChaCha20: ChaCha20 with nonces so long that they can be chosen at random (draft-irtf-cfrg-xchacha 2.3)."""

from __future__ import annotations

from chapoly.pure._arguments import at_most, check_output, in_range, key_of, nonce_of, rounds_of, view
from chapoly.pure._types import final
from chapoly.pure.chacha20 import BLOCK_SIZE, _Stream, joined, keystream, subkey, write, xor

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from typing import Final, Self, SupportsIndex, overload

    from chapoly.pure._arguments import Buffer, WritableBuffer


# ---- draft-irtf-cfrg-xchacha 2.3: XChaCha20 ----


def inner(key: bytes, nonce: bytes, rounds: int) -> tuple[bytes, bytes]:
    """The key and the 12-byte nonce with which ChaCha20 does what XChaCha20 does with these.

    The draft's text: a 32-bit counter, as in RFC 8439. Libraries that have a 64-bit counter instead use the
    four zero bytes as its high word, and agree on all blocks before 2^32.
    """
    return subkey(key, nonce[:16], rounds), bytes(4) + nonce[16:]


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
    """Encrypts data, or decrypts it, which is the same: XChaCha20 (draft-irtf-cfrg-xchacha 2.3).

    nonce is 24 bytes, enough to choose it at random. All else, the warnings too, is as with chacha20.cipher:
    key is 32 bytes, the keystream is taken from block `counter` on, rounds is 20, 12 or 8, and out a buffer
    for the result.

    Raises InvalidKey, InvalidNonce; CounterOverflow for a counter out of range or too much data; ValueError
    for other rounds, a wrong size of out, or an overlap. When it raises, it has written nothing.

        >>> from chapoly import xchacha20
        >>> key, nonce = bytes(range(32)), bytes(range(24))
        >>> ciphertext = xchacha20.cipher(key, 0, nonce, b"attack at dawn")
        >>> xchacha20.cipher(key, 0, nonce, ciphertext)
        b'attack at dawn'
    """
    key_bytes = key_of(key)
    start = BLOCK_SIZE * in_range("counter", counter, 2**32 - 1)
    nonce_bytes = nonce_of(nonce, 24)
    with view("data", data) as source:
        at_most("data", len(source), 2**38 - start)
        number = rounds_of(rounds)
        result = xor(source, keystream(*inner(key_bytes, nonce_bytes, number), number, start, len(source)))
        if out is None:
            return joined(result)
        with view("out", out) as target:
            check_output("out", target, len(source), key=key, nonce=nonce, data=source)
            return write(result, target)


@final
class XChaCha20(_Stream):
    """An XChaCha20 keystream with a position (draft-irtf-cfrg-xchacha 2.3).

    key is 32 bytes, nonce 24 bytes, enough to choose it at random. In all else, the warnings too, like
    ChaCha20: the stream begins at block `counter`, 0 to 2^32 - 1, of 64 bytes, and ends at byte 2^38; rounds
    is 20, 12 or 8.
    Raises InvalidKey, InvalidNonce, CounterOverflow, ValueError.

        >>> from chapoly import XChaCha20, xchacha20
        >>> key, nonce = bytes(range(32)), bytes(range(24))
        >>> XChaCha20(key, nonce, counter=1).update(b"attack") == xchacha20.cipher(key, 1, nonce, b"attack")
        True
    """

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 24  # type: ignore[misc]

    def __new__(  # noqa: D102
        cls, key: Buffer, nonce: Buffer, *, counter: SupportsIndex = 0, rounds: SupportsIndex = 20
    ) -> Self:
        self = _Stream.__new__(cls, key, nonce, counter=counter, rounds=rounds)
        self._key, self._nonce = inner(self._key, self._nonce, self._rounds)
        return self
