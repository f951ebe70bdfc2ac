/*
 * poly1305_x64.h: Poly1305 blocks (RFC 8439 2.5.1) in the general registers of x86-64. What portable/ does, with the
 * carries in the flag that is there for them, where compilers move them about in registers (gcc 12 most of all); and in
 * an order in which the next block is added before the last carry is known, which shortens the chain from one
 * multiplication to the next.
 */
#ifndef CHAPOLY_POLY1305_X64_H
#define CHAPOLY_POLY1305_X64_H

#include "../bytes.h"

__extension__ typedef unsigned __int128 uint128;

/* (a0, a1) += (b0, b1), and with a third word. No sum overflows its last word. */
#define ADD_2(a0, a1, b0, b1)                                                                                        \
    __asm__("addq %2, %0\n\tadcq %3, %1" : "+r"(a0), "+r"(a1) : "r"((uint64_t)(b0)), "re"((uint64_t)(b1)) : "cc")
#define ADD_3(a0, a1, a2, b0, b1, b2)                                                                                \
    __asm__("addq %3, %0\n\tadcq %4, %1\n\tadcq %5, %2"                                                              \
            : "+r"(a0), "+r"(a1), "+r"(a2)                                                                           \
            : "r"((uint64_t)(b0)), "re"((uint64_t)(b1)), "re"((uint64_t)(b2))                                        \
            : "cc")

/*
 * With 2^128 r1 = 5 r1 / 4 = s1 (mod p), as 4 divides r1:
 *     h * r = h0 r0 + h1 s1 + 2^64 (h0 r1 + h1 r0 + h2 s1) + 2^128 h2 r0.
 * r0, r1 < 2^60, s1 < 1.25 * 2^60.
 */
static inline void chapoly_poly1305_x64(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                        uint64_t top)
{
    const uint64_t r0 = r[0], r1 = r[1], s1 = r1 + (r1 >> 2);
    uint64_t h0 = h[0], h1 = h[1], h2 = h[2], fold = 0; /* h2 <= 4 */

#pragma GCC unroll 1
    for (; blocks > 0; blocks--, message += 16) {
        ADD_3(h0, h1, h2, chapoly_load64(message), chapoly_load64(message + 8), top); /* h2 <= 4 + 1 + 1 */
        ADD_3(h0, h1, h2, fold, 0, 0); /* h2 <= 6: fold > 0 only if h2 was <= 3 */

        const uint128 p0 = (uint128)h0 * r0, p1 = (uint128)h1 * s1; /* < 2^124, < 1.25 * 2^124 */
        const uint128 p2 = (uint128)h0 * r1, p3 = (uint128)h1 * r0; /* < 2^124 each */
        uint64_t low = (uint64_t)p0, middle = (uint64_t)(p0 >> 64), d1 = (uint64_t)p2, high = (uint64_t)(p2 >> 64);
        ADD_2(d1, high, p3, p3 >> 64);             /* (d1, high) < 2^125 */
        ADD_2(low, middle, p1, p1 >> 64);          /* (low, middle) < 2.25 * 2^124 */
        ADD_2(d1, high, h2 * s1, 0);               /* h2 s1 < 7.5 * 2^60 < 2^63 */
        h2 *= r0;                                  /* < 6 * 2^60 */
        ADD_2(d1, h2, middle, high);               /* h2 < 6 * 2^60 + 2^61 + 2 < 2^63 + 2 */
        h0 = low, h1 = d1;

        /* What lies at 2^130 and above: h2 = 4 q + (h2 mod 4), and 2^130 q = 5 q < 2^63.33, added in the next turn. */
        fold = (h2 >> 2) + (h2 & ~UINT64_C(3));
        h2 &= 3;
    }
    ADD_3(h0, h1, h2, fold, 0, 0); /* h2 <= 4 */
    h[0] = h0, h[1] = h1, h[2] = h2;
}

#endif
