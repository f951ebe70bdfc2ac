"""XChaCha20: ChaCha20 with a 24-byte nonce (draft-irtf-cfrg-xchacha 2.3)."""

from chapoly._backend import implementation as _implementation

cipher = _implementation.xchacha20_cipher

__all__ = ["cipher"]
