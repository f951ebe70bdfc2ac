/*
 * chacha20_avx2.h: eight blocks of ChaCha (RFC 8439 2.3) side by side in AVX2 registers, for the cipher and the AEAD.
 *
 * Word-sliced: vector i holds word i of each block, one block per 32-bit lane, so that the four quarter rounds of a
 * round stand side by side. Sixteen vectors of state fill the sixteen registers, and rotating needs one more: compilers
 * spill a dozen of them in every round, each in its own way. So the double round is written in assembly: word 0 stays
 * in memory, where each of its sums is put as soon as it is made, and ymm0 is free for what is temporary.
 */
#ifndef CHAPOLY_CHACHA20_AVX2_H
#define CHAPOLY_CHACHA20_AVX2_H

#include <immintrin.h>

#include "../bytes.h"
#include "../kernel.h"

#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline)) AVX2

enum { BLOCK = CHAPOLY_BLOCK_SIZE };

/* Word i of eight blocks. */
typedef struct {
    __m256i word[16];
} eight_blocks;

/* What moves the bytes of each 32-bit word so that it is rotated left by 16 and by 8 bits. */
static const uint8_t rotate16[32] __attribute__((aligned(32))) = {
    2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13};
static const uint8_t rotate8[32] __attribute__((aligned(32))) = {
    3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14};

/* One instruction each, or a few; a, b, c, d, x, y are numbers of registers, and of words but for 0. */
#define YMM(n) "%%ymm" #n
#define ADD(x, y) "vpaddd " YMM(y) ", " YMM(x) ", " YMM(x) "\n\t"
#define XOR(x, y) "vpxor " YMM(y) ", " YMM(x) ", " YMM(x) "\n\t"
#define LEFT16(x) "vpshufb %[rotate16], " YMM(x) ", " YMM(x) "\n\t"
#define LEFT8(x) "vpshufb %[rotate8], " YMM(x) ", " YMM(x) "\n\t"
#define LEFT(x, left, right)                                                                                         \
    "vpslld $" #left ", " YMM(x) ", %%ymm0\n\t"                                                                      \
    "vpsrld $" #right ", " YMM(x) ", " YMM(x) "\n\t"                                                                 \
    "vpor %%ymm0, " YMM(x) ", " YMM(x) "\n\t"
#define LEFT12(x) LEFT(x, 12, 20)
#define LEFT7(x) LEFT(x, 7, 25)

/* The halves of a quarter round, RFC 8439 2.1: a += b; d = (d ^ a) <<< left. Then c += d; b = (b ^ c) <<< left. */
#define STEP(a, b, d, left) ADD(a, b) XOR(d, a) left(d)
#define STEP0(b, d, left)                                                                                            \
    "vpaddd (%[words]), " YMM(b) ", %%ymm0\n\t"                                                                      \
    "vmovdqa %%ymm0, (%[words])\n\t" XOR(d, 0) left(d)
#define STEPS_AD(b0, b1, b2, b3, d0, d1, d2, d3, left)                                                               \
    STEP0(b0, d0, left) STEP(1, b1, d1, left) STEP(2, b2, d2, left) STEP(3, b3, d3, left)
#define STEPS_CB(c0, c1, c2, c3, d0, d1, d2, d3, b0, b1, b2, b3, left)                                               \
    STEP(c0, d0, b0, left) STEP(c1, d1, b1, left) STEP(c2, d2, b2, left) STEP(c3, d3, b3, left)
#define ROUND(other, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3)                                                 \
    STEPS_AD(b0, b1, b2, b3, d0, d1, d2, d3, LEFT16)                                                                 \
    STEPS_CB(c0, c1, c2, c3, d0, d1, d2, d3, b0, b1, b2, b3, LEFT12)                                                 \
    other                                                                                                            \
    STEPS_AD(b0, b1, b2, b3, d0, d1, d2, d3, LEFT8)                                                                  \
    STEPS_CB(c0, c1, c2, c3, d0, d1, d2, d3, b0, b1, b2, b3, LEFT7)

/* A double round, with work for other units of the processor (the AEAD's) in the middle of its halves and between. */
#define COLUMNS(other) ROUND(other, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define DIAGONALS(other) ROUND(other, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14)
#define DOUBLE_ROUND COLUMNS("") DIAGONALS("")

#define EACH_REGISTER(move)                                                                                          \
    move(1) move(2) move(3) move(4) move(5) move(6) move(7) move(8) move(9) move(10) move(11) move(12) move(13)      \
        move(14) move(15)
#define FETCH(i) "vmovdqa 32*" #i "(%[words]), " YMM(i) "\n\t"
#define PUT_BACK(i) "vmovdqa " YMM(i) ", 32*" #i "(%[words])\n\t"
#define ALL_REGISTERS                                                                                                \
    "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12",       \
        "ymm13", "ymm14", "ymm15"

/* All rounds of eight blocks, in registers from first to last. */
INLINE void permute(eight_blocks *x, unsigned rounds)
{
    __asm__(EACH_REGISTER(FETCH)
            "1:\n\t" DOUBLE_ROUND "sub $2, %[rounds]\n\t"
            "jne 1b\n\t" EACH_REGISTER(PUT_BACK)
            : "+m"(*x), [rounds] "+r"(rounds)
            : [words] "r"(x), [rotate16] "m"(rotate16), [rotate8] "m"(rotate8)
            : "cc", ALL_REGISTERS);
}

/* One column round and one diagonal round. */
INLINE void double_round(eight_blocks *x)
{
    __asm__(EACH_REGISTER(FETCH) DOUBLE_ROUND EACH_REGISTER(PUT_BACK)
            : "+m"(*x)
            : [words] "r"(x), [rotate16] "m"(rotate16), [rotate8] "m"(rotate8)
            : ALL_REGISTERS);
}

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

INLINE void xor_store(uint8_t *dst, const uint8_t *src, __m256i keystream)
{
    _mm256_storeu_si256((void *)dst, _mm256_xor_si256(load(src), keystream));
}

/* The counters of eight blocks from state[12] + skip on. */
INLINE __m256i eight_counters(const uint32_t state[16], uint32_t skip)
{
    return _mm256_add_epi32(_mm256_set1_epi32((int)(state[12] + skip)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE void start(eight_blocks *x, const uint32_t state[16], uint32_t skip)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x->word[i] = i == 12 ? eight_counters(state, skip) : _mm256_set1_epi32((int)state[i]);
}

/* The eight 32-bit words in each of eight vectors change places: lane j of w[i] becomes lane i of w[j]. */
INLINE void transpose(__m256i w[8])
{
    __m256i q[8]; /* q[j], q[4 + j]: the first four and the last four vectors' lanes j, and j + 4 in the upper half */

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
        w[j] = _mm256_permute2x128_si256(q[j], q[4 + j], 0x20);
        w[4 + j] = _mm256_permute2x128_si256(q[j], q[4 + j], 0x31);
    }
}

/* The feed-forward: 32-bit adds in each lane. Then words 8h to 8h + 7, transposed to 32 bytes of each block, xored. */
INLINE void finish(uint8_t *dst, const uint8_t *src, const eight_blocks *x, const uint32_t state[16], uint32_t skip)
{
#pragma GCC unroll 2
    for (int h = 0; h < 16; h += 8) {
        __m256i w[8];

#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            w[i] = _mm256_add_epi32(x->word[h + i], h + i == 12 ? eight_counters(state, skip)
                                                                : _mm256_set1_epi32((int)state[h + i]));
        transpose(w);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            xor_store(dst + j * BLOCK + 4 * h, src + j * BLOCK + 4 * h, w[j]);
    }
}

/* dst[i] = src[i] ^ keystream[i] for i < len: no byte beyond is touched. */
INLINE void xor_bytes(uint8_t *dst, const uint8_t *src, const uint8_t *keystream, size_t len)
{
    size_t i = 0;

    for (; i + 32 <= len; i += 32)
        xor_store(dst + i, src + i, load(keystream + i));
    for (; i + 8 <= len; i += 8)
        chapoly_store64(dst + i, chapoly_load64(src + i) ^ chapoly_load64(keystream + i));
    for (; i < len; i++)
        dst[i] = src[i] ^ keystream[i];
}

#endif
