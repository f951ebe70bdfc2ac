"""A kernel that answers wrong is not used: answers are corrupted for real, in a copy of the extension."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import NATIVE_KERNELS
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from interpreter import PACKAGE, last_line, prints, python

import chapoly
import chapoly.pure
from chapoly import _backend, _selftest

pure = chapoly.pure
FUNCTIONS = ("chacha_xor", "hchacha", "poly1305_blocks", "chacha_lanes")
RETURN = {"EM_X86_64": b"\xc3", "EM_386": b"\xc3", "EM_AARCH64": bytes.fromhex("c0035fd6")}
SHOW = "import chapoly; print(chapoly.backend, chapoly.kernel, *chapoly.kernels())"

needs_native = pytest.mark.skipif(not NATIVE_KERNELS, reason="this installation has no native module")


class Extension:
    """A copy of the installed package, to break functions in: their first instruction becomes a return."""

    def __init__(self, folder: Path) -> None:
        self.package = shutil.copytree(PACKAGE, folder / "chapoly")
        self.file = self.package / Path(_backend.native.__file__).name
        with self.file.open("rb") as stream:
            try:
                elf = ELFFile(stream)
            except ELFError:
                pytest.skip("the extension is no ELF file, the only kind that this test can patch")
            symbols = elf.get_section_by_name(".symtab")
            if not isinstance(symbols, SymbolTableSection):
                pytest.skip("the extension has been stripped of the symbols that this test looks for")
            if elf["e_machine"] not in RETURN:
                pytest.skip(f"no return instruction is given here for {elf['e_machine']}")
            self.instruction = RETURN[elf["e_machine"]]
            self.offsets = {}
            for symbol in symbols.iter_symbols():
                if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
                    section = elf.get_section(symbol["st_shndx"])
                    self.offsets[symbol.name] = symbol["st_value"] - section["sh_addr"] + section["sh_offset"]

    def functions(self, kernel: str) -> list[str]:
        """The kernel's own functions; a kernel may borrow some of another's."""
        own = [
            name
            for name in (f"chapoly_{function}_{kernel}" for function in FUNCTIONS)
            if name in self.offsets
        ]
        assert own, f"no function of {kernel} among the symbols"
        return own

    def breaks(self, *functions: str) -> None:
        content = bytearray((PACKAGE / self.file.name).read_bytes())
        for function in functions:
            at = self.offsets[function]
            content[at : at + len(self.instruction)] = self.instruction
        self.file.unlink()
        self.file.write_bytes(content)


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
        assert line.startswith(f"ImportError: chapoly's kernel {kernel} gives wrong answers ("), function


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


# ---- The choice itself on any machine: the kernels of this native module are pure with a fault. ----


def twisted(name: str, condition: Callable[..., bool]) -> dict[str, Any]:
    """A flat function whose result is wrong where its arguments fulfil the condition."""
    right = getattr(pure, name)

    def function(*args: Any, **named: Any) -> Any:
        result = right(*args, **named)
        return bytes(reversed(result)) if condition(args, named) else result

    return {name: function}


def always(_args: Any, _named: Any) -> bool:
    return True


def shorter(args: Any, _named: Any) -> bool:
    return len(args[-1 if len(args) == 2 else 2]) < 256


def longer(args: Any, named: Any) -> bool:
    return not shorter(args, named)


def opens_anything(key: bytes, nonce: bytes, data: bytes, _associated_data: bytes) -> bytes:
    return pure.chacha20_cipher(key, 1, nonce, data[:-16])


def turned(name: str) -> dict[str, Any]:
    """A flat function whose list comes the wrong way round."""
    return {name: lambda *args: [*reversed(getattr(pure, name)(*args))]}


# One fault for each code path that the self-test promises to reach.
FAULTS: dict[str, dict[str, Any]] = {
    "block": twisted("chacha20_block", always),
    "8 rounds": twisted("chacha20_cipher", lambda _, named: named.get("rounds") == 8),
    "12 rounds": twisted("chacha20_cipher", lambda _, named: named.get("rounds") == 12),
    "hchacha20": twisted("chacha20_hchacha20", always),
    "short mac": twisted("poly1305_mac", shorter),
    "long mac": twisted("poly1305_mac", longer),
    "short encrypt": twisted("chacha20poly1305_encrypt", shorter),
    "long encrypt": twisted("chacha20poly1305_encrypt", longer),
    "24-byte nonce": twisted("xchacha20poly1305_encrypt", always),
    "decrypt": twisted("chacha20poly1305_decrypt", always),
    "refused tag": {"chacha20poly1305_decrypt": opens_anything},
    "encrypted batch": turned("chacha20poly1305_encrypt_many"),
    "decrypted batch": turned("chacha20poly1305_decrypt_many"),
}


class FakeNative:
    """Offers kernels fast, slow and portable, of which those in `broken` have the fault."""

    def __init__(self, broken: list[str], fault: dict[str, Any]) -> None:
        self.broken, self.fault, self.current = broken, fault, ""

    def kernels(self) -> tuple[tuple[str, str | None], ...]:
        return (("wide", "the CPU has no such registers"), ("fast", None), ("slow", None), ("portable", None))

    def use(self, name: str) -> None:
        self.current = name

    def __getattr__(self, name: str) -> Any:
        faulty = self.current in self.broken and name in self.fault
        return self.fault[name] if faulty else getattr(pure, name)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_code_path_is_asked(fault: str) -> None:
    native = FakeNative(["fast"], FAULTS[fault])
    native.use("portable")
    assert _selftest.failures(native) == []
    native.use("fast")
    assert _selftest.failures(native) != []


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
    native = FakeNative(["fast", "slow", "portable"], FAULTS["long mac"])
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(ImportError, match=r"^chapoly's kernel portable gives wrong answers "),
    ):
        _backend.choose(native, "", False)
    assert _backend.choose(native, "pure", False) == "pure"


@pytest.mark.parametrize("kernel", ["fast", "slow", "portable"])
def test_a_forced_wrong_kernel_is_an_import_error(kernel: str) -> None:
    native = FakeNative([kernel], FAULTS["decrypt"])
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
