/*
 * kernel.h: the seam between what is the same for every kernel and the kernels themselves.
 *
 * A kernel is one file per algorithm and instruction set. It includes this header, declares its functions with the
 * types below (`chapoly_chacha_xor_fn chapoly_chacha_xor_neon;`) and defines them; dispatch.c alone names them all.
 * Callers have checked every length: a kernel assumes that what is required here holds, and it need hold nothing else.
 *
 * All kernels: no alignment is required of any byte pointer; nothing outside the stated ranges is read or written;
 * time and addresses depend on lengths only. A kernel that keeps secrets in a named array wipes it before it returns.
 */
#ifndef CHAPOLY_KERNEL_H
#define CHAPOLY_KERNEL_H

#include "chapoly.h"

/* Whether the compiler knows AVX-512 up to VBMI2; gcc for Windows does not align the stack for wide vectors. */
#if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8 && !defined(_WIN32)))
#define CHAPOLY_AVX512 1
#else
#define CHAPOLY_AVX512 0
#endif

/*
 * dst[i] = src[i] ^ keystream[i] for i < len (RFC 8439 2.4).
 *
 * state     words 0-3 the constants, 4-11 the key, 12 the counter of the first block, 13-15 the nonce, in the CPU's
 *           byte order. Not changed.
 * rounds    8, 12 or 20.
 * requires  state[12] + ceil(len / 64) <= 2^32: within one call the counter never leaves word 12 (the caller splits a
 *           64-bit counter where its low word wraps). Lane counters are 32-bit adds.
 * aliasing  dst == src, or no overlap. len may be 0.
 */
typedef void chapoly_chacha_xor_fn(uint8_t *dst, const uint8_t *src, size_t len, const uint32_t state[16],
                                   unsigned rounds);

/*
 * subkey = words 0-3 and 12-15, little-endian, of the state after the rounds, without the feed-forward
 * (draft-irtf-cfrg-xchacha 2.2). Words 12-15 of the state are the 16-byte input.
 */
typedef void chapoly_hchacha_fn(uint8_t subkey[32], const uint32_t state[16], unsigned rounds);

/*
 * For each 16-byte block of the message in turn: h = (h + block + top * 2^128) * r mod 2^130 - 5, not fully reduced
 * (RFC 8439 2.5.1).
 *
 * h         value h[0] + 2^64 h[1] + 2^128 h[2]; h[2] <= 4 before and after.
 * r         r[0] + 2^64 r[1], clamped: r[0] <= 0x0ffffffc0fffffff, r[1] <= 0x0ffffffc0ffffffc.
 * top       1, or 0 for a last block that already holds its padding.
 * blocks    may be 0.
 */
typedef void chapoly_poly1305_blocks_fn(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                        uint64_t top);

/*
 * A whole message of the AEAD (RFC 8439 2.8): dst[i] = src[i] ^ keystream[i] for i < len, and the tag of the
 * ciphertext, which is dst, or src if `decrypting`.
 *
 * kernel    the one that this belongs to, for the functions beside it.
 * state     as above with the counter 0, 20 rounds: block 0 gives the one-time key, and block 1 is the first for data.
 * requires  len <= CHAPOLY_AEAD_MAX
 * aliasing  no overlap, or, encrypting, dst == src. associated_data may be NULL if associated_len is 0, and likewise
 *           dst and src.
 */
typedef void chapoly_aead_fn(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src,
                             size_t len, const uint8_t *associated_data, size_t associated_len,
                             const uint32_t state[16], bool decrypting);

/*
 * A stretch of a long message: dst[i] = src[i] ^ keystream[i] for i < len, and the ciphertext is added to the MAC. So
 * are the `pending` bytes of ciphertext before it, which have not been yet. Returns how many bytes at the end are
 * pending now.
 *
 * requires  of the counter what chacha_xor requires; pending a multiple of 16; nothing buffered in the MAC
 * ensures   what has been added is whole blocks of 16 bytes
 * aliasing  as above
 */
typedef size_t chapoly_aead_part_fn(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t *dst,
                                    const uint8_t *src, size_t len, size_t pending, const uint32_t state[16],
                                    bool decrypting);

/*
 * keystream[64 l + j] = byte j of the ChaCha20 block with the words of states[l] and the counter counters[l], for l <
 * count: blocks that have nothing in common (RFC 8439 2.3).
 *
 * requires  1 <= count <= the kernel's `lanes`
 * room      of `lanes` blocks; what is written beyond 64 * count is secret too
 */
typedef void chapoly_chacha_lanes_fn(uint8_t *keystream, const uint32_t *const states[], const uint32_t counters[],
                                     size_t count);

/*
 * The ChaCha20 keystream of `blocks` blocks from state[12] on, and of as many more as come with them in one pass:
 * returns how many were made.
 *
 * requires  1 <= blocks <= the kernel's `pass_blocks`
 * room      of `pass_blocks` blocks
 */
typedef size_t chapoly_chacha_pass_fn(uint8_t *keystream, const uint32_t state[16], size_t blocks);

/*
 * Several messages of the AEAD at once (RFC 8439 2.8; chapoly.h says what a packet is and what becomes of it).
 *
 * kernel    the one that this belongs to, for the functions beside it.
 * requires  2 <= count <= CHAPOLY_MANY_MAX; of each, len <= 64 * (the kernel's `lanes` - 1), and associated_len <=
 *           CHAPOLY_MANY_ASSOCIATED, since more of it would keep the others waiting; nonce_size 12 or 24
 */
typedef void chapoly_aead_many_fn(const chapoly_kernel *kernel, chapoly_packet packets[], size_t count,
                                  size_t nonce_size, bool decrypting);

enum { CHAPOLY_PASS_MAX = 16, CHAPOLY_LANES_MAX = 32, CHAPOLY_MANY_MAX = 64, CHAPOLY_MANY_ASSOCIATED = 2048 };

struct chapoly_kernel {
    const char *name;
    uint32_t needs;       /* CPU features, bits of dispatch.c */
    uint32_t prefers;     /* features without which the next kernel in the table of dispatch.c is the better one */
    const char *left_out; /* why the compiler could not build it; NULL if it did, and then the functions are there */
    chapoly_chacha_xor_fn *chacha_xor;
    chapoly_hchacha_fn *hchacha;
    chapoly_poly1305_blocks_fn *poly1305_blocks;
    chapoly_aead_fn *aead;
    chapoly_aead_part_fn *aead_part;
    chapoly_chacha_pass_fn *chacha_pass; /* for chapoly_aead_by_passes; NULL if `aead` is another */
    unsigned pass_blocks;                /* 1..CHAPOLY_PASS_MAX; chapoly_aead_part_by_strips takes whole passes */
    chapoly_chacha_lanes_fn *chacha_lanes;
    unsigned lanes; /* 1..CHAPOLY_LANES_MAX */
    chapoly_aead_many_fn *aead_many;
};

/*
 * The same out of the functions above, for a kernel with nothing better: a short message in the pass that makes its
 * one-time key; and strips of a few KiB, ciphered and then authenticated.
 */
chapoly_aead_fn chapoly_aead_by_passes;
chapoly_aead_part_fn chapoly_aead_part_by_strips;

/* The same for several messages: all keystreams in lanes, and then one message after the other. */
chapoly_aead_many_fn chapoly_aead_many_by_lanes;

/* ---- For the AEAD of a kernel: parts that are the same for all (aead.c, batch.c). ---- */

/* The subkeys of packets with nonces of 24 bytes (draft-irtf-cfrg-xchacha 2.3). */
void chapoly_aead_subkeys(const chapoly_kernel *, uint8_t subkeys[][32], const chapoly_packet packets[], size_t count);

/* Data, and zeros up to a multiple of 16 bytes (RFC 8439 2.8). data may be NULL if len is 0. */
void chapoly_aead_absorb(const chapoly_kernel *, chapoly_poly1305 *, const uint8_t *data, size_t len);

/* The last of the ciphertext, padded, and both lengths; then the tag. Wipes the state. */
void chapoly_aead_finish(const chapoly_kernel *, chapoly_poly1305 *, uint8_t tag[16], const uint8_t *data, size_t size,
                         uint64_t associated_len, uint64_t len);

/* The tag of a whole message (RFC 8439 2.8). */
void chapoly_aead_tag(const chapoly_kernel *, uint8_t tag[16], const uint8_t one_time_key[32],
                      const uint8_t *associated_data, size_t associated_len, const uint8_t *ciphertext, size_t len);

#endif
