"""Any C-contiguous buffer will do, at any alignment; exports end with the call; keys are copied."""

import array
import ctypes
import gc
import mmap
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from entries import (
    AEADS,
    DATA,
    ENTRIES,
    KEYED,
    KEYS,
    N12,
    TYPES,
    K,
    computed,
    entry,
    having,
    make,
    refuses,
)

BYTES = ("key", "nonce", "nonce16", "data", "associated_data", "message", "tag")


class Bytes(bytes):
    """A subclass, which no fast path for exact bytes may take for the thing itself."""


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint8), ("y", ctypes.c_uint8)]


def mapped(value: bytes) -> mmap.mmap:
    memory = mmap.mmap(-1, len(value))
    memory.write(value)
    return memory


def two_dimensional(value: bytes) -> memoryview:
    return memoryview(value).cast("B", (2, len(value) // 2) if len(value) % 2 == 0 else (1, len(value)))


def of_structures(value: bytes) -> Any:
    return (Point * (len(value) // 2)).from_buffer_copy(value) if len(value) % 2 == 0 else bytearray(value)


BUFFERS: dict[str, Callable[[bytes], Any]] = {
    "bytearray": bytearray,
    "bytes subclass": Bytes,
    "memoryview": memoryview,
    "memoryview of a bytearray": lambda value: memoryview(bytearray(value)),
    "memoryview of chars": lambda value: memoryview(value).cast("c"),
    "two dimensions": two_dimensional,
    "array": lambda value: array.array("B", value),
    "ctypes array": lambda value: (ctypes.c_char * len(value)).from_buffer_copy(value),
    "ctypes structures": of_structures,
    "mmap": mapped,
}


def outcome(name: str, api: ModuleType, arguments: dict[str, Any]) -> Any:
    """What the call returns and writes; for a new object, what it then computes."""
    result = entry(api, name)(**arguments)
    if name in TYPES or name.endswith("cryptor"):
        return computed(result)
    return result, bytes(arguments.get("buf", b""))


@pytest.mark.parametrize(("name", "parameter"), having(*BYTES))
def test_any_buffer(api: ModuleType, name: str, parameter: str) -> None:
    right = ENTRIES[name][parameter]
    expected = outcome(name, api, ENTRIES[name])
    for kind, buffer in BUFFERS.items():
        given = buffer(right)
        assert outcome(name, api, ENTRIES[name] | {parameter: given}) == expected, kind
        assert bytes(given) == right, kind


READ_ONLY = ("bytes subclass", "memoryview", "memoryview of chars", "two dimensions")


@pytest.mark.parametrize("name", [name for name, _ in having("buf")])
def test_any_writable_buffer_as_output(api: ModuleType, name: str) -> None:
    right = ENTRIES[name]["buf"]
    expected = outcome(name, api, ENTRIES[name])
    for kind, buffer in BUFFERS.items():
        given = buffer(bytes(right))
        if kind in READ_ONLY:
            with refuses(TypeError, "buf must be writable"):
                entry(api, name)(**ENTRIES[name] | {"buf": given})
            assert bytes(given) == right
        else:
            assert outcome(name, api, ENTRIES[name] | {"buf": given}) == expected, kind


@pytest.mark.parametrize("typecode", ["b", "H", "i", "q", "f", "d"])
def test_lengths_are_in_bytes(api: ModuleType, typecode: str) -> None:
    values = array.array(typecode, range(100))
    same = values.tobytes()
    assert api.poly1305.mac(K, values) == api.poly1305.mac(K, same)
    assert api.chacha20.cipher(K, 0, N12, values) == api.chacha20.cipher(K, 0, N12, same)
    sealed = api.chacha20poly1305.encrypt(K, N12, values, values)
    assert sealed == api.chacha20poly1305.encrypt(K, N12, same, same)
    out = array.array(typecode, bytes(len(same)))
    assert api.chacha20.cipher(K, 0, N12, values, out=out) == len(same)
    assert out.tobytes() == api.chacha20.cipher(K, 0, N12, same)
    assert api.ChaCha20(K, N12).update_into(values, values) == len(same)
    assert values.tobytes() == out.tobytes()


def test_a_fortran_order_buffer_is_not_contiguous(api: ModuleType) -> None:
    testbuffer = pytest.importorskip("_testbuffer", reason="this CPython comes without its test modules")
    fortran = testbuffer.ndarray(list(range(32)), shape=[4, 8], format="B", flags=testbuffer.ND_FORTRAN)
    for name, parameter in [
        ("chacha20.block", "key"),
        ("poly1305.mac", "message"),
        ("chacha20.cipher", "data"),
    ]:
        with refuses(BufferError, f"{parameter} must be C-contiguous"):
            entry(api, name)(**ENTRIES[name] | {parameter: fortran})
    c_order = testbuffer.ndarray(list(range(32)), shape=[4, 8], format="B")
    assert api.chacha20.block(c_order, 1, N12) == api.chacha20.block(K, 1, N12)


@pytest.mark.parametrize(
    ("name", "parameter"), [h for h in having("data", "associated_data", "message") if "_packed" not in h[0]]
)
def test_what_is_empty_is_contiguous(api: ModuleType, name: str, parameter: str) -> None:
    backwards = memoryview(b"")[::-1]
    assert not backwards.c_contiguous  # so memoryview says; CPython's PyBuffer_IsContiguous decides
    method = name.rpartition(".")[2]
    if parameter == "data" and method in ("decrypt", "decrypt_into"):
        with refuses(api.InvalidTag, "data must be at least 16 bytes, got 0"):
            entry(api, name)(**ENTRIES[name] | {parameter: backwards})
    elif method.startswith("decrypt") or method == "verify":
        with refuses(api.InvalidTag, "tag does not match"):
            entry(api, name)(**ENTRIES[name] | {parameter: backwards})
    else:
        given, same = ENTRIES[name] | {parameter: backwards}, ENTRIES[name] | {parameter: b""}
        if parameter == "data" and "buf" in given:
            given["buf"], same["buf"] = (bytearray(16 if method == "encrypt_into" else 0) for _ in range(2))
        assert outcome(name, api, given) == outcome(name, api, same)


def test_nothing_that_is_packed_is_contiguous(api: ModuleType) -> None:
    key, backwards, none = api.ChaCha20Poly1305(K), memoryview(b"")[::-1], array.array("q", [0])
    output = memoryview(bytearray())[::-1]
    assert key.encrypt_packed(backwards, backwards, none, output, backwards) == 0
    assert key.decrypt_packed(backwards, backwards, none, output, output, backwards) == 0


def test_an_empty_output_is_contiguous(api: ModuleType) -> None:
    for empty in (memoryview(bytearray())[::-1], memoryview(bytearray(5))[5:][::2]):
        assert api.chacha20.cipher(K, 0, N12, empty, out=empty) == 0
        assert api.ChaCha20(K, N12).update_into(empty, empty) == 0
        with refuses(ValueError, "out must be 1 bytes, got 0"):
            api.chacha20.cipher(K, 0, N12, b"x", out=empty)
        with refuses(TypeError, "out must be writable"):
            api.chacha20.cipher(K, 0, N12, empty, out=empty.toreadonly())


@pytest.mark.parametrize(("name", "parameter"), having("key", "nonce", "nonce16", "tag"))
def test_what_is_empty_has_the_wrong_size_and_not_the_wrong_order(
    api: ModuleType, name: str, parameter: str
) -> None:
    with pytest.raises(api.Error, match=rf"^{parameter} must be \d+ bytes, got 0$"):
        entry(api, name)(**ENTRIES[name] | {parameter: memoryview(b"")[::-1]})


def test_what_is_reached_by_pointers_is_not_contiguous_even_if_empty(api: ModuleType) -> None:
    testbuffer = pytest.importorskip("_testbuffer", reason="this CPython comes without its test modules")
    rows = testbuffer.ndarray([1, 2, 3, 4], shape=[2, 2], format="B", flags=testbuffer.ND_PIL)
    for indirect in (rows, rows[0:0]):
        with refuses(BufferError, "message must be C-contiguous"):
            api.poly1305.mac(K, indirect)


def offsets(api: ModuleType) -> range:
    """Alignments matter to machine code; pure Python meets a few."""
    return range(0, 64, 9 if api.kernel == "pure" else 1)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 63, 64, 65, 255, 256, 700, 2100])
def test_every_alignment(api: ModuleType, length: int) -> None:
    data = bytes(i % 251 for i in range(length))
    memory = bytearray(64 + length + 16)
    output = bytearray(64 + length + 64)
    sealed = api.chacha20poly1305.encrypt(K, N12, data, data)
    enciphered = api.chacha20.cipher(K, 5, N12, data)
    tag = api.poly1305.mac(K, data)
    for i in offsets(api):
        memory[i : i + length] = data
        given = memoryview(memory)[i : i + length]
        assert api.poly1305.mac(K, given) == tag
        assert api.chacha20.cipher(K, 5, N12, given) == enciphered
        assert api.chacha20poly1305.encrypt(K, N12, given, given) == sealed
        for j in (0, 1, i, 63 - i):
            output[:] = b"\x55" * len(output)
            assert api.chacha20.cipher(K, 5, N12, given, out=memoryview(output)[j : j + length]) == length
            assert output == b"\x55" * j + enciphered + b"\x55" * (len(output) - j - length)
        assert api.chacha20.cipher(K, 5, N12, given, out=given) == length
        assert given == enciphered
        memory[i : i + length + 16] = sealed
        given = memoryview(memory)[i : i + length + 16]
        assert api.chacha20poly1305.decrypt(K, N12, given, data) == data
        del given


def test_every_alignment_of_keys_nonces_and_tags(api: ModuleType) -> None:
    memory = bytearray(128)
    view = memoryview(memory)
    tag = api.poly1305.mac(K, b"message")
    for i in offsets(api):
        view[i : i + 32] = K
        for nonce, function in (
            (bytes(range(12)), api.chacha20.cipher),
            (bytes(range(24)), api.xchacha20.cipher),
        ):
            view[i + 33 : i + 33 + len(nonce)] = nonce
            given = function(view[i : i + 32], 0, view[i + 33 : i + 33 + len(nonce)], bytes(100))
            assert given == function(K, 0, nonce, bytes(100))
        view[i + 60 : i + 64] = view[i + 60 : i + 64]
        view[i + 40 : i + 56] = tag
        api.poly1305.verify(view[i : i + 32], b"message", view[i + 40 : i + 56])


# ---- Exports: a bytearray that still has one cannot be resized. ----


@pytest.mark.parametrize(("name", "parameter"), having(*BYTES, "buf"))
def test_exports_end_with_the_call(api: ModuleType, name: str, parameter: str) -> None:
    right = ENTRIES[name][parameter]
    given = bytearray(right)
    result = entry(api, name)(
        **ENTRIES[name] | {parameter: given}
    )  # kept alive: objects hold no export either
    given[:] = right + b"\0"
    view = memoryview(given)[:-1]
    entry(api, name)(**ENTRIES[name] | {parameter: view})
    view.release()
    given.clear()
    del result


@pytest.mark.parametrize(("name", "parameter"), having(*BYTES, "buf"))
def test_exports_end_with_a_refused_call(api: ModuleType, name: str, parameter: str) -> None:
    for other in ENTRIES[name]:
        good = ENTRIES[name]
        arguments = good | {p: bytearray(v) for p, v in good.items() if isinstance(v, (bytes, bytearray))}
        arguments[other] = object()
        with pytest.raises(TypeError):
            entry(api, name)(**arguments)
        for value in arguments.values():
            if isinstance(value, bytearray):
                value.append(0)
    too_long = bytearray(2**16)  # of the wrong size for all but messages
    try:
        entry(api, name)(**ENTRIES[name] | {parameter: too_long})
    except (api.Error, ValueError):
        assert parameter not in ("message", "associated_data") or "verify" in name or ".decrypt" in name
    too_long.append(0)


class Raising:
    """A buffer, from Python 3.12 on, whose exporter raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __buffer__(self, flags: int) -> memoryview:
        raise self.error


def released() -> memoryview:
    view = memoryview(bytes(16))
    view.release()
    return view


def closed() -> mmap.mmap:
    memory = mapped(bytes(16))
    memory.close()
    return memory


# Buffers that cannot be had, and what their exporters say to that.
REFUSING: list[tuple[Any, BaseException]] = [
    (released(), ValueError("operation forbidden on released memoryview object")),
    (closed(), ValueError("mmap closed or invalid")),
]
if sys.version_info >= (3, 12):
    REFUSING += [
        (Raising(error := kind("from __buffer__")), error)
        for kind in (KeyboardInterrupt, MemoryError, RuntimeError, TypeError, BufferError, ValueError)
    ]


@pytest.mark.parametrize(("name", "parameter"), having(*BYTES, "buf", "out"))
def test_an_exporters_own_error_passes_through(api: ModuleType, name: str, parameter: str) -> None:
    for refusing, error in REFUSING:
        good = ENTRIES[name].items()
        arguments = {p: bytearray(v) if isinstance(v, (bytes, bytearray)) else v for p, v in good}
        with pytest.raises(type(error)) as raised:
            entry(api, name)(**arguments | {parameter: refusing})
        assert (type(raised.value), str(raised.value)) == (type(error), str(error))
        for value in arguments.values():  # and no export is left
            if isinstance(value, bytearray):
                value.append(0)


def test_exports_of_outputs_end(api: ModuleType) -> None:
    data, out = bytearray(100), bytearray(100)
    api.chacha20.cipher(K, 0, N12, data, out=out)
    api.chacha20.cipher(K, 0, N12, data, out=data)
    data.append(0)
    with refuses(ValueError, "out must be 101 bytes, got 100"):
        api.chacha20.cipher(K, 0, N12, data, out=out)
    data.append(0)
    out.append(0)


# ---- Keys are copied. ----


@pytest.mark.parametrize("name", KEYED)
def test_the_key_is_copied(api: ModuleType, name: str) -> None:
    for parameter in ("key", "nonce"):
        if parameter in ENTRIES[name]:
            given = bytearray(ENTRIES[name][parameter])
            made = make(api, name, **{parameter: given})
            given[:] = b"\xff" * len(given)
            assert computed(made) == computed(make(api, name))


@pytest.mark.parametrize("owner", KEYS)
def test_what_a_message_in_parts_began_with_is_not_needed_any_more(api: ModuleType, owner: str) -> None:
    key, given = make(api, owner), {p: bytearray(v) for p, v in ENTRIES[f"{owner}.encryptor"].items()}
    sealed = key.encrypt(data=bytes(100), **given)
    encryptor, decryptor = key.encryptor(**given), key.unverified_decryptor(**given)
    for value in given.values():
        value[:] = b"\xff" * len(value)
        value.append(0)
    assert encryptor.update(bytes(100)) + encryptor.finalize() == sealed
    assert decryptor.update(sealed[:-16]) == bytes(100)
    decryptor.verify(sealed[-16:])


class Changer:
    """An argument that overwrites another one before it gives its own value."""

    def __init__(self, other: bytearray, value: Any) -> None:
        self.other, self.value = other, value

    def change(self) -> Any:
        self.other[:] = b"\xff" * len(self.other)
        return self.value

    def __index__(self) -> int:
        return self.change()

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.change())


def followed_by_code() -> list[tuple[str, str, str]]:
    """Each entry point, with a parameter of fixed size and a later one whose argument can run code."""
    codes = {"counter", "rounds", "threads"}
    if sys.version_info >= (3, 12):  # from there on Python code can offer a buffer
        codes |= {*BYTES, "out", "buf"}
    return [
        (name, parameter, later)
        for name, parameter in having("key", "nonce", "nonce16", "tag")
        for later in list(ENTRIES[name])[list(ENTRIES[name]).index(parameter) + 1 :]
        if later in codes
    ]


@pytest.mark.parametrize(("name", "parameter", "later"), followed_by_code())
def test_what_has_a_fixed_size_is_copied_before_a_later_argument_is_asked(
    api: ModuleType, name: str, parameter: str, later: str
) -> None:
    good = ENTRIES[name]
    out, right = bytearray(len(DATA)), bytearray(len(DATA))
    given = bytearray(good[parameter])
    changer = Changer(given, out if later == "out" else good[later])
    expected = outcome(name, api, ENTRIES[name] | ({"out": right} if later == "out" else {}))
    assert outcome(name, api, good | {parameter: given, later: changer}) == expected
    assert given == b"\xff" * len(given)
    assert out == right


@pytest.mark.parametrize("owner", AEADS)
def test_decryption_that_fails_changes_no_input(api: ModuleType, owner: str) -> None:
    name = f"{owner}.decrypt"
    arguments = {p: bytearray(v) for p, v in ENTRIES[name].items() if p in BYTES}
    arguments["data"][-1] ^= 1
    before = {p: bytes(v) for p, v in arguments.items()}
    with refuses(api.InvalidTag, "tag does not match"):
        entry(api, name)(**arguments)
    assert arguments == before


def test_results_are_exactly_bytes(api: ModuleType) -> None:
    for result in (
        api.chacha20.block(K, 0, N12),
        api.chacha20.cipher(K, 0, N12, bytearray(5)),
        api.chacha20.hchacha20(K, bytes(16)),
        api.chacha20poly1305.encrypt(K, N12, bytearray()),
        api.ChaCha20(K, N12).update(memoryview(b"")),
        api.ChaCha20(K, N12).keystream(0),
        api.ChaCha20Poly1305.generate_key(),
    ):
        assert type(result) is bytes
    assert type(api.chacha20.cipher(K, 0, N12, b"abc", out=bytearray(3))) is int


@pytest.mark.parametrize(("name", "nonce_size"), [("ChaCha20", 12), ("XChaCha20", 24), ("ChaCha20Legacy", 8)])
def test_a_key_is_copied_before_a_number_is_asked(api: ModuleType, name: str, nonce_size: int) -> None:
    key = bytearray(range(32))

    class Counter:
        def __index__(self) -> int:
            key[:] = bytes(32)
            return 0

    make_stream, nonce = getattr(api, name), bytes(nonce_size)
    assert make_stream(key, nonce, counter=Counter()).keystream(64) == make_stream(
        bytes(range(32)), nonce
    ).keystream(64)


class Emptying:
    """A number, or from Python 3.12 on a buffer, which empties the dict that it was passed in when asked."""

    def __init__(self, value: Any, emptied: list[Any]) -> None:
        self.value, self.emptied = value, emptied

    def empty(self) -> None:
        for keywords in gc.get_referrers(self):
            if type(keywords) is dict and keywords.keys() & {"key", "tag"}:
                keywords.clear()
                # Writes over what has been freed.
                self.emptied += [
                    [make(size) for size in range(64)] for make in (bytes, bytearray) for _ in range(9)
                ]

    def __index__(self) -> int:
        self.empty()
        return self.value

    def __buffer__(self, flags: int) -> memoryview:
        self.empty()
        return memoryview(self.value)


class Number:
    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


ASKED = ["counter", "rounds", *(["key", "nonce", "tag"] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize(("name", "parameter"), [(n, p) for n, p in having(*ASKED) if n in TYPES])
def test_arguments_live_as_long_as_the_call(api: ModuleType, name: str, parameter: str) -> None:
    emptied: list[Any] = []

    def arguments() -> dict[str, Any]:
        """With the only references to new objects."""
        new = {p: Number(v) if isinstance(v, int) else bytes(bytearray(v)) for p, v in ENTRIES[name].items()}
        return new | {parameter: Emptying(ENTRIES[name][parameter], emptied)}

    made = getattr(api, name)(**arguments())
    assert emptied
    assert computed(made) == outcome(name, api, ENTRIES[name])
