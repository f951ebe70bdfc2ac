/*
 * ChaCha (RFC 8439 2.3 and 2.4) for every x86-64: SSE2 is part of the architecture.
 *
 * Long inputs are taken by four blocks, word-sliced: vector i holds word i of each block, one block per 32-bit lane.
 * One or two blocks are taken horizontally: a vector holds one row (four words) of a block, so that a quarter round is
 * the whole column round, and rotating rows by one, two and three words turns the diagonals into columns.
 */
#include "../kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <string.h>

chapoly_chacha_xor_fn chapoly_chacha_xor_sse2;
chapoly_chacha_pass_fn chapoly_chacha_pass_sse2;
chapoly_hchacha_fn chapoly_hchacha_sse2;
chapoly_chacha_lanes_fn chapoly_chacha_lanes_sse2;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#include "chacha20_sse2.h"

/* ---- Four or eight blocks, word-sliced. ---- */

NOINLINE void blocks4(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, four_blocks *x)
{
    start(x, state, 0);
    for (unsigned i = 0; i < rounds; i += 2)
        double_round(x);
    finish(dst, src, x, state, 0);
}

/*
 * Two groups of four in turn: one alone leaves execution units idle where an addition, an xor or a rotation takes two
 * cycles (AMD Zen 5), and some where it takes one. The group whose turn it is not waits in memory.
 */
NOINLINE void blocks8(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, four_blocks x[2])
{
    start(&x[0], state, 0);
    start(&x[1], state, 4);
    for (unsigned i = 0; i < rounds; i += 2) {
        double_round(&x[0]);
        __asm__("" : "+m"(x[0])); /* compilers would hold parts of both in registers, and spill the rest at random */
        double_round(&x[1]);
        __asm__("" : "+m"(x[1]));
    }
    finish(dst, src, &x[0], state, 0);
    finish(dst + 4 * BLOCK, src + 4 * BLOCK, &x[1], state, 4);
}

/* ---- A block of its own state in each lane. ---- */

/* Four states; where there are fewer, the last again. */
INLINE void gather(four_blocks *x, const uint32_t *const states[], const uint32_t counters[], size_t count)
{
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) {
#pragma GCC unroll 4
        for (size_t l = 0; l < 4; l++)
            x->word[r + (int)l] = load(states[l < count ? l : count - 1] + r);
        transpose(x->word + r);
    }
    uint32_t counter[4];
    for (size_t l = 0; l < 4; l++)
        counter[l] = counters[l < count ? l : count - 1];
    x->word[12] = load(counter);
}

/* The feed-forward, and the blocks one after the other. */
INLINE void scatter(uint8_t *keystream, const four_blocks *x, const four_blocks *start)
{
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) {
        __m128i w[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            w[i] = _mm_add_epi32(x->word[r + i], start->word[r + i]);
        transpose(w);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            _mm_storeu_si128((void *)(keystream + j * BLOCK + 4 * r), w[j]);
    }
}

/* Two groups in turn, like blocks8. */
void chapoly_chacha_lanes_sse2(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                               size_t count)
{
    four_blocks start[2], x[2];
    const bool both = count > 4;

    gather(&start[0], states, counters, count);
    x[0] = start[0];
    if (both) {
        gather(&start[1], states + 4, counters + 4, count - 4);
        x[1] = start[1];
    }
    for (int i = 0; i < 20; i += 2) {
        double_round(&x[0]);
        __asm__("" : "+m"(x[0]));
        if (both) {
            double_round(&x[1]);
            __asm__("" : "+m"(x[1]));
        }
    }
    scatter(keystream, &x[0], &start[0]);
    if (both)
        scatter(keystream + 4 * BLOCK, &x[1], &start[1]);
    chapoly_wipe(start, sizeof start);
    chapoly_wipe(x, sizeof x);
}

/* ---- Two blocks, horizontally: a vector for each row of each block. ---- */

/* ---- One or two blocks, horizontally: a vector for each row of each block. ---- */

#define ALL(body)                                                                                                    \
    _Pragma("GCC unroll 2") for (int g = 0; g < blocks; g++) { body; }

INLINE void row_quarter_rounds(__m128i a[2], __m128i b[2], __m128i c[2], __m128i d[2], const int blocks)
{
    ALL(ADD(a[g], b[g]); XOR_LEFT(d[g], a[g], 16))
    ALL(ADD(c[g], d[g]); XOR_LEFT(b[g], c[g], 12))
    ALL(ADD(a[g], b[g]); XOR_LEFT(d[g], a[g], 8))
    ALL(ADD(c[g], d[g]); XOR_LEFT(b[g], c[g], 7))
}

INLINE void row_rounds(__m128i a[2], __m128i b[2], __m128i c[2], __m128i d[2], unsigned rounds, const int blocks)
{
    for (unsigned i = 0; i < rounds; i += 2) {
        row_quarter_rounds(a, b, c, d, blocks);
        /* Row b stays: turning a, c and d instead keeps the shuffles off the longest chain, which runs through b. */
        ALL(a[g] = _mm_shuffle_epi32(a[g], 0x93); d[g] = _mm_shuffle_epi32(d[g], 0x4e);
            c[g] = _mm_shuffle_epi32(c[g], 0x39))
        row_quarter_rounds(a, b, c, d, blocks);
        ALL(a[g] = _mm_shuffle_epi32(a[g], 0x39); d[g] = _mm_shuffle_epi32(d[g], 0x4e);
            c[g] = _mm_shuffle_epi32(c[g], 0x93))
    }
}

NOINLINE void blocks2(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    const int blocks = 2;
    const __m128i row[4] = {load(state), load(state + 4), load(state + 8), load(state + 12)};
    const __m128i counters[2] = {row[3], _mm_add_epi32(row[3], _mm_setr_epi32(1, 0, 0, 0))};
    __m128i a[2], b[2], c[2], d[2];

    ALL(a[g] = row[0]; b[g] = row[1]; c[g] = row[2]; d[g] = counters[g])
    row_rounds(a, b, c, d, rounds, blocks);
    ALL(xor_store(dst + g * BLOCK, src + g * BLOCK, _mm_add_epi32(a[g], row[0]));
        xor_store(dst + g * BLOCK + 16, src + g * BLOCK + 16, _mm_add_epi32(b[g], row[1]));
        xor_store(dst + g * BLOCK + 32, src + g * BLOCK + 32, _mm_add_epi32(c[g], row[2]));
        xor_store(dst + g * BLOCK + 48, src + g * BLOCK + 48, _mm_add_epi32(d[g], counters[g])))
}

/* No feed-forward. */
void chapoly_hchacha_sse2(uint8_t subkey[32], const uint32_t state[16], unsigned rounds)
{
    __m128i a[2] = {load(state)}, b[2] = {load(state + 4)}, c[2] = {load(state + 8)}, d[2] = {load(state + 12)};

    row_rounds(a, b, c, d, rounds, 1);
    _mm_storeu_si128((void *)subkey, a[0]);
    _mm_storeu_si128((void *)(subkey + 16), d[0]);
}

/* dst[i] = src[i] ^ keystream[i] for len < 4 blocks: no byte beyond is touched. */
INLINE void xor_bytes(uint8_t *dst, const uint8_t *src, const uint8_t *keystream, size_t len)
{
    size_t i = 0;

    for (; i + 16 <= len; i += 16)
        xor_store(dst + i, src + i, load(keystream + i));
    for (; i < len; i++)
        dst[i] = src[i] ^ keystream[i];
}

static const uint8_t zeros[4 * BLOCK];

size_t chapoly_chacha_pass_sse2(uint8_t *keystream, const uint32_t state[16], size_t blocks)
{
    four_blocks x;

    if (blocks <= 2) {
        blocks2(keystream, zeros, state, 20);
        return 2;
    }
    blocks4(keystream, zeros, state, 20, &x);
    chapoly_wipe(&x, sizeof x);
    return 4;
}

void chapoly_chacha_xor_sse2(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16], unsigned rounds)
{
    const bool wide = len > 2 * BLOCK;
    uint32_t at[16];
    uint8_t buffer[4 * BLOCK];
    four_blocks x[2]; /* as secret as the key, which running the rounds backwards would give */

    memcpy(at, state, sizeof at);
    for (; len >= 8 * BLOCK; len -= 8 * BLOCK, dst += 8 * BLOCK, src += 8 * BLOCK, at[12] += 8)
        blocks8(dst, src, at, rounds, x);
    for (; len >= 4 * BLOCK; len -= 4 * BLOCK, dst += 4 * BLOCK, src += 4 * BLOCK, at[12] += 4)
        blocks4(dst, src, at, rounds, x);
    if (len > 0) { /* the narrowest that holds the rest, in a buffer if it is wider than that */
        const size_t size = (len > 2 * BLOCK ? 4 : 2) * BLOCK;
        uint8_t *const to = len == size ? dst : buffer;
        const uint8_t *const from = len == size ? src : zeros;
        if (size == 4 * BLOCK)
            blocks4(to, from, at, rounds, x);
        else
            blocks2(to, from, at, rounds);
        if (len < size) {
            xor_bytes(dst, src, buffer, len);
            chapoly_wipe(buffer, size);
        }
    }
    if (wide)
        chapoly_wipe(x, sizeof x);
    chapoly_wipe(at, sizeof at);
}

#endif
