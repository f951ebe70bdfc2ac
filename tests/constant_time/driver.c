/*
 * Entry points of a kernel on secrets of many kinds: driver KERNEL SECRETS ENTRY LENGTH... with so many secrets for
 * each. Without arguments it lists the kernels that this CPU can run.
 *
 * What counts as secret is marked for the checker that this was built for: -DMEMCHECK (valgrind), -DMSAN (clang's
 * MemorySanitizer) or -DTRACED (steps.c, which follows each call between two marks). The build calls the comparison of
 * poly1305.c compared_tags; it is called here, where its result, the one bit that may be known, is declassified.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#if defined(MEMCHECK)
#include <valgrind/memcheck.h>
#define SECRET(p, len) VALGRIND_MAKE_MEM_UNDEFINED(p, len)
#define PUBLIC(p, len) VALGRIND_MAKE_MEM_DEFINED(p, len)
#elif defined(MSAN)
#include <sanitizer/msan_interface.h>
#define SECRET(p, len) __msan_allocated_memory(p, len)
#define PUBLIC(p, len) __msan_unpoison(p, len)
#else
#define SECRET(p, len) ((void)(p), (void)(len))
#define PUBLIC(p, len) ((void)(p), (void)(len))
#endif

#if defined(TRACED)
static __attribute__((noinline)) void end(void)
{
    __asm__ __volatile__("" ::: "memory");
}
#define BEGIN() __asm__ __volatile__("int3" : : "D"(end) : "memory") /* steps.c finds in rdi where to stop */
#define END() end()
#else
#define BEGIN() ((void)0)
#define END() ((void)0)
#endif

enum { MOST = 1 << 15, PACKETS = 40 };

bool compared_tags(const uint8_t a[16], const uint8_t b[16]);

bool chapoly_tag_equal(const uint8_t a[16], const uint8_t b[16])
{
    bool equal = compared_tags(a, b);

    PUBLIC(&equal, sizeof equal);
    return equal;
}

/* Secret number s: all zeros, all ones, one bit set, one clear, and then what a generator gives (splitmix64). */
static void fill(uint8_t *p, size_t len, unsigned s, uint64_t stream)
{
    uint64_t state = (s + 1) * UINT64_C(0x9e3779b97f4a7c15) + stream, z;

    for (size_t i = 0; i < len; i++) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        z = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        p[i] = s == 0 || s == 2 ? 0 : s == 1 || s == 3 ? 0xff : (uint8_t)(z >> 56);
    }
    if (len > 0 && (s == 2 || s == 3))
        p[len - 1] ^= 0x80;
}

static uint8_t key[32], nonce[24], associated_data[13], data[MOST], sealed[MOST], out[MOST], tag[16];
static chapoly_packet packets[PACKETS];
static uint8_t outs[PACKETS][2048], tags[PACKETS][16];

static void packets_of(const uint8_t *const from, size_t len)
{
    for (int i = 0; i < PACKETS; i++)
        packets[i] = (chapoly_packet){key, nonce, associated_data, sizeof associated_data, from, len, outs[i], tags[i],
                                      false};
}

static int call(const chapoly_kernel *kernel, const char *entry, size_t len, unsigned s)
{
    const bool many = strstr(entry, "many") != NULL, bad = strstr(entry, "forged") != NULL;
    const bool opens = strncmp(entry, "decrypt", 7) == 0;
    const size_t nonce_size = strstr(entry, "24") != NULL ? 24 : 12;
    uint8_t *const to = strstr(entry, "inplace") != NULL ? sealed : out;
    chapoly_chacha chacha;
    chapoly_message message;
    bool equal = false;

    fill(key, sizeof key, s, 1);
    fill(data, len, s, 2);
    memset(tag, 0, sizeof tag);
    if (opens) {
        chapoly_aead_encrypt(kernel, sealed, tag, key, nonce, nonce_size, associated_data, sizeof associated_data, data,
                             len);
        if (bad)
            tag[s % 16] ^= 1;
        for (int i = 0; i < PACKETS; i++)
            memcpy(tags[i], tag, sizeof tag);
    } else if (strncmp(entry, "compare", 7) == 0) {
        fill(tag, sizeof tag, s, 3);
        memcpy(data, tag, sizeof tag);
        data[s % 16] ^= bad ? 0x80 : 0;
        SECRET(tag, sizeof tag);
    }
    if (many)
        packets_of(opens ? sealed : data, len);
    SECRET(key, sizeof key);
    SECRET(data, len);

    BEGIN();
    if (many && opens)
        chapoly_aead_decrypt_many(kernel, packets, PACKETS, nonce_size);
    else if (many)
        chapoly_aead_encrypt_many(kernel, packets, PACKETS, nonce_size);
    else if (opens)
        chapoly_aead_decrypt(kernel, to, tag, key, nonce, nonce_size, associated_data, sizeof associated_data, sealed,
                             len);
    else if (strncmp(entry, "encrypt", 7) == 0)
        chapoly_aead_encrypt(kernel, out, tag, key, nonce, nonce_size, associated_data, sizeof associated_data, data,
                             len);
    else if (strcmp(entry, "parts") == 0) {
        chapoly_message_init(kernel, &message, key, nonce, 12, associated_data, sizeof associated_data);
        chapoly_message_encrypt(kernel, &message, out, data, len / 3);
        chapoly_message_encrypt(kernel, &message, out + len / 3, data + len / 3, len - len / 3);
        chapoly_message_finish(kernel, &message, tag);
    } else if (strcmp(entry, "chacha") == 0) {
        chapoly_xchacha20_init(kernel, &chacha, key, nonce, 20);
        chapoly_chacha_xor(kernel, &chacha, 0, 0, out, data, len);
    } else if (strcmp(entry, "mac") == 0)
        chapoly_poly1305_mac(kernel, tag, key, data, len);
    else if (strncmp(entry, "compare", 7) == 0)
        equal = chapoly_tag_equal(tag, data);
    else
        return 2;
    END();

    PUBLIC(key, sizeof key);
    PUBLIC(data, sizeof data);
    PUBLIC(sealed, sizeof sealed);
    PUBLIC(out, sizeof out);
    PUBLIC(outs, sizeof outs);
    PUBLIC(tag, sizeof tag);
    PUBLIC(tags, sizeof tags);
    return strncmp(entry, "compare", 7) == 0 && equal == bad; /* the comparison is not vacuous */
}

int main(int argc, char **argv)
{
    const chapoly_kernel *kernel = NULL, *each;

    for (size_t i = 0; (each = chapoly_kernel_at(i)) != NULL; i++) {
        if (argc == 1 && chapoly_kernel_obstacle(each) == NULL)
            puts(chapoly_kernel_name(each));
        if (argc > 1 && strcmp(chapoly_kernel_name(each), argv[1]) == 0)
            kernel = each;
    }
    if (argc == 1)
        return 0;
    if (kernel == NULL || argc < 5 || argc % 2 == 0)
        return 2;
    for (int i = 3; i < argc; i += 2)
        for (unsigned s = 0; s < strtoul(argv[2], NULL, 10); s++)
            if (call(kernel, argv[i], (size_t)strtoul(argv[i + 1], NULL, 10), s) != 0)
                return 2;
    return 0;
}
