"""A copy of the installed package, to plant faults in the machine code of its native module."""

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from interpreter import PACKAGE

from chapoly import _backend


class Machine(NamedTuple):
    """The code of one architecture: bytes to write over it, and patterns of what objdump shows of it."""

    returns_0: bytes
    does_nothing: bytes
    computes: str  # shifts, rotations and products of the ciphers, of which no address or length is made
    jump: str  # and its target
    objdump: str


# What adc adds to 0 is a carry that may come once in 2^64 additions.
X86 = Machine(
    b"\x31\xc0\xc3",
    b"\x90",
    r"v?p(s[lr]ld|rol|ror|muludq|madd52)\w* |(rol|ror|adcx?|adox|mulx)[lq]? +(?! |\$0x0,)",
    r"j\w+\s+(\w+) ",
    "x86_64-linux-gnu-objdump",
)
ARM64 = Machine(
    bytes.fromhex("000080d2c0035fd6"),
    bytes.fromhex("1f2003d5"),
    r"(shl|sri|xar|rev32|umull2?|umlal2?)\s+v|(ror|extr|umulh)\s+[wx]|adcs?\s+[wx].*(?<!zr)$|eor\s+w.*ror",
    r"(?:b|b\.\w+|cbn?z|tbn?z)\s+(?:.*\s)?(\w+) <",
    "aarch64-linux-gnu-objdump",
)
MACHINES = {"EM_X86_64": X86, "EM_386": X86, "EM_AARCH64": ARM64}


class Code(NamedTuple):
    """A function or an instruction."""

    text: str
    offset: int  # in the file
    size: int


class Extension:
    """A copy of the package, and where the code of each kernel is in its native module."""

    def __init__(self, folder: Path) -> None:
        self.package = shutil.copytree(PACKAGE, folder / "chapoly")
        self.file = self.package / Path(_backend.native.__file__).name
        self.content = self.file.read_bytes()
        with self.file.open("rb") as stream:
            # Elsewhere than on Linux, in a stripped build or on another processor there is nothing to patch.
            # Where CI runs, all of it is there: a test that is skipped fails .ci/run.
            try:
                elf = ELFFile(stream)
            except ELFError:
                pytest.skip("the extension is no ELF file, the only kind that this test can patch")
            symbols = elf.get_section_by_name(".symtab")
            if not isinstance(symbols, SymbolTableSection):
                pytest.skip("the extension has been stripped of the symbols that this test looks for")
            if elf["e_machine"] not in MACHINES:
                pytest.skip(f"no instructions are given here for {elf['e_machine']}")
            self.machine = MACHINES[elf["e_machine"]]
            text = elf.get_section_by_name(".text")
            self.shift = text["sh_addr"] - text["sh_offset"]
            self.sources: list[tuple[str, Code]] = []  # of all functions, the file and the function
            source = ""
            for symbol in symbols.iter_symbols():
                if symbol["st_info"]["type"] == "STT_FILE":
                    source = symbol.name
                elif symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"] > 0:
                    function = Code(symbol.name, symbol["st_value"] - self.shift, symbol["st_size"])
                    self.sources.append((source, function))
            self.sanitized = bool(symbols.get_symbol_by_name("__asan_init"))

    def functions(self, kernel: str) -> list[Code]:
        """The kernel's own functions, also those that no other file sees; it may borrow some of another's."""
        own = [
            function
            for source, function in self.sources
            if (source.endswith(f"_{kernel}.c") or function.text.endswith(f"_{kernel}"))
            and not function.text.startswith("_")  # what sanitizers add
            and not function.text.endswith(".cold")  # what never runs
        ]
        assert own, f"no function of {kernel} among the symbols"
        return own

    def stretches(self, kernel: str) -> list[list[Code]]:
        """The kernel's computing instructions, in stretches that jumps and their targets bound."""
        # .ci/run installs objdump, and looks at stretches without a sanitizer.
        objdump = shutil.which(self.machine.objdump) or shutil.which("objdump")
        if objdump is None:
            pytest.skip("objdump, which knows where instructions begin, is not installed")
        if self.sanitized:
            pytest.skip("a sanitizer has stretches of its own between those of the kernel")
        found: list[list[Code]] = []
        for function in self.functions(kernel):
            first = function.offset + self.shift
            end = first + function.size
            limits = (f"--start-address={first}", f"--stop-address={end}")
            listing = subprocess.run(
                [objdump, "--disassemble", "--wide", "--no-show-raw-insn", *limits, self.file],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            lines = re.findall(r"^ +(\w+):\t(.*)", listing, re.MULTILINE)
            code = {int(address, 16): text for address, text in lines}
            jumps = {a: int(m[1], 16) for a, text in code.items() if (m := re.match(self.machine.jump, text))}
            bounds = {first, *jumps, *jumps.values()}
            for address, following in pairwise([*code, end]):
                if address in bounds:
                    found.append([])
                if re.match(self.machine.computes, code[address]):
                    text = f"{function.text}: {code[address]}"
                    found[-1].append(Code(text, address - self.shift, following - address))
        assert any(found), f"nothing of {kernel} computes among its instructions"
        return [stretch for stretch in found if stretch]

    def breaks(self, *functions: Code) -> None:
        """Makes functions of the copy return 0 at once."""
        content = bytearray(self.content)
        for function in functions:
            content[function.offset : function.offset + len(self.machine.returns_0)] = self.machine.returns_0
        self.file.unlink()
        self.file.write_bytes(content)
