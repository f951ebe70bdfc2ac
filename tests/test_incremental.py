"""A message in parts is the message; what Encryptor, UnverifiedDecryptor and Poly1305 allow, and when."""

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Literal

import pytest
from entries import DATA, EMPTY, ENTRIES, KEYS, MADE, N12, K, computed, entry, make, refuses
from forms import decrypt_in_parts, encrypt_in_parts
from interpreter import python
from meanwhile import calling, until_not_refused

from chapoly import InvalidTag

LENGTH = 700
IN_PARTS = [*MADE, "Poly1305"]
NOUN = {"Encryptor": "encryptor", "UnverifiedDecryptor": "decryptor", "Poly1305": "MAC"}
WITH_BLOCK = "the with block ended without a successful verify()"
DROPPED = "an UnverifiedDecryptor was dropped without verify(): nobody has vouched for its plaintext"


def message(size: int = LENGTH) -> bytes:
    return bytes(i % 251 for i in range(size))


def nonce_of(key: Any) -> bytes:
    return bytes(range(100, 100 + key.NONCE_SIZE))


def decryptor_of(api: ModuleType, data: bytes = DATA) -> tuple[Any, bytes, bytes]:
    """An UnverifiedDecryptor, and a ciphertext with its tag for it."""
    key = api.ChaCha20Poly1305(K)
    return key.unverified_decryptor(N12, b"x"), *key.encrypt_detached(N12, data, b"x")


# ---- The same in parts. ----


@pytest.mark.parametrize("owner", KEYS)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 128, 257, 640])
def test_parts_of_each_size(api: ModuleType, owner: str, size: int) -> None:
    key, data = make(api, owner), message(100 if api.kernel == "pure" and size == 1 else LENGTH)
    whole = key.encrypt(nonce_of(key), data, b"text")
    sizes = [size] * (len(data) // size)
    assert encrypt_in_parts(key, nonce_of(key), data, b"text", sizes) == whole
    assert decrypt_in_parts(key, nonce_of(key), whole, b"text", sizes) == data
    with refuses(api.InvalidTag, "tag does not match"):
        decrypt_in_parts(key, nonce_of(key), whole, b"test", sizes)


@pytest.mark.parametrize("owner", KEYS)
def test_every_split_of_every_short_length(api: ModuleType, owner: str) -> None:
    key = make(api, owner)
    nonce = nonce_of(key)
    for length in range(0, 140, 19 if api.kernel == "pure" else 1):
        data = message(length)
        whole = key.encrypt(nonce, data)
        for split in range(0, length + 1, 7 if api.kernel == "pure" else 1):
            assert encrypt_in_parts(key, nonce, data, None, [split]) == whole
            assert decrypt_in_parts(key, nonce, whole, None, [split]) == data


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33, 4095, 4096, 5000])
def test_associated_data_of_each_length(api: ModuleType, length: int) -> None:
    key = api.ChaCha20Poly1305(K)
    whole = key.encrypt(N12, DATA, message(length))
    assert encrypt_in_parts(key, N12, DATA, message(length), [3]) == whole
    assert decrypt_in_parts(key, N12, whole, message(length), [3]) == DATA


def test_a_flipped_bit_anywhere_is_refused(api: ModuleType) -> None:
    key = api.ChaCha20Poly1305(K)
    whole = key.encrypt(N12, message(100))
    for at in range(len(whole)):
        forged = whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        with refuses(api.InvalidTag, "tag does not match"):
            decrypt_in_parts(key, N12, forged, None, [50])


@pytest.mark.parametrize("name", MADE)
def test_each_way_to_update_moves_alike(api: ModuleType, name: str) -> None:
    whole, parts, result = make(api, name).update(message()), make(api, name), b""
    for i, at in enumerate(range(0, LENGTH, 70)):
        part = message()[at : at + 70]
        if i % 3 == 0:
            result += parts.update(part)
        elif i % 3 == 1:
            buf = bytearray(len(part))
            assert parts.update_into(part, buf) == len(part)
            result += buf
        else:
            in_place = bytearray(part)
            assert parts.update_into(in_place, in_place) == len(part)
            result += in_place
        assert (parts.update(b""), parts.update_into(b"", bytearray())) == (b"", 0)
    assert result == whole


def test_in_place_the_mac_takes_the_ciphertext(api: ModuleType) -> None:
    decryptor, ciphertext, tag = decryptor_of(api, message())
    buf = bytearray(ciphertext)
    for at in range(0, LENGTH, 70):
        part = memoryview(buf)[at : at + 70]
        decryptor.update_into(part, part)
    assert buf == message()
    decryptor.verify(tag)
    encryptor = make(api, "Encryptor")
    for at in range(0, LENGTH, 70):
        part = memoryview(buf)[at : at + 70]
        encryptor.update_into(part, part)
    assert (buf, encryptor.finalize()) == (ciphertext, tag)


def test_nothing_at_all_is_a_message_too(api: ModuleType) -> None:
    assert make(api, "Encryptor").finalize() == EMPTY
    make(api, "UnverifiedDecryptor").verify(EMPTY)
    assert make(api, "Poly1305").finalize() == ENTRIES["Poly1305"]["key"][16:]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 300])
def test_poly1305_in_parts(api: ModuleType, size: int) -> None:
    for length in [*range(0, 70, 3), LENGTH, 5000 - size]:
        data = message(length)
        tag = api.poly1305.mac(K, data)
        macs = [api.Poly1305(K) for _ in range(4)]
        for mac in macs:
            for at in range(0, length, size):
                assert mac.update(data[at : at + size]) is None
                mac.update(b"")
        assert macs[0].finalize() == tag
        assert macs[1].verify(tag) is None
        assert macs[2].digest() == macs[2].digest() == tag
        assert macs[3].hexdigest() == macs[3].hexdigest() == bytes(tag).hex()
        assert [type(value) for value in (macs[2].digest(), macs[3].hexdigest())] == [api.Tag, str]


# ---- What may be called when. ----


def ends(name: str) -> dict[str, Callable[[Any], Any]]:
    """The ways to close an object of nothing, by name."""
    tag = EMPTY if name in MADE else ENTRIES["Poly1305.verify"]["tag"]
    verify = {
        "verify": lambda thing: thing.verify(tag),
        "verify a forgery": lambda thing: forged(thing.verify),
    }
    return {
        "Encryptor": {"finalize": lambda thing: thing.finalize(), "exit": lambda thing: leave(thing)},
        "UnverifiedDecryptor": verify | {"exit": lambda thing: leave(thing)},
        "Poly1305": verify | {"finalize": lambda thing: thing.finalize()},
    }[name]


def forged(verify: Callable[[bytes], None]) -> None:
    with refuses(InvalidTag, "tag does not match"):
        verify(bytes(16))


def leave(thing: Any) -> None:
    with pytest.raises(KeyError), thing:
        raise KeyError


def calls(thing: Any) -> list[Callable[[], Any]]:
    """All calls that an open object takes."""
    buf = bytearray(b"abc")
    offered: dict[str, Callable[[], Any]] = {
        "update": lambda: thing.update(b"abc"),
        "update_into": lambda: thing.update_into(buf, buf),
        "finalize": lambda: thing.finalize(),
        "verify": lambda: thing.verify(bytes(16)),
        "digest": lambda: thing.digest(),
        "hexdigest": lambda: thing.hexdigest(),
        "__enter__": lambda: thing.__enter__(),
    }
    return [call for name, call in offered.items() if hasattr(thing, name)]


@pytest.mark.parametrize(("name", "end"), [(name, end) for name in IN_PARTS for end in ends(name)])
def test_after_its_end_an_object_is_closed(api: ModuleType, name: str, end: str) -> None:
    thing = make(api, name)
    ends(name)[end](thing)
    for _ in range(2):
        for call in calls(thing):
            with refuses(api.StateError, f"{NOUN[name]} is closed"):
                call()


@pytest.mark.parametrize("first", ["digest", "hexdigest"])
def test_after_a_digest_only_digests(api: ModuleType, first: str) -> None:
    mac = api.Poly1305(K)
    mac.update(DATA)
    getattr(mac, first)()
    for call in (lambda: mac.update(b""), mac.finalize, lambda: mac.verify(bytes(16))):
        with refuses(api.StateError, "MAC is closed"):
            call()
    assert mac.digest() == api.poly1305.mac(K, DATA)
    assert mac.hexdigest() == mac.digest().hex()


@pytest.mark.parametrize("name", ["UnverifiedDecryptor", "Poly1305"])
def test_a_tag_of_another_length_is_refused_and_ends_nothing(api: ModuleType, name: str) -> None:
    thing = make(api, name)
    for n in [*range(65), 2**16]:
        if n != 16:
            with refuses(api.InvalidTag, f"tag must be 16 bytes, got {n}"):
                thing.verify(bytes(n))
    assert thing.verify(ENTRIES[f"{name}.verify"]["tag"]) is None


@pytest.mark.parametrize("name", IN_PARTS)
def test_a_refused_call_changes_nothing(api: ModuleType, name: str) -> None:
    thing, same, buf = make(api, name), make(api, name), bytearray(5)
    thing.update(bytes(77))
    same.update(bytes(77))
    refused: list[tuple[str, tuple[Any, ...]]] = [
        ("update", ("text",)),
        ("update", (memoryview(bytes(6))[::2],)),
        ("update", ()),
        ("update_into", (bytes(5), bytes(5))),
        ("update_into", (bytes(5), bytearray(4))),
        ("update_into", (memoryview(buf)[:4], memoryview(buf)[1:])),
        ("update_into", (bytes(5), None)),
        ("verify", ("text",)),
        ("verify", (bytes(15),)),
        ("finalize", (1,)),
        ("digest", (1,)),
    ]
    for method, arguments in refused:
        if hasattr(thing, method):
            with pytest.raises((TypeError, ValueError, BufferError, api.InvalidTag)):
                getattr(thing, method)(*arguments)
    assert buf == bytes(5)
    assert computed(thing) == computed(same)


if sys.version_info >= (3, 12):  # from there on Python code can offer a buffer

    @pytest.mark.parametrize("name", IN_PARTS)
    def test_arguments_are_taken_before_the_object_is_claimed(api: ModuleType, name: str) -> None:
        thing, same = make(api, name), make(api, name)

        class Updating:
            def __buffer__(self, flags: int) -> memoryview:
                thing.update(b"first")
                return memoryview(b"second")

        thing.update(Updating())
        same.update(b"first")
        same.update(b"second")
        assert computed(thing) == computed(same)


@pytest.mark.usefixtures("eager_switches")
@pytest.mark.parametrize("name", IN_PARTS)
def test_a_call_during_another_is_refused_and_changes_nothing(api: ModuleType, name: str) -> None:
    # Another thread calls all the time while this one makes a long update; again if no call fell into it.
    data = bytes(2**18 if api.kernel == "pure" else 2**24)
    same = make(api, name)
    same.update(data)
    expected = computed(same)
    refusals: set[str] = set()
    for _ in range(1000):
        thing = make(api, name)
        with calling(lambda: thing.update(b""), api.StateError, refusals):  # noqa: B023
            until_not_refused(lambda: thing.update(data), api.StateError)  # noqa: B023
        assert computed(thing) == expected
        if refusals:
            assert refusals == {f"another call on this {NOUN[name]} is in progress"}
            return
    pytest.fail("1000 long updates and no call was refused")


# ---- with: leaving a decryptor without a verification is an error. ----


def test_entering_gives_the_object_itself(api: ModuleType) -> None:
    for name in MADE:
        thing = make(api, name)
        assert thing.__enter__() is thing


def test_leaving_after_a_verification(api: ModuleType) -> None:
    decryptor, ciphertext, tag = decryptor_of(api)
    with decryptor:
        assert decryptor.update(ciphertext) == DATA
        decryptor.verify(tag)
    assert decryptor.__exit__(None, None, None) is None


def test_leaving_without_a_verification(api: ModuleType) -> None:
    decryptor, ciphertext, _ = decryptor_of(api)
    with refuses(api.InvalidTag, WITH_BLOCK), decryptor:
        decryptor.update(ciphertext)
    with refuses(api.StateError, "decryptor is closed"):
        decryptor.update(b"")
    with refuses(api.InvalidTag, WITH_BLOCK), make(api, "UnverifiedDecryptor"):
        pass


def test_leaving_after_a_refused_verification_that_was_caught(api: ModuleType) -> None:
    for tag in (bytes(16), b"", DATA):
        decryptor, ciphertext, _ = decryptor_of(api)
        with refuses(api.InvalidTag, WITH_BLOCK), decryptor:
            decryptor.update(ciphertext)
            with pytest.raises(api.InvalidTag):
                decryptor.verify(tag)


def test_the_refusal_itself_leaves_the_block(api: ModuleType) -> None:
    decryptor, ciphertext, _ = decryptor_of(api)
    with refuses(api.InvalidTag, "tag does not match"), decryptor:
        decryptor.update(ciphertext)
        decryptor.verify(bytes(16))


def test_an_exception_in_flight_is_kept(api: ModuleType) -> None:
    decryptor, _, _ = decryptor_of(api)
    mine = KeyError("mine")
    with pytest.raises(KeyError) as caught, decryptor:
        raise mine
    assert caught.value is mine
    assert caught.value.__context__ is None
    with refuses(api.StateError, "decryptor is closed"):
        decryptor.update(b"")


def test_leaving_an_encryptor_closes_it(api: ModuleType) -> None:
    with make(api, "Encryptor") as encryptor:
        encryptor.update(DATA)
    with refuses(api.StateError, "encryptor is closed"):
        encryptor.finalize()
    with make(api, "Encryptor") as encryptor:
        assert encryptor.finalize() == EMPTY


def test_exit_takes_what_python_gives(api: ModuleType) -> None:
    for arguments in ((), (None, None, None), (None,)):
        with refuses(api.InvalidTag, WITH_BLOCK):
            make(api, "UnverifiedDecryptor").__exit__(*arguments)
    assert make(api, "UnverifiedDecryptor").__exit__(KeyError, KeyError(), None) is None


# ---- Dropping a decryptor without a verification is a warning. ----


@contextmanager
def warnings_that(action: Literal["always", "error"]) -> Iterator[list[warnings.WarningMessage]]:
    """Records warnings, or raises them; those of what other tests left in cycles came before."""
    gc.collect()
    with warnings.catch_warnings(record=action == "always") as caught:
        warnings.simplefilter(action)
        yield [] if caught is None else caught


def dropping(make_and_drop: Callable[[], Any]) -> list[str]:
    """The warnings of a function, which come from this file."""
    with warnings_that("always") as caught:
        make_and_drop()
    assert {w.category for w in caught} <= {ResourceWarning}
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


def test_dropped_unverified(api: ModuleType) -> None:
    assert dropping(lambda: make(api, "UnverifiedDecryptor")) == [DROPPED]
    assert dropping(lambda: decryptor_of(api)[0].update(DATA)) == [DROPPED]


def test_dropped_after_a_tag_of_another_length(api: ModuleType) -> None:
    def drop() -> None:
        with pytest.raises(api.InvalidTag):
            make(api, "UnverifiedDecryptor").verify(b"")

    assert dropping(drop) == [DROPPED]


def test_what_has_ended_is_dropped_silently(api: ModuleType) -> None:
    for name in IN_PARTS:
        for end in ends(name).values():
            assert dropping(lambda: end(make(api, name))) == []  # noqa: B023
    for name in ("Encryptor", "Poly1305", "ChaCha20"):
        assert dropping(lambda: make(api, name)) == []  # noqa: B023

    def leave_unverified() -> None:
        with pytest.raises(api.InvalidTag), make(api, "UnverifiedDecryptor"):
            pass

    assert dropping(leave_unverified) == []


def test_nothing_is_said_of_what_never_began(api: ModuleType) -> None:
    key = api.ChaCha20Poly1305(K)

    def fail() -> None:
        for arguments in ((b"",), (N12, "text"), (None,), ()):
            with pytest.raises((TypeError, api.InvalidNonce)):
                key.unverified_decryptor(*arguments)

    assert dropping(fail) == []


def test_an_exception_survives_what_is_dropped_on_its_way(api: ModuleType) -> None:
    # int() has raised when its argument, to which nothing else refers, is dropped.
    def catch() -> None:
        with pytest.raises(TypeError, match=r"^int\(\) argument must be"):
            int(make(api, "UnverifiedDecryptor"))

    assert dropping(catch) == [DROPPED]


def test_a_warning_that_is_an_error_reaches_the_hook(
    api: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda args: seen.append((type(args.exc_value), str(args.exc_value)))
    )
    with warnings_that("error"):
        make(api, "UnverifiedDecryptor")
    assert seen == [(ResourceWarning, DROPPED)]


def test_who_keeps_a_dropped_object_has_a_closed_one(
    api: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(warnings, "_showwarnmsg", lambda message: kept.append(message.source))
    with warnings_that("always"):
        make(api, "UnverifiedDecryptor")
        (decryptor,) = kept
        assert type(decryptor) is api.UnverifiedDecryptor
        with refuses(api.StateError, "decryptor is closed"):
            decryptor.update(b"")
        kept.clear()
        del decryptor
    assert kept == []  # it does not warn again


@pytest.mark.parametrize("in_a_cycle", [False, True])
@pytest.mark.parametrize("keeper", ["globals()", "sys.modules", "vars(sys)"])
def test_the_end_of_the_interpreter_is_quiet(api: ModuleType, keeper: str, in_a_cycle: bool) -> None:
    # Objects that live so long are dropped when hardly a module is left.
    code = f"""
import sys, chapoly
key, n12 = bytes(32), bytes(12)
aead = chapoly.ChaCha20Poly1305(key)
kept = {keeper}["kept"] = [
    chapoly.ChaCha20(key, n12), chapoly.XChaCha20(key, bytes(24)), chapoly.ChaCha20Legacy(key, bytes(8)),
    chapoly.Poly1305(key), aead.encryptor(n12), aead.unverified_decryptor(n12),
]
if {in_a_cycle}:
    kept.append(kept)
if {keeper} is not globals():
    del kept
"""
    done = python(code, "-W", "default::ResourceWarning", CHAPOLY_KERNEL=api.kernel)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    if keeper == "globals()":  # later nobody may be left to be told
        assert lines[0].endswith(f": ResourceWarning: {DROPPED}")
    assert all("ResourceWarning: " in line for line in lines)


def test_del_by_hand_closes(api: ModuleType) -> None:
    decryptor = make(api, "UnverifiedDecryptor")
    assert dropping(decryptor.__del__) == [DROPPED]
    assert dropping(decryptor.__del__) == []
    with refuses(api.StateError, "decryptor is closed"):
        decryptor.verify(EMPTY)


@pytest.mark.parametrize("name", ["encryptor", "unverified_decryptor"])
def test_each_key_makes_its_own(api: ModuleType, name: str) -> None:
    results = {
        entry(api, f"{owner}.{name}")(**ENTRIES[f"{owner}.{name}"]).update(bytes(64)) for owner in KEYS
    } | {make(api, {"encryptor": "Encryptor"}.get(name, "UnverifiedDecryptor")).update(bytes(64))}
    assert len(results) == 3
