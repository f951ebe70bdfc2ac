/*
 * The AEAD of RFC 8439 2.8 and, with HChaCha20 in front, of draft-irtf-cfrg-xchacha 2.1.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

/* What a message begins with: the state with counter 0. Block 0 gives the one-time key (RFC 8439 2.6). */
static void begin(const chapoly_kernel *kernel, chapoly_chacha *chacha, const uint8_t key[32], const uint8_t *nonce,
                  size_t nonce_size)
{
    if (nonce_size == CHAPOLY_XNONCE_SIZE)
        chapoly_xchacha20_init(kernel, chacha, key, nonce, 20);
    else
        chapoly_chacha20_init(chacha, key, nonce, 20);
}

void chapoly_aead_absorb(const chapoly_kernel *kernel, chapoly_poly1305 *mac, const uint8_t *data, size_t len)
{
    uint8_t last[16] = {0};

    if (len >= 16)
        kernel->poly1305_blocks(mac->h, mac->r, data, len / 16, 1);
    if (len % 16 > 0) {
        memcpy(last, data + (len - len % 16), len % 16);
        kernel->poly1305_blocks(mac->h, mac->r, last, 1, 1);
    }
}

void chapoly_aead_finish(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t tag[16], const uint8_t *data,
                         size_t size, uint64_t associated_len, uint64_t len)
{
    uint8_t last[32] = {0};
    const size_t rest = size % 16;

    if (size >= 16)
        kernel->poly1305_blocks(mac->h, mac->r, data, size / 16, 1);
    if (rest > 0)
        memcpy(last, data + (size - rest), rest);
    chapoly_store64(last + 16, associated_len);
    chapoly_store64(last + 24, len);
    kernel->poly1305_blocks(mac->h, mac->r, rest > 0 ? last : last + 16, rest > 0 ? 2 : 1, 1);
    chapoly_poly1305_finish(kernel, mac, tag);
}

/* Data and zeros up to a multiple of 16 bytes; where the next begins. */
static uint8_t *put_padded(uint8_t *p, const uint8_t *data, size_t len)
{
    if (len % 16 > 0)
        memset(p + (len & ~(size_t)15), 0, 16);
    if (len > 0)
        memcpy(p, data, len);
    return p + ((len + 15) & ~(size_t)15);
}

void chapoly_aead_tag(const chapoly_kernel *kernel, uint8_t tag[16], const uint8_t one_time_key[32],
                      const uint8_t *associated_data, size_t associated_len, const uint8_t *ciphertext, size_t len)
{
    enum { SHORT = 512 }; /* put together first, since each call of the kernel costs more than a few copies */
    chapoly_poly1305 mac;

    chapoly_poly1305_init(&mac, one_time_key);
    if (associated_len <= SHORT && len <= SHORT) {
        uint8_t text[2 * SHORT + 16], *end = text;
        end = put_padded(end, associated_data, associated_len);
        end = put_padded(end, ciphertext, len);
        chapoly_store64(end, associated_len);
        chapoly_store64(end + 8, len);
        kernel->poly1305_blocks(mac.h, mac.r, text, (size_t)(end - text) / 16 + 1, 1);
        chapoly_poly1305_finish(kernel, &mac, tag);
    } else {
        chapoly_aead_absorb(kernel, &mac, associated_data, associated_len);
        chapoly_aead_finish(kernel, &mac, tag, ciphertext, len, associated_len, len);
    }
}

/* Strips of whole passes of the cipher that stay in the first-level cache until the MAC has had them. */
size_t chapoly_aead_part_by_strips(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t *dst,
                                   const uint8_t *src, size_t len, size_t pending, const uint32_t state[16],
                                   bool decrypting)
{
    const size_t pass = kernel->pass_blocks * CHAPOLY_BLOCK_SIZE, most = (8192 + pass - 1) / pass * pass;
    uint32_t at[16];

    memcpy(at, state, sizeof at);
    while (len > 0) {
        const size_t strip = len < most ? len : most;
        if (pending > 0)
            kernel->poly1305_blocks(mac->h, mac->r, (decrypting ? src : dst) - pending, pending / 16, 1);
        kernel->chacha_xor(dst, src, strip, at, 20);
        at[12] += (uint32_t)(strip / CHAPOLY_BLOCK_SIZE);
        dst += strip, src += strip, len -= strip;
        pending = strip;
    }
    chapoly_wipe_few(at, sizeof at);
    return pending;
}

/*
 * A whole message: what it becomes, and the tag. Its first bytes are ciphered in the pass that makes the one-time key,
 * so that a short message takes one pass; their MAC is left for the kernel to make beside what follows.
 */
void chapoly_aead_by_passes(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src, size_t len,
                            const uint8_t *associated_data, size_t associated_len, const uint32_t state[16],
                            bool decrypting)
{
    const size_t room = (kernel->pass_blocks - 1) * CHAPOLY_BLOCK_SIZE, first = len < room ? len : room;
    const uint8_t *const ciphertext = decrypting ? src : dst;
    uint8_t pass[CHAPOLY_PASS_MAX * CHAPOLY_BLOCK_SIZE];
    chapoly_poly1305 mac;
    uint32_t at[16];
    size_t made, pending;

    made = kernel->chacha_pass(pass, state, 1 + (first + CHAPOLY_BLOCK_SIZE - 1) / CHAPOLY_BLOCK_SIZE);
    chapoly_xor(dst, src, pass + CHAPOLY_BLOCK_SIZE, first);
    if (first == len) {
        chapoly_aead_tag(kernel, tag, pass, associated_data, associated_len, ciphertext, len);
        chapoly_wipe(pass, made * CHAPOLY_BLOCK_SIZE);
        return;
    }
    chapoly_poly1305_init(&mac, pass);
    chapoly_wipe(pass, made * CHAPOLY_BLOCK_SIZE);
    chapoly_aead_absorb(kernel, &mac, associated_data, associated_len);

    memcpy(at, state, sizeof at);
    at[12] += (uint32_t)kernel->pass_blocks;
    pending = kernel->aead_part(kernel, &mac, dst + first, src + first, len - first, first, at, decrypting);
    chapoly_wipe_few(at, sizeof at);
    chapoly_aead_finish(kernel, &mac, tag, ciphertext + (len - pending), pending, associated_len, len);
}

/* A function, since compilers warn of a comparison that is always false where size_t has 32 bits. */
static bool too_long(uint64_t len)
{
    return len > CHAPOLY_AEAD_MAX;
}

enum chapoly_status chapoly_aead_encrypt(const chapoly_kernel *kernel, uint8_t *ciphertext, uint8_t tag[16],
                                         const uint8_t key[32], const uint8_t *nonce, size_t nonce_size,
                                         const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *plaintext, size_t len)
{
    chapoly_chacha chacha;

    if (too_long(len))
        return CHAPOLY_COUNTER_OVERFLOW;
    begin(kernel, &chacha, key, nonce, nonce_size);
    kernel->aead(kernel, tag, ciphertext, plaintext, len, associated_data, associated_len, chacha.words, false);
    chapoly_wipe_few(&chacha, sizeof chacha);
    return CHAPOLY_OK;
}

/* Verifies a long message before anything of it is written: in place, every byte must stay as it is till then. */
static void authenticate(const chapoly_kernel *kernel, uint8_t tag[16], const uint32_t state[16],
                         const uint8_t *associated_data, size_t associated_len, const uint8_t *ciphertext, size_t len)
{
    uint8_t one_time_key[32] = {0};

    kernel->chacha_xor(one_time_key, one_time_key, sizeof one_time_key, state, 20);
    chapoly_aead_tag(kernel, tag, one_time_key, associated_data, associated_len, ciphertext, len);
    chapoly_wipe_few(one_time_key, sizeof one_time_key);
}

enum chapoly_status chapoly_aead_decrypt(const chapoly_kernel *kernel, uint8_t *plaintext, const uint8_t tag[16],
                                         const uint8_t key[32], const uint8_t *nonce, size_t nonce_size,
                                         const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *ciphertext, size_t len)
{
    /* A plaintext up to here waits in a buffer until its tag is known to be right: copying it takes 3 % at most. */
    enum { HELD = 1024 };
    const bool in_place = plaintext == ciphertext;
    chapoly_chacha chacha;
    uint8_t expected[16], held[HELD];
    bool valid;

    if (too_long(len))
        return CHAPOLY_COUNTER_OVERFLOW;
    begin(kernel, &chacha, key, nonce, nonce_size);
    if (len <= HELD || !in_place)
        kernel->aead(kernel, expected, len <= HELD ? held : plaintext, ciphertext, len, associated_data, associated_len,
                     chacha.words, true);
    else
        authenticate(kernel, expected, chacha.words, associated_data, associated_len, ciphertext, len);
    valid = chapoly_tag_equal(tag, expected);
    if (valid && len > HELD && in_place)
        chapoly_chacha_xor(kernel, &chacha, 1, 0, plaintext, ciphertext, len);
    else if (valid && len <= HELD && len > 0)
        memcpy(plaintext, held, len);
    else if (!valid && !in_place && len > 0)
        memset(plaintext, 0, len);
    if (len <= HELD)
        chapoly_wipe(held, len);
    chapoly_wipe_few(expected, sizeof expected); /* a forger must not learn the right tag from dead memory */
    chapoly_wipe_few(&chacha, sizeof chacha);
    return valid ? CHAPOLY_OK : CHAPOLY_INVALID_TAG;
}
