"""The forms of an AEAD call, each as a function of key object, nonce, data and associated data."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Form = Callable[[Any, bytes, bytes, bytes | None], bytes]


def into(method: Callable[..., int], nonce: bytes, data: bytes, text: bytes | None, size: int) -> bytes:
    buf = bytearray(b"\x55" * size)
    assert method(nonce, data, text, buf) == size
    return bytes(buf)


def encrypt_detached(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    ciphertext, tag = key.encrypt_detached(nonce, data, text)
    return bytes(ciphertext + tag)


def encrypt_in_place(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    buf = bytearray(data)
    tag = key.encrypt_in_place(nonce, buf, text)
    return bytes(buf + tag)


def decrypt_in_place(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    buf = bytearray(data[:-16])
    assert key.decrypt_in_place(nonce, buf, data[-16:], text) is None
    return bytes(buf)


ENCRYPT: dict[str, Form] = {
    "encrypt": lambda key, nonce, data, text: bytes(key.encrypt(nonce, data, text)),
    "encrypt_into": lambda key, nonce, data, text: into(key.encrypt_into, nonce, data, text, len(data) + 16),
    "encrypt_detached": encrypt_detached,
    "encrypt_in_place": encrypt_in_place,
}
DECRYPT: dict[str, Form] = {
    "decrypt": lambda key, nonce, data, text: bytes(key.decrypt(nonce, data, text)),
    "decrypt_into": lambda key, nonce, data, text: into(key.decrypt_into, nonce, data, text, len(data) - 16),
    "decrypt_detached": lambda key, nonce, data, text: bytes(
        key.decrypt_detached(nonce, data[:-16], data[-16:], text)
    ),
    "decrypt_in_place": decrypt_in_place,
}


# ---- In parts: `sizes` are those of the parts; what is left after them is one more. ----


def split(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def encrypt_in_parts(key: Any, nonce: bytes, data: bytes, text: bytes | None, sizes: Iterable[int]) -> bytes:
    encryptor = key.encryptor(nonce, text)
    parts = [encryptor.update(part) for part in split(data, sizes)]
    return b"".join([*parts, encryptor.finalize()])


def decrypt_in_parts(key: Any, nonce: bytes, data: bytes, text: bytes | None, sizes: Iterable[int]) -> bytes:
    decryptor = key.unverified_decryptor(nonce, text)
    parts = [decryptor.update(part) for part in split(data[:-16], sizes)]
    decryptor.verify(data[-16:])
    return b"".join(parts)
