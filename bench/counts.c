/*
 * Calls a kernel once per size between two marks, for whoever counts what happens from the one to the other:
 * neon_counts.py in a trace, x86_counts.py by callgrind or single_step.c.
 * counts chacha|poly1305|aead KERNEL SIZE...
 * Without arguments it says which kernels there are, and which this CPU can run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "marks.h"

int main(int argc, char **argv)
{
    static uint8_t data[1 << 17];
    static const uint32_t state[16] = {1};
    static const uint64_t r[2] = {UINT64_C(0x0ffffffc0fffffff), UINT64_C(0x0ffffffc0ffffffc)};
    static const uint8_t key[32], nonce[12], associated_data[13];
    uint8_t tag[16];
    const chapoly_kernel *kernel = NULL;

    for (size_t i = 0; argc == 1 && (kernel = chapoly_kernel_at(i)) != NULL; i++)
        printf("%s %s\n", chapoly_kernel_name(kernel), chapoly_kernel_obstacle(kernel) == NULL ? "yes" : "no");
    if (argc == 1)
        return 0;
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
        } else if (strcmp(argv[1], "aead") == 0) {
            mark_begin();
            chapoly_aead_encrypt(kernel, data, tag, key, nonce, sizeof nonce, associated_data,
                                 sizeof associated_data, data, size);
            mark_end();
        } else {
            mark_begin();
            kernel->poly1305_blocks(h, r, data, size / 16, 1);
            mark_end();
        }
    }
    return 0;
}
