"""Many messages in one call come out as by one call each, and a bad one spoils no other."""

import array
import collections
import ctypes
import os
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest
from entries import AEADS, DATA, K, entry, refuses
from hypothesis import given
from hypothesis import strategies as st
from test_bad_input import AEAD_MAX, claiming
from test_buffers import BUFFERS

KEYS = ["ChaCha20Poly1305", "XChaCha20Poly1305"]
COUNTS = [
    0,
    1,
    2,
    7,
    8,
    9,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    65,
    130,
]  # about the lanes and windows of all kernels
SIZES = [0, 1, 15, 16, 63, 64, 65, 114, 256, 447, 448, 449, 960, 961, 1420, 1985, 2500]


class Batch:
    """Arguments for messages of these sizes, and what one call each makes of them."""

    def __init__(self, api: ModuleType, owner: str, sizes: list[int], seed: object = None) -> None:
        rng = random.Random(f"{owner} {sizes} {seed}")
        self.api, self.owner, self.count = api, owner, len(sizes)
        self.nonce_size = 24 if owner[0] in "xX" else 12
        own_keys = {} if owner in KEYS else {"keys": [rng.randbytes(32) for _ in sizes]}
        self.plain: dict[str, Any] = own_keys | {
            "nonces": [rng.randbytes(self.nonce_size) for _ in sizes],
            "datas": [rng.randbytes(size) for size in sizes],
            "associated_datas": [rng.randbytes(rng.choice([0, 1, 13, 16, 600])) for _ in sizes],
        }
        encrypt = entry(api, f"{owner}.encrypt")
        # Copies: under AddressSanitizer nobody may read the NUL behind a result, as subclasses of bytes do.
        results = [encrypt(*message) for message in zip(*self.plain.values(), strict=True)]
        self.sealed = self.plain | {"datas": [bytes(bytearray(result)) for result in results]}

    def encrypt(self, **changed: Any) -> list[bytes]:
        return entry(self.api, f"{self.owner}.encrypt_many")(**self.plain | changed)

    def decrypt(self, **changed: Any) -> list[bytes | None]:
        return entry(self.api, f"{self.owner}.decrypt_many")(**self.sealed | changed)

    def both(self) -> list[tuple[Callable[..., Any], dict[str, Any], list[bytes]]]:
        """Each direction: the call, its arguments, and what it must return."""
        return [
            (self.encrypt, self.plain, self.sealed["datas"]),
            (self.decrypt, self.sealed, self.plain["datas"]),
        ]


def mixed(count: int) -> list[int]:
    """Sizes of all kinds next to each other, the longer ones less often."""
    rng = random.Random(count)
    return [rng.choice(SIZES[: rng.choice([4, 8, len(SIZES)])]) for _ in range(count)]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


# ---- Lists. ----


@pytest.mark.parametrize("owner", AEADS)
@pytest.mark.parametrize("count", COUNTS)
def test_a_batch_is_what_one_call_each_returns(api: ModuleType, owner: str, count: int) -> None:
    for sizes in (mixed(count), [64] * count):
        batch = Batch(api, owner, sizes)
        for call, _, expected in batch.both():
            result = call()
            assert type(result) is list
            assert {type(message) for message in result} <= {bytes}
            assert result == expected


@pytest.mark.parametrize("owner", KEYS)
@given(data=st.data(), sizes=st.lists(st.integers(0, 300), max_size=20), seed=st.integers())
def test_any_batch_with_any_messages_forged(
    api: ModuleType, owner: str, data: st.DataObject, sizes: list[int], seed: int
) -> None:
    batch = Batch(api, owner, sizes, seed)
    assert batch.encrypt() == batch.sealed["datas"]
    datas, expected = list(batch.sealed["datas"]), list(batch.plain["datas"])
    for i in data.draw(st.sets(st.integers(0, len(sizes) - 1))) if sizes else ():
        length = data.draw(st.integers(0, len(datas[i])))
        datas[i] = datas[i][:length] if length < 16 else flipped(datas[i], length - 1)
        expected[i] = None
    assert batch.decrypt(datas=datas) == expected


@pytest.mark.parametrize("owner", AEADS)
def test_a_bad_message_is_none_wherever_it_stands(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [0, 64, 5, 1000, 200, 64, 2000, 16, 15])
    for i in range(batch.count):
        expected: list[bytes | None] = [*batch.plain["datas"]]
        expected[i] = None
        sealed = batch.sealed["datas"][i]
        bad = [sealed[:n] for n in (0, 1, 15, 16, len(sealed) - 1)] + [sealed + b"\0", b"\0" + sealed]
        bad += [flipped(sealed, at) for at in (0, -17, -16, -1) if at >= -len(sealed)]
        for wrong in bad:
            if wrong != sealed:
                changed = [*batch.sealed["datas"]]
                changed[i] = wrong
                assert batch.decrypt(datas=changed) == expected
        for name in batch.sealed.keys() - {"datas"}:
            changed = [*batch.sealed[name]]
            changed[i] = flipped(changed[i], 0) if changed[i] else b"x"
            assert batch.decrypt(**{name: changed}) == expected


@pytest.mark.parametrize("owner", AEADS)
def test_a_batch_of_nothing_but_bad_messages(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64] * 70)
    assert batch.decrypt(datas=[b""] * 70) == [None] * 70
    assert batch.decrypt(associated_datas=b"other") == [None] * 70
    # The bad ones may be every second: the good ones are computed together all the same.
    every_second = [sealed if i % 2 else b"short" for i, sealed in enumerate(batch.sealed["datas"])]
    assert batch.decrypt(datas=every_second) == [
        plain if i % 2 else None for i, plain in enumerate(batch.plain["datas"])
    ]


@pytest.mark.parametrize("owner", AEADS)
def test_associated_data_for_none_for_all_or_for_each(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64, 0, 100])
    encrypt = entry(api, f"{owner}.encrypt")
    columns = [value for name, value in batch.plain.items() if name != "associated_datas"]
    for given_, each in [
        (None, [None] * 3),
        ([None] * 3, [b""] * 3),
        (b"", [None] * 3),
        (b"header", [b"header"] * 3),
        (bytearray(b"header"), [b"header"] * 3),
        (memoryview(b"header"), [b"header"] * 3),
        (array.array("H", [1, 2]), [array.array("H", [1, 2]).tobytes()] * 3),
        ([b"a", None, b"c"], [b"a", b"", b"c"]),
        ((b"a", bytearray(b"b"), memoryview(b"c")), [b"a", b"b", b"c"]),
    ]:
        expected = [encrypt(*message) for message in zip(*columns, each, strict=True)]
        assert batch.encrypt(associated_datas=given_) == expected
        assert batch.decrypt(datas=expected, associated_datas=given_) == batch.plain["datas"]
    without = {name: value for name, value in batch.plain.items() if name != "associated_datas"}
    assert entry(api, f"{owner}.encrypt_many")(**without) == batch.encrypt(associated_datas=None)


class Sequence:
    """The least that is a sequence to Python."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __getitem__(self, i: int) -> Any:
        return self.items[i]


class List(list[Any]):
    """A list that says other things than it holds."""

    def __iter__(self) -> Iterator[Any]:
        return reversed([*super().__iter__()])


@pytest.mark.parametrize("owner", AEADS)
def test_any_sequence_of_any_buffers(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64, 2, 100, 1420])
    for call, arguments, expected in batch.both():
        for kind in (tuple, collections.deque, Sequence, lambda items: List(reversed(items))):
            assert call(**{name: kind(value) for name, value in arguments.items()}) == expected
        for name, value in arguments.items():
            for kind_of_buffer, buffer in BUFFERS.items():
                items = [buffer(item) if item else bytearray(item) for item in value]
                assert call(**{name: items}) == expected, kind_of_buffer
                mixture = [item if i % 2 else value[i] for i, item in enumerate(items)]
                assert call(**{name: mixture}) == expected, kind_of_buffer


@pytest.mark.parametrize("owner", AEADS)
def test_the_same_object_at_every_index(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [50] * 20)
    same = {name: [bytearray(value[0])] * 20 for name, value in batch.plain.items()}
    assert batch.encrypt(**same) == [batch.sealed["datas"][0]] * 20
    same["datas"] = [memoryview(batch.sealed["datas"][0])] * 20
    assert batch.decrypt(**same) == [batch.plain["datas"][0]] * 20


def test_rows_of_an_array_are_items(api: ModuleType) -> None:
    numpy = pytest.importorskip("numpy", reason="NumPy is not on this machine")
    batch = Batch(api, "ChaCha20Poly1305", [64] * 10)
    nonces = numpy.frombuffer(b"".join(batch.plain["nonces"]), numpy.uint8).reshape(10, 12)
    datas = numpy.frombuffer(b"".join(batch.plain["datas"]), numpy.uint64).reshape(10, 8)
    assert batch.encrypt(nonces=nonces, datas=datas) == batch.sealed["datas"]


# ---- What the caller does wrong is named, with its index, before anything is computed. ----


def lists(batch: Batch) -> list[tuple[Callable[..., Any], dict[str, Any], str]]:
    return [(call, arguments, name) for call, arguments, _ in batch.both() for name in arguments]


@pytest.mark.parametrize("owner", AEADS)
def test_items_of_the_wrong_size(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64] * 5)
    for call, arguments, name in lists(batch):
        size, error = {
            "keys": (32, api.InvalidKey),
            "nonces": (batch.nonce_size, api.InvalidNonce),
        }.get(name, (None, None))
        for wrong in (0, 8, 12, 24, 31, 33) if size else ():
            if wrong != size:
                for i in range(batch.count):
                    items = [*arguments[name]]
                    items[i] = bytearray(wrong) if i % 2 else bytes(wrong)
                    with refuses(error, f"{name}[{i}] must be {size} bytes, got {wrong}"):
                        call(**{name: items})


@pytest.mark.parametrize("owner", AEADS)
def test_items_that_are_no_buffers(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64] * 5)
    for call, arguments, name in lists(batch):
        for i in range(batch.count):
            for wrong in ("text", 32, 1.5, [b"x"], object(), None):
                if not (name == "associated_datas" and wrong is None):
                    items = [*arguments[name]]
                    items[i] = wrong
                    with refuses(TypeError, f"{name}[{i}] must be bytes-like, not {type(wrong).__name__}"):
                        call(**{name: items})
            items = [*arguments[name]]
            items[i] = memoryview(bytes(64))[::2]
            with refuses(BufferError, f"{name}[{i}] must be C-contiguous"):
                call(**{name: items})
            items[i] = memoryview(bytes(64))
            items[i].release()
            with refuses(ValueError, "operation forbidden on released memoryview object"):
                call(**{name: items})


@pytest.mark.parametrize("owner", AEADS)
def test_what_is_no_sequence(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64] * 2)
    for call, _, name in lists(batch):
        kind = "bytes-like or a sequence" if name == "associated_datas" else "a sequence"
        for wrong in ("text", "", 5, 1.5, object(), {}, {1: 2}, {b"x"}, iter([b"x"]), None):
            if not (name == "associated_datas" and wrong is None):
                with refuses(TypeError, f"{name} must be {kind}, not {type(wrong).__name__}"):
                    call(**{name: wrong})


def test_bytes_are_no_sequence_of_items(api: ModuleType) -> None:
    batch = Batch(api, "ChaCha20Poly1305", [64] * 2)
    with refuses(TypeError, "nonces[0] must be bytes-like, not int"):
        batch.encrypt(nonces=b"xx")
    with refuses(TypeError, "datas[0] must be bytes-like, not int"):
        batch.encrypt(datas=bytearray(b"xx"))


@pytest.mark.parametrize("owner", AEADS)
def test_sequences_of_other_lengths(api: ModuleType, owner: str) -> None:
    for count in (0, 1, 5):
        batch = Batch(api, owner, [64] * count)
        first = next(iter(batch.plain))  # says how many there are
        for call, _, name in lists(batch):
            for other in {0, 1, 4, 6, 200} - {count}:
                if name != first:
                    words = "1 item" if count == 1 else f"{count} items"
                    with refuses(ValueError, f"{name} must have {words}, got {other}"):
                        call(**{name: [object()] * other})


@pytest.mark.parametrize("owner", AEADS)
def test_a_message_beyond_the_limit(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64] * 3)
    for call, most in ((batch.encrypt, AEAD_MAX), (batch.decrypt, AEAD_MAX + 16)):
        for n in (most + 1, 2**40):
            with refuses(api.CounterOverflow, f"datas[1] must be at most {most} bytes, got {n}"):
                call(datas=[b"", claiming(n), object()])
        # At the limit it is something else that is wrong.
        with refuses(TypeError, "associated_datas[2] must be bytes-like, not str"):
            call(datas=[claiming(most)] * 3, associated_datas=[b"", b"", "text"])


@pytest.mark.parametrize("owner", AEADS)
def test_lists_are_checked_in_order(api: ModuleType, owner: str) -> None:
    batch = Batch(api, owner, [64] * 3)
    for call, arguments, _ in batch.both():
        for wrong in (object(), [object()], [b"x"] * 4, [object()] * 3, [b"", b"", object()]):
            remaining = dict.fromkeys(arguments, wrong)
            for name in arguments:
                with pytest.raises((TypeError, ValueError), match=rf"^{name}(\[\d\])? must "):
                    call(**remaining)
                remaining[name] = arguments[name]
            call(**remaining)


# ---- The items are held during the call, and let go after it. ----


class Emptying:
    """A sequence that does away with other lists, and with what they alone held, while it is read."""

    def __init__(self, items: list[Any], others: list[list[Any]]) -> None:
        self.items, self.others, self.litter = items, others, [b""]

    def __getitem__(self, i: int) -> Any:
        sizes = {len(item) for other in self.others for item in other}
        for other in self.others:
            other.clear()
        self.litter += [bytes([7]) * size for size in sizes for _ in range(100)]  # where freed items were
        return self.items[i]


class Telling(list[Any]):
    """A list that says when it has been read."""

    def __init__(self, items: list[Any]) -> None:
        super().__init__(items)
        self.read = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        self.read.set()


def held_by_lists_alone(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: [bytes(bytearray(item)) for item in value] for name, value in arguments.items()}


@pytest.mark.parametrize("owner", AEADS)
def test_lists_may_be_emptied_once_they_have_been_read(api: ModuleType, owner: str) -> None:
    for call, arguments, expected in Batch(api, owner, [100] * 40).both():
        fresh = held_by_lists_alone(arguments)
        last = Emptying([*fresh.pop("associated_datas")], [*fresh.values()])
        assert call(**fresh, associated_datas=last) == expected
        assert fresh["nonces"] == fresh["datas"] == []


@pytest.mark.parametrize("owner", AEADS)
def test_a_thread_may_empty_the_lists_during_the_call(api: ModuleType, owner: str) -> None:
    sizes = [20000] * (5 if api.kernel == "pure" else 100)
    for call, arguments, expected in Batch(api, owner, sizes).both():
        fresh = held_by_lists_alone(arguments)
        last = Telling(fresh.pop("associated_datas"))

        def empty(lists: list[list[Any]], when: threading.Event) -> None:
            when.wait()
            for each in lists:
                each.clear()

        thread = threading.Thread(target=empty, args=([*fresh.values(), last], last.read))
        thread.start()
        assert call(**fresh, associated_datas=last) == expected
        thread.join()


@pytest.mark.parametrize("owner", AEADS)
def test_exports_end_with_the_call(api: ModuleType, owner: str) -> None:
    for call, arguments, _ in Batch(api, owner, [100] * 10).both():
        for wrong in (None, *arguments):
            items = {name: [bytearray(item) for item in value] for name, value in arguments.items()}
            if wrong is None:
                assert len(call(**items)) == 10
            else:
                with pytest.raises(TypeError):
                    call(**items | {wrong: [*items[wrong][:7], object(), *items[wrong][8:]]})
            for value in items.values():
                for item in value:
                    item.append(0)
        header = bytearray(5)
        call(associated_datas=header)
        header.append(0)
        with pytest.raises(TypeError):
            call(datas=[object()] * 10, associated_datas=header)
        header.append(0)


@pytest.mark.parametrize("owner", KEYS)
def test_batches_under_one_key_object_in_many_threads(api: ModuleType, owner: str) -> None:
    aead = getattr(api, owner)(K)
    nonces = [i.to_bytes(aead.NONCE_SIZE, "big") for i in range(70)]
    datas = [DATA * (i % 9) for i in range(70)]
    expected = [aead.encrypt(nonce, data) for nonce, data in zip(nonces, datas, strict=True)]
    together = threading.Barrier(4)

    def work() -> bool:
        together.wait()
        return all(
            aead.encrypt_many(nonces, datas) == expected and aead.decrypt_many(nonces, expected) == datas
            for _ in range(2 if api.kernel == "pure" else 50)
        )

    with ThreadPoolExecutor(4) as pool:
        assert [future.result() for future in [pool.submit(work) for _ in range(4)]] == [True] * 4


# ---- When memory is short. ----


def uninitialised(size: int) -> bytes:
    """New bytes as CPython makes them: with what was in that memory before."""
    make = ctypes.pythonapi.PyBytes_FromStringAndSize
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_ssize_t]
    return make(None, size)


def is_left(mark: bytes, size: int) -> bool:
    """Whether memory that was freed, and is now given to objects of this size, holds the mark."""
    return any(mark in each for each in [uninitialised(size) for _ in range(1000)])


@pytest.mark.parametrize("owner", AEADS)
@pytest.mark.parametrize("count", [1, 2, 40])
def test_plaintexts_that_cannot_be_returned_are_wiped(native_api: ModuleType, owner: str, count: int) -> None:
    testcapi = pytest.importorskip("_testcapi", reason="this CPython comes without its test modules")
    # Only so with sanitizers, whose suite asks for malloc; every other suite in CI runs this test.
    if os.environ.get("PYTHONMALLOC"):
        pytest.skip("how CPython's own allocator leaves memory is known, and another is in use")
    size = 200
    batch = Batch(native_api, owner, [size] * count)
    mark = f"{native_api.kernel} {owner} {count}.".encode()  # that no other test leaves behind
    plaintexts = [mark.ljust(size)] * count
    sealed = tuple((batch.plain | {"datas": batch.encrypt(datas=plaintexts)}).values())
    decrypt = entry(native_api, f"{owner}.decrypt_many")

    failing, returned = 0, None
    while returned is None:
        testcapi.set_nomemory(failing, failing + 1)
        try:
            returned = decrypt(*sealed)
        except MemoryError:
            failing += 1
        finally:
            testcapi.remove_mem_hooks()
        assert not is_left(mark, size)
    assert returned == plaintexts
    assert failing >= count + 1  # each result, and the list for them
    del returned
    assert is_left(mark, size)  # so whatever is not wiped is seen
