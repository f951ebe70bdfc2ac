"""Lengths over 4 GiB: nothing is cut to 32 bits. `make big` runs this, in 6 GiB of memory and a few minutes.

The references are the sum of a series, and the same bytes in parts of 64 MiB through a stream and Poly1305.
"""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import chapoly
import chapoly.testing

KERNELS = [name for name in chapoly.kernels() if name != "pure"]
KEY, NONCE, TEXT = bytes(range(32)), bytes(range(12)), b"associated data"
GIB = 2**30
SIZE = 4 * GIB + 16385  # its low 32 bits alone would be a message, too, and its last block is short
PART = 64 * 2**20
P = 2**130 - 5


@pytest.fixture(autouse=True, params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    with chapoly.testing.use_kernel(request.param):
        yield


@pytest.fixture
def zeros(tmp_path: Path) -> Iterator[mmap.mmap]:
    """A read-only mapping of a sparse file, which has a length but takes no memory."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        os.truncate(file.fileno(), SIZE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        assert len(mapping) == SIZE
        yield mapping


def parts(size: int) -> Iterator[slice]:
    return (slice(at, min(at + PART, size)) for at in range(0, size, PART))


def mac_of_zeros(size: int) -> bytes:
    """Poly1305 of zero bytes: each block but the last counts 2^128 times a power of r, a geometric series."""
    r = int.from_bytes(KEY[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    blocks, rest = divmod(size, 16)
    accumulator = 2**128 * (pow(r, blocks + 1, P) - r) * pow(r - 1, -1, P) % P  # r + ... + r^blocks
    if rest:
        accumulator = (accumulator + 2 ** (8 * rest)) * r % P
    return ((accumulator + int.from_bytes(KEY[16:], "little")) % 2**128).to_bytes(16, "little")


def expected_tag(ciphertext: mmap.mmap, size: int, text: bytes) -> bytes:
    """RFC 8439 2.8, from the block function and Poly1305 in parts."""
    mac = chapoly.Poly1305(chapoly.chacha20.block(KEY, 0, NONCE)[:32])
    mac.update(text + bytes(-len(text) % 16))
    with memoryview(ciphertext) as memory:
        for part in parts(size):
            mac.update(memory[part])
    mac.update(bytes(-size % 16) + len(text).to_bytes(8, "little") + size.to_bytes(8, "little"))
    return mac.finalize()


def is_keystream(memory: mmap.mmap, size: int, counter: int) -> bool:
    """Whether memory holds the keystream from this block on."""
    stream = chapoly.ChaCha20(KEY, NONCE, counter=counter)
    return all(memory[part] == stream.keystream(part.stop - part.start) for part in parts(size))


def is_zero(memory: mmap.mmap, size: int) -> bool:
    zeros = bytes(PART)
    return all(memory[part] == zeros[: part.stop - part.start] for part in parts(size))


def test_the_series() -> None:
    for size in (0, 1, 15, 16, 17, 100, 1000):
        assert chapoly.poly1305.mac(KEY, bytes(size)) == mac_of_zeros(size)


@pytest.mark.parametrize("size", [4 * GIB - 1, 4 * GIB, SIZE])
def test_the_mac_of_a_sparse_mapping(zeros: mmap.mmap, size: int) -> None:
    with memoryview(zeros) as whole, whole[:size] as message:
        assert chapoly.poly1305.mac(KEY, message) == mac_of_zeros(size)
        mac = chapoly.Poly1305(KEY)
        mac.update(message)
        mac.verify(mac_of_zeros(size))


def test_the_cipher_of_a_sparse_mapping(zeros: mmap.mmap) -> None:
    with mmap.mmap(-1, SIZE) as out:
        assert chapoly.chacha20.cipher(KEY, 7, NONCE, zeros, out=out) == SIZE
        assert is_keystream(out, SIZE, 7)
        stream = chapoly.ChaCha20(KEY, NONCE, counter=7)
        assert stream.update_into(out, out) == SIZE  # encrypts the keystream with itself
        assert stream.tell() == 7 * 64 + SIZE
        assert is_zero(out, SIZE)


def test_associated_data_over_4_gib(zeros: mmap.mmap) -> None:
    mac = chapoly.Poly1305(chapoly.chacha20.block(KEY, 0, NONCE)[:32])
    mac.update(zeros)
    mac.update(bytes(-SIZE % 16) + SIZE.to_bytes(8, "little") + bytes(8))
    aead, tag = chapoly.ChaCha20Poly1305(KEY), mac.finalize()
    assert aead.encrypt(NONCE, b"", zeros) == tag
    assert aead.encryptor(NONCE, zeros).finalize() == tag


def test_a_message_in_parts_across_2_to_the_32(zeros: mmap.mmap) -> None:
    aead = chapoly.ChaCha20Poly1305(KEY)
    encryptor = aead.encryptor(NONCE, TEXT)
    with mmap.mmap(-1, SIZE) as out, memoryview(zeros) as source, memoryview(out) as target:
        for part in parts(SIZE):
            encryptor.update_into(source[part], target[part])
        tag = encryptor.finalize()
        assert is_keystream(out, SIZE, 1)
        assert tag == expected_tag(out, SIZE, TEXT)
        decryptor = aead.unverified_decryptor(NONCE, TEXT)
        decryptor.update_into(target, target)  # in one
        decryptor.verify(tag)
        assert is_zero(out, SIZE)


def test_5_gib_in_place() -> None:
    aead, size = chapoly.ChaCha20Poly1305(KEY), 5 * GIB
    with mmap.mmap(-1, size) as memory:
        tag = aead.encrypt_in_place(NONCE, memory, TEXT)
        assert is_keystream(memory, size, 1)
        assert tag == expected_tag(memory, size, TEXT)
        memory[size - 1] ^= 1
        with pytest.raises(chapoly.InvalidTag):
            aead.decrypt_in_place(NONCE, memory, tag, TEXT)
        memory[size - 1] ^= 1
        assert is_keystream(memory, size, 1)
        aead.decrypt_in_place(NONCE, memory, tag, TEXT)
        assert is_zero(memory, size)
