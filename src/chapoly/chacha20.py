"""ChaCha20 (RFC 8439 2.3 and 2.4) and HChaCha20 (draft-irtf-cfrg-xchacha 2.2)."""

from chapoly._backend import implementation as _implementation

block = _implementation.chacha20_block
cipher = _implementation.chacha20_cipher
hchacha20 = _implementation.chacha20_hchacha20

__all__ = ["block", "cipher", "hchacha20"]
