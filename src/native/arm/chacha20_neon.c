/*
 * ChaCha (RFC 8439 2.3 and 2.4) for AArch64 with Advanced SIMD.
 *
 * A group is four consecutive blocks: vector i holds word i of each, one block per lane. A vector instruction takes two
 * cycles until its result can be used and current cores start two to four of them per cycle, so one group spends much
 * of its time waiting for itself: long inputs run two groups side by side. The integer units would be idle meanwhile,
 * so they compute two more blocks, one after the other, at two scalar double rounds per vector double round: ten blocks
 * per pass. Two groups take all 32 vector registers and spill a few words; a scalar block takes 16 of the 31 others.
 *
 * A vector pass of eight blocks alone would take fewer instructions and more time. From 4 to 16 KiB, by gcc 12, the
 * instructions per byte and llvm-mca's cycles per byte on Neoverse N1, V2, apple-m1 (an older core's model, whose
 * rotation of a general register is slow) are
 *     eight blocks in vectors                       6.06    2.96  1.39  1.69
 *     eight in vectors, two in general registers    8.10    2.29  1.08  3.28
 *     four in vectors, two in general registers     8.91    1.88  1.51  5.24
 * and more is in bench/neon_counts.json.
 */
#include "../kernel.h"

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)

#include <arm_neon.h>
#include <string.h>

#include "../bytes.h"

chapoly_chacha_xor_fn chapoly_chacha_xor_neon, chapoly_chacha_xor_portable;
chapoly_chacha_pass_fn chapoly_chacha_pass_neon, chapoly_chacha_pass_portable;
chapoly_chacha_lanes_fn chapoly_chacha_lanes_neon;

/* Before register allocation gcc moves instructions apart for speed, which costs more in spills here than it gains. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-slp-vectorize", "rename-registers")
#endif

#include "chacha20_neon.h"

enum { GROUP = 4 * BLOCK };

INLINE void group_step(uint32x4_t x[16], int k, uint8x16_t left8)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int a = WORD(ROW_A(k), i, k), b = WORD(ROW_B(k), i, k), d = WORD(ROW_D(k), i, k);
        x[a] = vaddq_u32(x[a], x[b]);
        x[d] = rotate(veorq_u32(x[d], x[a]), k, left8);
    }
}

INLINE void scalar_step(uint32_t x[16], int k) /* k modulo 8 */
{
    static const int left[4] = {16, 12, 8, 7};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int a = WORD(ROW_A(k), i, k), b = WORD(ROW_B(k), i, k), d = WORD(ROW_D(k), i, k), n = left[k & 3];
        x[a] += x[b];
        x[d] ^= x[a];
        x[d] = x[d] << n | x[d] >> (32 - n);
        __asm__("" : "+r"(x[d])); /* or clang would gather the four into a vector */
    }
}

/* Two steps of a group, and beside them two of a scalar block. */
INLINE void two_steps(uint32x4_t x[16], int k, uint8x16_t left8, uint32_t s[16], int scalar_k, const bool scalar)
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        group_step(x, k + i, left8);
        if (scalar)
            scalar_step(s, scalar_k + i);
    }
}

/* Four blocks from block number `first` on, before the rounds. */
INLINE void group_start(uint32x4_t x[16], const uint32_t state[16], uint32_t first)
{
    static const uint32_t lane[4] = {0, 1, 2, 3};
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x[i] = vdupq_n_u32(state[i]);
    x[12] = vaddq_u32(vdupq_n_u32(first), vld1q_u32(lane));
}

/* The four words in each of four vectors change places: lane j of w[i] becomes lane i of w[j]. */
INLINE void transpose(uint32x4_t w[4])
{
    const uint32x4_t lo = vzip1q_u32(w[0], w[2]), lo1 = vzip1q_u32(w[1], w[3]);
    const uint32x4_t hi = vzip2q_u32(w[0], w[2]), hi1 = vzip2q_u32(w[1], w[3]);

    w[0] = vzip1q_u32(lo, lo1);
    w[1] = vzip2q_u32(lo, lo1);
    w[2] = vzip1q_u32(hi, hi1);
    w[3] = vzip2q_u32(hi, hi1);
}

/* The feed-forward and the xor, row by row: a 4x4 transpose of words 4r..4r+3 gives row r of each of the blocks. */
INLINE void group_finish(uint8_t *dst, const uint8_t *src, const uint32x4_t x[16], const uint32_t state[16],
                         uint32_t first)
{
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        uint32x4_t row[4] = {x[4 * r], x[4 * r + 1], x[4 * r + 2], x[4 * r + 3]};
        uint32x4_t start = vld1q_u32(state + 4 * r);
        transpose(row);
#pragma GCC unroll 4
        for (uint32_t b = 0; b < 4; b++) {
            if (r == 3)
                start = vsetq_lane_u32(first + b, start, 0);
            const uint8x16_t keystream = vreinterpretq_u8_u32(vaddq_u32(row[b], start));
            const size_t at = b * BLOCK + 16 * (size_t)r;
            vst1q_u8(dst + at, veorq_u8(vld1q_u8(src + at), keystream));
        }
    }
}

INLINE void scalar_start(uint32_t x[16], const uint32_t state[16], uint32_t counter)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x[i] = state[i];
    x[12] = counter;
}

INLINE void scalar_finish(uint8_t *dst, const uint8_t *src, const uint32_t x[16], const uint32_t state[16],
                          uint32_t counter)
{
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        const uint32_t lo = x[i] + (i == 12 ? counter : state[i]), hi = x[i + 1] + state[i + 1];
        uint64_t words;
        memcpy(&words, src + 4 * i, sizeof words); /* memory is little-endian */
        words ^= lo | (uint64_t)hi << 32;
        memcpy(dst + 4 * i, &words, sizeof words);
    }
}

/*
 * 4 * groups blocks in vectors, followed by two in scalars if `pair`, from block state[12] on. While the vectors go
 * through the first half of their rounds the first scalar block goes through all of its own, then the second.
 */
INLINE void blocks(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, const int groups,
                   const bool pair)
{
    const uint8x16_t left8 = vld1q_u8(left8_bytes);
    const uint32_t counter = state[12], first = 4 * (uint32_t)groups; /* scalar block */
    uint32x4_t x[16], y[16];
    uint32_t s[16];

    group_start(x, state, counter);
    if (groups == 2)
        group_start(y, state, counter + 4);
    if (pair)
        scalar_start(s, state, counter + first);
    unsigned i = rounds / 2;
    do {
        if (pair && i == rounds / 4) {
            scalar_finish(dst + first * BLOCK, src + first * BLOCK, s, state, counter + first);
            scalar_start(s, state, counter + first + 1);
        }
#pragma GCC unroll 4
        for (int k = 0; k < 8; k += 2) {
            two_steps(x, k, left8, s, 2 * k, pair);
            if (groups == 2)
                two_steps(y, k, left8, s, 2 * k + 2, pair);
            else if (pair)
                scalar_step(s, 2 * k + 2), scalar_step(s, 2 * k + 3);
        }
    } while (--i > 0);
    if (pair)
        scalar_finish(dst + (first + 1) * BLOCK, src + (first + 1) * BLOCK, s, state, counter + first + 1);
    group_finish(dst, src, x, state, counter);
    if (groups == 2)
        group_finish(dst + GROUP, src + GROUP, y, state, counter + 4);
}

NOINLINE void blocks10(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    blocks(dst, src, state, rounds, 2, true);
}

NOINLINE void blocks6(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    blocks(dst, src, state, rounds, 1, true);
}

NOINLINE void blocks4(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    blocks(dst, src, state, rounds, 1, false);
}

/* ---- Up to three blocks: a vector for each row. ---- */

INLINE void few_blocks(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, const int count)
{
    rows x;

    start_rows(&x, state, count);
    permute_rows(&x, rounds, count);
#pragma GCC unroll 12
    for (int i = 0; i < 4 * count; i++)
        vst1q_u8(dst + 16 * i, veorq_u8(vld1q_u8(src + 16 * i), finished_row(&x, i)));
}

NOINLINE void blocks3(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    few_blocks(dst, src, state, rounds, 3);
}

NOINLINE void blocks2(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    few_blocks(dst, src, state, rounds, 2);
}

static const uint8_t zeros[10 * BLOCK];

/* The narrowest pass that holds 2 to 10 blocks. */
INLINE size_t pass_blocks(size_t blocks)
{
    return blocks > 6 ? 10 : blocks > 4 ? 6 : blocks;
}

INLINE void pass(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, size_t blocks)
{
    switch (blocks) {
    case 2:
        blocks2(dst, src, state, rounds);
        break;
    case 3:
        blocks3(dst, src, state, rounds);
        break;
    case 4:
        blocks4(dst, src, state, rounds);
        break;
    case 6:
        blocks6(dst, src, state, rounds);
        break;
    default:
        blocks10(dst, src, state, rounds);
    }
}

size_t chapoly_chacha_pass_neon(uint8_t *keystream, const uint32_t state[16], size_t blocks)
{
    const size_t made = pass_blocks(blocks);

    if (blocks == 1)
        return chapoly_chacha_pass_portable(keystream, state, 1);
    pass(keystream, zeros, state, 20, made);
    return made;
}

void chapoly_chacha_xor_neon(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16], unsigned rounds)
{
    uint32_t at[16];

    memcpy(at, state, sizeof at);
    for (; len >= 10 * BLOCK; len -= 10 * BLOCK, dst += 10 * BLOCK, src += 10 * BLOCK, at[12] += 10)
        blocks10(dst, src, at, rounds);

    /*
     * One block goes without vectors. By the models of bench/neon_counts.json it takes 425 cycles on Neoverse N1 and
     * 290 on V2, in vectors 560 at least. Two blocks take 616 and 589 in vectors, one after the other without 788 and
     * 521, and three times the instructions; three take 671 and 592, four 742 and 601.
     */
    if (len <= BLOCK) {
        chapoly_chacha_xor_portable(dst, src, len, at, rounds);
    } else {
        const size_t blocks = pass_blocks((len + BLOCK - 1) / BLOCK), size = blocks * BLOCK;
        _Alignas(BLOCK) uint8_t buffer[10 * BLOCK];
        const bool partial = len < size;

        pass(partial ? buffer : dst, partial ? zeros : src, at, rounds, blocks);
        if (partial) {
            chapoly_xor(dst, src, buffer, len);
            chapoly_wipe(buffer, size);
        }
    }
    chapoly_wipe_few(at, sizeof at);
}

/* ---- A block of its own state in each lane: one group or two of four. ---- */

/* Four states; where there are fewer, the last again. */
INLINE void gather(uint32x4_t x[16], const uint32_t *const states[], const uint32_t counters[], size_t count)
{
    uint32_t counter[4];

#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) {
#pragma GCC unroll 4
        for (size_t l = 0; l < 4; l++)
            x[r + (int)l] = vld1q_u32(states[l < count ? l : count - 1] + r);
        transpose(x + r);
    }
    for (size_t l = 0; l < 4; l++)
        counter[l] = counters[l < count ? l : count - 1];
    x[12] = vld1q_u32(counter);
}

/* The blocks one after the other, each with its own state added: the feed-forward. */
INLINE void scatter(uint8_t *keystream, const uint32x4_t x[16], const uint32_t *const states[],
                    const uint32_t counters[], size_t count)
{
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        uint32x4_t row[4] = {x[4 * r], x[4 * r + 1], x[4 * r + 2], x[4 * r + 3]};
        transpose(row);
#pragma GCC unroll 4
        for (size_t l = 0; l < 4; l++) {
            const size_t own = l < count ? l : count - 1;
            uint32x4_t start = vld1q_u32(states[own] + 4 * r);
            if (r == 3)
                start = vsetq_lane_u32(counters[own], start, 0);
            vst1q_u8(keystream + l * BLOCK + 16 * (size_t)r, vreinterpretq_u8_u32(vaddq_u32(row[l], start)));
        }
    }
}

INLINE void lanes(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[], size_t count,
                  const int groups)
{
    const uint8x16_t left8 = vld1q_u8(left8_bytes);
    uint32x4_t x[16], y[16];

    gather(x, states, counters, count);
    if (groups == 2)
        gather(y, states + 4, counters + 4, count - 4);
    for (int i = 0; i < 20; i += 2) {
#pragma GCC unroll 4
        for (int k = 0; k < 8; k += 2) {
            two_steps(x, k, left8, NULL, 0, false);
            if (groups == 2)
                two_steps(y, k, left8, NULL, 0, false);
        }
    }
    scatter(keystream, x, states, counters, count);
    if (groups == 2)
        scatter(keystream + GROUP, y, states + 4, counters + 4, count - 4);
}

NOINLINE void lanes4(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[], size_t count)
{
    lanes(keystream, states, counters, count, 1);
}

NOINLINE void lanes8(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[], size_t count)
{
    lanes(keystream, states, counters, count, 2);
}

void chapoly_chacha_lanes_neon(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                               size_t count)
{
    (count <= 4 ? lanes4 : lanes8)(keystream, states, counters, count);
}

#endif
