"""The forms of an AEAD call, each as a function of key object, nonce, data and associated data."""

import array
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

import chapoly

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


# ---- In company: the message is the first of three. ----


def encrypt_many(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    return bytes(key.encrypt_many([nonce] * 3, [data, b"another", data[:99]], [text, b"", None])[0])


def decrypt_many(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    plaintext, *others = key.decrypt_many([nonce] * 3, [data, bytes(99), b"too short"], text)
    assert others == [None, None]
    if plaintext is None:
        raise chapoly.InvalidTag("tag does not match")
    return bytes(plaintext)


def packed(*messages: bytes) -> tuple[bytes, "array.array[int]"]:
    return b"".join(messages), array.array("q", accumulate(map(len, messages), initial=0))


def encrypt_packed(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    messages, offsets = packed(data, b"another", data[:99])
    buf = bytearray(len(messages) + 48)
    assert key.encrypt_packed(nonce * 3, messages, offsets, buf, text) == len(buf)
    return bytes(buf[: len(data) + 16])


def decrypt_packed(key: Any, nonce: bytes, data: bytes, text: bytes | None) -> bytes:
    messages, offsets = packed(data, bytes(99), bytes(16))
    buf, failed = bytearray(b"\x55" * (len(messages) - 48)), bytearray(b"\x55" * 3)
    failures = key.decrypt_packed(nonce * 3, messages, offsets, buf, failed, text)
    size = len(data) - 16
    assert failures == sum(failed)
    assert failed[1:] == b"\1\1"
    assert buf[size:] == bytes(83)
    if failed[0]:
        assert buf == bytes(len(buf))
        raise chapoly.InvalidTag("tag does not match")
    return bytes(buf[:size])


ENCRYPT_MANY: dict[str, Form] = {"encrypt_many": encrypt_many, "encrypt_packed": encrypt_packed}
DECRYPT_MANY: dict[str, Form] = {"decrypt_many": decrypt_many, "decrypt_packed": decrypt_packed}


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
