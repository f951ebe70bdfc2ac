/*
 * poly1305_ifma.h: arithmetic modulo p = 2^130 - 5 (RFC 8439 2.5) in each of the eight 64-bit lanes of a vector, with
 * limbs of 44, 44 and 42 bits, for IFMA multiplies 52 by 52 bits and adds the lower or the upper 52 bits of the
 * product. For the files whose kernels have the instructions.
 */
#ifndef CHAPOLY_POLY1305_IFMA_H
#define CHAPOLY_POLY1305_IFMA_H

#define IFMA __attribute__((target("avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi2")))
#define MAC_INLINE static inline __attribute__((always_inline)) IFMA

enum { MAC_LANES = 8 };
#define MASK44 ((UINT64_C(1) << 44) - 1)
#define MASK42 ((UINT64_C(1) << 42) - 1)

MAC_INLINE __m512i set1(uint64_t word)
{
    return _mm512_set1_epi64((long long)word);
}

/* Sums of lower and upper halves of products, for each column; in two sets, for shorter chains of additions. */
typedef struct {
    __m512i lo[2][3], hi[2][3];
} sums;

/* The factors of a multiplication: limbs 0, 1, 2, and 20 times limbs 1 and 2, in each lane. */
typedef struct {
    __m512i f[5];
} factors;

/* requires  x[i] < 2^47 */
MAC_INLINE factors make_factors(const __m512i x[3])
{
    const __m512i s1 = _mm512_add_epi64(_mm512_slli_epi64(x[1], 4), _mm512_slli_epi64(x[1], 2));
    const __m512i s2 = _mm512_add_epi64(_mm512_slli_epi64(x[2], 4), _mm512_slli_epi64(x[2], 2));

    return (factors){{x[0], x[1], x[2], s1, s2}};
}

MAC_INLINE sums no_sums(void)
{
    const __m512i zero = _mm512_setzero_si512();

    return (sums){{{zero, zero, zero}, {zero, zero, zero}}, {{zero, zero, zero}, {zero, zero, zero}}};
}

/*
 * d += x * y: column n, of weight 2^(44 n), grows by the sum of x_i y_j over i + j = n, and of x_i 20 y_j over
 * i + j = n + 3, since 2^132 = 4 * 2^130 = 20 (mod p). Both sets together hold the column.
 *
 * requires  x[0], x[1] < 2^45 + 2^18, x[2] < 2^42.9; y[0], y[1] < 2^44 + 2^18, y[2] < 2^42 + 2^13, so the others
 *           < 2^48.4, 2^46.4
 * ensures   each column's lo grows by less than 3 * 2^52; hi[0] by less than 2^41, hi[1] by less than 2^39, hi[2] by
 *           less than 1.5 * 2^37, or 1.4 * 2^36 if x is a block: x[0], x[1] < 2^44, x[2] < 2^41
 */
MAC_INLINE void multiply_add(sums *d, const __m512i x[3], const factors *y)
{
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
#pragma GCC unroll 3
        for (int n = 0; n < 3; n++) {
            const __m512i factor = y->f[n >= i ? n - i : 5 + n - i];
            d->lo[i & 1][n] = _mm512_madd52lo_epu64(d->lo[i & 1][n], x[i], factor);
            d->hi[i & 1][n] = _mm512_madd52hi_epu64(d->hi[i & 1][n], x[i], factor);
        }
    }
}

/*
 * Columns of 64 bits: what weighs 2^52 in one weighs 2^8 in the next, and in the last 2^10 * 2^130, or 5 * 2^10 in the
 * first.
 * requires  lo of each column < 25 * 2^52, hi[0] < 2^44, hi[1] < 2^42, hi[2] < 1.6 * 2^39, so that 5 * 2^10 times it
 *           is less than 2^52: the sum of one product and of those of seven blocks is less than 12.8 * 2^36
 * ensures   x[0], x[1], x[2] < 2^57
 */
MAC_INLINE void columns(__m512i x[3], const sums *d)
{
    const __m512i hi0 = _mm512_add_epi64(d->hi[0][0], d->hi[1][0]), hi1 = _mm512_add_epi64(d->hi[0][1], d->hi[1][1]);
    const __m512i hi2 = _mm512_add_epi64(d->hi[0][2], d->hi[1][2]);

    x[0] = _mm512_madd52lo_epu64(_mm512_add_epi64(d->lo[0][0], d->lo[1][0]), hi2, set1(5 << 10));
    x[1] = _mm512_add_epi64(_mm512_add_epi64(d->lo[0][1], d->lo[1][1]), _mm512_slli_epi64(hi0, 8));
    x[2] = _mm512_add_epi64(_mm512_add_epi64(d->lo[0][2], d->lo[1][2]), _mm512_slli_epi64(hi1, 8));
}

/*
 * All limbs at the same time: what comes next waits for this.
 * requires  x[0], x[1], x[2] < 2^57
 * ensures   x[0] < 2^44 + 2^18, x[1] < 2^44 + 2^13, x[2] < 2^42 + 2^13; same value mod p
 */
MAC_INLINE void carry(__m512i x[3])
{
    const __m512i mask = set1(MASK44);
    const __m512i over0 = _mm512_srli_epi64(x[0], 44), over1 = _mm512_srli_epi64(x[1], 44); /* < 2^13 */
    const __m512i over2 = _mm512_srli_epi64(x[2], 42);                                      /* < 2^15 */

    x[0] = _mm512_madd52lo_epu64(_mm512_and_si512(x[0], mask), over2, set1(5)); /* 2^130 = 5 (mod p) */
    x[1] = _mm512_add_epi64(_mm512_and_si512(x[1], mask), over0);
    x[2] = _mm512_add_epi64(_mm512_and_si512(x[2], set1(MASK42)), over1);
}

/* x *= y. requires, ensures: the limbs of x as those of y in multiply_add */
MAC_INLINE void multiply(__m512i x[3], const __m512i y[3])
{
    const factors f = make_factors(y);
    sums d = no_sums();

    multiply_add(&d, x, &f);
    columns(x, &d);
    carry(x);
}

/*
 * The lower and the upper halves of eight blocks as limbs, without 2^128.
 * ensures   m[0], m[1] < 2^44, m[2] < 2^40
 */
MAC_INLINE void split(__m512i m[3], __m512i lo, __m512i hi)
{
    m[0] = _mm512_and_si512(lo, set1(MASK44));
    m[1] = _mm512_and_si512(_mm512_shrdi_epi64(lo, hi, 44), set1(MASK44));
    m[2] = _mm512_srli_epi64(hi, 24);
}

#endif
