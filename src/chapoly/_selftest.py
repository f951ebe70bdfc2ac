"""Known answers that reach each code path of a kernel: asked at import, and by `chapoly selftest`.

All are asked in under 100 us. Sources: RFC 8439; draft-irtf-cfrg-xchacha-03; TC1 of
draft-strombergson-chacha-test-vectors, whose zero nonce and counter mean the same in RFC 8439's layout. The
other answers were computed with OpenSSL; those of 8 and 12 rounds, which it lacks, by a program of their own.
"""

from chapoly.errors import InvalidTag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_KEY = bytes(range(32))
_NONCE = bytes(range(12))
_DATA = bytes(range(251)) * 38  # of its blocks no two are the same

_AEAD_KEY = bytes(range(0x80, 0xA0))
_AEAD_NONCE = bytes.fromhex("070000004041424344454647")
_AEAD_DATA = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
_XNONCE = bytes(range(0x40, 0x58))
_SUNSCREEN = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    b"sunscreen would be it."
)

# ---- Kernels that compute several blocks at once have code of their own for many lengths. ----

# ChaCha of 33 blocks, one more than any kernel computes at once: the rounds, the tag of the ciphertext, and
# sizes of data that must give the beginning of it: 1 to 4, 6, 8 and 10 blocks, and 13, 17 and 21. The odd
# ones end within a block. Which code it takes does not depend on the rounds, and 8 are done sooner than 20.
_SIZE = 64 * 33 - 1
_COUNTER = 2**32 - 33  # so that the last block is the last there is
_CIPHER = [
    (20, "3672819c81dbc4b1372da6d9876ff43e", (63, 128, 191, 256, 384, 512, 640)),
    (12, "150f96e1d5368ecd913fa24472883244", ()),
    (8, "ceaf8106fd6ba61197283631e43254b5", (831, 1087, 1343)),
]

# Blocks of Poly1305. Kernels begin to use vectors somewhere from 16 to 80, and then have remainders.
_MAC = (16, 20, 39, 87)

# Bytes of data, of associated data before it, and the tag. Kernels may encrypt short data in one pass with
# the one-time key, of one width or another, one block or two in another way than more, or none if there is no
# data; and long data by strips of 8 KiB or a little more, after at most 32 blocks that the first pass had.
_AEAD = [
    (0, 40, "ff8c84ac6ca7f38448b37715e22c672e"),
    (45, 22, "4b98a88e6504e4dacda0efd043a1fa6e"),
    (200, 20, "c8b56c54ec3ff0ffb2dc95e329e4bf08"),
    (440, 20, "24edd691b451f90273eff42672c4d6c1"),
    (700, 20, "c7de5915bb18f387d6d8909459a0b70f"),
    (1100, 20, "4c268b321035be41786fc38e8a96aa41"),
    (1300, 300, "04bafec1a8cfac6178ed0f12b398ba54"),
    (9300, 5, "62a4d445fd4deafb862e89cbbc50f567"),
]

# Sizes that are refused with a forged tag, too; what refuses the others is the same code.
_REFUSED = (0, 45, len(_SUNSCREEN), 1100)

# Batches: the module, the keys, the sizes of packets (the last that of all further ones), and the tag of all
# they become. With the one for the one-time key the first have 1, 2, 16 and 16 blocks: they fill the lanes of
# any kernel and leave some, or sixteen at once are of one packet. Packets of equal sizes, short and longer
# ones, may take other ways.
_BATCHES = [
    ("chacha20poly1305", [_KEY] * 4, (0, 64, 900), "81058bc9bf04482c6ed3522c1b073dee"),
    ("chacha20poly1305", [_DATA[i : i + 32] for i in range(9)], (300,), "e27b08ddaf0e957560b2a0bd6064b829"),
    ("xchacha20poly1305", [_KEY] * 3, (20,), "e0aef50f7e1b34c432a7a17445bd1b71"),
]


def known_answers(chapoly: "ModuleType", several_blocks: bool = True) -> dict[str, bool]:
    """Whether an implementation (native or pure) gives each known answer, by the answer's name.

    Without `several_blocks` only what a kernel that computes one block at a time has to be asked.
    """
    cipher, mac = chapoly.chacha20_cipher, chapoly.poly1305_mac
    answers = {
        "block (RFC 8439 2.3.2)": chapoly.chacha20_block(
            _KEY, 1, bytes.fromhex("000000090000004a00000000")
        ).hex()
        == "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
        # 63 bytes: the xor of a part may be done by 32, 16, 8, 4, 2 and 1 at a time.
        "ChaCha8, 63 bytes (TC1)": cipher(bytes(32), 0, bytes(12), bytes(63), rounds=8).hex()
        == "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e"
        "984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe",
        "ChaCha12, 63 bytes (TC1)": cipher(bytes(32), 0, bytes(12), bytes(63), rounds=12).hex()
        == "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f"
        "0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326",
        "HChaCha20 (draft-irtf-cfrg-xchacha 2.2.1)": chapoly.chacha20_hchacha20(
            _KEY, bytes.fromhex("000000090000004a0000000031415927")
        ).hex()
        == "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc",
        "mac (RFC 8439 2.5.2)": mac(
            bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"),
            b"Cryptographic Forum Research Group",
        ).hex()
        == "a8061dc1305136c6c22b8baf0c0127a9",
        "mac, largest limbs": mac(b"\xff" * 32, b"\xff" * 2063).hex() == "5efd120cb5fbc44e6c103bdcb22edf35",
        "encrypt, 24-byte nonce (draft-irtf-cfrg-xchacha A.3.1)": chapoly.xchacha20poly1305_encrypt(
            _AEAD_KEY, _XNONCE, _SUNSCREEN, _AEAD_DATA
        )[-16:].hex()
        == "c0875924c1c7987947deafd8780acf49",
    }
    message = (_AEAD_KEY, _AEAD_NONCE, _SUNSCREEN, _AEAD_DATA)
    answers |= _aead(chapoly, " (RFC 8439 2.8.2)", message, "1ae10b594f09e26a7e902ecbd0600691")
    if not several_blocks:
        return answers | _batch(
            chapoly, "chacha20poly1305", [_KEY] * 2, (0, 0), "9eb783dce20a5a508b6616c9d9b3e1ae"
        )

    for rounds, tag, sizes in _CIPHER:
        whole = cipher(_KEY, _COUNTER, _NONCE, _DATA[:_SIZE], rounds=rounds)
        right = mac(_KEY, whole).hex() == tag
        for size in sizes:
            part = bytearray(size)  # new bytes might by chance hold the answer before
            cipher(_KEY, _COUNTER, _NONCE, _DATA[:size], rounds=rounds, out=part)
            right &= whole.startswith(part)
        answers[f"ChaCha{rounds}, up to 33 blocks"] = right
    tags = b"".join([mac(_KEY, _DATA[: 16 * blocks]) for blocks in _MAC])
    answers["mac, several lengths"] = mac(_KEY, tags).hex() == "321a88d288e1d10438f8aceefd47acb1"
    for size, associated_size, tag in _AEAD:
        associated_data, data = _DATA[:associated_size], _DATA[associated_size : associated_size + size]
        answers |= _aead(chapoly, f", {size} bytes", (_KEY, _NONCE, data, associated_data), tag)
    encryptor = chapoly.ChaCha20Poly1305(_KEY).encryptor(_NONCE, _DATA[:5])
    encryptor.update(_DATA[5:2605])  # a kernel takes a long part, too, by strips
    answers["encrypt, in parts"] = encryptor.finalize().hex() == "889a7d4e250b9bd4cb30805437c39285"
    for batch in _BATCHES:
        answers |= _batch(chapoly, *batch)
    return answers


def _aead(
    chapoly: "ModuleType", which: str, message: tuple[bytes, bytes, bytes, bytes], tag: str
) -> dict[str, bool]:
    """Whether a message, the arguments of encrypt, gets this tag, is decrypted, and refused with another."""
    key, nonce, data, associated_data = message
    sealed = chapoly.chacha20poly1305_encrypt(*message)
    decrypt_into = chapoly.ChaCha20Poly1305(key).decrypt_into
    output = bytearray(b"\xff") * len(data)
    answers = {
        f"encrypt{which}": sealed[-16:].hex() == tag,
        f"decrypt{which}": _is_right(decrypt_into, nonce, sealed, associated_data, output) and output == data,
    }
    if len(data) in _REFUSED:
        forged = bytearray(sealed)
        forged[-1] ^= 128
        answers[f"refuse a forged tag{which}"] = (
            not _is_right(decrypt_into, nonce, forged, associated_data, output)
            and output.count(0) == len(output)  # nothing that was decrypted is left
        )
    return answers


def _batch(
    chapoly: "ModuleType", module: str, keys: list[bytes], sizes: tuple[int, ...], tag: str
) -> dict[str, bool]:
    """Whether packets, one for each key, are sealed and opened, and the last is refused if forged."""
    encrypt, decrypt = getattr(chapoly, f"{module}_encrypt_many"), getattr(chapoly, f"{module}_decrypt_many")
    which, nonce_size = f"{len(keys)} packets", 24 if module.startswith("x") else 12
    nonces = [_DATA[i : i + nonce_size] for i in range(len(keys))]
    datas = [_DATA[i : i + sizes[min(i, len(sizes) - 1)]] for i in range(len(keys))]
    packets = encrypt(keys, nonces, datas, b"header")
    forged = [*packets[:-1], packets[0]]
    return {
        f"encrypt, {which}": chapoly.poly1305_mac(_KEY, b"".join(packets)).hex() == tag,
        f"decrypt, {which}, one forged": decrypt(keys, nonces, forged, b"header") == [*datas[:-1], None],
    }


def _is_right(decrypt_into: "Callable[..., int]", *arguments: bytes | bytearray) -> bool:
    """Whether the tag was taken for right."""
    try:
        decrypt_into(*arguments)
    except InvalidTag:
        return False
    return True


def failures(chapoly: "ModuleType", several_blocks: bool = True) -> list[str]:
    """Names of the known answers that an implementation got wrong."""
    return [name for name, right in known_answers(chapoly, several_blocks).items() if not right]
