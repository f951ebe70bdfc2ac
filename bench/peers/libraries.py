"""The libraries, and how each does each operation: what another library or operation is added to.

A way of doing an operation is source text, what a user of the library writes. It is timed as it stands,
without a wrapper around it, so that none pays for a call that only another needs; and the report shows it.
"""

from operator import attrgetter
from typing import NamedTuple

import chapoly


class Library(NamedTuple):
    """A package on PyPI."""

    imports: str  # of all names that the ways use
    user_imports: str  # what a user of the AEAD imports
    setup: str = ""


LIBRARIES = {
    "cryptography": Library(
        "from cryptography.hazmat.primitives.ciphers import Cipher, algorithms; "
        "from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305; "
        "from cryptography.hazmat.primitives.poly1305 import Poly1305",
        "from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305",
    ),
    "PyNaCl": Library(
        "from nacl.bindings import crypto_aead_chacha20poly1305_ietf_encrypt as encrypt, "
        "crypto_aead_chacha20poly1305_ietf_decrypt as decrypt, "
        "crypto_aead_xchacha20poly1305_ietf_encrypt as xencrypt, "
        "crypto_aead_xchacha20poly1305_ietf_decrypt as xdecrypt",
        "import nacl.bindings",
    ),
    "pycryptodomex": Library(
        "from Cryptodome.Cipher import ChaCha20, ChaCha20_Poly1305",
        "from Cryptodome.Cipher import ChaCha20_Poly1305",
    ),
    "pymonocypher": Library("from monocypher import chacha20, lock, unlock", "import monocypher"),
    "rencrypt": Library(
        "from rencrypt import Cipher, CipherMeta, RingAlgorithm, SodiumoxideAlgorithm",
        "import rencrypt",
        "RING = CipherMeta.Ring(RingAlgorithm.ChaCha20Poly1305); "
        "SODIUM = CipherMeta.Sodiumoxide(SodiumoxideAlgorithm.XChaCha20Poly1305Ietf)",
    ),
    "tlslite-ng": Library(
        "from tlslite.utils.chacha import ChaCha; "
        "from tlslite.utils.chacha20_poly1305 import CHACHA20_POLY1305; "
        "from tlslite.utils.poly1305 import Poly1305",
        "from tlslite.utils.chacha20_poly1305 import CHACHA20_POLY1305",
    ),
}


class Way(NamedTuple):
    """How a library does an operation."""

    call: str  # an expression, whose value is called `result`
    before: str = ""  # statements that precede the call each time
    once: str = ""  # statements that precede all calls and are not timed
    answer: str = "result"  # what all libraries must agree on, as bytes
    each: str = ""  # what a call takes, if not what the operation says


SAME = Way("")  # the source that ours has: the names are the same


class Operation(NamedTuple):
    """What is compared. `each` names the columns of Inputs (inputs.py) whose next row every call is given."""

    name: str
    each: str
    ours: Way
    theirs: dict[str, Way]
    needs: str = ""  # an attribute of chapoly that may not be there
    most: int = 1 << 62  # the largest size to measure
    sizes: tuple[int, ...] = ()  # instead of the usual ones
    cores: int = 1


AEAD = "aead = ChaCha20Poly1305(KEY)"
XAEAD = "aead = XChaCha20Poly1305(KEY)"
CRYPTODOME = "aead = ChaCha20_Poly1305.new(key=KEY, nonce=nonce); aead.update(AD)"
CRYPTODOME_OWN_KEY = "aead = ChaCha20_Poly1305.new(key=key, nonce=nonce); aead.update(AD)"
TLSLITE = "aead = CHACHA20_POLY1305(KEY, 'python')"
LOOP = Way(
    "[encrypt(n, d, AD) for n, d in zip(nonces, datas)]",
    once="encrypt = ChaCha20Poly1305(KEY).encrypt",
    answer="b''.join(result)",
    each="nonces, datas",
)
MIXED_LOOP = LOOP._replace(call=LOOP.call.replace("datas", "mixed_datas"), each="nonces, mixed_datas")
MIXED = 770  # bytes, the mean of 40 to 1500

OPERATIONS = [
    # ---- ChaCha20-Poly1305. ----
    Operation(
        "encrypt",
        "nonce, data",
        Way("aead.encrypt(nonce, data, AD)", once=AEAD),
        {
            "cryptography": SAME,
            "PyNaCl": Way("encrypt(data, AD, nonce, KEY)"),
            "pycryptodomex": Way("aead.encrypt_and_digest(data)", CRYPTODOME, answer="b''.join(result)"),
            "tlslite-ng": Way("aead.seal(nonce, data, AD)", once=TLSLITE),
        },
    ),
    Operation(
        "decrypt",
        "nonce, sealed",
        Way("aead.decrypt(nonce, sealed, AD)", once=AEAD),
        {
            "cryptography": SAME,
            "PyNaCl": Way("decrypt(sealed, AD, nonce, KEY)"),
            "pycryptodomex": Way(
                "aead.decrypt_and_verify(ciphertext, tag)", CRYPTODOME, each="nonce, ciphertext, tag"
            ),
            "tlslite-ng": Way("aead.open(nonce, sealed, AD)", once=TLSLITE),
        },
    ),
    Operation(
        "encrypt, new key: object",
        "key, nonce, data",
        Way("ChaCha20Poly1305(key).encrypt(nonce, data, AD)"),
        {
            "cryptography": SAME,
            "PyNaCl": Way("encrypt(data, AD, nonce, key)"),
            "pycryptodomex": Way(
                "aead.encrypt_and_digest(data)", CRYPTODOME_OWN_KEY, answer="b''.join(result)"
            ),
        },
    ),
    Operation(
        "decrypt, new key: object",
        "key, nonce, own_sealed",
        Way("ChaCha20Poly1305(key).decrypt(nonce, own_sealed, AD)"),
        {
            "cryptography": SAME,
            "PyNaCl": Way("decrypt(own_sealed, AD, nonce, key)"),
        },
    ),
    Operation(
        "encrypt, new key: function",
        "key, nonce, data",
        Way("chacha20poly1305.encrypt(key, nonce, data, AD)"),
        {
            "cryptography": Way("ChaCha20Poly1305(key).encrypt(nonce, data, AD)"),
            "PyNaCl": Way("encrypt(data, AD, nonce, key)"),
        },
    ),
    Operation(
        "decrypt, new key: function",
        "key, nonce, own_sealed",
        Way("chacha20poly1305.decrypt(key, nonce, own_sealed, AD)"),
        {
            "cryptography": Way("ChaCha20Poly1305(key).decrypt(nonce, own_sealed, AD)"),
            "PyNaCl": Way("decrypt(own_sealed, AD, nonce, key)"),
        },
    ),
    Operation(
        "encrypt from memory at offsets 0, 1, 32",
        "nonce, view",
        Way("aead.encrypt(nonce, view, AD)", once=AEAD),
        {
            "cryptography": SAME,
            "pycryptodomex": Way("aead.encrypt_and_digest(view)", CRYPTODOME, answer="b''.join(result)"),
        },
    ),
    Operation(
        "encrypt into a buffer, at offsets 0, 1, 32",
        "nonce, view, sealed_out",
        Way("aead.encrypt_into(nonce, view, AD, sealed_out)", once=AEAD, answer="sealed_out"),
        {
            "cryptography": SAME,
            "pycryptodomex": Way(
                "aead.digest()",
                f"{CRYPTODOME}; aead.encrypt(view, out)",
                answer="bytes(out) + result",
                each="nonce, view, out",
            ),
        },
        needs="ChaCha20Poly1305.encrypt_into",
    ),
    Operation(
        "decrypt into a buffer, at offsets 0, 1, 32",
        "nonce, sealed_view, out",
        Way("aead.decrypt_into(nonce, sealed_view, AD, out)", once=AEAD, answer="out"),
        {
            "cryptography": SAME,
            "pycryptodomex": Way(
                "aead.verify(tag)",
                f"{CRYPTODOME}; aead.decrypt(ciphertext, out)",
                answer="out",
                each="nonce, ciphertext, tag, out",
            ),
        },
        needs="ChaCha20Poly1305.decrypt_into",
    ),
    Operation(
        "encrypt bytes into a bytearray",
        "nonce, data, sealed_array",
        Way("aead.encrypt_into(nonce, data, AD, sealed_array)", once=AEAD, answer="sealed_array"),
        {
            "cryptography": SAME,
            "rencrypt": Way(  # it writes the nonce behind the tag
                "aead.seal_in_place_from(data, long_array, None, AD, nonce)",
                once="aead = Cipher(RING, bytearray(KEY))",
                answer="long_array[:-12]",
                each="nonce, data, long_array",
            ),
        },
        needs="ChaCha20Poly1305.encrypt_into",
    ),
    Operation(
        "decrypt bytes into a bytearray",
        "nonce, sealed, array",
        Way("aead.decrypt_into(nonce, sealed, AD, array)", once=AEAD, answer="array"),
        {
            "cryptography": SAME,
            "rencrypt": Way(
                "aead.open_in_place_from(long_sealed, long_array, None, AD)",
                once="aead = Cipher(RING, bytearray(KEY))",
                answer="long_array[:-28]",
                each="long_sealed, long_array",
            ),
        },
        needs="ChaCha20Poly1305.decrypt_into",
    ),
    Operation(
        "encrypt, detached tag",
        "nonce, data",
        Way("aead.encrypt_detached(nonce, data, AD)", once=AEAD, answer="b''.join(result)"),
        {
            "cryptography": Way("aead.encrypt(nonce, data, AD)", once=AEAD),
            "pycryptodomex": Way("aead.encrypt_and_digest(data)", CRYPTODOME, answer="b''.join(result)"),
        },
        needs="ChaCha20Poly1305.encrypt_detached",
    ),
    Operation(
        "encrypt incrementally",
        "nonce, data",
        Way(
            "stream.finalize()",
            "stream = aead.encryptor(nonce, AD); text = stream.update(data)",
            once=AEAD,
            answer="text + result",
        ),
        {
            "pycryptodomex": Way(
                "aead.digest()", f"{CRYPTODOME}; text = aead.encrypt(data)", answer="text + result"
            )
        },
        needs="ChaCha20Poly1305.encryptor",
    ),
    # ---- Batches of 64 packets; the size is that of each. ----
    Operation(
        "encrypt 64 packets: list to list",
        "nonces, datas",
        Way("aead.encrypt_many(nonces, datas, AD)", once=AEAD, answer="b''.join(result)"),
        {"cryptography": LOOP},
        needs="ChaCha20Poly1305.encrypt_many",
        most=4096,
    ),
    Operation(
        "encrypt 64 packets: packed",
        "packed_nonces, packed, offsets, packed_out",
        Way(
            "aead.encrypt_packed(packed_nonces, packed, offsets, packed_out, AD)",
            once=AEAD,
            answer="packed_out",
        ),
        {"cryptography": LOOP},
        needs="ChaCha20Poly1305.encrypt_packed",
        most=4096,
    ),
    Operation(
        "encrypt 64 packets of 40 to 1500 bytes",
        "nonces, mixed_datas",
        Way("aead.encrypt_many(nonces, mixed_datas, AD)", once=AEAD, answer="b''.join(result)"),
        {"cryptography": MIXED_LOOP},
        needs="ChaCha20Poly1305.encrypt_many",
        sizes=(MIXED,),
    ),
    # ---- XChaCha20-Poly1305. ----
    Operation(
        "XChaCha encrypt",
        "xnonce, data",
        Way("aead.encrypt(xnonce, data, AD)", once=XAEAD),
        {
            "PyNaCl": Way("xencrypt(data, AD, xnonce, KEY)"),
            "pymonocypher": Way("lock(KEY, xnonce, data, AD)", answer="result[1] + result[0]"),
            "pycryptodomex": Way(
                "aead.encrypt_and_digest(data)",
                CRYPTODOME.replace("=nonce", "=xnonce"),
                answer="b''.join(result)",
            ),
        },
    ),
    Operation(
        "XChaCha decrypt",
        "xnonce, xsealed",
        Way("aead.decrypt(xnonce, xsealed, AD)", once=XAEAD),
        {
            "PyNaCl": Way("xdecrypt(xsealed, AD, xnonce, KEY)"),
            "pymonocypher": Way(
                "unlock(KEY, xnonce, xtag, xciphertext, AD)", each="xnonce, xtag, xciphertext"
            ),
            "pycryptodomex": Way(
                "aead.decrypt_and_verify(xciphertext, xtag)",
                CRYPTODOME.replace("=nonce", "=xnonce"),
                each="xnonce, xciphertext, xtag",
            ),
        },
    ),
    Operation(
        "XChaCha encrypt, new key: function",
        "key, xnonce, data",
        Way("xchacha20poly1305.encrypt(key, xnonce, data, AD)"),
        {
            "PyNaCl": Way("xencrypt(data, AD, xnonce, key)"),
            "pymonocypher": Way("lock(key, xnonce, data, AD)", answer="result[1] + result[0]"),
        },
    ),
    Operation(
        "XChaCha encrypt bytes into a bytearray",
        "xnonce, data, sealed_array",
        Way("aead.encrypt_into(xnonce, data, AD, sealed_array)", once=XAEAD, answer="sealed_array"),
        {
            "rencrypt": Way(
                "aead.seal_in_place_from(data, xlong_array, None, AD, xnonce)",
                once="aead = Cipher(SODIUM, bytearray(KEY))",
                answer="xlong_array[:-24]",
                each="xnonce, data, xlong_array",
            ),
        },
        needs="XChaCha20Poly1305.encrypt_into",
    ),
    # ---- ChaCha20 and Poly1305 alone. ----
    Operation(
        "ChaCha20, new context",
        "nonce, data",
        Way("chacha20.cipher(KEY, 0, nonce, data)"),
        {
            "cryptography": Way(
                "Cipher(algorithms.ChaCha20(KEY, counter_nonce), None).encryptor().update(data)",
                each="counter_nonce, data",
            ),
            "pycryptodomex": Way("ChaCha20.new(key=KEY, nonce=nonce).encrypt(data)"),
            "tlslite-ng": Way("ChaCha(KEY, nonce).encrypt(data)"),
        },
    ),
    Operation(
        "ChaCha20, new context, into a buffer",
        "nonce, view, out",
        Way("chacha20.cipher(KEY, 0, nonce, view, out=out)", answer="out"),
        {
            "cryptography": Way(
                "Cipher(algorithms.ChaCha20(KEY, counter_nonce), None).encryptor().update_into(view, out)",
                answer="out",
                each="counter_nonce, view, out",
            ),
            "pycryptodomex": Way("ChaCha20.new(key=KEY, nonce=nonce).encrypt(view, out)", answer="out"),
        },
    ),
    Operation(
        "ChaCha20 stream",
        "data",
        Way("stream.update(data)", once="stream = ChaCha20(KEY, bytes(12))"),
        {
            "cryptography": Way(
                "stream.update(data)",
                once="stream = Cipher(algorithms.ChaCha20(KEY, bytes(16)), None).encryptor()",
            ),
            "pycryptodomex": Way(
                "stream.encrypt(data)", once="stream = ChaCha20.new(key=KEY, nonce=bytes(12))"
            ),
        },
    ),
    Operation(
        "ChaCha20 stream into a buffer",
        "view, out",
        Way("stream.update_into(view, out)", once="stream = ChaCha20(KEY, bytes(12))", answer="out"),
        {
            "cryptography": Way(
                "stream.update_into(view, out)",
                once="stream = Cipher(algorithms.ChaCha20(KEY, bytes(16)), None).encryptor()",
                answer="out",
            ),
            "pycryptodomex": Way(
                "stream.encrypt(view, out)",
                once="stream = ChaCha20.new(key=KEY, nonce=bytes(12))",
                answer="out",
            ),
        },
    ),
    Operation(
        "XChaCha20, new context",
        "xnonce, data",
        Way("xchacha20.cipher(KEY, 0, xnonce, data)"),
        {
            "pymonocypher": Way("chacha20(KEY, xnonce, data)"),
            "pycryptodomex": Way("ChaCha20.new(key=KEY, nonce=xnonce).encrypt(data)"),
        },
    ),
    Operation(
        "Poly1305",
        "key, data",
        Way("poly1305.mac(key, data)"),
        {
            "cryptography": Way("Poly1305.generate_tag(key, data)"),
            "tlslite-ng": Way("Poly1305(key).create_tag(data)"),
        },
    ),
    Operation(
        "Poly1305 verify",
        "key, data, mac",
        Way("poly1305.verify(key, data, mac)", answer="b'verified'"),
        {"cryptography": Way("Poly1305.verify_tag(key, data, mac)", answer="b'verified'")},
    ),
    Operation(
        "Poly1305 incremental",
        "key, data",
        Way("mac.finalize()", "mac = Poly1305(key); mac.update(data)"),
        {"cryptography": SAME},
        needs="Poly1305",
    ),
]


def present(needs: str) -> bool:
    """Whether this chapoly has it."""
    try:
        return not needs or attrgetter(needs)(chapoly) is not None
    except AttributeError:
        return False
