/*
 * chacha20_sse2.h: ChaCha of four blocks in the vectors of SSE2, word-sliced: vector i holds word i of each block, one
 * block per 32-bit lane.
 */
#ifndef CHAPOLY_CHACHA20_SSE2_H
#define CHAPOLY_CHACHA20_SSE2_H

#include <emmintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

enum { BLOCK = CHAPOLY_BLOCK_SIZE };

INLINE __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

INLINE void xor_store(uint8_t *dst, const uint8_t *src, __m128i keystream)
{
    _mm_storeu_si128((void *)dst, _mm_xor_si128(load(src), keystream));
}

INLINE __m128i left(__m128i v, const int n)
{
    if (n == 16) /* both halves of each word change places */
        return _mm_shufflehi_epi16(_mm_shufflelo_epi16(v, 0xb1), 0xb1);
    return _mm_or_si128(_mm_slli_epi32(v, n), _mm_srli_epi32(v, 32 - n));
}

#define ADD(x, y) x = _mm_add_epi32(x, y)
#define XOR_LEFT(x, y, n) x = left(_mm_xor_si128(x, y), n)

/* Word i of four blocks. */
typedef struct {
    __m128i word[16];
} four_blocks;

INLINE __m128i four_counters(const uint32_t state[16], uint32_t skip)
{
    return _mm_add_epi32(_mm_set1_epi32((int)(state[12] + skip)), _mm_setr_epi32(0, 1, 2, 3));
}

INLINE void start(four_blocks *x, const uint32_t state[16], uint32_t skip)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x->word[i] = i == 12 ? four_counters(state, skip) : _mm_set1_epi32((int)state[i]);
}

/* Four quarter rounds (RFC 8439 2.1) side by side, on words i, 4 + (i + s) mod 4 and so on; s = 1: diagonals. */
INLINE void four_quarter_rounds(__m128i x[16], const int s)
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

INLINE void double_round(four_blocks *x)
{
    __m128i word[16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        word[i] = x->word[i];
    four_quarter_rounds(word, 0);
    four_quarter_rounds(word, 1);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x->word[i] = word[i];
}

/* The four 32-bit words in each of four vectors change places: lane j of w[i] becomes lane i of w[j]. */
INLINE void transpose(__m128i w[4])
{
    const __m128i lo = _mm_unpacklo_epi32(w[0], w[1]), lo2 = _mm_unpacklo_epi32(w[2], w[3]);
    const __m128i hi = _mm_unpackhi_epi32(w[0], w[1]), hi2 = _mm_unpackhi_epi32(w[2], w[3]);

    w[0] = _mm_unpacklo_epi64(lo, lo2);
    w[1] = _mm_unpackhi_epi64(lo, lo2);
    w[2] = _mm_unpacklo_epi64(hi, hi2);
    w[3] = _mm_unpackhi_epi64(hi, hi2);
}

/* The feed-forward, 32-bit adds in each lane; then four words of four blocks at a time, transposed. */
INLINE void finish(uint8_t *dst, const uint8_t *src, const four_blocks *x, const uint32_t state[16], uint32_t skip)
{
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) {
        __m128i w[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            w[i] = _mm_add_epi32(x->word[r + i], r + i == 12 ? four_counters(state, skip)
                                                             : _mm_set1_epi32((int)state[r + i]));
        transpose(w);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            xor_store(dst + j * BLOCK + 4 * r, src + j * BLOCK + 4 * r, w[j]);
    }
}

#endif
