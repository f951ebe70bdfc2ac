"""Types and functions are final, immutable and secretive, and the same in both implementations."""

import contextlib
import copy
import gc
import inspect
import pickle
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from entries import (
    ENTRIES,
    KEYED,
    KEYS,
    MAC,
    MADE,
    NONCE_SIZES,
    RFC,
    STREAMS,
    TYPES,
    K,
    computed,
    entry,
    make,
    refuses,
)

import chapoly.pure

pure = chapoly.pure
OBJECTS = [name for name in TYPES if name != "Tag"]
FUNCTIONS = [name for name in ENTRIES if name[0].islower()]
METHODS = [name for name in ENTRIES if name[0].isupper() and "." in name]
MODULES = ("chacha20", "xchacha20", "poly1305", "chacha20poly1305", "xchacha20poly1305")


def flat(implementation: Any, name: str) -> Any:
    """The function, type or method of a public name in one implementation."""
    if name[0].islower():
        return getattr(implementation, name.replace(".", "_"))
    owner, _, method = name.partition(".")
    return getattr(getattr(implementation, owner), method) if method else getattr(implementation, owner)


# ---- The public face. ----


def test_every_entry_point_is_in_the_table() -> None:
    names = {f"{module}.{name}" for module in MODULES for name in getattr(chapoly, module).__all__}
    for name in TYPES:
        methods = {
            n
            for n, value in vars(getattr(pure, name)).items()
            if callable(value) or isinstance(value, staticmethod)
        }
        names |= {name} | {f"{name}.{method}" for method in methods if not method.startswith("_")}
    assert names == {*ENTRIES, *MADE}


def test_public_names(api: ModuleType) -> None:
    errors = {
        "Error",
        "InvalidKey",
        "InvalidNonce",
        "CounterOverflow",
        "StateError",
        "InvalidTag",
        "PureBackendWarning",
    }
    assert set(api.__all__) == {*TYPES, *MODULES, *errors, "__version__", "backend", "kernel", "kernels"}
    for name in api.__all__:
        assert hasattr(api, name)
    for module in MODULES:
        assert inspect.getdoc(getattr(api, module))
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", api.__version__)


def test_objects_say_where_they_are_public(api: ModuleType) -> None:
    for name in TYPES:
        kind = getattr(api, name)
        assert (kind.__module__, kind.__name__, kind.__qualname__) == ("chapoly", name, name)
        assert repr(kind) == f"<class 'chapoly.{name}'>"
    for name in FUNCTIONS:
        function, (module, _, public) = entry(api, name), name.partition(".")
        assert (function.__module__, function.__name__, function.__qualname__) == (
            f"chapoly.{module}",
            public,
            public,
        )
    for name in METHODS:
        method = name.partition(".")[2]
        assert (entry(api, name).__name__, entry(api, name).__qualname__) == (method, name)


def test_errors_are_of_the_built_in_kinds(api: ModuleType) -> None:
    kinds = {
        api.InvalidKey: ValueError,
        api.InvalidNonce: ValueError,
        api.CounterOverflow: OverflowError,
        api.StateError: RuntimeError,
        api.InvalidTag: Exception,
    }
    for error, kind in kinds.items():
        assert issubclass(error, api.Error)
        assert issubclass(error, kind)
        assert error.__module__ == "chapoly"
        assert type(pickle.loads(pickle.dumps(error("text")))) is error
    assert api.Error.__bases__ == (Exception,)
    assert not issubclass(api.InvalidTag, ValueError)
    assert issubclass(api.PureBackendWarning, RuntimeWarning)


def test_sizes_stand_in_the_classes(api: ModuleType) -> None:
    for name, size in NONCE_SIZES.items():
        for kind in (getattr(api, name), make(api, name)):
            assert (32, size) == (kind.KEY_SIZE, kind.NONCE_SIZE)
            if name.endswith("Poly1305"):
                assert kind.TAG_SIZE == 16
    for mac in (api.Poly1305, make(api, "Poly1305")):
        assert (mac.name, mac.digest_size, mac.block_size) == ("poly1305", 16, 16)


def test_random_keys_and_nonces(api: ModuleType) -> None:
    for make_random, size in [
        (api.ChaCha20Poly1305.generate_key, 32),
        (api.XChaCha20Poly1305.generate_key, 32),
        (api.XChaCha20Poly1305.generate_nonce, 24),
        (make(api, "XChaCha20Poly1305").generate_nonce, 24),
    ]:
        values = {make_random() for _ in range(100)}
        assert len(values) == 100
        assert {len(value) for value in values} == {size}
    assert not hasattr(api.ChaCha20Poly1305, "generate_nonce")


def test_randomness_is_the_operating_systems(native_api: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.urandom", lambda n: b"\x07" * n)
    assert native_api.ChaCha20Poly1305.generate_key() == b"\x07" * 32
    assert native_api.XChaCha20Poly1305.generate_nonce() == b"\x07" * 24


# ---- Final and immutable. ----


@pytest.mark.parametrize("name", TYPES)
def test_no_subclasses(api: ModuleType, name: str) -> None:
    with refuses(TypeError, f"type 'chapoly.{name}' is not an acceptable base type"):
        type("Sub", (getattr(api, name),), {})


@pytest.mark.parametrize("name", TYPES)
def test_types_cannot_be_changed(api: ModuleType, name: str) -> None:
    kind = getattr(api, name)
    for attribute in ("x", "KEY_SIZE", "encrypt", "update", "__init__", "__eq__", "__doc__"):
        before = getattr(kind, attribute, None)
        with refuses(TypeError, f"cannot set '{attribute}' attribute of immutable type 'chapoly.{name}'"):
            setattr(kind, attribute, 1)
        with refuses(TypeError, f"cannot set '{attribute}' attribute of immutable type 'chapoly.{name}'"):
            delattr(kind, attribute)
        assert getattr(kind, attribute, None) == before


@pytest.mark.parametrize("name", TYPES)
def test_objects_take_no_attributes(api: ModuleType, name: str) -> None:
    thing = make(api, name)
    for attribute in ("x", "key", "nonce", "KEY_SIZE", "encrypt", "update"):
        with pytest.raises(AttributeError):
            setattr(thing, attribute, 1)
    assert not hasattr(thing, "__dict__")


@pytest.mark.parametrize("name", TYPES)
def test_objects_keep_their_type(api: ModuleType, name: str) -> None:
    kind, thing = getattr(api, name), make(api, name)
    alike = type("Alike", (), {"__slots__": getattr(kind, "__slots__", ())})
    others = [getattr(api, other) for other in TYPES]
    for other in (*others, alike, bytes, object):
        for assign in (setattr, object.__setattr__):
            with refuses(
                TypeError, "__class__ assignment only supported for mutable types or ModuleType subclasses"
            ):
                assign(thing, "__class__", other)
    with refuses(TypeError, "can't delete __class__ attribute"):
        del thing.__class__
    assert thing.__class__ is type(thing) is kind
    assert isinstance(thing, kind)


@pytest.mark.parametrize("name", OBJECTS)
def test_what_no_constructor_has_made_computes_nothing(api: ModuleType, name: str) -> None:
    # A known difference: no code in Python can keep object.__new__ from making what then has no key.
    kind = getattr(api, name)
    if api.backend == "native":
        with refuses(TypeError, f"object.__new__(chapoly.{name}) is not safe, use chapoly.{name}.__new__()"):
            object.__new__(kind)
    else:
        made = object.__new__(kind)
        for method in (m for m in METHODS if m.startswith(f"{name}.") and ".generate_" not in m):
            with pytest.raises(AttributeError):
                getattr(made, method.partition(".")[2])(**ENTRIES[method])


def test_a_tag_that_no_constructor_has_made_matches_nothing(api: ModuleType) -> None:
    # A known difference: nor can it keep bytes.__new__ from making a Tag of another length.
    if api.backend == "native":
        with refuses(TypeError, "bytes.__new__(chapoly.Tag) is not safe, use chapoly.Tag.__new__()"):
            bytes.__new__(api.Tag, b"x")
    else:
        made = bytes.__new__(api.Tag, b"x")
        assert made != api.Tag(MAC.tag)
        with refuses(api.InvalidTag, "tag must be 16 bytes, got 1"):
            api.poly1305.verify(MAC.key, MAC.msg, made)


@pytest.mark.parametrize("name", OBJECTS)
def test_calling_init_again_does_not_change_the_key(api: ModuleType, name: str) -> None:
    thing, same = make(api, name), make(api, name)
    with contextlib.suppress(TypeError):  # from object's own, which takes nothing
        thing.__init__(**(ENTRIES[name] if name in KEYED else {}) | {"key": b"\xff" * 32})
    assert computed(thing) == computed(same)


@pytest.mark.parametrize("name", MADE)
def test_what_only_methods_make(api: ModuleType, name: str) -> None:
    kind = getattr(api, name)
    assert type(make(api, name)) is kind
    for call in (kind, lambda: kind.__new__(kind)):
        with refuses(TypeError, f"cannot create 'chapoly.{name}' instances"):
            call()
    with refuses(TypeError, f"{name}.__new__() takes 1 positional argument but 2 were given"):
        kind(K)
    with refuses(TypeError, f"{name}.__new__() got an unexpected keyword argument 'key'"):
        kind(key=K)


def test_both_nonce_sizes_make_the_same_types(api: ModuleType) -> None:
    for name in KEYS:
        key = make(api, name)
        assert type(key.encryptor(bytes(key.NONCE_SIZE))) is api.Encryptor
        assert type(key.unverified_decryptor(bytes(key.NONCE_SIZE))) is api.UnverifiedDecryptor


# ---- Secrets stay inside. ----


@pytest.mark.parametrize("name", OBJECTS)
def test_repr_shows_no_secret(api: ModuleType, name: str) -> None:
    key = bytes(range(0xA0, 0xC0))
    thing = make(api, name, key=key)
    for text in (repr(thing), str(thing), f"{thing}"):
        assert re.fullmatch(rf"<chapoly\.{name} object at 0x[0-9a-fA-F]+>", text)
        assert key[:4].hex() not in text.lower()


@pytest.mark.parametrize("name", OBJECTS)
def test_no_pickle_and_no_copy(api: ModuleType, name: str) -> None:
    thing = make(api, name)
    attempts: list[Callable[[], Any]] = [
        lambda: copy.copy(thing),
        lambda: copy.deepcopy(thing),
        thing.__reduce__,
        thing.__getstate__,
    ]
    attempts += [lambda p=p: pickle.dumps(thing, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    attempts += [lambda p=p: thing.__reduce_ex__(p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    for attempt in attempts:
        with refuses(TypeError, f"cannot pickle '{name}' object"):
            attempt()


@pytest.mark.parametrize("name", OBJECTS)
def test_the_garbage_collector_shows_no_secret(native_api: ModuleType, name: str) -> None:
    for referent in gc.get_referents(make(native_api, name)):
        assert referent is getattr(native_api, name)


# ---- The same in both implementations. ----


def shape(function: Any) -> inspect.Signature:
    """The signature without annotations and self, which inspect shows otherwise for native code."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)


@pytest.mark.parametrize("name", [*ENTRIES, *MADE])
@pytest.mark.usefixtures("native_api")
def test_signatures_are_those_of_pure(name: str) -> None:
    native = chapoly._backend.native
    assert shape(flat(native, name)) == shape(flat(pure, name))


@pytest.mark.parametrize("name", ENTRIES)
def test_parameters_are_those_of_the_table(api: ModuleType, name: str) -> None:
    parameters = inspect.signature(entry(api, name)).parameters
    assert list(parameters) == list(ENTRIES[name])
    keyword_only = {"rounds", "out", "threads"} | ({"counter"} if name in STREAMS else set())
    for parameter, is_ in parameters.items():
        alone = parameter in keyword_only and not name.endswith(
            "_packed"
        )  # where out stands among the others
        right = is_.KEYWORD_ONLY if alone else is_.POSITIONAL_OR_KEYWORD
        assert is_.kind == right


@pytest.mark.parametrize("name", [*ENTRIES, *MADE])
@pytest.mark.usefixtures("native_api")
def test_docstrings_are_those_of_pure(name: str) -> None:
    native, readable = (inspect.getdoc(flat(which, name)) for which in (chapoly._backend.native, pure))
    assert readable
    assert native == readable


@pytest.mark.parametrize("name", TYPES)
def test_public_attributes_are_those_of_pure(native_api: ModuleType, name: str) -> None:
    native, readable = (
        {n for n in dir(getattr(which, name)) if not n.startswith("_")}
        for which in (chapoly._backend.native, pure)
    )
    assert native == readable
    for special in ("__enter__", "__exit__", "__hash__", "__eq__", "__del__"):
        of_native, of_pure = (getattr(getattr(w, name), special, None) for w in (native_api, pure))
        assert (of_native is None) == (of_pure is None)
        if special in ("__enter__", "__exit__") and of_pure is not None:
            assert inspect.getdoc(of_native) == inspect.getdoc(of_pure)


def outcome(call: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[type, str]:
    with pytest.raises(TypeError) as caught:
        call(*positional, **named)
    return caught.type, str(caught.value)


def misshapen(name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments missing, unexpected, given twice, too many."""
    good = ENTRIES[name]
    parameters = inspect.signature(flat(pure, name)).parameters
    required = [p for p in good if parameters[p].default is inspect.Parameter.empty]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {p: good[p] for p in required if p != missing}) for missing in required
    ]
    if required:
        calls.append(((), {}))
        calls.append((tuple(good[p] for p in required[:-1]), {}))
        calls.append((tuple(good[p] for p in required), {required[0]: good[required[0]]}))
    for other in ("unexpected", "self", "cls"):
        calls.append(((), good | {other: 1}))
        calls.append(((), {other: 1}))
        calls.append(((*good.values(), 1), {other: 1}))
    calls.append(((*good.values(), 1), {}))
    calls.append(((*good.values(), 1, 2), {}))
    return calls


@pytest.mark.parametrize("name", ENTRIES)
def test_calls_of_the_wrong_shape_are_type_errors(api: ModuleType, name: str) -> None:
    for positional, named in misshapen(name):
        outcome(entry(api, name), positional, named)


def readable(name: str) -> Callable[..., Any]:
    """What entry() gives, of pure."""
    owner, _, method = name.rpartition(".")
    return getattr(make(pure, owner), method) if owner in TYPES else flat(pure, name)


@pytest.mark.parametrize("name", ENTRIES)
def test_calls_of_the_wrong_shape_have_the_same_text(native_api: ModuleType, name: str) -> None:
    for positional, named in misshapen(name):
        assert outcome(entry(native_api, name), positional, named) == outcome(
            readable(name), positional, named
        )


@pytest.mark.parametrize("name", ENTRIES)
def test_only_pure_suggests_what_was_meant(native_api: ModuleType, name: str) -> None:
    # A known difference: from Python 3.13 on the interpreter adds this to its error about code in Python.
    suggestion = re.compile(r"\. Did you mean '(\w+)'\?$")
    for parameter in ENTRIES[name]:
        misspelt = {parameter + "s": ENTRIES[name][parameter]}
        _, native = outcome(entry(native_api, name), (), misspelt)
        _, text = outcome(readable(name), (), misspelt)
        assert native.endswith(f"got an unexpected keyword argument '{parameter}s'")
        assert suggestion.sub("", text) == native
        found = suggestion.search(text)
        assert (found and found[1]) == (parameter if sys.version_info >= (3, 13) else None)


def test_every_parameter_can_be_given_by_position_or_name(api: ModuleType) -> None:
    assert api.chacha20.block(K, 1, bytes(12)) == api.chacha20.block(nonce=bytes(12), key=K, counter=1)
    sealed = api.chacha20poly1305.encrypt(RFC.key, RFC.nonce, RFC.msg, RFC.aad)
    assert sealed == api.chacha20poly1305.encrypt(
        RFC.key, associated_data=RFC.aad, data=RFC.msg, nonce=RFC.nonce
    )
    assert sealed == api.ChaCha20Poly1305(key=RFC.key).encrypt(
        data=RFC.msg, nonce=RFC.nonce, associated_data=RFC.aad
    )
    name = "".join(["no", "nce"])  # not interned: names compare by value
    assert sealed == api.ChaCha20Poly1305(RFC.key).encrypt(
        data=RFC.msg, associated_data=RFC.aad, **{name: RFC.nonce}
    )


@pytest.mark.parametrize("name", TYPES)
def test_keywords_of_constructors_must_be_strings(api: ModuleType, name: str) -> None:
    for keyword in (1, b"key", ("key",)):
        with refuses(TypeError, "keywords must be strings"):
            getattr(api, name)(**{keyword: bytes(32)})
