/*
 * The parts of the AVX-512 batches that whole messages cannot reach, with emulated instructions: the final reduction
 * next to p = 2^130 - 5, where one accumulator in 2^126 lies, and limbs as large as they may be.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "x86/batch_avx512.c"

static unsigned long passed, failed;

static void check(bool right, const char *what, unsigned number)
{
    passed += right;
    failed += !right;
    if (!right && failed <= 20)
        printf("FAILED %s, %u\n", what, number);
}

static uint64_t random64(void) /* splitmix64: the same numbers in every run */
{
    static uint64_t state = 0x0123456789abcdef;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---- The reference: numbers as bytes, reduced as on paper. ---- */

enum { BYTES = 40 };

static void add_shifted(uint8_t sum[BYTES], uint64_t x, unsigned shift)
{
    for (unsigned bit = 0; bit < 64; bit++)
        if (x >> bit & 1) {
            unsigned carry = 1u << (bit + shift) % 8;
            for (unsigned i = (bit + shift) / 8; carry > 0 && i < BYTES; i++) {
                carry += sum[i];
                sum[i] = (uint8_t)carry;
                carry >>= 8;
            }
        }
}

/* x mod p: what lies above bit 130 counts five times, and p is subtracted while it can be. */
static void reduce(uint8_t x[BYTES])
{
    for (int round = 0; round < 40; round++) {
        uint8_t low[BYTES] = {0};
        for (unsigned i = 0; i < 16; i++)
            low[i] = x[i];
        low[16] = x[16] & 3;
        for (unsigned bit = 130; bit < 8 * BYTES; bit++)
            if (x[bit / 8] >> bit % 8 & 1)
                add_shifted(low, 5, bit - 130);
        memcpy(x, low, sizeof low);
    }
    uint8_t next[BYTES];
    memcpy(next, x, sizeof next);
    add_shifted(next, 5, 0);
    if (next[16] >> 2 & 1) {
        next[16] &= 3;
        memcpy(x, next, sizeof next);
    }
}

static void reference_tag(uint8_t tag[16], const uint64_t h[3], const uint64_t s[2])
{
    uint8_t x[BYTES] = {0};

    for (unsigned n = 0; n < 3; n++)
        add_shifted(x, h[n], 44 * n);
    reduce(x);
    add_shifted(x, s[0], 0);
    add_shifted(x, s[1], 64);
    memcpy(tag, x, 16);
}

/* x * r as sums of shifted x, reduced. */
static void reference_product(uint8_t product[BYTES], const uint64_t x[3], const uint64_t r[3])
{
    memset(product, 0, BYTES);
    for (unsigned bit = 0; bit < 130; bit++) {
        const unsigned limb = bit / 44, at = bit % 44;
        if (r[limb] >> at & 1)
            for (unsigned n = 0; n < 3; n++) {
                uint8_t part[BYTES] = {0};
                add_shifted(part, x[n], 44 * n + bit);
                for (unsigned i = 0; i < BYTES / 8; i++) {
                    uint64_t word;
                    memcpy(&word, part + 8 * i, 8);
                    add_shifted(product, word, 64 * i);
                }
            }
        reduce(product);
    }
}

/* ---- The checks. ---- */

static void test_finish(void)
{
    static const uint64_t largest[3] = {(UINT64_C(1) << 44) + (1 << 18) - 1, (UINT64_C(1) << 44) + (1 << 13) - 1,
                                        (UINT64_C(1) << 42) + (1 << 13) - 1};

    for (unsigned round = 0; round < 400; round++) {
        group g;
        __m512i s[2];
        uint64_t h[MAC_LANES][3], word[2];
        uint8_t tags[MAC_LANES][16], right[16], *to[MAC_LANES];
        for (unsigned l = 0; l < MAC_LANES; l++) {
            for (unsigned n = 0; n < 3; n++) {
                const uint64_t all_ones = n < 2 ? MASK44 : MASK42, kind = random64() % 6;
                h[l][n] = round < 100 || kind == 0 ? all_ones : kind == 1 ? 0 : kind == 2 ? largest[n]
                          : kind == 3 ? all_ones + 1 : random64() % largest[n];
            }
            if (round < 100)
                h[l][0] += round % 50 - 20; /* from p - 16 on */
            for (unsigned n = 0; n < 3; n++)
                g.h[n].q[l] = h[l][n];
            for (unsigned i = 0; i < 2; i++)
                s[i].q[l] = random64() % 4 == 0 ? UINT64_MAX : random64() % 4 == 0 ? 0 : random64();
            to[l] = tags[l];
        }
        finish(to, MAC_LANES, &g, s);
        for (unsigned l = 0; l < MAC_LANES; l++) {
            word[0] = s[0].q[l], word[1] = s[1].q[l];
            reference_tag(right, h[l], word);
            check(memcmp(tags[l], right, 16) == 0, "finish", round);
        }
    }
}

/* A chunk, and a block, with every limb as large as it may be. */
static void test_largest(void)
{
    const uint64_t r[3] = {UINT64_C(0xffc0fffffff), UINT64_C(0xfffffc0ffff), UINT64_C(0x0ffffffc0f)};
    const uint64_t h[3] = {(UINT64_C(1) << 44) + (1 << 18) - 1, (UINT64_C(1) << 44) + (1 << 13) - 1,
                           (UINT64_C(1) << 42) + (1 << 13) - 1};
    const uint64_t block[3] = {MASK44, MASK44, (UINT64_C(1) << 41) - 1};
    uint64_t x[3] = {h[0], h[1], h[2]};
    uint8_t right[BYTES], result[BYTES];
    group g;
    chunk m;
    keys k;

    for (int n = 0; n < 3; n++)
        k.r[n] = set1(r[n]);
    set_powers(&g, &k, BLOCKS);
    for (int n = 0; n < 3; n++)
        g.h[n] = set1(h[n]);
    for (int b = 0; b < BLOCKS; b++) {
        m.lo[b] = m.hi[b] = set1(UINT64_MAX);
        m.top[b] = set1(UINT64_C(1) << 40);
    }
    add_chunk(&g, &m);
    for (int b = 0; b < BLOCKS; b++) {
        uint64_t word[3] = {0};
        for (int n = 0; n < 3; n++)
            x[n] += block[n];
        reference_product(right, x, r);
        memcpy(word, right, 17);
        x[0] = word[0] & MASK44, x[1] = (word[0] >> 44 | word[1] << 20) & MASK44, x[2] = word[1] >> 24 | word[2] << 40;
    }
    for (unsigned l = 0; l < MAC_LANES; l++) {
        memset(result, 0, sizeof result);
        for (unsigned n = 0; n < 3; n++)
            add_shifted(result, g.h[n].q[l], 44 * n);
        reduce(result);
        check(memcmp(result, right, sizeof right) == 0, "largest limbs, lane", l);
    }
}

int main(void)
{
    test_finish();
    test_largest();
    printf("%lu passed, %lu failed\n", passed, failed);
    return failed != 0;
}
