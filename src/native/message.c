/*
 * The AEAD of RFC 8439 2.8 for a message in parts of any length: the cipher and the MAC of aead.c, taken step by step.
 * What comes out of a decryption has not been verified.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

/* Zeros up to a multiple of 16 bytes: RFC 8439 2.8 pads the associated data and the ciphertext. */
static void pad(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint64_t len)
{
    static const uint8_t zeros[16];

    chapoly_poly1305_update(kernel, mac, zeros, (size_t)(-len % 16));
}

void chapoly_message_init(const chapoly_kernel *kernel, chapoly_message *message, const uint8_t key[32],
                          const uint8_t *nonce, size_t nonce_size, const uint8_t *associated_data,
                          size_t associated_len)
{
    uint8_t one_time_key[32] = {0};

    if (nonce_size == CHAPOLY_XNONCE_SIZE)
        chapoly_xchacha20_init(kernel, &message->chacha, key, nonce, 20);
    else
        chapoly_chacha20_init(&message->chacha, key, nonce, 20);
    chapoly_chacha_xor(kernel, &message->chacha, 0, 0, one_time_key, one_time_key, sizeof one_time_key);
    chapoly_poly1305_init(&message->mac, one_time_key);
    chapoly_wipe(one_time_key, sizeof one_time_key);
    chapoly_poly1305_update(kernel, &message->mac, associated_data, associated_len);
    pad(kernel, &message->mac, associated_len);
    message->associated_len = associated_len;
    message->len = 0;
}

uint64_t chapoly_message_left(const chapoly_message *message)
{
    return CHAPOLY_AEAD_MAX - message->len;
}

/* Data starts at block 1; block 0 gave the one-time key. Moves on, too. */
static void xor(const chapoly_kernel *kernel, chapoly_message *message, uint8_t *dst, const uint8_t *src, size_t len)
{
    chapoly_chacha_xor(kernel, &message->chacha, 1 + message->len / CHAPOLY_BLOCK_SIZE,
                       (unsigned)(message->len % CHAPOLY_BLOCK_SIZE), dst, src, len);
    message->len += len;
}

/* Cipher and MAC at once, from the start of a block on: nothing is buffered in the MAC then. Moves on, too. */
static void at_once(const chapoly_kernel *kernel, chapoly_message *message, uint8_t *dst, const uint8_t *src,
                    size_t len, bool decrypting)
{
    uint32_t state[16];
    size_t pending;

    memcpy(state, message->chacha.words, sizeof state);
    state[12] = (uint32_t)(1 + message->len / CHAPOLY_BLOCK_SIZE);
    pending = kernel->aead_part(kernel, &message->mac, dst, src, len, 0, state, decrypting);
    chapoly_poly1305_update(kernel, &message->mac, (decrypting ? src : dst) + (len - pending), pending);
    message->len += len;
    chapoly_wipe(state, sizeof state);
}

static enum chapoly_status crypt(const chapoly_kernel *kernel, chapoly_message *message, uint8_t *dst,
                                 const uint8_t *src, size_t len, bool decrypting)
{
    enum { LONG = 1024 }; /* on AMD Zen 3 avx2 gains from 768 bytes on, and no kernel loses here */
    const size_t begun = (size_t)(-message->len % CHAPOLY_BLOCK_SIZE); /* what is left of a block */
    const size_t head = len < begun + LONG || (decrypting && dst == src) ? len : begun;

    if (len > chapoly_message_left(message))
        return CHAPOLY_COUNTER_OVERFLOW;
    if (decrypting) /* first: in place, xor overwrites it */
        chapoly_poly1305_update(kernel, &message->mac, src, head);
    xor(kernel, message, dst, src, head);
    if (!decrypting)
        chapoly_poly1305_update(kernel, &message->mac, dst, head);
    if (head < len)
        at_once(kernel, message, dst + head, src + head, len - head, decrypting);
    return CHAPOLY_OK;
}

enum chapoly_status chapoly_message_encrypt(const chapoly_kernel *kernel, chapoly_message *message, uint8_t *ciphertext,
                                            const uint8_t *plaintext, size_t len)
{
    return crypt(kernel, message, ciphertext, plaintext, len, false);
}

enum chapoly_status chapoly_message_decrypt(const chapoly_kernel *kernel, chapoly_message *message, uint8_t *plaintext,
                                            const uint8_t *ciphertext, size_t len)
{
    return crypt(kernel, message, plaintext, ciphertext, len, true);
}

void chapoly_message_authenticate(const chapoly_kernel *kernel, chapoly_message *message, const uint8_t *ciphertext,
                                  size_t len)
{
    chapoly_poly1305_update(kernel, &message->mac, ciphertext, len);
    message->len += len;
}

void chapoly_message_finish(const chapoly_kernel *kernel, chapoly_message *message, uint8_t tag[16])
{
    uint8_t lengths[16];

    pad(kernel, &message->mac, message->len);
    chapoly_store64(lengths, message->associated_len);
    chapoly_store64(lengths + 8, message->len);
    chapoly_poly1305_update(kernel, &message->mac, lengths, sizeof lengths);
    chapoly_poly1305_finish(kernel, &message->mac, tag);
    chapoly_wipe(message, sizeof *message);
}
