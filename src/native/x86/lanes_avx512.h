/*
 * lanes_avx512.h: ChaCha20 blocks of different messages, one in each 32-bit element of two vectors per word
 * (chacha20_avx512.c), as the batches of batch_avx512.c take them.
 */
#ifndef CHAPOLY_LANES_AVX512_H
#define CHAPOLY_LANES_AVX512_H

#include "../kernel.h"

enum { CHAPOLY_AVX512_LANES = 32 };

/* Messages, up to 256. */
typedef struct {
    const uint8_t *const *keys;  /* of each, 32 bytes */
    const uint32_t (*nonces)[4]; /* words 12 to 15 of its state; word 12 does not count */
    const struct chapoly_stream {
        const uint8_t *src;
        uint8_t *dst; /* may be src */
        size_t len;
    } *streams;
    bool one_key; /* whether all have the first key */
} chapoly_streams;

/*
 * The block of each lane: which message's, with which counter, and where of src and dst it begins: dst[at + i] =
 * src[at + i] ^ keystream[i], for i < 64 as far as that lies below len. With at = len a lane does nothing.
 */
typedef struct {
    uint32_t counter[CHAPOLY_AVX512_LANES] __attribute__((aligned(64)));
    uint32_t at[CHAPOLY_AVX512_LANES];
    uint8_t message[CHAPOLY_AVX512_LANES];
} chapoly_lanes;

/*
 * All lanes. Of the first sixteen only the one-time keys are wanted if `one_time_keys` is not NULL: row i is word i of
 * each.
 */
typedef void chapoly_lanes_fn(const chapoly_lanes *lanes, const chapoly_streams *streams,
                              uint32_t (*one_time_keys)[16]);
chapoly_lanes_fn chapoly_lanes_avx512;

/* Sixteen blocks of either message, from there on and as far as they lie below len. */
typedef struct {
    uint32_t at; /* a multiple of 64 */
    uint8_t message;
} chapoly_slice;

typedef void chapoly_slices_fn(const chapoly_slice slices[2], const chapoly_streams *streams);
chapoly_slices_fn chapoly_slices_avx512;

#endif
