#!/usr/bin/env python3
"""Instructions of the x86-64 kernels: bench/x86_counts.py [--check | --write] [--compilers gcc clang-19].

Executed instructions per call are exact and repeatable. Callgrind counts them for the kernels that valgrind
can run, on any CPU; for AVX-512, which it cannot, the kernel is single-stepped by ptrace if this CPU has it.
Each table says which was used. For AVX-512 the hot loops are looked at on any CPU, in what the compiler made:
their instructions, and how many of these move vectors to or from the stack.

Figures are recorded in x86_counts.json, each under the version of the compiler that it belongs to, and only
the same version is compared. --check fails if one has grown by more than 5 %, or if nothing is recorded for a
compiler; --write records. Counts do not rank different codes; they show what a change does to one kernel.

Needs valgrind and binutils, and gcc and clang-19 or what --compilers names.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent / "src" / "native"
RECORDED = HERE / "x86_counts.json"
ALGORITHMS = ("chacha", "poly1305", "aead")
SIZES = (64, 256, 1024, 1424, 4096, 16384)
FLAGS = ("-std=c11", "-O3", "-I", NATIVE)
ALLOWED = 1.05

Figures = dict[str, list[int]]


def run(*command: object) -> str:
    """What the command prints; it must succeed."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def version(compiler: str) -> str:
    """Name and version, as figures are recorded under it."""
    name = "clang" if "clang" in run(compiler, "--version") else "gcc"
    return f"{name} {run(compiler, '-dumpfullversion' if name == 'gcc' else '-dumpversion').strip()}"


def build(compiler: str, directory: Path) -> Path:
    """The program of counts.c with all kernels: static, so that every address is known."""
    sources = [path for folder in ("", "portable", "x86") for path in sorted((NATIVE / folder).glob("*.c"))]
    program = directory / "counts"
    run(compiler, *FLAGS, "-static", "-no-pie", HERE / "counts.c", *sources, "-o", program)
    return program


# ---- Executed instructions. ----


def kernels(program: Path) -> dict[str, bool]:
    """The kernels that the program knows, and whether this CPU can run each."""
    lines = (line.split() for line in run(program).splitlines())
    return {name: usable == "yes" for name, usable in lines}


def callgrind(program: Path, algorithm: str, kernel: str) -> list[int]:
    """Instructions between the marks for each size, counted by valgrind."""
    out = program.with_name("callgrind")
    marks = ("--zero-before=mark_begin", "--dump-before=mark_end", f"--callgrind-out-file={out}")
    run("valgrind", "--tool=callgrind", *marks, program, algorithm, kernel, *SIZES)
    parts = [out.with_name(f"callgrind.{i + 1}") for i in range(len(SIZES))]
    totals = [re.search(r"^totals: (\d+)$", part.read_text(), re.MULTILINE) for part in parts]
    return [int(total[1]) for total in totals if total]


def single_step(program: Path, algorithm: str, kernel: str) -> list[int]:
    """The same, counted by stopping after each instruction."""
    stepper = program.with_name("single_step")
    run("cc", "-O2", HERE / "single_step.c", "-o", stepper)
    symbols = {line.split()[-1]: line.split()[0] for line in run("nm", program).splitlines()}
    marks = (symbols["mark_begin"], symbols["mark_end"])
    return [int(line) for line in run(stepper, *marks, program, algorithm, kernel, *SIZES).splitlines()]


def executed(program: Path, title: str) -> Figures:
    """Counts of every kernel that can be counted here."""
    figures: Figures = {}
    for kernel, usable in kernels(program).items():
        avx512 = kernel.startswith("avx512")
        if avx512 and not usable:
            print(f"{kernel}, {title}: not executed, this CPU lacks the instructions")
            continue
        count, method = (single_step, "single-stepped") if avx512 else (callgrind, "counted by callgrind")
        print(f"{kernel}, {title}: instructions per call, {method}")
        for algorithm in ALGORITHMS:
            counts = count(program, algorithm, kernel)
            assert len(counts) == len(SIZES)
            for size, number in zip(SIZES, counts, strict=True):
                figures[f"{title}: {kernel} {algorithm} {size}"] = [number]
            slope = (counts[-1] - counts[-2]) / (SIZES[-1] - SIZES[-2])
            row = "".join(f"{size:>8} B {number:>7}" for size, number in zip(SIZES, counts, strict=True))
            print(f"  {algorithm:9}{row}   a byte, from 4 KiB on: {slope:.3f}")
    return figures


# ---- Hot loops. ----


def functions(code: Path) -> dict[str, list[tuple[int, str]]]:
    """Address and text of every instruction of each function."""
    found: dict[str, list[tuple[int, str]]] = {}
    name = ""
    for line in run("objdump", "--disassemble", "--no-show-raw-insn", code).splitlines():
        if match := re.match(r"[0-9a-f]+ <(.+)>:", line):
            name = match[1]
            found[name] = []
        elif match := re.match(r"\s*([0-9a-f]+):\s+(\S.*)", line):
            found[name].append((int(match[1], 16), match[2]))
    return found


def innermost_loops(function: list[tuple[int, str]]) -> list[list[str]]:
    """The instructions of each loop that has no other in it and no call: from a jump's target to the jump."""
    addresses = {address for address, _ in function}
    loops = []
    for address, text in function:
        match = re.match(r"j\w+\s+([0-9a-f]+)", text)
        if match and int(match[1], 16) <= address and int(match[1], 16) in addresses:
            loops.append((int(match[1], 16), address))
    innermost = [
        [text for address, text in function if first <= address <= last]
        for first, last in loops
        if not any((f, e) != (first, last) and first <= f and e <= last for f, e in loops)
    ]
    return [loop for loop in innermost if not re.search("call|ret", "".join(loop))]


def hot_loops(compiler: str, title: str, directory: Path) -> Figures:
    """Size of each loop that does the work of an AVX-512 kernel: rounds, and 52-bit multiplications."""
    figures: Figures = {}
    print(f"avx512, {title}: hot loops as compiled (instructions, of them vectors on the stack)")
    for source in sorted(NATIVE.glob("x86/*avx512*.c")):
        code = directory / f"{source.stem}.o"
        run(compiler, *FLAGS, "-c", source, "-o", code)
        for name, function in functions(code).items():
            loops = [
                loop for loop in innermost_loops(function) if re.search("vprold|vpmadd52", "".join(loop))
            ]
            for number, loop in enumerate(loops, 1):
                # A broadcast reads one factor from the table of powers: that is no spill.
                on_stack = [text for text in loop if re.search(r"(?!vpbroadcast)v.*\(%r[sb]p", text)]
                which = f"{source.stem} {name}" + (f" loop {number}" if len(loops) > 1 else "")
                figures[f"{title}: {which}"] = [len(loop), len(on_stack)]
                print(f"  {which:60}{len(loop):6}{len(on_stack):4}")
    return figures


# ---- The record. ----


def grown(figures: Figures, recorded: Figures) -> list[str]:
    """What has grown by more than 5 %."""
    return [
        f"{title}: {before} before, {now} now"
        for title, now in figures.items()
        if (before := recorded.get(title)) and any(n > b * ALLOWED for b, n in zip(before, now, strict=True))
    ]


def main() -> None:
    """Counts and prints, and compares or records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a figure has grown by more than 5 %%")
    parser.add_argument("--write", action="store_true", help="record the figures")
    parser.add_argument("--compilers", nargs="+", default=["gcc", "clang-19"])
    options = parser.parse_args()
    recorded: Figures = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    figures: Figures = {}
    unknown = []

    for compiler in options.compilers:
        title = version(compiler)
        with tempfile.TemporaryDirectory() as directory:
            figures |= executed(build(compiler, Path(directory)), title)
            figures |= hot_loops(compiler, title, Path(directory))
        if not any(name.startswith(title + ":") for name in recorded):
            unknown.append(f"{title}: nothing is recorded for it, so nothing was compared")

    compared = sum(title in recorded for title in figures)
    print(f"{compared} of {len(figures)} figures are compared with recorded ones")
    problems = unknown + grown(figures, recorded)
    print(*problems, sep="\n", end="\n" if problems else "")
    if options.write:
        lines = [f"{json.dumps(title)}: {row}" for title, row in sorted((recorded | figures).items())]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    elif options.check:
        sys.exit(bool(problems))


if __name__ == "__main__":
    main()
