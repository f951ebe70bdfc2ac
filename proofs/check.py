"""Runs every proof, and plants faults that each must report: python proofs/check.py [NAME...]."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import field
import z3
from words import Fault

NATIVE = Path(__file__).parent.parent / "src" / "native"

# (proof, file, what stands there, what is put in its place): masks, carries, bounds
FAULTS = [
    ("portable64", "portable/poly1305_portable.c", "h2 += h1 < carry; /* <= 4 */", ";"),
    ("portable64", "portable/poly1305_portable.c", "h2 &= 3;", "h2 &= 7;"),
    ("portable26", "limbs26.h", "UINT32_C(0x3ffffff)", "UINT32_C(0x1ffffff)"),
    ("x64", "x86/poly1305_x64.h", "h2 &= 3;", "h2 &= 7;"),
    (
        "a64",
        "arm/poly1305_a64.h",
        'adc %1, %3, %5" : "=&r"(a0), "=r"(a1) : "r"(b0), "r"(b1), "r"(c0), "r"(c1)',
        'adds %1, %3, %5" : "=&r"(a0), "=r"(a1) : "r"(b0), "r"(b1), "r"(c0), "r"(c1)',
    ),
    ("neon", "arm/poly1305_neon.c", "d[0] = vandq_u64(d[0], mask);", ";"),
    ("neon", "arm/poly1305_neon.c", "vshrq_n_u32(w.val[1], 20)", "vshrq_n_u32(w.val[1], 19)"),
    ("threads", "ranges.c", "d3 += d2 >> 26,", ""),
    ("avx512", "x86/poly1305_ifma.h", "set1(5 << 10)", "set1(5 << 9)"),
    ("avx512", "x86/poly1305_ifma.h", "(UINT64_C(1) << 44) - 1)", "(UINT64_C(1) << 44) - 2)"),
    ("avx2", "x86/poly1305_avx2.c", "CARRY(3, 2);", ""),
    ("neon", "arm/poly1305_neon.c", "/* d[1] < 2^26 + 2^11 */", "/* d[1] < 2^26 */"),
]


def carry_lemma() -> str:
    """What words.py takes for granted: that a sum of two words is less than a term exactly if it carries."""
    x, y = z3.BitVecs("x y", 64)
    solver = z3.Solver()
    solver.add(z3.ULT(x + y, y) != (z3.Extract(64, 64, z3.ZeroExt(1, x) + z3.ZeroExt(1, y)) == 1))
    if solver.check() != z3.unsat:
        raise Fault("it is not so")
    return "for all words of 64 bits"


def planted(name: str, file: str, old: str, new: str) -> str:
    """Runs a proof over a copy of the source with a fault in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "native"
        shutil.copytree(NATIVE, copy)
        text = (copy / file).read_text()
        if old not in text:
            raise Fault("the line to spoil is not there")
        (copy / file).write_text(text.replace(old, new))
        try:
            getattr(field, name)(copy)
        except Fault as fault:
            return f"reported: {str(fault)[:60]}"
    raise Fault("the planted fault was not reported")


def main(names: list[str]) -> int:
    """Prints a line for each, and how many failed."""
    failed = 0
    proofs = [("carry_lemma", carry_lemma)]
    proofs += [(f.__name__, lambda f=f: f(NATIVE)) for f in field.PROOFS]  # type: ignore[misc]
    proofs += [(f"fault in {f[0]}: {f[2]}", lambda f=f: planted(*f)) for f in FAULTS]  # type: ignore[misc]
    for name, run in proofs:
        if names and not any(n in name for n in names):
            continue
        start = time.monotonic()
        try:
            outcome = run()
        except Fault as fault:
            failed += 1
            outcome = f"FAILED: {fault}"
        print(f"{name}: {outcome} ({time.monotonic() - start:.1f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
