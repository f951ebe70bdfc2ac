"""ChaCha20, Poly1305 and what is built on them, as fast as the processor allows.

    >>> import chapoly
    >>> key, nonce = chapoly.XChaCha20Poly1305.generate_key(), chapoly.XChaCha20Poly1305.generate_nonce()
    >>> aead = chapoly.XChaCha20Poly1305(key)
    >>> aead.decrypt(nonce, aead.encrypt(nonce, b"for your eyes", b"header"), b"header")
    b'for your eyes'

`backend` is "native" or "pure", `kernel` the implementation in use, and `kernels()` what this machine offers.
The choice is made at import. Of the native kernels a process uses one: where several interpreters in it
choose, the last choice holds for all of them, whatever `kernel` is in the others.
"""

from chapoly import chacha20 as chacha20
from chapoly import chacha20poly1305 as chacha20poly1305
from chapoly import poly1305 as poly1305
from chapoly import xchacha20 as xchacha20
from chapoly import xchacha20poly1305 as xchacha20poly1305
from chapoly._backend import backend as backend
from chapoly._backend import implementation as _implementation
from chapoly._backend import kernel as kernel
from chapoly._backend import kernels as kernels
from chapoly._build import version as __version__
from chapoly.errors import (
    CounterOverflow,
    Error,
    InvalidKey,
    InvalidNonce,
    InvalidTag,
    PureBackendWarning,
    StateError,
)

ChaCha20 = _implementation.ChaCha20
ChaCha20Legacy = _implementation.ChaCha20Legacy
ChaCha20Poly1305 = _implementation.ChaCha20Poly1305
Encryptor = _implementation.Encryptor
Poly1305 = _implementation.Poly1305
Tag = _implementation.Tag
UnverifiedDecryptor = _implementation.UnverifiedDecryptor
XChaCha20 = _implementation.XChaCha20
XChaCha20Poly1305 = _implementation.XChaCha20Poly1305

__all__ = [
    "ChaCha20",
    "ChaCha20Legacy",
    "ChaCha20Poly1305",
    "CounterOverflow",
    "Encryptor",
    "Error",
    "InvalidKey",
    "InvalidNonce",
    "InvalidTag",
    "Poly1305",
    "PureBackendWarning",
    "StateError",
    "Tag",
    "UnverifiedDecryptor",
    "XChaCha20",
    "XChaCha20Poly1305",
    "__version__",
    "backend",
    "chacha20",
    "chacha20poly1305",
    "kernel",
    "kernels",
    "poly1305",
    "xchacha20",
    "xchacha20poly1305",
]
