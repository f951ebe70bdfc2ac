# Types are written once, in pure/; mypy.stubtest proves that the native module has the same.
from chapoly.pure import ChaCha20 as ChaCha20
from chapoly.pure import ChaCha20Legacy as ChaCha20Legacy
from chapoly.pure import ChaCha20Poly1305 as ChaCha20Poly1305
from chapoly.pure import Encryptor as Encryptor
from chapoly.pure import Poly1305 as Poly1305
from chapoly.pure import Tag as Tag
from chapoly.pure import UnverifiedDecryptor as UnverifiedDecryptor
from chapoly.pure import XChaCha20 as XChaCha20
from chapoly.pure import XChaCha20Poly1305 as XChaCha20Poly1305
from chapoly.pure import chacha20_block as chacha20_block
from chapoly.pure import chacha20_cipher as chacha20_cipher
from chapoly.pure import chacha20_hchacha20 as chacha20_hchacha20
from chapoly.pure import chacha20poly1305_decrypt as chacha20poly1305_decrypt
from chapoly.pure import chacha20poly1305_decrypt_many as chacha20poly1305_decrypt_many
from chapoly.pure import chacha20poly1305_encrypt as chacha20poly1305_encrypt
from chapoly.pure import chacha20poly1305_encrypt_many as chacha20poly1305_encrypt_many
from chapoly.pure import poly1305_mac as poly1305_mac
from chapoly.pure import poly1305_verify as poly1305_verify
from chapoly.pure import xchacha20_cipher as xchacha20_cipher
from chapoly.pure import xchacha20poly1305_decrypt as xchacha20poly1305_decrypt
from chapoly.pure import xchacha20poly1305_decrypt_many as xchacha20poly1305_decrypt_many
from chapoly.pure import xchacha20poly1305_encrypt as xchacha20poly1305_encrypt
from chapoly.pure import xchacha20poly1305_encrypt_many as xchacha20poly1305_encrypt_many

def kernels() -> tuple[tuple[str, str | None, str | None], ...]:
    """Name of each native kernel, what keeps it from running, and why one before it is preferred; or None."""

def use(name: str) -> None:
    """Makes a kernel that can run here the one in use."""

def cpu_features() -> dict[str, bool]:
    """The CPU features that the choice of a kernel looks at."""
