/*
 * One long message in ranges, for several threads.
 *
 * ChaCha20 splits by its counter. Poly1305 is a polynomial in r: what the blocks of a range add to it does not depend
 * on what comes before them, and before n further blocks it counts r^n times.
 */
#include <string.h>

#include "kernel.h"
#include "limbs26.h"

void chapoly_poly1305_partial(chapoly_poly1305 *part, const chapoly_poly1305 *mac)
{
    memset(part, 0, sizeof *part); /* no s: it is added once, at the end of the message */
    memcpy(part->r, mac->r, sizeof part->r);
}

/*
 * x = x * y mod p, not fully reduced. As in portable/poly1305_portable.c, but both factors may be of any size: a power
 * of r is not clamped.
 * requires  x[i], y[i] < 2^26 + 2^24 = 1.25 * 2^26; y may be x
 * ensures   x[1] < 2^26 + 2^6, the others < 2^26
 */
static void multiply(uint32_t x[5], const uint32_t y[5])
{
    const uint64_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3], x4 = x[4];
    const uint64_t y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3], y4 = y[4];
    const uint64_t s1 = 5 * y1, s2 = 5 * y2, s3 = 5 * y3, s4 = 5 * y4;

    /* each sum has at most 1 + 4 * 5 products < 1.5625 * 2^52: < 2^57.1 */
    uint64_t d0 = x0 * y0 + x1 * s4 + x2 * s3 + x3 * s2 + x4 * s1;
    uint64_t d1 = x0 * y1 + x1 * y0 + x2 * s4 + x3 * s3 + x4 * s2;
    uint64_t d2 = x0 * y2 + x1 * y1 + x2 * y0 + x3 * s4 + x4 * s3;
    uint64_t d3 = x0 * y3 + x1 * y2 + x2 * y1 + x3 * y0 + x4 * s4;
    uint64_t d4 = x0 * y4 + x1 * y3 + x2 * y2 + x3 * y1 + x4 * y0;

    /* carries < 2^31.2; d4 has no factor 5, so 5 products and a carry: < 2^55, and its carry times 5 < 2^31.4 */
    d1 += d0 >> 26, x[0] = (uint32_t)d0 & LIMB_MASK;
    d2 += d1 >> 26, x[1] = (uint32_t)d1 & LIMB_MASK;
    d3 += d2 >> 26, x[2] = (uint32_t)d2 & LIMB_MASK;
    d4 += d3 >> 26, x[3] = (uint32_t)d3 & LIMB_MASK;
    d0 = x[0] + 5 * (d4 >> 26), x[4] = (uint32_t)d4 & LIMB_MASK;
    x[0] = (uint32_t)d0 & LIMB_MASK;
    x[1] += (uint32_t)(d0 >> 26); /* < 2^6 */
}

/* h = h * r^blocks + h of the part. By squaring: no more than two multiplications for each bit of `blocks`. */
void chapoly_poly1305_join(chapoly_poly1305 *mac, chapoly_poly1305 *part, uint64_t len)
{
    uint32_t h[5], power[5]; /* r, r^2, r^4, ... */

    chapoly_split(h, mac->h); /* mac->h[2] <= 4, so that h4 < 2^26 + 2^24 */
    chapoly_split(power, (const uint64_t[3]){mac->r[0], mac->r[1], 0});
    for (uint64_t blocks = len / 16; blocks > 0; blocks >>= 1) {
        if (blocks & 1)
            multiply(h, power);
        multiply(power, power);
    }
    mac->h[0] = mac->h[1] = mac->h[2] = 0;
    chapoly_add_limbs(mac->h, h);
    chapoly_split(h, part->h);
    chapoly_add_limbs(mac->h, h);
    memcpy(mac->buffer, part->buffer, sizeof mac->buffer);
    mac->buffered = part->buffered;

    chapoly_wipe(part, sizeof *part);
    chapoly_wipe(h, sizeof h);
    chapoly_wipe(power, sizeof power);
}

/* ---- The AEAD (RFC 8439 2.8). ---- */

void chapoly_message_range(chapoly_message *range, const chapoly_message *message, uint64_t at)
{
    range->chacha = message->chacha;
    chapoly_poly1305_partial(&range->mac, &message->mac);
    range->associated_len = 0;
    range->len = at;
}

void chapoly_message_join(chapoly_message *message, chapoly_message *range)
{
    chapoly_poly1305_join(&message->mac, &range->mac, range->len - message->len);
    message->len = range->len;
    chapoly_wipe(range, sizeof *range);
}
