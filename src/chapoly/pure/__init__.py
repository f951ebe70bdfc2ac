"""chapoly in plain Python: the fallback where there is no native module, and the specification in code.

Each function stands under the number of its section in RFC 8439 or draft-irtf-cfrg-xchacha; to be read beside
them. It gives the results and the errors of the native implementation, hundreds of times slower.

It is NOT constant-time: what CPython does with an int takes time that depends on its value, so that someone
who can measure it may learn of keys and plaintexts. Nor can Python wipe a secret from memory. Use it where
neither matters, or where there is nothing else.

Nor can it be wholly like C. Nothing keeps object.__new__ from making a key or a stream around its
constructor, whose methods then raise AttributeError, and bytes.__new__ a Tag of another length, which matches
nothing. Where the interpreter itself names a type, it says 'Tag' here and 'chapoly.Tag' of the native one:
"unhashable type: 'Tag'". And from Python 3.13 on the error about a misspelt keyword ends in a suggestion,
which the interpreter adds.
"""

from chapoly.pure.chacha20 import ChaCha20 as ChaCha20
from chapoly.pure.chacha20 import ChaCha20Legacy as ChaCha20Legacy
from chapoly.pure.chacha20 import block as chacha20_block
from chapoly.pure.chacha20 import cipher as chacha20_cipher
from chapoly.pure.chacha20 import hchacha20 as chacha20_hchacha20
from chapoly.pure.chacha20poly1305 import ChaCha20Poly1305 as ChaCha20Poly1305
from chapoly.pure.chacha20poly1305 import decrypt as chacha20poly1305_decrypt
from chapoly.pure.chacha20poly1305 import decrypt_many as chacha20poly1305_decrypt_many
from chapoly.pure.chacha20poly1305 import encrypt as chacha20poly1305_encrypt
from chapoly.pure.chacha20poly1305 import encrypt_many as chacha20poly1305_encrypt_many
from chapoly.pure.incremental import Encryptor as Encryptor
from chapoly.pure.incremental import UnverifiedDecryptor as UnverifiedDecryptor
from chapoly.pure.poly1305 import Poly1305 as Poly1305
from chapoly.pure.poly1305 import Tag as Tag
from chapoly.pure.poly1305 import mac as poly1305_mac
from chapoly.pure.poly1305 import verify as poly1305_verify
from chapoly.pure.xchacha20 import XChaCha20 as XChaCha20
from chapoly.pure.xchacha20 import cipher as xchacha20_cipher
from chapoly.pure.xchacha20poly1305 import XChaCha20Poly1305 as XChaCha20Poly1305
from chapoly.pure.xchacha20poly1305 import decrypt as xchacha20poly1305_decrypt
from chapoly.pure.xchacha20poly1305 import decrypt_many as xchacha20poly1305_decrypt_many
from chapoly.pure.xchacha20poly1305 import encrypt as xchacha20poly1305_encrypt
from chapoly.pure.xchacha20poly1305 import encrypt_many as xchacha20poly1305_encrypt_many

__all__ = [
    "ChaCha20",
    "ChaCha20Legacy",
    "ChaCha20Poly1305",
    "Encryptor",
    "Poly1305",
    "Tag",
    "UnverifiedDecryptor",
    "XChaCha20",
    "XChaCha20Poly1305",
    "chacha20_block",
    "chacha20_cipher",
    "chacha20_hchacha20",
    "chacha20poly1305_decrypt",
    "chacha20poly1305_decrypt_many",
    "chacha20poly1305_encrypt",
    "chacha20poly1305_encrypt_many",
    "poly1305_mac",
    "poly1305_verify",
    "xchacha20_cipher",
    "xchacha20poly1305_decrypt",
    "xchacha20poly1305_decrypt_many",
    "xchacha20poly1305_encrypt",
    "xchacha20poly1305_encrypt_many",
]

# Functions are known by the module that users import them from.
for _function in (
    chacha20_block,
    chacha20_cipher,
    chacha20_hchacha20,
    chacha20poly1305_decrypt,
    chacha20poly1305_decrypt_many,
    chacha20poly1305_encrypt,
    chacha20poly1305_encrypt_many,
    poly1305_mac,
    poly1305_verify,
    xchacha20_cipher,
    xchacha20poly1305_decrypt,
    xchacha20poly1305_decrypt_many,
    xchacha20poly1305_encrypt,
    xchacha20poly1305_encrypt_many,
):
    _function.__module__ = _function.__module__.replace(".pure", "")
