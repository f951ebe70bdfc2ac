"""Backend and kernel are chosen once, at import, by the environment and what there is; never silently."""

import contextlib
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import interpreter
import pytest
from conftest import NATIVE_KERNELS
from entries import N12, K, refuses
from interpreter import PACKAGE, last_line, prints, python

import chapoly
import chapoly._selftest
import chapoly.testing

AVAILABLE = ", ".join(chapoly.kernels())
SHOW = "import chapoly; print(chapoly.backend, chapoly.kernel)"
FIRST = f"native {NATIVE_KERNELS[0]}" if NATIVE_KERNELS else "pure pure"
needs_native = pytest.mark.skipif(not NATIVE_KERNELS, reason="this installation has no native module")


@pytest.fixture
def without_native(tmp_path: Path) -> Path:
    return interpreter.without_native(tmp_path)


@pytest.fixture
def native_file() -> Path:
    assert chapoly._backend.native is not None
    return Path(chapoly._backend.native.__file__)


# ---- What there is. ----


def test_kernels_are_listed_fastest_first_and_pure_last() -> None:
    kernels = chapoly.kernels()
    assert len(set(kernels)) == len(kernels)
    assert kernels[-1] == "pure"
    if len(kernels) > 1:
        assert kernels[-2] == "portable"
    assert type(kernels) is tuple
    assert chapoly.kernels() == kernels


@needs_native
def test_the_fastest_kernel_is_used_unless_told_otherwise() -> None:
    assert prints(SHOW) == FIRST


def test_the_backend_follows_from_the_kernel(api: ModuleType) -> None:
    assert api.kernel in api.kernels()
    assert api.backend == ("pure" if api.kernel == "pure" else "native")


# ---- The environment. ----


@pytest.mark.parametrize("name", chapoly.kernels())
def test_each_kernel_can_be_forced(name: str) -> None:
    code = f"{SHOW}; print(chapoly.chacha20.block(bytes(32), 0, bytes(12))[:4].hex(), chapoly.kernels())"
    backend = "pure" if name == "pure" else "native"
    assert prints(code, "-W", "error", CHAPOLY_KERNEL=name).splitlines() == [
        f"{backend} {name}",
        f"76b8e0ad {chapoly.kernels()!r}",
    ]


@pytest.mark.parametrize(
    "name",
    ["fast", "PURE", "native", " pure", "portable,pure", "sse2" if "neon" in chapoly.kernels() else "neon"],
)
def test_an_unknown_or_unsupported_kernel_is_an_import_error(name: str) -> None:
    line = last_line("import chapoly", CHAPOLY_KERNEL=name)
    assert line == f"ImportError: CHAPOLY_KERNEL={name} is not available here; available: {AVAILABLE}"


@needs_native
def test_empty_means_unset() -> None:
    assert prints(SHOW, CHAPOLY_KERNEL="", CHAPOLY_REQUIRE_NATIVE="") == FIRST


@needs_native
@pytest.mark.parametrize("option", ["-E", "-I"])
def test_the_environment_can_be_ignored(option: str) -> None:
    assert prints(SHOW, option, CHAPOLY_KERNEL="fast", CHAPOLY_REQUIRE_NATIVE="perhaps") == FIRST
    assert prints(SHOW, option, CHAPOLY_KERNEL="pure") == FIRST


@needs_native
def test_native_can_be_required() -> None:
    assert prints(SHOW, CHAPOLY_REQUIRE_NATIVE="1") == FIRST
    for name in NATIVE_KERNELS:
        assert prints(SHOW, CHAPOLY_REQUIRE_NATIVE="1", CHAPOLY_KERNEL=name) == f"native {name}"


def test_requiring_native_and_asking_for_pure_contradict_each_other() -> None:
    line = last_line("import chapoly", CHAPOLY_REQUIRE_NATIVE="1", CHAPOLY_KERNEL="pure")
    assert (
        line
        == f"ImportError: CHAPOLY_KERNEL=pure contradicts CHAPOLY_REQUIRE_NATIVE=1; available: {AVAILABLE}"
    )


def test_an_unknown_value_of_require_native_is_an_import_error() -> None:
    line = last_line("import chapoly", CHAPOLY_REQUIRE_NATIVE="yes")
    assert line.startswith("ImportError: CHAPOLY_REQUIRE_NATIVE must be ")
    assert "'yes'" in line


# ---- Without the native module. ----


def test_pure_warns_once_when_it_was_not_asked_for(without_native: Path) -> None:
    code = (
        f"import chapoly.chacha20; import chapoly; import chapoly.testing; {SHOW}, print(chapoly.kernels())"
    )
    done = python(code, "-W", "always", package=without_native)
    assert (done.returncode, done.stdout) == (0, "pure pure\n('pure',)\n")
    assert done.stderr.count("PureBackendWarning: ") == 1
    assert "CHAPOLY_KERNEL=pure" in done.stderr  # it says how to ask for it


@pytest.mark.parametrize(
    "statement",
    [
        "import chapoly",
        "import chapoly.chacha20",
        "import chapoly.pure",
        "import chapoly.testing",
        "from chapoly import ChaCha20Poly1305",
        "from chapoly.xchacha20 import cipher",
        "exec('import chapoly')",
    ],
)
def test_the_warning_names_the_line_that_imports(
    without_native: Path, tmp_path: Path, statement: str
) -> None:
    user = tmp_path / "user.py"
    user.write_text(f"\n\ndef use():\n    {statement}\n\nuse()\n", encoding="utf-8")
    file = "<string>:1" if "exec" in statement else f"{user}:4"
    for options in ([], ["-I", "-S"]):
        code = f"sys.path.insert(0, {str(tmp_path)!r}); import user"
        done = python(code, "-W", "default", *options, package=without_native)
        assert done.returncode == 0
        assert done.stderr.startswith(f"{file}: PureBackendWarning: ")
    done = python(f"import sys\n{statement}", "-W", "error", package=without_native)
    assert 'File "<string>", line 3, in <module>\n' in done.stderr
    module = "ignore::RuntimeWarning:user"  # what warns is the user's module
    assert prints(code, "-W", "error", "-W", module, package=without_native) == ""


def test_the_warning_of_a_wrong_kernel_names_the_line_that_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    native = SimpleNamespace(
        kernels=lambda: (("wide", None, None), ("slow", None, None)), use=lambda name: None
    )
    answers = iter([["mac"], []])
    monkeypatch.setattr(chapoly._selftest, "failures", lambda *_, **__: next(answers))
    with pytest.warns(RuntimeWarning, match="kernel wide gives wrong answers") as warned:
        assert chapoly._backend.choose(native, "", False) == "slow"
    assert [warning.filename for warning in warned] == [__file__]


def test_warning_loads_nothing_but_pure_and_its_needs(without_native: Path) -> None:
    code = "before = set(sys.modules); import chapoly; print(*sorted(set(sys.modules) - before))"
    loaded = prints(code, "-I", "-S", "-W", "ignore", package=without_native).split()
    assert "chapoly.pure" in loaded
    assert {name for name in loaded if name.split(".")[0] != "chapoly"} <= {"__future__", "_operator"}


def test_the_warning_can_be_an_error(without_native: Path) -> None:
    code = "import warnings; warnings.simplefilter('error'); import chapoly"
    assert last_line(code, package=without_native).startswith("chapoly.PureBackendWarning: ")


def test_pure_that_was_asked_for_does_not_warn(without_native: Path) -> None:
    assert prints(SHOW, "-W", "error", package=without_native, CHAPOLY_KERNEL="pure") == "pure pure"


def test_required_native_that_is_absent_is_an_import_error(without_native: Path) -> None:
    line = last_line("import chapoly", package=without_native, CHAPOLY_REQUIRE_NATIVE="1")
    assert line.startswith("ImportError: CHAPOLY_REQUIRE_NATIVE=1, but only pure is available")


def test_a_native_kernel_that_is_absent_is_an_import_error(without_native: Path) -> None:
    line = last_line("import chapoly", package=without_native, CHAPOLY_KERNEL="portable")
    assert line == "ImportError: CHAPOLY_KERNEL=portable is not available here; available: pure"


@needs_native
def test_a_broken_native_module_is_an_import_error_with_the_reason(
    without_native: Path, native_file: Path
) -> None:
    for content in (b"", b"this is no library"):
        (without_native / native_file.name).write_bytes(content)
        line = last_line("import chapoly", package=without_native)
        assert line.startswith("ImportError: chapoly's native module does not load: ")
        assert native_file.name in line


@needs_native
def test_a_native_module_that_misses_another_is_broken_too(without_native: Path) -> None:
    (without_native / "_native.py").write_text("import surely_not_there\n", encoding="utf-8")
    line = last_line("import chapoly", package=without_native)
    assert line == "ImportError: chapoly's native module does not load: No module named 'surely_not_there'"


# ---- The import. ----


@needs_native
def test_importing_loads_nothing_but_chapoly() -> None:
    code = "before = set(sys.modules); import chapoly; print(*sorted(set(sys.modules) - before))"
    loaded = prints(code, "-I", "-S").split()
    assert "chapoly._native" in loaded
    assert [name for name in loaded if name.split(".")[0] != "chapoly"] == []
    assert [
        name for name in loaded if name.startswith(("chapoly.pure", "chapoly.cli", "chapoly.testing"))
    ] == []


def test_pure_is_loaded_from_python_alone(without_native: Path) -> None:
    code = "import chapoly; print(chapoly.chacha20.block(bytes(32), 0, bytes(12))[:4].hex())"
    assert prints(code, "-I", "-S", "-W", "ignore", package=without_native) == "76b8e0ad"


def test_types_are_there_for_type_checkers() -> None:
    assert (PACKAGE / "py.typed").exists()


# ---- use_kernel. ----


@pytest.mark.usefixtures("api")
def test_use_kernel_is_undone() -> None:
    before = {name: getattr(chapoly, name) for name in chapoly.__all__}
    block = chapoly.chacha20.block
    for name in chapoly.kernels():
        with contextlib.suppress(KeyError), chapoly.testing.use_kernel(name):
            assert chapoly.kernel == name
            raise KeyError
        assert {name: getattr(chapoly, name) for name in chapoly.__all__} == before
        assert chapoly.chacha20.block is block


@pytest.mark.usefixtures("api")
def test_use_kernel_refuses_others() -> None:
    before = chapoly.kernel
    with refuses(ValueError, f"kernel 'fast' is not available here; available: {AVAILABLE}"):
        chapoly.testing.use_kernel("fast").__enter__()
    assert chapoly.kernel == before


def test_objects_outlive_their_kernel(api: ModuleType) -> None:
    aead, stream = api.ChaCha20Poly1305(K), api.ChaCha20(K, N12)
    sealed, keystream = aead.encrypt(N12, b"data"), stream.keystream(1000)
    stream.seek(0)
    for name in chapoly.kernels():
        with chapoly.testing.use_kernel(name):
            assert aead.decrypt(N12, sealed) == b"data"
            assert stream.keystream(1000) == keystream
            stream.seek(0)


# ---- Children and other interpreters. ----


# Windows has none, and nothing that could take the place of this test.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.parametrize("name", chapoly.kernels())
def test_a_forked_child_goes_on(name: str) -> None:
    code = """
import os, chapoly
key, nonce = bytes(32), bytes(12)
aead, stream = chapoly.ChaCha20Poly1305(key), chapoly.ChaCha20(key, nonce)
sealed, expected = aead.encrypt(nonce, b"data"), chapoly.chacha20.cipher(key, 0, nonce, bytes(5000))
stream.update(bytes(100))
child = os.fork()
right = (
    aead.decrypt(nonce, sealed) == b"data"
    and stream.update(bytes(4900)) == expected[100:]
    and chapoly.ChaCha20Poly1305(key).encrypt(nonce, b"data") == sealed
)
if child == 0:
    os._exit(0 if right else 3)
print(right, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert prints(code, CHAPOLY_KERNEL=name) == "True 0"


SUBINTERPRETERS = """
import threading
try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters  # until 3.12; from there on each has its own GIL
import chapoly

code = f'''
import sys
sys.path[:] = {sys.path!r}
import chapoly
assert chapoly.kernel == {chapoly.kernel!r}
key, nonce = bytes(range(32)), bytes(12)
for n in range(0, 20000, 500):
    sealed = chapoly.ChaCha20Poly1305(key).encrypt(nonce, bytes(n), b"header")
    assert chapoly.ChaCha20Poly1305(key).decrypt(nonce, sealed, b"header") == bytes(n)
    assert chapoly.ChaCha20(key, nonce).keystream(n) == chapoly.chacha20.cipher(key, 0, nonce, bytes(n))
for call, error in [
    (lambda: chapoly.ChaCha20Poly1305(b""), chapoly.InvalidKey),
    (lambda: chapoly.chacha20.block(key, 0, b""), chapoly.errors.InvalidNonce),
    (lambda: chapoly.poly1305.verify(key, b"", bytes(16)), chapoly.InvalidTag),
]:
    try:
        call()
    except error as caught:
        assert type(caught) is error
    else:
        raise AssertionError(error)
'''

def run(interpreter):
    failure = interpreters.run_string(interpreter, code)  # it raises until 3.12
    if failure is not None:
        raise RuntimeError(failure)

created = [interpreters.create() for _ in range(2)]
for _ in range(2):
    threads = [threading.Thread(target=run, args=(interpreter,)) for interpreter in created]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
for interpreter in created:
    interpreters.destroy(interpreter)
# The main interpreter's state has survived the others.
assert chapoly.chacha20.block(bytes(32), 0, bytes(12)).hex().startswith("76b8e0ad")
try:
    chapoly.ChaCha20Poly1305(b"")
except chapoly.InvalidKey:
    print("right")
"""


# Other implementations, on which chapoly.pure may run, have none.
@pytest.mark.skipif(sys.implementation.name != "cpython", reason="subinterpreters are CPython's")
@pytest.mark.parametrize("name", chapoly.kernels())
def test_two_subinterpreters_at_once(name: str) -> None:
    assert prints(SUBINTERPRETERS, CHAPOLY_KERNEL=name) == "right"
