"""Tag: always 16 bytes, compared in constant time, and otherwise as few of bytes' habits as safety allows."""

# ruff: noqa: SIM201, SIM202 (== and != are different functions, and both are under test)

import copy
import operator
import pickle
from types import ModuleType
from typing import Any

import pytest
from entries import MAC, K, refuses

VALUE = bytes(range(16))


@pytest.fixture
def tag(api: ModuleType) -> Any:
    return api.Tag(VALUE)


def test_a_mac_is_a_tag(api: ModuleType) -> None:
    tag = api.poly1305.mac(MAC.key, MAC.msg)
    assert type(tag) is api.Tag
    assert isinstance(tag, bytes)
    assert len(tag) == 16
    assert tag.hex() == "a8061dc1305136c6c22b8baf0c0127a9"


def test_repr(api: ModuleType) -> None:
    tag = api.poly1305.mac(MAC.key, MAC.msg)
    assert repr(tag) == str(tag) == "Tag('a8061dc1305136c6c22b8baf0c0127a9')"
    assert f"{tag}" == repr(tag)


def test_takes_any_buffer_of_16_bytes(api: ModuleType) -> None:
    for value in (VALUE, bytearray(VALUE), memoryview(VALUE), memoryview(VALUE).cast("L"), api.Tag(VALUE)):
        assert api.Tag(value) == VALUE
        assert type(api.Tag(tag=value)) is api.Tag


def test_equality_with_any_buffer(api: ModuleType, tag: Any) -> None:
    for same in (
        VALUE,
        bytearray(VALUE),
        memoryview(VALUE),
        memoryview(bytearray(VALUE)),
        api.Tag(VALUE),
        tag,
    ):
        assert tag == same
        assert not tag != same
        assert same == tag
        assert not same != tag
    for bit in range(128):
        other = (int.from_bytes(VALUE, "big") ^ 1 << bit).to_bytes(16, "big")
        for kind in (bytes, bytearray, memoryview, api.Tag):
            assert tag != kind(other)
            assert not tag == kind(other)
            assert kind(other) != tag


def test_equality_with_other_lengths(tag: Any) -> None:
    for n in range(65):
        if n != 16:
            assert tag != (VALUE * 5)[:n]
            assert (VALUE * 5)[:n] != tag
            assert not tag == bytearray((VALUE * 5)[:n])


def test_equality_with_what_is_no_buffer(tag: Any) -> None:
    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

    for other in (None, 0, "text", VALUE.hex(), list(VALUE), 1.5):
        assert tag != other
        assert not tag == other
        assert not other == tag
    assert tag == Anything()  # the other operand decides, as always in Python
    assert not tag != Anything()


def test_equality_with_a_buffer_that_has_gaps(tag: Any) -> None:
    for value in (VALUE, bytes(16)):
        gaps = memoryview(bytes(b for byte in value for b in (byte, 0)))[::2]
        assert (tag == gaps) is (gaps == tag) is (value == VALUE)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_tags_have_no_order(api: ModuleType, tag: Any, compare: Any) -> None:
    sign = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}[compare]
    for other in (VALUE, tag, api.Tag(bytes(16)), bytes(3)):
        names = type(tag).__name__, type(other).__name__
        with refuses(TypeError, f"'{sign}' not supported between instances of '{names[0]}' and '{names[1]}'"):
            compare(tag, other)
    with pytest.raises(TypeError, match="not supported between instances of "):
        compare(VALUE, tag)


def test_tags_cannot_be_hashed(api: ModuleType, tag: Any) -> None:
    assert api.Tag.__hash__ is None
    with pytest.raises(TypeError, match=r"^unhashable type: '(chapoly\.)?Tag'$"):
        hash(tag)
    with pytest.raises(TypeError, match="unhashable type"):
        set().add(tag)


def test_the_hash_of_bytes_is_that_of_the_bytes(api: ModuleType) -> None:
    # Who asks bytes itself gets what bytes would; that no Tag has been hashed is a field of the object.
    for tag in (api.Tag(VALUE), api.poly1305.mac(MAC.key, MAC.msg)):
        for _ in range(2):
            assert bytes.__hash__(tag) == hash(bytes(tag))


def test_parts_and_sums_are_plain_bytes(tag: Any) -> None:
    for part in (
        tag[:],
        tag[:4],
        tag[2:16:3],
        tag + b"x",
        b"x" + tag,
        tag + tag,
        tag * 2,
        tag.upper(),
        bytes(tag),
    ):
        assert type(part) is bytes
    assert tag[:] == VALUE
    assert tag + b"x" == VALUE + b"x"
    assert b"".join([tag, tag]) == VALUE * 2
    assert tag[3] == 3
    assert list(tag) == list(VALUE)
    assert memoryview(tag) == VALUE
    assert VALUE[3:5] in tag


def test_a_tag_is_as_unchangeable_as_bytes(tag: Any) -> None:
    with pytest.raises(TypeError):
        tag[0] = 1
    with pytest.raises(AttributeError):
        tag.name = 1
    with pytest.raises(TypeError):
        vars(tag)


def test_tags_can_be_pickled_and_copied(api: ModuleType, tag: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(tag, protocol))
        assert type(again) is api.Tag
        assert again == VALUE
    for again in (copy.copy(tag), copy.deepcopy(tag)):
        assert type(again) is api.Tag
        assert again == VALUE


def test_a_bytearray_or_memoryview_on_the_left_compares_by_itself(tag: Any) -> None:
    # CPython asks the left operand first unless the right one's type is a subclass of its: bytes are then
    # compared by Tag in constant time; bytearray and memoryview use their own comparison, which is not.
    class Spy(bytearray):
        asked = 0

        def __eq__(self, other: object) -> bool:
            Spy.asked += 1
            return super().__eq__(other)

        __hash__ = None  # type: ignore[assignment]

    assert Spy(VALUE) == tag
    assert Spy.asked == 1
    assert bytearray(VALUE) == tag
    assert memoryview(VALUE) == tag
    assert type(tag).__eq__ is not bytes.__eq__


def test_verify_takes_tags_and_bytes(api: ModuleType) -> None:
    tag = api.poly1305.mac(K, b"message")
    for given in (tag, bytes(tag), bytearray(tag), memoryview(tag)):
        assert api.poly1305.verify(K, b"message", given) is None
    with refuses(api.InvalidTag, "tag does not match"):
        api.poly1305.verify(K, b"message", api.Tag(bytes(16)))


def test_class_methods_of_bytes_make_tags_of_16_bytes_or_nothing(api: ModuleType) -> None:
    assert type(api.Tag.fromhex(VALUE.hex())) is api.Tag
    with refuses(api.InvalidTag, "tag must be 16 bytes, got 2"):
        api.Tag.fromhex("abcd")
