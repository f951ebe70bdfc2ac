"""Wrong calls: mypy --strict must reject every line that ends in a comment, with the code that it names."""

from chapoly import ChaCha20, ChaCha20Poly1305, Tag, XChaCha20Poly1305, chacha20, chacha20poly1305, poly1305

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
ChaCha20(key, nonce).update(data).append(1)  # attr-defined
ChaCha20Poly1305(key).KEY_SIZE = 16  # misc
Tag("00" * 16)  # arg-type


class MyTag(Tag):  # misc
    pass


class MyAead(ChaCha20Poly1305):  # misc
    pass
