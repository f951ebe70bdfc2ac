#!/usr/bin/env python3
"""Whether time and addresses of the native code depend on secrets: check.py [--short].

Each kernel that this CPU can run is built and watched:

memcheck  valgrind knows key, plaintext and what is computed of them as undefined, and reports each branch and
          address that depends on it: portable, sse2, avx2 (valgrind does not know AVX-512)
msan      clang's MemorySanitizer does the same for all kernels but avx2, which has inline assembly that it
          cannot see through; empty barriers are left out, and the additions of poly1305_x64.h written in C
trace     steps.c follows each call, one instruction at a time: the addresses of what is executed must be the
          same for all secrets. This sees assembly as it is, but no addresses of data.
barrier   the machine code of the comparison of tags has no jump
division  the machine code divides nowhere but where only lengths are

Then faults are planted in copies of the sources, and each must be reported. Whether a tag was valid is all
that may be known. Needs gcc, clang-19 with its sanitizers, valgrind and binutils; if one is missing that
is an error. --short takes -O2 and fewer secrets and lengths, the full form -O2, -O3 and -O3 -flto.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "src" / "native"
COMPILERS = {"gcc": "gcc", "clang": "clang-19"}
ENTRIES = (
    *(
        "chacha",
        "mac",
        "parts",
        "compare",
        "compareforged",
        "encrypt12",
        "encrypt24",
        "decrypt12",
        "decrypt24",
    ),
    *("decrypt12inplace", "decrypt12forged", "decrypt12inplaceforged"),
    *("encryptmany", "decryptmany", "decryptmanyforged"),
)
Cases = list[tuple[str, int]]
LENGTHS = (0, 1, 16, 63, 64, 114, 256, 257, 600, 1025, 2048)
DIVIDES = {"chapoly_aead_part_by_strips"}  # the length of a strip, of how many blocks a pass has
DIVISION = re.compile(r"\s(?:i?div[bwlq]?|v?div[sp][sd]|v?sqrt[sp][sd])\s")
ENTERED = re.compile(r"[0-9a-f]+ <(.+)>:")
CARRIES = """
#define ADD_3(a0, a1, a2, b0, b1, b2)                                                  \\
    do {                                                                               \\
        const uint128 s0 = (uint128)(a0) + (uint64_t)(b0);                             \\
        const uint128 s1 = (uint128)(a1) + (uint64_t)(b1) + (uint64_t)(s0 >> 64);      \\
        (a2) += (uint64_t)(b2) + (uint64_t)(s1 >> 64);                                 \\
        (a0) = (uint64_t)s0, (a1) = (uint64_t)s1;                                      \\
    } while (0)
#define ADD_2(a0, a1, b0, b1)                     \\
    do {                                          \\
        uint64_t none = 0;                        \\
        ADD_3(a0, a1, none, b0, b1, 0);           \\
        (void)none;                               \\
    } while (0)

"""

BARRIER = '__asm__("" : "+r"(difference));'
# What is planted where, what runs into it, and which checks must report it.
FAULTS = {
    "early exit": (
        "poly1305.c",
        BARRIER,
        BARRIER + "\n    for (int i = 0; i < 15; i++)\n        if (((volatile const uint8_t *)a)[i] != b[i])"
        "\n            return false;",
        "compareforged",
        ("memcheck", "msan", "trace", "barrier"),
    ),
    "secret index": (
        "poly1305.c",
        "uint64_t carry = g0 < 5;",
        "static const volatile uint8_t table[256];\n    g0 += table[h[0] & 255];\n"
        "    uint64_t carry = g0 < 5;",
        "mac",
        ("memcheck", "msan"),
    ),
    "secret branch": (
        "poly1305.c",
        "uint64_t carry = g0 < 5;",
        "static volatile int seen;\n    if (h[0] & 1)\n        seen++;\n    uint64_t carry = g0 < 5;",
        "mac",
        ("memcheck", "msan", "trace"),
    ),
    "branch on plaintext": (
        "aead.c",
        "memcpy(plaintext, held, len);",
        "{\n        static volatile int seen;\n        if (held[len - 1] & 1)\n            seen++;\n"
        "        memcpy(plaintext, held, len);\n    }",
        "decrypt12",
        ("memcheck", "msan", "trace"),
    ),
    "secret division": (
        "poly1305.c",
        "uint64_t carry = g0 < 5;",
        "static volatile uint64_t seen;\n    seen = 1000003 / (h[0] | 1);\n    uint64_t carry = g0 < 5;",
        "mac",
        ("msan", "division"),
    ),
}
DEFINES = {"memcheck": "-DMEMCHECK", "msan": "-DMSAN", "trace": "-DTRACED"}

REPORTS = {
    "memcheck": "uninitialised",
    "msan": "use-of-uninitialized-value",
    "trace": r"^([2-9]|\d\d) traces of 32 calls",
    "barrier": r"\sj",
    "division": "div",
}


def run(*command: object) -> subprocess.CompletedProcess[str]:
    """What became of the command, which a missing tool would stop."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def must(*command: object) -> str:
    """What the command prints; it must succeed."""
    done = run(*command)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Build:
    """The sources compiled in one way, and a driver of them for each check."""

    def __init__(self, where: Path, compiler: str, flags: tuple[str, ...], sanitized: bool) -> None:
        self.where, self.sanitized = where, sanitized
        self.name = " ".join((compiler, *flags))
        sanitizer = ("-fsanitize=memory", "-fno-sanitize-memory-param-retval") if sanitized else ()
        debugging = ("-gdwarf-4", "-fno-omit-frame-pointer")  # as far as Debian 12's valgrind reads it
        self.command = (COMPILERS[compiler], "-std=c11", *debugging, *flags, *sanitizer)
        self.sources = where / "native"
        shutil.copytree(NATIVE, self.sources)
        if sanitized:
            for path in self.sources.rglob("*.[ch]"):
                text = re.sub(r'__asm__\("" : "\+[^;]*\);', "(void)0;", path.read_text())
                if path.name == "poly1305_x64.h":
                    head, rest = text.split("#define ADD_2", 1)
                    text = head + CARRIES + rest[rest.index("/*\n * With 2^128 r1") :]
                path.write_text(text)
        folders = (self.sources, self.sources / "portable", self.sources / "x86")
        self.objects = [self.compile(path) for folder in folders for path in sorted(folder.glob("*.c"))]

    def compile(self, path: Path, *more: object) -> Path:
        """One source file to an object beside it."""
        to = path.with_suffix(".o")
        rename = ("-Dchapoly_tag_equal=compared_tags",) if path.name == "poly1305.c" else ()
        must(*self.command, *rename, *more, "-I", self.sources, "-c", path, "-o", to)
        return to

    def driver(self, method: str) -> Path:
        """The program for a check, linked with what is compiled now."""
        to = self.where / f"driver-{method}"
        more = ("-Wl,-z,now", "-I", self.sources, DEFINES[method], HERE / "driver.c", *self.objects, "-o", to)
        must(*self.command, *more)
        return to

    def plant(self, file: str, before: str, after: str) -> str:
        """Changes a source file, and gives back what it was; restore() undoes it."""
        path = self.sources / file
        text = path.read_text()
        before = before.replace(BARRIER, "(void)0;") if self.sanitized else before
        assert text.count(before) == 1, f"{before!r} is not once in {file}"
        path.write_text(text.replace(before, after.replace(BARRIER, "(void)0;") if self.sanitized else after))
        self.compile(path)
        return text

    def restore(self, file: str, text: str) -> None:
        """The sources as they are."""
        (self.sources / file).write_text(text)
        self.compile(self.sources / file)

    def disassembly(self) -> str:
        """All machine code, of which link-time optimisation leaves the linked program alone."""
        lto = "-flto" in self.command
        return "".join(
            must("objdump", "-d", "--no-show-raw-insn", path)
            for path in ([self.driver("trace")] if lto else self.objects)
        )


def bodies(disassembly: str) -> dict[str, list[str]]:
    """The instructions of each function."""
    found: dict[str, list[str]] = {}
    body: list[str] = []
    for line in disassembly.splitlines():
        if match := ENTERED.match(line):
            body = found.setdefault(match[1], [])
        elif line.strip():
            body.append(line)
    return found


def complaint(build: Build, method: str, steps: Path, kernel: str, cases: Cases, secrets: int) -> str:
    """What the check has against these calls, or nothing."""
    if method == "barrier":
        jumps = [
            line for line in bodies(build.disassembly())["compared_tags"] if re.search(r"\tj[a-z]+ ", line)
        ]
        return "\n".join(jumps)
    if method == "division":
        functions = bodies(build.disassembly())
        own = {name: body for name, body in functions.items() if name.split(".")[0] not in DIVIDES}
        return "\n".join(f"{n}: {line}" for n, body in own.items() for line in body if DIVISION.search(line))
    program = build.where / f"driver-{method}"
    arguments = (
        program,
        kernel,
        secrets if method == "trace" else 2,
        *(word for case in cases for word in case),
    )
    if method == "memcheck":
        done = run("valgrind", "-q", "--error-exitcode=9", *arguments)
    elif method == "msan":
        done = run(*arguments)
    else:
        done = run(steps, *arguments)
        traces = done.stdout.splitlines()
        if done.returncode == 0 and len(traces) == secrets * len(cases):
            each = ((case, traces[i * secrets : (i + 1) * secrets]) for i, case in enumerate(cases))
            differ = ((case, len(set(calls))) for case, calls in each if len(set(calls)) > 1)
            return "\n".join(f"{count} traces of {secrets} calls: {case}" for case, count in differ)
    return done.stderr or (f"exit {done.returncode}" if done.returncode != 0 else "")


def cases_of(method: str, lengths: tuple[int, ...]) -> Cases:
    """Every entry point with every length; forty messages at a time with short ones."""
    longest = 16 if method == "trace" else 600
    return [(e, n) for e in ENTRIES for n in lengths if "many" not in e or n <= longest]


def kernels_of(build: Build, method: str, wanted: list[str] | None) -> list[str]:
    """The kernels that this check can look at; a driver is built for it. One is enough where nothing runs."""
    if method not in DEFINES:
        return ["portable"]
    kernels = must(build.driver(method)).split()
    blind = {"memcheck": ("avx512", "avx512vl"), "msan": ("avx2",)}.get(method, ())
    return [kernel for kernel in kernels if kernel not in blind and kernel in (wanted or kernels)]


def main() -> int:
    """Runs all checks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="-O2, 8 secrets, 4 lengths")
    parser.add_argument("--kernel", action="append", help="only this one (may be repeated)")
    parser.add_argument("--method", action="append", help="only memcheck, msan, trace, barrier or division")
    options = parser.parse_args()
    for tool in (*COMPILERS.values(), "valgrind", "objdump"):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is missing")
    os.environ["MSAN_OPTIONS"] = "exitcode=9"
    levels = [("-O2",)] if options.short else [("-O2",), ("-O3",), ("-O3", "-flto")]
    builds = [(c, flags, False) for flags in levels for c in COMPILERS]
    builds += [("clang", flags, True) for flags in levels[:2]]
    lengths, secrets = ((0, 114, 600, 1040), 8) if options.short else (LENGTHS, 32)
    failures = 0

    def report(title: str, calls: int, began: float, wrong: str) -> None:
        nonlocal failures
        failures += bool(wrong)
        verdict = f"FAILED\n{wrong}" if wrong else "ok"
        print(f"{title:<60} {calls:>4} calls {time.monotonic() - began:6.1f} s  {verdict}", flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        steps = Path(scratch) / "steps"
        must("gcc", "-O2", HERE / "steps.c", "-o", steps)
        for number, (compiler, flags, sanitized) in enumerate(builds):
            methods = ["msan"] if sanitized else ["memcheck", "trace", "barrier", "division"]
            methods = [method for method in methods if method in (options.method or methods)]
            if not methods:
                continue
            where = Path(scratch) / str(number)
            where.mkdir()
            build = Build(where, compiler, flags, sanitized)
            for method in methods:
                if method not in DEFINES:
                    began = time.monotonic()
                    wrong = complaint(build, method, steps, "", [], 0)
                    report(f"{build.name} {method}", 0, began, wrong)
                    continue
                for kernel in kernels_of(build, method, options.kernel):
                    began = time.monotonic()
                    cases = cases_of(method, lengths)
                    wrong = complaint(build, method, steps, kernel, cases, secrets)
                    report(f"{build.name} {method} {kernel}", len(cases), began, wrong)
            for name, (file, before, after, entry, reporting) in FAULTS.items():
                text = build.plant(file, before, after)
                for method in [method for method in reporting if method in methods]:
                    for kernel in kernels_of(build, method, options.kernel):
                        began = time.monotonic()
                        said = complaint(build, method, steps, kernel, [(entry, 600)], 32)
                        wrong = "" if re.search(REPORTS[method], said) else f"not reported: {said}"
                        report(f"{build.name} {method} {kernel} planted: {name}", 1, began, wrong)
                build.restore(file, text)
    print(f"{failures} failed" if failures else "all as it must be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
