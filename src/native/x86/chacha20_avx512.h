/*
 * chacha20_avx512.h: what chacha20_evex.h has, for vectors of 512 bits.
 */
#ifndef CHAPOLY_CHACHA20_AVX512_H
#define CHAPOLY_CHACHA20_AVX512_H

/* All that the kernel needs, so that functions can be inlined into those of the AEAD. */
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi2")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 4, FIRST_WORDS = 0x1111 }; /* the latter as a mask of elements: the first of each lane */
typedef __m512i vector;
typedef __mmask64 vector_mask;
#define V(operation) _mm512_##operation
#define V_SI(operation) _mm512_##operation##_si512

static const int32_t element_numbers[4 * LANES] __attribute__((aligned(64))) = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
};
static const int32_t lane_numbers[4 * LANES] __attribute__((aligned(64))) = {
    0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0,
};

/* The lanes as a matrix of words 0-3, 4-7, 8-11 and 12-15 by blocks, transposed: out[j] is block j. */
INLINE void gather_blocks(vector out[4], vector a, vector b, vector c, vector d)
{
    const vector ab01 = _mm512_shuffle_i32x4(a, b, 0x44), cd01 = _mm512_shuffle_i32x4(c, d, 0x44);
    const vector ab23 = _mm512_shuffle_i32x4(a, b, 0xee), cd23 = _mm512_shuffle_i32x4(c, d, 0xee);

    out[0] = _mm512_shuffle_i32x4(ab01, cd01, 0x88);
    out[1] = _mm512_shuffle_i32x4(ab01, cd01, 0xdd);
    out[2] = _mm512_shuffle_i32x4(ab23, cd23, 0x88);
    out[3] = _mm512_shuffle_i32x4(ab23, cd23, 0xdd);
}

#include "chacha20_evex.h"

#endif
