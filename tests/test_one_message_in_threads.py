"""threads= changes nothing but the time: the same bytes, errors and positions for every number of threads."""

import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from entries import KEYS, NONCE_SIZES, STREAMS, K, make, refuses
from interpreter import prints

LEAST = 512 * 1024  # bytes that each thread gets at least (WORTH_A_THREAD in threads.c)
needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc/self")


def sizes(api: ModuleType) -> list[int]:
    """Around the sizes from which on there is another range, with whole and broken blocks at the end."""
    if api.kernel == "pure":  # which has no ranges
        return [0, 1, 1000]
    return [0, 1, 2 * LEAST - 1, 2 * LEAST, 2 * LEAST + 1, 3 * LEAST + 16, 4 * LEAST + 63, 8 * LEAST + 65]


def message(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("name", KEYS)
def test_encryption_and_decryption(api: ModuleType, name: str) -> None:
    aead, functions = getattr(api, name)(K), getattr(api, name.lower())
    nonce, text = bytes(NONCE_SIZES[name]), b"associated"
    for size in sizes(api):
        data = message(size)
        sealed = aead.encrypt(nonce, data, text)
        for threads in range(1, 9):
            assert aead.encrypt(nonce, data, text, threads=threads) == sealed
            assert aead.decrypt(nonce, sealed, text, threads=threads) == data
        assert functions.encrypt(K, nonce, bytearray(data), text, threads=3) == sealed
        assert functions.decrypt(K, nonce, bytearray(sealed), text, threads=3) == data


@pytest.mark.parametrize("name", KEYS)
def test_into_a_buffer_and_in_place(api: ModuleType, name: str) -> None:
    aead, nonce, text = getattr(api, name)(K), bytes(NONCE_SIZES[name]), b"associated"
    for size in sizes(api):
        data = message(size)
        sealed = aead.encrypt(nonce, data, text)
        for threads in (2, 3, 8):
            buf = bytearray(size + 16)
            assert aead.encrypt_into(nonce, data, text, buf, threads=threads) == size + 16
            assert buf == sealed
            plain = memoryview(buf)[:size]
            assert aead.decrypt_into(nonce, buf, text, plain, threads=threads) == size
            assert buf == data + sealed[size:]
            assert aead.encrypt_into(nonce, plain, text, buf, threads=threads) == size + 16
            assert buf == sealed
            plain = bytearray(b"\x55" * size)
            assert aead.decrypt_into(nonce, buf, text, plain, threads=threads) == size
            assert plain == data


def test_forgeries(api: ModuleType) -> None:
    aead, size = api.ChaCha20Poly1305(K), 4 * LEAST + 5 if api.kernel != "pure" else 1000
    sealed = bytearray(aead.encrypt(bytes(12), message(size), b"text", threads=4))
    apart, in_place = bytearray(size), memoryview(sealed)[:size]

    def refused(text: bytes) -> None:
        before = bytes(sealed)
        apart[:] = b"\x55" * size
        for call in (
            lambda: aead.decrypt(bytes(12), sealed, text, threads=4),
            lambda: aead.decrypt_into(bytes(12), sealed, text, apart, threads=4),
            lambda: aead.decrypt_into(bytes(12), sealed, text, in_place, threads=4),
        ):
            with refuses(api.InvalidTag, "tag does not match"):
                call()
        assert sealed == before
        assert apart == bytes(size)

    for at in [*range(0, size, size // 9), size - 1, size, size + 15]:
        sealed[at] ^= 0x20
        refused(b"text")
        sealed[at] ^= 0x20
    refused(b"texts")
    assert aead.decrypt(bytes(12), sealed, b"text", threads=4) == message(size)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("start", [0, 1, 63, 64])
def test_streams(api: ModuleType, name: str, start: int) -> None:
    for size in sizes(api):
        data, buf = message(size), bytearray(size)
        stream = make(api, name)
        stream.seek(start)
        expected = stream.update(data)
        for threads in range(1, 9):
            stream.seek(start)
            assert stream.update_into(data, buf, threads=threads) == size
            assert buf == expected
            assert stream.tell() == start + size
        in_place = bytearray(data)
        stream.seek(start)
        stream.update_into(in_place, in_place, threads=5)
        assert in_place == expected


@pytest.mark.parametrize("name", ["ChaCha20", "XChaCha20"])
def test_a_stream_to_its_very_end(api: ModuleType, name: str) -> None:
    size = 4 * LEAST if api.kernel != "pure" else 1000
    stream = make(api, name)
    for left in (size, size - 1, size - 63):
        stream.seek(2**38 - left)
        expected = stream.keystream(left)
        stream.seek(2**38 - left)
        buf = bytearray(b"\x55" * (left + 1))
        with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
            stream.update_into(bytes(left + 1), buf, threads=4)
        assert buf == b"\x55" * (left + 1)
        assert stream.tell() == 2**38 - left
        buf = bytearray(left)
        assert stream.update_into(bytes(left), buf, threads=4) == left
        assert buf == expected
        assert stream.tell() == 2**38
        assert stream.update_into(b"", bytearray(), threads=4) == 0


def test_the_legacy_counter_carries_in_any_thread(api: ModuleType) -> None:
    size = 4 * LEAST if api.kernel != "pure" else 4096
    for quarter in range(5):  # in a range, and where two meet
        start = 2**38 - quarter * size // 4 - (quarter % 2) * 192
        stream, buf = make(api, "ChaCha20Legacy"), bytearray(size)
        stream.seek(start)
        expected = stream.keystream(size)
        stream.seek(start)
        stream.update_into(bytes(size), buf, threads=4)
        assert buf == expected


# ---- The threads themselves. ----


def test_the_threads_are_there(native_api: ModuleType) -> None:
    # What this thread did not compute, others did. That is no question of speed.
    aead, data = native_api.ChaCha20Poly1305(K), bytes(64 * LEAST)
    all_threads, this_thread = time.process_time(), time.thread_time()
    aead.encrypt(bytes(12), data, threads=4)
    all_threads, this_thread = time.process_time() - all_threads, time.thread_time() - this_thread
    assert all_threads - this_thread > all_threads / 4


@needs_proc
def test_calls_leave_no_thread_and_no_memory_behind(native_api: ModuleType) -> None:
    aead, data = native_api.ChaCha20Poly1305(K), bytes(4 * LEAST)
    stream, buf = native_api.ChaCha20(K, bytes(12)), bytearray(4 * LEAST)

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    def use() -> None:
        stream.update_into(data, buf, threads=4)
        sealed = aead.encrypt(bytes(12), data, threads=4)
        aead.decrypt(bytes(12), sealed, threads=4)
        with pytest.raises(native_api.InvalidTag):
            aead.decrypt(bytes(12), data, threads=4)

    use()
    before = pages(), threads()
    for _ in range(50):
        use()
    # 600 threads that were not joined would keep a stack each, 8 MiB as a rule; qemu keeps 256 KiB of each.
    assert (pages() - before[0]) * os.sysconf("SC_PAGE_SIZE") < 600 * 2**20
    deadline = time.monotonic() + 60  # the system may need a moment to clear away what has been joined
    while threads() > before[1] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before[1]


IN_A_NEW_INTERPRETER = """
import os, sys, time, chapoly
aead, data = chapoly.ChaCha20Poly1305(bytes(32)), bytes(2_000_003)
stream, buf = chapoly.ChaCha20(bytes(32), bytes(12)), bytearray(len(data))
sealed = aead.encrypt(bytes(12), data)
expected = stream.update(data)
def check():
    assert aead.encrypt(bytes(12), data, threads=4) == sealed
    assert aead.decrypt(bytes(12), sealed, threads=4) == data
    in_place = bytearray(sealed)
    aead.decrypt_into(bytes(12), in_place, None, memoryview(in_place)[:-16], threads=4)
    assert in_place[:-16] == data
    stream.seek(0)
    stream.update_into(data, buf, threads=4)
    assert buf == expected
"""


@needs_proc
def test_where_no_thread_can_be_started(native_api: ModuleType) -> None:
    # That Python cannot start one either proves it.
    code = f"""{IN_A_NEW_INTERPRETER}
import resource, _thread
if os.getuid() == 0:
    os.setuid(65534)  # the limit does not hold for root
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    _thread.start_new_thread(print, ("a thread",))
except RuntimeError:
    check()
    print("done")
"""
    assert prints(code, CHAPOLY_KERNEL=native_api.kernel) == "done"


@needs_proc
def test_fork_after_threads(native_api: ModuleType) -> None:
    # From 3.12 on Python warns at fork of threads that are still there: here the warning would be an error.
    code = f"""{IN_A_NEW_INTERPRETER}
check()
deadline = time.monotonic() + 60
while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < deadline:
    time.sleep(0.001)
child = os.fork()
check()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""
    assert prints(code, "-W", "error", CHAPOLY_KERNEL=native_api.kernel) == "done"
