"""XChaCha20 (draft-irtf-cfrg-xchacha 2.3)."""

from __future__ import annotations

from chapoly.pure._arguments import at_most, key_octets, nonce_octets, number_of_rounds, output, position, view
from chapoly.pure._types import final
from chapoly.pure.chacha20 import BLOCK_SIZE, _Stream, joined, keystream, subkey, written, xor

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from typing import Final, Self, SupportsIndex, overload

    from chapoly.pure._arguments import Buffer, WritableBuffer


def inner(key: bytes, nonce: bytes, rounds: int) -> tuple[bytes, bytes]:
    """The key and the nonce for ChaCha20 that stand for a key and a 24-byte nonce (2.3)."""
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
    """XChaCha20."""
    secret = key_octets(key)
    start = BLOCK_SIZE * position("counter", counter, 2**32 - 1)
    number_once = nonce_octets(nonce, 24)
    with view("data", data) as text:
        at_most("data", len(text), 2**38 - start)
        number = number_of_rounds(rounds)
        result = xor(text, keystream(*inner(secret, number_once, number), number, start, len(text)))
        if out is None:
            return joined(result)
        with output("out", out, len(text), key=key, nonce=nonce, data=data) as memory:
            return written(result, memory)


@final
class XChaCha20(_Stream):
    """XChaCha20 stream."""

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 24  # type: ignore[misc]

    def __new__(
        cls, key: Buffer, nonce: Buffer, *, counter: SupportsIndex = 0, rounds: SupportsIndex = 20
    ) -> Self:
        self = _Stream.__new__(cls, key, nonce, counter=counter, rounds=rounds)
        self._key, self._nonce = inner(self._key, self._nonce, self._rounds)
        return self
