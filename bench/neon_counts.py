#!/usr/bin/env python3
"""Instructions and simulated cycles of the AArch64 kernels: bench/neon_counts.py [--write] [--sizes N ...].

Counts are exact: a qemu plugin writes which instructions a call executes. The same instructions in the same
order go through llvm-mca's models of three cores, which know no caches, no branch prediction, no store
forwarding and one scheduling window for all; the one called apple-m1 is that of an older core, with a slow
rotate. Neither count nor model ranks different codes; they show what a change to one kernel does.

Figures that differ from those in neon_counts.json are marked; --write records new ones there. Needs the
Debian packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user clang-19 llvm-19.
"""

import argparse
import json
import re
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent / "src" / "native"
RECORDED = HERE / "neon_counts.json"
CORES = ("neoverse-n1", "neoverse-v2", "apple-m1")
COLUMNS = ("instructions", *CORES)
COMPILERS = {
    "gcc": ("aarch64-linux-gnu-gcc",),
    "clang": ("clang-19", "--target=aarch64-linux-gnu", "-isystem", "/usr/aarch64-linux-gnu/include"),
}
SIZES = (64, 114, 128, 192, 256, 320, 384, 512, 640, 1024, 1424, 4096, 16384)


def run(*command: object) -> str:
    """What the command prints; it must succeed."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def build(compiler: str, defines: list[str], directory: Path) -> Path:
    """The program of neon_counts.c with all kernels."""
    sources = [path for folder in ("", "portable", "arm") for path in (NATIVE / folder).glob("*.c")]
    flags = ["-std=c11", "-O3", "-static", "-I", NATIVE, *(f"-D{define}" for define in defines)]
    run(*COMPILERS[compiler], *flags, HERE / "neon_counts.c", *sources, "-o", directory / compiler)
    return directory / compiler


def disassemble(program: Path) -> tuple[dict[int, str], dict[str, int]]:
    """The text of each instruction by address, as llvm-mca reads it, and the address of each function."""
    code: dict[int, str] = {}
    functions: dict[str, int] = {}
    for line in run("llvm-objdump-19", "--disassemble", "--no-show-raw-insn", program).splitlines():
        if match := re.match(r"([0-9a-f]+) <(.+)>:", line):
            functions[match[2]] = int(match[1], 16)
        elif match := re.match(r"\s*([0-9a-f]+):\s+(.+)", line):
            code[int(match[1], 16)] = re.sub(r"0x[0-9a-f]+ <.*>", "#0", match[2])
    return code, functions


def calls(program: Path, plugin: Path, algorithm: str, kernel: str, sizes: list[int]) -> list[list[str]]:
    """The instructions that the call for each size executed."""
    code, functions = disassemble(program)
    trace = plugin.with_name("trace")
    emulator = ("qemu-aarch64", "-cpu", "cortex-a72", "-plugin", f"{plugin},to={trace}")
    run(*emulator, program, algorithm, kernel, *sizes)
    found: list[list[str]] = []
    inside = False
    for address, length in struct.iter_unpack("<QQ", trace.read_bytes()):
        if address == functions["mark_end"]:
            inside = False
        if inside:
            found[-1] += [code[at] for at in range(address, address + 4 * length, 4)]
        if address == functions["mark_begin"]:
            found.append([])
            inside = True
    assert len(found) == len(sizes)
    assert not inside
    return found


def cycles(instructions: list[str], core: str) -> int:
    """How many cycles llvm-mca's model of the core takes."""
    # It would count calls and returns as long operations.
    text = "\n".join(line for line in instructions if not re.match(r"(bl|blr|br|ret)\b", line))
    command = ["llvm-mca-19", "-mtriple=aarch64", f"-mcpu={core}", "-iterations=1"]
    out = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
    match = re.search(r"Total Cycles:\s+(\d+)", out)
    assert match
    return int(match[1])


def print_row(title: object, values: tuple[object, ...], note: str = "") -> None:
    """One line of the table."""
    print(f"{title!s:>24}" + "".join(f"{value!s:>14}" for value in values) + note, flush=True)


def main() -> None:
    """Measures and prints, compares and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record the figures")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--compilers", nargs="+", default=list(COMPILERS))
    parser.add_argument("--kernels", nargs="+", default=["neon", "portable"])
    parser.add_argument("--algorithms", nargs="+", default=["chacha", "poly1305", "aead"])
    parser.add_argument(
        "--define", action="append", default=[], metavar="NAME=VALUE", help="for the C compiler"
    )
    options = parser.parse_args()
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    rows: dict[str, tuple[int, ...]] = {}

    with tempfile.TemporaryDirectory() as name:
        plugin = Path(name) / "qemu_trace.so"
        run("cc", "-O2", "-shared", "-fPIC", HERE / "qemu_trace.c", "-o", plugin)
        for compiler in options.compilers:
            program = build(compiler, options.define, Path(name))
            for algorithm, kernel in ((a, k) for a in options.algorithms for k in options.kernels):
                print_row(f"{algorithm} {kernel} {compiler}", COLUMNS)
                executed = calls(program, plugin, algorithm, kernel, options.sizes)
                for size, instructions in zip(options.sizes, executed, strict=True):
                    row = (len(instructions), *(cycles(instructions, core) for core in CORES))
                    title = f"{algorithm} {kernel} {compiler} {size}"
                    rows[title] = row
                    before = tuple(recorded.get(title, row))
                    print_row(size, row, "" if before == row else f"   recorded: {before}")
                if 4096 in options.sizes and 16384 in options.sizes:
                    ends = zip(
                        rows[f"{algorithm} {kernel} {compiler} 4096"],
                        rows[f"{algorithm} {kernel} {compiler} 16384"],
                        strict=True,
                    )
                    print_row(
                        "a byte, 4 to 16 KiB", tuple(f"{(b - a) / (16384 - 4096):.3f}" for a, b in ends)
                    )
    if options.write:
        lines = [f"{json.dumps(title)}: {json.dumps(row)}" for title, row in {"": COLUMNS, **rows}.items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
