"""XChaCha20-Poly1305: authenticated encryption with nonces chosen at random (draft-irtf-cfrg-xchacha 2.1)."""

from __future__ import annotations

from chapoly.pure._arguments import key_of, nonce_of
from chapoly.pure._batch import decrypt_each, encrypt_each
from chapoly.pure._types import final
from chapoly.pure.chacha20poly1305 import _Key, seal, unseal
from chapoly.pure.xchacha20 import inner

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, SupportsIndex

    from chapoly.pure._arguments import Buffer


# ---- draft-irtf-cfrg-xchacha 2.1: AEAD_XChaCha20_Poly1305 ----


def encrypt(
    key: Buffer,
    nonce: Buffer,
    data: Buffer,
    associated_data: Buffer | None = None,
    *,
    threads: SupportsIndex = 1,
) -> bytes:
    """Encrypts and authenticates data: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha 2.1).

    Does what XChaCha20Poly1305(key).encrypt does with the other arguments; for a new key each time.

        >>> from chapoly import xchacha20poly1305
        >>> key, nonce = bytes(range(32)), bytes(24)
        >>> xchacha20poly1305.encrypt(key, nonce, b"attack at dawn", b"from: HQ").hex()
        'f472f8a68fe3c57862ae1b589b788692900354600019836e9f3f081569cf'
    """
    return seal(*inner(key_of(key), nonce_of(nonce, 24), 20), data, associated_data, threads)


def decrypt(
    key: Buffer,
    nonce: Buffer,
    data: Buffer,
    associated_data: Buffer | None = None,
    *,
    threads: SupportsIndex = 1,
) -> bytes:
    """Verifies and decrypts what encrypt returned: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha 2.1).

    Does what XChaCha20Poly1305(key).decrypt does with the other arguments; for a new key each time.

        >>> from chapoly import xchacha20poly1305
        >>> key, nonce = bytes(range(32)), bytes(24)
        >>> data = bytes.fromhex("f472f8a68fe3c57862ae1b589b788692900354600019836e9f3f081569cf")
        >>> xchacha20poly1305.decrypt(key, nonce, data, b"from: HQ")
        b'attack at dawn'
    """
    return unseal(*inner(key_of(key), nonce_of(nonce, 24), 20), data, associated_data, threads)


def encrypt_many(
    keys: Sequence[Buffer],
    nonces: Sequence[Buffer],
    datas: Sequence[Buffer],
    associated_datas: Buffer | Sequence[Buffer | None] | None = None,
) -> list[bytes]:
    """Encrypts many messages, each under its own key: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha 2.1).

    Does what XChaCha20Poly1305.encrypt_many does. keys is a sequence with the key of each message, 32
    bytes. Raises InvalidKey too, with the index of the key; then nothing has been encrypted.

        >>> from chapoly import xchacha20poly1305
        >>> keys, nonces = [bytes(range(32)), bytes(32)], [bytes(24), bytes(24)]
        >>> packets = xchacha20poly1305.encrypt_many(keys, nonces, [b"attack at dawn", b"retreat"])
        >>> packets[1] == xchacha20poly1305.encrypt(keys[1], nonces[1], b"retreat")
        True
    """
    return encrypt_each(encrypt, 24, keys, nonces, datas, associated_datas)


def decrypt_many(
    keys: Sequence[Buffer],
    nonces: Sequence[Buffer],
    datas: Sequence[Buffer],
    associated_datas: Buffer | Sequence[Buffer | None] | None = None,
) -> list[bytes | None]:
    """Decrypts many messages, each under its own key: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha 2.1).

    Does what XChaCha20Poly1305.decrypt_many does. keys is a sequence with the key of each message, 32
    bytes. Raises InvalidKey too, with the index of the key; then nothing has been decrypted.

        >>> from chapoly import xchacha20poly1305
        >>> keys, nonces = [bytes(range(32)), bytes(32)], [bytes(24), bytes(24)]
        >>> packets = xchacha20poly1305.encrypt_many(keys, nonces, [b"attack at dawn", b"retreat"])
        >>> xchacha20poly1305.decrypt_many(keys, nonces, [b"forged", packets[1]])
        [None, b'retreat']
    """
    return decrypt_each(decrypt, 24, keys, nonces, datas, associated_datas)


@final
class XChaCha20Poly1305(_Key):
    """A key for XChaCha20-Poly1305, encryption with authentication (draft-irtf-cfrg-xchacha 2.1).

    key is 32 bytes, which are copied; generate_key() makes one. Raises InvalidKey. Any number of threads may
    use an object at once.

    Never encrypt twice with the same key and nonce: together, both results give both texts away, and let
    anyone forge others. 24 bytes are enough to choose a nonce at random for each message, with
    generate_nonce().

        >>> from chapoly import XChaCha20Poly1305
        >>> aead = XChaCha20Poly1305(XChaCha20Poly1305.generate_key())
        >>> nonce = aead.generate_nonce()
        >>> ciphertext = aead.encrypt(nonce, b"attack at dawn", b"from: HQ")
        >>> aead.decrypt(nonce, ciphertext, b"from: HQ")
        b'attack at dawn'
    """

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 24  # type: ignore[misc]

    def _for_chacha20(self, nonce: Buffer) -> tuple[bytes, bytes]:
        return inner(self._key, nonce_of(nonce, 24), 20)

    @staticmethod
    def generate_nonce() -> bytes:
        """A new nonce.

        It is 24 bytes from os.urandom.

            >>> from chapoly import XChaCha20Poly1305
            >>> len(XChaCha20Poly1305.generate_nonce())
            24
        """
        from os import urandom

        return urandom(24)
