"""The last block is usable, nothing goes past it, nothing wraps, and nothing carries into the nonce."""

import struct
import sys
from types import ModuleType

import pytest
from entries import ENTRIES, N8, NONCE_SIZES, STREAMS, K, entry, having, make, refuses

COUNTERS = [(name, 2**64 if name.startswith("ChaCha20Legacy") else 2**32) for name, _ in having("counter")]
END = {"ChaCha20": 2**38, "XChaCha20": 2**38, "ChaCha20Legacy": 2**70}


class Index:
    """An integer by __index__ alone."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize(("name", "limit"), COUNTERS)
def test_counters_outside_their_range(api: ModuleType, name: str, limit: int) -> None:
    for counter, text in [
        (-1, "-1"),
        (limit, str(limit) if limit.bit_length() <= 63 else "an integer over 63 bits"),
        (-(2**63) + 1, "-9223372036854775807"),
        (-(2**63), "an integer over 63 bits"),
        (2**64, "an integer over 63 bits"),
        (10**5000, "an integer over 63 bits"),  # str() of this one raises
        (-(10**5000), "an integer over 63 bits"),
    ]:
        with refuses(api.CounterOverflow, f"counter must be 0 to {limit - 1}, got {text}"):
            entry(api, name)(**ENTRIES[name] | {"counter": counter})


@pytest.mark.parametrize(("name", "limit"), COUNTERS)
def test_the_first_and_the_last_counter(api: ModuleType, name: str, limit: int) -> None:
    for counter in (0, 1, limit - 1, Index(limit - 1), True):
        entry(api, name)(**ENTRIES[name] | {"counter": counter})


@pytest.mark.parametrize("name", STREAMS)
def test_integers_are_what_has_an_index(api: ModuleType, name: str) -> None:
    stream = make(api, name, counter=Index(3), rounds=Index(12))
    assert stream.tell() == 192
    stream.seek(Index(5))
    assert stream.keystream(Index(7)) == make(api, name, rounds=12).keystream(12)[5:]


@pytest.mark.parametrize("name", ["chacha20", "xchacha20"])
def test_the_cipher_stops_at_the_last_block(api: ModuleType, name: str) -> None:
    cipher, nonce = (
        getattr(api, name).cipher,
        bytes(NONCE_SIZES[{"chacha20": "ChaCha20", "xchacha20": "XChaCha20"}[name]]),
    )
    for blocks in range(1, 34):
        data = bytes(64 * blocks)
        whole = cipher(K, 2**32 - blocks, nonce, data)
        assert whole[-64:] == cipher(K, 2**32 - 1, nonce, bytes(64))
        out = bytearray(b"\x55" * (len(data) + 1))
        with refuses(api.CounterOverflow, f"data must be at most {len(data)} bytes, got {len(data) + 1}"):
            cipher(K, 2**32 - blocks, nonce, data + b"x", out=out)
        assert out == b"\x55" * len(out)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_start_at_their_counter(api: ModuleType, name: str) -> None:
    last = END[name] // 64 - 1
    for counter in (0, 1, 2**31, last - 1, last):
        assert make(api, name, counter=counter).tell() == 64 * counter


@pytest.mark.parametrize("name", STREAMS)
def test_streams_reach_their_end_and_stop(api: ModuleType, name: str) -> None:
    end, stream = END[name], make(api, name)
    stream.seek(end - 128)
    last = stream.keystream(128)
    assert stream.tell() == end
    for left in range(129):
        stream.seek(end - left)
        assert stream.tell() == end - left
        for call, what in ((stream.update, "data"), (stream.keystream, "n")):
            with refuses(api.CounterOverflow, f"{what} must be at most {left} bytes, got {left + 1}"):
                call(bytes(left + 1) if what == "data" else left + 1)
            assert stream.tell() == end - left
        buf = bytearray(b"\x55" * (left + 1))
        with refuses(api.CounterOverflow, f"data must be at most {left} bytes, got {left + 1}"):
            stream.update_into(bytes(left + 1), buf)
        assert buf == b"\x55" * len(buf)
        assert stream.tell() == end - left
        assert stream.update(bytes(left)) == last[128 - left :]
        assert stream.update(b"") == stream.keystream(0) == b""
        assert stream.update_into(b"", bytearray()) == 0
        assert stream.tell() == end


@pytest.mark.parametrize("name", STREAMS)
def test_seeking_outside_is_refused_and_moves_nothing(api: ModuleType, name: str) -> None:
    stream = make(api, name)
    stream.seek(77)
    end = END[name]
    for byte, text in [
        (-1, "-1"),
        (end + 1, str(end + 1) if end < 2**63 else "an integer over 63 bits"),
        (-(10**5000), "an integer over 63 bits"),
        (10**5000, "an integer over 63 bits"),
    ]:
        with refuses(api.CounterOverflow, f"byte must be 0 to {end}, got {text}"):
            stream.seek(byte)
        assert stream.tell() == 77


@pytest.mark.parametrize("name", STREAMS)
def test_keystream_sizes_outside_are_refused(api: ModuleType, name: str) -> None:
    stream = make(api, name, counter=5)
    left = END[name] - 320
    for n, text in [(-1, "-1"), (-(10**5000), "an integer over 63 bits")]:
        with refuses(ValueError, f"n must be 0 or more, got {text}"):
            stream.keystream(n)
    for n, text in [(10**5000, "an integer over 63 bits"), (left + 1, str(left + 1))][
        : 2 if left < 2**63 else 1
    ]:
        with refuses(api.CounterOverflow, f"n must be at most {left} bytes, got {text}"):
            stream.keystream(n)
    assert stream.tell() == 320


def test_keystream_sizes_that_no_object_can_have(api: ModuleType) -> None:
    # Only the original's end lies beyond them. CPython's own errors: as for bytes(n).
    stream = api.ChaCha20Legacy(K, N8)
    header = sys.getsizeof(b"")
    for n in (2**70, 2**64 + 5, 2**64, sys.maxsize + 1):
        with refuses(OverflowError, "cannot fit 'int' into an index-sized integer"):
            stream.keystream(n)
    for n in (sys.maxsize, sys.maxsize - 1, sys.maxsize - header + 1):
        with refuses(OverflowError, "byte string is too large"):
            stream.keystream(n)
    for n in (sys.maxsize - header, sys.maxsize - 64, sys.maxsize - 65, sys.maxsize - 4096):
        with refuses(MemoryError, ""):
            stream.keystream(n)
    assert stream.tell() == 0


@pytest.mark.parametrize("rounds", [8, 12, 20])
def test_the_legacy_carry_from_every_lane(api: ModuleType, rounds: int) -> None:
    # One call starts i blocks before 2^32 and runs past it; block by block, no call does.
    def block(counter: int) -> bytes:
        return api.ChaCha20Legacy(K, N8, counter=counter, rounds=rounds).keystream(64)

    blocks = {c: block(c) for c in range(2**32 - 32, 2**32 + 34)}
    for i in range(33):
        stream = api.ChaCha20Legacy(K, N8, counter=2**32 - i, rounds=rounds)
        assert stream.keystream(64 * 34) == b"".join(blocks[2**32 - i + j] for j in range(34))
    assert len(set(blocks.values())) == len(blocks)


def test_the_high_word_of_the_legacy_counter_counts(api: ModuleType) -> None:
    # RFC 8439's counter c and nonce words n0..n2 are the original's counter c + 2^32 n0 and nonce n1..n2.
    for high in (0, 1, 2, 2**31, 2**32 - 1):
        for low in (0, 7, 2**32 - 1):
            legacy = api.ChaCha20Legacy(K, b"12345678", counter=high << 32 | low).keystream(64)
            assert legacy == api.chacha20.block(K, low, high.to_bytes(4, "little") + b"12345678")


def test_xchacha20_is_chacha20_under_a_subkey(api: ModuleType) -> None:
    nonce = bytes(range(100, 124))
    subkey = api.chacha20.hchacha20(K, nonce[:16])
    for counter in (0, 1, 2**32 - 2):
        expected = api.chacha20.cipher(subkey, counter, bytes(4) + nonce[16:], bytes(128))
        assert api.xchacha20.cipher(K, counter, nonce, bytes(128)) == expected
        assert api.XChaCha20(K, nonce, counter=counter).keystream(128) == expected


@pytest.mark.parametrize("rounds", [8, 12, 20])
def test_xchacha_uses_its_rounds_for_the_subkey_too(api: ModuleType, rounds: int) -> None:
    # HChaCha is the block function without the feed-forward: subtract the state's words 0-3 and 12-15 again.
    nonce = bytes(range(100, 124))
    block = api.chacha20.cipher(K, int.from_bytes(nonce[:4], "little"), nonce[4:16], bytes(64), rounds=rounds)
    state = b"expand 32-byte k" + K + nonce[:16]
    words = [struct.unpack("<16L", text) for text in (block, state)]
    subkey = struct.pack("<16L", *((b - s) % 2**32 for b, s in zip(*words, strict=True)))
    expected = api.chacha20.cipher(
        subkey[:16] + subkey[48:], 3, bytes(4) + nonce[16:], bytes(100), rounds=rounds
    )
    assert api.xchacha20.cipher(K, 3, nonce, bytes(100), rounds=rounds) == expected
    assert api.XChaCha20(K, nonce, counter=3, rounds=rounds).keystream(100) == expected
