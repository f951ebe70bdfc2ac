/*
 * ChaCha in portable C11, one block at a time: RFC 8439 2.1-2.4, for any byte order.
 */
#include <string.h>

#include "../bytes.h"
#include "../kernel.h"
#include "../rounds.h"

chapoly_chacha_xor_fn chapoly_chacha_xor_portable;
chapoly_hchacha_fn chapoly_hchacha_portable;
chapoly_chacha_lanes_fn chapoly_chacha_lanes_portable;
chapoly_chacha_pass_fn chapoly_chacha_pass_portable;

static inline void permute(uint32_t x[16], unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i += 2)
        chapoly_double_round(x);
}

/* RFC 8439 2.3 and 2.4: the block function, then xor. */
void chapoly_chacha_xor_portable(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                 unsigned rounds)
{
    uint32_t x[16];
    uint8_t keystream[64];

    for (uint32_t counter = state[12]; len > 0; counter++) {
        for (int i = 0; i < 16; i++)
            x[i] = state[i];
        x[12] = counter;
        permute(x, rounds);
        for (int i = 0; i < 16; i++)
            x[i] += i == 12 ? counter : state[i];

        if (len >= 64) {
            for (int i = 0; i < 16; i++)
                chapoly_store32(dst + 4 * i, chapoly_load32(src + 4 * i) ^ x[i]);
            dst += 64, src += 64, len -= 64;
        } else {
            for (int i = 0; i < 16; i++)
                chapoly_store32(keystream + 4 * i, x[i]);
            for (size_t i = 0; i < len; i++)
                dst[i] = (uint8_t)(src[i] ^ keystream[i]);
            chapoly_wipe(keystream, sizeof keystream);
            len = 0;
        }
    }
    chapoly_wipe(x, sizeof x);
}

/* One after the other. */
void chapoly_chacha_lanes_portable(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                                   size_t count)
{
    uint32_t state[16];

    memset(keystream, 0, 64 * count);
    for (size_t i = 0; i < count; i++) {
        memcpy(state, states[i], sizeof state);
        state[12] = counters[i];
        chapoly_chacha_xor_portable(keystream + 64 * i, keystream + 64 * i, 64, state, 20);
    }
    chapoly_wipe(state, sizeof state);
}

size_t chapoly_chacha_pass_portable(uint8_t *keystream, const uint32_t state[16], size_t blocks)
{
    memset(keystream, 0, 64 * blocks);
    chapoly_chacha_xor_portable(keystream, keystream, 64 * blocks, state, 20);
    return blocks;
}

/* draft-irtf-cfrg-xchacha 2.2. */
void chapoly_hchacha_portable(uint8_t subkey[32], const uint32_t state[16], unsigned rounds)
{
    uint32_t x[16];

    for (int i = 0; i < 16; i++)
        x[i] = state[i];
    permute(x, rounds);
    for (int i = 0; i < 4; i++) {
        chapoly_store32(subkey + 4 * i, x[i]);
        chapoly_store32(subkey + 16 + 4 * i, x[12 + i]);
    }
    chapoly_wipe(x, sizeof x);
}
