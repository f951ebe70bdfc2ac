/*
 * poly1305_a64.h: Poly1305 blocks (RFC 8439 2.5.1) in the general registers of AArch64. What portable/ does, with the
 * carries in the flag that is there for them, where compilers move them about in registers; and in an order in which
 * the next block is added before the last carry is known, which shortens the chain from one multiplication to the next.
 */
#ifndef CHAPOLY_POLY1305_A64_H
#define CHAPOLY_POLY1305_A64_H

#include "../bytes.h"

/* (low, high) = a * b; both halves side by side, as the models of bench/neon_counts.py like them best. */
#define PRODUCT(low, high, a, b)                                                                                     \
    __asm__("mul %0, %2, %3\n\tumulh %1, %2, %3" : "=&r"(low), "=r"(high) : "r"(a), "r"(b))

/*
 * (a0, a1) = (b0, b1) + (c0, c1), or + c0; and with a third word. None overflows the last word. Inputs and outputs are
 * apart, or gcc 12 would copy some.
 */
#define SUM_2(a0, a1, b0, b1, c0, c1)                                                                                \
    __asm__("adds %0, %2, %4\n\tadc %1, %3, %5" : "=&r"(a0), "=r"(a1) : "r"(b0), "r"(b1), "r"(c0), "r"(c1) : "cc")
#define SUM_3(a0, a1, a2, b0, b1, b2, c0, c1, c2)                                                                    \
    __asm__("adds %0, %3, %6\n\tadcs %1, %4, %7\n\tadc %2, %5, %8"                                                  \
            : "=&r"(a0), "=&r"(a1), "=r"(a2) : "r"(b0), "r"(b1), "r"(b2), "r"(c0), "r"(c1), "r"(c2) : "cc")
#define SUM_2_AND_1(a0, a1, b0, b1, c0)                                                                              \
    __asm__("adds %0, %2, %4\n\tadc %1, %3, xzr" : "=&r"(a0), "=r"(a1) : "r"(b0), "r"(b1), "r"(c0) : "cc")
#define SUM_3_AND_1(a0, a1, a2, b0, b1, b2, c0)                                                                      \
    __asm__("adds %0, %3, %6\n\tadcs %1, %4, xzr\n\tadc %2, %5, xzr"                                                \
            : "=&r"(a0), "=&r"(a1), "=r"(a2) : "r"(b0), "r"(b1), "r"(b2), "r"(c0) : "cc")

/*
 * With 2^128 r1 = 5 r1 / 4 = s1 (mod p), as 4 divides r1:
 *     h * r = h0 r0 + h1 s1 + 2^64 (h0 r1 + h1 r0 + h2 s1) + 2^128 h2 r0.
 * r0, r1 < 2^60, s1 < 1.25 * 2^60.
 */
static inline __attribute__((always_inline)) void chapoly_poly1305_a64(uint64_t h[3], const uint64_t r[2],
                                                                       const uint8_t *message, size_t blocks,
                                                                       uint64_t top)
{
    const uint64_t r0 = r[0], r1 = r[1], s1 = r1 + (r1 >> 2);
    uint64_t h0 = h[0], h1 = h[1], h2 = h[2], fold = 0; /* h2 <= 4 */

#pragma GCC unroll 1
    for (; blocks > 0; blocks--, message += 16) {
        uint64_t m0, m1, m2, a0, a1, a2, l0, l1, k0, k1, d0, d1, e0, e1;

        SUM_3(m0, m1, m2, h0, h1, h2, chapoly_load64(message), chapoly_load64(message + 8), top); /* m2 <= 4 + 1 + 1 */
        SUM_3_AND_1(a0, a1, a2, m0, m1, m2, fold); /* a2 <= 6: fold > 0 only if h2 was <= 3 */

        PRODUCT(l0, l1, a0, r0); /* l1 < 2^60 */
        PRODUCT(k0, k1, a1, s1); /* k1 < 1.25 * 2^60 */
        PRODUCT(d0, d1, a0, r1); /* d1, e1 < 2^60 */
        PRODUCT(e0, e1, a1, r0);
        l1 += a2 * s1; /* < 8.5 * 2^60: these two carry nothing, and each is one instruction with its product */
        d1 += a2 * r0; /* < 7 * 2^60 */
        SUM_2(h0, k1, l0, l1, k0, k1); /* k1 < 9.75 * 2^60 + 1 */
        SUM_2(d0, d1, d0, d1, e0, e1); /* d1 < 2^63 + 1 */
        SUM_2_AND_1(h1, h2, d0, d1, k1); /* h2 < 2^63 + 2 */

        /* What lies at 2^130 and above: h2 = 4 q + (h2 mod 4), and 2^130 q = 5 q < 2^63.33, added in the next turn. */
        fold = (h2 >> 2) + (h2 & ~UINT64_C(3));
        h2 &= 3;
    }
    SUM_3_AND_1(h0, h1, h2, h0, h1, h2, fold); /* h2 <= 4 */
    h[0] = h0, h[1] = h1, h[2] = h2;
}

#endif
