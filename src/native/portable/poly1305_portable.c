/*
 * Poly1305 blocks in portable C11: RFC 8439 2.5.1, for any byte order.
 *
 * With 128-bit products (gcc and clang on 64-bit machines) the accumulator stays in its 64-bit words; elsewhere, or
 * with CHAPOLY_LIMBS_26, it is split into five limbs of 26 bits (limbs26.h). Both use 2^130 = 5 (mod p), p = 2^130 - 5.
 */
#include "../bytes.h"
#include "../kernel.h"
#include "../limbs26.h"

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_portable;

#if defined(__SIZEOF_INT128__) && !defined(CHAPOLY_LIMBS_26)

__extension__ typedef unsigned __int128 uint128;

/*
 * With h = h0 + 2^64 h1 + 2^128 h2 and r = r0 + 2^64 r1, 4 | r1:
 *     h * r = h0 r0 + 2^64 (h0 r1 + h1 r0) + 2^128 (h1 r1 + h2 r0) + 2^192 h2 r1,
 * and 2^128 r1 = 2^130 (r1 / 4) = 5 r1 / 4 (mod p), which is s1 = r1 + r1 / 4.
 */
void chapoly_poly1305_blocks_portable(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                      uint64_t top)
{
    uint64_t h0 = h[0], h1 = h[1], h2 = h[2]; /* h2 <= 4 */
    const uint64_t r0 = r[0], r1 = r[1];      /* r0, r1 < 2^60 */
    const uint64_t s1 = r1 + (r1 >> 2);       /* s1 < 1.25 * 2^60 */

    for (; blocks > 0; blocks--, message += 16) {
        const uint64_t m0 = chapoly_load64(message), m1 = chapoly_load64(message + 8);
        uint64_t carry;

        /* h += block + top * 2^128; carries by comparison: gcc 12 makes faster code of it than of 128-bit sums */
        h0 += m0;
        carry = h0 < m0;
        h1 += carry;
        carry = h1 < carry;
        h1 += m1;
        carry += h1 < m1;
        h2 += carry + top; /* h2 <= 4 + 1 + 1 = 6 */

        /* h *= r */
        const uint128 d0 = (uint128)h0 * r0 + (uint128)h1 * s1;                                  /* < 2.25 * 2^124 */
        const uint128 d1 = (uint128)h0 * r1 + (uint128)h1 * r0 + h2 * s1 + (uint64_t)(d0 >> 64); /* < 2^125 + 2^64 */
        h0 = (uint64_t)d0;
        h1 = (uint64_t)d1;
        h2 = h2 * r0 + (uint64_t)(d1 >> 64); /* < 6 * 2^60 + 2^61 + 1 = 2^63 + 1 */

        /* fold what lies at 2^130 and above: h2 = 4 q + (h2 mod 4), and 2^130 q = 5 q < 2^63.33 */
        carry = (h2 >> 2) + (h2 & ~UINT64_C(3));
        h2 &= 3;
        h0 += carry;
        carry = h0 < carry;
        h1 += carry;
        h2 += h1 < carry; /* <= 4 */
    }
    h[0] = h0, h[1] = h1, h[2] = h2;
}

#else

/*
 * With limbs h_i, r_j of 26 bits: h * r = sum h_i r_j 2^(26 (i + j)), and for i + j >= 5 the factor 2^130 is 5 (mod p):
 * s_j = 5 r_j.
 */
void chapoly_poly1305_blocks_portable(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                      uint64_t top)
{
    uint32_t a[5], m[5], k[5];
    uint64_t words[3] = {r[0], r[1], 0};

    chapoly_split(a, h); /* a0..a3 < 2^26; a4 < 2^26 + 2^24, since h[2] <= 4 */
    chapoly_split(k, words); /* clamped: k0..k3 < 2^26, k4 < 2^20 */
    const uint64_t r0 = k[0], r1 = k[1], r2 = k[2], r3 = k[3], r4 = k[4];
    const uint64_t s1 = 5 * r1, s2 = 5 * r2, s3 = 5 * r3, s4 = 5 * r4; /* s1..s3 < 5 * 2^26, s4 < 5 * 2^20 */

    for (; blocks > 0; blocks--, message += 16) {
        words[0] = chapoly_load64(message), words[1] = chapoly_load64(message + 8), words[2] = top;
        chapoly_split(m, words); /* m0..m3 < 2^26, m4 < 2^25 */
        /* a0, a2..a4 < 2^27; a1 < 2^27 + 2^9 + 1 */
        for (int i = 0; i < 5; i++)
            a[i] += m[i];

        /* each sum < 5 * (2^27 + 2^9 + 1) * 5 * 2^26 < 2^58 */
        const uint64_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4];
        uint64_t d0 = a0 * r0 + a1 * s4 + a2 * s3 + a3 * s2 + a4 * s1;
        uint64_t d1 = a0 * r1 + a1 * r0 + a2 * s4 + a3 * s3 + a4 * s2;
        uint64_t d2 = a0 * r2 + a1 * r1 + a2 * r0 + a3 * s4 + a4 * s3;
        uint64_t d3 = a0 * r3 + a1 * r2 + a2 * r1 + a3 * r0 + a4 * s4;
        uint64_t d4 = a0 * r4 + a1 * r3 + a2 * r2 + a3 * r1 + a4 * r0;

        /* carries < 2^58 / 2^26 = 2^32, the last times 5 < 2^35 */
        d1 += d0 >> 26, a[0] = (uint32_t)d0 & LIMB_MASK;
        d2 += d1 >> 26, a[1] = (uint32_t)d1 & LIMB_MASK;
        d3 += d2 >> 26, a[2] = (uint32_t)d2 & LIMB_MASK;
        d4 += d3 >> 26, a[3] = (uint32_t)d3 & LIMB_MASK;
        d0 = a[0] + 5 * (d4 >> 26), a[4] = (uint32_t)d4 & LIMB_MASK;
        a[0] = (uint32_t)d0 & LIMB_MASK;
        a[1] += (uint32_t)(d0 >> 26); /* < 2^26 + 2^9 + 1; all others < 2^26 */
    }

    h[0] = h[1] = h[2] = 0;
    chapoly_add_limbs(h, a);

    chapoly_wipe(a, sizeof a);
    chapoly_wipe(m, sizeof m);
    chapoly_wipe(k, sizeof k);
    chapoly_wipe(words, sizeof words);
}

#endif
