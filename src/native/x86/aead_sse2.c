/*
 * The AEAD (RFC 8439 2.8) for every x86-64.
 *
 * ChaCha20 needs the vector units and Poly1305 the integer units, so both are done at once, as on AVX2: blocks of the
 * MAC follow each double round of four blocks of the cipher, over ciphertext that the pass before has made (or,
 * decrypting, used). The CPU takes them out of their order.
 */
#include "../kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <string.h>

chapoly_aead_part_fn chapoly_aead_part_sse2;

#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#include "chacha20_sse2.h"
#include "poly1305_x64.h"

enum { ROUNDS = 20, PASS = 8 * BLOCK, BLOCKS_PER_DOUBLE_ROUND = 2 };

/* The MAC, and what of the ciphertext it has still to take in. */
typedef struct {
    chapoly_poly1305 *mac;
    const uint8_t *message;
    size_t blocks;
} backlog;

INLINE void authenticate(backlog *b)
{
    const size_t blocks = b->blocks < BLOCKS_PER_DOUBLE_ROUND ? b->blocks : BLOCKS_PER_DOUBLE_ROUND;

    chapoly_poly1305_x64(b->mac->h, b->mac->r, b->message, blocks, 1);
    b->message += 16 * blocks;
    b->blocks -= blocks;
}

/* Eight blocks, the groups of four in turn, and up to 40 of the MAC. */
NOINLINE void pass(uint8_t *dst, const uint8_t *src, const uint32_t state[16], four_blocks x[2], backlog *b)
{
    start(&x[0], state, 0);
    start(&x[1], state, 4);
    for (int i = 0; i < ROUNDS; i += 2) {
        double_round(&x[0]);
        __asm__("" : "+m"(x[0])); /* compilers would hold parts of both in registers, and spill the rest at random */
        authenticate(b);
        double_round(&x[1]);
        __asm__("" : "+m"(x[1]));
        authenticate(b);
    }
    finish(dst, src, &x[0], state, 0);
    finish(dst + 4 * BLOCK, src + 4 * BLOCK, &x[1], state, 4);
}

size_t chapoly_aead_part_sse2(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t *dst, const uint8_t *src,
                              size_t len, size_t pending, const uint32_t state[16], bool decrypting)
{
    uint32_t at[16];
    four_blocks x[2];
    backlog b = {mac, (decrypting ? src : dst) - pending, (decrypting ? pending + len : pending) / 16};
    const size_t rest = len % 16;

    memcpy(at, state, sizeof at);
    for (; len >= PASS; len -= PASS, dst += PASS, src += PASS, at[12] += 8) {
        pass(dst, src, at, x, &b);
        b.blocks += decrypting ? 0 : PASS / 16;
    }
    if (len > 0) {
        kernel->chacha_xor(dst, src, len, at, ROUNDS);
        b.blocks += decrypting ? 0 : len / 16;
    }
    chapoly_wipe(x, sizeof x);
    chapoly_wipe(at, sizeof at);
    return 16 * b.blocks + rest;
}

#endif
