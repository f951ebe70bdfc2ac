/*
 * Which kernels there are, which of them can run on this CPU, and which one is in use. The only file that names them all.
 *
 * To add an instruction set: its files (and their names in meson.build), its features in the enum, and its line in the
 * table below.
 */
#include <stdatomic.h>

#include "kernel.h"

/* ---- The CPU. A feature counts only if the operating system keeps its registers too. ---- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

enum { SSE2 = 1u << 0, SSSE3 = 1u << 1, AVX2 = 1u << 2, AVX512 = 1u << 3, AVX512_IFMA = 1u << 4 };
static const char *const feature_names[] = {"sse2", "ssse3", "avx2", "avx512", "avx512ifma"};

/* Asks CPUID and XGETBV themselves: __builtin_cpu_supports answers 0 for everything under some toolchains. */
static uint32_t detect(void)
{
    enum { YMM_STATE = 0x06, ZMM_STATE = 0xe6 }; /* XCR0: SSE and AVX; and opmask, upper halves, upper registers */
    unsigned a, b, c, d, xcr0 = 0, high;
    uint32_t found = SSE2; /* every x86-64 has it */

    if (!__get_cpuid(1, &a, &b, &c, &d))
        return found;
    if (c & 1u << 9)
        found |= SSSE3;
    if (c & 1u << 27) /* OSXSAVE: XGETBV may be executed */
        __asm__("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (xcr0 & YMM_STATE) != YMM_STATE)
        return found;
    if (b & 1u << 5)
        found |= AVX2;
    if ((xcr0 & ZMM_STATE) == ZMM_STATE && b & 1u << 16 && b & 1u << 30 && b & 1u << 31) { /* F, BW, VL */
        found |= AVX512;
        if (b & 1u << 21)
            found |= AVX512_IFMA;
    }
    return found;
}

#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#endif

enum { NEON = 1u << 0 };
static const char *const feature_names[] = {"neon"};

static uint32_t detect(void)
{
#if defined(__linux__)
    const unsigned long asimd = 1ul << 1; /* HWCAP_ASIMD */
    return getauxval(AT_HWCAP) & asimd ? NEON : 0;
#else
    return NEON; /* macOS, Windows and the BSDs demand it on this architecture */
#endif
}

#else

static const char *const feature_names[] = {NULL};

static uint32_t detect(void)
{
    return 0;
}

#endif

const char *chapoly_cpu_feature(size_t index, bool *present)
{
    if (index >= sizeof feature_names / sizeof feature_names[0])
        return NULL;
    *present = detect() >> index & 1;
    return feature_names[index];
}

/* ---- The kernels, fastest first. ---- */

#define KERNEL(isa, needs, aead, pass_blocks, lanes_isa, lanes)                                                      \
    {#isa, needs, NULL, chapoly_chacha_xor_##isa, chapoly_hchacha_portable, chapoly_poly1305_blocks_##isa,           \
     chapoly_aead_##aead, pass_blocks, chapoly_chacha_lanes_##lanes_isa, lanes}
#define LEFT_OUT(isa, why) {.name = #isa, .left_out = why}

extern chapoly_chacha_xor_fn chapoly_chacha_xor_portable, chapoly_chacha_xor_sse2, chapoly_chacha_xor_avx2,
    chapoly_chacha_xor_neon;
extern chapoly_chacha_lanes_fn chapoly_chacha_lanes_portable, chapoly_chacha_lanes_sse2,
    chapoly_chacha_lanes_avx2, chapoly_chacha_lanes_neon;
extern chapoly_hchacha_fn chapoly_hchacha_portable;
extern chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_portable, chapoly_poly1305_blocks_sse2,
    chapoly_poly1305_blocks_avx2, chapoly_poly1305_blocks_neon;

static const chapoly_kernel table[] = {
#if defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)
    KERNEL(neon, NEON, by_strips, 6, neon, 8),
#elif defined(__aarch64__) || defined(_M_ARM64)
    LEFT_OUT(neon, "it needs gcc or clang, and little-endian memory"),
#endif
#if defined(__x86_64__) && defined(__GNUC__)
    KERNEL(avx2, AVX2, by_strips, 8, avx2, 16),
    KERNEL(sse2, SSE2, by_strips, 4, sse2, 8),
#elif defined(__x86_64__) || defined(_M_X64)
    LEFT_OUT(avx2, "it needs gcc or clang"),
    LEFT_OUT(sse2, "it needs gcc or clang"),
#endif
    KERNEL(portable, 0, by_strips, 1, portable, 1),
};

const chapoly_kernel *chapoly_kernel_at(size_t index)
{
    return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}

const char *chapoly_kernel_name(const chapoly_kernel *kernel)
{
    return kernel->name;
}

const char *chapoly_kernel_obstacle(const chapoly_kernel *kernel)
{
    if (kernel->left_out != NULL)
        return kernel->left_out;
    return kernel->needs & ~detect() ? "this CPU or its operating system lacks a feature it needs" : NULL;
}

/* ---- The choice: the one mutable global of the native code. ---- */

static _Atomic(const chapoly_kernel *) chosen;

const chapoly_kernel *chapoly_kernel_chosen(void)
{
    const chapoly_kernel *kernel = atomic_load_explicit(&chosen, memory_order_relaxed);

    for (size_t i = 0; kernel == NULL; i++) /* ends at portable, which can run everywhere */
        if (chapoly_kernel_obstacle(&table[i]) == NULL)
            kernel = &table[i];
    return kernel;
}

void chapoly_kernel_choose(const chapoly_kernel *kernel)
{
    atomic_store_explicit(&chosen, kernel, memory_order_relaxed);
}
