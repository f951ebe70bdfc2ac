"""Every public name in use, as mypy --strict must accept it."""

from array import array
from typing import assert_type

import chapoly
from chapoly import (
    ChaCha20,
    ChaCha20Legacy,
    ChaCha20Poly1305,
    CounterOverflow,
    Encryptor,
    Error,
    InvalidKey,
    InvalidNonce,
    InvalidTag,
    Poly1305,
    PureBackendWarning,
    StateError,
    Tag,
    UnverifiedDecryptor,
    XChaCha20,
    XChaCha20Poly1305,
    chacha20,
    chacha20poly1305,
    poly1305,
    xchacha20,
    xchacha20poly1305,
)
from chapoly.testing import use_kernel

key, nonce, data, out = bytes(32), bytes(12), b"data", bytearray(4)

assert_type(chacha20.block(key, 0, nonce), bytes)
assert_type(chacha20.hchacha20(key, nonce16=bytes(16)), bytes)
assert_type(chacha20.cipher(key, 0, nonce, data), bytes)
assert_type(chacha20.cipher(key, 0, nonce, data, rounds=8, out=None), bytes)
assert_type(chacha20.cipher(key, 0, nonce, data, out=out), int)
assert_type(xchacha20.cipher(key, 0, bytes(24), data, rounds=12), bytes)
assert_type(xchacha20.cipher(key, 0, bytes(24), data, rounds=12, out=memoryview(out)), int)
assert_type(poly1305.mac(key, data), Tag)
poly1305.verify(key, data, poly1305.mac(key, data))
poly1305.verify(key, data, bytearray(16))
assert_type(chacha20poly1305.encrypt(key, nonce, data), bytes)
assert_type(chacha20poly1305.decrypt(key, nonce, data, associated_data=None), bytes)
assert_type(xchacha20poly1305.encrypt(key, nonce, data, b"header"), bytes)
assert_type(xchacha20poly1305.decrypt(key, nonce, memoryview(data), bytearray(), threads=4), bytes)

aead = ChaCha20Poly1305(key)
assert_type(aead.encrypt(nonce, data, None), bytes)
assert_type(aead.decrypt(nonce, data=data, associated_data=data), bytes)
assert_type(aead.encrypt(nonce, data, threads=2) + aead.decrypt(nonce, data, data, threads=8), bytes)
assert_type(aead.encrypt_into(nonce, data, None, out, threads=2), int)
assert_type(aead.decrypt_into(nonce, data, None, out, threads=2), int)
assert_type(ChaCha20Poly1305.generate_key(), bytes)
size: int = ChaCha20Poly1305.KEY_SIZE + aead.NONCE_SIZE + aead.TAG_SIZE + XChaCha20.NONCE_SIZE
assert_type(XChaCha20Poly1305(key=bytearray(key)).encrypt(memoryview(nonce), data), bytes)
assert_type(XChaCha20Poly1305.generate_nonce(), bytes)

assert_type(aead.encrypt_into(nonce, data, None, out), int)
assert_type(aead.decrypt_into(nonce, data=data, associated_data=b"", buf=memoryview(out)), int)
ciphertext, detached_tag = aead.encrypt_detached(nonce, data, associated_data=data)
assert_type(ciphertext, bytes)
assert_type(detached_tag, Tag)
assert_type(aead.decrypt_detached(nonce, ciphertext, detached_tag), bytes)
assert_type(aead.decrypt_detached(nonce, ciphertext, bytearray(16), None), bytes)
assert_type(aead.encrypt_in_place(nonce, out), Tag)
aead.decrypt_in_place(nonce, memoryview(out), tag=detached_tag, associated_data=data)
assert_type(XChaCha20Poly1305(key).encrypt_in_place(bytes(24), out, data), Tag)


def sealed(encryptor: Encryptor, parts: list[bytes]) -> bytes:
    return b"".join(map(encryptor.update, parts)) + encryptor.finalize()


sealed(aead.encryptor(nonce), [data])
with XChaCha20Poly1305(key).encryptor(nonce=bytes(24), associated_data=None) as encryptor:
    assert_type(encryptor, Encryptor)
    assert_type(encryptor.update(data), bytes)
    assert_type(encryptor.update_into(data, out), int)
    assert_type(encryptor.finalize(), Tag)
with aead.unverified_decryptor(nonce, b"header") as decryptor:
    assert_type(decryptor, UnverifiedDecryptor)
    assert_type(decryptor.update(data), bytes)
    assert_type(decryptor.update_into(data, buf=out), int)
    decryptor.verify(bytes(16))

mac = Poly1305(key)
mac.update(data)
assert_type(mac.finalize(), Tag)
assert_type(mac.digest(), Tag)
assert_type(mac.hexdigest(), str)
mac.verify(tag=memoryview(bytes(16)))
assert_type(mac.name, str)
assert_type(Poly1305.digest_size + mac.block_size, int)
assert_type(aead.encrypt_many([nonce], [data]), list[bytes])
assert_type(aead.encrypt_many((nonce, bytearray(nonce)), [data, memoryview(data)], b"header"), list[bytes])
assert_type(aead.decrypt_many([nonce, nonce], (data, data), [None, b"header"]), list[bytes | None])
assert_type(chacha20poly1305.encrypt_many([key], [nonce], [data], associated_datas=None), list[bytes])
assert_type(xchacha20poly1305.decrypt_many([key], [nonce], datas=[data]), list[bytes | None])
offsets, failed = array("q", [0, 4]), bytearray(1)
assert_type(aead.encrypt_packed(nonce, data, offsets, out), int)
assert_type(aead.decrypt_packed(nonce, data, memoryview(offsets), out, failed, associated_data=None), int)

with ChaCha20(key, nonce, counter=1, rounds=20) as stream:
    assert_type(stream, ChaCha20)
    assert_type(stream.update(data), bytes)
    assert_type(stream.update_into(data, out), int)
    assert_type(stream.update_into(data, out, threads=2), int)
    assert_type(stream.keystream(5), bytes)
    assert_type(stream.tell(), int)
    stream.seek(3)
assert_type(XChaCha20(key, nonce).keystream(0), bytes)
with ChaCha20Legacy(key, nonce, rounds=8) as legacy:
    assert_type(legacy, ChaCha20Legacy)

tag: bytes = Tag(bytes(16))
assert_type(tag == b"", bool)

errors: list[type[Error]] = [InvalidKey, InvalidNonce, CounterOverflow, StateError, InvalidTag]
values: list[type[ValueError]] = [InvalidKey, InvalidNonce]
overflow: type[OverflowError] = CounterOverflow
state: type[RuntimeError] = StateError
warning: type[RuntimeWarning] = PureBackendWarning

assert_type(chapoly.__version__, str)
assert_type(chapoly.backend, str)
assert_type(chapoly.kernel, str)
assert_type(chapoly.kernels(), tuple[str, ...])
with use_kernel("pure"):
    pass
