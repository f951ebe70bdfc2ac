/*
 * poly1305_a64.h: Poly1305 blocks (RFC 8439 2.5.1) in the general registers of AArch64. What portable/ does, with the
 * carries in the flag that is there for them, where compilers move them about in registers; and in an order in which
 * the next block is added before the last carry is known, which shortens the chain from one multiplication to the next.
 */
#ifndef CHAPOLY_POLY1305_A64_H
#define CHAPOLY_POLY1305_A64_H

#include "../bytes.h"

/* (a0, a1) = (b0, b1) + (c0, c1), and with a third word. No sum overflows its last word. */
#define SUM_2(a0, a1, b0, b1, c0, c1)                                                                                \
    __asm__("adds %0, %2, %4\n\tadc %1, %3, %x5"                                                                     \
            : "=&r"(a0), "=r"(a1) : "r"(b0), "r"(b1), "r"(c0), "rZ"((uint64_t)(c1)) : "cc")
#define SUM_3(a0, a1, a2, b0, b1, b2, c0, c1, c2)                                                                    \
    __asm__("adds %0, %3, %6\n\tadcs %1, %4, %x7\n\tadc %2, %5, %x8"                                                 \
            : "=&r"(a0), "=&r"(a1), "=r"(a2)                                                                         \
            : "r"(b0), "r"(b1), "r"(b2), "r"(c0), "rZ"((uint64_t)(c1)), "rZ"((uint64_t)(c2))                         \
            : "cc")

INLINE uint64_t multiply_high(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 uint128;

    return (uint64_t)((uint128)a * b >> 64);
}

/*
 * With 2^128 r1 = 5 r1 / 4 = s1 (mod p), as 4 divides r1:
 *     h * r = h0 r0 + h1 s1 + 2^64 (h0 r1 + h1 r0 + h2 s1) + 2^128 h2 r0.
 * r0, r1 < 2^60, s1 < 1.25 * 2^60.
 */
INLINE void poly1305_a64(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks, uint64_t top)
{
    const uint64_t r0 = r[0], r1 = r[1], s1 = r1 + (r1 >> 2);
    uint64_t h0 = h[0], h1 = h[1], h2 = h[2], fold = 0; /* h2 <= 4 */

#pragma GCC unroll 1
    for (; blocks > 0; blocks--, message += 16) {
        SUM_3(h0, h1, h2, h0, h1, h2, chapoly_load64(message), chapoly_load64(message + 8), top); /* h2 <= 4 + 1 + 1 */
        SUM_3(h0, h1, h2, h0, h1, h2, fold, 0, 0); /* h2 <= 6: fold > 0 only if h2 was <= 3 */

        /* What h2 gives is small enough to be added before anything could carry. */
        const uint64_t middle = multiply_high(h0, r0) + h2 * s1; /* < 2^60 + 7.5 * 2^60 */
        const uint64_t high = multiply_high(h0, r1) + h2 * r0;   /* < 2^60 + 6 * 2^60 */
        uint64_t low, low1, d1, d2;
        SUM_2(low, low1, h0 * r0, middle, h1 * s1, multiply_high(h1, s1)); /* low1 < 9.75 * 2^60 + 1 */
        SUM_2(d1, d2, h0 * r1, high, h1 * r0, multiply_high(h1, r0));      /* d2 < 2^63 + 1 */
        SUM_2(h1, h2, d1, d2, low1, 0);                                    /* h2 < 2^63 + 2 */
        h0 = low;

        /* What lies at 2^130 and above: h2 = 4 q + (h2 mod 4), and 2^130 q = 5 q < 2^63.33, added in the next turn. */
        fold = (h2 >> 2) + (h2 & ~UINT64_C(3));
        h2 &= 3;
    }
    SUM_3(h0, h1, h2, h0, h1, h2, fold, 0, 0); /* h2 <= 4 */
    h[0] = h0, h[1] = h1, h[2] = h2;
}

#endif
