/*
 * chacha20_evex.h: ChaCha (RFC 8439 2.3 and 2.4) with what AVX-512 adds, 32 registers, rotations and masks, for vectors
 * of either width. The file that includes it defines `vector`, its LANES of 128 bits, the prefix of its intrinsics as
 * V() and V_SI(), and gather_blocks().
 *
 * Long inputs are taken word-sliced: vector i holds word i of each block, one block per 32-bit element, and the four
 * quarter rounds of a round stand side by side. Two such groups fill the registers exactly; nothing is left over for
 * temporary values, and nothing needs any. Short inputs are taken horizontally: a vector holds one row (four words) of
 * LANES blocks, so that a quarter round is the whole column round, and rotating rows by one, two and three words turns
 * the diagonals into columns. However few its blocks, that costs little more than the latency of one, and its code is
 * small: a single packet must not evict the caller from the instruction cache.
 */
#define NOINLINE static __attribute__((noinline)) TARGET

enum {
    BLOCK = CHAPOLY_BLOCK_SIZE,
    SLICE = 4 * LANES, /* blocks of a word-sliced group: one per 32-bit element */
    WIDE = 2 * SLICE,  /* blocks that blocks_wide takes */
    MAX_GROUPS = 6,    /* of LANES blocks each, horizontally; then blocks_wide is as fast */
};

/* Macros, since immediate operands must be constants wherever the compiler does not inline too. */
#define add V(add_epi32)
#define exclusive_or V(xor_epi32)
#define rotate_left V(rol_epi32)
/* In each lane, word i becomes what was word i + n (mod 4). */
#define turn_row(v, n) V(shuffle_epi32)(v, (n) == 1 ? 0x39 : (n) == 2 ? 0x4e : 0x93)

INLINE vector broadcast_word(uint32_t word)
{
    return V(set1_epi32)((int)word);
}

/* Four words in each lane. */
INLINE vector broadcast_row(const uint32_t row[4])
{
    return V(broadcast_i32x4)(_mm_loadu_si128((const void *)row));
}

/* ---- Counters: 32-bit adds, for the counter never leaves its word (kernel.h). ---- */

/* counter + i in element i */
INLINE vector slice_counters(uint32_t counter)
{
    return add(broadcast_word(counter), V_SI(load)((const void *)element_numbers));
}

/*
 * The last row of the state, with counter + j in lane j. Word by word, as it was stored a moment ago: one load would
 * wait until all of these stores have reached the cache.
 */
INLINE vector counter_row(const uint32_t state[16], uint32_t counter)
{
    const __m128i row = _mm_setr_epi32((int)counter, (int)state[13], (int)state[14], (int)state[15]);

    return add(V(broadcast_i32x4)(row), V_SI(load)((const void *)lane_numbers));
}

/* The counter of each lane, further on by so many blocks. */
INLINE vector add_blocks(vector last_row, int blocks)
{
    return add(last_row, V(maskz_set1_epi32)(FIRST_WORDS, blocks));
}

/* ---- Output. ---- */

/* Bytes `at` to `at` + 16 * LANES of dst, as far as they lie below len. */
INLINE void xor_part(uint8_t *dst, const uint8_t *src, size_t len, size_t at, vector keystream)
{
    if (len >= at + sizeof(vector)) {
        V_SI(storeu)((void *)(dst + at), exclusive_or(V_SI(loadu)((const void *)(src + at)), keystream));
    } else if (len > at) { /* bytes outside the mask are neither read nor written, and cannot fault */
        const vector_mask mask = (vector_mask)(((uint64_t)1 << (len - at)) - 1);
        V(mask_storeu_epi8)(dst + at, mask, exclusive_or(V(maskz_loadu_epi8)(mask, src + at), keystream));
    }
}

/*
 * Lane j of the rows a, b, c and d is a block. It goes to dst + j * stride, as far as that lies below len.
 */
INLINE void xor_blocks(uint8_t *dst, const uint8_t *src, size_t len, size_t stride, vector a, vector b, vector c,
                       vector d)
{
    vector out[4];

    gather_blocks(out, a, b, c, d);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        const size_t at = i * sizeof(vector); /* if the blocks lay side by side */
        xor_part(dst, src, len, at / BLOCK * stride + at % BLOCK, out[i]);
    }
}

/* ---- WIDE blocks, word-sliced, as two groups. ---- */

/*
 * Asks for what the pass after the next will read, if there is as much. The loads and stores of a pass go back and
 * forth in it, in which the CPU sees no stream. With vectors of 512 bits 64 MiB into a buffer would take 1.6 times as
 * long (AMD Zen 5; a row of bench/peers), and messages of 64 KiB that no cache holds 1.1 times (Zen 4). Otherwise it
 * makes no difference.
 */
INLINE void prefetch(const uint8_t *src, size_t len)
{
    enum { PASS_SIZE = WIDE * BLOCK };

    if (len >= 3 * PASS_SIZE)
        for (size_t i = 0; i < PASS_SIZE; i += 64)
            __builtin_prefetch(src + 2 * PASS_SIZE + i);
}

/* Four quarter rounds (RFC 8439 2.1) side by side, on words i, 4 + (i + s) mod 4 and so on; s = 1: diagonals. */
INLINE void four_quarter_rounds(vector x[16], vector y[16], const int s)
{
#define FOUR(operation)                                                                                              \
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                                              \
    {                                                                                                                \
        const int a = i, b = 4 + (i + s) % 4, c = 8 + (i + 2 * s) % 4, d = 12 + (i + 3 * s) % 4;                     \
        operation;                                                                                                   \
        (void)a, (void)b, (void)c, (void)d;                                                                          \
    }
#define STEP(v, to, from, turned, n)                                                                                 \
    FOUR(v[to] = add(v[to], v[from]))                                                                                \
    FOUR(v[turned] = exclusive_or(v[turned], v[to]))                                                                 \
    FOUR(v[turned] = rotate_left(v[turned], n))
    STEP(x, a, b, d, 16) STEP(y, a, b, d, 16)
    STEP(x, c, d, b, 12) STEP(y, c, d, b, 12)
    STEP(x, a, b, d, 8) STEP(y, a, b, d, 8)
    STEP(x, c, d, b, 7) STEP(y, c, d, b, 7)
#undef STEP
#undef FOUR
}

/* Words r to r + 3, of blocks 4 j + k, to lane j of w[r + k], for r a multiple of four. */
INLINE void gather_quads(vector w[16])
{
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) {
        const vector lo = V(unpacklo_epi32)(w[r], w[r + 1]), hi = V(unpackhi_epi32)(w[r], w[r + 1]);
        const vector lo2 = V(unpacklo_epi32)(w[r + 2], w[r + 3]), hi2 = V(unpackhi_epi32)(w[r + 2], w[r + 3]);
        w[r] = V(unpacklo_epi64)(lo, lo2);
        w[r + 1] = V(unpackhi_epi64)(lo, lo2);
        w[r + 2] = V(unpacklo_epi64)(hi, hi2);
        w[r + 3] = V(unpackhi_epi64)(hi, hi2);
    }
}

/* SLICE blocks: the feed-forward, 32-bit adds in each element; transposed, xored and stored as far as len goes. */
INLINE void finish_slice(uint8_t *dst, const uint8_t *src, size_t len, vector w[16], const uint32_t state[16],
                         vector counters)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        w[i] = add(w[i], i == 12 ? counters : broadcast_word(state[i]));
    gather_quads(w);
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++) {
        const size_t before = k * BLOCK;
        xor_blocks(dst + before, src + before, len > before ? len - before : 0, 4 * BLOCK, w[k], w[4 + k], w[8 + k],
                   w[12 + k]);
    }
}

INLINE void start_slice(vector w[16], const uint32_t state[16], uint32_t counter)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        w[i] = i == 12 ? slice_counters(counter) : broadcast_word(state[i]);
}

INLINE void start_wide(vector x[16], vector y[16], const uint32_t state[16], uint32_t counter)
{
    start_slice(x, state, counter);
    start_slice(y, state, counter + SLICE);
}

/* requires SLICE * BLOCK <= len <= WIDE * BLOCK */
INLINE void finish_wide(uint8_t *dst, const uint8_t *src, size_t len, vector x[16], vector y[16],
                        const uint32_t state[16], uint32_t counter)
{
    enum { HALF = SLICE * BLOCK };

    __asm__("" ::: "memory"); /* or gcc would keep the vectors of start_wide, which hold the key, on the stack */
    finish_slice(dst, src, HALF, x, state, slice_counters(counter));
    __asm__("" ::: "memory"); /* what is done to y begins when x is done, and its registers are free */
    finish_slice(dst + HALF, src + HALF, len - HALF, y, state, slice_counters(counter + SLICE));
}

/* ---- groups * LANES blocks, horizontally. ---- */

#define ALL(body)                                                                                                    \
    _Pragma("GCC unroll 6") for (int g = 0; g < groups; g++) { body; }

INLINE void row_quarter_rounds(vector a[], vector b[], vector c[], vector d[], const int groups)
{
#define STEP(to, from, turned, n)                                                                                    \
    ALL(to[g] = add(to[g], from[g]))                                                                                 \
    ALL(turned[g] = exclusive_or(turned[g], to[g]))                                                                  \
    ALL(turned[g] = rotate_left(turned[g], n))
    STEP(a, b, d, 16)
    STEP(c, d, b, 12)
    STEP(a, b, d, 8)
    STEP(c, d, b, 7)
#undef STEP
}

/* Rows a, b, c and d of `groups` times LANES blocks. */
typedef struct {
    vector a[MAX_GROUPS], b[MAX_GROUPS], c[MAX_GROUPS], d[MAX_GROUPS];
} rows;

INLINE void start_rows(rows *x, const uint32_t state[16], uint32_t counter, const int groups)
{
    vector last_row = counter_row(state, counter);

    ALL(x->a[g] = broadcast_row(state); x->b[g] = broadcast_row(state + 4); x->c[g] = broadcast_row(state + 8);
        x->d[g] = last_row; last_row = add_blocks(last_row, LANES))
}

INLINE void double_round_rows(rows *x, const int groups)
{
    row_quarter_rounds(x->a, x->b, x->c, x->d, groups);
    /* Row b stays: turning a, c and d instead keeps the shuffles off the longest chain, which runs through b. */
    ALL(x->a[g] = turn_row(x->a[g], 3); x->d[g] = turn_row(x->d[g], 2); x->c[g] = turn_row(x->c[g], 1))
    row_quarter_rounds(x->a, x->b, x->c, x->d, groups);
    ALL(x->a[g] = turn_row(x->a[g], 1); x->d[g] = turn_row(x->d[g], 2); x->c[g] = turn_row(x->c[g], 3))
}

/* The feed-forward of LANES blocks, and what xor_blocks does. */
INLINE void finish_group(uint8_t *dst, const uint8_t *src, size_t len, const rows *x, size_t g,
                         const uint32_t state[16], vector last_row)
{
    xor_blocks(dst, src, len, BLOCK, add(x->a[g], broadcast_row(state)), add(x->b[g], broadcast_row(state + 4)),
               add(x->c[g], broadcast_row(state + 8)), add(x->d[g], last_row));
}

NOINLINE void finish_groups(uint8_t *dst, const uint8_t *src, size_t len, const rows *x, const uint32_t state[16],
                            uint32_t counter)
{
    enum { GROUP = LANES * BLOCK };
    vector last_row = counter_row(state, counter);

#pragma GCC unroll 1
    for (size_t g = 0; len > 0; g++) {
        const size_t part = len < GROUP ? len : GROUP;
        finish_group(dst, src, part, x, g, state, last_row);
        last_row = add_blocks(last_row, LANES);
        dst += part, src += part, len -= part;
    }
}

/*
 * Four groups or six go through memory, to be finished by one loop: as much code as they would be otherwise costs a
 * single packet more than that.
 * requires  len <= groups * LANES * BLOCK; if there are two groups, more than one of them
 */
INLINE void finish_rows(uint8_t *dst, const uint8_t *src, size_t len, const rows *x, const uint32_t state[16],
                        uint32_t counter, const int groups)
{
    enum { GROUP = LANES * BLOCK };

    if (groups > 2) {
        rows kept = *x;
        finish_groups(dst, src, len, &kept, state, counter);
        chapoly_wipe(&kept, sizeof kept);
        return;
    }
    const vector last_row = counter_row(state, counter);
    finish_group(dst, src, groups == 1 ? len : GROUP, x, 0, state, last_row);
    if (groups == 2)
        finish_group(dst + GROUP, src + GROUP, len - GROUP, x, 1, state, add_blocks(last_row, LANES));
}
