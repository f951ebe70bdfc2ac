"""All forms of an AEAD call give the same; one that fails leaves nothing behind; overlaps are refused."""

from types import ModuleType
from typing import Any

import pytest
from entries import ENTRIES, KEYS, K, entry, having, make, refuses
from forms import DECRYPT, DECRYPT_MANY, ENCRYPT, ENCRYPT_MANY

SIZES = [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 5000, 70000]
MARK = 0x55


def sizes(api: ModuleType) -> list[int]:
    return SIZES[:-1] if api.kernel == "pure" else SIZES


def message(size: int) -> bytes:
    return bytes(i % 251 for i in range(size))


def nonce_of(key: Any) -> bytes:
    return bytes(range(100, 100 + key.NONCE_SIZE))


@pytest.mark.parametrize("owner", KEYS)
@pytest.mark.parametrize("text", [None, b"", b"x", message(16), message(33), message(3000)])
def test_all_forms_give_the_same(api: ModuleType, owner: str, text: bytes | None) -> None:
    key = make(api, owner)
    nonce = nonce_of(key)
    for size in sizes(api):
        data = message(size)
        whole = key.encrypt(nonce, data, text)
        for name, encrypt in (ENCRYPT | ENCRYPT_MANY).items():
            assert encrypt(key, nonce, data, text) == whole, name
        for name, decrypt in (DECRYPT | DECRYPT_MANY).items():
            assert decrypt(key, nonce, whole, text) == data, name


def test_the_table_has_every_form() -> None:
    methods = {name.partition(".")[2] for name in ENTRIES if name.startswith("ChaCha20Poly1305.")}
    assert {*ENCRYPT, *DECRYPT, *ENCRYPT_MANY, *DECRYPT_MANY} == methods - {
        "generate_key",
        "encryptor",
        "unverified_decryptor",
    }


def test_results_are_of_their_types(api: ModuleType) -> None:
    key = api.ChaCha20Poly1305(K)
    buf = bytearray(b"data")
    tag = key.encrypt_in_place(bytes(12), buf)
    assert type(tag) is api.Tag
    assert key.decrypt_in_place(bytes(12), buf, tag) is None
    pair = key.encrypt_detached(bytes(12), buf)
    assert [type(pair), *map(type, pair)] == [tuple, bytes, api.Tag]
    assert type(key.decrypt_detached(bytes(12), *pair)) is bytes
    assert type(key.encrypt_into(bytes(12), b"", None, bytearray(16))) is int


# ---- Failure: in place nothing changes, apart all is zero. ----


def forgeries(whole: bytes) -> list[bytes]:
    """A bit flipped here and there, the last of the text and the first of the tag among them."""
    n = len(whole)
    return [
        whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1 :]
        for i in sorted({0, n // 3, n - 17, n - 16, n - 1})
        if i >= 0
    ]


@pytest.mark.parametrize("owner", KEYS)
def test_a_failed_decryption_leaves_nothing_behind(api: ModuleType, owner: str) -> None:
    key = make(api, owner)
    nonce = nonce_of(key)
    for size in sizes(api):
        whole = key.encrypt(nonce, message(size), b"text")
        for data, text in [(forged, b"text") for forged in forgeries(whole)] + [(whole, b"test")]:
            apart, memory = bytearray([MARK]) * size, bytearray(data)
            with refuses(api.InvalidTag, "tag does not match"):
                key.decrypt_into(nonce, data, text, apart)
            assert apart == bytes(size)
            with refuses(api.InvalidTag, "tag does not match"):
                key.decrypt_into(nonce, memory, text, memoryview(memory)[:size])
            assert memory == data
            in_place = bytearray(data[:size])
            with refuses(api.InvalidTag, "tag does not match"):
                key.decrypt_in_place(nonce, in_place, data[size:], text)
            assert in_place == data[:size]
            with refuses(api.InvalidTag, "tag does not match"):
                key.decrypt_detached(nonce, data[:size], data[size:], text)


@pytest.mark.parametrize("owner", KEYS)
def test_each_bit_of_the_tag_counts_in_every_form(api: ModuleType, owner: str) -> None:
    key = make(api, owner)
    nonce = nonce_of(key)
    whole = key.encrypt(nonce, b"data")
    for bit in range(128):
        forged = (int.from_bytes(whole, "big") ^ 1 << bit).to_bytes(len(whole), "big")
        for decrypt in (DECRYPT | DECRYPT_MANY).values():
            with refuses(api.InvalidTag, "tag does not match"):
                decrypt(key, nonce, forged, None)


def test_a_failed_call_can_be_repeated_with_the_right_tag(api: ModuleType) -> None:
    key, buf = api.ChaCha20Poly1305(K), bytearray(b"attack at dawn")
    tag = key.encrypt_in_place(bytes(12), buf)
    with refuses(api.InvalidTag, "tag does not match"):
        key.decrypt_in_place(bytes(12), buf, bytes(16))
    key.decrypt_in_place(bytes(12), buf, tag)
    assert buf == b"attack at dawn"


WRITING = [name for name, _ in having("buf") if name.startswith(tuple(KEYS))]


@pytest.mark.parametrize("name", WRITING)
def test_argument_errors_write_nothing(api: ModuleType, name: str) -> None:
    for parameter in ENTRIES[name]:
        for wrong in (object(), memoryview(bytes(64))[::2], b"" if parameter in ("nonce", "tag") else 1.5):
            good = ENTRIES[name]
            before = bytes(good["buf"])
            with pytest.raises((TypeError, BufferError, api.InvalidNonce, api.InvalidTag)):
                entry(api, name)(**good | {parameter: wrong})
            assert good["buf"] == before


@pytest.mark.parametrize("name", WRITING)
def test_outputs_that_cannot_be_written(api: ModuleType, name: str) -> None:
    right = bytes(ENTRIES[name]["buf"])
    for read_only in (right, memoryview(bytearray(right)).toreadonly()):
        with refuses(TypeError, "buf must be writable"):
            entry(api, name)(**ENTRIES[name] | {"buf": read_only})
        assert read_only == right == bytes(ENTRIES[name]["buf"])
    gaps = memoryview(bytearray(2 * len(right)))[::2]
    with refuses(BufferError, "buf must be C-contiguous"):
        entry(api, name)(**ENTRIES[name] | {"buf": gaps})
    assert not any(gaps.obj)


@pytest.mark.parametrize("name", [name for name in WRITING if name.endswith("into")])
def test_outputs_of_the_wrong_size(api: ModuleType, name: str) -> None:
    right = len(ENTRIES[name]["buf"])
    for n in (0, 1, 15, 16, right - 16, right - 1, right + 1, right + 16, right + 1000):
        buf = bytearray([MARK]) * n
        with refuses(ValueError, f"buf must be {right} bytes, got {n}"):
            entry(api, name)(**ENTRIES[name] | {"buf": buf})
        assert buf == bytes([MARK]) * n


# ---- Overlap. ----


def lay_out(good: dict[str, Any], parameter: str, shift: int) -> tuple[bytearray, dict[str, Any]]:
    """Memory that holds buf, and another argument from `shift` bytes after the start of buf on."""
    buf, value = good["buf"], good[parameter]
    start = max(0, -shift)
    memory = bytearray([MARK]) * (start + max(len(buf), shift + len(value)))
    view = memoryview(memory)
    memory[start : start + len(buf)] = buf
    memory[start + shift : start + shift + len(value)] = value
    return memory, good | {
        "buf": view[start : start + len(buf)],
        parameter: view[start + shift : start + shift + len(value)],
    }


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, p) for name in WRITING for p in ENTRIES[name] if p not in ("buf", "threads")],
)
def test_overlaps(api: ModuleType, name: str, parameter: str) -> None:
    good = ENTRIES[name]
    buf, value = good["buf"], good[parameter]
    expected = entry(api, name)(**good)
    for shift in range(-len(value), len(buf) + 1):
        memory, arguments = lay_out(ENTRIES[name], parameter, shift)
        before = bytes(memory)
        apart = shift in (-len(value), len(buf))
        if apart or (parameter == "data" and shift == 0):
            assert entry(api, name)(**arguments) == expected
            assert arguments["buf"] == buf
        else:
            with refuses(ValueError, f"buf overlaps {parameter}"):
                entry(api, name)(**arguments)
            assert memory == before


@pytest.mark.parametrize("owner", KEYS)
def test_empty_buffers_overlap_nothing(api: ModuleType, owner: str) -> None:
    key = make(api, owner)
    memory = bytearray(range(100))
    view = memoryview(memory)
    nonce, tag = view[: key.NONCE_SIZE], key.encrypt(bytes(range(key.NONCE_SIZE)), b"")
    memory[50:66] = tag
    before = bytes(memory)
    for at in range(100):
        empty = view[at:at]
        assert key.encrypt_in_place(nonce, empty, empty) == tag
        assert key.decrypt_in_place(nonce, empty, view[50:66], empty) is None
        assert key.decrypt_into(nonce, view[50:66], empty, empty) == 0
        assert memory == before
        # The output is 16 bytes, but the data and the associated data are nothing.
        if key.NONCE_SIZE <= at <= 84:
            assert key.encrypt_into(nonce, view[at + 8 : at + 8], empty, view[at : at + 16]) == 16
            assert memory[at : at + 16] == tag
            memory[:] = before
