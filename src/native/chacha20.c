/*
 * ChaCha, what is the same for every kernel: setting up a state, positions, and HChaCha20.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

/* RFC 8439 2.3: the words 0-3 spell "expand 32-byte k", then the key. */
static void set_key(uint32_t words[16], const uint8_t key[32])
{
    words[0] = 0x61707865;
    words[1] = 0x3320646e;
    words[2] = 0x79622d32;
    words[3] = 0x6b206574;
    for (int i = 0; i < 8; i++)
        words[4 + i] = chapoly_load32(key + 4 * i);
}

void chapoly_chacha20_init(chapoly_chacha *chacha, const uint8_t key[32], const uint8_t nonce[12], unsigned rounds)
{
    set_key(chacha->words, key);
    chacha->words[12] = 0;
    for (int i = 0; i < 3; i++)
        chacha->words[13 + i] = chapoly_load32(nonce + 4 * i);
    chacha->rounds = rounds;
    chacha->wide = false;
}

/*
 * draft-irtf-cfrg-xchacha 2.3: HChaCha20 of the first 16 bytes of the nonce is the key; the inner nonce is four zero
 * bytes and the last 8. (libsodium's crypto_stream_xchacha20 has a 64-bit counter there; up to 2^32 blocks both agree.)
 */
void chapoly_xchacha20_init(const chapoly_kernel *kernel, chapoly_chacha *chacha, const uint8_t key[32],
                            const uint8_t nonce[24], unsigned rounds)
{
    uint8_t subkey[32], inner[12] = {0};

    chapoly_hchacha20(kernel, subkey, key, nonce, rounds);
    memcpy(inner + 4, nonce + 16, 8);
    chapoly_chacha20_init(chacha, subkey, inner, rounds);
    chapoly_wipe(subkey, sizeof subkey);
}

/* Bernstein's original: words 12 and 13 are a 64-bit counter, 14 and 15 the nonce. */
void chapoly_chacha20_legacy_init(chapoly_chacha *chacha, const uint8_t key[32], const uint8_t nonce[8],
                                  unsigned rounds)
{
    set_key(chacha->words, key);
    chacha->words[12] = chacha->words[13] = 0;
    chacha->words[14] = chapoly_load32(nonce);
    chacha->words[15] = chapoly_load32(nonce + 4);
    chacha->rounds = rounds;
    chacha->wide = true;
}

void chapoly_hchacha20(const chapoly_kernel *kernel, uint8_t subkey[32], const uint8_t key[32],
                       const uint8_t nonce[16], unsigned rounds)
{
    uint32_t words[16];

    set_key(words, key);
    for (int i = 0; i < 4; i++)
        words[12 + i] = chapoly_load32(nonce + 4 * i);
    kernel->hchacha(subkey, words, rounds);
    chapoly_wipe(words, sizeof words);
}

uint64_t chapoly_chacha_left(const chapoly_chacha *chacha, uint64_t block, unsigned offset)
{
    const uint64_t last = chacha->wide ? UINT64_MAX : UINT32_MAX;
    const uint64_t after = last - block; /* blocks after this one */

    if (block > last)
        return 0;
    return after < UINT64_MAX / 64 ? 64 * after + (64 - offset) : UINT64_MAX;
}

enum chapoly_status chapoly_chacha_xor(const chapoly_kernel *kernel, const chapoly_chacha *chacha, uint64_t block,
                                       unsigned offset, uint8_t *dst, const uint8_t *src, size_t len)
{
    uint32_t state[16];
    uint8_t scratch[4 * 64];

    if (len > chapoly_chacha_left(chacha, block, offset))
        return CHAPOLY_COUNTER_OVERFLOW;

    memcpy(state, chacha->words, sizeof state);
    if (offset == 64)
        block++, offset = 0; /* past the very last block only if len is 0 */

    if (offset > 0 && len > 0) { /* what is left of a block that was begun; a short message at once with it */
        const bool whole = offset + len <= sizeof scratch && (uint32_t)block <= UINT32_MAX - 3;
        const size_t part = whole ? len : len < 64 - offset ? len : 64 - offset;
        state[12] = (uint32_t)block;
        if (chacha->wide)
            state[13] = (uint32_t)(block >> 32);
        memset(scratch, 0, offset);
        memcpy(scratch + offset, src, part);
        kernel->chacha_xor(scratch, scratch, offset + part, state, chacha->rounds);
        memcpy(dst, scratch + offset, part);
        chapoly_wipe(scratch, offset + part);
        dst += part, src += part, len -= part;
        block++; /* if anything is left, it begins with the next */
    }

    while (len > 0) { /* as far as the low word of the counter goes, so that no kernel ever sees it wrap */
        const uint64_t run = 64 * ((UINT64_C(1) << 32) - (uint32_t)block);
        const size_t part = len < run ? len : (size_t)run;
        state[12] = (uint32_t)block;
        if (chacha->wide)
            state[13] = (uint32_t)(block >> 32);
        kernel->chacha_xor(dst, src, part, state, chacha->rounds);
        dst += part, src += part, len -= part;
        block += part / 64;
    }
    chapoly_wipe(state, sizeof state);
    return CHAPOLY_OK;
}

void chapoly_chacha_xor_in_block(const chapoly_kernel *kernel, const chapoly_chacha *chacha, chapoly_begun_block *begun,
                                 uint64_t block, unsigned offset, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (!begun->there || begun->block != block) {
        memset(begun->keystream, 0, sizeof begun->keystream);
        chapoly_chacha_xor(kernel, chacha, block, 0, begun->keystream, begun->keystream, sizeof begun->keystream);
        begun->block = block;
        begun->there = true;
    }
    chapoly_xor(dst, src, begun->keystream + offset, len);
}
