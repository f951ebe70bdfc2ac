/*
 * Whether the emulated instructions are right: each is compared with a second definition, which knows bits and tables
 * of positions but no element-wise arithmetic, and with the real instruction where the CPU has it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chapoly.h"
#include "instructions.h"

/* ---- Bits of vectors, counted from the lowest. ---- */

static bool get(const void *vector, unsigned bit)
{
    return ((const uint8_t *)vector)[bit / 8] >> bit % 8 & 1;
}

static void set(void *vector, unsigned bit, bool value)
{
    uint8_t *const byte = &((uint8_t *)vector)[bit / 8];

    *byte = (uint8_t)((*byte & ~(1u << bit % 8)) | (unsigned)value << bit % 8);
}

static void copy(void *to, unsigned to_bit, const void *from, unsigned from_bit, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++)
        set(to, to_bit + i, get(from, from_bit + i));
}

/* to += from, or to -= from, on so many bits. */
static void sum(void *to, unsigned to_bit, const void *from, unsigned from_bit, unsigned bits, bool negative)
{
    unsigned carry = negative;

    for (unsigned i = 0; i < bits; i++) {
        carry += get(to, to_bit + i) + (get(from, from_bit + i) ^ (unsigned)negative);
        set(to, to_bit + i, carry & 1);
        carry >>= 1;
    }
}

/* ---- The second definitions. ---- */

/* Moves of parts of so many bits, within groups of `parts`: where each comes from, from y if it is `parts` or more. */
static const struct moves {
    const char *name;
    unsigned bits, parts, from[4];
} moves[] = {
    {"shuffle_epi32_0x39", 32, 4, {1, 2, 3, 0}},         {"shuffle_epi32_0x4e", 32, 4, {2, 3, 0, 1}},
    {"shuffle_epi32_0x93", 32, 4, {3, 0, 1, 2}},         {"unpacklo_epi32", 32, 4, {0, 4, 1, 5}},
    {"unpackhi_epi32", 32, 4, {2, 6, 3, 7}},             {"unpacklo_epi64", 64, 2, {0, 2}},
    {"unpackhi_epi64", 64, 2, {1, 3}},                   {"shuffle_i32x4_0", 128, 2, {0, 2}},
    {"shuffle_i32x4_3", 128, 2, {1, 3}},                 {"shuffle_i32x4_0x44", 128, 4, {0, 1, 4, 5}},
    {"shuffle_i32x4_0xee", 128, 4, {2, 3, 6, 7}},        {"shuffle_i32x4_0x88", 128, 4, {0, 2, 4, 6}},
    {"shuffle_i32x4_0xdd", 128, 4, {1, 3, 5, 7}},
};

static bool move(uint64_t out[8], const char *operation, unsigned bits, const struct operands *o)
{
    for (const struct moves *m = moves; m < moves + sizeof moves / sizeof moves[0]; m++)
        if (strcmp(operation, m->name) == 0) {
            for (unsigned i = 0; i < bits / m->bits; i++) {
                const unsigned from = m->from[i % m->parts], group = i / m->parts * m->parts * m->bits;
                copy(out, i * m->bits, from < m->parts ? o->x : o->y, group + from % m->parts * m->bits, m->bits);
            }
            return true;
        }
    return false;
}

#define DEFINITION(name) static void name(uint64_t out[8], unsigned bits, const struct operands *o, unsigned n)

/* x + y or, if n is 1, x - y, in elements. */
DEFINITION(add32)
{
    copy(out, 0, o->x, 0, bits);
    for (unsigned i = 0; i < bits; i += 32)
        sum(out, i, o->y, i, 32, n == 1);
}

DEFINITION(add64)
{
    copy(out, 0, o->x, 0, bits);
    for (unsigned i = 0; i < bits; i += 64)
        sum(out, i, o->y, i, 64, n == 1);
}

/* Bit by bit; n is the result for 00, 01, 10, 11. */
DEFINITION(logic)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i, n >> (2 * get(o->x, i) + get(o->y, i)) & 1);
}

DEFINITION(rotate32)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i / 32 * 32 + (i + n) % 32, get(o->x, i));
}

DEFINITION(left64)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i, i % 64 >= n && get(o->x, i - n));
}

DEFINITION(right64)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i, i % 64 + n < 64 && get(o->x, i + n));
}

DEFINITION(right128)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i, i % 64 + n < 64 ? get(o->x, i + n) : get(o->y, i + n - 64));
}

/* Elements of n bits that the mask has: of x from its second byte on. The others are 0. */
DEFINITION(load)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i, (o->mask >> i / n & 1) && get(o->x, i + 8));
}

DEFINITION(store)
{
    for (unsigned i = 0; i < bits; i++)
        if (o->mask >> i / n & 1)
            set(out, i, get(o->x, i));
}

/* The first four words of y where the mask has a bit; else x. */
DEFINITION(broadcast_masked)
{
    (void)n;
    for (unsigned i = 0; i < bits; i++)
        set(out, i, o->mask >> i / 32 & 1 ? get(o->y, i % 128) : get(o->x, i));
}

DEFINITION(broadcast)
{
    for (unsigned i = 0; i < bits; i += n)
        copy(out, i, n == 128 ? o->x : &o->word, 0, n);
}

/* The word where the mask has a bit; else 0 or, if n is 1, x. */
DEFINITION(set_masked)
{
    for (unsigned i = 0; i < bits; i++)
        set(out, i, o->mask >> i / 32 & 1 ? get(&o->word, i % 32) : n == 1 && get(o->x, i));
}

DEFINITION(zero)
{
    (void)o, (void)n;
    for (unsigned i = 0; i < bits; i++)
        set(out, i, false);
}

/* z where the mask has no bit; where it has one x, x | y or x + y, for n = 0, 1, 2. */
DEFINITION(masked64)
{
    copy(out, 0, o->x, 0, bits);
    if (n == 1)
        logic(out, bits, o, 14);
    if (n == 2)
        add64(out, bits, o, 0);
    for (unsigned i = 0; i < bits; i += 64)
        if (!(o->mask >> i / 64 & 1))
            copy(out, i, o->z, i, 64);
}

/* Elements of y; if n is 1, 0 where the mask has no bit. */
DEFINITION(permute64)
{
    for (unsigned i = 0; i < bits; i += 64)
        if (n == 1 && !(o->mask >> i / 64 & 1))
            memset((uint8_t *)out + i / 8, 0, 8);
        else
            copy(out, i, o->y, 256u * get(o->x, i + 2) + 128u * get(o->x, i + 1) + 64u * get(o->x, i), 64);
}

/* z plus the 52 bits from bit n on of the product of x and y, which count with 52 bits each; added up on paper. */
DEFINITION(multiply_add)
{
    copy(out, 0, o->z, 0, bits);
    for (unsigned i = 0; i < bits; i += 64) {
        uint64_t factor[2] = {0}, product[2] = {0}, part = 0;
        copy(factor, 0, o->y, i, 52);
        for (unsigned bit = 0; bit < 52; bit++)
            if (get(o->x, i + bit))
                sum(product, bit, factor, 0, 104 - bit, false);
        copy(&part, 0, product, n, 52);
        sum(out, i, &part, 0, 64, false);
    }
}

/* A mask: whether x and y share a bit, are equal, x >= y as unsigned numbers, for n = 0, 1, 2. */
DEFINITION(compare)
{
    out[0] = 0;
    for (unsigned i = 0; i < bits; i += 64) {
        bool share = false, equal = true, less = false;
        for (unsigned bit = i; bit < i + 64; bit++) {
            share |= get(o->x, bit) && get(o->y, bit);
            equal &= get(o->x, bit) == get(o->y, bit);
            less = get(o->x, bit) == get(o->y, bit) ? less : get(o->y, bit); /* what the highest difference says */
        }
        set(out, i / 64, n == 0 ? share : n == 1 ? equal : !less);
    }
}

/* The sum of the elements without their n lowest bits: gcc's header adds signed numbers, which must not overflow. */
DEFINITION(add_all)
{
    uint64_t shifted[8] = {0};

    right64(shifted, bits, o, n);
    out[0] = 0;
    for (unsigned i = 0; i < bits; i += 64)
        sum(out, 0, shifted, i, 64, false);
}

static const struct definition {
    const char *name;
    void (*run)(uint64_t out[8], unsigned bits, const struct operands *, unsigned n);
    unsigned n;
} definitions[] = {
    {"add_epi32", add32, 0},
    {"add_epi64", add64, 0},
    {"sub_epi64", add64, 1},
    {"xor_epi32", logic, 6},
    {"and_si512", logic, 8},
    {"or_si512", logic, 14},
    {"rol_epi32_16", rotate32, 16},
    {"rol_epi32_12", rotate32, 12},
    {"rol_epi32_8", rotate32, 8},
    {"rol_epi32_7", rotate32, 7},
    {"slli_epi64_2", left64, 2},
    {"slli_epi64_4", left64, 4},
    {"slli_epi64_8", left64, 8},
    {"slli_epi64_24", left64, 24},
    {"slli_epi64_44", left64, 44},
    {"srli_epi64_20", right64, 20},
    {"srli_epi64_24", right64, 24},
    {"srli_epi64_42", right64, 42},
    {"srli_epi64_44", right64, 44},
    {"shrdi_epi64_44", right128, 44},
    {"maskz_loadu_epi8", load, 8},
    {"maskz_permutexvar_epi64", permute64, 1},
    {"mask_storeu_epi8", store, 8},
    {"broadcast_i32x4", broadcast, 128},
    {"mask_broadcast_i32x4", broadcast_masked, 0},
    {"set1_epi32", broadcast, 32},
    {"set1_epi64", broadcast, 64},
    {"maskz_set1_epi32", set_masked, 0},
    {"mask_set1_epi32", set_masked, 1},
    {"setzero_si512", zero, 0},
    {"mask_mov_epi64", masked64, 0},
    {"mask_or_epi64", masked64, 1},
    {"mask_add_epi64", masked64, 2},
    {"permutexvar_epi64", permute64, 0},
    {"madd52lo_epu64", multiply_add, 0},
    {"madd52hi_epu64", multiply_add, 52},
    {"test_epi64_mask", compare, 0},
    {"cmpeq_epu64_mask", compare, 1},
    {"cmpge_epu64_mask", compare, 2},
    {"reduce_add_epi64", add_all, 4},
};

static bool define(uint64_t out[8], const char *name, const struct operands *o)
{
    const unsigned bits = strncmp(name, "_mm512_", 7) == 0 ? 512 : 256;

    for (const struct definition *d = definitions; d < definitions + sizeof definitions / sizeof definitions[0]; d++)
        if (strcmp(name + 7, d->name) == 0) {
            d->run(out, bits, o, d->n);
            return true;
        }
    return move(out, name + 7, bits, o);
}

/* ---- The comparison. ---- */

static uint64_t random64(void) /* splitmix64: the same numbers in every run */
{
    static uint64_t state = 0x0123456789abcdef;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Random, all zeros, all ones, a single bit, ones below it, or a small number. */
static uint64_t operand(void)
{
    const uint64_t kind = random64() % 8, bit = UINT64_C(1) << random64() % 64;

    if (kind < 4)
        return kind == 0 ? 0 : kind == 1 ? UINT64_MAX : kind == 2 ? bit : bit - 1;
    return kind == 4 ? random64() % 8 : random64();
}

static bool usable(void)
{
    static const char *const needed[] = {"avx512f", "avx512bw", "avx512vl", "avx512ifma", "avx512vbmi2"};
    const char *name;
    bool present;
    size_t found = 0;

    for (size_t i = 0; (name = chapoly_cpu_feature(i, &present)) != NULL; i++)
        for (size_t n = 0; n < sizeof needed / sizeof needed[0]; n++)
            found += present && strcmp(name, needed[n]) == 0;
    return found == sizeof needed / sizeof needed[0];
}

int main(void)
{
    const bool real = usable();
    unsigned long passed = 0, failed = 0;

    printf("compared with a second definition%s\n", real ? " and with the CPU" : "; this CPU lacks the instructions");
    for (int round = 0; round < 2000; round++) {
        struct operands o;
        uint64_t filled[8];
        for (int i = 0; i < 8; i++) {
            o.x[i] = operand(), o.y[i] = random64() % 4 == 0 ? o.x[i] : operand(), o.z[i] = operand();
            filled[i] = random64();
        }
        o.mask = operand(), o.word = operand();
        for (int i = 0; i < INSTRUCTIONS; i++) {
            const char *const name = emulated_instructions[i].name;
            uint64_t emulated[8], other[8];
            bool right;

            memcpy(emulated, filled, sizeof filled);
            emulated_instructions[i].run(emulated, &o);
            memcpy(other, filled, sizeof filled);
            right = define(other, name, &o) && memcmp(emulated, other, sizeof other) == 0;
            if (real) {
                memcpy(other, filled, sizeof filled);
                real_instructions[i].run(other, &o);
                right = right && memcmp(emulated, other, sizeof other) == 0;
            }
            passed += right;
            failed += !right;
            if (!right && failed <= 20)
                printf("FAILED %s, round %d\n", name, round);
        }
    }
    printf("%lu passed, %lu failed\n", passed, failed);
    return failed != 0;
}
