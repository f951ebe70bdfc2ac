/*
 * The AVX-512 instructions that the kernels use, in plain C, so that their whole logic is tested on any CPU: a kernel
 * compiled with this folder in front of the compiler's own headers contains none of them. Semantics from Intel's
 * Architecture Instruction Set Reference; test_instructions.c compares each with a second definition, and with the real
 * instruction where the CPU has it. Masked loads and stores touch the bytes of their mask only, as the real ones do, so
 * guard pages see what the kernel may not.
 */
#ifndef EMULATED_IMMINTRIN_H
#define EMULATED_IMMINTRIN_H

#include <stdint.h>
#include <string.h>

/* Functions of the kernel are to be compiled for the machine at hand. */
#define target(features)

typedef uint8_t __mmask8;
typedef uint16_t __mmask16;
typedef uint32_t __mmask32;
typedef uint64_t __mmask64;
typedef union { uint8_t b[16]; uint32_t d[4]; uint64_t q[2]; } __m128i;
typedef union { uint8_t b[32]; uint32_t d[8]; uint64_t q[4]; } __m256i;
typedef union { uint8_t b[64]; uint32_t d[16]; uint64_t q[8]; } __m512i;

/* Never inlined, for then the unrolled kernels would take a compiler minutes, with sanitizers. */
#define FUNCTION static __attribute__((noinline, unused))

/* A function of two vectors, of which element `i` of size `e` is an expression. */
#define ELEMENTS2(bits, name, e, expression)                                                                         \
    FUNCTION __m##bits##i name(__m##bits##i x, __m##bits##i y)                                                       \
    {                                                                                                                \
        __m##bits##i out;                                                                                            \
        for (unsigned i = 0; i < sizeof out.e / sizeof out.e[0]; i++)                                                \
            out.e[i] = expression;                                                                                   \
        return out;                                                                                                  \
    }

/* A function of one vector and an immediate operand n. */
#define ELEMENTS1(bits, name, e, expression)                                                                         \
    FUNCTION __m##bits##i name(__m##bits##i x, int n)                                                                \
    {                                                                                                                \
        __m##bits##i out;                                                                                            \
        for (unsigned i = 0; i < sizeof out.e / sizeof out.e[0]; i++)                                                \
            out.e[i] = expression;                                                                                   \
        return out;                                                                                                  \
    }

FUNCTION __m128i _mm_loadu_si128(const void *p)
{
    __m128i out;
    memcpy(&out, p, sizeof out);
    return out;
}

FUNCTION __m128i _mm_setr_epi32(int a, int b, int c, int d)
{
    return (__m128i){.d = {(uint32_t)a, (uint32_t)b, (uint32_t)c, (uint32_t)d}};
}

/* ---- What both widths have. ---- */

#define BOTH(bits, p, mask32, mask8)                                                                                 \
    FUNCTION __m##bits##i p##_loadu_si##bits(const void *from)                                                       \
    {                                                                                                                \
        __m##bits##i out;                                                                                            \
        memcpy(&out, from, sizeof out);                                                                              \
        return out;                                                                                                  \
    }                                                                                                                \
    FUNCTION __m##bits##i p##_load_si##bits(const void *from)                                                        \
    {                                                                                                                \
        if ((uintptr_t)from % sizeof(__m##bits##i) != 0)                                                             \
            __builtin_trap();                                                                                        \
        return p##_loadu_si##bits(from);                                                                             \
    }                                                                                                                \
    FUNCTION void p##_storeu_si##bits(void *to, __m##bits##i x)                                                      \
    {                                                                                                                \
        memcpy(to, &x, sizeof x);                                                                                    \
    }                                                                                                                \
    FUNCTION __m##bits##i p##_maskz_loadu_epi8(mask8 mask, const void *from)                                         \
    {                                                                                                                \
        __m##bits##i out;                                                                                            \
        for (unsigned i = 0; i < sizeof out; i++)                                                                    \
            out.b[i] = mask >> i & 1 ? ((const volatile uint8_t *)from)[i] : 0;                                      \
        return out;                                                                                                  \
    }                                                                                                                \
    FUNCTION void p##_mask_storeu_epi8(void *to, mask8 mask, __m##bits##i x)                                         \
    {                                                                                                                \
        for (unsigned i = 0; i < sizeof x; i++)                                                                      \
            if (mask >> i & 1)                                                                                       \
                ((volatile uint8_t *)to)[i] = x.b[i];                                                                \
    }                                                                                                                \
    FUNCTION __m##bits##i p##_mask_set1_epi32(__m##bits##i x, mask32 mask, int value)                                \
    {                                                                                                                \
        for (unsigned i = 0; i < sizeof x / 4; i++)                                                                  \
            x.d[i] = mask >> i & 1 ? (uint32_t)value : x.d[i];                                                       \
        return x;                                                                                                    \
    }                                                                                                                \
    FUNCTION __m##bits##i p##_maskz_set1_epi32(mask32 mask, int value)                                               \
    {                                                                                                                \
        const __m##bits##i zero = {{0}};                                                                             \
        return p##_mask_set1_epi32(zero, mask, value);                                                               \
    }                                                                                                                \
    FUNCTION __m##bits##i p##_set1_epi32(int value)                                                                  \
    {                                                                                                                \
        return p##_maskz_set1_epi32((mask32)~(mask32)0, value);                                                      \
    }                                                                                                                \
    FUNCTION __m##bits##i p##_broadcast_i32x4(__m128i x)                                                             \
    {                                                                                                                \
        __m##bits##i out;                                                                                            \
        for (unsigned i = 0; i < sizeof out / 4; i++)                                                                \
            out.d[i] = x.d[i % 4];                                                                                   \
        return out;                                                                                                  \
    }                                                                                                                \
    ELEMENTS2(bits, p##_add_epi32, d, x.d[i] + y.d[i])                                                               \
    ELEMENTS2(bits, p##_xor_epi32, d, x.d[i] ^ y.d[i])                                                               \
    /* the count mod 32 */                                                                                           \
    ELEMENTS1(bits, p##_rol_epi32, d, n % 32 == 0 ? x.d[i] : x.d[i] << n % 32 | x.d[i] >> (32 - n % 32))             \
    /* within each lane of 128 bits, two bits of n choose the source of an element */                                \
    ELEMENTS1(bits, p##_shuffle_epi32, d, x.d[i / 4 * 4 + (unsigned)(n >> 2 * (i % 4) & 3)])                         \
    /* lanes of 128 bits: the lower half of the result from x, the upper half from y */                              \
    FUNCTION __m##bits##i p##_shuffle_i32x4(__m##bits##i x, __m##bits##i y, int n)                                   \
    {                                                                                                                \
        enum { LANES_ = bits / 128, CHOICE = LANES_ / 2 }; /* CHOICE is also the number of bits that choose */       \
        __m##bits##i out;                                                                                            \
        for (unsigned i = 0; i < LANES_; i++)                                                                        \
            memcpy(&out.q[2 * i], &(i < CHOICE ? &x : &y)->q[2 * (n >> CHOICE * i & (LANES_ - 1))], 16);             \
        return out;                                                                                                  \
    }                                                                                                                \
    /* within each lane of 128 bits, elements of x and y by turns */                                                 \
    ELEMENTS2(bits, p##_unpacklo_epi32, d, (i % 2 ? &y : &x)->d[i / 4 * 4 + i % 4 / 2])                              \
    ELEMENTS2(bits, p##_unpackhi_epi32, d, (i % 2 ? &y : &x)->d[i / 4 * 4 + i % 4 / 2 + 2])                          \
    ELEMENTS2(bits, p##_unpacklo_epi64, q, (i % 2 ? &y : &x)->q[i / 2 * 2])                                          \
    ELEMENTS2(bits, p##_unpackhi_epi64, q, (i % 2 ? &y : &x)->q[i / 2 * 2 + 1])

BOTH(256, _mm256, __mmask8, __mmask32)
BOTH(512, _mm512, __mmask16, __mmask64)

/* ---- 64-bit elements of 512-bit vectors. ---- */

FUNCTION void _mm512_store_si512(void *to, __m512i x)
{
    if ((uintptr_t)to % sizeof x != 0)
        __builtin_trap();
    memcpy(to, &x, sizeof x);
}

FUNCTION __m512i _mm512_mask_broadcast_i32x4(__m512i otherwise, __mmask16 mask, __m128i x)
{
    for (unsigned i = 0; i < 16; i++)
        otherwise.d[i] = mask >> i & 1 ? x.d[i % 4] : otherwise.d[i];
    return otherwise;
}

FUNCTION __m512i _mm512_set1_epi64(long long value)
{
    __m512i out;
    for (unsigned i = 0; i < 8; i++)
        out.q[i] = (uint64_t)value;
    return out;
}

FUNCTION __m512i _mm512_setzero_si512(void)
{
    return _mm512_set1_epi64(0);
}

ELEMENTS2(512, _mm512_add_epi64, q, x.q[i] + y.q[i])
ELEMENTS2(512, _mm512_sub_epi64, q, x.q[i] - y.q[i])
ELEMENTS2(512, _mm512_and_si512, q, x.q[i] & y.q[i])
ELEMENTS2(512, _mm512_or_si512, q, x.q[i] | y.q[i])
ELEMENTS2(512, _mm512_permutexvar_epi64, q, y.q[x.q[i] % 8])
ELEMENTS1(512, _mm512_slli_epi64, q, n > 63 ? 0 : x.q[i] << n)
ELEMENTS1(512, _mm512_srli_epi64, q, n > 63 ? 0 : x.q[i] >> n)

/* The lower half of (y:x) >> n, n mod 64. */
FUNCTION __m512i _mm512_shrdi_epi64(__m512i x, __m512i y, int n)
{
    for (unsigned i = 0; i < 8; i++)
        x.q[i] = n % 64 == 0 ? x.q[i] : x.q[i] >> n % 64 | y.q[i] << (64 - n % 64);
    return x;
}

/* To z is added the lower or the upper half of the product of 52 by 52 bits. */
__extension__ typedef unsigned __int128 emulated_uint128;
FUNCTION emulated_uint128 emulated_product52(uint64_t x, uint64_t y)
{
    const uint64_t mask52 = (UINT64_C(1) << 52) - 1;
    return (emulated_uint128)(x & mask52) * (y & mask52);
}

FUNCTION __m512i _mm512_madd52lo_epu64(__m512i z, __m512i x, __m512i y)
{
    for (unsigned i = 0; i < 8; i++)
        z.q[i] += (uint64_t)emulated_product52(x.q[i], y.q[i]) & ((UINT64_C(1) << 52) - 1);
    return z;
}

FUNCTION __m512i _mm512_madd52hi_epu64(__m512i z, __m512i x, __m512i y)
{
    for (unsigned i = 0; i < 8; i++)
        z.q[i] += (uint64_t)(emulated_product52(x.q[i], y.q[i]) >> 52);
    return z;
}

FUNCTION __m512i _mm512_mask_mov_epi64(__m512i otherwise, __mmask8 mask, __m512i x)
{
    for (unsigned i = 0; i < 8; i++)
        x.q[i] = mask >> i & 1 ? x.q[i] : otherwise.q[i];
    return x;
}

FUNCTION __m512i _mm512_maskz_permutexvar_epi64(__mmask8 mask, __m512i x, __m512i y)
{
    return _mm512_mask_mov_epi64(_mm512_setzero_si512(), mask, _mm512_permutexvar_epi64(x, y));
}

FUNCTION __m512i _mm512_mask_or_epi64(__m512i otherwise, __mmask8 mask, __m512i x, __m512i y)
{
    return _mm512_mask_mov_epi64(otherwise, mask, _mm512_or_si512(x, y));
}

FUNCTION __m512i _mm512_mask_add_epi64(__m512i otherwise, __mmask8 mask, __m512i x, __m512i y)
{
    return _mm512_mask_mov_epi64(otherwise, mask, _mm512_add_epi64(x, y));
}

#define COMPARE(name, condition)                                                                                     \
    FUNCTION __mmask8 name(__m512i x, __m512i y)                                                                     \
    {                                                                                                                \
        __mmask8 out = 0;                                                                                            \
        for (unsigned i = 0; i < 8; i++)                                                                             \
            out |= (__mmask8)((condition) << i);                                                                     \
        return out;                                                                                                  \
    }
COMPARE(_mm512_test_epi64_mask, (x.q[i] & y.q[i]) != 0)
COMPARE(_mm512_cmpge_epu64_mask, x.q[i] >= y.q[i])
COMPARE(_mm512_cmpeq_epu64_mask, x.q[i] == y.q[i])

FUNCTION long long _mm512_reduce_add_epi64(__m512i x)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < 8; i++)
        sum += x.q[i];
    return (long long)sum;
}

#endif
