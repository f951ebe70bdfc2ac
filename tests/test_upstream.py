"""RFC 8439's cases by section: the 20 that ppad-chacha and ppad-poly1305 test, and the rest of appendix A."""

import struct
from types import ModuleType
from typing import Any

import pytest
from vectors import named

from chapoly.pure import chacha20 as pure

RFC_FILES = {"chacha20": "chacha20.json", "poly1305": "poly1305.json", "aead": "chacha20-poly1305.json"}


def rfc(file: str, id: str) -> Any:
    return named(RFC_FILES[file], "RFC 8439", id)


def words(text: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(text) // 4}L", text))


# ---- The parts of the block function, which only the readable implementation has. ----


def test_2_1_1_the_quarter_round() -> None:
    v = rfc("chacha20", "2.1.1")
    assert list(pure.quarter_round(*words(v.msg))) == words(v.ciphertext)
    assert pure.quarter_round(0x11111111, 0x01020304, 0x9B8D6F43, 0x01234567) == (
        0xEA2A92F4,
        0xCB1CF8CE,
        0x4581472E,
        0x5881C4BB,
    )


def test_2_2_1_the_quarter_round_on_the_state() -> None:
    v = rfc("chacha20", "2.2.1")
    state = words(v.msg)
    for i, word in zip(v.indices, pure.quarter_round(*(state[i] for i in v.indices)), strict=True):
        state[i] = word
    assert state == words(v.ciphertext)


SETUP = [
    (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574),
    (0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C),
    (0x13121110, 0x17161514, 0x1B1A1918, 0x1F1E1D1C),
    (0x00000001, 0x09000000, 0x4A000000, 0x00000000),
]
AFTER_20_ROUNDS = [
    (0x837778AB, 0xE238D763, 0xA67AE21E, 0x5950BB2F),
    (0xC4F2D0C7, 0xFC62BB2F, 0x8FA018FC, 0x3F5EC7B7),
    (0x335271C2, 0xF29489F3, 0xEABDA8FC, 0x82E46EBD),
    (0xD19C12B4, 0xB04E16DE, 0x9E83D0CB, 0x4E3C50A2),
]


def table(rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The words of rows that hold one block."""
    return [tuple(row >> pure.LANE_BITS * i & 0xFFFFFFFF for i in range(4)) for row in rows]


def test_2_3_2_the_state_and_the_rounds() -> None:
    v = rfc("chacha20", "2.3.2")
    rows = pure.initial_rows(v.key, v.counter, v.nonce, 1)
    assert table(rows) == SETUP
    assert table(pure.permute(*rows, 1, 20)) == AFTER_20_ROUNDS


# ---- What every kernel computes. ----


def test_2_3_2_the_block_function(api: ModuleType) -> None:
    v = rfc("chacha20", "2.3.2")
    summed = [(a + b) % 2**32 for a, b in zip(sum(SETUP, ()), sum(AFTER_20_ROUNDS, ()), strict=True)]
    assert words(api.chacha20.block(v.key, v.counter, v.nonce)) == summed == words(v.ciphertext)


def ciphers(api: ModuleType, v: Any) -> None:
    assert api.chacha20.cipher(v.key, v.counter, v.nonce, v.msg) == v.ciphertext
    assert api.chacha20.cipher(v.key, v.counter, v.nonce, v.ciphertext) == v.msg


def test_2_4_2_the_cipher(api: ModuleType) -> None:
    v = rfc("chacha20", "2.4.2")
    assert v.msg.startswith(b"Ladies and Gentlemen of the class of '99")
    ciphers(api, v)


def test_a_2_1_the_cipher(api: ModuleType) -> None:
    v = rfc(
        "chacha20", "A.1#1"
    )  # the vectors keep it once: 64 zero bytes enciphered are the keystream itself
    assert (v.key, v.nonce, v.counter, v.msg) == (bytes(32), bytes(12), 0, bytes(64))
    ciphers(api, v)


@pytest.mark.parametrize("case", [2, 3])
def test_a_2_the_cipher(api: ModuleType, case: int) -> None:
    ciphers(api, rfc("chacha20", f"A.2#{case}"))


def test_2_5_2_the_mac(api: ModuleType) -> None:
    v = rfc("poly1305", "2.5.2")
    assert v.msg == b"Cryptographic Forum Research Group"
    assert api.poly1305.mac(v.key, v.msg) == v.tag
    api.poly1305.verify(v.key, v.msg, v.tag)


@pytest.mark.parametrize("case", range(1, 12))
def test_a_3_the_mac(api: ModuleType, case: int) -> None:
    v = rfc("poly1305", f"A.3#{case}")
    assert api.poly1305.mac(v.key, v.msg) == v.tag
    api.poly1305.verify(v.key, v.msg, v.tag)


# ---- Beyond upstream. ----


@pytest.mark.parametrize("case", range(1, 6))
def test_a_1_the_block_function(api: ModuleType, case: int) -> None:
    v = rfc("chacha20", f"A.1#{case}")
    assert api.chacha20.block(v.key, v.counter, v.nonce) == v.ciphertext


def test_2_6_2_the_one_time_key(api: ModuleType) -> None:
    v = rfc("poly1305", "2.6.2")
    assert api.chacha20.block(v.key, 0, v.nonce)[:32] == v.ciphertext


@pytest.mark.parametrize("case", range(1, 4))
def test_a_4_the_one_time_key(api: ModuleType, case: int) -> None:
    v = rfc("poly1305", f"A.4#{case}")
    assert api.chacha20.block(v.key, 0, v.nonce)[:32] == v.ciphertext


@pytest.mark.parametrize("id", ["2.8.2", "A.5"])
def test_the_aead(api: ModuleType, id: str) -> None:
    v = rfc("aead", id)
    sealed = api.chacha20poly1305.encrypt(v.key, v.nonce, v.msg, v.aad)
    assert sealed == v.ciphertext + v.tag
    assert api.chacha20poly1305.decrypt(v.key, v.nonce, sealed, v.aad) == v.msg
