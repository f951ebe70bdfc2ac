"""Bad input gives the named error with its exact text, through every entry point, and writes nothing."""

import ctypes
import operator
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from entries import (
    AEADS,
    CIPHERING,
    DATA,
    ENTRIES,
    KEYS,
    MADE,
    STREAMS,
    entry,
    having,
    make,
    refuses,
)

BYTES = ("key", "nonce", "nonce16", "data", "associated_data", "message", "tag")
CIPHERS = ["chacha20.cipher", "xchacha20.cipher"]


def call(api: ModuleType, name: str, **changed: Any) -> Any:
    return entry(api, name)(**ENTRIES[name] | changed)


@pytest.mark.parametrize("name", [name for name, _ in having("key")])
def test_key_lengths(api: ModuleType, name: str) -> None:
    for n in [*range(65), 2**16]:
        if n != 32:
            with refuses(api.InvalidKey, f"key must be 32 bytes, got {n}"):
                call(api, name, key=bytes(n))


@pytest.mark.parametrize(("name", "parameter"), having("nonce", "nonce16"))
def test_nonce_lengths(api: ModuleType, name: str, parameter: str) -> None:
    right = len(ENTRIES[name][parameter])
    for n in [*range(65), 2**16]:
        if n != right:
            with refuses(api.InvalidNonce, f"{parameter} must be {right} bytes, got {n}"):
                call(api, name, **{parameter: bytes(n)})


@pytest.mark.parametrize("name", [name for name, _ in having("tag")])
def test_tag_lengths(api: ModuleType, name: str) -> None:
    for n in [*range(65), 2**16]:
        if n != 16:
            with refuses(api.InvalidTag, f"tag must be 16 bytes, got {n}"):
                call(api, name, tag=bytes(n))


@pytest.mark.parametrize("owner", AEADS)
def test_input_shorter_than_a_tag(api: ModuleType, owner: str) -> None:
    for n in range(16):
        with refuses(api.InvalidTag, f"data must be at least 16 bytes, got {n}"):
            call(api, f"{owner}.decrypt", data=bytes(n))
    with refuses(api.InvalidTag, "tag does not match"):
        call(api, f"{owner}.decrypt", data=bytes(16))


@pytest.mark.parametrize("owner", KEYS)
def test_input_shorter_than_a_tag_into_a_buffer(api: ModuleType, owner: str) -> None:
    for n in range(16):
        buf = bytearray(b"\x55" * 8)
        with refuses(api.InvalidTag, f"data must be at least 16 bytes, got {n}"):
            call(api, f"{owner}.decrypt_into", data=bytes(n), buf=buf)
        assert buf == b"\x55" * 8
    with refuses(api.InvalidTag, "tag does not match"):
        call(api, f"{owner}.decrypt_into", data=bytes(16), buf=bytearray())


@pytest.mark.parametrize(("name", "parameter"), having(*BYTES))
def test_what_is_no_buffer(api: ModuleType, name: str, parameter: str) -> None:
    for wrong in ("text", 32, 1.5, [1, 2], object(), None):
        if wrong is None and parameter == "associated_data":
            continue
        with refuses(TypeError, f"{parameter} must be bytes-like, not {type(wrong).__name__}"):
            call(api, name, **{parameter: wrong})


if sys.version_info >= (3, 12):  # from there on Python code can offer a buffer

    class Exporter:
        def __init__(self, code: Callable[[], Any]) -> None:
            self.code = code

        def __buffer__(self, flags: int) -> Any:
            return self.code()

    class NoBuffer:
        __buffer__ = None

    def broken() -> Any:
        raise TypeError("from __buffer__")

    def missing() -> Any:
        raise KeyError("from __buffer__")

    EXPORTERS = [
        (Exporter(broken), TypeError, "from __buffer__"),
        (Exporter(missing), KeyError, "'from __buffer__'"),
        (
            Exporter(lambda: memoryview("text")),
            TypeError,
            "memoryview: a bytes-like object is required, not 'str'",
        ),
        (Exporter(lambda: b"no view"), TypeError, "__buffer__ returned non-memoryview object"),
        (NoBuffer(), TypeError, "'NoneType' object is not callable"),
    ]

    @pytest.mark.parametrize(("name", "parameter"), having(*BYTES, "out", "buf"))
    def test_what_an_exporter_raises_is_raised(api: ModuleType, name: str, parameter: str) -> None:
        for exporter, error, text in EXPORTERS:
            with refuses(error, text):
                call(api, name, **{parameter: exporter})

    @pytest.mark.parametrize("compare", [operator.eq, operator.ne])
    def test_what_an_exporter_raises_when_compared_is_raised(api: ModuleType, compare: Any) -> None:
        for exporter, error, text in EXPORTERS:
            with refuses(error, text):
                compare(api.Tag(bytes(16)), exporter)

    def test_an_attribute_of_an_object_makes_it_no_buffer(api: ModuleType) -> None:
        thing = SimpleNamespace(__buffer__=lambda flags: memoryview(bytes(32)))
        with refuses(TypeError, "key must be bytes-like, not SimpleNamespace"):
            api.poly1305.mac(thing, b"")
        assert api.Tag(bytes(16)) != thing


@pytest.mark.parametrize(("name", "parameter"), having(*BYTES))
def test_buffers_with_gaps(api: ModuleType, name: str, parameter: str) -> None:
    right = ENTRIES[name][parameter]
    for gaps in (memoryview(bytes(2 * len(right)))[::2], memoryview(right)[::-1]):
        assert gaps.nbytes == len(right)
        with refuses(BufferError, f"{parameter} must be C-contiguous"):
            call(api, name, **{parameter: gaps})


@pytest.mark.parametrize("name", ["chacha20.block", "chacha20.cipher", "xchacha20.cipher", *STREAMS])
@pytest.mark.parametrize("parameter", ["counter", "rounds"])
def test_what_is_no_integer(api: ModuleType, name: str, parameter: str) -> None:
    if parameter in ENTRIES[name]:
        for wrong in (1.0, "1", None, b"1", object()):
            with refuses(TypeError, f"'{type(wrong).__name__}' object cannot be interpreted as an integer"):
                call(api, name, **{parameter: wrong})


@pytest.mark.parametrize("name", STREAMS)
def test_positions_and_sizes_that_are_no_integers(api: ModuleType, name: str) -> None:
    stream = make(api, name)
    for method in (stream.seek, stream.keystream):
        for wrong in (1.0, "1", None, b"1", object()):
            with refuses(TypeError, f"'{type(wrong).__name__}' object cannot be interpreted as an integer"):
                method(wrong)
    assert stream.tell() == 0


@pytest.mark.parametrize(("name", "parameter"), having("counter", "rounds", "n", "byte", "threads"))
def test_an_index_that_raises(api: ModuleType, name: str, parameter: str) -> None:
    class Broken:
        def __index__(self) -> int:
            raise LookupError("from __index__")

    with refuses(LookupError, "from __index__"):
        call(api, name, **{parameter: Broken()})


@pytest.mark.parametrize("name", [name for name, _ in having("rounds")])
def test_other_numbers_of_rounds(api: ModuleType, name: str) -> None:
    for wrong, text in [
        (0, "0"),
        (7, "7"),
        (10, "10"),
        (-8, "-8"),
        (2**32 + 20, "4294967316"),
        (True, "1"),
        (2**64 + 20, "an integer over 63 bits"),
        (-(10**5000), "an integer over 63 bits"),
    ]:
        with refuses(ValueError, f"rounds must be 8, 12 or 20, got {text}"):
            call(api, name, rounds=wrong)


@pytest.mark.parametrize("name", [name for name, _ in having("threads")])
def test_numbers_of_threads(api: ModuleType, name: str) -> None:
    for wrong, text in [(0, "0"), (False, "0"), (-1, "-1"), (-(2**63), "an integer over 63 bits")]:
        with refuses(ValueError, f"threads must be 1 or more, got {text}"):
            call(api, name, threads=wrong)
    for no_integer in (1.0, "1", None, b"1", object()):
        with refuses(TypeError, f"'{type(no_integer).__name__}' object cannot be interpreted as an integer"):
            call(api, name, threads=no_integer)
    right = call(api, name)
    for limit in (True, 2, 64, 65, 2**31, 2**32, 2**63, 2**64 + 1, 10**5000):  # any more are as good as 64
        assert call(api, name, threads=limit) == right


# ---- Sizes that no test can fill: buffers that only claim their length. Reading one would crash. ----


def claiming(n: int) -> memoryview:
    # What does not fit in 32 bits no caller can pass there, and nothing is left to test.
    if n > sys.maxsize:
        pytest.skip(f"a buffer of {n} bytes cannot exist on a {sys.maxsize.bit_length() + 1}-bit machine")
    return memoryview((ctypes.c_ubyte * n).from_address(ctypes.addressof(ctypes.c_ubyte())))


AEAD_MAX = 2**38 - 64


@pytest.mark.parametrize("owner", AEADS)
@pytest.mark.parametrize(("method", "most"), [("encrypt", AEAD_MAX), ("decrypt", AEAD_MAX + 16)])
def test_an_aead_message_beyond_the_limit(api: ModuleType, owner: str, method: str, most: int) -> None:
    for n in (most + 1, 2**38, 2**40, 2**46):
        with refuses(api.CounterOverflow, f"data must be at most {most} bytes, got {n}"):
            call(api, f"{owner}.{method}", data=claiming(n))
    # At the limit it is the next parameter that is wrong.
    with refuses(TypeError, "associated_data must be bytes-like, not str"):
        call(api, f"{owner}.{method}", data=claiming(most), associated_data="text")


@pytest.mark.parametrize("owner", KEYS)
@pytest.mark.parametrize(
    ("method", "parameter", "most"),
    [
        ("encrypt_into", "data", AEAD_MAX),
        ("decrypt_into", "data", AEAD_MAX + 16),
        ("encrypt_detached", "data", AEAD_MAX),
        ("decrypt_detached", "data", AEAD_MAX),
        ("encrypt_in_place", "buf", AEAD_MAX),
        ("decrypt_in_place", "buf", AEAD_MAX),
    ],
)
def test_every_form_of_a_message_beyond_the_limit(
    api: ModuleType, owner: str, method: str, parameter: str, most: int
) -> None:
    for n in (most + 1, 2**38, 2**40, 2**46):
        with refuses(api.CounterOverflow, f"{parameter} must be at most {most} bytes, got {n}"):
            call(api, f"{owner}.{method}", **{parameter: claiming(n)})
    with refuses(TypeError, "associated_data must be bytes-like, not str"):
        call(api, f"{owner}.{method}", **{parameter: claiming(most), "associated_data": "text"})
    if method.endswith("into"):
        size = AEAD_MAX + 16 if method == "encrypt_into" else AEAD_MAX
        with refuses(ValueError, f"buf must be {size} bytes, got 8"):
            call(api, f"{owner}.{method}", data=claiming(most), buf=bytearray(8))


@pytest.mark.parametrize("name", CIPHERS)
def test_more_data_than_counters(api: ModuleType, name: str) -> None:
    for counter in (0, 1, 2**31):
        left = 2**38 - 64 * counter
        out = bytearray(b"\x55" * 8)
        with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
            call(api, name, counter=counter, data=claiming(left + 1), out=out)
        assert out == b"\x55" * 8
        with refuses(ValueError, "rounds must be 8, 12 or 20, got 7"):
            call(api, name, counter=counter, data=claiming(left), rounds=7)
        with refuses(ValueError, f"out must be {left} bytes, got 8"):
            call(api, name, counter=counter, data=claiming(left), out=out)


@pytest.mark.parametrize("name", ["ChaCha20", "XChaCha20"])
def test_more_data_than_the_stream_has_left(api: ModuleType, name: str) -> None:
    stream = make(api, name)
    stream.seek(7)
    left, buf = 2**38 - 7, bytearray(b"\x55" * 8)
    with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
        stream.update(claiming(left + 1))
    with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
        stream.update_into(claiming(left + 1), buf)
    with refuses(ValueError, f"buf must be {left} bytes, got 8"):
        stream.update_into(claiming(left), buf)
    assert stream.tell() == 7
    assert buf == b"\x55" * 8


@pytest.mark.parametrize("name", MADE)
def test_more_data_than_a_message_in_parts_can_have(api: ModuleType, name: str) -> None:
    message, same = make(api, name), make(api, name)
    message.update(bytes(7))
    same.update(bytes(7))
    left, buf = AEAD_MAX - 7, bytearray(b"\x55" * 8)
    with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
        message.update(claiming(left + 1))
    with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
        message.update_into(claiming(left + 1), buf)
    with refuses(ValueError, f"buf must be {left} bytes, got 8"):
        message.update_into(claiming(left), buf)
    assert buf == b"\x55" * 8
    assert message.update(DATA) == same.update(DATA)


# ---- Outputs. `into` is cipher(out=...) or update_into, so that every promise holds for both. ----
# The outputs of an AEAD, which differ from its inputs by a tag, are in test_forms.py.

OUTPUTS = [*CIPHERS, *CIPHERING]


def into(api: ModuleType, name: str, data: Any, out: Any, **inputs: Any) -> Any:
    if name in CIPHERING:
        return make(api, name, **inputs).update_into(data, out)
    return entry(api, name)(**ENTRIES[name] | {"data": data, "out": out} | inputs)


def enciphered(api: ModuleType, name: str, data: bytes, **inputs: Any) -> bytes:
    out = bytearray(len(data))
    into(api, name, data, out, **inputs)
    return bytes(out)


def word(name: str) -> str:
    return "buf" if name in CIPHERING else "out"


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_of_the_wrong_size(api: ModuleType, name: str) -> None:
    for n in (0, 1, len(DATA) - 1, len(DATA) + 1, 1000):
        out = bytearray(b"\x55" * n)
        with refuses(ValueError, f"{word(name)} must be {len(DATA)} bytes, got {n}"):
            into(api, name, DATA, out)
        assert out == b"\x55" * n


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_cannot_be_written(api: ModuleType, name: str) -> None:
    out = bytes(b"\x55" * len(DATA))
    for read_only in (out, memoryview(bytearray(out)).toreadonly()):
        with refuses(TypeError, f"{word(name)} must be writable"):
            into(api, name, DATA, read_only)
    assert out == b"\x55" * len(DATA)


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_are_no_buffer(api: ModuleType, name: str) -> None:
    for wrong in ("text", 5, 1.5, [], object()):
        with refuses(TypeError, f"{word(name)} must be bytes-like, not {type(wrong).__name__}"):
            into(api, name, DATA, wrong)
    gaps = memoryview(bytearray(2 * len(DATA)))[::2]
    with refuses(BufferError, f"{word(name)} must be C-contiguous"):
        into(api, name, DATA, gaps)
    assert not any(gaps.obj)


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_overlapping_the_data(api: ModuleType, name: str) -> None:
    for n in (1, 2, 64, 200):
        memory = bytearray(i % 251 for i in range(3 * n))
        before, view = bytes(memory), memoryview(memory)
        expected = enciphered(api, name, before[n : 2 * n])
        for shift in range(-n, n + 1):
            data, out = view[n : 2 * n], view[n + shift : 2 * n + shift]
            if 0 < abs(shift) < n:
                with refuses(ValueError, f"{word(name)} overlaps data"):
                    into(api, name, data, out)
            else:  # in place, or side by side
                assert into(api, name, data, out) == n
                assert out == expected
                memory[:] = before
            assert memory == before


@pytest.mark.parametrize("name", CIPHERS)
@pytest.mark.parametrize("secret", ["key", "nonce"])
def test_an_output_overlapping_key_or_nonce(api: ModuleType, name: str, secret: str) -> None:
    size, n = len(ENTRIES[name][secret]), 40
    memory, data = bytearray(range(n + size + n)), DATA[:1] * n
    before, view = bytes(memory), memoryview(memory)
    inputs = {secret: view[n : n + size]}
    expected = enciphered(api, name, data, **{secret: before[n : n + size]})
    for start in range(n + size + 1):
        out = view[start : start + n]
        if 0 < start < n + size:
            with refuses(ValueError, f"out overlaps {secret}"):
                into(api, name, data, out, **inputs)
        else:
            assert into(api, name, data, out, **inputs) == n
            assert out == expected
            memory[:] = before
        assert memory == before


@pytest.mark.parametrize("name", OUTPUTS)
def test_empty_buffers_overlap_nothing(api: ModuleType, name: str) -> None:
    key, nonce = (b"", b"") if name in MADE else (ENTRIES[name]["key"], ENTRIES[name]["nonce"])
    memory = bytearray(key + nonce + DATA)
    before, view = bytes(memory), memoryview(memory)
    for at in range(len(memory)):
        inputs = {} if name in MADE else {"key": view[:32], "nonce": view[32 : 32 + len(nonce)]}
        assert into(api, name, view[3:3], view[at:at], **inputs) == 0
    assert memory == before


# ---- All arguments wrong at once: the first is named and then, once it is right, the next. ----

TOLD_APART = {"counter": -1, "rounds": 7, "threads": 0}


@pytest.mark.parametrize("name", [name for name, good in ENTRIES.items() if len(good) > 1])
@pytest.mark.parametrize("wrong", [object(), b""], ids=["type", "value"])
def test_parameters_are_checked_in_order(api: ModuleType, name: str, wrong: object) -> None:
    good = ENTRIES[name]
    # Any bytes will do as data, message and associated data, and `out` and `buf` must fit the data. Lists may
    # all be empty; what else may be wrong with them is in test_batches.py and test_packed.py.
    any_bytes = ("data", "message", "associated_data", "out", "buf")
    lists = ("keys", "nonces", "datas", "associated_datas", "offsets", "failed")
    checked = [p for p in good if wrong != b"" or p not in any_bytes + lists]
    # A stream's constructor takes its keyword-only counter and rounds after the key and the nonce.
    arguments = good | {p: TOLD_APART.get(p, wrong) for p in checked}
    for parameter in checked:
        with pytest.raises(
            (TypeError, ValueError, OverflowError, api.InvalidTag), match=f"^{parameter} must be "
        ):
            entry(api, name)(**arguments)
        arguments[parameter] = good[parameter]
    entry(api, name)(**arguments)
