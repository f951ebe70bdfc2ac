"""The intrinsics that the Poly1305 kernels use, lane by lane, on words; taken to be right, not compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interpreter import Array, Message, Pointer, Vector
from words import Fault, Word, World


def make(world: World) -> dict[str, Callable[..., Any]]:
    """All of them, under their names."""
    w = world

    def lanes(f: Callable[..., Word]) -> Callable[..., Vector]:
        return lambda *vectors: Vector(f(*words) for words in zip(*vectors, strict=True))

    def shift(f: Callable[[Word, int], Word]) -> Callable[[Vector, int], Vector]:
        return lambda x, n: Vector(f(word, int(n)) for word in x)

    def word64(x: Any) -> Word:
        return w.cast(x, 64) if isinstance(x, Word) else w.known(x, 64)

    def spread(n: int, bits: int = 64) -> Callable[[Any], Vector]:
        return lambda x: Vector([w.cast(x, bits) if isinstance(x, Word) else w.known(x, bits)] * n)

    def load(n: int) -> Callable[[Pointer], Vector]:
        def run(p: Pointer) -> Vector:
            if isinstance(p.to, Message):
                return Vector(p.to.load64(p.at + 8 * i) for i in range(n))
            if isinstance(p.to, Array) and isinstance(p.to[p.at], Vector):
                return Vector(p.to[p.at])
            if p.at + n > len(p.to):
                raise Fault("a load outside of an array")
            return Vector(p.to[p.at : p.at + n])

        return run

    def store_words(p: Pointer, x: Vector) -> None:
        if p.at + len(x) > len(p.to):
            raise Fault("a store outside of an array")
        p.to[p.at : p.at + len(x)] = list(x)

    def low32(x: Word) -> Word:
        return w.cast(w.cast(x, 32), 64)

    def unpack(which: int) -> Callable[[Vector, Vector], Vector]:
        return lambda x, y: Vector((y if i % 2 else x)[i // 2 * 2 + which] for i in range(len(x)))

    def madd(upper: bool) -> Callable[[Word, Word, Word], Word]:
        def run(z: Word, x: Word, y: Word) -> Word:
            mask = w.known(2**52 - 1, 64)
            product = w.multiply(w.cast(w.both(x, mask), 128), w.cast(w.both(y, mask), 128))
            half = w.right(product, 52) if upper else w.both(product, w.known(2**52 - 1, 128))
            return w.add(z, w.cast(half, 64))

        return run

    def compare(f: Callable[[int, int], bool]) -> Callable[[Vector, Vector], int]:
        return lambda x, y: sum(f(int(a), int(b)) << i for i, (a, b) in enumerate(zip(x, y, strict=True)))

    def choose(otherwise: Vector, mask: int, x: Vector) -> Vector:
        return Vector(x[i] if int(mask) >> i & 1 else otherwise[i] for i in range(len(x)))

    def permute(index: Vector, x: Vector) -> Vector:
        return Vector(x[int(i) % len(x)] for i in index)

    def concatenated_right(x: Word, y: Word, n: int) -> Word:
        return w.either(w.right(x, n), w.left(y, 64 - n))

    def insert_left(x: Word, y: Word, n: int) -> Word:
        return w.either(w.both(x, w.known(2**n - 1, x.bits)), w.left(y, n))

    def total(x: Vector) -> Word:
        out = x[0]
        for word in x[1:]:
            out = w.add(out, word)
        return out

    def load4(p: Pointer) -> dict[str, Array]:
        words = [half(p.to.load64(p.at + 8 * (i // 2)), i % 2) for i in range(16)]
        return {"val": Array(Vector(words[4 * lane + i] for lane in range(4)) for i in range(4))}

    def half(x: Word, upper: int) -> Word:
        return w.cast(w.right(x, 32) if upper else x, 32)

    def widened_product(d: Vector, x: tuple[Word, ...], p: Vector, n: int) -> Vector:
        return Vector(
            w.add(a, w.multiply(w.cast(b, 64), w.cast(p[int(n)], 64))) for a, b in zip(d, x, strict=True)
        )

    def both_widths(bits: int, n: int) -> dict[str, Callable[..., Any]]:
        return {
            "add_epi64": lanes(w.add), "sub_epi64": lanes(w.subtract), "srli_epi64": shift(w.right),
            "slli_epi64": shift(w.left), f"and_si{bits}": lanes(w.both), f"or_si{bits}": lanes(w.either),
            "unpacklo_epi64": unpack(0), "unpackhi_epi64": unpack(1), f"loadu_si{bits}": load(n),
            f"load_si{bits}": load(n), f"storeu_si{bits}": store_words,
            "mul_epu32": lanes(lambda x, y: w.multiply(low32(x), low32(y))),
        }  # fmt: skip

    wide = {
        f"_mm{bits}_{name}": f for bits, n in ((256, 4), (512, 8)) for name, f in both_widths(bits, n).items()
    }
    more: dict[str, Callable[..., Any]] = {
        "_mm256_store_si256": lambda p, x: p.to.__setitem__(p.at, x), "_mm512_store_si512": store_words,
        "_mm256_set1_epi64x": spread(4), "_mm512_set1_epi64": spread(8),
        "_mm256_setr_epi64x": lambda *x: Vector(map(word64, x)),
        "_mm512_setzero_si512": lambda: spread(8)(0),
        "_mm512_madd52lo_epu64": lanes(madd(False)), "_mm512_madd52hi_epu64": lanes(madd(True)),
        "_mm512_shrdi_epi64": lambda x, y, n: Vector(
            concatenated_right(a, b, n) for a, b in zip(x, y, strict=True)
        ),
        "_mm512_permutexvar_epi64": permute,
        "_mm512_maskz_permutexvar_epi64": lambda m, i, x: choose(spread(8)(0), m, permute(i, x)),
        "_mm512_mask_mov_epi64": choose,
        "_mm512_mask_add_epi64": lambda o, m, x, y: choose(o, m, lanes(w.add)(x, y)),
        "_mm512_test_epi64_mask": compare(lambda a, b: a & b != 0),
        "_mm512_cmpge_epu64_mask": compare(lambda a, b: a >= b),
        "_mm512_cmpeq_epu64_mask": compare(lambda a, b: a == b),
        "_mm512_reduce_add_epi64": total,
        "vdupq_n_u32": spread(4, 32), "vdupq_n_u64": spread(2), "vld4q_u32": load4, "vld1q_u32": load(4),
        "vandq_u32": lanes(w.both), "vandq_u64": lanes(w.both), "vorrq_u32": lanes(w.either),
        "vshrq_n_u32": shift(w.right), "vshrq_n_u64": shift(w.right), "vshlq_n_u64": shift(w.left),
        "vsliq_n_u32": lambda x, y, n: Vector(insert_left(a, b, n) for a, b in zip(x, y, strict=True)),
        "vsraq_n_u64": lambda x, y, n: lanes(w.add)(x, shift(w.right)(y, n)), "vaddq_u64": lanes(w.add),
        "vmovn_u64": lambda x: Vector(w.cast(word, 32) for word in x),
        "vcreate_u32": lambda x: Vector([half(x, 0), half(x, 1)]),
        "vget_low_u32": lambda x: Vector(x[:2]), "vget_lane_u32": lambda x, n: x[int(n)],
        "vmovl_high_u32": lambda x: Vector(w.cast(word, 64) for word in x[2:]),
        "vmlal_laneq_u32": widened_product,
        "vmlal_high_laneq_u32": lambda d, x, p, n: widened_product(d, x[2:], p, n),
        "chapoly_load64": lambda p: p.to.load64(p.at),
        "chapoly_wipe": lambda *_: None, "chapoly_wipe_few": lambda *_: None,
    }  # fmt: skip
    return wide | more
