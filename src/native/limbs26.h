/*
 * limbs26.h: numbers mod p = 2^130 - 5 as five limbs of 26 bits, x0 + 2^26 x1 + ... + 2^104 x4, and back. What the
 * kernels share that compute with 32-bit factors.
 */
#ifndef CHAPOLY_LIMBS26_H
#define CHAPOLY_LIMBS26_H

#include <stdint.h>

#define LIMB_MASK UINT32_C(0x3ffffff) /* 26 bits */

/*
 * requires  w[2] <= 4
 * ensures   limb[0..3] < 2^26, limb[4] < 2^26 + 2^24; the same value
 */
static inline void chapoly_split(uint32_t limb[5], const uint64_t w[3])
{
    limb[0] = (uint32_t)w[0] & LIMB_MASK;
    limb[1] = (uint32_t)(w[0] >> 26) & LIMB_MASK;
    limb[2] = (uint32_t)(w[0] >> 52 | w[1] << 12) & LIMB_MASK;
    limb[3] = (uint32_t)(w[1] >> 14) & LIMB_MASK;
    limb[4] = (uint32_t)(w[1] >> 40 | w[2] << 24);
}

/*
 * h += the number that the limbs hold, mod p.
 * requires  h[2] <= 4; limb[i] < 2^27
 * ensures   h[2] <= 4
 */
static inline void chapoly_add_limbs(uint64_t h[3], const uint32_t limb[5])
{
    /* The carries of the limbs below; x4 < 2^27 + 2. No array, which would have to be wiped. */
    const uint64_t x0 = limb[0], x1 = limb[1] + (x0 >> 26), x2 = limb[2] + (x1 >> 26), x3 = limb[3] + (x2 >> 26);
    const uint64_t x4 = limb[4] + (x3 >> 26);

    /* Limbs of exactly 26 bits side by side. */
    const uint64_t w0 = (x0 & LIMB_MASK) | (x1 & LIMB_MASK) << 26 | x2 << 52;
    const uint64_t w1 = (x2 & LIMB_MASK) >> 12 | (x3 & LIMB_MASK) << 14 | x4 << 40;
    uint64_t carry;

    h[0] += w0;
    carry = h[0] < w0;
    h[1] += carry;
    carry = h[1] < carry;
    h[1] += w1;
    h[2] += carry + (h[1] < w1) + (x4 >> 24); /* <= 4 + 1 + 1 + 8 */

    /* 2^130 q = 5 q (mod p), at most 15: h[2] <= 3 + 1 afterwards */
    carry = 5 * (h[2] >> 2);
    h[2] &= 3;
    h[0] += carry;
    carry = h[0] < carry;
    h[1] += carry;
    h[2] += h[1] < carry;
}

#endif
