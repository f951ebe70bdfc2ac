/*
 * Poly1305 blocks (RFC 8439 2.5.1) for AArch64 with Advanced SIMD.
 *
 * Numbers mod p = 2^130 - 5 are five limbs of 26 bits, x0 + 2^26 x1 + ... + 2^104 x4. Two accumulators run side by side
 * in the two lanes of a vector: lane 0 takes the even blocks, lane 1 the odd ones, and each is multiplied by R = r^2
 * from one pair of blocks to the next. Four pairs m0..m3 are taken at a time, with one carry for all of them:
 *     h = h R^4 + m0 R^3 + m1 R^2 + m2 R + m3.
 * The last pair still lacks its own factors, so at the end the result is lane 0 * r^2 + lane 1 * r.
 * The powers, the blocks before the first pair and the end are computed in general registers.
 */
#include "../kernel.h"

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)

#include <arm_neon.h>

#include "../bytes.h"
#include "../limbs26.h"
#include "poly1305_a64.h"

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_neon;

/* Moving multiplications apart before registers are allocated costs gcc dozens of copies. */
#ifndef __clang__
#pragma GCC optimize("no-schedule-insns")
#endif

#define INLINE static inline __attribute__((always_inline))

enum { PAIRS = 4 }; /* of blocks per carry, and so the number of powers of R */

/*
 * The fewest blocks for which setting up the powers is worth it, by the models of
 *     bench/neon_counts.py --algorithms poly1305 --sizes 256 272 288 320 384 400 416 432 464 512 --define CROSSOVER=10
 * Neoverse N1 gains from 18 blocks on, but less than 3 % up to 25; V2 and apple-m1 lose up to 13 % there.
 */
#ifndef CROSSOVER
#define CROSSOVER 26
#endif

/* The factors of MULTIPLY below: row k is for R^(k+1). */
struct powers {
    uint32_t p[PAIRS][4]; /* limbs 0-3 */
    uint32_t q[PAIRS][4]; /* limb 4, then five times limbs 1-3 */
    uint32_t f[PAIRS];    /* five times limb 4 */
};

/* R = r^2, R^2, ... */
static void raise(struct powers *powers, const uint64_t r[2])
{
    static const uint8_t zero[32];
    uint64_t power[3] = {r[0], r[1], 0};
    uint32_t limb[5];

    for (int k = 0; k < PAIRS; k++) {
        chapoly_poly1305_a64(power, r, zero, k == 0 ? 1 : 2, 0); /* (power + 0) * r, once or twice */
        chapoly_split(limb, power);
        powers->p[k][0] = limb[0];
        powers->q[k][0] = limb[4];
        for (int i = 1; i < 4; i++) {
            powers->p[k][i] = limb[i];
            powers->q[k][i] = 5 * limb[i];
        }
        powers->f[k] = 5 * limb[4];
    }
    chapoly_wipe(power, sizeof power);
    chapoly_wipe(limb, sizeof limb);
}

/*
 * d += x * R^(k+1) in both lanes, where `mul` is vmlal_laneq_u32, or vmlal_high_laneq_u32 for the upper half of x:
 * the sum of x_i p_j over i + j = n, and of x_i 5 p_j over i + j = n + 5, since 2^130 = 5 (mod p). Three vectors hold
 * the factors: p limbs 0-3; q limb 4, then five times limbs 1-3; in lane k of f five times limb 4.
 *
 * requires  x[i] < 2^27; limbs 0-3 of R^(k+1) < 2^26, limb 4 < 1.25 * 2^26
 * ensures   d[n] grows by less than 2^27 * 1.25 * (1 + 4 * 5) * 2^26 = 26.25 * 2^53 < 2^57.8
 */
#define MULTIPLY(d, mul, x, p, q, f, k)                                                                      \
    d[0] = mul(d[0], x[0], p, 0), d[0] = mul(d[0], x[1], f, k), d[0] = mul(d[0], x[2], q, 3),                \
        d[0] = mul(d[0], x[3], q, 2), d[0] = mul(d[0], x[4], q, 1),                                          \
    d[1] = mul(d[1], x[0], p, 1), d[1] = mul(d[1], x[1], p, 0), d[1] = mul(d[1], x[2], f, k),                \
        d[1] = mul(d[1], x[3], q, 3), d[1] = mul(d[1], x[4], q, 2),                                          \
    d[2] = mul(d[2], x[0], p, 2), d[2] = mul(d[2], x[1], p, 1), d[2] = mul(d[2], x[2], p, 0),                \
        d[2] = mul(d[2], x[3], f, k), d[2] = mul(d[2], x[4], q, 3),                                          \
    d[3] = mul(d[3], x[0], p, 3), d[3] = mul(d[3], x[1], p, 2), d[3] = mul(d[3], x[2], p, 1),                \
        d[3] = mul(d[3], x[3], p, 0), d[3] = mul(d[3], x[4], f, k),                                          \
    d[4] = mul(d[4], x[0], q, 0), d[4] = mul(d[4], x[1], p, 3), d[4] = mul(d[4], x[2], p, 2),                \
        d[4] = mul(d[4], x[3], p, 1), d[4] = mul(d[4], x[4], p, 0)

/*
 * Four blocks as limbs, one block per lane, with 2^128 added.
 * ensures   m[0..3] < 2^26, m[4] < 2^25
 */
INLINE void load4(uint32x4_t m[5], const uint8_t *message)
{
    const uint32x4_t mask = vdupq_n_u32(LIMB_MASK);
    const uint32x4x4_t w = vld4q_u32((const void *)message); /* word i of each block */

    m[0] = vandq_u32(w.val[0], mask);
    m[1] = vandq_u32(vsliq_n_u32(vshrq_n_u32(w.val[0], 26), w.val[1], 6), mask);
    m[2] = vandq_u32(vsliq_n_u32(vshrq_n_u32(w.val[1], 20), w.val[2], 12), mask);
    m[3] = vandq_u32(vsliq_n_u32(vshrq_n_u32(w.val[2], 14), w.val[3], 18), mask);
    m[4] = vorrq_u32(vshrq_n_u32(w.val[3], 8), vdupq_n_u32(1u << 24));
}

/*
 * requires  d[i] < 2^60
 * ensures   h[0], h[2], h[3] < 2^26; h[1] < 2^26 + 2^11; h[4] < 2^26 + 2^10; same value mod p
 */
INLINE void carry(uint32x2_t h[5], uint64x2_t d[5])
{
    const uint64x2_t mask = vdupq_n_u64(LIMB_MASK);
    uint64x2_t q;

    d[1] = vsraq_n_u64(d[1], d[0], 26); /* d[1] < 2^60 + 2^34 */
    d[0] = vandq_u64(d[0], mask);
    d[4] = vsraq_n_u64(d[4], d[3], 26); /* d[4] < 2^60 + 2^34 */
    d[3] = vandq_u64(d[3], mask);
    d[2] = vsraq_n_u64(d[2], d[1], 26); /* d[2] < 2^60 + 2^35 */
    d[1] = vandq_u64(d[1], mask);
    q = vshrq_n_u64(d[4], 26); /* q < 2^34 + 2^8; d[0] < 2^26 + 5 q < 2^37 */
    d[4] = vandq_u64(d[4], mask);
    d[0] = vaddq_u64(vaddq_u64(d[0], q), vshlq_n_u64(q, 2));
    d[3] = vsraq_n_u64(d[3], d[2], 26); /* d[3] < 2^26 + 2^35 */
    d[2] = vandq_u64(d[2], mask);
    d[1] = vsraq_n_u64(d[1], d[0], 26); /* d[1] < 2^26 + 2^11 */
    d[0] = vandq_u64(d[0], mask);
    d[4] = vsraq_n_u64(d[4], d[3], 26); /* d[4] < 2^26 + 2^10 */
    d[3] = vandq_u64(d[3], mask);
    for (int i = 0; i < 5; i++)
        h[i] = vmovn_u64(d[i]);
}

void chapoly_poly1305_blocks_neon(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                  uint64_t top)
{
    static const uint8_t zero[16];
    struct powers powers;
    uint32_t even[5], odd[5];
    uint32x2_t a[5];

    if (blocks < CROSSOVER || top == 0) {
        chapoly_poly1305_a64(h, r, message, blocks, top);
        return;
    }
    raise(&powers, r);

    /* First what does not fill a group, then two blocks to start the lanes with. */
    const size_t first = (blocks - 2) % (2 * PAIRS);
    chapoly_poly1305_a64(h, r, message, first, 1);
    message += 16 * first;
    const uint64_t block0[3] = {chapoly_load64(message), chapoly_load64(message + 8), 1};
    const uint64_t block1[3] = {chapoly_load64(message + 16), chapoly_load64(message + 24), 1};
    chapoly_split(even, h);
    chapoly_split(odd, block0);
    for (int i = 0; i < 5; i++)
        even[i] += odd[i]; /* < 2^27; limb 4 < (2^26 + 2^24) + 2^25 */
    chapoly_split(odd, block1);
    for (int i = 0; i < 5; i++)
        a[i] = vcreate_u32(even[i] | (uint64_t)odd[i] << 32);
    message += 32;

    const uint32x4_t p1 = vld1q_u32(powers.p[0]), q1 = vld1q_u32(powers.q[0]);
    const uint32x4_t p2 = vld1q_u32(powers.p[1]), q2 = vld1q_u32(powers.q[1]);
    const uint32x4_t p3 = vld1q_u32(powers.p[2]), q3 = vld1q_u32(powers.q[2]);
    const uint32x4_t p4 = vld1q_u32(powers.p[3]), q4 = vld1q_u32(powers.q[3]);
    const uint32x4_t f = vld1q_u32(powers.f);
    for (size_t n = (blocks - first - 2) / (2 * PAIRS); n > 0; n--, message += 32 * PAIRS) {
        uint64x2_t d[5];
        uint32x4_t m[5];
        uint32x2_t low[5];

        load4(m, message + 64);
        for (int i = 0; i < 5; i++) {
            low[i] = vget_low_u32(m[i]);
            d[i] = vmovl_high_u32(m[i]);
        }
        MULTIPLY(d, vmlal_laneq_u32, low, p1, q1, f, 0);
        load4(m, message);
        for (int i = 0; i < 5; i++)
            low[i] = vget_low_u32(m[i]);
        MULTIPLY(d, vmlal_laneq_u32, low, p3, q3, f, 2);
        MULTIPLY(d, vmlal_high_laneq_u32, m, p2, q2, f, 1);
        MULTIPLY(d, vmlal_laneq_u32, a, p4, q4, f, 3); /* last, as only this waits for the carry before */
        carry(a, d); /* d[i] < 2^26 + 4 * 26.25 * 2^53 < 2^60 */
    }

    /* h = (lane 0 * r + lane 1) * r */
    for (int i = 0; i < 5; i++) {
        even[i] = vget_lane_u32(a[i], 0);
        odd[i] = vget_lane_u32(a[i], 1);
    }
    h[0] = h[1] = h[2] = 0;
    chapoly_add_limbs(h, even);
    chapoly_poly1305_a64(h, r, zero, 1, 0);
    chapoly_add_limbs(h, odd);
    chapoly_poly1305_a64(h, r, zero, 1, 0);

    chapoly_wipe(&powers, sizeof powers);
    chapoly_wipe(even, sizeof even);
    chapoly_wipe(odd, sizeof odd);
}

#endif
