"""XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha 2.1) for those with a new key for each message."""

from chapoly._backend import implementation as _implementation

encrypt = _implementation.xchacha20poly1305_encrypt
decrypt = _implementation.xchacha20poly1305_decrypt
encrypt_many = _implementation.xchacha20poly1305_encrypt_many
decrypt_many = _implementation.xchacha20poly1305_decrypt_many

__all__ = ["decrypt", "decrypt_many", "encrypt", "encrypt_many"]
