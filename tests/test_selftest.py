"""A kernel that answers wrong is not used: answers are corrupted for real, in copies of the extension."""

import json
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import NATIVE_KERNELS
from extension import Extension
from interpreter import last_line, prints, python

import chapoly
import chapoly.pure
from chapoly import _backend

pure = chapoly.pure
SHOW = "import chapoly; print(chapoly.backend, chapoly.kernel, *chapoly.kernels())"

needs_native = pytest.mark.skipif(not NATIVE_KERNELS, reason="this installation has no native module")


@pytest.fixture
def extension(tmp_path: Path) -> Extension:
    return Extension(tmp_path)


@needs_native
def test_the_copy_as_it_is_works(extension: Extension) -> None:
    extension.breaks()
    assert prints(SHOW, package=extension.package).split() == [
        "native",
        NATIVE_KERNELS[0],
        *chapoly.kernels(),
    ]


@needs_native
@pytest.mark.parametrize("kernel", NATIVE_KERNELS)
def test_a_forced_kernel_that_is_wrong_is_an_import_error(extension: Extension, kernel: str) -> None:
    for function in extension.functions(kernel):
        extension.breaks(function)
        line = last_line("import chapoly", package=extension.package, CHAPOLY_KERNEL=kernel)
        assert line.startswith(f"ImportError: chapoly's kernel {kernel} gives wrong answers ("), function.text


@needs_native
@pytest.mark.parametrize("kernel", NATIVE_KERNELS)
def test_a_wrong_kernel_is_passed_over_with_a_warning_and_the_last_is_an_error(
    extension: Extension, kernel: str
) -> None:
    place = NATIVE_KERNELS.index(kernel)
    faster = [function for name in NATIVE_KERNELS[:place] for function in extension.functions(name)]
    for function in extension.functions(kernel):
        extension.breaks(function, *faster)
        done = python(SHOW, package=extension.package)
        if kernel != NATIVE_KERNELS[-1]:
            assert (done.returncode, done.stdout.split()[:2]) == (0, ["native", NATIVE_KERNELS[place + 1]]), (
                function
            )
            passed_over = NATIVE_KERNELS[: place + 1]
        else:
            assert (done.returncode, done.stdout) == (1, ""), function
            line = done.stderr.strip().splitlines()[-1]
            assert line.startswith(f"ImportError: chapoly's kernel {kernel} gives wrong answers ("), function
            passed_over = NATIVE_KERNELS[:-1]
        for name in passed_over:
            assert f"RuntimeWarning: chapoly's kernel {name} gives wrong answers (" in done.stderr


@needs_native
def test_pure_can_be_asked_for_where_native_is_wrong(extension: Extension) -> None:
    extension.breaks(*(function for name in NATIVE_KERNELS for function in extension.functions(name)))
    assert prints(SHOW, package=extension.package, CHAPOLY_KERNEL="pure").split()[:2] == ["pure", "pure"]


# Leaves out the instructions of each stretch one after the other, in copies of the module, until the choice
# of the kernel notices. Prints the stretches in which it does not, and how many there are.
WITHOUT_EACH = """
import importlib.util, json
from pathlib import Path
from chapoly import _backend

def choose(name, content):
    copy = Path(folder, name)  # a name of its own, or the one before would be taken
    copy.write_bytes(content)
    spec = importlib.util.spec_from_file_location("chapoly._native", copy)
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    copy.unlink()
    _backend.choose(native, kernel, True)

def is_noticed(offset, size):
    without = content[:offset] + nothing * (size // len(nothing)) + content[offset + size :]
    try:
        choose(f"without{offset}.so", without)
    except ImportError as error:
        assert str(error).startswith(f"chapoly's kernel {kernel} gives wrong answers ("), error
        return True
    return False

file, kernel, nothing, stretches = json.loads(Path(folder, "job.json").read_text())
content, nothing = Path(file).read_bytes(), bytes.fromhex(nothing)
choose("whole.so", content)
for stretch in stretches:
    if not any(is_noticed(offset, size) for _, offset, size in stretch):
        print(*(text for text, _, _ in stretch), sep="; ")
print(len(stretches))
"""


@needs_native
@pytest.mark.parametrize("kernel", NATIVE_KERNELS)
def test_a_fault_in_each_stretch_of_code_is_noticed(
    extension: Extension, kernel: str, tmp_path: Path
) -> None:
    stretches = extension.stretches(kernel)
    job = [str(extension.file), kernel, extension.machine.does_nothing.hex(), stretches]
    (tmp_path / "job.json").write_text(json.dumps(job))
    # Memory must not come as it was freed, with the right answers of the run before.
    done = python(
        f"folder = {str(tmp_path)!r}{WITHOUT_EACH}",
        PYTHONMALLOC="mimalloc_debug" if sysconfig.get_config_var("Py_GIL_DISABLED") else "malloc",
        GLIBC_TUNABLES="glibc.malloc.perturb=85",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(stretches)}\n", "")


# ---- The choice itself on any machine: the kernels of this native module are pure with a fault. ----


def twisted(name: str, condition: Callable[..., bool]) -> dict[str, Any]:
    """A flat function whose result ends in a wrong bit where its arguments fulfil the condition."""
    right = getattr(pure, name)

    def function(*args: Any, **named: Any) -> Any:
        result = right(*args, **named)
        if condition(*args, **named):
            if "out" in named:
                named["out"][-1] ^= 1
            else:
                result = result[:-1] + bytes([result[-1] ^ 1])
        return result

    return {name: function}


def always(*_args: Any, **_named: Any) -> bool:
    return True


def blocks(least: int, most: int, *numbers_of_rounds: int) -> Callable[..., bool]:
    """Data of so many blocks of ChaCha, if it is of so many rounds."""
    return lambda _key, _counter, _nonce, data, rounds=20, **_: (
        64 * least - 64 < len(data) <= 64 * most and rounds in (numbers_of_rounds or (8, 12, 20))
    )


def size(least: int, most: int) -> Callable[..., bool]:
    """So many bytes of message, data, or data and tag."""
    return lambda *args: least <= len(args[2 if len(args) > 2 else 1]) <= most


def decrypting(least: int, most: int, fault: Callable[..., Any]) -> dict[str, Any]:
    """The type with a decrypt_into that has this fault where there are so many bytes of data and tag."""

    class ChaCha20Poly1305:
        def __init__(self, key: bytes) -> None:
            self.right = pure.ChaCha20Poly1305(key)

        def decrypt_into(self, nonce: bytes, data: bytes, associated_data: bytes, buf: bytearray) -> int:
            decrypt = fault if least <= len(data) <= most else type(self.right).decrypt_into
            return decrypt(self.right, nonce, data, associated_data, buf)

        def encryptor(self, nonce: bytes, associated_data: bytes) -> Any:
            return self.right.encryptor(nonce, associated_data)

    return {"ChaCha20Poly1305": ChaCha20Poly1305}


def encrypting_in_parts() -> dict[str, Any]:
    """The type with an encryptor that takes other associated data."""

    class ChaCha20Poly1305:
        def __init__(self, key: bytes) -> None:
            self.right = pure.ChaCha20Poly1305(key)

        def encryptor(self, nonce: bytes, associated_data: bytes) -> Any:
            return self.right.encryptor(nonce, associated_data + b"x")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.right, name)

    return {"ChaCha20Poly1305": ChaCha20Poly1305}


def wrong_bit(right: Any, nonce: bytes, data: bytes, associated_data: bytes, buf: bytearray) -> int:
    size = right.decrypt_into(nonce, data, associated_data, buf)
    buf[-1] ^= 1
    return size


def refuses_all(_right: Any, _nonce: bytes, _data: bytes, _associated_data: bytes, buf: bytearray) -> int:
    buf[:] = bytes(len(buf))
    raise chapoly.InvalidTag


def forgives(right: Any, nonce: bytes, data: bytes, associated_data: bytes, buf: bytearray) -> int:
    try:
        return right.decrypt_into(nonce, data, associated_data, buf)
    except chapoly.InvalidTag:
        return len(buf)


def leaves_a_byte(right: Any, nonce: bytes, data: bytes, associated_data: bytes, buf: bytearray) -> int:
    try:
        return right.decrypt_into(nonce, data, associated_data, buf)
    except chapoly.InvalidTag:
        buf[-1] = 1
        raise


def turned(name: str) -> dict[str, Any]:
    """A flat function whose list comes the wrong way round."""
    return {name: lambda *args: [*reversed(getattr(pure, name)(*args))]}


# The numbers of blocks for which one kernel or another has code of its own, and bytes of messages likewise.
CHACHA = [
    (1, 2),
    (3, 4),
    (5, 6),
    (5, 8),
    (7, 10),
    (9, 12),
    (13, 16),
    (17, 20),
    (21, 24),
    (25, 2**32),
]
POLY1305 = [(0, 240), (241, 319), (320, 1279), (1280, 2**38)]
AEAD = {"short": (17, 448), "middle": (1024 + 16 + 1, 8192), "long": (8192 + 15 * 64 + 16 + 1, 2**38)}


# One fault for each code path that the self-test promises to reach.
FAULTS: dict[str, dict[str, Any]] = {
    "block": twisted("chacha20_block", always),
    "hchacha20": twisted("chacha20_hchacha20", always),
    "24-byte nonce": twisted("xchacha20poly1305_encrypt", always),
    "in parts": encrypting_in_parts(),
    "encrypted batch": turned("chacha20poly1305_encrypt_many"),
    "decrypted batch": turned("chacha20poly1305_decrypt_many"),
    "encrypted batch, 24-byte nonces": turned("xchacha20poly1305_encrypt_many"),
    "decrypted batch, 24-byte nonces": turned("xchacha20poly1305_decrypt_many"),
}
FAULTS |= {f"{n} rounds": twisted("chacha20_cipher", blocks(1, 1, n)) for n in (8, 12)}
FAULTS |= {f"{n} rounds, wide": twisted("chacha20_cipher", blocks(33, 99, n)) for n in (8, 12, 20)}
FAULTS |= {
    f"{least}-{most} blocks": twisted("chacha20_cipher", blocks(least, most)) for least, most in CHACHA
}
FAULTS |= {f"mac {least}-{most}": twisted("poly1305_mac", size(least, most)) for least, most in POLY1305}
for length, limits in AEAD.items():
    FAULTS[f"encrypt {length}"] = twisted("chacha20poly1305_encrypt", size(*limits))
    for fault in (wrong_bit, refuses_all, forgives, leaves_a_byte):
        if length != "long" or fault in (wrong_bit, refuses_all):
            FAULTS[f"decrypt {length}, {fault.__name__}"] = decrypting(*limits, fault)


class FakeNative:
    """Offers kernels fast, slow and portable, of which those in `broken` have the fault."""

    def __init__(self, broken: list[str], fault: dict[str, Any]) -> None:
        self.broken, self.fault, self.current = broken, fault, ""

    def kernels(self) -> tuple[tuple[str, str | None, str | None], ...]:
        usable = [(name, None, None) for name in ("fast", "slow", "portable")]
        return (("wide", "the CPU has no such registers", None), *usable)

    def use(self, name: str) -> None:
        self.current = name

    def __getattr__(self, name: str) -> Any:
        faulty = self.current in self.broken and name in self.fault
        return self.fault[name] if faulty else getattr(pure, name)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_kernel_is_taken_with_a_warning(fault: str) -> None:
    native = FakeNative(["fast"], FAULTS[fault])
    with pytest.warns(RuntimeWarning, match=r"^chapoly's kernel fast gives wrong answers ") as warned:
        assert _backend.choose(native, "", False) == "slow"
    assert (len(warned), native.current) == (1, "slow")


def test_several_wrong_kernels_are_passed_over() -> None:
    native = FakeNative(["fast", "slow"], FAULTS["block"])
    with pytest.warns(RuntimeWarning) as warned:
        assert _backend.choose(native, "", True) == "portable"
    assert [str(w.message).split()[2] for w in warned] == ["fast", "slow"]


def test_no_right_kernel_is_an_import_error_and_pure_no_answer() -> None:
    native = FakeNative(["fast", "slow", "portable"], FAULTS["block"])
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(ImportError, match=r"^chapoly's kernel portable gives wrong answers "),
    ):
        _backend.choose(native, "", False)
    assert _backend.choose(native, "pure", False) == "pure"


@pytest.mark.parametrize("kernel", ["fast", "slow", "portable"])
def test_a_forced_wrong_kernel_is_an_import_error(kernel: str) -> None:
    native = FakeNative([kernel], FAULTS["decrypt short, wrong_bit"])
    with pytest.raises(ImportError, match=f"^chapoly's kernel {kernel} gives wrong answers "):
        _backend.choose(native, kernel, False)
    for other in {"fast", "slow", "portable"} - {kernel}:
        assert _backend.choose(native, other, False) == other


def test_a_kernel_that_cannot_run_here_is_not_offered() -> None:
    native = FakeNative([], {})
    assert _backend.usable_kernels(native) == ("fast", "slow", "portable", "pure")
    assert _backend.choose(native, "", False) == "fast"
    with pytest.raises(
        ImportError,
        match=r"^CHAPOLY_KERNEL=wide is not available here; available: fast, slow, portable, pure$",
    ):
        _backend.choose(native, "wide", False)
