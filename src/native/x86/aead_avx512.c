/*
 * The AEAD (RFC 8439 2.8) for x86-64 with AVX-512 (F, BW, VL, IFMA, VBMI2).
 *
 * The one-time key is block 0 of the keystream. It is computed in general registers while the vector units, which for a
 * short message mostly wait, compute the blocks for the data; and the powers of r that the MAC needs beside the last of
 * their rounds. Long messages follow in strips of one pass of the cipher, each authenticated after the next has been
 * ciphered, as what has just been stored cannot be loaded again at once.
 */
#include "../bytes.h"
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>
#include <string.h>

#include "../rounds.h"

chapoly_aead_fn chapoly_aead_avx512;
chapoly_aead_part_fn chapoly_aead_part_avx512;

/* As in chacha20_avx512.c. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-schedule-insns2", "no-tree-vectorize", "no-tree-coalesce-vars", \
                     "no-tree-pre", "no-gcse", "no-split-loops", "no-unswitch-loops")
#endif

#include "poly1305_avx512.h"
#include "poly1305_x64.h"
#include "chacha20_avx512.h"

enum {
    GROUP_SIZE = 16 * MAC_LANES, /* bytes of a group of the MAC */
    PASS = WIDE * BLOCK,         /* bytes of a long pass of the cipher */
    FEW = 10,                    /* blocks for which the powers of r are not worth their price */
    POWERS_OF_R = 4,             /* powers of R = r^8 that a short message has */
};

/* The MAC of one message, for vectors. */
typedef struct {
    chapoly_poly1305 mac;
    __m512i r_powers[3]; /* r^(i+1) in lane i */
    powers of_R;
} authenticator;

/* ---- The first pass: the key for the MAC beside the first data. ---- */

/* The one-time key (RFC 8439 2.6): the first half of what the words of block 0 become after the rounds. */
INLINE void init_mac(chapoly_poly1305 *mac, const uint32_t words[16], const uint32_t state[16])
{
    uint64_t key[4];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        key[i] = (words[2 * i] + state[2 * i]) | (uint64_t)(words[2 * i + 1] + state[2 * i + 1]) << 32;
    mac->h[0] = mac->h[1] = mac->h[2] = 0;
    mac->r[0] = key[0] & UINT64_C(0x0ffffffc0fffffff);
    mac->r[1] = key[1] & UINT64_C(0x0ffffffc0ffffffc);
    mac->s[0] = key[2], mac->s[1] = key[3];
}

/* What chapoly_aead_absorb does, without a call, which would clear the registers of vectors. */
INLINE void absorb(chapoly_poly1305 *mac, const uint8_t *data, size_t len)
{
    uint8_t last[64];

    chapoly_poly1305_x64(mac->h, mac->r, data, len / 16, 1);
    if (len % 16 > 0) {
        _mm512_storeu_si512(last, _mm512_maskz_loadu_epi8((UINT64_C(1) << len % 16) - 1, data + (len & ~(size_t)15)));
        chapoly_poly1305_x64(mac->h, mac->r, last, 1, 1);
    }
}

/* Associated data up to here is taken in beside the rounds; longer data would hold them up. */
enum { SHORT = 64 };

/* Step i of the powers of r, lane by lane; and from the third on of those of R. `have` is 1 at first. */
INLINE void raise_further(authenticator *a, __m512i r[3], int *have, int i)
{
    raise_once(r, (size_t)*have);
    *have *= 2;
    if (i == 2) {
        for (int n = 0; n < 3; n++)
            a->r_powers[n] = r[n];
        spread_last(r);
        *have = 1;
    }
}

/*
 * The first bytes of the message, of `len` what finish_rows requires; and `steps` of raise_further().
 *
 * The key takes the general registers about as long as one or two groups take the vector units, nine double rounds of
 * theirs; more groups take longer. Code that a single packet does not run twice costs it more than it saves, so each
 * kind of step stands here as few times as possible.
 */
INLINE void first_pass(authenticator *a, uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                       const uint8_t *associated_data, size_t associated_len, int steps, const int groups)
{
    const int later = groups < 3 ? 2 : 5; /* double rounds after the key is there */
    uint32_t words[16];
    __m512i r[3];
    rows x;

    start_rows(&x, state, state[12] + 1, groups);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        words[i] = state[i];
#pragma GCC unroll 1
    for (int i = 0; i < 5; i++) {
        double_round_rows(&x, groups);
        chapoly_double_round(words);
        if (groups < 3 && i >= 2)
            double_round_rows(&x, groups);
        chapoly_double_round(words);
    }
    init_mac(&a->mac, words, state);
    if (associated_len <= SHORT)
        absorb(&a->mac, associated_data, associated_len);
    spread(r, a->mac.r);
#pragma GCC unroll 1
    for (int i = 0, have = 1; i < later || i < steps; i++) {
        if (groups > 2 || i < later)
            double_round_rows(&x, groups);
        if (i < steps)
            raise_further(a, r, &have, i);
    }
    if (steps >= 3)
        store_powers(&a->of_R, r);
    finish_rows(dst, src, len, &x, state, state[12] + 1, groups);
}

#define FIRST_PASS(groups)                                                                                           \
    NOINLINE void first_pass##groups(authenticator *a, uint8_t *dst, const uint8_t *src, size_t len,                 \
                                     const uint32_t state[16], const uint8_t *associated_data,                       \
                                     size_t associated_len, int steps)                                               \
    {                                                                                                                \
        first_pass(a, dst, src, len, state, associated_data, associated_len, steps, groups);                         \
    }
FIRST_PASS(1)
FIRST_PASS(2)
FIRST_PASS(4)
FIRST_PASS(6)

/* The same for no data at all. */
NOINLINE void no_data(authenticator *a, const uint32_t state[16], const uint8_t *associated_data, size_t associated_len)
{
    uint32_t words[16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        words[i] = state[i];
#pragma GCC unroll 1
    for (int i = 0; i < 10; i++)
        chapoly_double_round(words);
    init_mac(&a->mac, words, state);
    if (associated_len <= SHORT)
        absorb(&a->mac, associated_data, associated_len);
}

/* The first part of a long message: requires of len what finish_wide does. */
NOINLINE void first_pass_wide(authenticator *a, uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16])
{
    vector x[16], y[16];
    uint32_t words[16];

    start_wide(x, y, state, state[12] + 1);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        words[i] = state[i];
#pragma GCC unroll 1
    for (int i = 0; i < 10; i++) {
        four_quarter_rounds(x, y, 0);
        four_quarter_rounds(x, y, 1);
        chapoly_double_round(words);
    }
    init_mac(&a->mac, words, state);
    finish_wide(dst, src, len, x, y, state, state[12] + 1);
}

/* ---- The MAC. ---- */

NOINLINE void make_powers(authenticator *a)
{
    __m512i x[3];

    spread(x, a->mac.r);
    raise(x, MAC_LANES);
    for (int n = 0; n < 3; n++)
        a->r_powers[n] = x[n];
    spread_last(x);
    raise(x, STEPS);
    store_powers(&a->of_R, x);
}

INLINE uint64_t bits_below(size_t n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/*
 * The last group: `missing` blocks that are not there, `size` bytes of data and zeros after them, and in block 7 both
 * lengths.
 * requires  16 * missing + size <= 112, and > 96 if missing > 0
 */
INLINE void load_last_group(__m512i m[3], const uint8_t *data, size_t size, unsigned missing, uint64_t associated_len,
                            uint64_t len)
{
    const uint64_t limb[3] = {associated_len & MASK44, (associated_len >> 44 | len << 20) & MASK44, len >> 24};
    const __mmask8 there = _mm512_cmpge_epu64_mask(_mm512_load_si512(block_of), set1(missing));

    split_group(m, _mm512_maskz_loadu_epi8(bits_below(size), data),
                _mm512_maskz_loadu_epi8(size > 64 ? bits_below(size - 64) : 0, data + 64));
    if (missing > 0)
        move_blocks(m, missing);
    for (int n = 0; n < 3; n++)
        m[n] = _mm512_mask_mov_epi64(m[n], 0x80, set1(limb[n])); /* lane 7 holds block 7 */
    m[2] = _mm512_mask_or_epi64(m[2], there, m[2], set1(UINT64_C(1) << 40));
}

/* The tag, when all of the ciphertext is there: `data` is what of it has not been taken in. */
NOINLINE void finish_few(const chapoly_kernel *kernel, authenticator *a, uint8_t tag[16], const uint8_t *data,
                         size_t size, uint64_t associated_len, uint64_t len)
{
    uint8_t lengths[16];

    absorb(&a->mac, data, size);
    chapoly_store64(lengths, associated_len);
    chapoly_store64(lengths + 8, len);
    chapoly_poly1305_x64(a->mac.h, a->mac.r, lengths, 1, 1);
    chapoly_poly1305_finish(kernel, &a->mac, tag);
}

NOINLINE void finish_many(const chapoly_kernel *kernel, authenticator *a, uint8_t tag[16], const uint8_t *data,
                          size_t size, uint64_t associated_len, uint64_t len)
{
    const size_t blocks = (size + 15) / 16 + 1, groups = (blocks + MAC_LANES - 1) / MAC_LANES;
    const unsigned missing = -blocks % MAC_LANES;
    __m512i x[3], last[3];

    if (groups == 1) {
        load_last_group(x, data, size, missing, associated_len, len);
        add_to_lane(x, a->mac.h, _mm512_cmpeq_epu64_mask(_mm512_load_si512(block_of), set1(missing)));
    } else {
        const size_t before = GROUP_SIZE * (groups - 1) - 16 * missing; /* bytes in the groups before the last */
        load_last_group(last, data + before, size - before, 0, associated_len, len);
        load_first_group(x, a->mac.h, data, missing);
        add_groups(x, &a->of_R, POWERS_OF_R, data + (GROUP_SIZE - 16 * missing), groups - 1, last);
    }
    close_lanes(a->mac.h, x, a->r_powers);
    chapoly_poly1305_finish(kernel, &a->mac, tag);
}

/* ---- Whole messages. ---- */

/*
 * The rest of a long message in strips of a pass each, and of the ciphertext before each strip the groups from *next
 * on, which then is further on.
 */
NOINLINE void strips(const chapoly_kernel *kernel, authenticator *a, __m512i x[3], uint8_t *dst, const uint8_t *src,
                     size_t len, const uint32_t state[16], uint32_t counter, bool decrypting, const uint8_t **next)
{
    uint32_t at[16];

    memcpy(at, state, sizeof at);
    for (at[12] = counter; len > 0; at[12] += WIDE) {
        const size_t strip = len < PASS ? len : PASS;
        const size_t groups = (size_t)((decrypting ? src : dst) - *next) / GROUP_SIZE;
        prefetch(src, len);
        kernel->chacha_xor(dst, src, strip, at, 20);
        add_groups(x, &a->of_R, STEPS, *next, groups, NULL);
        *next += groups * GROUP_SIZE;
        dst += strip, src += strip, len -= strip;
    }
    chapoly_wipe(at, sizeof at);
}

NOINLINE void long_message(const chapoly_kernel *kernel, authenticator *a, uint8_t tag[16], uint8_t *dst,
                           const uint8_t *src, size_t len, const uint8_t *associated_data, size_t associated_len,
                           const uint32_t state[16], bool decrypting)
{
    const size_t blocks = (len + 15) / 16 + 1, first = len < PASS ? len : PASS;
    const unsigned missing = -blocks % MAC_LANES;
    const uint8_t *const ciphertext = decrypting ? src : dst, *next = ciphertext + (GROUP_SIZE - 16 * missing);
    const uint8_t *const before = ciphertext + (16 * (blocks - MAC_LANES)); /* the last group */
    __m512i x[3], last[3];

    first_pass_wide(a, dst, src, first, state);
    make_powers(a);
    chapoly_aead_absorb(kernel, &a->mac, associated_data, associated_len);
    load_first_group(x, a->mac.h, ciphertext, missing);
    strips(kernel, a, x, dst + first, src + first, len - first, state, state[12] + 1 + WIDE, decrypting, &next);
    load_last_group(last, before, (size_t)(ciphertext + len - before), 0, associated_len, len);
    add_groups(x, &a->of_R, STEPS, next, (size_t)(before - next) / GROUP_SIZE + 1, last);
    close_lanes(a->mac.h, x, a->r_powers);
    chapoly_poly1305_finish(kernel, &a->mac, tag);
}

TARGET void chapoly_aead_avx512(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src,
                                size_t len, const uint8_t *associated_data, size_t associated_len,
                                const uint32_t state[16], bool decrypting)
{
    enum { QUAD = LANES * BLOCK };
    const uint8_t *const ciphertext = decrypting ? src : dst;
    const size_t blocks = (len + 15) / 16 + 1;
    authenticator a;

    a.mac.buffered = 0;
    if (len > 6 * QUAD) {
        long_message(kernel, &a, tag, dst, src, len, associated_data, associated_len, state, decrypting);
        chapoly_wipe(&a, sizeof a);
        return;
    }
    const int steps = blocks <= FEW ? 0 : blocks <= 2 * MAC_LANES ? 3 : blocks <= 3 * MAC_LANES ? 4 : 5;
    if (len == 0)
        no_data(&a, state, associated_data, associated_len);
    else if (len <= QUAD)
        first_pass1(&a, dst, src, len, state, associated_data, associated_len, steps);
    else if (len <= 2 * QUAD)
        first_pass2(&a, dst, src, len, state, associated_data, associated_len, steps);
    else if (len <= 4 * QUAD)
        first_pass4(&a, dst, src, len, state, associated_data, associated_len, steps);
    else
        first_pass6(&a, dst, src, len, state, associated_data, associated_len, steps);
    if (associated_len > SHORT)
        chapoly_aead_absorb(kernel, &a.mac, associated_data, associated_len);
    if (steps == 0)
        finish_few(kernel, &a, tag, ciphertext, len, associated_len, len);
    else {
        finish_many(kernel, &a, tag, ciphertext, len, associated_len, len);
        chapoly_wipe(&a.r_powers, sizeof a - offsetof(authenticator, r_powers));
    }
}

TARGET size_t chapoly_aead_part_avx512(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t *dst,
                                       const uint8_t *src, size_t len, size_t pending, const uint32_t state[16],
                                       bool decrypting)
{
    const size_t blocks = (pending + len) / 16, first = len < PASS ? len : PASS;
    const unsigned missing = -blocks % MAC_LANES;
    const uint8_t *const text = (decrypting ? src : dst) - pending, *next = text + (GROUP_SIZE - 16 * missing);
    authenticator a;
    __m512i x[3];

    if (blocks < 2 * MAC_LANES)
        return chapoly_aead_part_by_strips(kernel, mac, dst, src, len, pending, state, decrypting);
    a.mac = *mac;
    make_powers(&a);
    kernel->chacha_xor(dst, src, first, state, 20);
    load_first_group(x, mac->h, text, missing);
    strips(kernel, &a, x, dst + first, src + first, len - first, state, state[12] + WIDE, decrypting, &next);
    add_groups(x, &a.of_R, STEPS, next, (size_t)(text + 16 * blocks - next) / GROUP_SIZE, NULL);
    close_lanes(mac->h, x, a.r_powers);
    chapoly_wipe(&a, sizeof a);
    return len % 16;
}

#endif
