"""Every vector on every kernel: what ran is counted, and what cannot run gives its named error."""

from random import Random
from types import ModuleType
from typing import Any

import pytest
from entries import refuses
from forms import DECRYPT, DECRYPT_MANY, ENCRYPT, ENCRYPT_MANY, decrypt_in_parts, encrypt_in_parts
from pages import DOCS, session
from vectors import FILES, load

LIBSODIUM = DOCS / "recipes" / "libsodium.md"


def chacha20(api: ModuleType, v: Any) -> bool:
    out = bytearray(len(v.msg))
    return (
        api.chacha20.cipher(v.key, v.counter, v.nonce, v.msg) == v.ciphertext
        and api.chacha20.cipher(v.key, v.counter, v.nonce, v.msg, out=out) == len(out)
        and out == v.ciphertext
        and api.ChaCha20(v.key, v.nonce, counter=v.counter).update(v.msg) == v.ciphertext
    )


def chacha20_legacy(api: ModuleType, v: Any) -> bool:
    rounds = int(v.algorithm.removeprefix("chacha").removesuffix("-djb"))
    sought = api.ChaCha20Legacy(v.key, v.nonce, rounds=rounds)
    sought.seek(64 * v.counter)
    started = api.ChaCha20Legacy(v.key, v.nonce, counter=v.counter, rounds=rounds)
    return started.update(v.msg) == sought.update(v.msg) == v.ciphertext


def hchacha20(api: ModuleType, v: Any) -> bool:
    return api.chacha20.hchacha20(v.key, v.nonce) == v.ciphertext


def xchacha20(api: ModuleType, v: Any) -> bool:
    stream = api.XChaCha20(v.key, v.nonce, counter=v.counter)
    return api.xchacha20.cipher(v.key, v.counter, v.nonce, v.msg) == stream.update(v.msg) == v.ciphertext


def poly1305(api: ModuleType, v: Any) -> bool:
    api.poly1305.verify(v.key, v.msg, v.tag)
    for size in (1, 15, 16, 17, 64, len(v.msg) + 1):
        mac = api.Poly1305(v.key)
        for at in range(0, len(v.msg), size):
            mac.update(v.msg[at : at + size])
        if mac.digest() != v.tag:
            return False
    return api.poly1305.mac(v.key, v.msg) == v.tag


def poly1305_keygen(api: ModuleType, v: Any) -> bool:
    return api.chacha20.block(v.key, v.counter, v.nonce)[:32] == v.ciphertext


def poly1305_chacha20(api: ModuleType, v: Any) -> bool:
    return api.poly1305.mac(api.chacha20.block(v.key, 0, v.nonce)[:32], v.msg) == v.tag


def parts(api: ModuleType, v: Any) -> list[list[int]]:
    """Ways to split a message. On pure, where each part costs a block, one of them for each vector."""
    size = len(v.msg or v.ciphertext)
    random = Random(size)
    splits = [[n] * (size // n) for n in (1, 15, 16, 17, 63, 64, 65)]
    splits.append([random.randrange(80) for _ in range(5)])
    return splits if api.kernel != "pure" else [splits[size % len(splits)][:20]]


def aead(api: ModuleType, v: Any) -> bool:
    functions = getattr(api, v.algorithm.replace("-", ""))
    key = {"chacha20-poly1305": api.ChaCha20Poly1305, "xchacha20-poly1305": api.XChaCha20Poly1305}[
        v.algorithm
    ](v.key)
    sealed = v.ciphertext + v.tag
    encrypts, decrypts = [*ENCRYPT.values()], [*DECRYPT.values()]
    if "InvalidNonceSize" not in v.flags:  # that many messages refuse with a text of their own
        encrypts += ENCRYPT_MANY.values()
        decrypts += DECRYPT_MANY.values()
    if v.result == "valid":
        return (
            functions.encrypt(v.key, v.nonce, v.msg, v.aad) == sealed
            and functions.decrypt(v.key, v.nonce, sealed, v.aad) == v.msg
            and all(encrypt(key, v.nonce, v.msg, v.aad) == sealed for encrypt in encrypts)
            and all(decrypt(key, v.nonce, sealed, v.aad) == v.msg for decrypt in decrypts)
            and all(encrypt_in_parts(key, v.nonce, v.msg, v.aad, s) == sealed for s in parts(api, v))
            and all(decrypt_in_parts(key, v.nonce, sealed, v.aad, s) == v.msg for s in parts(api, v))
        )
    if "InvalidNonceSize" in v.flags:
        error, text = api.InvalidNonce, f"nonce must be {key.NONCE_SIZE} bytes, got {len(v.nonce)}"
        with refuses(error, text):
            functions.encrypt(v.key, v.nonce, v.msg, v.aad)
        for encrypt in encrypts:
            with refuses(error, text):
                encrypt(key, v.nonce, v.msg, v.aad)
        with refuses(error, text):
            key.encryptor(v.nonce, v.aad)
    else:
        error, text = api.InvalidTag, "tag does not match"
    with refuses(error, text):
        functions.decrypt(v.key, v.nonce, sealed, v.aad)
    for decrypt in decrypts:
        with refuses(error, text):
            decrypt(key, v.nonce, sealed, v.aad)
    for sizes in parts(api, v):
        with refuses(error, text):
            decrypt_in_parts(key, v.nonce, sealed, v.aad, sizes)
    return True


def secretbox(api: ModuleType, v: Any) -> bool:
    page = session(LIBSODIUM, api)
    seal, unseal, box = page["secretbox"], page["secretbox_open"], v.tag + v.ciphertext
    with refuses(api.InvalidTag, "tag does not match"):
        unseal(v.key, v.nonce, bytes([box[0] ^ 1]) + box[1:])
    return seal(v.key, v.nonce, v.msg) == box and unseal(v.key, v.nonce, box) == v.msg


def secretstream(api: ModuleType, v: Any) -> bool:
    """The chunks of a stream have their own fields, in hex."""
    kind = session(LIBSODIUM, api)["SecretStream"]
    sender, receiver = kind(v.key, v.nonce), kind(v.key, v.nonce)
    right = []
    for chunk in v.chunks:
        message, aad, sealed = (bytes.fromhex(chunk[field]) for field in ("msg", "aad", "ciphertext"))
        right.append(sender.push(message, aad, chunk["tag"]) == sealed)
        right.append(receiver.pull(sealed, aad) == (message, chunk["tag"]))
    return right != [] and all(right)


RUN = {
    ("chacha20.json", "chacha20"): (45, chacha20),
    ("chacha20.json", "chacha20-djb"): (51, chacha20_legacy),
    ("chacha20.json", "chacha12-djb"): (8, chacha20_legacy),
    ("chacha20.json", "chacha8-djb"): (8, chacha20_legacy),
    ("hchacha20.json", "hchacha20"): (11, hchacha20),
    ("xchacha20.json", "xchacha20"): (14, xchacha20),
    ("poly1305.json", "poly1305"): (42, poly1305),
    ("poly1305.json", "poly1305-keygen"): (4, poly1305_keygen),
    ("poly1305.json", "poly1305-chacha20"): (3, poly1305_chacha20),
    ("chacha20-poly1305.json", "chacha20-poly1305"): (515, aead),
    ("xchacha20-poly1305.json", "xchacha20-poly1305"): (661, aead),
    ("protocol.json", "secretbox-xchacha20poly1305"): (10, secretbox),  # recipes of the documentation
    ("protocol.json", "secretstream-xchacha20poly1305"): (3, secretstream),
}


def refused_key(api: ModuleType, v: Any) -> bool:
    rounds = int(v.algorithm.removeprefix("chacha").removesuffix("-djb"))
    with refuses(api.InvalidKey, "key must be 32 bytes, got 16"):
        api.ChaCha20Legacy(v.key, v.nonce, counter=v.counter, rounds=rounds)
    return True


def refused_counter(api: ModuleType, v: Any) -> bool:
    with refuses(api.CounterOverflow, f"data must be at most 64 bytes, got {len(v.msg)}"):
        api.xchacha20.cipher(v.key, v.counter, v.nonce, v.msg)
    stream = api.XChaCha20(v.key, v.nonce, counter=v.counter)
    with refuses(api.CounterOverflow, f"data must be at most 64 bytes, got {len(v.msg)}"):
        stream.update(v.msg)
    return stream.update(v.msg[:64]) == v.ciphertext[:64]  # the last block that both counters share


def refused_nonce(api: ModuleType, v: Any) -> bool:
    for call in (api.chacha20poly1305.encrypt, api.chacha20poly1305.decrypt):
        with refuses(api.InvalidNonce, "nonce must be 12 bytes, got 8"):
            call(v.key, v.nonce, v.ciphertext + v.tag, v.aad)
    return True


# What chapoly does not offer, with the error that it must give: keys of 16 bytes, XChaCha20 with a 64-bit
# counter where that crosses 2^32, and the AEAD with an 8-byte nonce from before RFC 7539.
REFUSED = {
    ("chacha20.json", "chacha20-djb"): (8, refused_key),
    ("chacha20.json", "chacha12-djb"): (8, refused_key),
    ("chacha20.json", "chacha8-djb"): (8, refused_key),
    ("xchacha20.json", "xchacha20-djb"): (1, refused_counter),
    ("chacha20-poly1305.json", "chacha20-poly1305-djb"): (2, refused_nonce),
}

# test_upstream.py runs these two: the quarter round is a function of the readable implementation only.
QUARTER_ROUNDS = {("chacha20.json", "quarter-round"): 1, ("chacha20.json", "quarter-round-state"): 1}


def is_refused(v: Any) -> bool:
    return len(v.key) == 16 or v.algorithm in ("xchacha20-djb", "chacha20-poly1305-djb")


@pytest.mark.parametrize(("file", "algorithm"), RUN)
def test_every_vector(api: ModuleType, file: str, algorithm: str) -> None:
    count, right = RUN[file, algorithm]
    vectors = [v for v in load(file) if v.algorithm == algorithm and not is_refused(v)]
    wrong = [f"{v.source} {v.id}" for v in vectors if not right(api, v)]
    assert (len(vectors), wrong) == (count, [])


@pytest.mark.parametrize(("file", "algorithm"), REFUSED)
def test_vectors_that_do_not_apply_give_their_error(api: ModuleType, file: str, algorithm: str) -> None:
    count, right = REFUSED[file, algorithm]
    vectors = [v for v in load(file) if v.algorithm == algorithm and is_refused(v)]
    wrong = [f"{v.source} {v.id}" for v in vectors if not right(api, v)]
    assert (len(vectors), wrong) == (count, [])


def test_no_vector_is_left_out() -> None:
    counted: dict[tuple[str, str], int] = dict(QUARTER_ROUNDS)
    for table in (RUN, REFUSED):
        for which, (count, _) in table.items():
            counted[which] = counted.get(which, 0) + count
    there: dict[tuple[str, str], int] = {}
    for file in FILES:
        for v in load(file):
            there[file, v.algorithm] = there.get((file, v.algorithm), 0) + 1
    assert counted == there
    assert sum(there.values()) == 1404
