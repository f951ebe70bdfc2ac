"""Types and functions are final, immutable and secretive, and the same in both implementations."""

import contextlib
import copy
import gc
import inspect
import pickle
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from entries import ENTRIES, NONCE_SIZES, RFC, STREAMS, TYPES, K, entry, make, refuses

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
    assert names == set(ENTRIES)


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


@pytest.mark.parametrize("name", OBJECTS)
def test_calling_init_again_does_not_change_the_key(api: ModuleType, name: str) -> None:
    thing, same = make(api, name), make(api, name)
    with contextlib.suppress(TypeError):  # from object's own, which takes nothing
        thing.__init__(**ENTRIES[name] | {"key": b"\xff" * 32})
    if name in STREAMS:
        assert thing.keystream(64) == same.keystream(64)
    else:
        assert thing.encrypt(bytes(thing.NONCE_SIZE), b"") == same.encrypt(bytes(thing.NONCE_SIZE), b"")


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


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.usefixtures("native_api")
def test_signatures_are_those_of_pure(name: str) -> None:
    native = chapoly._backend.native
    assert shape(flat(native, name)) == shape(flat(pure, name))


@pytest.mark.parametrize("name", ENTRIES)
def test_parameters_are_those_of_the_table(api: ModuleType, name: str) -> None:
    parameters = inspect.signature(entry(api, name)).parameters
    assert list(parameters) == list(ENTRIES[name])
    keyword_only = {"rounds", "out"} | ({"counter"} if name in STREAMS else set())
    for parameter, is_ in parameters.items():
        alone = parameter in keyword_only and not name.endswith(
            "_packed"
        )  # where out stands among the others
        right = is_.KEYWORD_ONLY if alone else is_.POSITIONAL_OR_KEYWORD
        assert is_.kind == right


@pytest.mark.parametrize("name", ENTRIES)
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
    for special in ("__enter__", "__exit__", "__hash__", "__eq__"):
        assert hasattr(getattr(native_api, name), special) == hasattr(getattr(pure, name), special)


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
    calls.append(((), good | {"unexpected": 1}))
    calls.append(((*good.values(), 1), {}))
    calls.append(((*good.values(), 1, 2), {}))
    return calls


@pytest.mark.parametrize("name", ENTRIES)
def test_calls_of_the_wrong_shape_are_type_errors(api: ModuleType, name: str) -> None:
    for positional, named in misshapen(name):
        outcome(entry(api, name), positional, named)


@pytest.mark.parametrize("name", ENTRIES)
def test_calls_of_the_wrong_shape_have_the_same_text(native_api: ModuleType, name: str) -> None:
    owner, _, method = name.rpartition(".")
    for positional, named in misshapen(name):
        readable = (
            getattr(getattr(pure, owner)(**ENTRIES[owner]), method) if owner in TYPES else flat(pure, name)
        )
        assert outcome(entry(native_api, name), positional, named) == outcome(readable, positional, named)


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
