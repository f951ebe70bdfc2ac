"""Key objects are shared by threads freely."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from entries import K
from forms import DECRYPT, ENCRYPT, decrypt_in_parts, encrypt_in_parts

SIZES = [0, 1, 100, 4095, 4096, 4097, 10000]  # about where the GIL begins to be released


@pytest.mark.usefixtures("eager_switches")
@pytest.mark.parametrize("name", ["ChaCha20Poly1305", "XChaCha20Poly1305"])
def test_one_key_object_in_many_threads(api: ModuleType, name: str) -> None:
    aead = getattr(api, name)(K)
    jobs = [(i.to_bytes(aead.NONCE_SIZE, "big"), bytes([i]) * size) for i in range(8) for size in SIZES]
    expected = [aead.encrypt(nonce, message, nonce) for nonce, message in jobs]
    together = threading.Barrier(4)

    def work() -> bool:
        together.wait()
        right = True
        for (nonce, message), sealed in zip(jobs, expected, strict=True):
            right &= (
                all(encrypt(aead, nonce, message, nonce) == sealed for encrypt in ENCRYPT.values())
                and all(decrypt(aead, nonce, sealed, nonce) == message for decrypt in DECRYPT.values())
                and encrypt_in_parts(aead, nonce, message, nonce, [4096]) == sealed
                and decrypt_in_parts(aead, nonce, sealed, nonce, [4096]) == message
            )
            for decrypt in DECRYPT.values():
                try:
                    decrypt(aead, nonce, sealed, b"other")
                    right = False
                except api.InvalidTag:
                    pass
        return right

    with ThreadPoolExecutor(4) as pool:
        assert [future.result() for future in [pool.submit(work) for _ in range(4)]] == [True] * 4
