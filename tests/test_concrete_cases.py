"""Cases in which other libraries went wrong, with the right answers: one bug report each."""

from types import ModuleType

import pytest
from entries import N8, N12, K, refuses

ZERO64 = bytes(64)


def le128(n: int) -> bytes:
    return (n % 2**128).to_bytes(16, "little")


def test_the_last_block_is_usable_and_the_next_byte_is_refused(api: ModuleType) -> None:
    last = bytes.fromhex(
        "1ce0deb8925fccea2d5587e850054559edcbbeb1a6c8e1c02c1e89abba08b01c"
        "ad6048fe5ab5242ed6befbef6b4040fcb666a5f3858d942a912c4e8800301a42"
    )
    assert api.chacha20.cipher(K, 0xFFFFFFFF, N12, ZERO64) == last
    assert api.chacha20.block(K, 0xFFFFFFFF, N12) == last
    out = bytearray(b"\x55" * 65)
    with refuses(api.CounterOverflow, "data must be at most 64 bytes, got 65"):
        api.chacha20.cipher(K, 0xFFFFFFFF, N12, bytes(65), out=out)
    assert out == b"\x55" * 65


def test_the_legacy_counter_carries_into_its_high_word(api: ModuleType) -> None:
    expected = bytes.fromhex("d838fb09536e2e3a10e8f23f486273a6")
    assert api.ChaCha20Legacy(K, N8, counter=2**32).keystream(16) == expected
    stream = api.ChaCha20Legacy(K, N8, counter=0xFFFFFFFF)
    assert stream.keystream(64 + 16)[64:] == expected


@pytest.mark.parametrize(
    ("c", "expected"), [(826131956, "010000000d001e3b"), (4066161939, "01000000f5685050")]
)
def test_the_feed_forward_adds_32_bits_and_carries_nothing(api: ModuleType, c: int, expected: str) -> None:
    # Keystream word 12 of block c is smaller than the lane index, so a 64-bit add shows in word 13.
    for i in range(32):
        blocks = api.chacha20.cipher(K, c - i, N12, bytes(64 * (i + 1)))
        assert blocks[64 * i + 48 : 64 * i + 56].hex() == expected


def test_the_quic_header_mask_takes_any_counter(api: ModuleType) -> None:
    key = bytes.fromhex("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4")
    sample = bytes.fromhex("5e5cd55c41f69080575d7999c25a5bfb")
    counter, nonce = int.from_bytes(sample[:4], "little"), sample[4:]
    assert api.chacha20.cipher(key, counter, nonce, bytes(5)).hex() == "aefefe7d03"
    assert (
        api.chacha20.cipher(key, 0xFFFFFFFF, nonce, bytes(5))
        == api.chacha20.block(key, 0xFFFFFFFF, nonce)[:5]
    )


@pytest.mark.parametrize("name", ["ChaCha20Poly1305", "XChaCha20Poly1305"])
def test_associated_data_of_none_is_empty(api: ModuleType, name: str) -> None:
    cipher = getattr(api, name)(K)
    nonce = bytes(cipher.NONCE_SIZE)
    assert cipher.encrypt(nonce, b"", None) == cipher.encrypt(nonce, b"", b"") == cipher.encrypt(nonce, b"")
    assert cipher.decrypt(nonce, cipher.encrypt(nonce, b"x", None), b"") == b"x"


def test_an_empty_message_has_a_tag(api: ModuleType) -> None:
    cipher = api.ChaCha20Poly1305(K)
    assert cipher.encrypt(N12, b"").hex() == "10324f800a160bd9a1794255be7ec29d"
    assert cipher.encrypt(N12, b"", b"x").hex() == "4bc7eefe6bd51b575d2379aaeaabcf6f"
    assert cipher.decrypt(N12, cipher.encrypt(N12, b"", b"x"), b"x") == b""


def test_poly1305_reduces_fully(api: ModuleType) -> None:
    def mac(r: int, message: bytes) -> bytes:
        return api.poly1305.mac(le128(r) + bytes(16), message)

    assert mac(2, b"\xff" * 16) == le128(3)
    # LE128(2^128 - 5 + k) and two zero blocks bring the accumulator to 2^130 - 5 + k.
    for k in range(5):
        assert mac(1, le128(2**128 - 5 + k) + bytes(32)) == le128(k)
    assert mac(1, le128(2**128 - 6) + bytes(32)) == b"\xfa" + b"\xff" * 15


@pytest.mark.parametrize(
    ("length", "tag"),
    [
        (16, "fbffff17faffff17faffff17faffff17"),
        (64, "900fe32bc15fa8d7bca8efe4c7e37eb1"),
        (65, "e4d8b131f296fa0723796121694ffa18"),
        (1024, "25d4926a53bb480da228ec61e0a31a38"),
    ],
)
def test_poly1305_of_all_ones(api: ModuleType, length: int, tag: str) -> None:
    assert api.poly1305.mac(b"\xff" * 32, b"\xff" * length).hex() == tag


def test_hchacha20_of_the_draft(api: ModuleType) -> None:
    subkey = api.chacha20.hchacha20(K, bytes.fromhex("000000090000004a0000000031415927"))
    assert subkey.hex() == "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"


def test_an_empty_tag_never_verifies(api: ModuleType) -> None:
    with refuses(api.InvalidTag, "tag must be 16 bytes, got 0"):
        api.poly1305.verify(K, b"message", b"")


@pytest.mark.parametrize("bit", range(128))
def test_each_bit_of_the_tag_counts(api: ModuleType, bit: int) -> None:
    wrong = (int.from_bytes(api.poly1305.mac(K, b"message"), "big") ^ 1 << bit).to_bytes(16, "big")
    with refuses(api.InvalidTag, "tag does not match"):
        api.poly1305.verify(K, b"message", wrong)
    sealed = api.chacha20poly1305.encrypt(K, N12, b"message")
    wrong = (int.from_bytes(sealed, "big") ^ 1 << bit).to_bytes(len(sealed), "big")
    with refuses(api.InvalidTag, "tag does not match"):
        api.chacha20poly1305.decrypt(K, N12, wrong)
