/*
 * poly1305_avx512.h: Poly1305 (RFC 8439 2.5.1) with AVX-512 (F, BW, VL, IFMA, VBMI2).
 *
 * Eight accumulators in the eight 64-bit lanes of a vector, with the arithmetic of poly1305_ifma.h. Each takes every
 * eighth block, and is multiplied by R = r^8 per block; at the end lane i, of the eight blocks that come last the i-th,
 * is multiplied by r^(8 - i) and all are added. Up to STEPS groups of eight blocks are taken with one carry for all of
 * them:
 *     h = h R^n + m0 R^(n - 1) + ... + m(n-2) R + m(n-1).
 * A message that does not fill its groups is taken as if blocks of value 0 stood before it, the accumulator being added
 * to the first block that is there.
 */
#ifndef CHAPOLY_POLY1305_AVX512_H
#define CHAPOLY_POLY1305_AVX512_H

#include "poly1305_ifma.h"

/* Groups per carry, and so the number of powers of R; raise() makes as many as there are lanes. */
enum { STEPS = 8 };

/* Where load_group puts each block: lane i holds block block_of[i] of the group. */
static const uint64_t block_of[MAC_LANES] __attribute__((aligned(64))) = {0, 4, 1, 5, 2, 6, 3, 7};

/* The reverse: block i is in lane lane_of[i]. */
static const uint64_t lane_of[MAC_LANES] __attribute__((aligned(64))) = {0, 2, 4, 6, 1, 3, 5, 7};

static const uint64_t mac_lane_numbers[MAC_LANES] __attribute__((aligned(64))) = {0, 1, 2, 3, 4, 5, 6, 7};

/* The factors of R, R^2, ..., R^STEPS in memory, f[i][k] of R^(k+1). */
typedef struct {
    uint64_t f[5][STEPS] __attribute__((aligned(64)));
} powers;

MAC_INLINE factors load_factors(const powers *p, size_t k)
{
    return (factors){{set1(p->f[0][k]), set1(p->f[1][k]), set1(p->f[2][k]), set1(p->f[3][k]), set1(p->f[4][k])}};
}

/*
 * One step of raise(): lanes 0 to have - 1 hold x, x^2, ... x^have and the others repeat them; then the same is so with
 * twice as many.
 * requires, ensures: the limbs as those of y in multiply_add
 */
MAC_INLINE void raise_once(__m512i x[3], size_t have)
{
    const __mmask8 next = _mm512_test_epi64_mask(_mm512_load_si512(mac_lane_numbers), set1(have));
    __m512i last[3], product[3];

    for (int n = 0; n < 3; n++) {
        last[n] = _mm512_permutexvar_epi64(set1(have - 1), x[n]);
        product[n] = x[n];
    }
    multiply(product, last);
    for (int n = 0; n < 3; n++)
        x[n] = _mm512_mask_mov_epi64(x[n], next, product[n]);
}

/*
 * Lane i of x becomes x^(i+1) for i < count <= MAC_LANES, if all lanes are the same; the other lanes are some power
 * too.
 * requires, ensures: the limbs as those of y in multiply_add
 */
MAC_INLINE void raise(__m512i x[3], size_t count)
{
#pragma GCC unroll 1
    for (size_t have = 1; have < count; have *= 2)
        raise_once(x, have);
}

/* r, from its two clamped words, in each lane. */
MAC_INLINE void spread(__m512i x[3], const uint64_t r[2])
{
    x[0] = set1(r[0] & MASK44); /* clamped, so limb 2 < 2^36 */
    x[1] = set1((r[0] >> 44 | r[1] << 20) & MASK44);
    x[2] = set1(r[1] >> 24);
}

/* x = what its last lane holds, in each lane. */
MAC_INLINE void spread_last(__m512i x[3])
{
    for (int n = 0; n < 3; n++)
        x[n] = _mm512_permutexvar_epi64(set1(MAC_LANES - 1), x[n]);
}

/* The powers of R in memory, from lane i of x, which is R^(i+1). */
MAC_INLINE void store_powers(powers *p, const __m512i x[3])
{
    const factors y = make_factors(x);

#pragma GCC unroll 5
    for (int i = 0; i < 5; i++)
        _mm512_store_si512(p->f[i], y.f[i]);
}

/* ---- In and out. ---- */

/*
 * Eight blocks, the lower and the upper four of which a vector holds; lane i becomes block block_of[i].
 * ensures   as split
 */
MAC_INLINE void split_group(__m512i m[3], __m512i first, __m512i second)
{
    split(m, _mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
}

/*
 * Eight blocks with 2^128 added.
 * ensures   m[0], m[1] < 2^44, m[2] < 2^41
 */
MAC_INLINE void load_group(__m512i m[3], const uint8_t *message)
{
    split_group(m, _mm512_loadu_si512(message), _mm512_loadu_si512(message + 64));
    m[2] = _mm512_or_si512(m[2], set1(UINT64_C(1) << 40));
}

/* h, as limbs, is added to lane `lane`. requires h[2] <= 4; ensures x[2] grows by less than 2^42.4 */
MAC_INLINE void add_to_lane(__m512i x[3], const uint64_t h[3], __mmask8 lane)
{
    const uint64_t limb[3] = {h[0] & MASK44, (h[0] >> 44 | h[1] << 20) & MASK44, h[1] >> 24 | h[2] << 40};

    for (int n = 0; n < 3; n++)
        x[n] = _mm512_mask_add_epi64(x[n], lane, x[n], set1(limb[n]));
}

/* The blocks of a group as load_group puts them, `missing` places further on; zeros before them. */
MAC_INLINE void move_blocks(__m512i m[3], unsigned missing)
{
    const __m512i block = _mm512_load_si512(block_of), lane_of_block = _mm512_load_si512(lane_of);
    const __mmask8 there = _mm512_cmpge_epu64_mask(block, set1(missing));
    const __m512i from = _mm512_permutexvar_epi64(_mm512_sub_epi64(block, set1(missing)), lane_of_block);

    for (int n = 0; n < 3; n++)
        m[n] = _mm512_maskz_permutexvar_epi64(there, from, m[n]);
}

/*
 * The group of which the first `missing` < 8 blocks are not there, and count as 0; h is added to the first that is.
 * requires  h[2] <= 4; message has the blocks of a whole group
 * ensures   x[0], x[1] < 2^45, x[2] < 2^41 + 2^42.4
 */
MAC_INLINE void load_first_group(__m512i x[3], const uint64_t h[3], const uint8_t *message, unsigned missing)
{
    load_group(x, message);
    move_blocks(x, missing);
    add_to_lane(x, h, _mm512_cmpeq_epu64_mask(_mm512_load_si512(block_of), set1(missing)));
}

/*
 * h = the sum of all lanes.
 * requires  x[0], x[1], x[2] < 2^57
 * ensures   h[2] <= 4
 */
MAC_INLINE void join(uint64_t h[3], const __m512i x[3])
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

/*
 * x R^groups + ..., the groups from `message` on, the last of which is `last` instead if that is not NULL; with a carry
 * for every `steps` groups, which is how many powers of R there are.
 * requires, ensures: x[0], x[1] < 2^45 + 2^18, x[2] < 2^42.9
 */
MAC_INLINE void add_groups(__m512i x[3], const powers *of_R, size_t most, const uint8_t *message, size_t groups,
                           const __m512i *last)
{
    while (groups > 0) {
        const size_t steps = groups < most ? groups : most;
        sums d = no_sums();
        __m512i m[3];
        factors y;

#pragma GCC unroll 1
        for (size_t k = steps - 1; k > 0; k--, message += 16 * MAC_LANES) {
            load_group(m, message);
            y = load_factors(of_R, k - 1);
            multiply_add(&d, m, &y);
        }
        y = load_factors(of_R, steps - 1);
        multiply_add(&d, x, &y); /* last, as only this waits for the carry before */
        columns(x, &d);
        groups -= steps;
        if (groups > 0 || last == NULL) {
            load_group(m, message);
            message += 16 * MAC_LANES;
        } else {
            for (int n = 0; n < 3; n++)
                m[n] = last[n];
        }
        for (int n = 0; n < 3; n++)
            x[n] = _mm512_add_epi64(x[n], m[n]);
        carry(x);
    }
}

/* h = what the lanes of x stand for, from r^(i+1) in lane i. ensures h[2] <= 4 */
MAC_INLINE void close_lanes(uint64_t h[3], const __m512i x[3], const __m512i r_powers[3])
{
    /* Block i of the group is to be multiplied by r^(8 - i), which is in lane 7 - i. */
    const __m512i lane = _mm512_sub_epi64(set1(MAC_LANES - 1), _mm512_load_si512(block_of));
    __m512i power[3], sum[3];
    sums d = no_sums();

    for (int n = 0; n < 3; n++)
        power[n] = _mm512_permutexvar_epi64(lane, r_powers[n]);
    const factors y = make_factors(power);
    multiply_add(&d, x, &y);
    columns(sum, &d);
    join(h, sum);
}

#endif
