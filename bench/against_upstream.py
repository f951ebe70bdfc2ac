"""The README's table: chapoly beside the Haskell libraries that it ports.

    chapoly bench --json bench.json
    python bench/against_upstream.py bench.json          # prints Markdown

Upstream's figures, ns per call, are ppad-chacha's and ppad-poly1305's own (M4 MacBook Air, scalar and NEON);
and those of ppad-chacha 0.2.1, ppad-poly1305 0.4.5 and ppad-aead 0.3.5, built with GHC 9.10.3 -O2 -fllvm on
an AMD Zen 5 (x86-64, where their scalar path runs), measured once by hand.
"""

import json
import sys
from pathlib import Path

UPSTREAM_M4: dict[tuple[str, int | None], str] = {
    ("cipher", 114): "478 / 282",
    ("mac, big key", 114): "124 / 66",
    ("mac, big key", 1024): "225 (NEON)",
    ("mac, big key", 4096): "827 (NEON)",
}
UPSTREAM_X86 = {
    ("block", None): 184,
    ("cipher", 64): 289,
    ("cipher", 114): 518,
    ("cipher", 256): 945,
    ("cipher", 1024): 3500,
    ("cipher", 4096): 13824,
    ("cipher", 65536): 235060,
    ("mac, big key", 16): 59,
    ("mac, big key", 114): 179,
    ("mac, big key", 1024): 1028,
    ("mac, big key", 4096): 3856,
    ("encrypt", 114): 1107,
    ("encrypt", 4096): 18940,
}
NAMES = {"mac, big key": "mac", "encrypt": "AEAD encrypt"}


def main(file: str) -> None:
    """Prints the table for the results in a file."""
    facts = json.loads(Path(file).read_text(encoding="utf-8"))
    times = {(r["operation"], r["size"], r["kernel"]): r["seconds"] for r in facts["results"]}
    kernels = [kernel["name"] for kernel in facts["kernels"] if kernel["obstacle"] is None]
    print(f"{facts['cpu']}, {facts['python']}, chapoly {facts['version']} by {facts['built']['compiler']}:\n")
    print(f"| ns per call | {' | '.join(kernels)} | upstream, x86-64 | upstream, M4 scalar / NEON |")
    print("|---" * (len(kernels) + 3) + "|")
    for operation, size in UPSTREAM_X86:
        ours = [f"{times[operation, size, kernel] * 1e9:,.0f}" for kernel in kernels]
        name = NAMES.get(operation, operation) + (f", {size:,} B" if size else "")
        print(f"| {name} | {' | '.join(ours)} | {UPSTREAM_X86[operation, size]:,} ", end="")
        print(f"| {UPSTREAM_M4.get((operation, size), '')} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
