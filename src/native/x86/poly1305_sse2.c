/*
 * Poly1305 blocks (RFC 8439 2.5.1) for every x86-64: in general registers, since the 32-bit products of SSE2 are no
 * match for those.
 */
#include "../kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include "poly1305_x64.h"

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_sse2;

void chapoly_poly1305_blocks_sse2(uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                                  uint64_t top)
{
    chapoly_poly1305_x64(h, r, message, blocks, top);
}

#endif
