/*
 * ChaCha (RFC 8439 2.3 and 2.4) for x86-64 with AVX-512 (F, BW, VL), in vectors of 512 bits.
 */
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>
#include <string.h>

chapoly_chacha_xor_fn chapoly_chacha_xor_avx512, chapoly_chacha_xor_portable;
chapoly_chacha_lanes_fn chapoly_chacha_lanes_avx512;

/*
 * What gcc would do before registers are allocated costs spills in the loop of rounds: scheduling, and merging variables
 * and computing things early across it (gcc 12: 51 accesses to spilled vectors per two rounds, with these options 3).
 */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-schedule-insns2", "no-tree-vectorize", "no-tree-coalesce-vars", \
                     "no-tree-pre", "no-gcse")
#endif

#include "chacha20_avx512.h"
#include "chacha20_evex_any.h"

TARGET void chapoly_chacha_xor_avx512(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                      unsigned rounds)
{
    if (len <= BLOCK)
        chapoly_chacha_xor_portable(dst, src, len, state, rounds);
    else
        xor_any(dst, src, len, state, rounds);
}

/* ---- A block of its own state in each element. ---- */

/* Element l of w[i] becomes element i of w[l]. */
INLINE void transpose(vector w[16])
{
    vector out[4], whole[16];

    gather_quads(w);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        gather_blocks(out, w[k], w[4 + k], w[8 + k], w[12 + k]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            whole[4 * j + k] = out[j];
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        w[i] = whole[i];
}

/* SLICE states; where there are fewer, the last again. */
INLINE void gather_states(vector x[16], const uint32_t *const states[], const uint32_t counters[], size_t count)
{
    uint32_t counter[SLICE];

#pragma GCC unroll 16
    for (size_t l = 0; l < SLICE; l++) {
        counter[l] = counters[l < count ? l : count - 1];
        x[l] = _mm512_loadu_si512(states[l < count ? l : count - 1]);
    }
    transpose(x);
    x[12] = _mm512_loadu_si512(counter);
}

/* The feed-forward, and the blocks one after the other. */
INLINE void scatter_blocks(uint8_t *keystream, vector x[16], const vector start[16])
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x[i] = add(x[i], start[i]);
    transpose(x);
#pragma GCC unroll 16
    for (int l = 0; l < SLICE; l++)
        _mm512_storeu_si512(keystream + l * BLOCK, x[l]);
}

TARGET void chapoly_chacha_lanes_avx512(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                                        size_t count)
{
    const bool both = count > SLICE; /* else the second group repeats the first, in time that would be idle */
    vector x[16], y[16], start[2][16];

    gather_states(x, states, counters, both ? SLICE : count);
    memcpy(start[0], x, sizeof start[0]);
    gather_states(y, states + (both ? SLICE : 0), counters + (both ? SLICE : 0), both ? count - SLICE : count);
    memcpy(start[1], y, sizeof start[1]);
    for (int i = 0; i < 20; i += 2) {
        four_quarter_rounds(x, y, 0);
        four_quarter_rounds(x, y, 1);
    }
    scatter_blocks(keystream, x, start[0]);
    __asm__("" ::: "memory"); /* what is done to y begins when x is done, and its registers are free */
    if (both)
        scatter_blocks(keystream + SLICE * BLOCK, y, start[1]);
    chapoly_wipe(start, sizeof start);
}

#endif
