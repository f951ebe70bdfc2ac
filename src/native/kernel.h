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

struct chapoly_kernel {
    const char *name;
    uint32_t needs;       /* CPU features, bits of dispatch.c */
    uint32_t prefers;     /* features without which the next kernel in the table of dispatch.c is the better one */
    const char *left_out; /* why the compiler could not build it; NULL if it did, and then every function is there */
    chapoly_chacha_xor_fn *chacha_xor;
    chapoly_hchacha_fn *hchacha;
    chapoly_poly1305_blocks_fn *poly1305_blocks;
};

#endif
