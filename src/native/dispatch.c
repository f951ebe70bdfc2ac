/*
 * Which kernels there are, which of them can run on this CPU, and which one is in use. No other file names them all.
 *
 * To add an instruction set: its files (and their names in meson.build), its features in the enum, and its line in the
 * table below.
 */
#if !defined(__STDC_NO_ATOMICS__)
#include <stdatomic.h>
#endif

#include "kernel.h"

/* ---- The CPU. ---- */

struct features {
    uint32_t usable; /* the CPU has them, and the operating system keeps their registers */
    uint32_t unkept; /* the CPU has them, but the operating system does not keep their registers */
};

struct feature {
    const char *name, *lacking, *unkept; /* and what to say if it cannot be used */
};
#define FEATURE(name, registers)                                                                                     \
    {#name, "this CPU lacks " #name, "the operating system does not keep the " registers " registers"}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

enum {
    SSE2 = 1u << 0,
    SSSE3 = 1u << 1,
    AVX2 = 1u << 2,
    AVX512F = 1u << 3,
    AVX512BW = 1u << 4,
    AVX512VL = 1u << 5,
    AVX512IFMA = 1u << 6,
    AVX512VBMI2 = 1u << 7,
    FAST_ZMM = 1u << 8, /* 512-bit code does not lower the clock */
};
static const struct feature known[] = { /* in the order of their bits */
    FEATURE(sse2, "xmm"),
    FEATURE(ssse3, "xmm"),
    FEATURE(avx2, "ymm"),
    FEATURE(avx512f, "zmm"),
    FEATURE(avx512bw, "zmm"),
    FEATURE(avx512vl, "zmm"),
    FEATURE(avx512ifma, "zmm"),
    FEATURE(avx512vbmi2, "zmm"),
    {"fast_zmm", "512-bit code lowers this CPU's clock", "the operating system does not keep the zmm registers"},
};

/* What CPUID and XGETBV say, from which all the rest follows. */
struct readings {
    struct leaf { uint32_t a, b, c, d; } leaf0, leaf1, leaf7;
    uint64_t xcr0; /* 0 if XGETBV may not be executed */
};

enum { OSXSAVE = 1u << 27, AVX = 1u << 28 }; /* leaf 1, c */

/*
 * Intel's family 6, model 0x55: Skylake-X (and -SP, -W), Cascade Lake, Cooper Lake. Their clock falls when 512-bit
 * instructions run, for all that runs on the core and for a millisecond after. From Ice Lake on, and on AMD, it hardly
 * does.
 */
static bool lowers_clock(const struct readings *cpu)
{
    const bool intel = cpu->leaf0.b == 0x756e6547 && cpu->leaf0.d == 0x49656e69 && cpu->leaf0.c == 0x6c65746e;

    return intel && (cpu->leaf1.a & 0x0fff0ff0) == 0x00050650; /* family and model without the stepping */
}

static struct features usable_features(const struct readings *cpu)
{
    enum { YMM_STATE = 0x06, ZMM_STATE = 0xe6 }; /* XCR0: SSE and AVX; and opmask, upper halves, upper registers */
    const uint32_t max_leaf = cpu->leaf0.a, b = cpu->leaf7.b, c = cpu->leaf7.c;
    const uint64_t kept = cpu->leaf1.c & OSXSAVE ? cpu->xcr0 : 0;
    struct features found = {SSE2, 0}; /* every x86-64 has it */
    uint32_t ymm, zmm = 0;

    if (max_leaf >= 1 && cpu->leaf1.c & 1u << 9)
        found.usable |= SSSE3;
    if (max_leaf < 7 || !(cpu->leaf1.c & AVX)) /* there is no leaf 7, or what it says does not count */
        return found;

    ymm = b & 1u << 5 ? AVX2 : 0;
    if (b & 1u << 16) {
        zmm = AVX512F | (lowers_clock(cpu) ? 0 : FAST_ZMM);
        zmm |= (b & 1u << 30 ? AVX512BW : 0) | (b & 1u << 31 ? AVX512VL : 0) | (b & 1u << 21 ? AVX512IFMA : 0);
        zmm |= c & 1u << 6 ? AVX512VBMI2 : 0;
    }
    found.usable |= ((kept & YMM_STATE) == YMM_STATE ? ymm : 0) | ((kept & ZMM_STATE) == ZMM_STATE ? zmm : 0);
    found.unkept = (ymm | zmm) & ~found.usable;
    return found;
}

/* Asks CPUID and XGETBV themselves: __builtin_cpu_supports answers 0 for everything under some toolchains. */
static struct features detect(void)
{
    struct readings cpu = {0};

    __cpuid_count(0, 0, cpu.leaf0.a, cpu.leaf0.b, cpu.leaf0.c, cpu.leaf0.d);
    __cpuid_count(1, 0, cpu.leaf1.a, cpu.leaf1.b, cpu.leaf1.c, cpu.leaf1.d);
    __cpuid_count(7, 0, cpu.leaf7.a, cpu.leaf7.b, cpu.leaf7.c, cpu.leaf7.d);
    if (cpu.leaf1.c & OSXSAVE) {
        uint32_t low, high;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        cpu.xcr0 = (uint64_t)high << 32 | low;
    }
    return usable_features(&cpu);
}

#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#endif

enum { NEON = 1u << 0 };
static const struct feature known[] = {FEATURE(neon, "NEON")};

static struct features detect(void)
{
#if defined(__linux__)
    const unsigned long asimd = 1ul << 1; /* HWCAP_ASIMD */
    return (struct features){getauxval(AT_HWCAP) & asimd ? NEON : 0, 0};
#else
    return (struct features){NEON, 0}; /* macOS, Windows and the BSDs demand it on this architecture */
#endif
}

#else

static const struct feature known[] = {{NULL, NULL, NULL}};

static struct features detect(void)
{
    return (struct features){0, 0};
}

#endif

const char *chapoly_cpu_feature(size_t index, bool *present)
{
    if (index >= sizeof known / sizeof known[0])
        return NULL;
    *present = detect().usable >> index & 1;
    return known[index].name;
}

/* What to say of the first of these features that cannot be used; NULL if all can. */
static const char *why_not(uint32_t wanted, struct features found)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (wanted & ~found.usable & 1u << i)
            return found.unkept >> i & 1 ? known[i].unkept : known[i].lacking;
    return NULL;
}

/* ---- The kernels, fastest first. ---- */

#define LEFT_OUT(isa, why) {.name = #isa, .left_out = why}

extern chapoly_chacha_xor_fn chapoly_chacha_xor_portable, chapoly_chacha_xor_sse2, chapoly_chacha_xor_avx2,
    chapoly_chacha_xor_avx512vl, chapoly_chacha_xor_avx512, chapoly_chacha_xor_neon;
extern chapoly_chacha_lanes_fn chapoly_chacha_lanes_portable, chapoly_chacha_lanes_sse2, chapoly_chacha_lanes_avx2,
    chapoly_chacha_lanes_avx512, chapoly_chacha_lanes_neon;
extern chapoly_chacha_pass_fn chapoly_chacha_pass_portable, chapoly_chacha_pass_sse2, chapoly_chacha_pass_avx2,
    chapoly_chacha_pass_avx512vl, chapoly_chacha_pass_neon;
extern chapoly_hchacha_fn chapoly_hchacha_portable, chapoly_hchacha_sse2, chapoly_hchacha_avx2;
extern chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_portable, chapoly_poly1305_blocks_sse2,
    chapoly_poly1305_blocks_avx2, chapoly_poly1305_blocks_avx512, chapoly_poly1305_blocks_neon;
extern chapoly_aead_fn chapoly_aead_avx512, chapoly_aead_neon;
extern chapoly_aead_part_fn chapoly_aead_part_sse2, chapoly_aead_part_avx2, chapoly_aead_part_avx512;
extern chapoly_aead_many_fn chapoly_aead_many_avx512;

static const chapoly_kernel table[] = {
#if defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)
    {
        .name = "neon",
        .needs = NEON,
        .chacha_xor = chapoly_chacha_xor_neon,
        .chacha_pass = chapoly_chacha_pass_neon,
        .pass_blocks = 10,
        .chacha_lanes = chapoly_chacha_lanes_neon,
        .lanes = 8,
        .hchacha = chapoly_hchacha_portable,
        .poly1305_blocks = chapoly_poly1305_blocks_neon,
        .aead = chapoly_aead_neon,
        .aead_part = chapoly_aead_part_by_strips,
        .aead_many = chapoly_aead_many_by_lanes,
    },
#elif defined(__aarch64__) || defined(_M_ARM64)
    LEFT_OUT(neon, "it needs gcc or clang, and little-endian memory"),
#endif
#if CHAPOLY_AVX512
    {
        .name = "avx512",
        .needs = AVX2 | AVX512F | AVX512BW | AVX512VL | AVX512IFMA | AVX512VBMI2,
        .prefers = FAST_ZMM,
        .chacha_xor = chapoly_chacha_xor_avx512,
        .pass_blocks = 16,
        .chacha_lanes = chapoly_chacha_lanes_avx512,
        .lanes = 32,
        .hchacha = chapoly_hchacha_portable,
        .poly1305_blocks = chapoly_poly1305_blocks_avx512,
        .aead = chapoly_aead_avx512,
        .aead_part = chapoly_aead_part_avx512,
        .aead_many = chapoly_aead_many_avx512,
    },
    {
        .name = "avx512vl",
        .needs = AVX2 | AVX512F | AVX512BW | AVX512VL,
        .chacha_xor = chapoly_chacha_xor_avx512vl,
        .chacha_pass = chapoly_chacha_pass_avx512vl,
        .pass_blocks = 16,
        .chacha_lanes = chapoly_chacha_lanes_avx2,
        .lanes = 16,
        .hchacha = chapoly_hchacha_avx2,
        .poly1305_blocks = chapoly_poly1305_blocks_avx2,
        .aead = chapoly_aead_by_passes,
        .aead_part = chapoly_aead_part_by_strips,
        .aead_many = chapoly_aead_many_by_lanes,
    },
#elif defined(__x86_64__) || defined(_M_X64)
    LEFT_OUT(avx512, "it needs clang, or gcc 8 or later and not for Windows"),
    LEFT_OUT(avx512vl, "it needs clang, or gcc 8 or later and not for Windows"),
#endif
#if defined(__x86_64__) && defined(__GNUC__)
    {
        .name = "avx2",
        .needs = AVX2,
        .chacha_xor = chapoly_chacha_xor_avx2,
        .chacha_pass = chapoly_chacha_pass_avx2,
        .pass_blocks = 8,
        .chacha_lanes = chapoly_chacha_lanes_avx2,
        .lanes = 16,
        .hchacha = chapoly_hchacha_avx2,
        .poly1305_blocks = chapoly_poly1305_blocks_avx2,
        .aead = chapoly_aead_by_passes,
        .aead_part = chapoly_aead_part_avx2,
        .aead_many = chapoly_aead_many_by_lanes,
    },
    {
        .name = "sse2",
        .needs = SSE2,
        .chacha_xor = chapoly_chacha_xor_sse2,
        .chacha_pass = chapoly_chacha_pass_sse2,
        .pass_blocks = 4,
        .chacha_lanes = chapoly_chacha_lanes_sse2,
        .lanes = 8,
        .hchacha = chapoly_hchacha_sse2,
        .poly1305_blocks = chapoly_poly1305_blocks_sse2,
        .aead = chapoly_aead_by_passes,
        .aead_part = chapoly_aead_part_sse2,
        .aead_many = chapoly_aead_many_by_lanes,
    },
#elif defined(__x86_64__) || defined(_M_X64)
    LEFT_OUT(avx2, "it needs gcc or clang"),
    LEFT_OUT(sse2, "it needs gcc or clang"),
#endif
    {
        .name = "portable",
        .chacha_xor = chapoly_chacha_xor_portable,
        .chacha_pass = chapoly_chacha_pass_portable,
        .pass_blocks = 1,
        .chacha_lanes = chapoly_chacha_lanes_portable,
        .lanes = 1,
        .hchacha = chapoly_hchacha_portable,
        .poly1305_blocks = chapoly_poly1305_blocks_portable,
        .aead = chapoly_aead_by_passes,
        .aead_part = chapoly_aead_part_by_strips,
        .aead_many = chapoly_aead_many_by_lanes,
    },
};

/* Why the next kernel of the table, which does without what this one prefers, is better on this CPU; or NULL. */
static const char *drawback(const chapoly_kernel *kernel, struct features found)
{
    return kernel->left_out == NULL && why_not(kernel->needs, found) == NULL ? why_not(kernel->prefers, found) : NULL;
}

/* The table with each kernel that has a drawback behind the next one. Portable, the last, has none. */
static const chapoly_kernel *kernel_at(size_t index, struct features found)
{
    if (index >= sizeof table / sizeof table[0])
        return NULL;
    if (drawback(&table[index], found) != NULL)
        return &table[index + 1];
    if (index > 0 && drawback(&table[index - 1], found) != NULL)
        return &table[index - 1];
    return &table[index];
}

const chapoly_kernel *chapoly_kernel_at(size_t index)
{
    return kernel_at(index, detect());
}

const char *chapoly_kernel_name(const chapoly_kernel *kernel)
{
    return kernel->name;
}

const char *chapoly_kernel_obstacle(const chapoly_kernel *kernel)
{
    return kernel->left_out != NULL ? kernel->left_out : why_not(kernel->needs, detect());
}

const char *chapoly_kernel_drawback(const chapoly_kernel *kernel)
{
    return drawback(kernel, detect());
}

/* ---- The choice: the one mutable global of the native code. ---- */

static const chapoly_kernel *fastest(void)
{
    size_t i = 0;

    while (chapoly_kernel_obstacle(chapoly_kernel_at(i)) != NULL) /* ends at portable, which can run everywhere */
        i++;
    return chapoly_kernel_at(i);
}

#if !defined(__STDC_NO_ATOMICS__)

static _Atomic(const chapoly_kernel *) chosen; /* NULL until the first call; asking the CPU takes microseconds */

const chapoly_kernel *chapoly_kernel_chosen(void)
{
    const chapoly_kernel *kernel = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (kernel == NULL) {
        const chapoly_kernel *const first = fastest();
        if (atomic_compare_exchange_strong_explicit(&chosen, &kernel, first, memory_order_relaxed,
                                                    memory_order_relaxed))
            kernel = first; /* else it is now what another thread has chosen meanwhile */
    }
    return kernel;
}

void chapoly_kernel_choose(const chapoly_kernel *kernel)
{
    atomic_store_explicit(&chosen, kernel, memory_order_relaxed);
}

#else

/*
 * A compiler without C11 atomics, as MSVC is unless told otherwise: it reads and writes a pointer whole. The first
 * answer is not kept, since that could undo what another thread has chosen meanwhile.
 */
static const chapoly_kernel *volatile chosen;

const chapoly_kernel *chapoly_kernel_chosen(void)
{
    const chapoly_kernel *const kernel = chosen;

    return kernel != NULL ? kernel : fastest();
}

void chapoly_kernel_choose(const chapoly_kernel *kernel)
{
    chosen = kernel;
}

#endif
