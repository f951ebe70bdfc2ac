/*
 * rounds.h: ChaCha's rounds in general registers (RFC 8439 2.1 and 2.3), for any byte order.
 */
#ifndef CHAPOLY_ROUNDS_H
#define CHAPOLY_ROUNDS_H

#include <stdint.h>

static inline uint32_t chapoly_rotate_left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* RFC 8439 2.1. */
#define CHAPOLY_QUARTER_ROUND(a, b, c, d)                                                                            \
    (a += b, d = chapoly_rotate_left(d ^ a, 16), c += d, b = chapoly_rotate_left(b ^ c, 12),                         \
     a += b, d = chapoly_rotate_left(d ^ a, 8), c += d, b = chapoly_rotate_left(b ^ c, 7))

/* RFC 8439 2.3: two rounds, of four columns and then of four diagonals. */
static inline void chapoly_double_round(uint32_t x[16])
{
    CHAPOLY_QUARTER_ROUND(x[0], x[4], x[8], x[12]);
    CHAPOLY_QUARTER_ROUND(x[1], x[5], x[9], x[13]);
    CHAPOLY_QUARTER_ROUND(x[2], x[6], x[10], x[14]);
    CHAPOLY_QUARTER_ROUND(x[3], x[7], x[11], x[15]);
    CHAPOLY_QUARTER_ROUND(x[0], x[5], x[10], x[15]);
    CHAPOLY_QUARTER_ROUND(x[1], x[6], x[11], x[12]);
    CHAPOLY_QUARTER_ROUND(x[2], x[7], x[8], x[13]);
    CHAPOLY_QUARTER_ROUND(x[3], x[4], x[9], x[14]);
}

#endif
