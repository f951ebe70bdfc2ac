"""The documentation beside other libraries; make docs installs those and runs this."""

import hmac
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from pages import DOCS, session

import chapoly

PAGES = sorted((DOCS / "migrating").glob("[!i]*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page: Path) -> None:
    session(page, chapoly)


def counted(counter: int) -> bytes:
    return bytes(4) + counter.to_bytes(8, "little")


def test_noise_rekey() -> None:
    """Noise publishes no vectors of it (recipes/noise.md)."""
    state = session(DOCS / "recipes" / "noise.md", chapoly)["CipherState"](bytes(range(32)))
    state.counter = 2
    state.rekey()
    key = ChaCha20Poly1305(bytes(range(32))).encrypt(counted(2**64 - 1), bytes(32), b"")[:32]
    expected = ChaCha20Poly1305(key).encrypt(counted(2), b"three", b"ad")
    assert state.encrypt_with_ad(b"ad", b"three") == expected


def test_homekit_frames() -> None:
    """HomeKit publishes no vectors of them (recipes/homekit.md)."""
    page = session(DOCS / "recipes" / "homekit.md", chapoly)
    key = hmac.digest(
        hmac.digest(b"Control-Salt", b"shared", "sha512"), b"Control-Read-Encryption-Key\x01", "sha512"
    )[:32]
    data = bytes(range(256)) * 5
    pieces = data[:1024], data[1024:]
    lengths = [len(piece).to_bytes(2, "little") for piece in pieces]
    expected = b"".join(
        length + ChaCha20Poly1305(key).encrypt(counted(i), piece, length)
        for i, (piece, length) in enumerate(zip(pieces, lengths, strict=True))
    )
    assert page["FrameSender"](page["control_key"](b"shared", "Read")).send(data) == expected
