"""RFC 8439's cases by section: the 20 that ppad-chacha and ppad-poly1305 test, and the rest of appendix A."""

from types import ModuleType
from typing import Any

import pytest
from vectors import named

RFC_FILES = {"chacha20": "chacha20.json", "poly1305": "poly1305.json", "aead": "chacha20-poly1305.json"}


def rfc(file: str, id: str) -> Any:
    return named(RFC_FILES[file], "RFC 8439", id)


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
