/*
 * Poly1305 blocks (RFC 8439 2.5.1) for x86-64 with AVX-512 (F, BW, VL, IFMA, VBMI2).
 */
#include "../kernel.h"

#if CHAPOLY_AVX512

#include <immintrin.h>

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_avx512, chapoly_poly1305_blocks_sse2;

/* gcc's scheduler moves instructions apart before registers are allocated, which costs spills. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-vectorize")
#endif

#include "poly1305_avx512.h"

/* The fewest blocks for which the powers are worth their price (bench/poly1305_crossover.py). */
#ifndef CROSSOVER
#define CROSSOVER 16
#endif

IFMA void chapoly_poly1305_blocks_avx512(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                         uint64_t top)
{
    const unsigned missing = -blocks % MAC_LANES;
    powers of_R;
    __m512i r_powers[3], x[3];

    if (blocks < CROSSOVER || top == 0) {
        chapoly_poly1305_blocks_sse2(h, r, message, blocks, top);
        return;
    }

    const size_t groups = (blocks + missing) / MAC_LANES - 1; /* after the first */
    spread(r_powers, r);
    raise(r_powers, MAC_LANES);
    for (int n = 0; n < 3; n++)
        x[n] = r_powers[n];
    spread_last(x);
    raise(x, groups < STEPS ? groups : STEPS);
    store_powers(&of_R, x);

    load_first_group(x, h, message, missing);
    add_groups(x, &of_R, STEPS, message + 16 * (MAC_LANES - missing), groups, NULL);
    close_lanes(h, x, r_powers);
    chapoly_wipe(&of_R, sizeof of_R);
}

#endif
