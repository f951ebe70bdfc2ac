/*
 * Calls each kernel function once per size between two marks, which neon_counts.py looks for in the trace.
 * neon_counts chacha|poly1305|aead KERNEL SIZE...
 */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define MARK(name)                                                                                           \
    void name(void);                                                                                         \
    __attribute__((noinline)) void name(void)                                                                \
    {                                                                                                        \
        __asm__ __volatile__("" : : : "memory");                                                             \
    }
MARK(mark_begin)
MARK(mark_end)

int main(int argc, char **argv)
{
    static uint8_t data[1 << 17];
    static const uint8_t key[32] = {1}, nonce[12] = {2};
    static const uint32_t state[16] = {1};
    uint8_t tag[16];
    static const uint64_t r[2] = {UINT64_C(0x0ffffffc0fffffff), UINT64_C(0x0ffffffc0ffffffc)};
    const chapoly_kernel *kernel = NULL;

    for (size_t i = 0; argc > 2 && chapoly_kernel_at(i) != NULL; i++)
        if (strcmp(chapoly_kernel_name(chapoly_kernel_at(i)), argv[2]) == 0)
            kernel = chapoly_kernel_at(i);
    if (kernel == NULL)
        return 2;
    for (int i = 3; i < argc; i++) {
        const size_t size = (size_t)strtoul(argv[i], NULL, 10);
        uint64_t h[3] = {0};
        if (strcmp(argv[1], "chacha") == 0) {
            mark_begin();
            kernel->chacha_xor(data, data, size, state, 20);
            mark_end();
        } else if (strcmp(argv[1], "aead") == 0) { /* 13 bytes of associated data */
            mark_begin();
            chapoly_aead_encrypt(kernel, data, tag, key, nonce, sizeof nonce, key, 13, data, size);
            mark_end();
        } else {
            mark_begin();
            kernel->poly1305_blocks(h, r, data, size / 16, 1);
            mark_end();
        }
    }
    return 0;
}
