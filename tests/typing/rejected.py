"""Wrong calls: mypy --strict must reject every line that ends in a comment, with the code that it names."""

from chapoly import (
    ChaCha20,
    ChaCha20Poly1305,
    Encryptor,
    Poly1305,
    Tag,
    UnverifiedDecryptor,
    XChaCha20Poly1305,
    chacha20,
    chacha20poly1305,
    poly1305,
)

key, nonce, data, out = bytes(32), bytes(12), b"data", bytearray(4)

chacha20.block("key", 0, nonce)  # arg-type
chacha20.block(key, 1.5, nonce)  # arg-type
chacha20.block(key, 0)  # call-arg
chacha20.block(key, 0, nonce, data)  # call-arg
chacha20.cipher(key, 0, nonce, "data")  # call-overload
chacha20.cipher(key, 0, nonce, data, 20)  # call-overload
chacha20.cipher(key, 0, nonce, data, rounds="20")  # call-overload
chacha20.cipher(key, 0, nonce, data, out=5)  # call-overload
number: int = chacha20.cipher(key, 0, nonce, data)  # assignment
result: bytes = chacha20.cipher(key, 0, nonce, data, out=out)  # assignment
poly1305.mac(key, None)  # arg-type
poly1305.verify(key, data, data.hex())  # arg-type
chacha20poly1305.encrypt(key, nonce, data, "header")  # arg-type
ChaCha20Poly1305()  # call-arg
ChaCha20Poly1305(32)  # arg-type
ChaCha20Poly1305(key).encrypt(nonce, None)  # arg-type
ChaCha20Poly1305(key).encrypt(nonce, data, None, 2)  # call-arg
ChaCha20Poly1305(key).decrypt(nonce, data, threads=2.0)  # arg-type
ChaCha20Poly1305(key).seal(nonce, data)  # attr-defined
ChaCha20Poly1305.generate_nonce()  # attr-defined
XChaCha20Poly1305.generate_nonce(24)  # call-arg
ChaCha20Poly1305(key).encrypt_many(nonce, [data])  # arg-type
ChaCha20Poly1305(key).encrypt_many([nonce], ["text"])  # list-item
ChaCha20Poly1305(key).encrypt_many([nonce], [None])  # list-item
plain: list[bytes] = ChaCha20Poly1305(key).decrypt_many([nonce], [data])  # assignment
ChaCha20Poly1305(key).encrypt_packed(nonce, data, [0, 4], out)  # arg-type
ChaCha20Poly1305(key).encrypt_packed(nonce, data, out, data)  # arg-type
ChaCha20Poly1305(key).decrypt_packed(nonce, data, out, out)  # call-arg
chacha20poly1305.encrypt_many([nonce], [data])  # call-arg
ChaCha20(key, nonce, 1)  # call-arg
ChaCha20(key, nonce, counter="1")  # arg-type
ChaCha20(key, nonce).update_into(data)  # call-arg
ChaCha20(key, nonce).update_into(data, out, 2)  # call-arg
ChaCha20(key, nonce).update(data).append(1)  # attr-defined
ChaCha20Poly1305(key).KEY_SIZE = 16  # misc
Tag("00" * 16)  # arg-type
aead = ChaCha20Poly1305(key)
aead.encrypt_into(nonce, data, None)  # call-arg
aead.encrypt_into(nonce, data, None, bytes(20))  # arg-type
aead.decrypt_into(nonce, data, out)  # call-arg
aead.encrypt_in_place(nonce, data)  # arg-type
aead.decrypt_in_place(nonce, out)  # call-arg
aead.decrypt_detached(nonce, data, None)  # arg-type
pair: bytes = aead.encrypt_detached(nonce, data)  # assignment
aead.encryptor(nonce).verify(bytes(16))  # attr-defined
aead.unverified_decryptor(nonce).finalize()  # attr-defined
aead.encryptor(nonce).update_into(data, data)  # arg-type
aead.decryptor(nonce)  # attr-defined
Encryptor(key)  # call-arg
UnverifiedDecryptor(key, nonce)  # call-arg
Poly1305()  # call-arg
Poly1305(key).update("data")  # arg-type
Poly1305(key).copy()  # attr-defined
Poly1305(key).digest_size = 8  # misc


class MyTag(Tag):  # misc
    pass


class MyAead(ChaCha20Poly1305):  # misc
    pass
