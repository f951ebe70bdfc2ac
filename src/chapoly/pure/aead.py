"""The AEAD of RFC 8439, 2.6 and 2.8, on memory that has been checked.

Keys and nonces are those of ChaCha20. Those of XChaCha20-Poly1305 become such first (xchacha20.inner).
"""

from __future__ import annotations

from io import BytesIO

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import view
from chapoly.pure.chacha20 import BLOCK_SIZE, keystream, write, xor
from chapoly.pure.poly1305 import authenticate, pieces_of

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterator

    from chapoly.pure._arguments import Buffer
    from chapoly.pure.poly1305 import Tag

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


def view_of_associated(associated_data: Buffer | None) -> memoryview:
    """The associated data; None is the same as none."""
    return view("associated_data", b"" if associated_data is None else associated_data)


def padding(size: int) -> bytes:
    """What fills `size` bytes up to whole blocks of the MAC."""
    return bytes(-size % 16)


def padded(text: memoryview) -> Iterator[bytes]:
    """A text and its padding, a piece at a time."""
    yield from pieces_of(text)
    yield padding(len(text))


def lengths(associated_size: int, size: int) -> bytes:
    """The last block of the MAC."""
    return associated_size.to_bytes(8, "little") + size.to_bytes(8, "little")


def mac_data(associated: memoryview, ciphertext: memoryview) -> Iterator[bytes]:
    """What the tag is made of: both texts, each padded with zeros to whole blocks, then their lengths."""
    yield from padded(associated)
    yield from padded(ciphertext)
    yield lengths(len(associated), len(ciphertext))


def encrypted(key: bytes, nonce: bytes, plaintext: memoryview, associated: memoryview) -> tuple[BytesIO, Tag]:
    """The ciphertext and its tag."""
    one_time_key, pieces = keystreams(key, nonce, len(plaintext))
    result = BytesIO()
    result.writelines(xor(plaintext, pieces))
    with result.getbuffer() as ciphertext:
        return result, authenticate(one_time_key, mac_data(associated, ciphertext))


def encrypt_to(
    target: memoryview, key: bytes, nonce: bytes, plaintext: memoryview, associated: memoryview
) -> Tag:
    """Writes the ciphertext to the target, which is as long as the plaintext, and returns its tag."""
    one_time_key, pieces = keystreams(key, nonce, len(plaintext))
    write(xor(plaintext, pieces), target)
    return authenticate(one_time_key, mac_data(associated, target))


def decrypted(
    key: bytes, nonce: bytes, ciphertext: memoryview, associated: memoryview, tag: Buffer
) -> Iterator[bytes]:
    """The plaintext, a piece at a time, once the tag has been found right."""
    one_time_key, pieces = keystreams(key, nonce, len(ciphertext))
    if authenticate(one_time_key, mac_data(associated, ciphertext)) != tag:
        raise InvalidTag("tag does not match")
    return xor(ciphertext, pieces)
