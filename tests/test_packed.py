"""Many messages in one buffer come out as by one call each, and nothing is written where nothing belongs."""

import array
import contextlib
import ctypes
import random
import struct
import sys
import threading
from collections.abc import Callable
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any

import pytest
from conftest import NATIVE_KERNELS, NO_NATIVE
from entries import K, refuses
from hypothesis import given
from hypothesis import strategies as st
from test_bad_input import AEAD_MAX, claiming
from test_batches import COUNTS, KEYS, flipped, mixed

import chapoly.testing


def int64(*values: int) -> "array.array[int]":
    return array.array("q", values)


class Packed:
    """Arguments for messages of these sizes from byte `first` on, and what one call each makes of them."""

    def __init__(self, api: ModuleType, owner: str, sizes: list[int], first: int = 0) -> None:
        rng = random.Random(f"{owner} {sizes} {first}")
        self.aead = getattr(api, owner)(K)
        self.header = rng.randbytes(13)
        self.nonces = [rng.randbytes(self.aead.NONCE_SIZE) for _ in sizes]
        self.plain = [rng.randbytes(size) for size in sizes]
        self.sealed = [
            self.aead.encrypt(nonce, data, self.header)
            for nonce, data in zip(self.nonces, self.plain, strict=True)
        ]
        self.first = first

    def arguments(self, messages: list[bytes], growth: int) -> dict[str, Any]:
        offsets = [*accumulate(map(len, messages), initial=self.first)]
        return {
            "nonces": b"".join(self.nonces),
            "data": bytes(self.first) + b"".join(messages) + bytes(self.first),
            "offsets": int64(*offsets),
            "out": bytearray(b"\x55" * (offsets[-1] + growth * len(messages))),
        }

    def encrypting(self) -> dict[str, Any]:
        return self.arguments(self.plain, 16) | {"associated_data": self.header}

    def decrypting(self) -> dict[str, Any]:
        failed = bytearray(b"\x55" * len(self.plain))
        return self.arguments(self.sealed, -16) | {"failed": failed, "associated_data": self.header}

    def both(self) -> list[tuple[Callable[..., int], dict[str, Any]]]:
        return [(self.aead.encrypt_packed, self.encrypting()), (self.aead.decrypt_packed, self.decrypting())]


def untouched(arguments: dict[str, Any]) -> bool:
    return all(set(arguments.get(name, b"")) <= {0x55} for name in ("out", "failed"))


def parameters(*names: str) -> list[tuple[str, str]]:
    """These parameters of both methods."""
    both = {"encrypt_packed": set(names) - {"failed"}, "decrypt_packed": set(names)}
    return [(method, name) for method, all_ in both.items() for name in sorted(all_)]


@pytest.fixture
def packed(api: ModuleType) -> Packed:
    return Packed(api, "ChaCha20Poly1305", [64, 0, 100])


def call(packed: Packed, method: str, **changed: Any) -> tuple[int, dict[str, Any]]:
    good = packed.encrypting() if method == "encrypt_packed" else packed.decrypting()
    arguments = good | changed
    return getattr(packed.aead, method)(**arguments), arguments


# ---- Results. ----


@pytest.mark.parametrize("owner", KEYS)
@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("count", COUNTS)
def test_packed_messages_are_what_one_call_each_returns(
    api: ModuleType, owner: str, first: int, count: int
) -> None:
    for sizes in (mixed(count), [64] * count):
        packed = Packed(api, owner, sizes, first)
        (encrypt, encrypting), (decrypt, decrypting) = packed.both()
        before = {name: bytes(value) for name, value in encrypting.items()}
        assert encrypt(**encrypting) == sum(sizes) + 16 * count
        assert encrypting["out"] == b"\x55" * first + b"".join(packed.sealed)
        assert {name: bytes(value) for name, value in encrypting.items()} | {"out": before["out"]} == before
        before = {name: bytes(value) for name, value in decrypting.items()}
        assert decrypt(**decrypting) == 0
        assert decrypting["out"] == b"\x55" * first + b"".join(packed.plain)
        assert decrypting["failed"] == bytes(count)
        written = {"out": before["out"], "failed": before["failed"]}
        assert {name: bytes(value) for name, value in decrypting.items()} | written == before


@pytest.mark.parametrize("owner", KEYS)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(0, 300), max_size=80),
    first=st.integers(0, 20),
)
def test_any_layout_with_any_messages_forged(
    api: ModuleType, owner: str, data: st.DataObject, sizes: list[int], first: int
) -> None:
    packed = Packed(api, owner, sizes, first)
    (encrypt, encrypting), _ = packed.both()
    encrypt(**encrypting)
    assert encrypting["out"] == b"\x55" * first + b"".join(packed.sealed)
    forged = data.draw(st.sets(st.integers(0, len(sizes) - 1))) if sizes else set()
    for i in forged:
        at = data.draw(st.integers(0, len(packed.sealed[i]) - 1))
        packed.sealed[i] = flipped(packed.sealed[i], at)
    _, (decrypt, decrypting) = packed.both()
    assert decrypt(**decrypting) == len(forged)
    assert [*decrypting["failed"]] == [i in forged for i in range(len(sizes))]
    assert decrypting["out"] == b"\x55" * first + b"".join(
        bytes(size) if i in forged else plain
        for i, (size, plain) in enumerate(zip(sizes, packed.plain, strict=True))
    )


def test_associated_data_is_that_of_each_message(packed: Packed) -> None:
    for given_ in (None, b"", b"header", bytearray(b"header"), memoryview(b"header")):
        expected = b"".join(map(packed.aead.encrypt, packed.nonces, packed.plain, [given_] * 3))
        _, arguments = call(packed, "encrypt_packed", associated_data=given_)
        assert arguments["out"] == expected
    positional = packed.encrypting()
    del positional["associated_data"]
    packed.aead.encrypt_packed(*positional.values())
    assert positional["out"] == b"".join(map(packed.aead.encrypt, packed.nonces, packed.plain))
    with_none = packed.decrypting() | {"data": positional["out"], "associated_data": None}
    assert packed.aead.decrypt_packed(**with_none) == 0


@pytest.mark.parametrize("owner", KEYS)
def test_one_bad_message_is_zeros_wherever_it_stands(api: ModuleType, owner: str) -> None:
    sizes = [64, 0, 1000, 64, 64, 2000, 5]
    for i in range(len(sizes)):
        for at in {0, sizes[i], sizes[i] + 15}:
            packed = Packed(api, owner, sizes)
            packed.sealed[i] = flipped(packed.sealed[i], at)
            packed.plain[i] = bytes(sizes[i])
            result, arguments = call(packed, "decrypt_packed")
            assert result == 1
            assert [*arguments["failed"]] == [int(j == i) for j in range(len(sizes))]
            assert arguments["out"] == b"".join(packed.plain)


# ---- Offsets. ----


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_any_buffer_of_native_64_bit_integers(packed: Packed, method: str) -> None:
    good = (packed.encrypting() if method == "encrypt_packed" else packed.decrypting())["offsets"]
    content = good.tobytes()
    misaligned = bytearray(b"\0" + content)
    shorter = "l" if struct.calcsize("l") == 8 else "q"
    for offsets in [
        memoryview(content).cast("q"),
        memoryview(content).cast(shorter),
        memoryview(content).cast("@q"),
        memoryview(misaligned)[1:].cast("q"),
        memoryview(content).cast("q", (2, 2)),
        (ctypes.c_int64 * 4).from_buffer_copy(content),
    ]:
        result, arguments = call(packed, method, offsets=offsets)
        expected = packed.sealed if method == "encrypt_packed" else packed.plain
        assert arguments["out"] == b"".join(expected)
        assert result == (len(arguments["out"]) if method == "encrypt_packed" else 0)


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_arrays_of_numpy_need_no_copy(packed: Packed, method: str) -> None:
    numpy = pytest.importorskip("numpy", reason="NumPy is not on this machine")
    good = packed.encrypting() if method == "encrypt_packed" else packed.decrypting()
    arrays = {name: numpy.array([*value], numpy.uint8) for name, value in good.items()}
    arrays["offsets"] = numpy.array(good["offsets"], numpy.int64)
    if "failed" in arrays:
        arrays["failed"] = numpy.ones(3, bool)
    getattr(packed.aead, method)(**arrays)
    expected = packed.sealed if method == "encrypt_packed" else packed.plain
    assert arrays["out"].tobytes() == b"".join(expected)
    assert not arrays.get("failed", numpy.zeros(3)).any()
    swapped = numpy.dtype(numpy.int64).newbyteorder()
    for kind, shown in [
        (swapped, ">q" if sys.byteorder == "little" else "<q"),
        (numpy.uint64, None),
        (numpy.int32, "i"),
        (numpy.float64, "d"),
    ]:
        wrong = arrays["offsets"].astype(kind)
        text = f"offsets must be int64, got items of format '{shown or memoryview(wrong).format}'"
        with refuses(TypeError, text):
            getattr(packed.aead, method)(**arrays | {"offsets": wrong})


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_offsets_of_other_types(packed: Packed, method: str) -> None:
    good = (packed.encrypting() if method == "encrypt_packed" else packed.decrypting())["offsets"]
    for wrong in [
        good.tobytes(),
        bytearray(good.tobytes()),
        array.array("i", good),
        array.array("Q", good),
        array.array("d", good),
        array.array("h", good),
        memoryview(good).cast("B").cast("N"),
    ]:
        text = f"offsets must be int64, got items of format '{memoryview(wrong).format}'"
        with refuses(TypeError, text):
            call(packed, method, offsets=wrong)
    with refuses(TypeError, "offsets must be bytes-like, not list"):
        call(packed, method, offsets=[0, 64, 64, 164])
    with refuses(BufferError, "offsets must be C-contiguous"):
        call(packed, method, offsets=memoryview(int64(*range(8)))[::2])


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_another_number_of_offsets(api: ModuleType, method: str) -> None:
    for count in (0, 1, 3):
        packed = Packed(api, "XChaCha20Poly1305", [20] * count)
        for other in {0, 1, 2, 3, 4, 5, 100} - {count + 1}:
            words = "1 item" if count == 0 else f"{count + 1} items"
            with refuses(ValueError, f"offsets must have {words}, got {other}"):
                call(packed, method, offsets=int64(*range(other)))


def fault(offsets: list[int], size: int, *, sealed: bool) -> str | None:
    """What is wrong with these offsets into data of this size."""
    if not 0 <= offsets[0] <= size:
        return f"offsets[0] must be 0 to {size}, got {offsets[0]}"
    for i, (start, end) in enumerate(pairwise(offsets)):
        if not start <= end <= size:
            return f"offsets[{i + 1}] must be {start} to {size}, got {end}"
        if sealed and end - start < 16:
            return f"data[offsets[{i}]:offsets[{i + 1}]] must be at least 16 bytes, got {end - start}"
    return None


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
@given(
    offsets=st.lists(
        st.one_of(st.integers(-2, 130), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=6
    ).flatmap(lambda some: st.sampled_from([some, sorted(some)])),
    size=st.integers(0, 120),
)
def test_offsets_are_all_checked_before_anything_is_written(
    api: ModuleType, method: str, offsets: list[int], size: int
) -> None:
    sealed, count = method == "decrypt_packed", len(offsets) - 1
    wrong = fault(offsets, size, sealed=sealed)
    arguments: dict[str, Any] = {
        "nonces": bytes(12 * count),
        "data": bytes(size),
        "offsets": int64(*offsets),
        "out": bytearray(
            b"\x55" * (0 if wrong else offsets[-1] - 16 * count if sealed else offsets[-1] + 16 * count)
        ),
    }
    if sealed:
        arguments["failed"] = bytearray(b"\x55" * count)
    run = getattr(api.ChaCha20Poly1305(K), method)
    if wrong is None:
        assert run(**arguments) == (count if sealed else len(arguments["out"]) - offsets[0])
        assert arguments["out"][: offsets[0]] == b"\x55" * offsets[0]
    else:
        arguments["out"] = bytearray(b"\x55" * 300)
        with refuses(ValueError, wrong):
            run(**arguments)
        assert untouched(arguments)


def test_a_message_too_short_for_a_tag_is_refused(packed: Packed) -> None:
    # The results would overlap: a message of 5 bytes would need -11 bytes of room.
    for short in range(16):
        offsets = int64(0, 80, 80 + short, 80 + short + 100)
        text = f"data[offsets[1]:offsets[2]] must be at least 16 bytes, got {short}"
        with refuses(ValueError, text):
            call(packed, "decrypt_packed", offsets=offsets)


@pytest.mark.parametrize(
    ("method", "most"), [("encrypt_packed", AEAD_MAX), ("decrypt_packed", AEAD_MAX + 16)]
)
def test_a_message_beyond_the_limit(api: ModuleType, method: str, most: int) -> None:
    arguments: dict[str, Any] = {"nonces": bytes(24), "data": claiming(2**40), "out": bytearray(7)}
    if method == "decrypt_packed":
        arguments["failed"] = bytearray(2)
    run = getattr(api.ChaCha20Poly1305(K), method)
    for end in (most + 17, 2**39, 2**40):
        text = f"data[offsets[1]:offsets[2]] must be at most {most} bytes, got {end - 16}"
        with refuses(api.CounterOverflow, text):
            run(**arguments, offsets=int64(0, 16, end))
    size = most + 32 if method == "encrypt_packed" else most - 32
    with refuses(ValueError, f"out must be {16 + size} bytes, got 7"):
        run(**arguments, offsets=int64(0, 16, 16 + most))


# ---- The other arguments. ----


@pytest.mark.parametrize("owner", KEYS)
@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_nonces_must_be_whole(api: ModuleType, owner: str, method: str) -> None:
    packed = Packed(api, owner, [20] * 3)
    n = packed.aead.NONCE_SIZE
    for size in {1, 8, 11, 13, 23, 25, 35, 37, 3 * n - 1, 3 * n + 1}:
        if size % n:
            with refuses(api.InvalidNonce, f"nonces must be a multiple of {n} bytes, got {size}"):
                call(packed, method, nonces=bytes(size))
    for count in (0, 1, 2, 4):
        with refuses(ValueError, f"offsets must have {count + 1} item{'s'[:count]}, got 4"):
            call(packed, method, nonces=bytes(n * count))


@pytest.mark.parametrize(("method", "name"), parameters("out", "failed"))
def test_outputs_of_the_wrong_size(packed: Packed, method: str, name: str) -> None:
    right = 3 if name == "failed" else 164 + 16 * 3 if method == "encrypt_packed" else 164
    for n in {0, 1, right - 1, right + 1, 1000}:
        output = bytearray(b"\x55" * n)
        with refuses(ValueError, f"{name} must be {right} bytes, got {n}"):
            call(packed, method, **{name: output})
        assert untouched({name: output})


@pytest.mark.parametrize(("method", "name"), parameters("out", "failed"))
def test_outputs_that_cannot_be_written(packed: Packed, method: str, name: str) -> None:
    for read_only in (bytes(500), memoryview(bytearray(500)).toreadonly()):
        with refuses(TypeError, f"{name} must be writable"):
            call(packed, method, **{name: read_only})


@pytest.mark.parametrize(
    ("method", "name"), parameters("nonces", "data", "offsets", "out", "failed", "associated_data")
)
def test_what_is_no_buffer(packed: Packed, method: str, name: str) -> None:
    for wrong in ("text", 5, 1.5, [1, 2], object(), None):
        if not (wrong is None and name == "associated_data"):
            with refuses(TypeError, f"{name} must be bytes-like, not {type(wrong).__name__}"):
                call(packed, method, **{name: wrong})
    with refuses(BufferError, f"{name} must be C-contiguous"):
        call(packed, method, **{name: memoryview(bytearray(100))[::2]})


@pytest.mark.parametrize(
    ("method", "name"), parameters("nonces", "data", "offsets", "out", "failed", "associated_data")
)
def test_exports_end_with_the_call(packed: Packed, method: str, name: str) -> None:
    good = packed.encrypting() if method == "encrypt_packed" else packed.decrypting()
    values = {n: v if n == "offsets" else bytearray(v) for n, v in good.items()}
    call(packed, method, **values)
    values[name].append(0)
    values[name].pop()
    with pytest.raises((TypeError, ValueError)):
        call(packed, method, **values | {name: object()})
    for value in values.values():
        value.append(0)


def place(memory: bytearray, at: int, content: bytes) -> memoryview:
    memory[at : at + len(content)] = content
    return memoryview(memory)[at : at + len(content)]


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_outputs_overlap_nothing(packed: Packed, method: str) -> None:
    good = packed.encrypting() if method == "encrypt_packed" else packed.decrypting()
    for output in ("out", "failed") if method == "decrypt_packed" else ("out",):
        for other in good:
            if other == output or (output, other) == ("out", "failed"):
                continue
            memory, size = bytearray(1200), len(bytes(good[output]))
            given = place(memory, 400, bytes(good[other]))
            if other == "offsets":
                given = given.cast("q")
            for at in (400 - size + 1, 399, 400, 401, 400 + len(bytes(good[other])) - 1):
                target = memoryview(memory)[at : at + size]
                before = bytes(memory)
                with refuses(ValueError, f"{output} overlaps {other}"):
                    call(packed, method, **{output: target, other: given})
                assert memory == before
            for at in (400 - size, 400 + len(bytes(good[other]))):  # side by side
                target = memoryview(memory)[at : at + size]
                call(packed, method, **{output: target, other: given})
                expected = packed.sealed if method == "encrypt_packed" else packed.plain
                assert target == (b"".join(expected) if output == "out" else bytes(3))


def test_nothing_overlaps_an_empty_output(api: ModuleType) -> None:
    packed = Packed(api, "ChaCha20Poly1305", [0, 0])
    _, (decrypt, decrypting) = packed.both()
    memory = bytearray(decrypting["data"])
    assert decrypt(**decrypting | {"data": memory, "out": memoryview(memory)[5:5]}) == 0
    empty = Packed(api, "ChaCha20Poly1305", [])
    for run, arguments in empty.both():
        assert run(**arguments) == 0


@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_parameters_are_checked_in_order(packed: Packed, method: str) -> None:
    good = packed.encrypting() if method == "encrypt_packed" else packed.decrypting()
    # A value of the right type that is wrong, for those that can be.
    wrong = {"nonces": bytes(7), "offsets": int64(), "out": bytearray(), "failed": bytearray()}
    for kind in (dict.fromkeys(good, object()), {name: wrong[name] for name in good if name in wrong}):
        remaining = good | kind
        for name in kind:
            with pytest.raises((TypeError, ValueError), match=f"^{name} must "):
                getattr(packed.aead, method)(**remaining)
            remaining[name] = good[name]
        getattr(packed.aead, method)(**remaining)


# ---- Threads. ----


@pytest.mark.parametrize("kernel", NATIVE_KERNELS[:1] or [NO_NATIVE])
@pytest.mark.parametrize("method", ["encrypt_packed", "decrypt_packed"])
def test_offsets_that_change_during_the_call_lead_nowhere_else(kernel: str, method: str) -> None:
    """It is forbidden, but must not read or write outside of the buffers."""
    with chapoly.testing.use_kernel(kernel):
        packed = Packed(chapoly, "ChaCha20Poly1305", [200] * 10000)
        good = packed.encrypting() if method == "encrypt_packed" else packed.decrypting()
        size, offsets = len(good["out"]), good["offsets"]
        memory, right = bytearray(b"\xaa" * (3 * size)), offsets[:]
        good["out"] = memoryview(memory)[size : 2 * size]
        begun = threading.Event()

        def change(i: int, wrong: int) -> None:
            begun.wait()  # after that, the GIL is free when the offsets have been checked
            offsets[i] = wrong

        last = len(right) - 1
        for i in (1, last // 2, last - 1, last) * 2:
            for wrong in (right[i] + 300, right[i] - 300, -(2**63), 2**63 - 1):
                thread = threading.Thread(target=change, args=(i, wrong))
                thread.start()
                begun.set()
                with contextlib.suppress(ValueError):  # if it came too early
                    getattr(packed.aead, method)(**good)
                thread.join()
                begun.clear()
                offsets[i] = right[i]
                assert memory.count(0xAA, 0, size) == memory.count(0xAA, 2 * size) == size
