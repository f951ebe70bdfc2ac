/*
 * Tests of the choice of a kernel, on CPUs and operating systems that are not here: they are what CPUID and XGETBV say.
 * With an argument it tests the CPU it runs on, real or emulated: the kernel of that name must be the choice.
 */
#include "dispatch.c"

#include <stdio.h>
#include <string.h>

static unsigned long passed, failed;

static void check(bool right, const char *machine, const char *what, const char *got)
{
    if (right) {
        passed++;
        return;
    }
    failed++;
    printf("FAILED %s: %s; got %s\n", machine, what, got == NULL ? "NULL" : got);
}

#if defined(__x86_64__) && defined(__GNUC__)

#define INTEL 0x756e6547, 0x6c65746e, 0x49656e69 /* leaf 0: b, c, d */
#define AMD 0x68747541, 0x444d4163, 0x69746e65

/* XCR0: x87 and SSE; with AVX; with AVX-512; bit 9 is for protection keys. */
enum { XMM = 0x3, YMM = 0x7, ZMM = 0xe7, PKRU = 0x200 };

enum {
    NEHALEM = SSE2 | SSSE3,
    HASWELL = NEHALEM | AVX2,
    SKYLAKE_X = AVX512F | AVX512BW | AVX512VL, /* without HASWELL, since operating systems keep its registers apart */
    ICE_LAKE = SKYLAKE_X | AVX512IFMA | AVX512VBMI2 | FAST_ZMM,
};

static const struct machine {
    const char *name;
    struct readings readings;
    uint32_t usable, unkept;
    const char *first; /* the kernel to be chosen */
} machines[] = {
    /* CPUs as they come. */
    {"Athlon 64", {{1, AMD}, {0x00000f4a, 0x800, 0x00000000, 0x078bfbff}, {0}, 0}, SSE2, 0, "sse2"},
    {"Core 2", {{0xa, INTEL}, {0x000006fb, 0x800, 0x0000e3bd, 0xbfebfbff}, {0}, 0}, NEHALEM, 0, "sse2"},
    {"Nehalem", {{0xb, INTEL}, {0x000106a5, 0x800, 0x009ce3bd, 0xbfebfbff}, {0}, 0}, NEHALEM, 0, "sse2"},
    {"Sandy Bridge", {{0xd, INTEL}, {0x000206a7, 0x800, 0x1fbae3bf, 0xbfebfbff}, {0}, YMM}, NEHALEM, 0, "sse2"},
    {"Haswell", {{0xd, INTEL}, {0x000306c3, 0x800, 0x7ffafbff, 0xbfebfbff}, {0, 0x000027ab, 0, 0}, YMM}, HASWELL, 0,
     "avx2"},
    {"Zen 3", {{0x10, AMD}, {0x00a20f10, 0x800, 0x7ef8320b, 0x178bfbff}, {0, 0x219c97a9, 0x0040068c, 0}, YMM | PKRU},
     HASWELL, 0, "avx2"},
    {"Alder Lake", {{0x20, INTEL}, {0x00090672, 0x800, 0x7ffafbff, 0xbfebfbff}, {2, 0x239ca7eb, 0x98c027bc, 0},
     YMM | PKRU}, HASWELL, 0, "avx2"},
    {"Knights Landing", {{0xd, INTEL}, {0x00050671, 0x800, 0x7ff8f3bf, 0xbfebfbff}, {0, 0x1c0d23ab, 1, 0}, ZMM},
     HASWELL | AVX512F | FAST_ZMM, 0, "avx2"},
    {"Skylake-X", {{0x16, INTEL}, {0x00050654, 0x800, 0x7ffefbff, 0xbfebfbff}, {0, 0xd39ffffb, 0x8, 0}, ZMM | PKRU},
     HASWELL | SKYLAKE_X, 0, "avx512vl"},
    {"Cascade Lake", {{0x16, INTEL}, {0x00050657, 0x800, 0x7ffefbff, 0xbfebfbff}, {0, 0xd39ffffb, 0x808, 0},
     ZMM | PKRU}, HASWELL | SKYLAKE_X, 0, "avx512vl"},
    {"Cannon Lake", {{0x16, INTEL}, {0x00060663, 0x800, 0x7ffafbbf, 0xbfebfbff}, {0, 0xf2bf67eb, 0x1e, 0}, ZMM | PKRU},
     HASWELL | SKYLAKE_X | AVX512IFMA | FAST_ZMM, 0, "avx512vl"},
    {"Ice Lake", {{0x1b, INTEL}, {0x000606a6, 0x800, 0x7ffefbff, 0xbfebfbff}, {0, 0xf3bfbfef, 0x40417f5e, 0},
     ZMM | PKRU}, HASWELL | ICE_LAKE, 0, "avx512"},
    {"Zen 4", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0x178bfbff}, {1, 0xf1bf97a9, 0x00405fce, 0}, ZMM | PKRU},
     HASWELL | ICE_LAKE, 0, "avx512"},
    {"Zen 5", {{0x10, AMD}, {0x00b40f40, 0x800, 0x7ef8320b, 0x178bfbff}, {1, 0xf1bf97a9, 0x18415fce, 0}, ZMM | PKRU},
     HASWELL | ICE_LAKE, 0, "avx512"},

    /* Operating systems that keep less. What XCR0 holds without OSXSAVE (bit 27 of c in leaf 1) does not count. */
    {"Zen 4, no OSXSAVE", {{0x10, AMD}, {0x00a60f12, 0x800, 0x76f8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, ZMM},
     NEHALEM, AVX2 | ICE_LAKE, "sse2"},
    {"Haswell, SSE state", {{0xd, INTEL}, {0x000306c3, 0x800, 0x7ffafbff, 0}, {0, 0x000027ab, 0, 0}, XMM},
     NEHALEM, AVX2, "sse2"},
    {"Haswell, AVX state without SSE's", {{0xd, INTEL}, {0x000306c3, 0x800, 0x7ffafbff, 0}, {0, 0x000027ab, 0, 0}, 0x5},
     NEHALEM, AVX2, "sse2"},
    {"Zen 4, SSE state", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, XMM},
     NEHALEM, AVX2 | ICE_LAKE, "sse2"},
    {"Zen 4, AVX state", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, YMM},
     HASWELL, ICE_LAKE, "avx2"},
    {"Zen 4, no opmask", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, 0xc7},
     HASWELL, ICE_LAKE, "avx2"},
    {"Zen 4, no upper halves", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, 0xa7},
     HASWELL, ICE_LAKE, "avx2"},
    {"Zen 4, no upper registers", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0},
     0x67}, HASWELL, ICE_LAKE, "avx2"},
    {"Ice Lake, no SSE state", {{0x1b, INTEL}, {0x000606a6, 0x800, 0x7ffefbff, 0}, {0, 0xf3bfbfef, 0x40417f5e, 0},
     0xe5}, NEHALEM, AVX2 | ICE_LAKE, "sse2"},

    /* Hypervisors that hide things. A leaf past the last one answers with the last one's data: anything. */
    {"max leaf 0", {{0, INTEL}, {~0u, ~0u, ~0u, ~0u}, {~0u, ~0u, ~0u, ~0u}, ZMM}, SSE2, 0, "sse2"},
    {"Zen 4, max leaf 6", {{6, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {~0u, ~0u, ~0u, ~0u}, ZMM},
     NEHALEM, 0, "sse2"},
    {"Zen 4, max leaf 7", {{7, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, ZMM},
     HASWELL | ICE_LAKE, 0, "avx512"},
    {"Haswell, AVX hidden, AVX2 left", {{0xd, INTEL}, {0x000306c3, 0x800, 0x6ffafbff, 0}, {0, 0x000027ab, 0, 0}, YMM},
     NEHALEM, 0, "sse2"},
    {"Zen 4, AVX512F hidden, the rest left", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0},
     {1, 0xf1be97a9, 0x00405fce, 0}, ZMM}, HASWELL, 0, "avx2"},
    {"Zen 4, AVX2 hidden", {{0x10, AMD}, {0x00a60f12, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf9789, 0x00405fce, 0}, ZMM},
     NEHALEM | ICE_LAKE, 0, "sse2"},
    {"Zen 4 called Skylake-X", {{0x10, INTEL}, {0x00050654, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, ZMM},
     HASWELL | (ICE_LAKE & ~FAST_ZMM), 0, "avx512vl"},
    {"the same, next model", {{0x10, INTEL}, {0x00050664, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0}, ZMM},
     HASWELL | ICE_LAKE, 0, "avx512"},
    {"Skylake-X's number by AMD", {{0x10, AMD}, {0x00050654, 0x800, 0x7ef8320b, 0}, {1, 0xf1bf97a9, 0x00405fce, 0},
     ZMM}, HASWELL | ICE_LAKE, 0, "avx512"},
};

/* The first kernel, in the order for this machine, that can run on it. */
static const char *first_kernel(struct features found)
{
    const chapoly_kernel *kernel;

    for (size_t i = 0; (kernel = kernel_at(i, found)) != NULL; i++)
        if (kernel->left_out == NULL && why_not(kernel->needs, found) == NULL)
            return kernel->name;
    return NULL;
}

static void test_machine(const struct machine *machine)
{
    const struct features found = usable_features(&machine->readings);
    const chapoly_kernel *kernel;
    char bits[32];
    size_t kernels = 0;

    snprintf(bits, sizeof bits, "%x and %x", (unsigned)found.usable, (unsigned)found.unkept);
    check(found.usable == machine->usable, machine->name, "usable features", bits);
    check(found.unkept == machine->unkept, machine->name, "features without registers", bits);
    check(strcmp(first_kernel(found), machine->first) == 0, machine->name, machine->first, first_kernel(found));

    /* In any order each kernel is there once, and portable last. */
    for (const chapoly_kernel *each = table; each < table + sizeof table / sizeof table[0]; each++) {
        size_t times = 0;
        for (size_t i = 0; (kernel = kernel_at(i, found)) != NULL; i++)
            times += kernel == each;
        check(times == 1, machine->name, "one place in the order", each->name);
        kernels++;
    }
    kernel = kernel_at(kernels - 1, found);
    check(kernel == &table[kernels - 1] && strcmp(kernel->name, "portable") == 0, machine->name, "portable last",
          kernel->name);
}

static void same_text(const char *what, const char *got, const char *want)
{
    check(want == NULL ? got == NULL : got != NULL && strcmp(got, want) == 0, what, want == NULL ? "NULL" : want, got);
}

static const struct chapoly_kernel *kernel_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static void test_reasons(void)
{
    const struct features none = {SSE2, 0}, unkept = {SSE2, AVX2 | ICE_LAKE}, all = {HASWELL | ICE_LAKE, 0};
    const struct features no_ifma = {all.usable & ~(uint32_t)AVX512IFMA, 0};
    const struct features slow = {all.usable & ~(uint32_t)FAST_ZMM, 0};

    same_text("nothing wanted", why_not(0, none), NULL);
    same_text("all there", why_not(HASWELL | ICE_LAKE, all), NULL);
    same_text("lacking", why_not(SSE2 | AVX2, none), "this CPU lacks avx2");
    same_text("lacking", why_not(AVX512F | AVX512IFMA, no_ifma), "this CPU lacks avx512ifma");
    same_text("unkept", why_not(SSE2 | AVX2, unkept), "the operating system does not keep the ymm registers");
    same_text("unkept", why_not(AVX512VL, unkept), "the operating system does not keep the zmm registers");
    same_text("unkept", why_not(FAST_ZMM, unkept), "the operating system does not keep the zmm registers");
    same_text("slow", why_not(FAST_ZMM, slow), "512-bit code lowers this CPU's clock");
#if CHAPOLY_AVX512
    const struct features skylake_x = {HASWELL | SKYLAKE_X, 0}, no_zmm = {HASWELL, ICE_LAKE};
    const chapoly_kernel *const avx512 = kernel_named("avx512"), *const avx512vl = kernel_named("avx512vl");
    same_text("avx512 on Skylake-X", why_not(avx512->needs, skylake_x), "this CPU lacks avx512ifma");
    same_text("avx512 on Haswell", why_not(avx512->needs, (struct features){HASWELL, 0}), "this CPU lacks avx512f");
    same_text("avx512 without state", why_not(avx512->needs, no_zmm),
              "the operating system does not keep the zmm registers");
    same_text("avx512 on Ice Lake", drawback(avx512, all), NULL);
    same_text("avx512 with a slow clock", drawback(avx512, slow), "512-bit code lowers this CPU's clock");
    same_text("avx512vl with a slow clock", drawback(avx512vl, slow), NULL);
    check(kernel_at(0, slow) == avx512vl && kernel_at(1, slow) == avx512, "slow clock", "256 bits first",
          "another order");
    check(kernel_at(0, all) == avx512 && kernel_at(1, all) == avx512vl, "fast clock", "512 bits first",
          "another order");
#endif
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct features but_one = {~(1u << i), 0};
        check(strstr(why_not(~0u, but_one), known[i].name) != NULL || 1u << i == FAST_ZMM, known[i].name, "named",
              why_not(~0u, but_one));
    }
}

#endif

int main(int argc, char **argv)
{
    const char *const chosen_here = chapoly_kernel_chosen()->name;

    if (argc > 1)
        check(strcmp(chosen_here, argv[1]) == 0, "here", argv[1], chosen_here);
    else
        printf("here: %s\n", chosen_here);
#if defined(__x86_64__) && defined(__GNUC__)
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        test_machine(&machines[i]);
    test_reasons();
#endif
    printf("%lu passed, %lu failed\n", passed, failed);
    return failed != 0;
}
