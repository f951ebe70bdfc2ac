"""Words of machine arithmetic as exact polynomials with intervals.

A word is a polynomial with integer coefficients over atoms: inputs, and floors of other polynomials by a
power of two. Whatever wraps, shifts or masks is written with such a floor, so nothing is approximated in
the polynomial; the interval beside it says how large the word can be. Carries that are lost or counted
twice stay in the result as atoms that do not cancel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

P = 2**130 - 5
Monomial = tuple[int, ...]
Interval = tuple[int, int]


class Fault(Exception):  # noqa: N818
    """Something that was to be proved does not hold, or could not be decided."""


@dataclass
class Atom:
    """An unknown integer, and, if it is a floor, of what."""

    name: str
    interval: Interval
    floor_of: tuple[Poly, int] | None = None


class Poly(dict[Monomial, int]):
    """Coefficients of monomials, none of them zero."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Of the terms, in any order; never changed once it is made."""
        return hash(frozenset(self.items()))

    def plus(self, other: Poly, factor: int = 1) -> Poly:
        """The sum with a multiple of another."""
        out = Poly(self)
        for monomial, c in other.items():
            value = out.get(monomial, 0) + factor * c
            if value:
                out[monomial] = value
            else:
                out.pop(monomial, None)
        return out

    def times(self, other: Poly) -> Poly:
        """The product."""
        out = Poly()
        for m, a in self.items():
            for n, b in other.items():
                monomial = tuple(sorted(m + n))
                out[monomial] = out.get(monomial, 0) + a * b
        return Poly({m: c for m, c in out.items() if c})


def constant(value: int) -> Poly:
    """A polynomial without atoms."""
    return Poly({(): value} if value else {})


@dataclass(frozen=True)
class Word:
    """An unsigned word of so many bits: its polynomial, and where its value lies."""

    poly: Poly
    low: int
    high: int
    bits: int
    carry: tuple[Poly, Poly, Poly] | None = field(
        default=None, compare=False
    )  # of a sum: both terms, and its carry

    def __int__(self) -> int:
        """The value, if there is only one."""
        if self.low != self.high:
            raise Fault("control flow or an address depends on an unknown value")
        return self.low

    __index__ = __int__


def valuation(value: int) -> int:
    """How many times 2 divides it."""
    return (value & -value).bit_length() - 1


class World:
    """All atoms of a proof, and what is known of them."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.floors: dict[tuple[Poly, int], Poly] = {}
        self.bounds: dict[Poly, Interval] = {}
        self.congruent: dict[int, Poly] = {}  # atoms that stand for a polynomial mod p

    def atom(self, name: str, interval: Interval, floor_of: tuple[Poly, int] | None = None) -> Poly:
        """A new unknown."""
        self.atoms.append(Atom(name, interval, floor_of))
        return Poly({(len(self.atoms) - 1,): 1})

    def fresh(self, name: str, high: int, bits: int = 64, factor: int = 1) -> Word:
        """An unknown word of 0 to `high`, which is a multiple of `factor`."""
        atom = self.atom(name, (0, high // factor))
        return Word(constant(0).plus(atom, factor), 0, high // factor * factor, bits)

    def interval(self, poly: Poly) -> Interval:
        """Exact interval arithmetic over the monomials."""
        low = high = 0
        for monomial, c in poly.items():
            a = b = 1
            for atom in monomial:
                x, y = self.atoms[atom].interval
                ends = (a * x, a * y, b * x, b * y)
                a, b = min(ends), max(ends)
            low += min(c * a, c * b)
            high += max(c * a, c * b)
        a, b = self.bounds.get(poly, (low, high))  # found when it was computed in another way
        return max(low, a), min(high, b)

    def floor(self, poly: Poly, n: int, known: Interval | None = None) -> Poly:
        """floor(poly / 2^n), in a form that does not depend on how it was computed."""
        if n == 0 or not poly:
            return poly
        if known and known[0] >> n == known[1] >> n:
            return constant(known[0] >> n)
        whole = Poly({m: c >> n for m, c in poly.items() if c % 2**n == 0})
        rest = Poly({m: c for m, c in poly.items() if c % 2**n})
        return whole.plus(self._floor_of_rest(rest, n))

    def _floor_of_rest(self, rest: Poly, n: int) -> Poly:
        low, high = self.interval(rest)
        if low >> n == high >> n:
            return constant(low >> n)
        for v in sorted({valuation(c) for c in rest.values()} - {0}, reverse=True):
            below = Poly({m: c for m, c in rest.items() if valuation(c) < v})
            a, b = self.interval(below)
            if a >= 0 and b < 2**v:  # it cannot reach the bits that are left
                return self.floor(Poly({m: c >> v for m, c in rest.items() if valuation(c) >= v}), n - v)
        # floor((a + floor(b / 2^m)) / 2^n), of integers a and b, with one floor only
        for monomial, c in rest.items():
            if c == 1 and len(monomial) == 1 and (inner := self.atoms[monomial[0]].floor_of):
                below, m = inner
                others = Poly({k: v << m for k, v in rest.items() if k != monomial})
                return self.floor(others.plus(below), n + m)
        if (rest, n) not in self.floors:
            self.floors[rest, n] = self.atom(f"floor/2^{n}", (low >> n, high >> n), (rest, n))
        return self.floors[rest, n]

    def word(self, poly: Poly, low: int, high: int, bits: int) -> Word:
        """What is left of a value in a word: mod 2^bits."""
        small = (
            len(poly) <= 40
        )  # of a long sum the terms know no better, and looking would take most of the time
        if small or low < 0 or high >= 2**bits:
            a, b = self.interval(poly)
            low, high = max(low, a), min(high, b)
        if low < 0 or high >= 2**bits:
            poly = poly.plus(self.floor(poly, bits, (low, high)), -(2**bits))
            low, high = 0, 2**bits - 1
            small = True
        if small:
            a, b = self.interval(poly)
            low, high = max(low, a), min(high, b)
            self.bounds[poly] = low, high
        return Word(poly, low, high, bits)

    def known(self, value: int, bits: int) -> Word:
        """A constant."""
        value %= 2**bits
        return Word(constant(value), value, value, bits)

    def add(self, x: Word, y: Word) -> Word:
        """The sum, which remembers its carry."""
        bits = max(x.bits, y.bits)
        total = x.poly.plus(y.poly)
        out = self.word(total, x.low + y.low, x.high + y.high, bits)
        lost = total.plus(out.poly, -1)
        carry = Poly({m: c >> bits for m, c in lost.items()})
        return Word(out.poly, out.low, out.high, bits, (x.poly, y.poly, carry))

    def subtract(self, x: Word, y: Word) -> Word:
        """The difference."""
        return self.word(x.poly.plus(y.poly, -1), x.low - y.high, x.high - y.low, max(x.bits, y.bits))

    def multiply(self, x: Word, y: Word) -> Word:
        """The product."""
        return self.word(x.poly.times(y.poly), x.low * y.low, x.high * y.high, max(x.bits, y.bits))

    def right(self, x: Word, n: int) -> Word:
        """x >> n."""
        if n == 0:
            return x
        return self.word(self.floor(x.poly, n, (x.low, x.high)), x.low >> n, x.high >> n, x.bits)

    def left(self, x: Word, n: int) -> Word:
        """x << n."""
        return self.word(constant(0).plus(x.poly, 2**n), x.low << n, x.high << n, x.bits)

    def both(self, x: Word, y: Word) -> Word:
        """x & y, one of them known: for each run of ones what lies between two floors."""
        if y.low != y.high:
            x, y = y, x
        mask, at, out = int(y), 0, constant(0)
        bits = max(x.bits, y.bits)
        while mask >> at:
            at += valuation(mask >> at)
            end = at + valuation(~(mask >> at))
            out = out.plus(self.floor(x.poly, at, (x.low, x.high)), 2**at)
            out = out.plus(self.floor(x.poly, end, (x.low, x.high)), -(2**end))
            at = end
        return self.word(out, 0, min(x.high, mask), bits)

    def either(self, x: Word, y: Word) -> Word:
        """x | y, of which no bit is in both."""
        for a, b in ((x, y), (y, x)):
            if all(c % 2 ** a.high.bit_length() == 0 for c in b.poly.values()):
                return self.word(a.poly.plus(b.poly), a.low + b.low, a.high + b.high, max(a.bits, b.bits))
        raise Fault("| of values that may have bits in common")

    def cast(self, x: Word, bits: int) -> Word:
        """The same in another type."""
        return x if x.bits == bits else self.word(x.poly, x.low, x.high, bits)

    def less(self, x: Word, y: Word) -> Word:
        """x < y; of a sum and one of its terms, the carry (carry_lemma in check.py)."""
        if x.high < y.low or x.low >= y.high:
            return self.known(int(x.high < y.low), 64)
        if x.carry and y.poly in x.carry[:2]:
            return self.word(x.carry[2], 0, 1, 64)
        raise Fault("a comparison that is not of a sum with one of its terms")

    def reduce(self, poly: Poly) -> Poly:
        """Mod p, with what atoms are congruent to in their place."""
        while used := {a for m in poly for a in m if a in self.congruent}:
            out: dict[Monomial, int] = {}
            last = max(used)  # it stands for older ones only
            for monomial, c in poly.items():
                n = monomial.count(last)
                part = Poly({tuple(a for a in monomial if a != last): c})
                for _ in range(n):
                    part = part.times(self.congruent[last])
                for m, value in part.items():
                    out[m] = out.get(m, 0) + value
            poly = Poly({m: c % P for m, c in out.items() if c % P})
        return Poly({m: c % P for m, c in poly.items() if c % P})

    def cut(self, words: Iterable[tuple[int, Word, int]], name: str) -> list[Word]:
        """Unknown words of the same value mod p, within bounds that are checked; (weight, word, bound)."""
        value, out = constant(0), []
        for i, (weight, word, high) in enumerate(words):
            if word.high > high:
                raise Fault(f"{name}, limb {i}: {word.high:#x} > {high:#x}")
            value = value.plus(word.poly, weight)
            out.append((weight, self.fresh(f"{name}{i}", high, word.bits)))
        value = self.reduce(value)
        for weight, word in out[1:]:
            value = value.plus(word.poly, -weight)
        ((first,),) = out[0][1].poly
        self.congruent[first] = value
        return [word for _, word in out]

    def show(self, poly: Poly) -> str:
        """A few terms."""
        terms = [f"{c:#x} {' '.join(self.atoms[a].name for a in m)}" for m, c in list(poly.items())[:4]]
        return " + ".join(terms) + (" + ..." if len(poly) > 4 else "")
