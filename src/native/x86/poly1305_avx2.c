/*
 * Poly1305 blocks (RFC 8439 2.5.1) for x86-64 with AVX2.
 *
 * Four accumulators in the four 64-bit lanes of a vector, each of five limbs of 26 bits. Each takes every fourth block,
 * and is multiplied by R = r^4 per block; at the end the lanes are joined as (((h0 r + h1) r + h2) r + h3) r. Sixteen
 * blocks (four per lane) are taken at a time with one carry for all of them:
 *     h = h R^4 + m0 R^3 + m1 R^2 + m2 R + m3.
 * The powers, the first few blocks and the end are done in general registers.
 */
#include "../kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include "../bytes.h"
#include "../limbs26.h"

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_avx2, chapoly_poly1305_blocks_sse2;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline)) AVX2

enum {
    LANES = 4,
    STEPS = 4, /* blocks of a lane per carry, and so the number of powers of R */
    GROUP = LANES * STEPS,
};

/*
 * The fewest blocks for which the powers are worth their price: bench/poly1305_crossover.py on AMD Zen 3, gcc 12.2
 * and clang 19.1.
 */
#ifndef CROSSOVER
#define CROSSOVER 88
#endif

/* The factors of MULTIPLY below, each in all four lanes: f[i] is limb i, f[4 + i] five times limb i. */
typedef struct {
    __m256i f[9];
} power;

/* powers[k] = R^(k+1), R = r^4 */
static AVX2 void raise(power powers[STEPS], const uint64_t r[2])
{
    static const uint8_t zeros[16 * LANES];
    uint64_t h[3] = {r[0], r[1], 0};
    uint32_t limb[5];

    for (int k = 0; k < STEPS; k++) {
        /* (h + 0) * r, four times, or three for the first */
        chapoly_poly1305_blocks_sse2(h, r, zeros, k == 0 ? LANES - 1 : LANES, 0);
        chapoly_split(limb, h);
        for (int i = 0; i < 5; i++)
            _mm256_store_si256(&powers[k].f[i], _mm256_set1_epi64x(limb[i]));
        for (int i = 1; i < 5; i++)
            _mm256_store_si256(&powers[k].f[4 + i], _mm256_set1_epi64x(5 * limb[i]));
    }
    chapoly_wipe(h, sizeof h);
    chapoly_wipe(limb, sizeof limb);
}

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/*
 * d += x * R^k: d_n grows by the sum of x_i p_j over i + j = n, and of x_i 5 p_j over i + j = n + 5, since 2^130 = 5
 * (mod p).
 *
 * requires  x[i] < 2^27; limbs 0-3 of the power < 2^26, limb 4 < 1.25 * 2^26
 * ensures   d[n] grows by less than 2^27 * 1.25 * (1 + 4 * 5) * 2^26 = 26.25 * 2^53 < 2^57.8
 */
INLINE void multiply_add(__m256i d[5], const __m256i x[5], const power *p)
{
#pragma GCC unroll 5
    for (int i = 0; i < 5; i++) {
#pragma GCC unroll 5
        for (int n = 0; n < 5; n++)
            d[n] = _mm256_add_epi64(d[n], _mm256_mul_epu32(x[i], p->f[n >= i ? n - i : 9 + n - i]));
        /* Sums now, and factors from memory: gcc would make all products first, and spill them. */
        __asm__("" : "+r"(p), "+x"(d[0]), "+x"(d[1]), "+x"(d[2]), "+x"(d[3]), "+x"(d[4]));
    }
}

/*
 * Four blocks as limbs with 2^128 added; lanes are blocks 0, 2, 1, 3.
 * ensures   m[0..3] < 2^26, m[4] < 2^25
 */
INLINE void load_blocks(__m256i m[5], const uint8_t *message)
{
    const __m256i mask = _mm256_set1_epi64x(LIMB_MASK), a = load(message), b = load(message + 32);
    const __m256i lo = _mm256_unpacklo_epi64(a, b), hi = _mm256_unpackhi_epi64(a, b);

    m[0] = _mm256_and_si256(lo, mask);
    m[1] = _mm256_and_si256(_mm256_srli_epi64(lo, 26), mask);
    m[2] = _mm256_and_si256(_mm256_or_si256(_mm256_srli_epi64(lo, 52), _mm256_slli_epi64(hi, 12)), mask);
    m[3] = _mm256_and_si256(_mm256_srli_epi64(hi, 14), mask);
    m[4] = _mm256_or_si256(_mm256_srli_epi64(hi, 40), _mm256_set1_epi64x(1 << 24));
}

/*
 * requires  d[i] < 2^60
 * ensures   d[0], d[2], d[3] < 2^26; d[1] < 2^26 + 2^11; d[4] < 2^26 + 2^10; same value mod p
 */
INLINE void carry(__m256i d[5])
{
    const __m256i mask = _mm256_set1_epi64x(LIMB_MASK);
    __m256i q;

#define CARRY(to, from)                                                                                              \
    d[to] = _mm256_add_epi64(d[to], _mm256_srli_epi64(d[from], 26)), d[from] = _mm256_and_si256(d[from], mask)
    CARRY(1, 0); /* d[1] < 2^60 + 2^34 */
    CARRY(4, 3); /* d[4] < 2^60 + 2^34 */
    CARRY(2, 1); /* d[2] < 2^60 + 2^35 */
    q = _mm256_srli_epi64(d[4], 26); /* q < 2^34 + 2^8 */
    d[4] = _mm256_and_si256(d[4], mask);
    d[0] = _mm256_add_epi64(d[0], _mm256_add_epi64(q, _mm256_slli_epi64(q, 2))); /* d[0] < 2^26 + 5 q < 2^37 */
    CARRY(3, 2); /* d[3] < 2^26 + 2^35 */
    CARRY(1, 0); /* d[1] < 2^26 + 2^11 */
    CARRY(4, 3); /* d[4] < 2^26 + 2^10 */
#undef CARRY
}

AVX2 void chapoly_poly1305_blocks_avx2(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                       uint64_t top)
{
    static const uint8_t zeros[16];
    static const int lane_of[LANES] = {0, 2, 1, 3}; /* where load_blocks puts each block */
    power powers[STEPS];
    uint64_t lanes[5][LANES];
    uint32_t limb[5];
    __m256i a[5];

    if (blocks < CROSSOVER || top == 0) {
        chapoly_poly1305_blocks_sse2(h, r, message, blocks, top);
        return;
    }
    raise(powers, r);

    /* First what does not fill a group; then one block for each lane to start with, h with the first. */
    const size_t first = (blocks - LANES) % GROUP;
    chapoly_poly1305_blocks_sse2(h, r, message, first, 1);
    message += 16 * first;
    load_blocks(a, message);
    message += 16 * LANES;
    chapoly_split(limb, h);
    for (int i = 0; i < 5; i++) /* a[0..3] < 2^27; a[4] < 2^25 + (2^26 + 2^24) < 2^27 */
        a[i] = _mm256_add_epi64(a[i], _mm256_setr_epi64x(limb[i], 0, 0, 0));

    for (size_t n = (blocks - first - LANES) / GROUP; n > 0; n--, message += 16 * GROUP) {
        __m256i d[5], m[5];

        load_blocks(d, message + 16 * LANES * (STEPS - 1));
#pragma GCC unroll 3
        for (int k = STEPS - 2; k >= 0; k--) {
            load_blocks(m, message + 16 * LANES * k);
            multiply_add(d, m, &powers[STEPS - 2 - k]);
        }
        multiply_add(d, a, &powers[STEPS - 1]); /* last, as only this waits for the carry before */
        carry(d); /* d[i] < 2^26 + 4 * 26.25 * 2^53 < 2^60 */
        for (int i = 0; i < 5; i++)
            a[i] = d[i];
    }

    for (int i = 0; i < 5; i++)
        _mm256_storeu_si256((void *)lanes[i], a[i]);
    h[0] = h[1] = h[2] = 0;
    for (int j = 0; j < LANES; j++) {
        for (int i = 0; i < 5; i++)
            limb[i] = (uint32_t)lanes[i][lane_of[j]];
        chapoly_add_limbs(h, limb);
        chapoly_poly1305_blocks_sse2(h, r, zeros, 1, 0);
    }
    chapoly_wipe(powers, sizeof powers);
    chapoly_wipe(lanes, sizeof lanes);
    chapoly_wipe(limb, sizeof limb);
}

#endif
