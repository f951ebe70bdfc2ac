#!/usr/bin/env python3
"""Instructions and simulated cycles of the AArch64 kernels: neon_counts.py [--check | --write | --peers].

Counts are exact: a qemu plugin writes which instructions a call executes. The same instructions in the same
order go through llvm-mca's models of three cores, which know no caches, no branch prediction, no store
forwarding (a load does not even wait for the store before it: what passes through memory counts as known) and
one scheduling window for all; the one called apple-m1 is that of an older core, with a slow rotate. Neither
count nor model ranks different codes; they show what a change to one kernel does.

Figures that differ from those in neon_counts.json are marked; --write records new ones there. --check counts
a few sizes on the NEON kernels without the models, and fails if a count has grown by more than 5 % against
the record of the same compiler, or if there is none. --peers counts what Debian's OpenSSL and libsodium for
arm64 execute, which it downloads to build/neon-peers, and prints it beside what is recorded of chapoly; with
--write it records that too.

Needs the Debian packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user clang-19, and llvm-19 for the
models.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent / "src" / "native"
RECORDED = HERE / "neon_counts.json"
CORES = ("neoverse-n1", "neoverse-v2", "apple-m1")
COLUMNS = ("instructions", *CORES)
COMPILERS = {
    "gcc": ("aarch64-linux-gnu-gcc",),
    "clang": ("clang-19", "--target=aarch64-linux-gnu", "-isystem", "/usr/aarch64-linux-gnu/include"),
}
ALGORITHMS = ("chacha", "poly1305", "aead")
SIZES = (64, 114, 128, 192, 256, 320, 384, 512, 640, 1024, 1420, 4096, 16384)
CHECKED = (64, 114, 128, 192, 256, 384, 1420, 4096, 16384)
ALLOWED = 1.05
PEERS = {"openssl": "libssl3", "libsodium": "libsodium23"}
LIBRARIES = HERE.parent / "build" / "neon-peers"

Rows = dict[str, list[int]]


def run(*command: object, cwd: Path | None = None) -> str:
    """What the command prints; it must succeed."""
    words = [str(part) for part in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd=cwd).stdout


def version(compiler: str) -> str:
    """Of a compiler: figures are compared only with those of the same."""
    return run(*COMPILERS[compiler], "-dumpfullversion" if compiler == "gcc" else "-dumpversion").strip()


def build(compiler: str, defines: list[str], directory: Path) -> Path:
    """The program of counts.c with all kernels."""
    sources = [path for folder in ("", "portable", "arm") for path in sorted((NATIVE / folder).glob("*.c"))]
    flags = ["-std=c11", "-O3", "-static", "-I", NATIVE, *(f"-D{define}" for define in defines)]
    run(*COMPILERS[compiler], *flags, HERE / "counts.c", *sources, "-o", directory / compiler)
    return directory / compiler


def build_plugin(directory: Path) -> Path:
    """The plugin that writes what is executed."""
    run("cc", "-O2", "-shared", "-fPIC", HERE / "qemu_trace.c", "-o", directory / "qemu_trace.so")
    return directory / "qemu_trace.so"


# ---- What a call executes. ----


def executed(
    program: Path, plugin: Path, *arguments: object, options: tuple[object, ...] = ()
) -> list[list[tuple[int, int]]]:
    """Of each call between the marks, the runs of instructions: the first one's address, and how many."""
    trace = plugin.with_name("trace")
    run(
        "qemu-aarch64", "-cpu", "cortex-a72", "-plugin", f"{plugin},to={trace}", *options, program, *arguments
    )
    symbols = [line.split() for line in run("aarch64-linux-gnu-nm", program).splitlines()]
    marks = {symbol[-1]: int(symbol[0], 16) for symbol in symbols if symbol[-1].startswith("mark_")}
    found: list[list[tuple[int, int]]] = []
    inside = False
    for address, length in runs(trace):
        if address == marks["mark_end"]:
            inside = False
        if inside:
            found[-1].append((address, length))
        if address == marks["mark_begin"]:
            found.append([])
            inside = True
    assert not inside
    return found


def runs(trace: Path) -> Iterator[tuple[int, int]]:
    """What the plugin wrote."""
    with trace.open("rb") as stream:
        while part := stream.read(1 << 20):
            yield from struct.iter_unpack("<QQ", part)


def count(call: list[tuple[int, int]]) -> int:
    """Instructions of a call."""
    return sum(length for _, length in call)


# ---- The models. ----


def disassemble(program: Path) -> dict[int, str]:
    """The text of each instruction by address, as llvm-mca reads it."""
    lines = run("llvm-objdump-19", "--disassemble", "--no-show-raw-insn", program).splitlines()
    matches = (re.match(r"\s*([0-9a-f]+):\s+(.+)", line) for line in lines)
    return {int(m[1], 16): re.sub(r"0x[0-9a-f]+ <.*>", "#0", m[2]) for m in matches if m}


def cycles(call: list[tuple[int, int]], code: dict[int, str], core: str) -> int:
    """How many cycles llvm-mca's model of the core takes."""
    lines = (code[at] for address, length in call for at in range(address, address + 4 * length, 4))
    # It would count calls and returns as long operations.
    text = "\n".join(line for line in lines if not re.match(r"(bl|blr|br|ret)\b", line))
    command = ["llvm-mca-19", "-mtriple=aarch64", f"-mcpu={core}", "-iterations=1"]
    out = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
    match = re.search(r"Total Cycles:\s+(\d+)", out)
    assert match
    return int(match[1])


# ---- The tables. ----


def print_row(title: object, values: Sequence[object], note: str = "") -> None:
    """One line of the table."""
    print(f"{title!s:>24}" + "".join(f"{value!s:>14}" for value in values) + note, flush=True)


def a_byte(rows: Rows, title: str) -> list[str]:
    """What a byte more costs, from 4 to 16 KiB."""
    ends = zip(rows[f"{title} 4096"], rows[f"{title} 16384"], strict=True)
    return [f"{(b - a) / (16384 - 4096):.3f}" for a, b in ends]


def measure(options: argparse.Namespace, recorded: Rows) -> Rows:
    """Counts and models, and prints them beside what is recorded."""
    rows: Rows = {}
    with tempfile.TemporaryDirectory() as name:
        plugin = build_plugin(Path(name))
        for compiler in options.compilers:
            program = build(compiler, options.define, Path(name))
            code = {} if options.check else disassemble(program)
            for algorithm, kernel in ((a, k) for a in options.algorithms for k in options.kernels):
                title = f"{algorithm} {kernel} {compiler}"
                print_row(title, COLUMNS[:1] if options.check else COLUMNS)
                done = executed(program, plugin, algorithm, kernel, *options.sizes)
                for size, call in zip(options.sizes, done, strict=True):
                    models = [] if options.check else [cycles(call, code, core) for core in CORES]
                    row = rows[f"{title} {size}"] = [count(call), *models]
                    before = recorded.get(f"{title} {size}", row)[: len(row)]
                    print_row(size, row, "" if before == row else f"   recorded: {before}")
                if {4096, 16384} <= set(options.sizes):
                    print_row("a byte, 4 to 16 KiB", a_byte(rows, title))
    return rows


def grown(rows: Rows, record: dict[str, Any], compilers: dict[str, str]) -> list[str]:
    """What --check fails for."""
    problems = [
        f"{name} {now}: nothing is recorded for it, so nothing was compared"
        for name, now in compilers.items()
        if record["compilers"].get(name) != now
    ]
    for title, row in rows.items():
        compiler = title.split()[2]
        before = record["figures"].get(title)
        if record["compilers"].get(compiler) != compilers[compiler]:
            continue
        if before is None:
            problems.append(f"{title}: not recorded")
        elif row[0] > ALLOWED * before[0]:
            problems.append(f"{title}: {before[0]} before, {row[0]} now")
    return problems


# ---- Others. ----


def fetch_libraries() -> None:
    """Unpacks Debian's libraries for arm64; the machine gains no foreign architecture."""
    complete = LIBRARIES / "complete"
    if complete.exists():
        return
    apt = LIBRARIES / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    places = {"State::lists": apt / "lists", "State::status": apt / "status", "Cache": apt / "cache"}
    settings = [f"--option=Dir::{name}={path}" for name, path in places.items()]
    settings += ["--option=APT::Architecture=arm64", "--option=APT::Architectures=arm64"]
    settings += ["--option=APT::Sandbox::User="]
    run("apt-get", *settings, "update", "--quiet=2")
    run("apt-get", *settings, "download", "--quiet=2", *PEERS.values(), cwd=apt)
    for package in apt.glob("*.deb"):
        run("dpkg", "--extract", package, LIBRARIES)
    complete.touch()


def measure_peers() -> dict[str, dict[str, int]]:
    """Instructions of the same work done by others, by the version that each gives itself."""
    fetch_libraries()
    folder = LIBRARIES / "usr/lib/aarch64-linux-gnu"
    found: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        plugin = build_plugin(Path(name))
        program = Path(name) / "neon_peers"
        libraries = (folder / "libcrypto.so.3", next(folder.glob("libsodium.so.*")))
        run(*COMPILERS["gcc"], "-O2", "-no-pie", HERE / "neon_peers.c", *libraries, "-o", program)
        options = ("-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={folder}")
        for peer in PEERS:
            title = run("qemu-aarch64", *options, program, peer, "aead", 0).strip()
            for algorithm in ALGORITHMS:
                done = executed(program, plugin, peer, algorithm, *CHECKED, options=options)
                counts = {f"{algorithm} {s}": count(c) for s, c in zip(CHECKED, done, strict=True)}
                found[title] = found.get(title, {}) | counts
    return found


def print_peers(peers: dict[str, dict[str, int]], rows: Rows) -> None:
    """Theirs beside ours."""
    table = dict(peers)
    for compiler in COMPILERS:
        table[f"chapoly, {compiler}"] = {
            f"{a} {s}": rows[f"{a} neon {compiler} {s}"][0] for a in ALGORITHMS for s in CHECKED
        }
    print("instructions per byte on arm64")
    head = f"{'':32}{'AEAD of 114 B':>16}" + "".join(f"{a + ', in bulk':>20}" for a in ALGORITHMS)
    print(head)
    for name, counts in table.items():
        bulk = [(counts[f"{a} 16384"] - counts[f"{a} 4096"]) / (16384 - 4096) for a in ALGORITHMS]
        values = f"{counts['aead 114'] / 114:16.1f}" + "".join(f"{value:20.2f}" for value in bulk)
        print(f"{name:32}{values}")


def write(record: dict[str, Any]) -> None:
    """A line for each row."""
    parts = []
    for name, value in record.items():
        if isinstance(value, dict):
            lines = [f"  {json.dumps(title)}: {json.dumps(row)}" for title, row in value.items()]
            parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    RECORDED.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> None:
    """Measures and prints, compares and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a count has grown by more than 5 %%")
    parser.add_argument("--write", action="store_true", help="record the figures")
    parser.add_argument("--peers", action="store_true", help="count OpenSSL and libsodium instead")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--compilers", nargs="+", default=list(COMPILERS))
    parser.add_argument("--kernels", nargs="+")
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS)
    parser.add_argument(
        "--define", action="append", default=[], metavar="NAME=VALUE", help="for the C compiler"
    )
    options = parser.parse_args()
    options.sizes = options.sizes or (CHECKED if options.check else SIZES)
    options.kernels = options.kernels or (["neon"] if options.check else ["neon", "portable"])
    record: dict[str, Any] = {"columns": COLUMNS, "compilers": {}, "figures": {}, "peers": {}}
    record |= json.loads(RECORDED.read_text()) if RECORDED.exists() else {}

    if options.peers:
        record["peers"] = measure_peers()
        print_peers(record["peers"], record["figures"])
    else:
        compilers = {name: version(name) for name in options.compilers}
        rows = measure(options, record["figures"])
        problems = grown(rows, record, compilers) if options.check else []
        print(*problems, sep="\n", end="\n" if problems else "")
        if problems:
            sys.exit(1)
        record["figures"] |= rows
        record["compilers"] |= compilers
    if options.write and not options.check:
        write(record)


if __name__ == "__main__":
    main()
