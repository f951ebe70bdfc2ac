"""ChaCha20-Poly1305 (RFC 8439 2.8)."""

from __future__ import annotations

from io import BytesIO

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import at_most, key_octets, nonce_octets, view
from chapoly.pure._types import final
from chapoly.pure.chacha20 import BLOCK_SIZE, keystream, xor
from chapoly.pure.poly1305 import authenticate, in_pieces

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final, NoReturn, Self

    from chapoly.pure._arguments import Buffer

TAG_SIZE = 16
MOST = 274_877_906_880  # bytes of plaintext: 2^32 - 1 blocks, since block 0 makes the one-time key


def keystreams(key: bytes, nonce: bytes, size: int) -> tuple[bytes, Iterator[bytes]]:
    """The one-time key for Poly1305, from block 0 (RFC 8439 2.6), and the keystream for the data, from block 1 on."""
    pieces = keystream(key, nonce, 20, 0, BLOCK_SIZE + size)
    first = next(pieces)

    def rest() -> Iterator[bytes]:
        yield first[BLOCK_SIZE:]
        yield from pieces

    return first[:32], rest()


def mac_data(associated_data: memoryview, ciphertext: memoryview) -> Iterator[bytes]:
    """What the tag is made of: both texts, each padded with zeros to whole blocks, and their lengths."""
    for text in (associated_data, ciphertext):
        for piece in in_pieces(text):
            yield piece + bytes(-len(piece) % 16)
    yield len(associated_data).to_bytes(8, "little") + len(ciphertext).to_bytes(8, "little")


def seal(key: bytes, nonce: bytes, data: Buffer, associated_data: Buffer | None) -> bytes:
    """AEAD encryption: the ciphertext and its tag."""
    with view("data", data) as plaintext:
        at_most("data", len(plaintext), MOST)
        with view("associated_data", b"" if associated_data is None else associated_data) as associated:
            one_time_key, pieces = keystreams(key, nonce, len(plaintext))
            result = BytesIO()
            result.writelines(xor(plaintext, pieces))
            with result.getbuffer() as ciphertext:
                tag = authenticate(one_time_key, mac_data(associated, ciphertext))
            result.write(tag)
            return result.getvalue()


def unseal(key: bytes, nonce: bytes, data: Buffer, associated_data: Buffer | None) -> bytes:
    """AEAD decryption: the plaintext, if the tag is right."""
    with view("data", data) as text:
        at_most("data", len(text), MOST + TAG_SIZE)
        if len(text) < TAG_SIZE:
            raise InvalidTag(f"data must be at least {TAG_SIZE} bytes, got {len(text)}")
        with (
            view("associated_data", b"" if associated_data is None else associated_data) as associated,
            text[:-TAG_SIZE] as ciphertext,
            text[-TAG_SIZE:] as tag,
        ):
            one_time_key, pieces = keystreams(key, nonce, len(ciphertext))
            if authenticate(one_time_key, mac_data(associated, ciphertext)) != tag:
                raise InvalidTag("tag does not match")
            result = BytesIO()
            result.writelines(xor(ciphertext, pieces))
            return result.getvalue()


def encrypt(key: Buffer, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
    """Encrypts."""
    return seal(key_octets(key), nonce_octets(nonce, 12), data, associated_data)


def decrypt(key: Buffer, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
    """Decrypts."""
    return unseal(key_octets(key), nonce_octets(nonce, 12), data, associated_data)


@final
class ChaCha20Poly1305:
    """ChaCha20-Poly1305."""

    __slots__ = ("_key",)
    __module__ = "chapoly"

    KEY_SIZE: Final[int] = 32
    NONCE_SIZE: Final[int] = 12
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

    def encrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
        """Encrypts."""
        return encrypt(self._key, nonce, data, associated_data)

    def decrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes:
        """Decrypts."""
        return decrypt(self._key, nonce, data, associated_data)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")
