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
    uint64_t x[5], w[2], carry;

    /* Limbs of exactly 26 bits, so that they can be put side by side; x[4] < 2^27 + 2. */
    x[0] = limb[0];
    for (int i = 0; i < 4; i++) {
        x[i + 1] = limb[i + 1] + (x[i] >> 26);
        x[i] &= LIMB_MASK;
    }
    w[0] = x[0] | x[1] << 26 | x[2] << 52;
    w[1] = x[2] >> 12 | x[3] << 14 | x[4] << 40;

    h[0] += w[0];
    carry = h[0] < w[0];
    h[1] += carry;
    carry = h[1] < carry;
    h[1] += w[1];
    h[2] += carry + (h[1] < w[1]) + (x[4] >> 24); /* <= 4 + 1 + 1 + 8 */

    /* 2^130 q = 5 q (mod p), at most 15: h[2] <= 3 + 1 afterwards */
    carry = 5 * (h[2] >> 2);
    h[2] &= 3;
    h[0] += carry;
    carry = h[0] < carry;
    h[1] += carry;
    h[2] += h[1] < carry;
}

#endif
