"""A native call allocates its result and nothing else; a refused call leaves nothing behind."""

import sys
import tracemalloc
from array import array
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from entries import DRAFT, ENTRIES, N12, N24, RFC, STREAMS, K, entry, make

import chapoly

MESSAGE, TAG = bytes(5000), bytes(16)
SIZES = [0, 1, 16, 64, 114, 256, 1024, 4096, 65536]


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    tracemalloc.start(1)
    yield
    tracemalloc.stop()


def allocated(call: Callable[[], Any]) -> tuple[int, int, Any]:
    """Bytes still allocated after a call and at its peak, beyond those for measuring, and its result."""
    for _ in range(3):  # what the first call leaves in caches, of ours or of CPython's, is not counted
        idle = measure(nothing)
        busy = measure(call)
    return busy[0] - idle[0], busy[1] - idle[1], busy[2]


def measure(call: Callable[[], Any]) -> tuple[int, int, Any]:
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    result = call()
    now, peak = tracemalloc.get_traced_memory()
    return now - before, peak - before, result


def nothing() -> None:
    return None


def result_alone(call: Callable[[], Any]) -> None:
    kept, peak, result = allocated(call)
    assert type(result) in (bytes, chapoly.Tag)
    size = sys.getsizeof(result)
    if type(result) is chapoly.Tag:
        size = -(-size // 8) * 8  # CPython rounds up what it allocates for a type of its user's
    elif len(result) < 2:
        size = kept if kept == 0 else size  # CPython may keep these bytes ready
    assert (kept, peak) == (size, size)


@pytest.mark.parametrize("size", SIZES)
def test_functions_allocate_their_result(native_api: ModuleType, size: int) -> None:
    data, api = bytes(size), native_api
    result_alone(lambda: api.chacha20.cipher(K, 0, N12, data))
    result_alone(lambda: api.xchacha20.cipher(K, 0, N24, data, rounds=12))
    result_alone(lambda: api.poly1305.mac(K, data))
    result_alone(lambda: api.chacha20poly1305.encrypt(K, N12, data, data))
    sealed, xsealed = api.chacha20poly1305.encrypt(K, N12, data), api.xchacha20poly1305.encrypt(K, N24, data)
    result_alone(lambda: api.chacha20poly1305.decrypt(K, N12, sealed))
    result_alone(lambda: api.xchacha20poly1305.decrypt(K, N24, data=xsealed, associated_data=None))


@pytest.mark.parametrize("size", SIZES)
def test_methods_allocate_their_result(native_api: ModuleType, size: int) -> None:
    data = bytearray(size)  # not the fast path of exact bytes
    for name in ("ChaCha20Poly1305", "XChaCha20Poly1305"):
        aead = getattr(native_api, name)(K)
        nonce = bytes(aead.NONCE_SIZE)
        encrypt, decrypt, sealed = aead.encrypt, aead.decrypt, aead.encrypt(nonce, data)
        result_alone(lambda: encrypt(nonce, data, data))  # noqa: B023
        result_alone(lambda: encrypt(nonce, associated_data=data, data=data))  # noqa: B023
        result_alone(lambda: decrypt(nonce, sealed))  # noqa: B023
    for name in STREAMS:
        stream = make(native_api, name)
        update, keystream = stream.update, stream.keystream
        result_alone(lambda: update(data))  # noqa: B023
        result_alone(lambda: keystream(size))  # noqa: B023


def test_block_and_subkey_allocate_their_result(native_api: ModuleType) -> None:
    block, hchacha20 = native_api.chacha20.block, native_api.chacha20.hchacha20
    result_alone(lambda: block(K, 1, N12))
    result_alone(lambda: hchacha20(K, TAG))


@pytest.mark.parametrize("size", SIZES)
def test_into_the_callers_buffer_nothing_is_allocated(native_api: ModuleType, size: int) -> None:
    data, out = bytes(size), bytearray(size)
    cipher, update_into = native_api.chacha20.cipher, native_api.ChaCha20(K, N12).update_into
    for call in (lambda: cipher(K, 0, N12, data, out=out), lambda: update_into(data, out)):
        kept, peak, result = allocated(call)
        assert result == size
        # The number of bytes is the result: an int, which CPython keeps ready up to 256.
        number = 0 if size <= 256 else sys.getsizeof(size)
        assert (kept, peak) == (number, number)


def test_verifying_and_comparing_allocate_nothing(native_api: ModuleType) -> None:
    verify, tag = native_api.poly1305.verify, native_api.poly1305.mac(K, MESSAGE)
    assert allocated(lambda: verify(K, MESSAGE, tag)) == (0, 0, None)
    assert allocated(lambda: tag == TAG) == (0, 0, False)


@pytest.mark.parametrize("name", [name for name, good in ENTRIES.items() if good])
def test_refused_calls_leave_nothing_behind(native_api: ModuleType, name: str) -> None:
    call, good = entry(native_api, name), ENTRIES[name]
    forged = {"data": good["data"][:-1] + b"x"} if name.endswith("decrypt") else {}
    bad = [good | {p: object()} for p in good] + ([good | forged] if forged else [])

    def refused() -> None:
        for arguments in bad:
            try:
                call(**arguments)
            except (TypeError, native_api.InvalidTag):
                continue
            pytest.fail("not refused")

    for _ in range(200):
        refused()
    given = [item for value in good.values() for item in (value if isinstance(value, list) else [value])]
    counted = [value for value in given if isinstance(value, (bytes, bytearray))]
    references = [sys.getrefcount(value) for value in counted]
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        refused()
    grown = tracemalloc.get_traced_memory()[0] - before
    assert grown < 200  # less than a byte a round: nothing that is kept is so small
    assert [sys.getrefcount(value) for value in counted] == references


def test_objects_are_freed(native_api: ModuleType) -> None:
    def use() -> None:
        for name, good in (("ChaCha20Poly1305", {"key": RFC.key}), ("XChaCha20Poly1305", {"key": DRAFT.key})):
            aead = getattr(native_api, name)(**good)
            aead.decrypt(bytes(aead.NONCE_SIZE), aead.encrypt(bytes(aead.NONCE_SIZE), MESSAGE))
        for name in STREAMS:
            with make(native_api, name) as stream:
                stream.update(MESSAGE)
            make(native_api, name).keystream(100)
        native_api.Tag(TAG)

    use()
    kind = native_api.ChaCha20Poly1305
    references, before = sys.getrefcount(kind), tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        use()
    assert tracemalloc.get_traced_memory()[0] - before < 200
    assert sys.getrefcount(kind) == references  # heap types are counted by their objects


@pytest.mark.parametrize("size", [0, 64, 1420])
@pytest.mark.parametrize("count", [1, 2, 64, 1000])
def test_a_batch_allocates_one_table_and_its_results(native_api: ModuleType, size: int, count: int) -> None:
    row = 128  # bytes at most for each packet, however long it is
    for name in ("ChaCha20Poly1305", "XChaCha20Poly1305"):
        aead = getattr(native_api, name)(K)
        nonces, datas = [bytes(aead.NONCE_SIZE)] * count, [bytes(size)] * count
        sealed = aead.encrypt_many(nonces, datas)
        for call, messages in ((aead.encrypt_many, datas), (aead.decrypt_many, sealed)):
            kept, peak, result = allocated(lambda: call(nonces, messages))  # noqa: B023
            of_results = sum(0 if message == b"" else sys.getsizeof(message) for message in result)
            assert kept <= sys.getsizeof(result) + of_results
            assert peak - kept <= (row * count if count > 1 else 0)
        # A buffer is some bytes more for each packet.
        buffers = [memoryview(message) for message in sealed]
        kept, peak, result = allocated(lambda: aead.decrypt_many(nonces, buffers))  # noqa: B023
        assert kept <= sys.getsizeof(result) + of_results
        assert peak - kept <= 2 * row * count


@pytest.mark.parametrize("count", [0, 1, 64, 1000])
def test_packed_messages_allocate_nothing(native_api: ModuleType, count: int) -> None:
    for name in ("ChaCha20Poly1305", "XChaCha20Poly1305"):
        aead = getattr(native_api, name)(K)
        nonces, data = bytes(aead.NONCE_SIZE * count), bytes(100 * count)
        offsets = array("q", range(0, 100 * count + 1, 100))
        sealed = bytearray(116 * count)
        kept, peak, written = allocated(lambda: aead.encrypt_packed(nonces, data, offsets, sealed))  # noqa: B023
        number = 0 if written <= 256 else sys.getsizeof(written)
        assert (kept, peak) == (number, number)
        offsets = array("q", range(0, 116 * count + 1, 116))
        out, failed = bytearray(100 * count), bytearray(count)
        decrypt = aead.decrypt_packed
        assert allocated(lambda: decrypt(nonces, sealed, offsets, out, failed)) == (0, 0, 0)  # noqa: B023
