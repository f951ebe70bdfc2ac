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

#include <immintrin.h>
#include <string.h>

chapoly_chacha_xor_fn chapoly_chacha_xor_avx2;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline)) AVX2
#define NOINLINE static __attribute__((noinline)) AVX2

enum { BLOCK = CHAPOLY_BLOCK_SIZE };

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

INLINE void xor_store(uint8_t *dst, const uint8_t *src, __m256i keystream)
{
    _mm256_storeu_si256((void *)dst, _mm256_xor_si256(load(src), keystream));
}

/* Both halves of a vector: rotations by 16 and 8 bits are moves of bytes, the others two shifts. */
INLINE __m256i left16(__m256i v)
{
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6,
                                                   7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
}

INLINE __m256i left8(__m256i v)
{
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, 3, 0, 1, 2, 7,
                                                   4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14));
}

INLINE __m256i left12(__m256i v)
{
    return _mm256_or_si256(_mm256_slli_epi32(v, 12), _mm256_srli_epi32(v, 20));
}

INLINE __m256i left7(__m256i v)
{
    return _mm256_or_si256(_mm256_slli_epi32(v, 7), _mm256_srli_epi32(v, 25));
}

#define ADD(x, y) x = _mm256_add_epi32(x, y)
#define XOR_LEFT(x, y, n) x = left##n(_mm256_xor_si256(x, y))

/* ---- Eight blocks, word-sliced. ---- */

/* Four quarter rounds (RFC 8439 2.1) side by side, on words a + i, b + (i + s) mod 4 and so on: s = 0 columns, 1 diagonals. */
INLINE void four_quarter_rounds(__m256i x[16], const int s)
{
#define EACH(body)                                                                                                   \
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                                              \
    {                                                                                                                \
        const int a = i, b = 4 + (i + s) % 4, c = 8 + (i + 2 * s) % 4, d = 12 + (i + 3 * s) % 4;                     \
        body;                                                                                                        \
        (void)a, (void)b, (void)c, (void)d;                                                                          \
    }
    EACH(ADD(x[a], x[b]); XOR_LEFT(x[d], x[a], 16))
    EACH(ADD(x[c], x[d]); XOR_LEFT(x[b], x[c], 12))
    EACH(ADD(x[a], x[b]); XOR_LEFT(x[d], x[a], 8))
    EACH(ADD(x[c], x[d]); XOR_LEFT(x[b], x[c], 7))
#undef EACH
}

/* Words 8h to 8h + 7 of eight blocks, transposed to 32 bytes of each, xored and stored. */
INLINE void finish_half(uint8_t *dst, const uint8_t *src, const __m256i w[8])
{
    __m256i q[8]; /* q[j], q[4 + j]: words 0-3 and 4-7 of blocks j and j + 4 */

#pragma GCC unroll 2
    for (int r = 0; r < 8; r += 4) {
        const __m256i lo = _mm256_unpacklo_epi32(w[r], w[r + 1]), lo2 = _mm256_unpacklo_epi32(w[r + 2], w[r + 3]);
        const __m256i hi = _mm256_unpackhi_epi32(w[r], w[r + 1]), hi2 = _mm256_unpackhi_epi32(w[r + 2], w[r + 3]);
        q[r] = _mm256_unpacklo_epi64(lo, lo2);
        q[r + 1] = _mm256_unpackhi_epi64(lo, lo2);
        q[r + 2] = _mm256_unpacklo_epi64(hi, hi2);
        q[r + 3] = _mm256_unpackhi_epi64(hi, hi2);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        xor_store(dst + j * BLOCK, src + j * BLOCK, _mm256_permute2x128_si256(q[j], q[4 + j], 0x20));
        xor_store(dst + (j + 4) * BLOCK, src + (j + 4) * BLOCK, _mm256_permute2x128_si256(q[j], q[4 + j], 0x31));
    }
}

NOINLINE void blocks8(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds)
{
    const __m256i counters = _mm256_add_epi32(_mm256_set1_epi32((int)state[12]), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i x[16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x[i] = i == 12 ? counters : _mm256_set1_epi32((int)state[i]);
    for (unsigned i = 0; i < rounds; i += 2) {
        four_quarter_rounds(x, 0);
        four_quarter_rounds(x, 1);
    }
    /* The feed-forward: 32-bit adds in each lane. */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        ADD(x[i], i == 12 ? counters : _mm256_set1_epi32((int)state[i]));
    finish_half(dst, src, x);
    finish_half(dst + 32, src + 32, x + 8);
}

/* ---- Two or four blocks, horizontally: groups of two. ---- */

#define ALL(body)                                                                                                    \
    _Pragma("GCC unroll 2") for (int g = 0; g < groups; g++) { body; }

INLINE void row_quarter_rounds(__m256i a[2], __m256i b[2], __m256i c[2], __m256i d[2], const int groups)
{
    ALL(ADD(a[g], b[g]); XOR_LEFT(d[g], a[g], 16))
    ALL(ADD(c[g], d[g]); XOR_LEFT(b[g], c[g], 12))
    ALL(ADD(a[g], b[g]); XOR_LEFT(d[g], a[g], 8))
    ALL(ADD(c[g], d[g]); XOR_LEFT(b[g], c[g], 7))
}

INLINE void horizontal(uint8_t *dst, const uint8_t *src, const uint32_t state[16], unsigned rounds, const int groups)
{
    __m256i a[2], b[2], c[2], d[2], start[4], counters[2];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        start[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(state + 4 * i)));
    counters[0] = _mm256_add_epi32(start[3], _mm256_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0));
    counters[1] = _mm256_add_epi32(start[3], _mm256_setr_epi32(2, 0, 0, 0, 3, 0, 0, 0));
    ALL(a[g] = start[0]; b[g] = start[1]; c[g] = start[2]; d[g] = counters[g])

    for (unsigned i = 0; i < rounds; i += 2) {
        row_quarter_rounds(a, b, c, d, groups);
        /* Row b stays: turning a, c and d instead keeps the shuffles off the longest chain, which runs through b. */
        ALL(a[g] = _mm256_shuffle_epi32(a[g], 0x93); d[g] = _mm256_shuffle_epi32(d[g], 0x4e);
            c[g] = _mm256_shuffle_epi32(c[g], 0x39))
        row_quarter_rounds(a, b, c, d, groups);
        ALL(a[g] = _mm256_shuffle_epi32(a[g], 0x39); d[g] = _mm256_shuffle_epi32(d[g], 0x4e);
            c[g] = _mm256_shuffle_epi32(c[g], 0x93))
    }
#pragma GCC unroll 2
    for (int g = 0; g < groups; g++) {
        uint8_t *const to = dst + g * 2 * BLOCK;
        const uint8_t *const from = src + g * 2 * BLOCK;
        ADD(a[g], start[0]), ADD(b[g], start[1]), ADD(c[g], start[2]), ADD(d[g], counters[g]);
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

AVX2 void chapoly_chacha_xor_avx2(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                  unsigned rounds)
{
    uint32_t at[16];

    memcpy(at, state, sizeof at);
    for (; len >= 8 * BLOCK; len -= 8 * BLOCK, dst += 8 * BLOCK, src += 8 * BLOCK, at[12] += 8)
        blocks8(dst, src, at, rounds);
    if (len > 0) { /* the narrowest that holds the rest, in a buffer if it is wider than that */
        const size_t size = (len > 4 * BLOCK ? 8 : len > 2 * BLOCK ? 4 : 2) * BLOCK;
        uint8_t buffer[8 * BLOCK], *out = dst;
        if (len < size) {
            src = memcpy(buffer, src, len);
            out = buffer;
        }
        (size == 8 * BLOCK ? blocks8 : size == 4 * BLOCK ? blocks4 : blocks2)(out, src, at, rounds);
        if (len < size) {
            memcpy(dst, buffer, len);
            chapoly_wipe(buffer, size);
        }
    }
    chapoly_wipe(at, sizeof at);
}

#endif
