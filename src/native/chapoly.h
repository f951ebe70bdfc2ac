/*
 * chapoly.h: ChaCha20, Poly1305 and their AEAD in C11, usable without Python.
 *
 * Nothing here allocates, starts a thread or keeps state but the chosen kernel.
 * All functions are re-entrant. Every size is in bytes. No branch, index or
 * variable-time instruction depends on a key, a plaintext or a computed tag.
 *
 * Aliasing: an output may start at exactly the address of the data it is made
 * from (in place); otherwise outputs overlap no input.
 */
#ifndef CHAPOLY_H
#define CHAPOLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHAPOLY_KEY_SIZE = 32,
    CHAPOLY_TAG_SIZE = 16,
    CHAPOLY_BLOCK_SIZE = 64,
    CHAPOLY_NONCE_SIZE = 12,       /* RFC 8439 */
    CHAPOLY_XNONCE_SIZE = 24,      /* draft-irtf-cfrg-xchacha */
    CHAPOLY_LEGACY_NONCE_SIZE = 8, /* Bernstein's original */
    CHAPOLY_HNONCE_SIZE = 16,      /* the input of HChaCha20 */
    CHAPOLY_SUBKEY_SIZE = 32,
};

/* The most data one AEAD message holds: 2^32 - 1 blocks (RFC 8439 2.8). */
#define CHAPOLY_AEAD_MAX UINT64_C(274877906880)

enum chapoly_status {
    CHAPOLY_OK = 0,
    CHAPOLY_INVALID_TAG = 1,
    CHAPOLY_COUNTER_OVERFLOW = 2, /* nothing was written */
};

/* ---- Kernels: implementations of the same functions for different instruction sets. ---- */

typedef struct chapoly_kernel chapoly_kernel;

/* The index-th kernel that this architecture has a place for, in order of preference on this CPU; at the end NULL. */
const chapoly_kernel *chapoly_kernel_at(size_t index);
const char *chapoly_kernel_name(const chapoly_kernel *);

/* Why this kernel cannot run here (the compiler left it out, or the CPU lacks a feature), or NULL if it can. */
const char *chapoly_kernel_obstacle(const chapoly_kernel *);

/* Why another kernel is preferred on this CPU although this one can run and would come first elsewhere, or NULL. */
const char *chapoly_kernel_drawback(const chapoly_kernel *);

/* The kernel in use: at first the fastest that can run here. Choosing another affects calls that ask for it later. */
const chapoly_kernel *chapoly_kernel_chosen(void);
void chapoly_kernel_choose(const chapoly_kernel *);

/* The index-th CPU feature that the choice looks at, and whether CPU and operating system have it; NULL after all. */
const char *chapoly_cpu_feature(size_t index, bool *present);

/* ---- ChaCha: RFC 8439 2.3 and 2.4; draft-irtf-cfrg-xchacha 2.2 and 2.3; Bernstein's original. ---- */

/* A key and a nonce set up for use; immutable once made. Holds secrets: wipe it with chapoly_wipe. */
typedef struct chapoly_chacha {
    uint32_t words[16]; /* RFC 8439 2.3; words 12 (and 13 if wide) are the counter, filled in per call */
    unsigned rounds;    /* 8, 12 or 20 */
    bool wide;          /* the counter has 64 bits (the original) instead of 32 */
} chapoly_chacha;

void chapoly_chacha20_init(chapoly_chacha *, const uint8_t key[32], const uint8_t nonce[12], unsigned rounds);
void chapoly_xchacha20_init(const chapoly_kernel *, chapoly_chacha *, const uint8_t key[32], const uint8_t nonce[24],
                            unsigned rounds);
void chapoly_chacha20_legacy_init(chapoly_chacha *, const uint8_t key[32], const uint8_t nonce[8], unsigned rounds);

/* How many bytes of keystream are left from byte `offset` (0..64) of block `block`; UINT64_MAX: that many or more. */
uint64_t chapoly_chacha_left(const chapoly_chacha *, uint64_t block, unsigned offset);

/*
 * dst[i] = src[i] ^ keystream[64 * block + offset + i] for i < len, offset 0..64.
 * CHAPOLY_COUNTER_OVERFLOW if len > chapoly_chacha_left(...): the counter never wraps and never carries into the nonce.
 */
enum chapoly_status chapoly_chacha_xor(const chapoly_kernel *, const chapoly_chacha *, uint64_t block, unsigned offset,
                                       uint8_t *dst, const uint8_t *src, size_t len);

/* The keystream of the block that was begun last. Zeros are an empty one. Holds secrets. */
typedef struct chapoly_begun_block {
    uint8_t keystream[64];
    uint64_t block;
    bool there;
} chapoly_begun_block;

/* The same within one block, offset + len <= 64, which is computed once, however small the stretches are. */
void chapoly_chacha_xor_in_block(const chapoly_kernel *, const chapoly_chacha *, chapoly_begun_block *, uint64_t block,
                                 unsigned offset, uint8_t *dst, const uint8_t *src, size_t len);

void chapoly_hchacha20(const chapoly_kernel *, uint8_t subkey[32], const uint8_t key[32], const uint8_t nonce[16],
                       unsigned rounds);

/* ---- Poly1305: RFC 8439 2.5. One key authenticates one message. ---- */

typedef struct chapoly_poly1305 {
    uint64_t h[3];      /* accumulator, h[0] + 2^64 h[1] + 2^128 h[2], h[2] <= 4 */
    uint64_t r[2];      /* clamped */
    uint64_t s[2];
    uint8_t buffer[16]; /* the block that is not full yet */
    size_t buffered;    /* 0..15 */
} chapoly_poly1305;

void chapoly_poly1305_init(chapoly_poly1305 *, const uint8_t key[32]);
void chapoly_poly1305_update(const chapoly_kernel *, chapoly_poly1305 *, const uint8_t *message, size_t len);
/* Ends the message and wipes the state. */
void chapoly_poly1305_finish(const chapoly_kernel *, chapoly_poly1305 *, uint8_t tag[16]);
void chapoly_poly1305_mac(const chapoly_kernel *, uint8_t tag[16], const uint8_t key[32], const uint8_t *message,
                          size_t len);

/*
 * A message in ranges that are summed up at the same time, all but the last of whole blocks (16 bytes). partial makes
 * the state of a range: under the same key, but as if nothing came before. update adds the range to it, and join adds
 * that, so many bytes, to the message, in the order of the ranges, and wipes it. Each begins where no block is begun.
 */
void chapoly_poly1305_partial(chapoly_poly1305 *range, const chapoly_poly1305 *message);
void chapoly_poly1305_join(chapoly_poly1305 *message, chapoly_poly1305 *range, uint64_t len);

/* Whether two tags are equal, in constant time behind an optimisation barrier. */
bool chapoly_tag_equal(const uint8_t a[16], const uint8_t b[16]);

/* ---- AEAD: RFC 8439 2.8 (12-byte nonce) and draft-irtf-cfrg-xchacha 2.1 (24-byte nonce). ---- */

/* CHAPOLY_COUNTER_OVERFLOW if len > CHAPOLY_AEAD_MAX. nonce_size is 12 or 24 and chooses the variant. */
enum chapoly_status chapoly_aead_encrypt(const chapoly_kernel *, uint8_t *ciphertext, uint8_t tag[16],
                                         const uint8_t key[32], const uint8_t *nonce, size_t nonce_size,
                                         const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *plaintext, size_t len);

/*
 * Verifies before it writes. On CHAPOLY_INVALID_TAG a separate plaintext buffer is all zero and an in-place one is
 * as it was, at every instant of the call.
 */
enum chapoly_status chapoly_aead_decrypt(const chapoly_kernel *, uint8_t *plaintext, const uint8_t tag[16],
                                         const uint8_t key[32], const uint8_t *nonce, size_t nonce_size,
                                         const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *ciphertext, size_t len);

/* ---- The same for a message in parts: init; encrypt, or decrypt, as often as needed; finish. ---- */

/* A message so far. Holds secrets: what is not finished is to be wiped with chapoly_wipe. */
typedef struct chapoly_message {
    chapoly_chacha chacha;
    chapoly_poly1305 mac;
    uint64_t associated_len;
    uint64_t len; /* of the data so far, at most CHAPOLY_AEAD_MAX */
} chapoly_message;

/* nonce_size is 12 or 24 and chooses the variant. The associated data is not needed after the call. */
void chapoly_message_init(const chapoly_kernel *, chapoly_message *, const uint8_t key[32], const uint8_t *nonce,
                          size_t nonce_size, const uint8_t *associated_data, size_t associated_len);

/* How many bytes more the message can have. */
uint64_t chapoly_message_left(const chapoly_message *);

/*
 * The next part of the message, of any length. CHAPOLY_COUNTER_OVERFLOW if len > chapoly_message_left(...); then
 * nothing has changed. The plaintext comes out before it is verified: nobody has vouched for it until
 * chapoly_tag_equal says that what chapoly_message_finish gives is the tag that came with the message.
 */
enum chapoly_status chapoly_message_encrypt(const chapoly_kernel *, chapoly_message *, uint8_t *ciphertext,
                                            const uint8_t *plaintext, size_t len);
enum chapoly_status chapoly_message_decrypt(const chapoly_kernel *, chapoly_message *, uint8_t *plaintext,
                                            const uint8_t *ciphertext, size_t len);

/* Adds to the message what is not to be decrypted yet, or not here. chapoly_message_left(...) has that many bytes. */
void chapoly_message_authenticate(const chapoly_kernel *, chapoly_message *, const uint8_t *ciphertext, size_t len);

/*
 * A message in ranges, for several threads; starting those is the caller's part. A range of a message is one itself,
 * which begins at byte `at`, a multiple of 64; all its functions but finish may be used on different ranges at the same
 * time. join adds one to the message, in the order of the ranges, and wipes it. Only the last may end within a block.
 */
void chapoly_message_range(chapoly_message *range, const chapoly_message *message, uint64_t at);
void chapoly_message_join(chapoly_message *message, chapoly_message *range);

/* Ends the message and wipes the state. */
void chapoly_message_finish(const chapoly_kernel *, chapoly_message *, uint8_t tag[16]);

/* ---- Many messages at once: their blocks share the lanes of a vector. ---- */

typedef struct chapoly_packet {
    const uint8_t *key;             /* 32 bytes; packets may have one in common */
    const uint8_t *nonce;           /* 12 or 24 bytes */
    const uint8_t *associated_data; /* may be NULL if associated_len is 0 */
    size_t associated_len;
    const uint8_t *data; /* the plaintext, or the ciphertext without its tag */
    size_t len;          /* of data and of out */
    uint8_t *out;        /* overlaps nothing of any packet, but may be data itself */
    uint8_t *tag;        /* 16 bytes: encryption writes it, decryption only reads it */
    bool failed;         /* set by decryption: the tag was wrong; out is zero then, or, in place, as it was */
} chapoly_packet;

/* CHAPOLY_COUNTER_OVERFLOW, with nothing written, if a packet has more than CHAPOLY_AEAD_MAX bytes. */
enum chapoly_status chapoly_aead_encrypt_many(const chapoly_kernel *, chapoly_packet *packets, size_t count,
                                              size_t nonce_size);
enum chapoly_status chapoly_aead_decrypt_many(const chapoly_kernel *, chapoly_packet *packets, size_t count,
                                              size_t nonce_size);

/* Overwrites a secret with zeros in a way that the compiler may not remove. */
void chapoly_wipe(void *secret, size_t len);

#endif
