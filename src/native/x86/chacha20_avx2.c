/*
 * ChaCha (RFC 8439 2.3 and 2.4) for x86-64 with AVX2.
 *
 * Long inputs are taken by eight blocks, word-sliced: vector i holds word i of each block, one block per 32-bit lane,
 * and the four quarter rounds of a round stand side by side. Short inputs, which would leave most lanes idle, are taken
 * by two or four blocks, horizontally: a vector holds one row (four words) of two blocks, so that a quarter round is
 * the whole column round, and rotating rows by one, two and three words turns the diagonals into columns.
 */
#include "../kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <string.h>

#include "chacha20_avx2.h"

chapoly_chacha_xor_fn chapoly_chacha_xor_avx2;
chapoly_chacha_lanes_fn chapoly_chacha_lanes_avx2;
chapoly_chacha_pass_fn chapoly_chacha_pass_avx2;
chapoly_hchacha_fn chapoly_hchacha_avx2;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#define NOINLINE static __attribute__((noinline)) AVX2

/* ---- Eight or sixteen blocks, word-sliced. ---- */

NOINLINE void blocks8(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, eight_blocks *x)
{
    start(x, state, 0);
    permute(x, rounds);
    finish(dst, src, x, state, 0);
}

/*
 * Two groups of eight in turn: where an addition, an xor or a rotation takes two cycles (AMD Zen 5), one group alone
 * leaves half of the execution units idle.
 */
NOINLINE void blocks16(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds,
                       eight_blocks x[2])
{
    start(&x[0], state, 0);
    start(&x[1], state, 8);
    for (unsigned i = 0; i < rounds; i += 2) {
        double_round(&x[0]);
        double_round(&x[1]);
    }
    finish(dst, src, &x[0], state, 0);
    finish(dst + 8 * BLOCK, src + 8 * BLOCK, &x[1], state, 8);
}

/* ---- A block of its own state in each lane. ---- */

/* Eight states; where there are fewer, the last again. */
INLINE void gather(eight_blocks *x, const uint32_t *const states[], const uint32_t counters[], size_t count)
{
    uint32_t counter[8];

    for (size_t l = 0; l < 8; l++)
        counter[l] = counters[l < count ? l : count - 1];
#pragma GCC unroll 2
    for (int h = 0; h < 16; h += 8) {
        __m256i w[8];

#pragma GCC unroll 8
        for (size_t l = 0; l < 8; l++)
            w[l] = load(states[l < count ? l : count - 1] + h);
        transpose(w);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            x->word[h + i] = w[i];
    }
    x->word[12] = load(counter);
}

/* The feed-forward, and the blocks one after the other. */
INLINE void scatter(uint8_t *keystream, const eight_blocks *x, const eight_blocks *start)
{
#pragma GCC unroll 2
    for (int h = 0; h < 16; h += 8) {
        __m256i w[8];

#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            w[i] = _mm256_add_epi32(x->word[h + i], start->word[h + i]);
        transpose(w);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            _mm256_storeu_si256((void *)(keystream + j * BLOCK + 4 * h), w[j]);
    }
}

AVX2 void chapoly_chacha_lanes_avx2(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                                    size_t count)
{
    eight_blocks start[2], x[2];

    gather(&start[0], states, counters, count);
    x[0] = start[0];
    if (count <= 8) {
        permute(&x[0], 20);
    } else {
        gather(&start[1], states + 8, counters + 8, count - 8);
        x[1] = start[1];
        for (int i = 0; i < 20; i += 2) {
            double_round(&x[0]);
            double_round(&x[1]);
        }
        scatter(keystream + 8 * BLOCK, &x[1], &start[1]);
    }
    scatter(keystream, &x[0], &start[0]);
    chapoly_wipe(start, sizeof start);
    chapoly_wipe(x, sizeof x);
}

/* ---- Two or four blocks, horizontally: groups of two. ---- */

INLINE __m256i left16(__m256i v)
{
    return _mm256_shuffle_epi8(v, load(rotate16));
}

INLINE __m256i left8(__m256i v)
{
    return _mm256_shuffle_epi8(v, load(rotate8));
}

INLINE __m256i left12(__m256i v)
{
    return _mm256_or_si256(_mm256_slli_epi32(v, 12), _mm256_srli_epi32(v, 20));
}

INLINE __m256i left7(__m256i v)
{
    return _mm256_or_si256(_mm256_slli_epi32(v, 7), _mm256_srli_epi32(v, 25));
}

#define ADD_TO(x, y) x = _mm256_add_epi32(x, y)
#define XOR_LEFT(x, y, n) x = left##n(_mm256_xor_si256(x, y))

#define ALL(body)                                                                                                    \
    _Pragma("GCC unroll 2") for (int g = 0; g < groups; g++) { body; }

INLINE void row_quarter_rounds(__m256i a[2], __m256i b[2], __m256i c[2], __m256i d[2], const int groups)
{
    ALL(ADD_TO(a[g], b[g]); XOR_LEFT(d[g], a[g], 16))
    ALL(ADD_TO(c[g], d[g]); XOR_LEFT(b[g], c[g], 12))
    ALL(ADD_TO(a[g], b[g]); XOR_LEFT(d[g], a[g], 8))
    ALL(ADD_TO(c[g], d[g]); XOR_LEFT(b[g], c[g], 7))
}

INLINE void row_rounds(__m256i a[2], __m256i b[2], __m256i c[2], __m256i d[2], unsigned rounds, const int groups)
{
    for (unsigned i = 0; i < rounds; i += 2) {
        row_quarter_rounds(a, b, c, d, groups);
        /* Row b stays: turning a, c and d instead keeps the shuffles off the longest chain, which runs through b. */
        ALL(a[g] = _mm256_shuffle_epi32(a[g], 0x93); d[g] = _mm256_shuffle_epi32(d[g], 0x4e);
            c[g] = _mm256_shuffle_epi32(c[g], 0x39))
        row_quarter_rounds(a, b, c, d, groups);
        ALL(a[g] = _mm256_shuffle_epi32(a[g], 0x39); d[g] = _mm256_shuffle_epi32(d[g], 0x4e);
            c[g] = _mm256_shuffle_epi32(c[g], 0x93))
    }
}

/* Row r of a state, in both halves. */
INLINE __m256i row(const uint32_t state[16], int r)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(state + 4 * r)));
}

INLINE void horizontal(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, const int groups)
{
    __m256i a[2], b[2], c[2], d[2], start[4], counters[2];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        start[i] = row(state, i);
    counters[0] = _mm256_add_epi32(start[3], _mm256_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0));
    counters[1] = _mm256_add_epi32(start[3], _mm256_setr_epi32(2, 0, 0, 0, 3, 0, 0, 0));
    ALL(a[g] = start[0]; b[g] = start[1]; c[g] = start[2]; d[g] = counters[g])
    row_rounds(a, b, c, d, rounds, groups);
#pragma GCC unroll 2
    for (int g = 0; g < groups; g++) {
        uint8_t *const to = dst + g * 2 * BLOCK;
        const uint8_t *const from = src + g * 2 * BLOCK;
        ADD_TO(a[g], start[0]), ADD_TO(b[g], start[1]), ADD_TO(c[g], start[2]), ADD_TO(d[g], counters[g]);
        xor_store(to, from, _mm256_permute2x128_si256(a[g], b[g], 0x20));
        xor_store(to + 32, from + 32, _mm256_permute2x128_si256(c[g], d[g], 0x20));
        xor_store(to + 64, from + 64, _mm256_permute2x128_si256(a[g], b[g], 0x31));
        xor_store(to + 96, from + 96, _mm256_permute2x128_si256(c[g], d[g], 0x31));
    }
}

NOINLINE void blocks2(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    horizontal(dst, src, state, rounds, 1);
}

NOINLINE void blocks4(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    horizontal(dst, src, state, rounds, 2);
}

/* One state instead of two blocks, and no feed-forward. */
AVX2 void chapoly_hchacha_avx2(uint8_t subkey[32], const uint32_t state[16], unsigned rounds)
{
    __m256i a[2] = {row(state, 0)}, b[2] = {row(state, 1)}, c[2] = {row(state, 2)}, d[2] = {row(state, 3)};

    row_rounds(a, b, c, d, rounds, 1);
    _mm256_storeu_si256((void *)subkey, _mm256_permute2x128_si256(a[0], d[0], 0x20));
}

static const uint8_t zeros[8 * BLOCK];

AVX2 size_t chapoly_chacha_pass_avx2(uint8_t *keystream, const uint32_t state[16], size_t blocks)
{
    eight_blocks x;

    if (blocks <= 2) {
        blocks2(keystream, zeros, state, 20);
        return 2;
    }
    if (blocks <= 4) {
        blocks4(keystream, zeros, state, 20);
        return 4;
    }
    blocks8(keystream, zeros, state, 20, &x);
    chapoly_wipe(&x, sizeof x);
    return 8;
}

AVX2 void chapoly_chacha_xor_avx2(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                  unsigned rounds)
{
    const bool wide = len > 4 * BLOCK;
    uint32_t at[16];
    uint8_t buffer[8 * BLOCK];
    eight_blocks x[2]; /* as secret as the key, which running the rounds backwards would give */

    memcpy(at, state, sizeof at);
    for (; len >= 16 * BLOCK; len -= 16 * BLOCK, dst += 16 * BLOCK, src += 16 * BLOCK, at[12] += 16)
        blocks16(dst, src, at, rounds, x);
    for (; len >= 8 * BLOCK; len -= 8 * BLOCK, dst += 8 * BLOCK, src += 8 * BLOCK, at[12] += 8)
        blocks8(dst, src, at, rounds, x);
    if (len > 0) { /* the narrowest that holds the rest, in a buffer if it is wider than that */
        const size_t size = (len > 4 * BLOCK ? 8 : len > 2 * BLOCK ? 4 : 2) * BLOCK;
        uint8_t *const to = len == size ? dst : buffer;
        const uint8_t *const from = len == size ? src : zeros;
        if (size == 8 * BLOCK)
            blocks8(to, from, at, rounds, x);
        else
            (size == 4 * BLOCK ? blocks4 : blocks2)(to, from, at, rounds);
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
