/*
 * The AEAD (RFC 8439 2.8) for AArch64 with Advanced SIMD: messages of up to two blocks, most of what small packets are.
 *
 * Block 0 of the keystream, which gives the one-time key, and those for the data are made side by side and stay in
 * registers. The text of the MAC is put together on the way, so that one loop takes it in.
 */
#include "../kernel.h"

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)

#include <arm_neon.h>
#include <string.h>

chapoly_aead_fn chapoly_aead_neon;

/* As in chacha20_neon.c. */
#ifndef __clang__
#pragma GCC optimize("O3", "no-schedule-insns", "no-tree-slp-vectorize", "rename-registers")
#endif

#include "chacha20_neon.h"
#include "poly1305_a64.h"

enum {
    SHORT = 2 * BLOCK,     /* of data */
    SHORT_ASSOCIATED = 64, /* of associated data */
};

/* The first n bytes, 0 < n < 16, and zeros. Nothing beyond them is read. */
INLINE uint8x16_t load_part(const uint8_t *p, size_t n)
{
    uint64_t low, high = 0;

    if (n >= 8) {
        low = chapoly_load64(p);
        high = chapoly_load64(p + n - 8) >> 8 >> 8 * (15 - n); /* the last 8 bytes without those of `low` */
    } else if (n >= 4) {
        low = chapoly_load32(p) | (uint64_t)chapoly_load32(p + n - 4) << 8 * (n - 4);
    } else {
        low = p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1);
    }
    return vcombine_u8(vcreate_u8(low), vcreate_u8(high));
}

/* The first n bytes of v, n < 16. */
INLINE void store_part(uint8_t *p, uint8x16_t v, size_t n)
{
    uint64_t word = vgetq_lane_u64(vreinterpretq_u64_u8(v), 0);

    if (n & 8) {
        chapoly_store64(p, word);
        word = vgetq_lane_u64(vreinterpretq_u64_u8(v), 1), p += 8;
    }
    if (n & 4) {
        chapoly_store32(p, (uint32_t)word);
        word >>= 32, p += 4;
    }
    if (n & 2) {
        p[0] = (uint8_t)word, p[1] = (uint8_t)(word >> 8);
        word >>= 16, p += 2;
    }
    if (n & 1)
        p[0] = (uint8_t)word;
}

/* v with zeros from byte n on, n < 16. */
INLINE uint8x16_t first_bytes(uint8x16_t v, size_t n)
{
    static const uint8_t mask[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

    return vandq_u8(v, vld1q_u8(mask + 16 - n));
}

/* Data, and zeros up to a multiple of 16 bytes; where the next begins. */
INLINE uint8_t *put_padded(uint8_t *text, const uint8_t *data, size_t len)
{
#pragma GCC unroll 1
    for (; len >= 16; len -= 16, data += 16, text += 16)
        vst1q_u8(text, vld1q_u8(data));
    if (len > 0) {
        vst1q_u8(text, load_part(data, len));
        text += 16;
    }
    return text;
}

/* Up to `count` blocks of data, and more than one fewer. */
INLINE void short_message(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src, size_t len,
                          const uint8_t *associated_data, size_t associated_len, const uint32_t state[16],
                          bool decrypting, const int count)
{
    uint8_t text[SHORT_ASSOCIATED + SHORT + 16], *end = put_padded(text, associated_data, associated_len);
    const size_t rest = len % 16;
    chapoly_poly1305 mac;
    uint8x16_t keystream;
    rows x;

    start_rows(&x, state, 1 + count);
    permute_rows(&x, 20, 1 + count);

    const uint64x2_t r = vreinterpretq_u64_u8(finished_row(&x, 0)), s = vreinterpretq_u64_u8(finished_row(&x, 1));
    mac.h[0] = mac.h[1] = mac.h[2] = 0;
    mac.r[0] = vgetq_lane_u64(r, 0) & UINT64_C(0x0ffffffc0fffffff);
    mac.r[1] = vgetq_lane_u64(r, 1) & UINT64_C(0x0ffffffc0ffffffc);
    vst1q_u64(mac.s, s);
    mac.buffered = 0;

#pragma GCC unroll 8
    for (int i = 0; i < 4 * count; i++) {
        keystream = finished_row(&x, 4 + i);
        if (i >= 4 * (count - 1) && len - 16 * (size_t)i < 16)
            break;
        const uint8x16_t from = vld1q_u8(src + 16 * i), to = veorq_u8(from, keystream);
        vst1q_u8(dst + 16 * i, to);
        vst1q_u8(end, decrypting ? from : to);
        end += 16;
    }
    if (rest > 0) {
        const uint8x16_t from = load_part(src + (len - rest), rest), to = veorq_u8(from, first_bytes(keystream, rest));
        store_part(dst + (len - rest), to, rest);
        vst1q_u8(end, decrypting ? from : to);
        end += 16;
    }
    chapoly_store64(end, associated_len);
    chapoly_store64(end + 8, len);
    chapoly_poly1305_a64(mac.h, mac.r, text, (size_t)(end - text) / 16 + 1, 1);
    chapoly_poly1305_finish(kernel, &mac, tag);
}

NOINLINE void one_block(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *associated_data, size_t associated_len, const uint32_t state[16],
                        bool decrypting)
{
    short_message(kernel, tag, dst, src, len, associated_data, associated_len, state, decrypting, 1);
}

NOINLINE void two_blocks(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src, size_t len,
                         const uint8_t *associated_data, size_t associated_len, const uint32_t state[16],
                         bool decrypting)
{
    short_message(kernel, tag, dst, src, len, associated_data, associated_len, state, decrypting, 2);
}

void chapoly_aead_neon(const chapoly_kernel *kernel, uint8_t tag[16], uint8_t *dst, const uint8_t *src, size_t len,
                       const uint8_t *associated_data, size_t associated_len, const uint32_t state[16],
                       bool decrypting)
{
    const bool is_short = len > 0 && len <= SHORT && associated_len <= SHORT_ASSOCIATED;

    (!is_short ? chapoly_aead_by_passes : len <= BLOCK ? one_block : two_blocks)(
        kernel, tag, dst, src, len, associated_data, associated_len, state, decrypting);
}

#endif
