"""Native equals pure on random input, decryption undoes encryption, and no flipped bit goes unseen."""

import array
from copy import copy
from types import ModuleType
from typing import Any

import pytest
from conftest import NATIVE_KERNELS, NO_NATIVE
from entries import ENTRIES, KEYS, N12, NONCE_SIZES, RFC, STREAMS, K, entry, refuses
from forms import DECRYPT, DECRYPT_MANY, ENCRYPT, ENCRYPT_MANY, decrypt_in_parts, encrypt_in_parts
from hypothesis import assume, example, given
from hypothesis import strategies as st

import chapoly.pure
import chapoly.testing

pure = chapoly.pure

keys = st.binary(min_size=32, max_size=32)
rounds = st.sampled_from([8, 12, 20])
# Mostly short, with enough beyond every kernel's widest group of blocks.
messages = st.one_of(
    st.binary(max_size=300), st.builds(lambda n, b: bytes(b * n)[:n], st.integers(0, 5000), keys)
)
texts = st.one_of(st.none(), st.binary(max_size=100))
counters = st.one_of(st.integers(0, 2**32 - 1), st.integers(1, 80).map(lambda blocks: 2**32 - blocks))


def nonces(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


@given(key=keys, nonce=nonces(12), counter=st.integers(0, 2**32 - 1))
def test_block(native_api: ModuleType, key: bytes, nonce: bytes, counter: int) -> None:
    assert native_api.chacha20.block(key, counter, nonce) == pure.chacha20_block(key, counter, nonce)


@given(key=keys, nonce16=nonces(16))
def test_hchacha20(native_api: ModuleType, key: bytes, nonce16: bytes) -> None:
    assert native_api.chacha20.hchacha20(key, nonce16) == pure.chacha20_hchacha20(key, nonce16)


@pytest.mark.parametrize("name", ["chacha20", "xchacha20"])
@given(data=st.data(), key=keys, counter=counters, message=messages, rounds=rounds)
def test_cipher(
    native_api: ModuleType,
    name: str,
    data: st.DataObject,
    key: bytes,
    counter: int,
    message: bytes,
    rounds: int,
) -> None:
    nonce = data.draw(nonces(12 if name == "chacha20" else 24))
    message = message[: 64 * (2**32 - counter)]
    expected = getattr(pure, f"{name}_cipher")(key, counter, nonce, message, rounds=rounds)
    cipher = getattr(native_api, name).cipher
    assert cipher(key, counter, nonce, message, rounds=rounds) == expected
    out = bytearray(message)
    assert cipher(key, counter, nonce, out, rounds=rounds, out=out) == len(message)
    assert out == expected


@pytest.mark.parametrize("name", STREAMS)
@given(data=st.data(), key=keys, rounds=rounds, start=st.integers(0, 2**38 - 20000))
def test_streams(
    native_api: ModuleType, name: str, data: st.DataObject, key: bytes, rounds: int, start: int
) -> None:
    nonce = data.draw(nonces(NONCE_SIZES[name]))
    if name == "ChaCha20Legacy":
        start <<= data.draw(st.sampled_from([0, 8, 32]))
    native = getattr(native_api, name)(key, nonce, rounds=rounds)
    other = getattr(pure, name)(key, nonce, rounds=rounds)
    native.seek(start)
    other.seek(start)
    for part in data.draw(st.lists(messages, max_size=4)):
        assert native.update(part) == other.update(part)
        assert native.tell() == other.tell()


@given(key=keys, message=messages)
@example(key=b"\xff" * 32, message=b"\xff" * 2000)
def test_mac(native_api: ModuleType, key: bytes, message: bytes) -> None:
    tag = native_api.poly1305.mac(key, message)
    assert tag == pure.poly1305_mac(key, message)
    native_api.poly1305.verify(key, message, tag)


# Blocks near 0, 2^128 and 2^130 - 5 meet the carries that random ones never do.
edges = st.sampled_from(
    [0, 1, 2, 4, 5, 6, 2**26, 2**44, 2**52, 2**64 - 1, 2**64, 2**128 - 7, 2**128 - 6, 2**128 - 5, 2**128 - 1]
)


@given(r=edges, s=edges, blocks=st.lists(edges, max_size=40), rest=st.binary(max_size=15))
def test_mac_at_the_edges(native_api: ModuleType, r: int, s: int, blocks: list[int], rest: bytes) -> None:
    key = r.to_bytes(16, "little") + s.to_bytes(16, "little")
    message = b"".join(n.to_bytes(16, "little") for n in blocks) + rest
    assert native_api.poly1305.mac(key, message) == pure.poly1305_mac(key, message)


@pytest.mark.parametrize("name", ["ChaCha20Poly1305", "XChaCha20Poly1305"])
@given(data=st.data(), key=keys, message=messages, text=texts)
def test_aead(
    native_api: ModuleType, name: str, data: st.DataObject, key: bytes, message: bytes, text: bytes | None
) -> None:
    nonce = data.draw(nonces(NONCE_SIZES[name]))
    cipher = getattr(native_api, name)(key)
    sealed = cipher.encrypt(nonce, message, text)
    assert sealed == getattr(pure, name)(key).encrypt(nonce, message, text)
    assert cipher.decrypt(nonce, sealed, text) == message
    assert getattr(native_api, name.lower()).encrypt(key, nonce, message, text) == sealed
    assert getattr(native_api, name.lower()).decrypt(key, nonce, sealed, text) == message


splits = st.lists(st.one_of(st.integers(0, 200), st.integers(0, 3000)), max_size=6)


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data(), key=keys, message=messages, text=texts, sizes=splits)
def test_every_form_and_any_split(
    api: ModuleType,
    name: str,
    data: st.DataObject,
    key: bytes,
    message: bytes,
    text: bytes | None,
    sizes: list[int],
) -> None:
    nonce = data.draw(nonces(NONCE_SIZES[name]))
    aead = getattr(api, name)(key)
    sealed = aead.encrypt(nonce, message, text)
    for form, encrypt in (ENCRYPT | ENCRYPT_MANY).items():
        assert encrypt(aead, nonce, message, text) == sealed, form
    for form, decrypt in (DECRYPT | DECRYPT_MANY).items():
        assert decrypt(aead, nonce, sealed, text) == message, form
    assert encrypt_in_parts(aead, nonce, message, text, sizes) == sealed
    assert decrypt_in_parts(aead, nonce, sealed, text, sizes) == message


@given(key=keys, message=messages, sizes=splits)
def test_mac_of_any_split(api: ModuleType, key: bytes, message: bytes, sizes: list[int]) -> None:
    mac, at = api.Poly1305(key), 0
    for size in sizes:
        mac.update(message[at : at + size])
        at += size
    mac.update(message[at:])
    assert mac.finalize() == api.poly1305.mac(key, message)


# Arguments good and bad, of every kind that a parameter may meet.
BUFFERS = [
    b"",
    bytes(8),
    N12,
    bytes(16),
    bytes(24),
    K,
    RFC.nonce,
    RFC.ciphertext + RFC.tag,
    bytes(65),
    bytearray(5),
    bytearray(16),
    bytearray(114),
    bytearray(130),
]
OTHERS = [memoryview(K), memoryview(bytes(64))[::2], array.array("H", range(16)), "text", None, 1.5, object]
NUMBERS = [0, 7, 8, 12, 20, True, -1, 10**5000] + [
    2**i + d for i in (32, 38, 62, 63, 64, 70) for d in (-1, 0, 1)
]
WRITABLE = (bytearray, array.array)
LISTS = [[], (), [N12], [bytes(24)], [K], [bytes(5), None], [RFC.ciphertext + RFC.tag], [5], {}]
arguments = st.sampled_from([*BUFFERS, *OTHERS, *NUMBERS, *LISTS])


@pytest.mark.parametrize(
    "kernel", NATIVE_KERNELS[:1] or [NO_NATIVE]
)  # errors are the same code for all of them
@pytest.mark.parametrize("name", [name for name, good in ENTRIES.items() if good])
@given(data=st.data())
def test_errors(kernel: str, name: str, data: st.DataObject) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from(list(ENTRIES[name])), arguments, min_size=1))
    if name.endswith("keystream"):
        assume(type(changed["n"]) is not int or not 2**20 < changed["n"] < 2**63)  # what memory cannot hold

    def outcome() -> tuple[Any, ...]:
        # What can be written to is new for each of the two.
        given = {p: copy(v) if isinstance(v, WRITABLE) else v for p, v in (ENTRIES[name] | changed).items()}
        try:
            result = entry(chapoly, name)(**given)
            said = type(result).__name__, result if isinstance(result, (bytes, int, str, tuple)) else None
        except Exception as error:
            said = type(error).__name__, str(error)
        return *said, *(bytes(v) for v in given.values() if isinstance(v, WRITABLE))

    with chapoly.testing.use_kernel(kernel):
        native = outcome()
    with chapoly.testing.use_kernel("pure"):
        assert outcome() == native


@pytest.mark.parametrize("name", ["ChaCha20Poly1305", "XChaCha20Poly1305"])
@given(data=st.data(), key=keys, message=st.binary(max_size=2000), text=texts)
def test_decrypt_undoes_encrypt(
    api: ModuleType, name: str, data: st.DataObject, key: bytes, message: bytes, text: bytes | None
) -> None:
    nonce = data.draw(nonces(NONCE_SIZES[name]))
    cipher = getattr(api, name)(key)
    sealed = cipher.encrypt(nonce, message, text)
    assert len(sealed) == len(message) + 16
    assert cipher.decrypt(nonce, sealed, text) == message


@pytest.mark.parametrize("name", ["ChaCha20Poly1305", "XChaCha20Poly1305"])
@given(data=st.data(), key=keys, message=st.binary(max_size=300), text=st.binary(max_size=40))
def test_any_flipped_bit_fails(
    api: ModuleType, name: str, data: st.DataObject, key: bytes, message: bytes, text: bytes
) -> None:
    nonce = data.draw(nonces(NONCE_SIZES[name]))
    sealed = getattr(api, name)(key).encrypt(nonce, message, text)
    inputs = [key, nonce, sealed, text]
    i = data.draw(st.sampled_from([i for i in range(4) if inputs[i]]))
    bit = data.draw(st.integers(0, 8 * len(inputs[i]) - 1))
    inputs[i] = (int.from_bytes(inputs[i], "little") ^ 1 << bit).to_bytes(len(inputs[i]), "little")
    key, nonce, sealed, text = inputs
    with refuses(api.InvalidTag, "tag does not match"):
        getattr(api, name)(key).decrypt(nonce, sealed, text)


@given(s=st.binary(min_size=16, max_size=16), message=st.binary(min_size=1, max_size=300), data=st.data())
def test_any_flipped_bit_changes_the_mac(
    api: ModuleType, s: bytes, message: bytes, data: st.DataObject
) -> None:
    # r is RFC 8439 2.5.2's: under r = 2, say, the top bit of the last block makes no difference.
    key = bytes.fromhex("85d6be7857556d337f4452fe42d506a8") + s
    bit = data.draw(st.integers(0, 8 * len(message) - 1))
    flipped = (int.from_bytes(message, "little") ^ 1 << bit).to_bytes(len(message), "little")
    tag = api.poly1305.mac(key, message)
    with refuses(api.InvalidTag, "tag does not match"):
        api.poly1305.verify(key, flipped, tag)


@given(key=keys, message=messages, counter=counters)
def test_cipher_undoes_itself(api: ModuleType, key: bytes, message: bytes, counter: int) -> None:
    nonce, message = key[:12], message[: 64 * (2**32 - counter)]
    once = api.chacha20.cipher(key, counter, nonce, message)
    assert api.chacha20.cipher(key, counter, nonce, once) == message
