"""Field arithmetic: that each kernel computes Poly1305's polynomial mod 2^130 - 5, and no limb exceeds its
bound.

Each proof runs functions of src/native on unknown h, r and message (interpreter.py) and compares the
polynomial that comes out with RFC 8439 2.5.1. The number of blocks is known in each run. Where a loop or a
carry ends, limbs are replaced by unknown ones within the stated bounds, which have been checked: so the
bounds hold for every later turn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import intrinsics
from interpreter import Array, Cut, Interpreter, Message, Pointer, value_mod_p
from words import Fault, Poly, World, constant

X86 = ["-D__x86_64__=1", "-D__GNUC__=12"]
ARM = ["-U__x86_64__", "-D__aarch64__=1"]
R_HIGH = (0x0FFFFFFC0FFFFFFF, 0x0FFFFFFC0FFFFFFC)
WORDS = [(f"h[{i}]", 2 ** (64 * i), high) for i, high in enumerate((2**64 - 1, 2**64 - 1, 4))]


def words_cut(prefix: str, h2: int, fold: int = 0) -> Cut:
    """After each turn of a loop over h0, h1, h2 and what is still to be folded."""
    limbs = [(f"{prefix}{i}", 2 ** (64 * i), high) for i, high in enumerate((2**64 - 1, 2**64 - 1, h2))]
    return Cut(limbs + ([("fold", 1, fold)] if fold else []), loop=True)


def limbs_cut(name: str, highs: list[int], loop: bool = False, width: int = 26) -> Cut:
    """At the end of a function that carries."""
    return Cut([(f"{name}[{i}]", 2 ** (width * i), high - 1) for i, high in enumerate(highs)], loop)


FOLD = 5 * 2**61  # 5 q of h2 < 2^63 + 2
M26 = 2**26
CARRIED = [M26, M26 + 2**11, M26, M26, M26 + 2**10]  # of the carry of AVX2 and NEON
IFMA = limbs_cut("x", [2**44 + 2**18, 2**44 + 2**13, 2**42 + 2**13], width=44)


class Run:
    """A function of the source on unknown operands."""

    def __init__(self, native: Path, file: str, defines: list[str], cuts: dict[str, Cut]) -> None:
        self.world = World()
        self.given = intrinsics.make(self.world)
        self.c = Interpreter(self.world, native / file, defines, self.given)
        self.c.cuts = cuts
        self.R = self.world.atom("r", (0, 2**124))  # r as one unknown, for powers of one term
        self.r = Array([self.world.fresh("r0", R_HIGH[0]), self.world.fresh("r1", R_HIGH[1], factor=4)])
        ((low,),) = self.r[0].poly
        self.world.congruent[low] = self.R.plus(self.r[1].poly, -(2**64))
        self.h = Array(self.world.fresh(f"h{i}", high) for i, high in enumerate((2**64 - 1, 2**64 - 1, 4)))
        self.message = Message(self.world, "m")
        for name in self.CONTRACTS:
            if f"chapoly_poly1305_{name}" != f"chapoly_poly1305_blocks_{Path(file).stem.rpartition('_')[2]}":
                self.given[f"chapoly_poly1305_{name}"] = self.contract

    CONTRACTS: tuple[str, ...] = ()

    def times(self, x: Poly, y: Poly) -> Poly:
        """The product mod p."""
        return self.world.reduce(x.times(y))

    def after(self, value: Poly, message: Message, at: int, blocks: int, top: int) -> Poly:
        """RFC 8439 2.5.1."""
        for b in range(blocks):
            block = message.load64(at + 16 * b).poly.plus(message.load64(at + 16 * b + 8).poly, 2**64)
            value = self.times(value.plus(block).plus(constant(top << 128)), self.R)
        return value

    def contract(self, h: Pointer, r: Pointer, message: Pointer, blocks: int, top: Any) -> None:
        """kernel.h, chapoly_poly1305_blocks_fn: of a function that has a proof of its own."""
        if int(h.to[2].high) > 4 or r.to is not self.r:
            raise Fault("poly1305_blocks: what it requires does not hold")
        value = self.after(value_mod_p(self.world, h.to), message.to, message.at, int(blocks), int(top))
        new = self.world.cut(
            [
                (1, self.world.known(0, 64), 2**64 - 1),
                *[(2**64, self.world.known(0, 64), 2**64 - 1), (2**128, self.world.known(0, 64), 4)],
            ],
            "h",
        )
        ((first,),) = new[0].poly
        self.world.congruent[first] = value.plus(new[1].poly, -(2**64)).plus(new[2].poly, -(2**128))
        h.to[:] = new

    def blocks(self, name: str, blocks: int, top: int = 1) -> None:
        """Runs it for so many blocks, and compares."""
        expected = self.after(value_mod_p(self.world, self.h), self.message, 0, blocks, top)
        self.c.call(
            name, [Pointer(self.h), Pointer(self.r), Pointer(self.message), blocks, self.world.known(top, 64)]
        )
        self.equal(value_mod_p(self.world, self.h), expected)
        if self.h[2].high > 4:
            raise Fault(f"h[2] may be {self.h[2].high}")

    def equal(self, got: Poly, expected: Poly) -> None:
        """Mod p, as polynomials."""
        if rest := self.world.reduce(got.plus(expected, -1)):
            raise Fault(f"not the polynomial: {self.world.show(rest)}")


class VectorRun(Run):
    """Of a kernel whose general registers' part is proved on its own."""

    CONTRACTS = ("blocks_sse2", "a64")


def many(run: Callable[[], Run], name: str, counts: list[int], top: int = 1) -> str:
    """For several numbers of blocks."""
    checked: set[Any] = set()
    for blocks in counts:
        r = run()
        r.blocks(name, blocks, top)
        checked |= r.c.checked
    return f"{len(counts)} lengths, {len(checked)} stated bounds"


def scalar(native: Path, file: str, name: str, defines: list[str], cut: Cut) -> str:
    """A kernel in general registers: each turn but the first begins as the one after the cut."""

    def run() -> Run:
        return Run(native, file, defines, {name: cut})

    return many(run, name, [0, 1, 2, 3]) + "; " + many(run, name, [1, 2], 0)


def portable64(native: Path) -> str:
    """2 x 64 bits, 128-bit products."""
    name = "chapoly_poly1305_blocks_portable"
    return scalar(native, "portable/poly1305_portable.c", name, [], words_cut("h", 4))


def portable26(native: Path) -> str:
    """5 x 26 bits, 64-bit products."""
    cut = limbs_cut("a", [M26, M26 + 2**9 + 1, M26, M26, M26], loop=True, width=26)
    name = "chapoly_poly1305_blocks_portable"
    return scalar(native, "portable/poly1305_portable.c", name, ["-DCHAPOLY_LIMBS_26"], cut)


def x64(native: Path) -> str:
    """2 x 64 bits, assembly of x86-64."""
    return scalar(native, "x86/poly1305_sse2.c", "chapoly_poly1305_x64", X86, words_cut("h", 3, FOLD))


def a64(native: Path) -> str:
    """2 x 64 bits, assembly of AArch64."""
    return scalar(native, "arm/poly1305_neon.c", "chapoly_poly1305_a64", ARM, words_cut("h", 3, FOLD))


def avx2(native: Path) -> str:
    """5 x 26 bits in four lanes, four blocks per carry."""
    cuts = {"carry": limbs_cut("d", CARRIED), "chapoly_add_limbs": Cut(WORDS)}

    def run() -> Run:
        return VectorRun(native, "x86/poly1305_avx2.c", X86, cuts)

    return many(run, "chapoly_poly1305_blocks_avx2", [87, 88, 100, 116])


def neon(native: Path) -> str:
    """5 x 26 bits in two lanes, four pairs per carry."""
    cuts = {"carry": limbs_cut("h", CARRIED), "chapoly_add_limbs": Cut(WORDS)}

    def run() -> Run:
        return VectorRun(native, "arm/poly1305_neon.c", ARM, cuts)

    return many(run, "chapoly_poly1305_blocks_neon", [25, 26, 27, 33, 34, 42])


def avx512(native: Path) -> str:
    """44, 44 and 42 bits in eight lanes, up to eight groups per carry."""
    cuts = {"carry": IFMA, "join": Cut(WORDS)}

    def run() -> Run:
        return VectorRun(native, "x86/poly1305_avx512.c", [*X86, "-DCHAPOLY_AVX512=1"], cuts)

    return many(run, "chapoly_poly1305_blocks_avx512", [15, 16, 17, 23, 33])


def threads(native: Path) -> str:
    """chapoly_poly1305_join: h r^n + the part's h, for what is split over threads."""
    for blocks in (0, 1, 2, 3, 4, 5, 8, 13, 64, 1000):
        cuts = {"multiply": limbs_cut("x", [M26, M26 + 2**6, M26, M26, M26]), "chapoly_add_limbs": Cut(WORDS)}
        run = Run(native, "ranges.c", [], cuts)
        w = run.world
        part: dict[str, Any] = {
            "h": Array(w.fresh(f"part{i}", high) for i, high in enumerate((2**64 - 1, 2**64 - 1, 4)))
        }
        part |= {"buffer": Array(), "buffered": 0}
        mac: dict[str, Any] = {"h": run.h, "r": run.r, "buffer": Array(), "buffered": 0}
        expected, power, n = value_mod_p(w, run.h), run.R, blocks
        while n:
            expected = run.times(expected, power) if n & 1 else expected
            power, n = run.times(power, power) if n > 1 else power, n >> 1
        expected = expected.plus(value_mod_p(w, part["h"]))
        run.given["memcpy"] = lambda *_: None
        holder = Array([mac, part])
        run.c.call("chapoly_poly1305_join", [Pointer(holder, 0), Pointer(holder, 1), 16 * blocks])
        run.equal(value_mod_p(w, mac["h"]), expected)
    return "10 lengths"


PROOFS: list[Callable[[Path], str]] = [portable64, portable26, x64, a64, avx2, neon, avx512, threads]
