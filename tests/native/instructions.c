/*
 * The functions of instructions.h, with the immintrin.h that the build puts first: the emulated one, or the compiler's.
 */
#include "instructions.h"

#include <immintrin.h>

#if defined(EMULATED_IMMINTRIN_H)
#define REAL
#define TABLE emulated_instructions
#else
#define REAL __attribute__((target("avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi2")))
#define TABLE real_instructions
#endif

#define X512 _mm512_loadu_si512((const void *)o->x)
#define Y512 _mm512_loadu_si512((const void *)o->y)
#define Z512 _mm512_loadu_si512((const void *)o->z)
#define X256 _mm256_loadu_si256((const void *)o->x)
#define Y256 _mm256_loadu_si256((const void *)o->y)
#define OUT512(v) _mm512_storeu_si512((void *)out, v)
#define OUT256(v) _mm256_storeu_si256((void *)out, v)

/* FUNCTIONS(F) is F(name, statement) for each. */
#define BOTH_WIDTHS(F, bits, p, mask32, mask8)                                                                       \
    F(p##_add_epi32, OUT##bits(p##_add_epi32(X##bits, Y##bits)))                                                     \
    F(p##_xor_epi32, OUT##bits(p##_xor_epi32(X##bits, Y##bits)))                                                     \
    F(p##_rol_epi32_16, OUT##bits(p##_rol_epi32(X##bits, 16)))                                                       \
    F(p##_rol_epi32_12, OUT##bits(p##_rol_epi32(X##bits, 12)))                                                       \
    F(p##_rol_epi32_8, OUT##bits(p##_rol_epi32(X##bits, 8)))                                                         \
    F(p##_rol_epi32_7, OUT##bits(p##_rol_epi32(X##bits, 7)))                                                         \
    F(p##_shuffle_epi32_0x39, OUT##bits(p##_shuffle_epi32(X##bits, 0x39)))                                           \
    F(p##_shuffle_epi32_0x4e, OUT##bits(p##_shuffle_epi32(X##bits, 0x4e)))                                           \
    F(p##_shuffle_epi32_0x93, OUT##bits(p##_shuffle_epi32(X##bits, 0x93)))                                           \
    F(p##_unpacklo_epi32, OUT##bits(p##_unpacklo_epi32(X##bits, Y##bits)))                                           \
    F(p##_unpackhi_epi32, OUT##bits(p##_unpackhi_epi32(X##bits, Y##bits)))                                           \
    F(p##_unpacklo_epi64, OUT##bits(p##_unpacklo_epi64(X##bits, Y##bits)))                                           \
    F(p##_unpackhi_epi64, OUT##bits(p##_unpackhi_epi64(X##bits, Y##bits)))                                           \
    F(p##_broadcast_i32x4, OUT##bits(p##_broadcast_i32x4(_mm_loadu_si128((const void *)o->x))))                      \
    F(p##_set1_epi32, OUT##bits(p##_set1_epi32((int)o->word)))                                                       \
    F(p##_mask_set1_epi32, OUT##bits(p##_mask_set1_epi32(X##bits, (mask32)o->mask, (int)o->word)))                   \
    F(p##_maskz_set1_epi32, OUT##bits(p##_maskz_set1_epi32((mask32)o->mask, (int)o->word)))                          \
    F(p##_maskz_loadu_epi8, OUT##bits(p##_maskz_loadu_epi8((mask8)o->mask, (const uint8_t *)o->x + 1)))              \
    F(p##_mask_storeu_epi8, p##_mask_storeu_epi8(out, (mask8)o->mask, X##bits))

#define FUNCTIONS(F)                                                                                                 \
    BOTH_WIDTHS(F, 256, _mm256, __mmask8, __mmask32)                                                                 \
    BOTH_WIDTHS(F, 512, _mm512, __mmask16, __mmask64)                                                                \
    F(_mm256_shuffle_i32x4_0, OUT256(_mm256_shuffle_i32x4(X256, Y256, 0)))                                           \
    F(_mm256_shuffle_i32x4_3, OUT256(_mm256_shuffle_i32x4(X256, Y256, 3)))                                           \
    F(_mm512_shuffle_i32x4_0x44, OUT512(_mm512_shuffle_i32x4(X512, Y512, 0x44)))                                     \
    F(_mm512_shuffle_i32x4_0xee, OUT512(_mm512_shuffle_i32x4(X512, Y512, 0xee)))                                     \
    F(_mm512_shuffle_i32x4_0x88, OUT512(_mm512_shuffle_i32x4(X512, Y512, 0x88)))                                     \
    F(_mm512_shuffle_i32x4_0xdd, OUT512(_mm512_shuffle_i32x4(X512, Y512, 0xdd)))                                     \
    F(_mm512_maskz_permutexvar_epi64, OUT512(_mm512_maskz_permutexvar_epi64((__mmask8)o->mask, X512, Y512)))         \
    F(_mm512_mask_broadcast_i32x4,                                                                                   \
      OUT512(_mm512_mask_broadcast_i32x4(X512, (__mmask16)o->mask, _mm_loadu_si128((const void *)o->y))))            \
    F(_mm512_set1_epi64, OUT512(_mm512_set1_epi64((long long)o->word)))                                              \
    F(_mm512_setzero_si512, OUT512(_mm512_setzero_si512()))                                                          \
    F(_mm512_add_epi64, OUT512(_mm512_add_epi64(X512, Y512)))                                                        \
    F(_mm512_sub_epi64, OUT512(_mm512_sub_epi64(X512, Y512)))                                                        \
    F(_mm512_and_si512, OUT512(_mm512_and_si512(X512, Y512)))                                                        \
    F(_mm512_or_si512, OUT512(_mm512_or_si512(X512, Y512)))                                                          \
    F(_mm512_permutexvar_epi64, OUT512(_mm512_permutexvar_epi64(X512, Y512)))                                        \
    F(_mm512_slli_epi64_2, OUT512(_mm512_slli_epi64(X512, 2)))                                                       \
    F(_mm512_slli_epi64_4, OUT512(_mm512_slli_epi64(X512, 4)))                                                       \
    F(_mm512_slli_epi64_8, OUT512(_mm512_slli_epi64(X512, 8)))                                                       \
    F(_mm512_slli_epi64_24, OUT512(_mm512_slli_epi64(X512, 24)))                                                     \
    F(_mm512_slli_epi64_44, OUT512(_mm512_slli_epi64(X512, 44)))                                                     \
    F(_mm512_srli_epi64_20, OUT512(_mm512_srli_epi64(X512, 20)))                                                     \
    F(_mm512_srli_epi64_24, OUT512(_mm512_srli_epi64(X512, 24)))                                                     \
    F(_mm512_srli_epi64_42, OUT512(_mm512_srli_epi64(X512, 42)))                                                     \
    F(_mm512_srli_epi64_44, OUT512(_mm512_srli_epi64(X512, 44)))                                                     \
    F(_mm512_shrdi_epi64_44, OUT512(_mm512_shrdi_epi64(X512, Y512, 44)))                                             \
    F(_mm512_madd52lo_epu64, OUT512(_mm512_madd52lo_epu64(Z512, X512, Y512)))                                        \
    F(_mm512_madd52hi_epu64, OUT512(_mm512_madd52hi_epu64(Z512, X512, Y512)))                                        \
    F(_mm512_mask_mov_epi64, OUT512(_mm512_mask_mov_epi64(Z512, (__mmask8)o->mask, X512)))                           \
    F(_mm512_mask_or_epi64, OUT512(_mm512_mask_or_epi64(Z512, (__mmask8)o->mask, X512, Y512)))                       \
    F(_mm512_mask_add_epi64, OUT512(_mm512_mask_add_epi64(Z512, (__mmask8)o->mask, X512, Y512)))                     \
    F(_mm512_test_epi64_mask, out[0] = _mm512_test_epi64_mask(X512, Y512))                                           \
    F(_mm512_cmpge_epu64_mask, out[0] = _mm512_cmpge_epu64_mask(X512, Y512))                                         \
    F(_mm512_cmpeq_epu64_mask, out[0] = _mm512_cmpeq_epu64_mask(X512, Y512))                                         \
    F(_mm512_reduce_add_epi64, out[0] = (uint64_t)_mm512_reduce_add_epi64(_mm512_srli_epi64(X512, 4)))

#define DEFINE(name, statement)                                                                                      \
    static REAL void run##name(uint64_t out[8], const struct operands *o)                                            \
    {                                                                                                                \
        (void)o;                                                                                                     \
        statement;                                                                                                   \
    }
FUNCTIONS(DEFINE)

#define ENTRY(name, statement) {#name, run##name},
const struct instruction TABLE[INSTRUCTIONS] = {FUNCTIONS(ENTRY)};
