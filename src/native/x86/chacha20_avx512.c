/*
 * ChaCha (RFC 8439 2.3 and 2.4) for x86-64 with AVX-512 (F, BW, VL), in vectors of 512 bits.
 */
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>
#include <string.h>

#include "lanes_avx512.h"

chapoly_chacha_xor_fn chapoly_chacha_xor_avx512, chapoly_chacha_xor_portable;
chapoly_chacha_lanes_fn chapoly_chacha_lanes_avx512;

/*
 * What gcc would do before registers are allocated costs spills in the loop of rounds: scheduling, and merging
 * variables and computing things early across it (gcc 12: 51 accesses to spilled vectors per two rounds, with these
 * options 3).
 */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-schedule-insns2", "no-tree-vectorize", "no-tree-coalesce-vars", \
                     "no-tree-pre", "no-gcse")
#endif

#include "chacha20_avx512.h"
#include "chacha20_evex_any.h"

TARGET void chapoly_chacha_xor_avx512(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                      unsigned rounds)
{
    if (len <= BLOCK)
        chapoly_chacha_xor_portable(dst, src, len, state, rounds);
    else
        xor_any(dst, src, len, state, rounds);
}

/* ---- A block of its own nonce, and perhaps key, in each element. ---- */

/* Element l of w[i] becomes element i of w[l]. */
INLINE void transpose(vector w[16])
{
    vector out[4], whole[16];

    gather_quads(w);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        gather_blocks(out, w[k], w[4 + k], w[8 + k], w[12 + k]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            whole[4 * j + k] = out[j];
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        w[i] = whole[i];
}

/* The four words at row(l) in element l: word i in w[i]. */
#define GATHER_WORDS(w, row)                                                                                         \
    do {                                                                                                             \
        vector fours[4]; /* fours[j]: those of the elements j, j + 4, j + 8 and j + 12 */                             \
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)                                                         \
        {                                                                                                           \
            fours[j] = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)row(j)));                                \
            fours[j] = _mm512_mask_broadcast_i32x4(fours[j], 0x00f0, _mm_loadu_si128((const void *)row(j + 4)));      \
            fours[j] = _mm512_mask_broadcast_i32x4(fours[j], 0x0f00, _mm_loadu_si128((const void *)row(j + 8)));      \
            fours[j] = _mm512_mask_broadcast_i32x4(fours[j], 0xf000, _mm_loadu_si128((const void *)row(j + 12)));     \
        }                                                                                                           \
        transpose_rows(w, fours);                                                                                    \
    } while (0)

INLINE void transpose_rows(vector w[4], const vector fours[4])
{
    const vector lo = _mm512_unpacklo_epi32(fours[0], fours[1]), hi = _mm512_unpackhi_epi32(fours[0], fours[1]);
    const vector lo2 = _mm512_unpacklo_epi32(fours[2], fours[3]), hi2 = _mm512_unpackhi_epi32(fours[2], fours[3]);

    w[0] = _mm512_unpacklo_epi64(lo, lo2);
    w[1] = _mm512_unpackhi_epi64(lo, lo2);
    w[2] = _mm512_unpacklo_epi64(hi, hi2);
    w[3] = _mm512_unpackhi_epi64(hi, hi2);
}

static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; /* RFC 8439 2.3 */

/* Word i of a state with this key, the same in all elements. */
INLINE vector broadcast_constant(const uint8_t key[32], int i)
{
    uint32_t word = constants[i % 4];

    if (i >= 4)
        memcpy(&word, key + 4 * (i - 4), sizeof word);
    return broadcast_word(word);
}

/* The states of SLICE lanes from lane `first` on, and what of them the feed-forward will need. */
INLINE void gather_states(vector x[16], vector start[16], const chapoly_lanes *lanes, const chapoly_streams *streams,
                          size_t first, const bool one_key)
{
#define NONCE(l) streams->nonces[lanes->message[first + (size_t)(l)]]
#define KEY(l) streams->keys[lanes->message[first + (size_t)(l)]]
#define SECOND_HALF(l) (KEY(l) + 16)
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        x[i] = broadcast_constant(streams->keys[0], i);
    GATHER_WORDS(x + 12, NONCE);
    x[12] = _mm512_load_si512(lanes->counter + first);
    if (one_key) { /* last: before the nonces, gcc 12 would spill vectors in the loop of rounds */
#pragma GCC unroll 8
        for (int i = 4; i < 12; i++)
            x[i] = broadcast_constant(streams->keys[0], i);
    } else {
        GATHER_WORDS(x + 4, KEY);
        GATHER_WORDS(x + 8, SECOND_HALF);
    }
#pragma GCC unroll 16
    for (int i = one_key ? 12 : 4; i < 16; i++)
        start[i] = x[i];
}

/* The words below `words` with the feed-forward. */
INLINE void feed_forward(vector x[16], const vector start[16], const chapoly_streams *streams, int words,
                         const bool one_key)
{
#pragma GCC unroll 16
    for (int i = 0; i < words; i++)
        x[i] = add(x[i], i < (one_key ? 12 : 4) ? broadcast_constant(streams->keys[0], i) : start[i]);
}

/* The blocks of SLICE lanes from lane `first` on. */
INLINE void scatter_blocks(vector x[16], const vector start[16], const chapoly_lanes *lanes,
                           const chapoly_streams *streams, size_t first, const bool one_key)
{
    feed_forward(x, start, streams, 16, one_key);
    transpose(x);
#pragma GCC unroll 16
    for (size_t l = 0; l < SLICE; l++) {
        const struct chapoly_stream *const to = &streams->streams[lanes->message[first + l]];
        const size_t at = lanes->at[first + l], left = to->len - at;
        const vector_mask mask = left < BLOCK ? ((vector_mask)1 << left) - 1 : ~(vector_mask)0;
        _mm512_mask_storeu_epi8(to->dst + at, mask, exclusive_or(_mm512_maskz_loadu_epi8(mask, to->src + at), x[l]));
    }
}

INLINE void take_lanes(const chapoly_lanes *lanes, const chapoly_streams *streams, uint32_t (*one_time_keys)[16],
                       const bool one_key)
{
    vector x[16], y[16], start[2][16];

    gather_states(x, start[0], lanes, streams, 0, one_key);
    gather_states(y, start[1], lanes, streams, SLICE, one_key);
    for (int i = 0; i < 20; i += 2) {
        four_quarter_rounds(x, y, 0);
        four_quarter_rounds(x, y, 1);
    }
    if (one_time_keys == NULL) {
        scatter_blocks(x, start[0], lanes, streams, 0, one_key);
    } else {
        feed_forward(x, start[0], streams, 8, one_key);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            _mm512_storeu_si512(one_time_keys[i], x[i]);
    }
    __asm__("" ::: "memory"); /* what is done to y begins when x is done, and its registers are free */
    scatter_blocks(y, start[1], lanes, streams, SLICE, one_key);
    if (!one_key)
        chapoly_wipe(start, sizeof start);
}

NOINLINE void take_lanes_of_one_key(const chapoly_lanes *lanes, const chapoly_streams *streams,
                                    uint32_t (*one_time_keys)[16])
{
    take_lanes(lanes, streams, one_time_keys, true);
}

NOINLINE void take_lanes_of_many_keys(const chapoly_lanes *lanes, const chapoly_streams *streams,
                                      uint32_t (*one_time_keys)[16])
{
    take_lanes(lanes, streams, one_time_keys, false);
}

TARGET void chapoly_lanes_avx512(const chapoly_lanes *lanes, const chapoly_streams *streams,
                                 uint32_t (*one_time_keys)[16])
{
    (streams->one_key ? take_lanes_of_one_key : take_lanes_of_many_keys)(lanes, streams, one_time_keys);
}

/* ---- Blocks of two messages, one after the other. ---- */

INLINE void finish_slice_of(const chapoly_slice *slice, const chapoly_streams *streams, vector w[16],
                            const uint32_t state[16])
{
    const struct chapoly_stream *const to = &streams->streams[slice->message];

    finish_slice(to->dst + slice->at, to->src + slice->at, to->len - slice->at, w, state, slice_counters(state[12]));
}

TARGET void chapoly_slices_avx512(const chapoly_slice slices[2], const chapoly_streams *streams)
{
    uint32_t state[2][16];
    vector x[16], y[16];

    for (int k = 0; k < 2; k++) {
        const size_t message = slices[k].message;
        memcpy(state[k], constants, sizeof constants);
        memcpy(state[k] + 4, streams->keys[message], 32);
        memcpy(state[k] + 12, streams->nonces[message], 16);
        state[k][12] = 1 + slices[k].at / BLOCK;
    }
    start_slice(x, state[0], state[0][12]);
    start_slice(y, state[1], state[1][12]);
    for (int i = 0; i < 20; i += 2) {
        four_quarter_rounds(x, y, 0);
        four_quarter_rounds(x, y, 1);
    }
    finish_slice_of(&slices[0], streams, x, state[0]);
    __asm__("" ::: "memory"); /* as in finish_wide */
    finish_slice_of(&slices[1], streams, y, state[1]);
    chapoly_wipe(state, sizeof state);
}

TARGET void chapoly_chacha_lanes_avx512(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                                        size_t count)
{
    static const uint8_t zeros[BLOCK];
    const uint8_t *keys[WIDE];
    uint32_t nonces[WIDE][4];
    struct chapoly_stream streams[WIDE];
    chapoly_lanes lanes;

    for (size_t l = 0; l < WIDE; l++) { /* where there are fewer, the last again */
        const uint32_t *const state = states[l < count ? l : count - 1];
        keys[l] = (const uint8_t *)(state + 4);
        memcpy(nonces[l], state + 12, sizeof nonces[l]);
        streams[l] = (struct chapoly_stream){zeros, keystream + BLOCK * l, BLOCK};
        lanes.counter[l] = counters[l < count ? l : count - 1];
        lanes.at[l] = 0;
        lanes.message[l] = (uint8_t)l;
    }
    take_lanes_of_many_keys(&lanes, &(chapoly_streams){keys, (const uint32_t(*)[4])nonces, streams, false}, NULL);
}

#endif
