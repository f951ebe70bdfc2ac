/*
 * The AEAD of RFC 8439 2.8 and, with HChaCha20 in front, of draft-irtf-cfrg-xchacha 2.1.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

/* Sets up the cipher for one message, and the MAC with its one-time key: half of block 0 (RFC 8439 2.6). */
static void begin(const chapoly_kernel *kernel, chapoly_chacha *chacha, chapoly_poly1305 *mac, const uint8_t key[32],
                  const uint8_t *nonce, size_t nonce_size)
{
    uint8_t one_time_key[32] = {0};

    if (nonce_size == CHAPOLY_XNONCE_SIZE)
        chapoly_xchacha20_init(kernel, chacha, key, nonce, 20);
    else
        chapoly_chacha20_init(chacha, key, nonce, 20);
    chapoly_chacha_xor(kernel, chacha, 0, 0, one_time_key, one_time_key, sizeof one_time_key);
    chapoly_poly1305_init(mac, one_time_key);
    chapoly_wipe(one_time_key, sizeof one_time_key);
}

/* Data, and zeros up to a multiple of 16 bytes. */
static void update_padded(const chapoly_kernel *kernel, chapoly_poly1305 *mac, const uint8_t *data, size_t len)
{
    static const uint8_t zeros[16];

    chapoly_poly1305_update(kernel, mac, data, len);
    chapoly_poly1305_update(kernel, mac, zeros, -len % 16);
}

/* RFC 8439 2.8: associated data and ciphertext, each padded, then both lengths. */
static void authenticate(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t tag[16],
                         const uint8_t *associated_data, size_t associated_len, const uint8_t *ciphertext, size_t len)
{
    uint8_t lengths[16];

    chapoly_store64(lengths, associated_len);
    chapoly_store64(lengths + 8, len);
    update_padded(kernel, mac, associated_data, associated_len);
    update_padded(kernel, mac, ciphertext, len);
    chapoly_poly1305_update(kernel, mac, lengths, sizeof lengths);
    chapoly_poly1305_finish(kernel, mac, tag);
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
    chapoly_poly1305 mac;

    if (too_long(len))
        return CHAPOLY_COUNTER_OVERFLOW;
    begin(kernel, &chacha, &mac, key, nonce, nonce_size);
    chapoly_chacha_xor(kernel, &chacha, 1, 0, ciphertext, plaintext, len);
    authenticate(kernel, &mac, tag, associated_data, associated_len, ciphertext, len);
    chapoly_wipe(&chacha, sizeof chacha);
    return CHAPOLY_OK;
}

enum chapoly_status chapoly_aead_decrypt(const chapoly_kernel *kernel, uint8_t *plaintext, const uint8_t tag[16],
                                         const uint8_t key[32], const uint8_t *nonce, size_t nonce_size,
                                         const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *ciphertext, size_t len)
{
    chapoly_chacha chacha;
    chapoly_poly1305 mac;
    uint8_t expected[16];
    bool valid;

    if (too_long(len))
        return CHAPOLY_COUNTER_OVERFLOW;
    begin(kernel, &chacha, &mac, key, nonce, nonce_size);
    authenticate(kernel, &mac, expected, associated_data, associated_len, ciphertext, len);
    valid = chapoly_tag_equal(tag, expected);
    if (valid)
        chapoly_chacha_xor(kernel, &chacha, 1, 0, plaintext, ciphertext, len);
    else if (plaintext != ciphertext && len > 0)
        memset(plaintext, 0, len);
    chapoly_wipe(expected, sizeof expected); /* a forger must not learn the right tag from dead memory */
    chapoly_wipe(&chacha, sizeof chacha);
    return valid ? CHAPOLY_OK : CHAPOLY_INVALID_TAG;
}
