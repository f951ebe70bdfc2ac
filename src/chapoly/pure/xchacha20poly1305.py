"""XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha 2.3)."""

from __future__ import annotations

from chapoly.pure._arguments import key_octets, nonce_octets
from chapoly.pure._types import final
from chapoly.pure.chacha20poly1305 import seal, unseal
from chapoly.pure.xchacha20 import inner

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from typing import Final, NoReturn, Self

    from chapoly.pure._arguments import Buffer


def encrypt(key: Buffer, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
    """Encrypts."""
    return seal(*inner(key_octets(key), nonce_octets(nonce, 24), 20), data, associated_data)


def decrypt(key: Buffer, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
    """Decrypts."""
    return unseal(*inner(key_octets(key), nonce_octets(nonce, 24), 20), data, associated_data)


@final
class XChaCha20Poly1305:
    """XChaCha20-Poly1305."""

    __slots__ = ("_key",)
    __module__ = "chapoly"

    KEY_SIZE: Final[int] = 32
    NONCE_SIZE: Final[int] = 24
    TAG_SIZE: Final[int] = 16

    _key: bytes

    def __new__(cls, key: Buffer) -> Self:
        self = object.__new__(cls)
        self._key = key_octets(key)
        return self

    @staticmethod
    def generate_key() -> bytes:
        """A new random key."""
        from os import urandom

        return urandom(32)

    @staticmethod
    def generate_nonce() -> bytes:
        """A new random nonce."""
        from os import urandom

        return urandom(24)

    def encrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
        """Encrypts."""
        return encrypt(self._key, nonce, data, associated_data)

    def decrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
        """Decrypts."""
        return decrypt(self._key, nonce, data, associated_data)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")
