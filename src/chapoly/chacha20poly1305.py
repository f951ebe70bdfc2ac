"""ChaCha20-Poly1305 (RFC 8439 2.8) for those with a new key for each message."""

from chapoly._backend import implementation as _implementation

encrypt = _implementation.chacha20poly1305_encrypt
decrypt = _implementation.chacha20poly1305_decrypt
encrypt_many = _implementation.chacha20poly1305_encrypt_many
decrypt_many = _implementation.chacha20poly1305_decrypt_many

__all__ = ["decrypt", "decrypt_many", "encrypt", "encrypt_many"]
