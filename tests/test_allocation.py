"""A native call allocates its result and nothing else; a refused call leaves nothing behind."""

import ctypes
import gc
import itertools
import mmap
import re
import sys
import tracemalloc
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from entries import DRAFT, ENTRIES, KEYS, MADE, N12, N24, RFC, STREAMS, TYPES, K, entry, make

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


def leaves_nothing(call: Callable[[], Any]) -> bool:
    """Whether 200 calls keep less than a byte each; nothing that is kept is so small.

    Another thread, as pytest-xdist has one, may allocate meanwhile: what calls keep, they keep every time.
    """
    for _ in range(5):
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            call()
        gc.collect()
        if tracemalloc.get_traced_memory()[0] - before < 200:
            return True
    return False


def nothing() -> None:
    return None


def memory_of(result: Any) -> set[int]:
    """The bytes that CPython may allocate for a result; none for what it keeps ready."""
    size = sys.getsizeof(result)
    if type(result) is chapoly.Tag:
        return {-(-size // 8) * 8}  # rounded up for a type of its user's
    if type(result) is tuple:
        return {sum(sizes) for sizes in itertools.product({0, size}, *map(memory_of, result))}
    if type(result) is bytes:
        return {size} if len(result) > 1 else {0, size}
    assert type(result) is int
    return {size} if result > 256 else {0}


def result_alone(call: Callable[[], Any]) -> None:
    kept, peak, result = allocated(call)
    assert kept == peak
    assert kept in memory_of(result)


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
    result_alone(lambda: cipher(K, 0, N12, data, out=out))  # the number of bytes
    result_alone(lambda: update_into(data, out))
    for name in KEYS:
        key = getattr(native_api, name)(K)
        nonce, buf, in_place, opened = (
            bytes(key.NONCE_SIZE),
            bytearray(size + 16),
            bytearray(data),
            bytearray(size),
        )
        encrypt_into, decrypt_into = key.encrypt_into, key.decrypt_into
        result_alone(lambda: encrypt_into(nonce, data, data, buf))  # noqa: B023
        result_alone(lambda: decrypt_into(nonce, buf, data, opened))  # noqa: B023
        encrypt_in_place, decrypt_in_place = key.encrypt_in_place, key.decrypt_in_place
        result_alone(lambda: encrypt_in_place(nonce, in_place, data))  # noqa: B023
        tag = encrypt_in_place(nonce, in_place)
        # It cannot decrypt twice, as allocated() would: so without the rounds that warm up.
        decrypt_in_place(nonce, in_place, tag)
        tag = encrypt_in_place(nonce, in_place)
        idle, busy = measure(nothing), measure(lambda: decrypt_in_place(nonce, in_place, tag))  # noqa: B023
        assert busy == (*idle[:2], None)


@pytest.mark.parametrize("size", SIZES)
def test_apart_the_pair_and_its_two_are_allocated(native_api: ModuleType, size: int) -> None:
    data = bytes(size)
    for name in KEYS:
        key = getattr(native_api, name)(K)
        nonce, encrypt_detached, decrypt_detached = (
            bytes(key.NONCE_SIZE),
            key.encrypt_detached,
            key.decrypt_detached,
        )
        result_alone(lambda: encrypt_detached(nonce, data, data))  # noqa: B023
        ciphertext, tag = encrypt_detached(nonce, data)
        result_alone(lambda: decrypt_detached(nonce, ciphertext, tag))  # noqa: B023


@pytest.mark.parametrize("size", SIZES)
def test_parts_allocate_their_result(native_api: ModuleType, size: int) -> None:
    data, out = bytearray(size), bytearray(size)
    for name in MADE:
        thing = make(native_api, name)
        update, update_into = thing.update, thing.update_into
        result_alone(lambda: update(data))  # noqa: B023
        result_alone(lambda: update_into(data, out))  # noqa: B023
    mac = make(native_api, "Poly1305")
    update, digest = mac.update, mac.digest
    assert allocated(lambda: update(data)) == (0, 0, None)
    result_alone(digest)


def has_asked_for_huge_pages(address: int) -> bool:
    """Whether the mapping at the address is marked so; False where Linux does not tell."""
    smaps = Path("/proc/self/smaps")
    inside = False
    for line in smaps.read_text(encoding="ascii").splitlines() if smaps.exists() else ():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return "hg" in line.split()
    return False


def system_keeps_the_advice() -> bool:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return False
    memory = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return False
    return has_asked_for_huge_pages(ctypes.addressof(ctypes.c_char.from_buffer(memory)))


# Linux has them, with a kernel built so; qemu, which runs the arm64 suite, does not say what was asked for.
@pytest.mark.skipif(not system_keeps_the_advice(), reason="the system has no huge pages to ask for")
def test_large_results_ask_for_huge_pages(native_api: ModuleType) -> None:
    aead, data = native_api.ChaCha20Poly1305(K), bytes(40 << 20)  # malloc gives it a mapping of its own
    sealed = aead.encrypt(N12, data)
    opened = aead.decrypt(N12, sealed)
    assert opened == data
    for result in (sealed, opened):
        assert has_asked_for_huge_pages(id(result) + (20 << 20))
    assert not has_asked_for_huge_pages(id(data) + (20 << 20))
    one_huge_page_inside = aead.encrypt(N12, bytes(4 << 20))
    assert has_asked_for_huge_pages(id(one_huge_page_inside) + (2 << 20))


def test_threads_take_nothing_of_pythons_memory(native_api: ModuleType) -> None:
    data, size = bytes(2**20), sys.getsizeof(2**20)
    aead, update_into = native_api.ChaCha20Poly1305(K), native_api.ChaCha20(K, N12).update_into
    sealed, out = aead.encrypt(N12, data), bytearray(2**20 + 16)
    result_alone(lambda: aead.encrypt(N12, data, threads=4))
    result_alone(lambda: aead.decrypt(N12, sealed, threads=4))
    assert allocated(lambda: aead.encrypt_into(N12, data, None, out, threads=4))[:2] == (size, size)
    plain = memoryview(out)[:-16]
    assert allocated(lambda: aead.decrypt_into(N12, sealed, None, plain, threads=4))[:2] == (size, size)
    assert allocated(lambda: update_into(data, plain, threads=4))[:2] == (size, size)


def test_verifying_and_comparing_allocate_nothing(native_api: ModuleType) -> None:
    verify, tag = native_api.poly1305.verify, native_api.poly1305.mac(K, MESSAGE)
    assert allocated(lambda: verify(K, MESSAGE, tag)) == (0, 0, None)
    assert allocated(lambda: tag == TAG) == (0, 0, False)


@pytest.mark.parametrize("name", [name for name, good in ENTRIES.items() if good])
def test_refused_calls_leave_nothing_behind(native_api: ModuleType, name: str) -> None:
    call, good = entry(native_api, name), ENTRIES[name]
    bad = [good | {p: object()} for p in good]
    if ".decrypt" in name and not name.endswith(("_many", "_packed")):  # which raise nothing for a forged one
        forged = "tag" if "tag" in good else "data"
        bad.append(good | {forged: good[forged][:-1] + b"x"})

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
    assert leaves_nothing(refused)
    assert [sys.getrefcount(value) for value in counted] == references


def test_objects_are_freed(native_api: ModuleType) -> None:
    def use() -> None:
        for name, good in (("ChaCha20Poly1305", {"key": RFC.key}), ("XChaCha20Poly1305", {"key": DRAFT.key})):
            aead = getattr(native_api, name)(**good)
            nonce = bytes(aead.NONCE_SIZE)
            aead.decrypt(nonce, aead.encrypt(nonce, MESSAGE))
            packets = aead.encrypt_many([nonce, bytearray(nonce)], [MESSAGE, b""], [None, MESSAGE])
            aead.decrypt_many((nonce, nonce), [memoryview(packets[0]), b""], None)
            with suppress(native_api.InvalidNonce):
                aead.encrypt_many([nonce, b"nonce"], [memoryview(MESSAGE), MESSAGE])
            aead.encryptor(nonce, MESSAGE).update(MESSAGE)
            aead.unverified_decryptor(nonce, MESSAGE).update(MESSAGE)
        for name in STREAMS:
            with make(native_api, name) as stream:
                stream.update(MESSAGE)
            make(native_api, name).keystream(100)
        make(native_api, "Encryptor").finalize()
        make(native_api, "UnverifiedDecryptor").verify(ENTRIES["UnverifiedDecryptor.verify"]["tag"])
        with suppress(native_api.InvalidTag):
            make(native_api, "UnverifiedDecryptor").verify(TAG)
        with suppress(native_api.InvalidTag), make(native_api, "UnverifiedDecryptor"):
            pass
        make(native_api, "Poly1305").update(MESSAGE)
        make(native_api, "Poly1305").digest()
        native_api.Tag(TAG)

    use()
    gc.collect()
    kinds = [getattr(native_api, name) for name in TYPES]
    references = [sys.getrefcount(kind) for kind in kinds]
    assert leaves_nothing(use)
    assert [sys.getrefcount(kind) for kind in kinds] == references  # heap types are counted by their objects


REFUSALS = (TypeError, ValueError, BufferError, OverflowError, chapoly.InvalidTag)


def arguments_refused(name: str) -> list[dict[str, Any]]:
    """The good arguments with one at a time replaced by another type, length, value or layout."""
    good, refused = ENTRIES[name], []
    worse: list[Any] = [object(), "text", 1.5, -1, 2**70, b"\x01" * 7, memoryview(bytearray(64))[::2]]
    worse += [[object()], [b"\x01" * 7], [b"", b""]]
    for parameter in good:
        before = len(refused)
        for value in (*worse, forged(good[parameter])):
            try:
                entry(chapoly, name)(**good | {parameter: value})
            except REFUSALS:
                refused.append(good | {parameter: value})
        assert len(refused) > before, f"anything will do for {parameter}"
    return refused


def forged(value: Any) -> Any:
    return value[:-1] + bytes([value[-1] ^ 1]) if isinstance(value, bytes) and value else None


class MallocInfo(ctypes.Structure):
    """mallinfo2(3) of glibc."""

    _fields_ = (
        ("before", ctypes.c_size_t * 7),
        ("uordblks", ctypes.c_size_t),
        ("after", ctypes.c_size_t * 2),
    )


def in_use() -> tuple[int, int]:
    """The blocks that CPython has given out, and the bytes that malloc has, where the C library tells."""
    gc.collect()
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if mallinfo is None:
        return sys.getallocatedblocks(), 0
    mallinfo.restype = MallocInfo
    return sys.getallocatedblocks(), mallinfo().uordblks


def counted(values: Iterable[Any]) -> list[int]:
    """How many references there are to each, without the immortal ones, of which CPython keeps no count."""
    return [count for count in map(sys.getrefcount, values) if count < 2**29]


@pytest.mark.parametrize("name", ENTRIES)
def test_a_hundred_thousand_calls_grow_nothing(request: pytest.FixtureRequest, name: str) -> None:
    tracemalloc.stop()
    good, refused = ENTRIES[name], arguments_refused(name)

    def calls(number: int) -> None:
        for _, arguments in zip(range(number), itertools.cycle([good, *refused]), strict=False):
            with suppress(*REFUSALS):
                entry(chapoly, name)(**arguments)

    number = (
        10_000 if request.config.getoption("--one-kernel") else 100_000
    )  # as elsewhere there were so many
    if request.config.getoption("--pure-vectors-only") or chapoly.kernel == "pure":
        number = 2_000  # which take as long
    calls(1000)
    few = number / 200  # what one of a hundred calls loses is more
    for _ in range(20):  # the interpreter keeps something now and then; what calls keep, they keep every time
        before = [*in_use(), *counted(good.values())]
        calls(number)
        after = [*in_use(), *counted(good.values())]
        grown = [b - a for a, b in zip(before, after, strict=True)]
        if all(growth < few for growth in grown):
            return
    pytest.fail(f"blocks, bytes and references have grown by {grown}")


@pytest.mark.parametrize("name", ENTRIES)
def test_when_memory_is_short_nothing_has_happened(native_api: ModuleType, name: str) -> None:
    testcapi = pytest.importorskip("_testcapi", reason="this CPython comes without its test modules")
    expected = entry(native_api, name)(**ENTRIES[name])
    for nth in range(100):
        call, good, failed, result = entry(native_api, name), ENTRIES[name], False, None
        before = {p: bytes(value) for p, value in good.items() if isinstance(value, bytearray)}
        given = [value for value in good.values() if value is not None]
        references = counted(given)
        testcapi.set_nomemory(nth, nth + 1)  # the allocation of this number fails
        try:
            result = call(**good)
        except MemoryError:
            failed = True
        finally:
            testcapi.remove_mem_hooks()
        if failed:
            assert {p: bytes(good[p]) for p in before} == before
            assert counted(given) == references
            result = call(**good)  # which computes what it would have
        if type(result) in (bytes, chapoly.Tag, tuple, list, str, int) and "generate" not in name:
            assert result == expected
        assert type(result) is type(expected)
        if not failed:
            assert nth >= (0 if name.endswith("tell") else 1)
            return
    pytest.fail("it never succeeds")


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
