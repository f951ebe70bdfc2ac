/*
 * chacha20_neon.h: the steps of ChaCha's rounds (RFC 8439 2.3) with Advanced SIMD, and one to three blocks with a
 * vector for each row, for chacha20_neon.c and aead_neon.c. Whoever includes it sets what the compiler is to do first.
 */
#ifndef CHAPOLY_CHACHA20_NEON_H
#define CHAPOLY_CHACHA20_NEON_H

#include <arm_neon.h>

#include "../bytes.h"
#include "../kernel.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

enum { BLOCK = CHAPOLY_BLOCK_SIZE };

/*
 * A double round (RFC 8439 2.3.1, inner_block) is eight steps, the column round 0-3 and the diagonal round 4-7. A step
 * does a += b; d = (d ^ a) <<< n for all four quarter rounds: in even steps a, b, d are of the rows 0, 1, 3, in odd
 * ones of 2, 3, 1. In the diagonal round quarter round i takes word i + row of each row.
 */
#define ROW_A(k) ((k) & 1 ? 2 : 0)
#define ROW_B(k) ((k) & 1 ? 3 : 1)
#define ROW_D(k) ((k) & 1 ? 1 : 3)
#define WORD(row, i, k) (4 * (row) + ((i) + ((k) & 4 ? (row) : 0)) % 4)

/* What moves the bytes of each word so that it is rotated left by 8 bits. */
static const uint8_t left8_bytes[16] = {3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14};

INLINE uint32x4_t rotate(uint32x4_t v, int step, uint8x16_t left8)
{
    switch (step & 3) {
    case 0:
        return vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(v)));
    case 1:
        return vsriq_n_u32(vshlq_n_u32(v, 12), v, 20);
    case 2:
        return vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(v), left8));
    default:
        return vsriq_n_u32(vshlq_n_u32(v, 7), v, 25);
    }
}

/*
 * One to three consecutive blocks; vector 4 b + r holds row r of block b. Their rounds cost as many instructions as
 * those of three out of four in a group, and no transposition; one by one they wait for themselves, but side by side
 * they fill the vector units of most cores.
 */
typedef struct {
    uint32x4_t row[12], start[4];
} rows;

INLINE uint32x4_t number(int i)
{
    return vsetq_lane_u32((uint32_t)i, vdupq_n_u32(0), 0);
}

INLINE void start_rows(rows *x, const uint32_t state[16], const int count)
{
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        x->start[r] = vld1q_u32(state + 4 * r);
#pragma GCC unroll 12
    for (int i = 0; i < 4 * count; i++)
        x->row[i] = i % 4 < 3 ? x->start[i % 4] : vaddq_u32(x->start[3], number(i / 4));
}

/*
 * Between a column round and a diagonal round word i of each row gives way to word i + row. Row 1 stays where it is, as
 * the next step waits for it; the others turn by what is left, 3, 1 and 2 words, and back again by 1, 3 and 2.
 */
INLINE void turn(uint32x4_t row[4], const bool back)
{
    row[0] = back ? vextq_u32(row[0], row[0], 1) : vextq_u32(row[0], row[0], 3);
    row[2] = back ? vextq_u32(row[2], row[2], 3) : vextq_u32(row[2], row[2], 1);
    row[3] = vextq_u32(row[3], row[3], 2);
}

INLINE void permute_rows(rows *x, unsigned rounds, const int count)
{
    const uint8x16_t left8 = vld1q_u8(left8_bytes);

    do {
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
#pragma GCC unroll 3
            for (int b = 0; b < count; b++) {
                uint32x4_t *const row = x->row + 4 * b;
                row[ROW_A(k)] = vaddq_u32(row[ROW_A(k)], row[ROW_B(k)]);
                row[ROW_D(k)] = rotate(veorq_u32(row[ROW_D(k)], row[ROW_A(k)]), k, left8);
                if (k % 4 == 3)
                    turn(row, k == 7);
            }
        }
    } while ((rounds -= 2) > 0);
}

/* The feed-forward: row i % 4 of block i / 4 of the keystream. */
INLINE uint8x16_t finished_row(const rows *x, int i)
{
    const uint32x4_t start = i % 4 < 3 ? x->start[i % 4] : vaddq_u32(x->start[3], number(i / 4));

    return vreinterpretq_u8_u32(vaddq_u32(x->row[i], start));
}

#endif
