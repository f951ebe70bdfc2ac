"""Streams give the same bytes however a message is split, and wherever one seeks to."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from entries import DATA, NONCE_SIZES, STREAMS, K, make, refuses
from meanwhile import calling, until_not_refused

LENGTH = 1100
NEAR_BLOCKS = sorted({0, 1} | {64 * i + d for i in range(1, LENGTH // 64 + 1) for d in (-1, 0, 1)})


def reference(api: ModuleType, name: str, length: int = LENGTH, **changed: Any) -> bytes:
    """The keystream in one call."""
    return make(api, name, **changed).keystream(length)


def sizes(api: ModuleType) -> range:
    """All lengths from 0 to 1100; every 29th on pure, which is the same code for all and slow."""
    return range(0, LENGTH + 1, 29 if api.kernel == "pure" else 1)


@pytest.mark.parametrize("name", STREAMS)
def test_every_length(api: ModuleType, name: str) -> None:
    whole = reference(api, name)
    for n in range(LENGTH + 1):
        stream = make(api, name)
        assert stream.update(bytes(n)) == whole[:n]
        assert stream.tell() == n


@pytest.mark.parametrize("name", STREAMS)
def test_every_length_after_a_split_near_each_block(api: ModuleType, name: str) -> None:
    whole = reference(api, name, 2 * LENGTH)
    for split in NEAR_BLOCKS:
        for n in sizes(api):
            stream = make(api, name)
            assert stream.update(bytes(split)) == whole[:split]
            assert stream.update(bytes(n)) == whole[split : split + n]


@pytest.mark.parametrize("name", STREAMS)
def test_three_parts_near_blocks(api: ModuleType, name: str) -> None:
    whole = reference(api, name)
    splits = NEAR_BLOCKS[:: 9 if api.kernel == "pure" else 1]
    for first in splits:
        for second in splits:
            if first <= second:
                stream = make(api, name)
                parts = [stream.keystream(n) for n in (first, second - first, LENGTH - second)]
                assert b"".join(parts) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_byte_by_byte(api: ModuleType, name: str) -> None:
    whole, stream = reference(api, name), make(api, name)
    assert b"".join(stream.update(b"\0") for _ in range(LENGTH)) == whole
    assert stream.tell() == LENGTH


@pytest.mark.parametrize("name", STREAMS)
def test_pieces_of_blocks_in_any_order(api: ModuleType, name: str) -> None:
    whole = make(api, name).keystream(1000)
    stream = make(api, name)
    first = stream.tell()
    pieces = [(10, 5), (15, 5), (20, 44), (63, 1), (64, 1), (10, 5), (60, 10), (66, 3), (0, 64), (1, 2)]
    for at, size in pieces:
        for shift in (0, 64, 640, 0):
            stream.seek(first + at + shift)
            assert stream.keystream(size) == whole[at + shift :][:size]


@pytest.mark.parametrize("name", STREAMS)
def test_empty_updates_change_nothing(api: ModuleType, name: str) -> None:
    whole, stream = reference(api, name), make(api, name)
    for at in range(0, LENGTH, 11):
        assert (stream.update(b""), stream.keystream(0), stream.update_into(b"", bytearray())) == (
            b"",
            b"",
            0,
        )
        assert stream.tell() == at
        assert stream.update(bytes(11)) == whole[at : at + 11]


@pytest.mark.parametrize("name", STREAMS)
def test_each_way_to_encrypt_moves_alike(api: ModuleType, name: str) -> None:
    whole = reference(api, name)
    message = bytes(i % 251 for i in range(LENGTH))
    expected = bytes(a ^ b for a, b in zip(message, whole, strict=True))
    stream, result = make(api, name), b""
    for i, at in enumerate(range(0, LENGTH, 50)):
        part = message[at : at + 50]
        if i % 3 == 0:
            result += stream.update(part)
        elif i % 3 == 1:
            buf = bytearray(len(part))
            assert stream.update_into(part, buf) == len(part)
            result += buf
        else:
            in_place = bytearray(part)
            assert stream.update_into(in_place, in_place) == len(part)
            result += in_place
    assert result == expected


@pytest.mark.parametrize("name", STREAMS)
def test_seeking_gives_the_slice(api: ModuleType, name: str) -> None:
    whole, stream = reference(api, name, 400), make(api, name)
    for at in [*range(201), *range(200, -1, -7)]:
        assert stream.seek(at) is None
        assert stream.tell() == at
        assert stream.keystream(100) == whole[at : at + 100]
        assert stream.tell() == at + 100


@pytest.mark.parametrize("name", STREAMS)
def test_seeking_near_2_to_the_38(api: ModuleType, name: str) -> None:
    # The last block of the 32-bit counters; the original just goes on.
    start, end = 2**38 - 192, 2**38
    whole = reference(api, name, 192, counter=start // 64)
    stream = make(api, name)
    for at in range(start, end + 1):
        stream.seek(at)
        assert stream.tell() == at
        assert stream.update(bytes(end - at)) == whole[at - start :]
        assert stream.tell() == end


@pytest.mark.parametrize("name", STREAMS)
def test_positions_are_absolute(api: ModuleType, name: str) -> None:
    stream = make(api, name, counter=3)
    assert stream.tell() == 192
    first = stream.keystream(10)
    stream.seek(0)
    assert stream.keystream(202)[192:] == first


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("rounds", [8, 12, 20])
def test_rounds(api: ModuleType, name: str, rounds: int) -> None:
    whole = reference(api, name, rounds=rounds)
    stream = make(api, name, rounds=rounds)
    assert stream.keystream(300) + stream.update(bytes(800)) == whole
    others = {reference(api, name, 64, rounds=r) for r in (8, 12, 20)}
    assert len(others) == 3


def test_a_stream_equals_the_cipher(api: ModuleType) -> None:
    for name, functions in (("ChaCha20", api.chacha20), ("XChaCha20", api.xchacha20)):
        nonce = bytes(range(NONCE_SIZES[name]))
        stream = getattr(api, name)(K, nonce, counter=7)
        assert stream.update(DATA) == functions.cipher(K, 7, nonce, DATA)


@pytest.mark.parametrize("name", STREAMS)
def test_leaving_the_with_block_closes_the_stream(api: ModuleType, name: str) -> None:
    with make(api, name) as stream:
        assert stream.keystream(3) == reference(api, name, 3)
    buf = bytearray(b"abc")
    for call in (
        lambda: stream.update(b"abc"),
        lambda: stream.update_into(buf, buf),
        lambda: stream.keystream(3),
        lambda: stream.seek(0),
        stream.tell,
        stream.__enter__,
    ):
        with refuses(api.StateError, "stream is closed"):
            call()
    assert buf == b"abc"


@pytest.mark.parametrize("name", STREAMS)
def test_an_exception_leaves_the_with_block_and_closes_too(api: ModuleType, name: str) -> None:
    with pytest.raises(KeyError), make(api, name) as stream:
        raise KeyError
    with refuses(api.StateError, "stream is closed"):
        stream.tell()


@pytest.mark.parametrize("name", STREAMS)
def test_a_closed_stream_may_be_left_again(api: ModuleType, name: str) -> None:
    stream = make(api, name)
    with stream, stream:
        stream.keystream(3)
    assert stream.__exit__(None, None, None) is None
    with refuses(api.StateError, "stream is closed"):
        stream.tell()


@pytest.mark.parametrize("name", STREAMS)
def test_a_refused_call_moves_nothing(api: ModuleType, name: str) -> None:
    stream, whole, buf = make(api, name), reference(api, name), bytearray(5)
    stream.seek(77)
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (stream.update, ("text",)),
        (stream.update, (memoryview(bytes(6))[::2],)),
        (stream.update_into, (bytes(5), bytes(5))),
        (stream.update_into, (bytes(5), bytearray(4))),
        (stream.update_into, (memoryview(buf)[:4], memoryview(buf)[1:])),
        (stream.update_into, (bytes(5), None)),
        (stream.keystream, (-1,)),
        (stream.keystream, (1.5,)),
        (stream.keystream, (2**71,)),
        (stream.seek, (-1,)),
        (stream.seek, ("1",)),
        (stream.seek, (2**71,)),
    ]
    for call, arguments in calls:
        with pytest.raises((TypeError, ValueError, BufferError, OverflowError)):
            call(*arguments)
        assert stream.tell() == 77
    assert stream.keystream(100) == whole[77:177]
    assert buf == bytes(5)


@pytest.mark.parametrize("name", STREAMS)
def test_arguments_are_taken_before_the_stream_is_claimed(api: ModuleType, name: str) -> None:
    # What runs on the way to an argument may use the stream itself.
    stream, whole = make(api, name), reference(api, name)

    class Mover:
        def __init__(self, to: int, value: Any) -> None:
            self.to, self.value = to, value

        def __index__(self) -> int:
            stream.seek(self.to)
            return self.value

        def __buffer__(self, flags: int) -> memoryview:
            stream.seek(self.to)
            return memoryview(self.value)

    assert stream.keystream(Mover(100, 50)) == whole[100:150]
    stream.seek(Mover(300, 200))
    assert stream.tell() == 200
    if sys.version_info >= (3, 12):  # from there on Python code can offer a buffer
        assert stream.update(Mover(70, bytes(10))) == whole[70:80]
        buf = bytearray(10)
        assert stream.update_into(Mover(90, bytes(10)), Mover(400, buf)) == 10
        assert buf == whole[400:410]
        assert stream.tell() == 410


def test_entering_gives_the_stream_itself(api: ModuleType) -> None:
    stream = make(api, "ChaCha20")
    with stream as entered:
        assert entered is stream


@pytest.mark.parametrize("name", STREAMS)
def test_a_call_during_another_is_refused_and_changes_nothing(api: ModuleType, name: str) -> None:
    # Another thread calls all the time while this one makes a long update; again if no call fell into it.
    data = bytes(2**18 if api.kernel == "pure" else 2**24)
    whole = reference(api, name, len(data))
    refusals: set[str] = set()
    for _ in range(1000):
        stream = make(api, name)
        with calling(lambda: stream.keystream(0), api.StateError, refusals):  # noqa: B023
            assert until_not_refused(lambda: stream.update(data), api.StateError) == whole  # noqa: B023
        assert stream.tell() == len(data)
        if refusals:
            assert refusals == {"another call on this stream is in progress"}
            return
    pytest.fail("1000 long updates and no call was refused")
