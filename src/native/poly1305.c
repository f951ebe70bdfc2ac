/*
 * Poly1305, what is the same for every kernel: clamping, buffering, the final reduction and the comparison of tags.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

/* RFC 8439 2.5: r is the first half of the key, clamped; s the second. */
void chapoly_poly1305_init(chapoly_poly1305 *mac, const uint8_t key[32])
{
    mac->h[0] = mac->h[1] = mac->h[2] = 0;
    mac->r[0] = chapoly_load64(key) & UINT64_C(0x0ffffffc0fffffff);
    mac->r[1] = chapoly_load64(key + 8) & UINT64_C(0x0ffffffc0ffffffc);
    mac->s[0] = chapoly_load64(key + 16);
    mac->s[1] = chapoly_load64(key + 24);
    mac->buffered = 0;
}

void chapoly_poly1305_update(const chapoly_kernel *kernel, chapoly_poly1305 *mac, const uint8_t *message, size_t len)
{
    if (len == 0)
        return;
    if (mac->buffered > 0) {
        const size_t room = 16 - mac->buffered, part = len < room ? len : room;
        memcpy(mac->buffer + mac->buffered, message, part);
        mac->buffered += part, message += part, len -= part;
        if (mac->buffered < 16)
            return;
        kernel->poly1305_blocks(mac->h, mac->r, mac->buffer, 1, 1);
        mac->buffered = 0;
    }
    kernel->poly1305_blocks(mac->h, mac->r, message, len / 16, 1);
    mac->buffered = len % 16;
    if (mac->buffered > 0)
        memcpy(mac->buffer, message + (len - mac->buffered), mac->buffered);
}

/*
 * h mod p, then + s mod 2^128 (RFC 8439 2.5.1). h < 2^130 + 2^128 < 2 p, so at most one p is to be subtracted;
 * h >= p exactly when h + 5 >= 2^130, and then h - p = h + 5 - 2^130.
 */
static void reduce_and_store(uint8_t tag[16], const uint64_t h[3], const uint64_t s[2])
{
    uint64_t g0 = h[0] + 5;
    uint64_t carry = g0 < 5;
    uint64_t g1 = h[1] + carry;
    carry = g1 < carry;
    const uint64_t g2 = h[2] + carry;                    /* <= 5 */
    const uint64_t mask = UINT64_C(0) - (g2 >> 2);       /* all ones if h >= p; g2 >> 2 is 0 or 1 */

    g0 = (h[0] & ~mask) | (g0 & mask);
    g1 = (h[1] & ~mask) | (g1 & mask);
    g0 += s[0];
    g1 += s[1] + (g0 < s[0]);
    chapoly_store64(tag, g0);
    chapoly_store64(tag + 8, g1);
}

void chapoly_poly1305_finish(const chapoly_kernel *kernel, chapoly_poly1305 *mac, uint8_t tag[16])
{
    if (mac->buffered > 0) { /* a last short block is padded with 1 and zeros; upstream's first release forgot to */
        mac->buffer[mac->buffered] = 1;
        memset(mac->buffer + mac->buffered + 1, 0, 15 - mac->buffered);
        kernel->poly1305_blocks(mac->h, mac->r, mac->buffer, 1, 0);
    }
    reduce_and_store(tag, mac->h, mac->s);
    chapoly_wipe_few(mac, sizeof *mac);
}

void chapoly_poly1305_mac(const chapoly_kernel *kernel, uint8_t tag[16], const uint8_t key[32],
                          const uint8_t *message, size_t len)
{
    chapoly_poly1305 mac;

    chapoly_poly1305_init(&mac, key);
    chapoly_poly1305_update(kernel, &mac, message, len);
    chapoly_poly1305_finish(kernel, &mac, tag);
}

/*
 * The empty asm hides the accumulated difference, so that no compiler can turn the loop into an early exit, as one
 * did to upstream's comparison. Without GNU asm every step goes through a volatile object instead.
 */
bool chapoly_tag_equal(const uint8_t a[16], const uint8_t b[16])
{
#if defined(__GNUC__)
    uint64_t difference = (chapoly_load64(a) ^ chapoly_load64(b)) | (chapoly_load64(a + 8) ^ chapoly_load64(b + 8));
    __asm__("" : "+r"(difference));
#else
    volatile uint64_t difference = chapoly_load64(a) ^ chapoly_load64(b);
    difference = difference | (chapoly_load64(a + 8) ^ chapoly_load64(b + 8));
#endif
    return difference == 0;
}
