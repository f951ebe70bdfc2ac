"""Known answers that reach each code path of a kernel: asked at import, and by `chapoly selftest`.

They take under 100 us together. Sources: RFC 8439; draft-irtf-cfrg-xchacha-03; TC1 of
draft-strombergson-chacha-test-vectors, whose zero nonce and counter mean the same in RFC 8439's layout. The
answers over _LONG and over bytes of ff were computed with OpenSSL.
"""

from chapoly.errors import InvalidTag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_KEY = bytes(range(32))
_AEAD_KEY = bytes(range(0x80, 0xA0))
_AEAD_NONCE = bytes.fromhex("070000004041424344454647")
_AEAD_DATA = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
_XNONCE = bytes(range(0x40, 0x58))
_SUNSCREEN = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    b"sunscreen would be it."
)
_LONG = bytes(range(256)) * 17 + bytes(77)  # more than two passes of 32 blocks, and a tail
_LONG_NONCE = bytes(range(12))


def known_answers(chapoly: "ModuleType") -> dict[str, bool]:
    """Whether an implementation (native or pure) gives each known answer, by the answer's name."""
    seal, open_ = chapoly.chacha20poly1305_encrypt, chapoly.chacha20poly1305_decrypt
    long = seal(_KEY, _LONG_NONCE, _LONG, b"header")
    # Of 1, 1, 2, 2, ... blocks, 34 in all: they fill the lanes of any kernel, also of one, and leave two.
    batch = [_KEY] * 18, [_LONG[i : i + 12] for i in range(18)]
    short = [_LONG[i : i + 64 * (i > 1)] for i in range(18)]
    packets = chapoly.chacha20poly1305_encrypt_many(*batch, short, b"header")
    return {
        "block (RFC 8439 2.3.2)": chapoly.chacha20_block(
            _KEY, 1, bytes.fromhex("000000090000004a00000000")
        ).startswith(bytes.fromhex("10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e")),
        "8 rounds (TC1)": chapoly.chacha20_cipher(bytes(32), 0, bytes(12), bytes(16), rounds=8).hex()
        == "3e00ef2f895f40d67f5bb8e81f09a5a1",
        "12 rounds (TC1)": chapoly.chacha20_cipher(bytes(32), 0, bytes(12), bytes(16), rounds=12).hex()
        == "9bf49a6a0755f953811fce125f2683d5",
        "HChaCha20 (draft-irtf-cfrg-xchacha 2.2.1)": chapoly.chacha20_hchacha20(
            _KEY, bytes.fromhex("000000090000004a0000000031415927")
        ).hex()
        == "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc",
        "mac, short (RFC 8439 2.5.2)": chapoly.poly1305_mac(
            bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"),
            b"Cryptographic Forum Research Group",
        ).hex()
        == "a8061dc1305136c6c22b8baf0c0127a9",
        "mac, long, largest limbs": chapoly.poly1305_mac(bytes([255] * 32), bytes([255] * 1024)).hex()
        == "25d4926a53bb480da228ec61e0a31a38",
        "encrypt, short (RFC 8439 2.8.2)": seal(_AEAD_KEY, _AEAD_NONCE, _SUNSCREEN, _AEAD_DATA)[-16:].hex()
        == "1ae10b594f09e26a7e902ecbd0600691",
        "encrypt, 24-byte nonce (draft-irtf-cfrg-xchacha A.3.1)": chapoly.xchacha20poly1305_encrypt(
            _AEAD_KEY, _XNONCE, _SUNSCREEN, _AEAD_DATA
        )[-16:].hex()
        == "c0875924c1c7987947deafd8780acf49",
        "encrypt, long with a tail": long[-16:].hex() == "30c3f435d77453da49f75605faa7274e",
        "decrypt, long with a tail": open_(_KEY, _LONG_NONCE, long, b"header") == _LONG,
        "encrypt, a batch": chapoly.poly1305_mac(_KEY, b"".join(packets)).hex()
        == "d7ad41be0acd6997bbb99eb69263d985",
        "decrypt, a batch with a forged tag": chapoly.chacha20poly1305_decrypt_many(
            *batch, [*packets[:-1], packets[0]], b"header"
        )
        == [*short[:-1], None],
        "refuse a forged tag": _refuses(chapoly, long[:-1] + bytes([long[-1] ^ 128])),
    }


def _refuses(chapoly: "ModuleType", forged: bytes) -> bool:
    try:
        chapoly.chacha20poly1305_decrypt(_KEY, _LONG_NONCE, forged, b"header")
    except InvalidTag:
        return True
    return False


def failures(chapoly: "ModuleType") -> list[str]:
    """Names of the known answers that an implementation got wrong."""
    try:
        return [name for name, right in known_answers(chapoly).items() if not right]
    except InvalidTag:  # it refused what it had sealed itself
        return ["decrypt, long with a tail"]
