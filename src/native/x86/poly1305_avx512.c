/*
 * Poly1305 blocks (RFC 8439 2.5.1) for x86-64 with AVX-512 (F, VL, IFMA, VBMI2).
 *
 * Eight accumulators in the eight 64-bit lanes of a vector, each of limbs of 44, 44 and 42 bits, for IFMA multiplies 52
 * by 52 bits and adds the lower or the upper 52 bits of the product. Each takes every eighth block, and is multiplied by
 * R = r^8 per block; at the end lane i, of the eight blocks that come last the i-th, is multiplied by r^(8 - i) and all
 * are added. Up to STEPS groups of eight blocks are taken with one carry for all of them:
 *     h = h R^n + m0 R^(n - 1) + ... + m(n-2) R + m(n-1).
 * A message that does not fill its groups is taken as if blocks of value 0 stood before it, the accumulator being added
 * to the first block that is there.
 */
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_avx512, chapoly_poly1305_blocks_portable;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#include "poly1305_ifma.h"

enum { STEPS = 8 }; /* groups per carry, and so the number of powers of R; raise() makes as many as there are lanes */

/*
 * The fewest blocks for which the powers are worth their price. Not measured yet: bench/poly1305_crossover.py is to be
 * run on a CPU that has the instructions.
 */
#ifndef CROSSOVER
#define CROSSOVER 24
#endif

/* Where load_group puts each block: lane i holds block block_of[i] of the group. */
static const uint64_t block_of[LANES] __attribute__((aligned(64))) = {0, 4, 1, 5, 2, 6, 3, 7};

static const uint64_t lane_numbers[LANES] __attribute__((aligned(64))) = {0, 1, 2, 3, 4, 5, 6, 7};

/* The factors of R, R^2, ..., R^STEPS in memory, f[i][k] of R^(k+1). */
typedef struct {
    uint64_t f[5][STEPS] __attribute__((aligned(64)));
} powers;

INLINE factors load_factors(const powers *p, size_t k)
{
    return (factors){{set1(p->f[0][k]), set1(p->f[1][k]), set1(p->f[2][k]), set1(p->f[3][k]), set1(p->f[4][k])}};
}

/*
 * Lane i of x becomes x^(i+1) for i < count <= LANES, if all lanes are the same; the other lanes are some power too.
 * requires, ensures: the limbs as those of y in multiply_add
 */
NOINLINE void raise(__m512i x[3], size_t count)
{
    const __m512i lane = _mm512_load_si512(lane_numbers);

    for (size_t have = 1; have < count; have *= 2) { /* lanes 0 to have - 1 are right, and the others repeat them */
        const __mmask8 next = _mm512_test_epi64_mask(lane, set1(have));
        __m512i last[3], product[3];
        for (int n = 0; n < 3; n++) {
            last[n] = _mm512_permutexvar_epi64(set1(have - 1), x[n]);
            product[n] = x[n];
        }
        multiply(product, last);
        for (int n = 0; n < 3; n++)
            x[n] = _mm512_mask_mov_epi64(x[n], next, product[n]);
    }
}

/* R, R^2, ... R^count in memory, from the powers of r. */
INLINE void store_powers(powers *p, const __m512i r_powers[3], size_t count)
{
    __m512i x[3];

    for (int n = 0; n < 3; n++)
        x[n] = _mm512_permutexvar_epi64(set1(LANES - 1), r_powers[n]); /* r^8 in each lane */
    raise(x, count);
    const factors y = make_factors(x);
#pragma GCC unroll 5
    for (int i = 0; i < 5; i++)
        _mm512_store_si512(p->f[i], y.f[i]);
    chapoly_wipe(x, sizeof x);
}

/* ---- In and out. ---- */

/*
 * Eight blocks, the lower and the upper four of which a vector holds; lane i becomes block block_of[i].
 * ensures   as split
 */
INLINE void split_group(__m512i m[3], __m512i first, __m512i second)
{
    split(m, _mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
}

/*
 * Eight blocks with 2^128 added.
 * ensures   m[0], m[1] < 2^44, m[2] < 2^41
 */
INLINE void load_group(__m512i m[3], const uint8_t *message)
{
    split_group(m, _mm512_loadu_si512(message), _mm512_loadu_si512(message + 64));
    m[2] = _mm512_or_si512(m[2], set1(UINT64_C(1) << 40));
}

/*
 * The group of which the first `missing` < 8 blocks are not there, and count as 0; h is added to the first that is.
 * requires  h[2] <= 4
 * ensures   x[0], x[1] < 2^45, x[2] < 2^41 + 2^42.4
 */
INLINE void load_first_group(__m512i x[3], const uint64_t h[3], const uint8_t *message, unsigned missing)
{
    const uint64_t limb[3] = {h[0] & MASK44, (h[0] >> 44 | h[1] << 20) & MASK44, h[1] >> 24 | h[2] << 40}; /* < 2^42.4 */
    const __m512i block = _mm512_load_si512(block_of);
    const __mmask8 there = _mm512_cmpge_epu64_mask(block, set1(missing));
    const __mmask8 begin = _mm512_cmpeq_epu64_mask(block, set1(missing));
    const unsigned words = 0xffffu << 2 * missing; /* of 64 bits; masked loads touch no others */
    const uint8_t *const group = (const uint8_t *)((uintptr_t)message - 16 * missing);

    split_group(x, _mm512_maskz_loadu_epi64((__mmask8)words, group),
                _mm512_maskz_loadu_epi64((__mmask8)(words >> 8), group + 64));
    x[2] = _mm512_mask_or_epi64(x[2], there, x[2], set1(UINT64_C(1) << 40));
    for (int n = 0; n < 3; n++)
        x[n] = _mm512_mask_add_epi64(x[n], begin, x[n], set1(limb[n]));
}

/*
 * h = the sum of all lanes.
 * requires  x[0], x[1], x[2] < 2^57
 * ensures   h[2] <= 4
 */
INLINE void join(uint64_t h[3], const __m512i x[3])
{
    uint64_t d[3], over;

    for (int n = 0; n < 3; n++)
        d[n] = (uint64_t)_mm512_reduce_add_epi64(x[n]); /* < 2^60 */
    d[1] += d[0] >> 44; /* < 2^60 + 2^16 */
    d[2] += d[1] >> 44; /* < 2^60 + 2^17 */
    over = d[2] >> 42;  /* < 2^18 + 1 */
    d[0] = (d[0] & MASK44) + 5 * over; /* < 2^44 + 2^21 */
    d[1] = (d[1] & MASK44) + (d[0] >> 44); /* <= 2^44 */
    d[2] = (d[2] & MASK42) + (d[1] >> 44); /* <= 2^42 */
    d[0] &= MASK44, d[1] &= MASK44;
    h[0] = d[0] | d[1] << 44;
    h[1] = d[1] >> 20 | d[2] << 24;
    h[2] = d[2] >> 40;
}

AVX512 void chapoly_poly1305_blocks_avx512(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                           uint64_t top)
{
    powers of_R;
    __m512i r_powers[3], x[3];

    if (blocks < CROSSOVER || top == 0) {
        chapoly_poly1305_blocks_portable(h, r, message, blocks, top);
        return;
    }

    const unsigned missing = -blocks % LANES;
    size_t groups = (blocks + missing) / LANES - 1; /* after the first */
    load_first_group(x, h, message, missing);
    message += 16 * (LANES - missing);

    r_powers[0] = set1(r[0] & MASK44); /* clamped, so limb 2 < 2^36 */
    r_powers[1] = set1((r[0] >> 44 | r[1] << 20) & MASK44);
    r_powers[2] = set1(r[1] >> 24);
    raise(r_powers, LANES);
    store_powers(&of_R, r_powers, groups < STEPS ? groups : STEPS);

    while (groups > 0) {
        const size_t steps = groups < STEPS ? groups : STEPS;
        sums d = no_sums();
        __m512i m[3];
        factors y;

#pragma GCC unroll 1
        for (size_t k = steps - 1; k > 0; k--, message += 16 * LANES) {
            load_group(m, message);
            y = load_factors(&of_R, k - 1);
            multiply_add(&d, m, &y);
        }
        y = load_factors(&of_R, steps - 1);
        multiply_add(&d, x, &y); /* last, as only this waits for the carry before */
        columns(x, &d);
        load_group(m, message);
        message += 16 * LANES;
        for (int n = 0; n < 3; n++)
            x[n] = _mm512_add_epi64(x[n], m[n]);
        carry(x);
        groups -= steps;
    }

    /* Block i of the group is to be multiplied by r^(8 - i), which is in lane 7 - i. */
    const __m512i lane = _mm512_sub_epi64(set1(LANES - 1), _mm512_load_si512(block_of));
    for (int n = 0; n < 3; n++)
        r_powers[n] = _mm512_permutexvar_epi64(lane, r_powers[n]);
    const factors y = make_factors(r_powers);
    sums d = no_sums();
    multiply_add(&d, x, &y);
    columns(x, &d);
    join(h, x);
    chapoly_wipe(&of_R, sizeof of_R);
    chapoly_wipe(r_powers, sizeof r_powers);
}

#endif
