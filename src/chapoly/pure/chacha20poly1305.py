"""ChaCha20-Poly1305: authenticated encryption with associated data (RFC 8439 2.8)."""

from __future__ import annotations

from io import BytesIO

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import at_most, key_of, nonce_of, view
from chapoly.pure._batch import _Batches, decrypt_each, encrypt_each
from chapoly.pure._types import final
from chapoly.pure.chacha20 import BLOCK_SIZE, joined, keystream, xor
from chapoly.pure.poly1305 import authenticate, pieces_of

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Final, NoReturn, Self

    from chapoly.pure._arguments import Buffer

TAG_SIZE = 16
DATA_MAX = BLOCK_SIZE * (2**32 - 1)  # all blocks but block 0, 274,877,906,880 bytes


# ---- RFC 8439 2.6: generating the Poly1305 key using ChaCha20 ----


def keystreams(key: bytes, nonce: bytes, size: int) -> tuple[bytes, Iterator[bytes]]:
    """The one-time key, half of block 0, and the keystream for `size` bytes of data, from block 1 on.

    Block 0 is computed at once with the first blocks for the data.
    """
    pieces = keystream(key, nonce, 20, 0, BLOCK_SIZE + size)
    first = next(pieces)

    def for_data() -> Iterator[bytes]:
        yield first[BLOCK_SIZE:]
        yield from pieces

    return first[:32], for_data()


# ---- RFC 8439 2.8: AEAD construction ----


def mac_data(associated_data: memoryview, ciphertext: memoryview) -> Iterator[bytes]:
    """What the tag is made of: both texts, each padded with zeros to whole blocks, then their lengths."""
    for text in (associated_data, ciphertext):
        for piece in pieces_of(text):
            yield piece + bytes(-len(piece) % 16)
    yield len(associated_data).to_bytes(8, "little") + len(ciphertext).to_bytes(8, "little")


def seal(key: bytes, nonce: bytes, data: Buffer, associated_data: Buffer | None) -> bytes:
    """The ciphertext and its tag."""
    with view("data", data) as plaintext:
        at_most("data", len(plaintext), DATA_MAX)
        with view("associated_data", b"" if associated_data is None else associated_data) as associated:
            one_time_key, pieces = keystreams(key, nonce, len(plaintext))
            result = BytesIO()
            result.writelines(xor(plaintext, pieces))
            with result.getbuffer() as ciphertext:
                tag = authenticate(one_time_key, mac_data(associated, ciphertext))
            result.write(tag)
            return result.getvalue()


def unseal(key: bytes, nonce: bytes, data: Buffer, associated_data: Buffer | None) -> bytes:
    """The plaintext, once the tag has been found right."""
    with view("data", data) as sealed:
        at_most("data", len(sealed), DATA_MAX + TAG_SIZE)
        if len(sealed) < TAG_SIZE:
            raise InvalidTag(f"data must be at least {TAG_SIZE} bytes, got {len(sealed)}")
        with (
            view("associated_data", b"" if associated_data is None else associated_data) as associated,
            sealed[:-TAG_SIZE] as ciphertext,
            sealed[-TAG_SIZE:] as tag,
        ):
            one_time_key, pieces = keystreams(key, nonce, len(ciphertext))
            if authenticate(one_time_key, mac_data(associated, ciphertext)) != tag:
                raise InvalidTag("tag does not match")
            return joined(xor(ciphertext, pieces))


def encrypt(key: Buffer, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
    """Encrypts and authenticates data: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305(key).encrypt(nonce, data, associated_data) does; for a new key each time.

        >>> from chapoly import chacha20poly1305
        >>> key, nonce = bytes(range(32)), bytes(12)
        >>> chacha20poly1305.encrypt(key, nonce, b"attack at dawn", b"from: HQ").hex()
        '79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164'
    """
    return seal(key_of(key), nonce_of(nonce, 12), data, associated_data)


def decrypt(key: Buffer, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
    """Verifies and decrypts what encrypt returned: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305(key).decrypt(nonce, data, associated_data) does; for a new key each time.

        >>> from chapoly import chacha20poly1305
        >>> key, nonce = bytes(range(32)), bytes(12)
        >>> data = bytes.fromhex("79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164")
        >>> chacha20poly1305.decrypt(key, nonce, data, b"from: HQ")
        b'attack at dawn'
    """
    return unseal(key_of(key), nonce_of(nonce, 12), data, associated_data)


def encrypt_many(
    keys: Sequence[Buffer],
    nonces: Sequence[Buffer],
    datas: Sequence[Buffer],
    associated_datas: Buffer | Sequence[Buffer | None] | None = None,
) -> list[bytes]:
    """Encrypts many messages, each under its own key: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305.encrypt_many does. keys is a sequence with the key of each message, 32
    bytes. Raises InvalidKey too, with the index of the key; then nothing has been encrypted.

        >>> from chapoly import chacha20poly1305
        >>> keys, nonces = [bytes(range(32)), bytes(32)], [bytes(12), bytes(12)]
        >>> packets = chacha20poly1305.encrypt_many(keys, nonces, [b"attack at dawn", b"retreat"])
        >>> packets[1] == chacha20poly1305.encrypt(keys[1], nonces[1], b"retreat")
        True
    """
    return encrypt_each(encrypt, 12, keys, nonces, datas, associated_datas)


def decrypt_many(
    keys: Sequence[Buffer],
    nonces: Sequence[Buffer],
    datas: Sequence[Buffer],
    associated_datas: Buffer | Sequence[Buffer | None] | None = None,
) -> list[bytes | None]:
    """Decrypts many messages, each under its own key: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305.decrypt_many does. keys is a sequence with the key of each message, 32
    bytes. Raises InvalidKey too, with the index of the key; then nothing has been decrypted.

        >>> from chapoly import chacha20poly1305
        >>> keys, nonces = [bytes(range(32)), bytes(32)], [bytes(12), bytes(12)]
        >>> packets = chacha20poly1305.encrypt_many(keys, nonces, [b"attack at dawn", b"retreat"])
        >>> chacha20poly1305.decrypt_many(keys, nonces, [b"forged", packets[1]])
        [None, b'retreat']
    """
    return decrypt_each(decrypt, 12, keys, nonces, datas, associated_datas)


@final
class ChaCha20Poly1305(_Batches):
    """A key for ChaCha20-Poly1305, encryption with authentication (RFC 8439 2.8).

    key is 32 bytes, which are copied; generate_key() makes one. Raises InvalidKey. Any number of threads may
    use an object at once.

    Never encrypt twice with the same key and nonce: together, both results give both texts away, and let
    anyone forge others. 12 bytes are too few to choose nonces at random: count them, or take
    XChaCha20Poly1305.

        >>> from chapoly import ChaCha20Poly1305
        >>> aead = ChaCha20Poly1305(ChaCha20Poly1305.generate_key())
        >>> nonce = bytes(12)
        >>> ciphertext = aead.encrypt(nonce, b"attack at dawn", b"from: HQ")
        >>> aead.decrypt(nonce, ciphertext, b"from: HQ")
        b'attack at dawn'
    """

    __slots__ = ("_key",)
    __module__ = "chapoly"

    KEY_SIZE: Final[int] = 32
    NONCE_SIZE: Final[int] = 12  # type: ignore[misc]
    TAG_SIZE: Final[int] = 16

    _key: bytes

    def __new__(cls, key: Buffer) -> Self:  # noqa: D102
        self = object.__new__(cls)
        self._key = key_of(key)
        return self

    @staticmethod
    def generate_key() -> bytes:
        """A new key, 32 bytes from os.urandom."""
        from os import urandom

        return urandom(32)

    def encrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
        """Encrypts and authenticates data, and authenticates associated_data with it.

        nonce is 12 bytes, never used with this key before. data is at most 274,877,906,880 bytes. Returns the
        ciphertext followed by its tag, 16 bytes more than data. decrypt needs the same associated_data; None
        is the same as b"".
        Nothing that was passed in may change during the call.
        Raises InvalidNonce, and CounterOverflow for too much data.
        """
        return encrypt(self._key, nonce, data, associated_data)

    def decrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
        """Verifies what encrypt returned, and only then decrypts it.

        nonce and associated_data are those that were given to encrypt. Returns the plaintext, 16 bytes less
        than data.
        Nothing that was passed in may change during the call.
        Raises InvalidTag if anything is not as it was, and then says no more; InvalidNonce, and
        CounterOverflow for more data than encrypt can return.
        """
        return decrypt(self._key, nonce, data, associated_data)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    __getstate__ = __reduce__
