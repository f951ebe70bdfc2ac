/*
 * chacha20_evex_any.h: ChaCha (RFC 8439 2.4) of any length, out of the pieces in chacha20_evex.h.
 */

/* requires SLICE * BLOCK <= len <= WIDE * BLOCK */
NOINLINE void blocks_wide(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16], uint32_t counter,
                          unsigned rounds)
{
    vector x[16], y[16];

    start_wide(x, y, state, counter);
    do {
        four_quarter_rounds(x, y, 0);
        four_quarter_rounds(x, y, 1);
        rounds -= 2;
    } while (rounds > 0);
    finish_wide(dst, src, len, x, y, state, counter);
}

/* requires of len what finish_rows does */
INLINE void horizontal(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16], uint32_t counter,
                       unsigned rounds, const int groups)
{
    rows x;

    start_rows(&x, state, counter, groups);
    for (unsigned i = 0; i < rounds; i += 2)
        double_round_rows(&x, groups);
    finish_rows(dst, src, len, &x, state, counter, groups);
}

#define HORIZONTAL(groups)                                                                                           \
    NOINLINE void horizontal##groups(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],         \
                                     uint32_t counter, unsigned rounds)                                              \
    {                                                                                                                \
        horizontal(dst, src, len, state, counter, rounds, groups);                                                   \
    }
HORIZONTAL(1)
HORIZONTAL(2)
HORIZONTAL(4)
HORIZONTAL(6)

/* ---- Any length. ---- */

INLINE void xor_any(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16], unsigned rounds)
{
    enum { GROUP = LANES * BLOCK };
    uint32_t counter = state[12];

    while (len > MAX_GROUPS * GROUP) {
        const size_t part = len < WIDE * BLOCK ? len : WIDE * BLOCK;
        prefetch(src, len);
        blocks_wide(dst, src, part, state, counter, rounds);
        dst += part, src += part, len -= part, counter += WIDE;
    }
    if (len > 4 * GROUP)
        horizontal6(dst, src, len, state, counter, rounds);
    else if (len > 2 * GROUP)
        horizontal4(dst, src, len, state, counter, rounds);
    else if (len > GROUP)
        horizontal2(dst, src, len, state, counter, rounds);
    else if (len > 0)
        horizontal1(dst, src, len, state, counter, rounds);
}
