/*
 * The AEAD (RFC 8439 2.8) for x86-64 with AVX2.
 *
 * ChaCha20 needs the vector units and Poly1305 the integer units, so both are done at once: three blocks of the MAC
 * stand inside each double round of eight blocks of the cipher, over ciphertext that the pass before has made (or,
 * decrypting, used). Thirty of the 32 blocks that a pass adds cost next to nothing so: on AMD Zen 3 a pass takes 485 to
 * 610 core cycles instead of 470, and 30 blocks alone 430. The other two are taken beside its output.
 */
#include "../kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <string.h>

#include "chacha20_avx2.h"
#include "poly1305_x64.h"

chapoly_aead_part_fn chapoly_aead_part_avx2;

#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

enum {
    ROUNDS = 20,
    PASS = 8 * BLOCK,
    BLOCKS_PER_DOUBLE_ROUND = 3,
    BLOCKS_AFTER = PASS / 16 - ROUNDS / 2 * BLOCKS_PER_DOUBLE_ROUND, /* beside the output, so that none are left over */
};

/* The MAC, and what of the ciphertext it has still to take in. */
typedef struct {
    chapoly_poly1305 *mac;
    const uint8_t *message;
    size_t blocks;
} backlog;

/*
 * One block: the statements of poly1305_sse2.c, with the bounds given there. The next block is added before `fold`,
 * which shortens the chain.
 */
#define MAC_BLOCK(offset)                                                                                            \
    "addq " #offset "(%[message]), %[h0]\n\tadcq 8+" #offset "(%[message]), %[h1]\n\tadcq $1, %[h2]\n\t"             \
    "addq %[fold], %[h0]\n\tadcq $0, %[h1]\n\tadcq $0, %[h2]\n\t"                                                    \
    "movq %[r1], %%rax\n\tmulq %[h0]\n\tmovq %%rax, %[d1]\n\tmovq %%rdx, %[high]\n\t"                                \
    "movq %[r0], %%rax\n\tmulq %[h0]\n\tmovq %%rax, %[h0]\n\tmovq %%rdx, %[middle]\n\t"                              \
    "movq %[r0], %%rax\n\tmulq %[h1]\n\taddq %%rax, %[d1]\n\tadcq %%rdx, %[high]\n\t"                                \
    "movq %[s1], %%rax\n\tmulq %[h1]\n\t"                                                                            \
    "movq %[s1], %[h1]\n\timulq %[h2], %[h1]\n\timulq %[r0], %[h2]\n\t"                                              \
    "addq %%rax, %[h0]\n\tadcq %%rdx, %[middle]\n\t"                                                                 \
    "addq %[d1], %[h1]\n\tadcq $0, %[high]\n\t"                                                                      \
    "addq %[middle], %[h1]\n\tadcq %[high], %[h2]\n\t"                                                               \
    "movq %[h2], %[fold]\n\tmovq %[h2], %%rdx\n\tandq $3, %[h2]\n\t"                                                 \
    "shrq $2, %[fold]\n\tandq $-4, %%rdx\n\taddq %%rdx, %[fold]\n\t"

/* All rounds of eight blocks; in the first `busy` double rounds (0..10) three blocks of the MAC each. */
INLINE void permute_and_authenticate(eight_blocks *x, backlog *b, unsigned busy)
{
    const uint64_t r0 = b->mac->r[0], r1 = b->mac->r[1], s1 = r1 + (r1 >> 2);
    uint64_t h0 = b->mac->h[0], h1 = b->mac->h[1], h2 = b->mac->h[2], fold = 0, d1, middle, high, carry;
    const uint8_t *message = b->message;
    unsigned idle = ROUNDS / 2 - busy;

    b->message += 16 * BLOCKS_PER_DOUBLE_ROUND * busy;
    b->blocks -= BLOCKS_PER_DOUBLE_ROUND * busy;

    __asm__(EACH_REGISTER(FETCH)
            "cmpl $0, %[busy]\n\t"
            "je 2f\n"
            "1:\n\t" COLUMNS(MAC_BLOCK(0)) MAC_BLOCK(16) DIAGONALS(MAC_BLOCK(32))
            "addq $48, %[message]\n\t"
            "subl $1, %[busy]\n\t"
            "jne 1b\n"
            "2:\n\t"
            "cmpl $0, %[idle]\n\t"
            "je 4f\n"
            "3:\n\t" DOUBLE_ROUND
            "subl $1, %[idle]\n\t"
            "jne 3b\n"
            "4:\n\t" EACH_REGISTER(PUT_BACK)
            : [busy] "+m"(busy), [idle] "+m"(idle), [h0] "+r"(h0), [h1] "+r"(h1), [h2] "+r"(h2), [fold] "+r"(fold),
              [message] "+r"(message), [d1] "=&r"(d1), [middle] "=&r"(middle), [high] "=&r"(high), "+m"(*x)
            : [words] "r"(x), [r0] "r"(r0), [s1] "r"(s1), [r1] "m"(r1), [rotate16] "m"(rotate16),
              [rotate8] "m"(rotate8)
            : "cc", "memory", "rax", "rdx", ALL_REGISTERS);
    h0 += fold; /* as at the end of poly1305_sse2.c: h2 <= 4 */
    carry = h0 < fold;
    h1 += carry;
    b->mac->h[0] = h0, b->mac->h[1] = h1, b->mac->h[2] = h2 + (h1 < carry);
}

static __attribute__((noinline)) AVX2 void pass(uint8_t *dst, const uint8_t *src, const uint32_t state[16],
                                                eight_blocks *x, backlog *b)
{
    const size_t busy = b->blocks / BLOCKS_PER_DOUBLE_ROUND;

    start(x, state, 0);
    permute_and_authenticate(x, b, busy < ROUNDS / 2 ? (unsigned)busy : ROUNDS / 2);
    const size_t more = b->blocks < BLOCKS_AFTER ? b->blocks : BLOCKS_AFTER;
    chapoly_poly1305_x64(b->mac->h, b->mac->r, b->message, more, 1);
    b->message += 16 * more, b->blocks -= more;
    finish(dst, src, x, state, 0);
}

AVX2 size_t chapoly_aead_part_avx2(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t *dst,
                                   const uint8_t *src, size_t len, size_t pending, const uint32_t state[16],
                                   bool decrypting)
{
    static const uint8_t zeros[PASS];
    uint32_t at[16];
    uint8_t buffer[PASS];
    eight_blocks x;
    backlog b = {mac, (decrypting ? src : dst) - pending, (decrypting ? pending + len : pending) / 16};
    const size_t rest = len % 16;

    (void)kernel;
    memcpy(at, state, sizeof at);
    for (; len >= PASS; len -= PASS, dst += PASS, src += PASS, at[12] += 8) {
        pass(dst, src, at, &x, &b);
        b.blocks += decrypting ? 0 : PASS / 16;
    }
    if (len > 0) {
        pass(buffer, zeros, at, &x, &b);
        xor_bytes(dst, src, buffer, len);
        b.blocks += decrypting ? 0 : len / 16;
        chapoly_wipe(buffer, sizeof buffer);
    }
    chapoly_wipe(&x, sizeof x);
    chapoly_wipe(at, sizeof at);
    return 16 * b.blocks + rest;
}

#endif
