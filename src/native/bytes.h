/*
 * bytes.h: little-endian words in memory, for any byte order and alignment; the xor of bytes; and overwriting a few.
 */
#ifndef CHAPOLY_BYTES_H
#define CHAPOLY_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "chapoly.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

/* One move each: gcc 12 sees that in the loads below, but not in two stores in a row. */
static inline uint32_t chapoly_load32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t chapoly_load64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline void chapoly_store32(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void chapoly_store64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

#else

static inline uint32_t chapoly_load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t chapoly_load64(const uint8_t *p)
{
    return (uint64_t)chapoly_load32(p) | (uint64_t)chapoly_load32(p + 4) << 32;
}

static inline void chapoly_store32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

static inline void chapoly_store64(uint8_t *p, uint64_t v)
{
    chapoly_store32(p, (uint32_t)v);
    chapoly_store32(p + 4, (uint32_t)(v >> 32));
}

#endif

/* dst[i] = src[i] ^ keystream[i] for i < len; dst may be src. */
static inline void chapoly_xor(uint8_t *dst, const uint8_t *src, const uint8_t *keystream, size_t len)
{
    size_t i = 0;

    for (; i + 32 <= len; i += 32) { /* all loads before the first store, so that compilers may take wide registers */
        const uint64_t a = chapoly_load64(src + i) ^ chapoly_load64(keystream + i);
        const uint64_t b = chapoly_load64(src + i + 8) ^ chapoly_load64(keystream + i + 8);
        const uint64_t c = chapoly_load64(src + i + 16) ^ chapoly_load64(keystream + i + 16);
        const uint64_t d = chapoly_load64(src + i + 24) ^ chapoly_load64(keystream + i + 24);
        chapoly_store64(dst + i, a);
        chapoly_store64(dst + i + 8, b);
        chapoly_store64(dst + i + 16, c);
        chapoly_store64(dst + i + 24, d);
    }
    for (; i + 8 <= len; i += 8)
        chapoly_store64(dst + i, chapoly_load64(src + i) ^ chapoly_load64(keystream + i));
    for (; i < len; i++)
        dst[i] = (uint8_t)(src[i] ^ keystream[i]);
}

/* chapoly_wipe for an object of known and small size: a few stores, where the call takes tens of instructions. */
static inline void chapoly_wipe_few(void *secret, size_t len)
{
#if defined(__GNUC__)
    memset(secret, 0, len);
    __asm__ __volatile__("" : : "r"(secret) : "memory"); /* somebody may read it: the stores must happen */
#else
    chapoly_wipe(secret, len);
#endif
}

#endif
