/*
 * Many messages of the AEAD (RFC 8439 2.8) at once, for x86-64 with AVX-512 (F, BW, VL, IFMA, VBMI2).
 *
 * ChaCha20: sixteen messages, a bank, take one pass for their blocks 0 and 1, which gives their one-time keys, word by
 * word as Poly1305 wants them, and their first 64 bytes. The blocks from 2 on, of all messages one after the other,
 * fill the lanes of further passes.
 *
 * Poly1305: side by side, a message with an r of its own in each of the eight lanes of a group. What is taken of a
 * message (the associated data and the ciphertext, each with zeros up to whole blocks, and a block with the lengths) is
 * taken in chunks of four blocks, and the messages of a group end together: where one is shorter, blocks that are not
 * there come first, count as 0 and leave its accumulator 0. So all lanes take the same steps, and chunks are loaded as
 * they lie in the ciphertext but for the first and the last ones.
 */
#include "../bytes.h"
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>
#include <string.h>

chapoly_aead_many_fn chapoly_aead_many_avx512;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

/* Before a loop over messages that finds addresses: clang would do that in vectors, which takes longer. */
#ifdef __clang__
#define IN_TURN _Pragma("clang loop vectorize(disable) interleave(disable)")
#else
#define IN_TURN
#endif

#include "lanes_avx512.h"
#include "poly1305_ifma.h"

#define NOINLINE static __attribute__((noinline)) IFMA

enum {
    BLOCKS = 4, /* of 16 bytes, of a chunk */
    CHUNK = 16 * BLOCKS,
    BANK = 2 * MAC_LANES,
    GROUPS = 4, /* most that are authenticated at the same time */
};

/* ---- Eight messages: what Poly1305 takes of them. ---- */

typedef struct {
    uint64_t associated_len[MAC_LANES] __attribute__((aligned(64))); /* these three are loaded as vectors */
    uint64_t len[MAC_LANES] __attribute__((aligned(64)));
    uint64_t first[MAC_LANES] __attribute__((aligned(64))); /* the first block that is there, counted from chunk 0 */
    int64_t at[MAC_LANES]; /* where chunk 0 begins, counted from where the ciphertext does; 0 or less */
    bool equal;        /* whether all lanes have the lengths of the first; then only the first has the four above */
    const uint8_t *associated_data[MAC_LANES], *ciphertext[MAC_LANES];
    size_t chunks, whole; /* from chunk `whole` to the last but one they lie in the ciphertext, of every lane */
    /* Secret, these three. */
    uint64_t tag[2][MAC_LANES] __attribute__((aligned(64)));
    __m512i h[3];
    factors power[BLOCKS]; /* of r, r^2, r^3, r^4 */
} group;

/* Of eight messages: r, clamped, as limbs < 2^44, 2^44, 2^36; and the halves of s (RFC 8439 2.5). */
typedef struct {
    __m512i r[3], s[2];
} keys;

static inline size_t blocks_of(size_t len)
{
    return len / 16 + (len % 16 > 0);
}

/* Blocks of associated data, ciphertext and lengths. */
static inline size_t blocks_in_all(const chapoly_packet *packet)
{
    return blocks_of(packet->associated_len) + blocks_of(packet->len) + 1;
}

/* How many of so many messages are in group i; the last may have fewer than MAC_LANES. */
static inline size_t in_group(size_t count, size_t i)
{
    return count - MAC_LANES * i < MAC_LANES ? count - MAC_LANES * i : MAC_LANES;
}

/* Of the bytes at `at` to `at` + 63, those at 0 to len - 1. */
MAC_INLINE __mmask64 bytes_within(int64_t at, size_t len)
{
    __mmask64 mask = ~UINT64_C(0);

    if (at <= -64 || (at >= 0 && (size_t)at >= len))
        return 0;
    if (at < 0)
        mask <<= -at;
    if ((size_t)((int64_t)len - at) < 64)
        mask &= ~UINT64_C(0) >> (64 - (size_t)((int64_t)len - at));
    return mask;
}

/* The bytes from base + at on that the mask has; the others are neither read nor need they exist. */
MAC_INLINE __m512i load_masked(__mmask64 mask, const uint8_t *base, int64_t at)
{
    return _mm512_maskz_loadu_epi8(mask, (const void *)((uintptr_t)base + (uintptr_t)at));
}

/* The lower and the upper halves of the four blocks of each row: lane l is row l. */
MAC_INLINE void transpose(__m512i lo[BLOCKS], __m512i hi[BLOCKS], const __m512i row[MAC_LANES])
{
    __m512i pair[2][BLOCKS]; /* lane j of pair[.][i]: half block j of the rows 2 i and 2 i + 1 */

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        pair[0][i] = _mm512_unpacklo_epi64(row[2 * i], row[2 * i + 1]);
        pair[1][i] = _mm512_unpackhi_epi64(row[2 * i], row[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        __m512i *const out = half == 0 ? lo : hi, *const in = pair[half];
        const __m512i ab01 = _mm512_shuffle_i32x4(in[0], in[1], 0x44), cd01 = _mm512_shuffle_i32x4(in[2], in[3], 0x44);
        const __m512i ab23 = _mm512_shuffle_i32x4(in[0], in[1], 0xee), cd23 = _mm512_shuffle_i32x4(in[2], in[3], 0xee);
        out[0] = _mm512_shuffle_i32x4(ab01, cd01, 0x88);
        out[1] = _mm512_shuffle_i32x4(ab01, cd01, 0xdd);
        out[2] = _mm512_shuffle_i32x4(ab23, cd23, 0x88);
        out[3] = _mm512_shuffle_i32x4(ab23, cd23, 0xdd);
    }
}

/* Where the chunks of so many messages lie; the lanes that are left repeat the last one. */
MAC_INLINE void place(group *g, const chapoly_packet *const packets[], size_t count, bool equal, bool decrypting)
{
    size_t most = 0;

    g->equal = equal;
    for (size_t l = 0; l < MAC_LANES; l++) {
        const chapoly_packet *const packet = packets[l < count ? l : count - 1];
        g->ciphertext[l] = decrypting ? packet->data : packet->out;
        g->associated_data[l] = packet->associated_data;
        if (!equal || l == 0) {
            const size_t blocks = blocks_in_all(packet);
            most = blocks > most ? blocks : most;
            g->len[l] = packet->len;
            g->associated_len[l] = packet->associated_len;
        }
    }
    g->chunks = (most + BLOCKS - 1) / BLOCKS;
    g->whole = 0;
    for (size_t l = 0; l < (equal ? 1 : MAC_LANES); l++) {
        const size_t of_associated = blocks_of(g->associated_len[l]);
        const size_t first = BLOCKS * g->chunks - of_associated - blocks_of(g->len[l]) - 1;
        const size_t whole = (first + of_associated + BLOCKS - 1) / BLOCKS;
        g->first[l] = first;
        g->at[l] = -(int64_t)(16 * (first + of_associated));
        g->whole = whole > g->whole ? whole : g->whole;
    }
}

/* Four blocks of each message, the lower and the upper halves, and 2^128 in limb 2 of those that are there. */
typedef struct {
    __m512i lo[BLOCKS], hi[BLOCKS], top[BLOCKS];
} chunk;

/* Chunk c, if it lies in the ciphertext in every lane. */
MAC_INLINE void load_whole(chunk *m, const group *g, size_t c)
{
    __m512i row[MAC_LANES];

#pragma GCC unroll 8
    for (size_t l = 0; l < MAC_LANES; l++)
        row[l] = _mm512_loadu_si512(g->ciphertext[l] + g->at[g->equal ? 0 : l] + CHUNK * (int64_t)c);
    transpose(m->lo, m->hi, row);
#pragma GCC unroll 4
    for (size_t b = 0; b < BLOCKS; b++)
        m->top[b] = set1(UINT64_C(1) << 40);
}

/* Any chunk. */
MAC_INLINE void load_any(chunk *m, const group *g, size_t c)
{
    const __m512i first = g->equal ? set1(g->first[0]) : _mm512_load_si512(g->first);
    const bool last = c + 1 == g->chunks;
    __m512i row[MAC_LANES];

    if (g->equal) {
        const int64_t at = g->at[0] + CHUNK * (int64_t)c;
        const int64_t associated_at = at + 16 * (int64_t)blocks_of(g->associated_len[0]);
        const __mmask64 of_ciphertext = bytes_within(at, g->len[0]);
        const __mmask64 of_associated = bytes_within(associated_at, g->associated_len[0]);
#pragma GCC unroll 8
        for (size_t l = 0; l < MAC_LANES; l++)
            row[l] = load_masked(of_ciphertext, g->ciphertext[l], at);
        if (of_associated != 0)
#pragma GCC unroll 8
            for (size_t l = 0; l < MAC_LANES; l++)
                row[l] = _mm512_or_si512(row[l], load_masked(of_associated, g->associated_data[l], associated_at));
    } else {
        for (size_t l = 0; l < MAC_LANES; l++) {
            const int64_t at = g->at[l] + CHUNK * (int64_t)c;
            const int64_t associated_at = at + 16 * (int64_t)blocks_of(g->associated_len[l]);
            row[l] = _mm512_or_si512(
                load_masked(bytes_within(at, g->len[l]), g->ciphertext[l], at),
                load_masked(bytes_within(associated_at, g->associated_len[l]), g->associated_data[l], associated_at));
        }
    }
    transpose(m->lo, m->hi, row);
    if (last) {
        m->lo[BLOCKS - 1] = g->equal ? set1(g->associated_len[0]) : _mm512_load_si512(g->associated_len);
        m->hi[BLOCKS - 1] = g->equal ? set1(g->len[0]) : _mm512_load_si512(g->len);
    }
#pragma GCC unroll 4
    for (size_t b = 0; b < BLOCKS; b++) {
        const __mmask8 there = _mm512_cmpge_epu64_mask(set1(BLOCKS * c + b), first);
        m->top[b] = _mm512_mask_mov_epi64(_mm512_setzero_si512(), there, set1(UINT64_C(1) << 40));
    }
}

/* ---- Their MAC. ---- */

/* So many powers of r. */
MAC_INLINE void set_powers(group *g, const keys *k, const int powers)
{
    __m512i x[3] = {k->r[0], k->r[1], k->r[2]};

    g->power[0] = make_factors(x);
#pragma GCC unroll 3
    for (int i = 1; i < powers; i++) {
        multiply(x, k->r);
        g->power[i] = make_factors(x);
    }
    g->h[0] = g->h[1] = g->h[2] = _mm512_setzero_si512();
}

/* Block b of a chunk. ensures  m[0], m[1] < 2^44, m[2] < 2^41 */
MAC_INLINE void split_block(__m512i m[3], const chunk *of, int b)
{
    split(m, of->lo[b], of->hi[b]);
    m[2] = _mm512_or_si512(m[2], of->top[b]);
}

/*
 * h = (h + m0) r^4 + m1 r^3 + m2 r^2 + m3 r.
 * requires, ensures  the limbs of h as after carry: < 2^44 + 2^18, 2^44 + 2^13, 2^42 + 2^13
 */
MAC_INLINE void add_chunk(group *g, const chunk *of)
{
    sums d = no_sums();
    __m512i m[3];

#pragma GCC unroll 4
    for (int b = BLOCKS - 1; b >= 0; b--) { /* the first block comes last, as only this waits for the chunk before */
        split_block(m, of, b);
        for (int n = 0; b == 0 && n < 3; n++)
            m[n] = _mm512_add_epi64(m[n], g->h[n]); /* < 2^45 + 2^18, 2^45 + 2^13, 2^42.6 */
        multiply_add(&d, m, &g->power[BLOCKS - 1 - b]);
    }
    columns(g->h, &d);
    carry(g->h);
}

NOINLINE void add_any_chunk(group *g, size_t c)
{
    chunk m;

    load_any(&m, g, c);
    add_chunk(g, &m);
}

/* Chunks `begin` to `end` - 1, which lie in the ciphertext. */
NOINLINE void add_whole_chunks(group *g, size_t begin, size_t end)
{
    chunk m;

    for (size_t c = begin; c < end; c++) {
        load_whole(&m, g, c);
        add_chunk(g, &m);
    }
}

/* ---- The same for short messages of equal lengths: block by block, for powers of r are not worth their price. ---- */

enum { SHORT = 12 }; /* blocks; on AMD Zen 5 both ways take as long from about 16 on */

/* The blocks of eight messages, the lower and the upper halves; there is room for the rest of a chunk. */
typedef struct {
    __m512i lo[SHORT + BLOCKS], hi[SHORT + BLOCKS];
} blocks;

/* Adds what is as long in each lane, with zeros up to whole blocks. */
MAC_INLINE size_t put(blocks *m, size_t at, const uint8_t *const data[MAC_LANES], size_t len)
{
    for (size_t done = 0; done < len; done += CHUNK) {
        const __mmask64 mask = bytes_within((int64_t)done, len);
        __m512i row[MAC_LANES];
#pragma GCC unroll 8
        for (size_t l = 0; l < MAC_LANES; l++)
            row[l] = load_masked(mask, data[l], (int64_t)done);
        transpose(m->lo + at + done / 16, m->hi + at + done / 16, row);
    }
    return at + blocks_of(len);
}

MAC_INLINE void put_message(blocks *m, const chapoly_packet *const packets[], size_t count, bool decrypting)
{
    const size_t associated_len = packets[0]->associated_len, len = packets[0]->len;
    const uint8_t *data[MAC_LANES];
    size_t at = 0;

    if (associated_len > 0) {
        for (size_t l = 0; l < MAC_LANES; l++)
            data[l] = packets[l < count ? l : count - 1]->associated_data;
        at = put(m, at, data, associated_len);
    }
    for (size_t l = 0; l < MAC_LANES; l++) {
        const chapoly_packet *const packet = packets[l < count ? l : count - 1];
        data[l] = decrypting ? packet->data : packet->out;
    }
    at = put(m, at, data, len);
    m->lo[at] = set1(associated_len);
    m->hi[at] = set1(len);
}

/* h = (h + m) r for one block after the other, in all groups by turns, since each block waits for the one before it. */
NOINLINE void add_short(group g[], const chapoly_packet *const packets[], size_t count, bool decrypting)
{
    const size_t groups = (count + MAC_LANES - 1) / MAC_LANES, end = blocks_in_all(packets[0]);
    blocks m[GROUPS];

    for (size_t i = 0; i < groups; i++)
        put_message(&m[i], packets + MAC_LANES * i, in_group(count, i), decrypting);
    for (size_t b = 0; b < end; b++)
#pragma GCC unroll 1
        for (size_t i = 0; i < groups; i++) {
            __m512i x[3];
            sums d = no_sums();
            split(x, m[i].lo[b], m[i].hi[b]);
            x[2] = _mm512_or_si512(x[2], set1(UINT64_C(1) << 40));
            for (int n = 0; n < 3; n++)
                x[n] = _mm512_add_epi64(x[n], g[i].h[n]); /* < 2^45 + 2^18, 2^45 + 2^13, 2^42.6 */
            multiply_add(&d, x, &g[i].power[0]);
            columns(g[i].h, &d);
            carry(g[i].h);
        }
}

/*
 * h mod p, then + s mod 2^128 (RFC 8439 2.5.1).
 * requires  h as after carry
 */
MAC_INLINE void finish(uint8_t *const tags[], size_t count, group *g, const __m512i s[2])
{
    const __m512i mask = set1(MASK44);
    __m512i h0 = g->h[0], h1 = g->h[1], h2 = g->h[2], g0, g1, g2, lo, hi;

    h1 = _mm512_add_epi64(h1, _mm512_srli_epi64(h0, 44)); /* <= 2^44 + 2^13 */
    h0 = _mm512_and_si512(h0, mask);
    h2 = _mm512_add_epi64(h2, _mm512_srli_epi64(h1, 44)); /* <= 2^42 + 2^13, and so h < 2^130 + 2^102 < 2 p */
    h1 = _mm512_and_si512(h1, mask);

    /* h >= p exactly when h + 5 >= 2^130, and then h - p = h + 5 - 2^130. */
    g0 = _mm512_add_epi64(h0, set1(5));
    g1 = _mm512_add_epi64(h1, _mm512_srli_epi64(g0, 44));
    g2 = _mm512_add_epi64(h2, _mm512_srli_epi64(g1, 44));
    const __mmask8 over = _mm512_cmpge_epu64_mask(g2, set1(MASK42 + 1));
    h0 = _mm512_mask_mov_epi64(h0, over, _mm512_and_si512(g0, mask));
    h1 = _mm512_mask_mov_epi64(h1, over, _mm512_and_si512(g1, mask));
    h2 = _mm512_mask_mov_epi64(h2, over, g2); /* bits from 2^128 on, that 2^130 too, fall out of what follows */

    lo = _mm512_or_si512(h0, _mm512_slli_epi64(h1, 44));
    hi = _mm512_or_si512(_mm512_srli_epi64(h1, 20), _mm512_slli_epi64(h2, 24));
    lo = _mm512_add_epi64(lo, s[0]);
    hi = _mm512_add_epi64(hi, s[1]);
    const __mmask8 no_carry = _mm512_cmpge_epu64_mask(lo, s[0]);
    hi = _mm512_mask_mov_epi64(_mm512_add_epi64(hi, set1(1)), no_carry, hi);

    _mm512_store_si512(g->tag[0], _mm512_unpacklo_epi64(lo, hi)); /* of the messages 0, 2, 4, 6 */
    _mm512_store_si512(g->tag[1], _mm512_unpackhi_epi64(lo, hi));
    for (size_t l = 0; l < count; l++)
        memcpy(tags[l], &g->tag[l % 2][l / 2 * 2], 16);
}

/* The tags of so many messages, which have these keys. */
NOINLINE void make_tags(group g[GROUPS], const keys k[GROUPS], const chapoly_packet *const packets[],
                        uint8_t *const tags[], size_t count, bool equal, bool decrypting)
{
    const size_t groups = (count + MAC_LANES - 1) / MAC_LANES;
    const int powers = equal && blocks_in_all(packets[0]) <= SHORT ? 1 : BLOCKS;

    if (powers == 1) {
        for (size_t i = 0; i < groups; i++)
            set_powers(&g[i], &k[i], 1);
        add_short(g, packets, count, decrypting);
    } else {
        for (size_t i = 0; i < groups; i++) {
            place(&g[i], packets + MAC_LANES * i, in_group(count, i), equal, decrypting);
            set_powers(&g[i], &k[i], BLOCKS);
        }
        for (size_t i = 0; i < groups; i++) {
            const size_t last = g[i].chunks - 1, whole = g[i].whole < last ? g[i].whole : last;
            for (size_t c = 0; c < whole; c++)
                add_any_chunk(&g[i], c);
            add_whole_chunks(&g[i], whole, last);
            add_any_chunk(&g[i], last);
        }
    }
    for (size_t i = 0; i < groups; i++) {
        finish(tags + MAC_LANES * i, in_group(count, i), &g[i], k[i].s);
        chapoly_wipe(g[i].tag, (size_t)((char *)&g[i].power[powers] - (char *)g[i].tag));
    }
}

/*
 * Numbers of the packets, those with the most chunks first, so that in a group lengths are about the same. Places are
 * counted for each number of chunks; very long ones count as one.
 */
MAC_INLINE void sort(uint8_t order[], const chapoly_packet packets[], size_t count)
{
    enum { KINDS = 64 };
    uint8_t kind[CHAPOLY_MANY_MAX], end[KINDS] = {0};

    IN_TURN
    for (size_t i = 0; i < count; i++) {
        const size_t chunks = blocks_in_all(&packets[i]) / BLOCKS;
        kind[i] = (uint8_t)(KINDS - 1 - (chunks < KINDS ? chunks : KINDS - 1));
        end[kind[i]]++;
    }
    for (size_t k = 1; k < KINDS; k++)
        end[k] = (uint8_t)(end[k] + end[k - 1]);
    for (size_t i = count; i-- > 0;)
        order[--end[kind[i]]] = (uint8_t)i;
}

/* ---- All of it. ---- */

/* In the order in which they are taken. */
typedef struct {
    chapoly_packet *packets[CHAPOLY_MANY_MAX];
    const uint8_t *keys[CHAPOLY_MANY_MAX];
    uint32_t nonces[CHAPOLY_MANY_MAX][4]; /* words 12 to 15 of their states */
    struct chapoly_stream streams[CHAPOLY_MANY_MAX];
    uint32_t next[CHAPOLY_MANY_MAX]; /* byte of each from which on nothing has been ciphered */
    size_t count;
    bool one_key, equal; /* whether all have the same key, and lengths */
    uint8_t subkeys[CHAPOLY_MANY_MAX][CHAPOLY_SUBKEY_SIZE];
    keys one_time[CHAPOLY_MANY_MAX / MAC_LANES];
    uint32_t words[8][BANK];
    group groups[GROUPS];
} batch;

/*
 * Element l of the vectors of words belongs to message packet_of[l] of a bank: so in a pair of words, unpacked, the
 * first group has messages 0 to 7 in its lanes and the second 8 to 15.
 */
static const uint8_t packet_of[BANK] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};

/* The one-time keys of a bank from their words. */
MAC_INLINE void set_keys(batch *b, size_t bank)
{
    const __m512i clamp[2] = {set1(UINT64_C(0x0ffffffc0fffffff)), set1(UINT64_C(0x0ffffffc0ffffffc))};
    __m512i half[2][4];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i even = _mm512_loadu_si512(b->words[2 * i]), odd = _mm512_loadu_si512(b->words[2 * i + 1]);
        half[0][i] = _mm512_unpacklo_epi32(even, odd);
        half[1][i] = _mm512_unpackhi_epi32(even, odd);
    }
#pragma GCC unroll 2
    for (size_t g = 0; g < 2; g++) {
        keys *const k = &b->one_time[2 * bank + g];
        split(k->r, _mm512_and_si512(half[g][0], clamp[0]), _mm512_and_si512(half[g][1], clamp[1]));
        k->s[0] = half[g][2], k->s[1] = half[g][3];
    }
}

/* Blocks 0 and 1 of a bank: the one-time keys, and the first 64 bytes of these streams. */
IFMA static void take_first_blocks(batch *b, size_t bank, const struct chapoly_stream streams[])
{
    const chapoly_streams s = {b->keys, (const uint32_t(*)[4])b->nonces, streams, b->one_key};
    static const chapoly_lanes both = {.counter = {[BANK] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    chapoly_lanes lanes = both;

    IN_TURN
    for (size_t l = 0; l < BANK; l++) { /* where there are fewer, the last again */
        const size_t n = bank * BANK + packet_of[l], i = n < b->count ? n : b->count - 1;
        lanes.message[l] = lanes.message[BANK + l] = (uint8_t)i;
        if (n >= b->count)
            lanes.at[BANK + l] = (uint32_t)streams[i].len;
    }
    chapoly_lanes_avx512(&lanes, &s, b->words);
    set_keys(b, bank);
}

/* Of long messages, from their third block on, sixteen blocks at a time as long as WORTH_IT are left. */
static void take_slices(batch *b, const chapoly_streams *streams)
{
    enum { SLICE = 16 * CHAPOLY_BLOCK_SIZE, WORTH_IT = 12 * CHAPOLY_BLOCK_SIZE };
    chapoly_slice slices[2];
    size_t n = 0;

    for (size_t i = 0; i < b->count; i++)
        for (b->next[i] = CHAPOLY_BLOCK_SIZE; b->next[i] + WORTH_IT <= b->streams[i].len; b->next[i] += SLICE) {
            slices[n++] = (chapoly_slice){b->next[i], (uint8_t)i};
            if (n == 2)
                chapoly_slices_avx512(slices, streams);
            n %= 2;
        }
    if (n > 0) /* there is no second one */
        b->next[slices[0].message] = slices[0].at;
}

/* Fills lanes with the blocks that are left, one message after the other; how many. */
static size_t fill(batch *b, chapoly_lanes *lanes, size_t *message)
{
    size_t n = 0;

    for (; *message < b->count; ++*message) {
        const size_t len = b->streams[*message].len;
        uint32_t at = b->next[*message];
        for (; n < CHAPOLY_AVX512_LANES && at < len; at += CHAPOLY_BLOCK_SIZE, n++) {
            lanes->counter[n] = 1 + at / CHAPOLY_BLOCK_SIZE;
            lanes->at[n] = at;
            lanes->message[n] = (uint8_t)*message;
        }
        b->next[*message] = at;
        if (at < len)
            break;
    }
    for (size_t l = n; n > 0 && l < CHAPOLY_AVX512_LANES; l++) {
        lanes->counter[l] = lanes->counter[n - 1];
        lanes->message[l] = lanes->message[n - 1];
        lanes->at[l] = (uint32_t)b->streams[lanes->message[l]].len;
    }
    return n;
}

/* The tags of messages `first`, a multiple of MAC_LANES, to `end` - 1: written or, decrypting, compared. */
static void authenticate(batch *b, size_t first, size_t end, bool decrypting)
{
    enum { MOST = GROUPS * MAC_LANES };
    uint8_t *tags[MOST] = {NULL}, expected[MOST][16];

    for (size_t count; first < end; first += count) {
        chapoly_packet **const packets = b->packets + first;
        count = end - first < MOST ? end - first : MOST;
        IN_TURN
        for (size_t i = 0; i < count; i++)
            tags[i] = decrypting ? expected[i] : packets[i]->tag;
        make_tags(b->groups, &b->one_time[first / MAC_LANES], (const chapoly_packet *const *)packets, tags, count,
                  b->equal, decrypting);
        for (size_t i = 0; decrypting && i < count; i++)
            packets[i]->failed = !chapoly_tag_equal(packets[i]->tag, expected[i]);
    }
    if (decrypting)
        chapoly_wipe(expected, sizeof expected);
}

/*
 * All blocks from 2 on; encrypting, the tags of each bank follow as soon as it is ciphered. Lanes are filled one pass
 * ahead: vectors would wait if they were loaded just after they had been stored word by word.
 */
static void take_other_blocks(batch *b, bool decrypting)
{
    const chapoly_streams s = {b->keys, (const uint32_t(*)[4])b->nonces, b->streams, b->one_key};
    chapoly_lanes lanes[2];
    size_t filled, next = 0, authenticated = 0;
    int turn = 0;

    take_slices(b, &s);
    filled = fill(b, &lanes[0], &next);
    while (filled > 0) {
        const size_t ready = next - next % BANK; /* after this pass, messages in banks that are ciphered */
        filled = fill(b, &lanes[1 - turn], &next);
        chapoly_lanes_avx512(&lanes[turn], &s, NULL);
        turn = 1 - turn;
        if (!decrypting && ready > authenticated) {
            authenticate(b, authenticated, ready, false);
            authenticated = ready;
        }
    }
    if (!decrypting)
        authenticate(b, authenticated, b->count, false);
}

/* The first blocks of all messages, then the others; the tags of a bank as soon as it is ciphered. */
static void encrypt(batch *b)
{
    bool done = true;

    IN_TURN
    for (size_t i = 0; i < b->count; i++)
        done &= b->streams[i].len <= CHAPOLY_BLOCK_SIZE;
    for (size_t bank = 0; bank * BANK < b->count; bank++)
        take_first_blocks(b, bank, b->streams);
    if (done)
        authenticate(b, 0, b->count, false);
    else
        take_other_blocks(b, false);
}

/* Decrypting, block 1 is held back till the tag is known to be right. */
IFMA static void decrypt(batch *b)
{
    uint8_t held[CHAPOLY_MANY_MAX][CHAPOLY_BLOCK_SIZE];
    struct chapoly_stream first[CHAPOLY_MANY_MAX];

    IN_TURN
    for (size_t i = 0; i < b->count; i++) {
        const size_t len = b->streams[i].len;
        first[i] = (struct chapoly_stream){b->streams[i].src, held[i], len < sizeof held[i] ? len : sizeof held[i]};
    }
    for (size_t bank = 0; bank * BANK < b->count; bank++)
        take_first_blocks(b, bank, first);
    authenticate(b, 0, b->count, true);
    IN_TURN
    for (size_t i = 0; i < b->count; i++) {
        struct chapoly_stream *const stream = &b->streams[i];
        if (stream->len == 0)
            continue;
        if (!b->packets[i]->failed) {
            const __mmask64 mask = bytes_within(0, stream->len);
            _mm512_mask_storeu_epi8(stream->dst, mask, _mm512_loadu_si512(held[i]));
        } else {
            if (stream->dst != stream->src)
                memset(stream->dst, 0, stream->len);
            stream->len = 0; /* nothing more is done to it */
        }
    }
    take_other_blocks(b, true);
    chapoly_wipe(held, CHAPOLY_BLOCK_SIZE * b->count);
}

/* Message i; its nonce has 12 bytes, or 24 if there is a subkey. */
MAC_INLINE void set_message(batch *b, size_t i, chapoly_packet *packet, const uint8_t *subkey)
{
    const uint8_t *const nonce = packet->nonce + (subkey != NULL ? 12 : 0); /* of 24 bytes the last 8, after zeros */

    b->packets[i] = packet;
    b->streams[i] = (struct chapoly_stream){packet->data, packet->out, packet->len};
    b->keys[i] = subkey != NULL ? subkey : packet->key;
    b->nonces[i][0] = 0;
    b->nonces[i][1] = subkey != NULL ? 0 : chapoly_load32(nonce);
    memcpy(&b->nonces[i][2], nonce + 4, 8);
}

IFMA void chapoly_aead_many_avx512(const chapoly_kernel *kernel, chapoly_packet packets[], size_t count,
                                   size_t nonce_size, bool decrypting)
{
    const bool extended = nonce_size == CHAPOLY_XNONCE_SIZE;
    uint8_t order[CHAPOLY_MANY_MAX];
    bool one_key = !extended, equal = true;
    batch b;

    if (extended)
        chapoly_aead_subkeys(kernel, b.subkeys, packets, count);
    IN_TURN
    for (size_t i = 0; i < count; i++) {
        set_message(&b, i, &packets[i], extended ? b.subkeys[i] : NULL);
        one_key &= packets[i].key == packets[0].key;
        equal &= packets[i].len == packets[0].len && packets[i].associated_len == packets[0].associated_len;
    }
    b.count = count, b.one_key = one_key, b.equal = equal;
    if (!equal) {
        sort(order, packets, count);
        IN_TURN
        for (size_t i = 0; i < count; i++)
            set_message(&b, i, &packets[order[i]], extended ? b.subkeys[order[i]] : NULL);
    }
    if (decrypting)
        decrypt(&b);
    else
        encrypt(&b);
    chapoly_wipe(b.one_time, sizeof b.one_time[0] * 2 * ((count + BANK - 1) / BANK));
    chapoly_wipe(b.words, sizeof b.words);
    if (extended)
        chapoly_wipe(b.subkeys, sizeof b.subkeys[0] * count);
}

#endif
