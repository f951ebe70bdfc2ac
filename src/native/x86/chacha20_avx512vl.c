/*
 * ChaCha (RFC 8439 2.3 and 2.4) for x86-64 with AVX-512 (F, BW, VL), in vectors of 256 bits: for
 * CPUs whose clock falls when vectors are wider.
 */
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>

chapoly_chacha_xor_fn chapoly_chacha_xor_avx512vl;
chapoly_chacha_pass_fn chapoly_chacha_pass_avx512vl;

/*
 * What gcc would do before registers are allocated costs spills in the loop of rounds: scheduling, and merging
 * variables and computing things early across it (gcc 12: 51 accesses to spilled vectors per two rounds, with these
 * options 3).
 */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-schedule-insns2", "no-tree-vectorize", "no-tree-coalesce-vars", \
                     "no-tree-pre", "no-gcse")
#endif

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 2, FIRST_WORDS = 0x11 }; /* the latter as a mask of elements: the first of each lane */
typedef __m256i vector;
typedef __mmask32 vector_mask;
#define V(operation) _mm256_##operation
#define V_SI(operation) _mm256_##operation##_si256

static const int32_t element_numbers[4 * LANES] __attribute__((aligned(32))) = {0, 1, 2, 3, 4, 5, 6, 7};
static const int32_t lane_numbers[4 * LANES] __attribute__((aligned(32))) = {0, 0, 0, 0, 1, 0, 0, 0};

/* The lanes as a matrix of words 0-3, 4-7, 8-11 and 12-15 by blocks, transposed: out[0] and out[1] are block 0. */
INLINE void gather_blocks(vector out[4], vector a, vector b, vector c, vector d)
{
    out[0] = _mm256_shuffle_i32x4(a, b, 0);
    out[1] = _mm256_shuffle_i32x4(c, d, 0);
    out[2] = _mm256_shuffle_i32x4(a, b, 3);
    out[3] = _mm256_shuffle_i32x4(c, d, 3);
}

#include "chacha20_evex.h"
#include "chacha20_evex_any.h"

TARGET void chapoly_chacha_xor_avx512vl(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                        unsigned rounds)
{
    xor_any(dst, src, len, state, rounds);
}

TARGET size_t chapoly_chacha_pass_avx512vl(uint8_t *keystream, const uint32_t state[16], size_t blocks)
{
    static const uint8_t zeros[WIDE * BLOCK];
    const size_t groups = (blocks + LANES - 1) / LANES;
    const size_t made = LANES * (groups > 2 ? groups + groups % 2 : groups);

    (groups > 6   ? blocks_wide
     : groups > 4 ? horizontal6
     : groups > 2 ? horizontal4
     : groups > 1 ? horizontal2
                  : horizontal1)(keystream, zeros, made * BLOCK, state, state[12], 20);
    return made;
}

#endif
