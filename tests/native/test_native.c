/*
 * Tests of the C interface and of every kernel that can run here, or of those named as arguments. Prints what failed
 * and, last, "N passed, M failed".
 */
#if defined(__unix__) || defined(__APPLE__)
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#define GUARD_PAGES 1
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "check.h"
#include "kernel.h"
#include "vectors.h"

/* ---- Small helpers. ---- */

static uint64_t random_state = 0x0123456789abcdef;

static uint64_t random64(void) /* splitmix64: the same numbers in every run */
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void random_bytes(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)random64();
}

/* Whether p holds the bytes written in hex. */
static bool equals_hex(const uint8_t *p, const char *hex)
{
    char text[3];

    for (; *hex != '\0'; hex += 2, p++) {
        snprintf(text, sizeof text, "%02x", *p);
        if (memcmp(text, hex, 2) != 0)
            return false;
    }
    return true;
}

static void counting_key(uint8_t key[32]) /* K of the concrete cases: 00 01 ... 1f */
{
    for (int i = 0; i < 32; i++)
        key[i] = (uint8_t)i;
}

enum { AREA = 1 << 16 };

/* AREA bytes that end where memory ends: touching what comes before or after them is a fault. */
static uint8_t *guarded_area(void)
{
#if defined(GUARD_PAGES)
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (AREA + page - 1) / page * page;
    uint8_t *p = mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) != 0 || mprotect(p + page + size, page, PROT_NONE) != 0) {
        perror("guard pages");
        exit(2);
    }
    return p + page + size - AREA;
#else
    uint8_t *p = malloc(AREA);
    if (p == NULL)
        exit(2);
    return p;
#endif
}

static uint8_t *source, *target, *expected, *associated; /* four such areas */

/* ---- Vectors. ---- */

typedef enum chapoly_status message_update(const chapoly_kernel *, chapoly_message *, uint8_t *, const uint8_t *,
                                           size_t);

/* The vector in parts of `size` bytes, with an empty part before each; the last is what is left. */
static void in_parts(const struct vector *v, message_update *update, enum field from, enum field to, size_t size)
{
    const uint8_t *field[FIELDS], *const data = vector_bytes + v->field[from].at;
    const size_t len = v->field[from].len;
    chapoly_message message;
    uint8_t tag[16];
    bool right = true;

    for (int i = 0; i < FIELDS; i++)
        field[i] = vector_bytes + v->field[i].at;
    memset(target, 0xa5, len + 1);
    chapoly_message_init(kernel, &message, field[KEY], field[NONCE], v->field[NONCE].len, field[AAD],
                         v->field[AAD].len);
    for (size_t at = 0; at < len; at += size) {
        const size_t part = len - at < size ? len - at : size;
        right = right && update(kernel, &message, NULL, NULL, 0) == CHAPOLY_OK &&
                update(kernel, &message, target + at, data + at, part) == CHAPOLY_OK;
    }
    CHECK(right && chapoly_message_left(&message) == CHAPOLY_AEAD_MAX - len, "%s", v->name);
    chapoly_message_finish(kernel, &message, tag);
    CHECK(all((const uint8_t *)&message, sizeof message, 0), "a finished state is not wiped");
    CHECK(chapoly_tag_equal(tag, field[TAG]) == v->valid, "%s in parts of %zu", v->name, size);
    CHECK(!v->valid || memcmp(target, field[to], len) == 0, "%s in parts of %zu", v->name, size);
    CHECK(target[len] == 0xa5, "%s", v->name);
}

static void run_vector(const struct vector *v)
{
    static const size_t parts[] = {1, 15, 16, 17, 63, 64, 65, AREA};
    const uint8_t *field[FIELDS];
    uint32_t len[FIELDS];
    uint8_t out[32], tag[16];
    chapoly_chacha chacha;
    chapoly_poly1305 mac;

    for (int i = 0; i < FIELDS; i++) {
        field[i] = vector_bytes + v->field[i].at;
        len[i] = v->field[i].len;
    }
    memset(target, 0xa5, len[MSG] + 1);
    switch (v->algorithm) {
    case CHACHA20:
    case CHACHA20_DJB:
    case CHACHA12_DJB:
    case CHACHA8_DJB:
    case XCHACHA20:
    case XCHACHA20_DJB:
        if (v->algorithm == CHACHA20) {
            chapoly_chacha20_init(&chacha, field[KEY], field[NONCE], 20);
        } else if (v->algorithm == XCHACHA20) {
            chapoly_xchacha20_init(kernel, &chacha, field[KEY], field[NONCE], 20);
        } else if (v->algorithm == XCHACHA20_DJB) { /* ours ends at 2^32 blocks; with a 64-bit counter it goes on */
            chapoly_xchacha20_init(kernel, &chacha, field[KEY], field[NONCE], 20);
            CHECK(chapoly_chacha_xor(kernel, &chacha, v->counter, 0, target, field[MSG], len[MSG]) ==
                      CHAPOLY_COUNTER_OVERFLOW, "%s", v->name);
            CHECK(all(target, len[MSG] + 1, 0xa5), "%s", v->name);
            chapoly_hchacha20(kernel, out, field[KEY], field[NONCE], 20);
            chapoly_chacha20_legacy_init(&chacha, out, field[NONCE] + 16, 20);
        } else {
            chapoly_chacha20_legacy_init(&chacha, field[KEY], field[NONCE],
                                         v->algorithm == CHACHA20_DJB ? 20 : v->algorithm == CHACHA12_DJB ? 12 : 8);
        }
        CHECK(chapoly_chacha_xor(kernel, &chacha, v->counter, 0, target, field[MSG], len[MSG]) == CHAPOLY_OK, "%s",
              v->name);
        CHECK(len[CIPHERTEXT] == len[MSG] && memcmp(target, field[CIPHERTEXT], len[MSG]) == 0, "%s", v->name);
        CHECK(target[len[MSG]] == 0xa5, "%s", v->name);
        break;
    case HCHACHA20:
        chapoly_hchacha20(kernel, out, field[KEY], field[NONCE], 20);
        CHECK(memcmp(out, field[CIPHERTEXT], 32) == 0, "%s", v->name);
        break;
    case POLY1305_KEYGEN:
    case POLY1305_CHACHA20:
        memset(out, 0, sizeof out);
        chapoly_chacha20_init(&chacha, field[KEY], field[NONCE], 20);
        CHECK(chapoly_chacha_xor(kernel, &chacha, 0, 0, out, out, 32) == CHAPOLY_OK, "%s", v->name);
        if (v->algorithm == POLY1305_KEYGEN) {
            CHECK(memcmp(out, field[CIPHERTEXT], 32) == 0, "%s", v->name);
        } else {
            chapoly_poly1305_mac(kernel, tag, out, field[MSG], len[MSG]);
            CHECK(memcmp(tag, field[TAG], 16) == 0, "%s", v->name);
        }
        break;
    case POLY1305:
        chapoly_poly1305_mac(kernel, tag, field[KEY], field[MSG], len[MSG]);
        CHECK(memcmp(tag, field[TAG], 16) == 0, "%s", v->name);
        chapoly_poly1305_init(&mac, field[KEY]);
        for (uint32_t i = 0; i < len[MSG]; i++)
            chapoly_poly1305_update(kernel, &mac, field[MSG] + i, 1);
        chapoly_poly1305_finish(kernel, &mac, tag);
        CHECK(memcmp(tag, field[TAG], 16) == 0, "%s, byte by byte", v->name);
        break;
    case CHACHA20_POLY1305:
    case XCHACHA20_POLY1305:
        if (v->valid) {
            CHECK(chapoly_aead_encrypt(kernel, target, tag, field[KEY], field[NONCE], len[NONCE], field[AAD],
                                       len[AAD], field[MSG], len[MSG]) == CHAPOLY_OK, "%s", v->name);
            CHECK(len[CIPHERTEXT] == len[MSG] && memcmp(target, field[CIPHERTEXT], len[MSG]) == 0, "%s", v->name);
            CHECK(memcmp(tag, field[TAG], 16) == 0, "%s", v->name);
        }
        memset(target, 0xa5, len[CIPHERTEXT] + 1);
        CHECK(chapoly_aead_decrypt(kernel, target, field[TAG], field[KEY], field[NONCE], len[NONCE], field[AAD],
                                   len[AAD], field[CIPHERTEXT], len[CIPHERTEXT]) ==
                  (v->valid ? CHAPOLY_OK : CHAPOLY_INVALID_TAG), "%s", v->name);
        CHECK(v->valid ? memcmp(target, field[MSG], len[MSG]) == 0 : all(target, len[CIPHERTEXT], 0), "%s", v->name);
        CHECK(target[len[CIPHERTEXT]] == 0xa5, "%s", v->name);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (v->valid)
                in_parts(v, chapoly_message_encrypt, MSG, CIPHERTEXT, parts[i]);
            in_parts(v, chapoly_message_decrypt, CIPHERTEXT, MSG, parts[i]);
        }
        break;
    }
}

static void test_vectors(void)
{
    CHECK(VECTORS == 1345 && VECTORS_LEFT_OUT == 59, "%d vectors, %d left out", VECTORS, VECTORS_LEFT_OUT);
    for (size_t i = 0; i < VECTORS; i++)
        run_vector(&vectors[i]);
}

/* ---- ChaCha. ---- */

static const chapoly_kernel *portable_kernel(void)
{
    const chapoly_kernel *portable = NULL;

    for (size_t i = 0; chapoly_kernel_at(i) != NULL; i++)
        portable = chapoly_kernel_at(i); /* the last one */
    return portable;
}

/* The keystream from `block` on, xored into src one block at a time by the portable function: the reference. */
static void reference_xor(uint8_t *dst, const uint8_t *src, size_t len, const chapoly_chacha *chacha, uint64_t block)
{
    const chapoly_kernel *const portable = portable_kernel();

    for (size_t at = 0; at < len; at += 64, block++) {
        const size_t part = len - at < 64 ? len - at : 64;
        chapoly_chacha_xor(portable, chacha, block, 0, dst + at, src + at, part);
    }
}

static void test_concrete_cases(void)
{
    static const uint8_t zero_nonce[24];
    uint8_t key[32], tag[16], subkey[32], message[1024];
    chapoly_chacha chacha, legacy;

    counting_key(key);
    chapoly_chacha20_init(&chacha, key, zero_nonce, 20);
    chapoly_chacha20_legacy_init(&legacy, key, zero_nonce, 20);

    /* The last block is usable; one byte more is refused and nothing written. */
    memset(target, 0, 65);
    CHECK(chapoly_chacha_xor(kernel, &chacha, UINT32_MAX, 0, target, target, 64) == CHAPOLY_OK, "last block");
    CHECK(equals_hex(target, "1ce0deb8925fccea2d5587e850054559edcbbeb1a6c8e1c02c1e89abba08b01c"
                             "ad6048fe5ab5242ed6befbef6b4040fcb666a5f3858d942a912c4e8800301a42"), "last block");
    for (unsigned offset = 0; offset <= 64; offset++)
        for (size_t more = 1; more <= 2000; more += 333) {
            memset(target, 0xa5, 64 + more);
            CHECK(chapoly_chacha_xor(kernel, &chacha, UINT32_MAX, offset, target, source, 64 - offset + more) ==
                      CHAPOLY_COUNTER_OVERFLOW && all(target, 64 + more, 0xa5), "overflow at offset %u", offset);
        }
    CHECK(chapoly_chacha_xor(kernel, &chacha, UINT32_MAX - 10, 0, target, source, 11 * 64 + 1) ==
              CHAPOLY_COUNTER_OVERFLOW, "overflow from eleven blocks before the end");
    CHECK(chapoly_chacha_xor(kernel, &chacha, UINT32_MAX, 64, target, source, 0) == CHAPOLY_OK, "nothing, at the end");
    for (int bit = 32; bit < 64; bit++)
        for (unsigned offset = 0; offset <= 64; offset += 16)
            for (size_t len = 1; len <= 2000; len += 333) {
                memset(target, 0xa5, len);
                CHECK(chapoly_chacha_xor(kernel, &chacha, UINT64_C(1) << bit, offset, target, source, len) ==
                          CHAPOLY_COUNTER_OVERFLOW && all(target, len, 0xa5), "%zu bytes of block 2^%d", len, bit);
            }
    CHECK(chapoly_chacha_xor(kernel, &legacy, UINT64_MAX, 0, target, source, 64) == CHAPOLY_OK, "legacy, last block");
    CHECK(chapoly_chacha_xor(kernel, &legacy, UINT64_MAX, 0, target, source, 65) == CHAPOLY_COUNTER_OVERFLOW,
          "legacy, past the last block");

    /* The original's counter carries into its high word. */
    memset(target, 0, 128);
    CHECK(chapoly_chacha_xor(kernel, &legacy, UINT32_MAX, 0, target, target, 128) == CHAPOLY_OK, "legacy");
    CHECK(equals_hex(target + 64, "d838fb09536e2e3a10e8f23f486273a6"), "legacy, block 2^32");
    for (uint64_t i = 0; i <= 32; i++)
        for (size_t len = 1; len < 45 * 64; len += 173) {
            const uint64_t start = (UINT64_C(1) << 32) - i;
            chapoly_chacha_xor(kernel, &legacy, start, 0, target, source, len);
            reference_xor(expected, source, len, &legacy, start);
            CHECK(memcmp(target, expected, len) == 0, "legacy from 2^32 - %" PRIu64 ", %zu bytes", i, len);
        }

    /* Blocks in which word 12 of the keystream is smaller than the lane number: a 64-bit feed-forward would carry. */
    static const struct { uint32_t block; const char *at48; } carries[] = {
        {826131956, "010000000d001e3b"}, {4066161939, "01000000f5685050"}};
    for (size_t c = 0; c < 2; c++)
        for (uint32_t i = 0; i < 32; i++)
            for (size_t blocks = i + 1; blocks < i + 24; blocks += 11) {
                memset(target, 0, 64 * blocks);
                chapoly_chacha_xor(kernel, &chacha, carries[c].block - i, 0, target, target, 64 * blocks);
                CHECK(equals_hex(target + 64 * i + 48, carries[c].at48), "feed-forward of block %" PRIu32
                      ", lane %" PRIu32 " of %zu", carries[c].block, i, blocks);
            }

    /* Empty messages. */
    chapoly_aead_encrypt(kernel, target, tag, key, zero_nonce, 12, NULL, 0, NULL, 0);
    CHECK(equals_hex(tag, "10324f800a160bd9a1794255be7ec29d"), "empty");
    chapoly_aead_encrypt(kernel, target, tag, key, zero_nonce, 12, (const uint8_t *)"x", 1, NULL, 0);
    CHECK(equals_hex(tag, "4bc7eefe6bd51b575d2379aaeaabcf6f"), "empty, associated data x");
    CHECK(chapoly_aead_decrypt(kernel, target, tag, key, zero_nonce, 12, (const uint8_t *)"x", 1, NULL, 0) ==
              CHAPOLY_OK, "empty, decrypted");

    /* Poly1305 next to p = 2^130 - 5. */
    uint8_t mac_key[32] = {2};
    memset(message, 0xff, sizeof message);
    chapoly_poly1305_mac(kernel, tag, mac_key, message, 16);
    CHECK(equals_hex(tag, "03000000000000000000000000000000"), "r = 2, a block of ff");
    mac_key[0] = 1;
    for (int k = -1; k <= 4; k++) {
        memset(message, 0, 48);
        memset(message, 0xff, 16);
        message[0] = (uint8_t)(0xfb + k); /* 2^128 - 5 + k, then twice 2^128: with the top bits 4 * 2^128 - 5 + k */
        chapoly_poly1305_mac(kernel, tag, mac_key, message, 48);
        CHECK(k < 0 ? tag[0] == 0xfa && all(tag + 1, 15, 0xff) : tag[0] == k && all(tag + 1, 15, 0), "p + %d", k);
    }
    static const struct { size_t len; const char *tag; } full[] = {
        {16, "fbffff17faffff17faffff17faffff17"}, {64, "900fe32bc15fa8d7bca8efe4c7e37eb1"},
        {65, "e4d8b131f296fa0723796121694ffa18"}, {1024, "25d4926a53bb480da228ec61e0a31a38"}};
    memset(mac_key, 0xff, sizeof mac_key);
    memset(message, 0xff, sizeof message);
    for (size_t i = 0; i < sizeof full / sizeof full[0]; i++) {
        chapoly_poly1305_mac(kernel, tag, mac_key, message, full[i].len);
        CHECK(equals_hex(tag, full[i].tag), "key and message ff, %zu bytes", full[i].len);
    }

    static const uint8_t hchacha_nonce[16] = {0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0, 0x31, 0x41, 0x59, 0x27};
    chapoly_hchacha20(kernel, subkey, key, hchacha_nonce, 20);
    CHECK(equals_hex(subkey, "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"), "HChaCha20");
}

/* One kernel call against the reference, with the source and the target wherever the caller wants them. */
static void compare_xor(uint8_t *dst, const uint8_t *src, size_t len, uint32_t block, unsigned rounds)
{
    chapoly_chacha chacha;
    uint8_t key[32], nonce[12];
    uint32_t state[16], before[16];

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    chapoly_chacha20_init(&chacha, key, nonce, rounds);
    memcpy(state, chacha.words, sizeof state);
    state[12] = block;
    memcpy(before, state, sizeof before);
    reference_xor(expected, src, len, &chacha, block);
    kernel->chacha_xor(dst, src, len, state, rounds);
    CHECK(memcmp(dst, expected, len) == 0, "ChaCha%u, %zu bytes from block %" PRIu32 ", %s", rounds, len, block,
          dst == src ? "in place" : "apart");
    CHECK(memcmp(state, before, sizeof state) == 0, "ChaCha%u changed its state, %zu bytes", rounds, len);
}

static void test_chacha_lengths(void)
{
    for (size_t len = 0; len <= 2200; len++) /* past the 32 blocks that are the most a kernel takes at once */
        for (unsigned i = 0; i < 3; i++) {
            const unsigned rounds = i == 0 ? 20 : i == 1 ? 8 : 12;
            const uint32_t needed = (uint32_t)((len + 63) / 64);
            const uint32_t block = len % 3 == 0 ? UINT32_MAX - needed + (needed > 0) /* up to the very last block */
                                                : len % 3 == 1 ? (uint32_t)random64() >> 1 : 0;
            uint8_t *const src_end = source + AREA - len, *const dst_end = target + AREA - len;

            /* Both buffers at the end of memory, both at the start, and in place at either. */
            memset(dst_end - 64, 0xa5, 64);
            compare_xor(dst_end, src_end, len, block, rounds);
            CHECK(all(dst_end - 64, 64, 0xa5), "wrote before the target, %zu bytes", len);
            memset(target + len, 0xa5, 64);
            compare_xor(target, source, len, block, rounds);
            CHECK(all(target + len, 64, 0xa5), "wrote behind the target, %zu bytes", len);
            memcpy(dst_end, src_end, len);
            compare_xor(dst_end, dst_end, len, block, rounds);
            memcpy(target, source, len);
            compare_xor(target, target, len, block, rounds);
        }
    for (size_t len = 1500; len < 20000; len = len * 4 / 3 + 1)
        compare_xor(target, source, len, (uint32_t)random64() >> 1, 20);
}

static void test_chacha_alignment(void)
{
    static const size_t lengths[] = {1,   63,  64,  65,  127, 128, 129, 255, 256, 257,
                                     383, 385, 511, 512, 513, 639, 640, 641, 1300, 1535, 1537, 2047, 2049};

    for (size_t from = 0; from < 16; from++)
        for (size_t to = 0; to < 16; to++)
            for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
                compare_xor(target + to, source + from, lengths[i], 7, 8);
}

static void test_chacha_splits(void)
{
    static const size_t total = 1100;
    uint8_t key[32], nonce[12];
    chapoly_chacha chacha;

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    chapoly_chacha20_init(&chacha, key, nonce, 20);
    reference_xor(expected, source, total, &chacha, 5);
    for (size_t split = 0; split <= total; split++) {
        memset(target, 0, total);
        chapoly_chacha_xor(kernel, &chacha, 5, 0, target, source, split);
        chapoly_chacha_xor(kernel, &chacha, 5 + split / 64, split % 64, target + split, source + split, total - split);
        CHECK(memcmp(target, expected, total) == 0, "split at %zu", split);
    }
}

/* Short stretches from within a block on, also where the counter of 64 bits carries into its high word. */
static void test_chacha_within_blocks(void)
{
    static const uint64_t firsts[] = {0, UINT32_MAX - UINT64_C(4), UINT64_C(5) << 32};
    uint8_t key[32], nonce[8];
    chapoly_chacha chacha;
    chapoly_begun_block begun = {.there = false};

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    chapoly_chacha20_legacy_init(&chacha, key, nonce, 20);
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        const size_t total = 8 * 64;
        for (size_t b = 0; b < 8; b++) /* a call for each block: nothing wraps */
            chapoly_chacha_xor(kernel, &chacha, firsts[i] + b, 0, expected + 64 * b, source + 64 * b, 64);
        for (size_t from = 0; from < total; from += 3)
            for (size_t len = 0; from + len <= total; len += 7) {
                memset(target, 0x5a, total);
                chapoly_chacha_xor(kernel, &chacha, firsts[i] + from / 64, from % 64, target + from, source + from,
                                   len);
                CHECK(all(target, from, 0x5a) && memcmp(target + from, expected + from, len) == 0 &&
                          all(target + from + len, total - from - len, 0x5a),
                      "%zu bytes from byte %zu on of block %" PRIu64, len, from, firsts[i]);
                if (from % 64 + len > 64)
                    continue;
                chapoly_chacha_xor_in_block(kernel, &chacha, &begun, firsts[i] + from / 64, from % 64, target + from,
                                            source + from, len);
                CHECK(memcmp(target + from, expected + from, len) == 0 &&
                          all(target + from + len, total - from - len, 0x5a),
                      "%zu bytes from byte %zu on within block %" PRIu64, len, from, firsts[i]);
            }
    }
}

/*
 * Every number of lanes, each block with a state and a counter of its own, and the room at the end of memory. Beyond
 * the last lane there is no state.
 */
static void test_chacha_lanes(void)
{
    static const uint32_t edges[] = {0, 1, UINT32_MAX, 0x80000000, 826131956 /* of the concrete cases */};
    uint8_t *const room = target + AREA - kernel->lanes * 64;
    const uint32_t *states[CHAPOLY_LANES_MAX];
    uint32_t counters[CHAPOLY_LANES_MAX];
    chapoly_chacha chachas[CHAPOLY_LANES_MAX];
    uint8_t key[32], nonce[12];
    const uint8_t zeros[64] = {0};

    CHECK(kernel->lanes >= 1 && kernel->lanes <= CHAPOLY_LANES_MAX, "%u lanes", kernel->lanes);
    for (size_t round = 0; round < 20; round++)
        for (size_t count = 1; count <= kernel->lanes; count++) {
            for (size_t l = 0; l < CHAPOLY_LANES_MAX; l++) {
                random_bytes(key, sizeof key);
                random_bytes(nonce, sizeof nonce);
                chapoly_chacha20_init(&chachas[l], key, nonce, 20);
                chachas[l].words[12] = 0xa5a5a5a5; /* the counter stands elsewhere */
                counters[l] = round % 2 ? (uint32_t)random64() : edges[(round / 2 + l) % 5];
                states[l] = l < count ? chachas[l].words : NULL;
            }
            memset(room - 64, 0xa5, 64);
            kernel->chacha_lanes(room, states, counters, count);
            CHECK(all(room - 64, 64, 0xa5), "wrote before the room, %zu lanes", count);
            for (size_t l = 0; l < count; l++) {
                reference_xor(expected, zeros, 64, &chachas[l], counters[l]);
                CHECK(memcmp(room + 64 * l, expected, 64) == 0, "lane %zu of %zu, counter %" PRIu32, l, count,
                      counters[l]);
                CHECK(chachas[l].words[12] == 0xa5a5a5a5, "the state of lane %zu of %zu changed", l, count);
            }
        }
}

/* ---- Poly1305. The reference: bytes as limbs, multiplied as on paper. ---- */

enum { LIMBS = 17 }; /* 136 bits */

/* x mod p, fully. 2^136 = 64 * 2^130 = 320 (mod p). */
static void reduce(uint32_t x[LIMBS])
{
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < LIMBS - 1; i++)
            x[i + 1] += x[i] >> 8, x[i] &= 255;
        x[0] += 5 * (x[LIMBS - 1] >> 2), x[LIMBS - 1] &= 3; /* what lies at 2^130 and above */
    }
    uint32_t y[LIMBS], carry = 5; /* x - p = x + 5 - 2^130, if that is not negative */
    for (int i = 0; i < LIMBS; i++) {
        carry += x[i];
        y[i] = carry & 255;
        carry >>= 8;
    }
    if (y[LIMBS - 1] >= 4) {
        y[LIMBS - 1] -= 4;
        memcpy(x, y, sizeof y);
    }
}

static void to_bytes(uint32_t x[LIMBS], const uint64_t *words, int n)
{
    memset(x, 0, LIMBS * sizeof x[0]);
    for (int i = 0; i < LIMBS && i < 8 * n; i++)
        x[i] = (uint32_t)(words[i / 8] >> 8 * (i % 8)) & 255;
}

static void reference_multiply(uint32_t h[LIMBS], const uint32_t r[LIMBS])
{
    uint32_t product[2 * LIMBS] = {0};

    for (int i = 0; i < LIMBS; i++)
        for (int j = 0; j < LIMBS; j++)
            product[i + j] += h[i] * r[j];
    for (int i = 0; i < LIMBS; i++)
        h[i] = product[i] + 320 * product[i + LIMBS];
    reduce(h);
}

static void reference_block(uint32_t h[LIMBS], const uint32_t r[LIMBS], const uint8_t block[16], uint32_t top)
{
    for (int i = 0; i < 16; i++)
        h[i] += block[i];
    h[16] += top;
    reference_multiply(h, r);
}

static void compare_blocks(const uint64_t h[3], const uint64_t r[2], const uint8_t *message, size_t blocks,
                           uint64_t top)
{
    uint64_t out[3] = {h[0], h[1], h[2]};
    uint32_t want[LIMBS], key[LIMBS], have[LIMBS];

    to_bytes(want, h, 3);
    to_bytes(key, r, 2);
    reduce(want);
    for (size_t i = 0; i < blocks; i++)
        reference_block(want, key, message + 16 * i, (uint32_t)top);
    kernel->poly1305_blocks(out, r, message, blocks, top);
    CHECK(out[2] <= 4, "h[2] is %" PRIu64 " after %zu blocks", out[2], blocks);
    to_bytes(have, out, 3);
    reduce(have);
    CHECK(memcmp(have, want, sizeof want) == 0, "%zu blocks, h %" PRIx64 " %" PRIx64 " %" PRIx64 ", r %" PRIx64 " %"
          PRIx64 ", top %" PRIu64, blocks, h[2], h[1], h[0], r[1], r[0], top);
}

static void test_poly1305_blocks(void)
{
    static const uint64_t accumulators[][3] = {
        {0, 0, 0}, {UINT64_MAX, UINT64_MAX, 4}, {UINT64_MAX - 4, UINT64_MAX, 3}, {UINT64_MAX - 5, UINT64_MAX, 3}};
    static const uint64_t keys[][2] = {{UINT64_C(0x0ffffffc0fffffff), UINT64_C(0x0ffffffc0ffffffc)}, {0, 0}, {1, 0}};
    enum { KINDS = 4 };
    static const size_t more[] = {81, 135, 136, 137, 143, 144, 145, 255, 256, 257, 1000, 1023, 4000};

    for (size_t n = 0; n <= 80 + sizeof more / sizeof more[0]; n++) {
        const size_t blocks = n <= 80 ? n : more[n - 81];
        uint8_t *const message = target + AREA - 16 * blocks;
        for (int kind = 0; kind < (blocks < 1000 ? 4 * KINDS : KINDS); kind++) {
            if (kind % KINDS < 2)
                memset(message, kind % KINDS ? 0xff : 0, 16 * blocks);
            else
                random_bytes(message, 16 * blocks);
            for (size_t i = 0; i <= sizeof keys / sizeof keys[0]; i++) {
                const uint64_t random_r[2] = {random64() & keys[0][0], random64() & keys[0][1]};
                const uint64_t random_h[3] = {random64(), random64(), random64() % 5};
                const uint64_t *const r = i < 3 ? keys[i] : random_r;
                compare_blocks(accumulators[kind / KINDS], r, message, blocks, 1);
                compare_blocks(random_h, r, message, blocks, 1);
                if (blocks == 1) {
                    compare_blocks(accumulators[kind / KINDS], r, message, 1, 0);
                    compare_blocks(random_h, r, message, 1, 0);
                }
            }
        }
    }
    /* r = 1: the sums of the even and of the odd blocks are both near 2^129 + 2^127, and added to each other the carry
       of folding what lies at 2^130 goes through all lower 128 bits. */
    for (size_t blocks = 26; blocks <= 90; blocks += 16)
        for (int step = 0; step < 128; step++) {
            memset(target, 0, 16 * blocks);
            memset(target, 0xff, 64);
            target[32] = (uint8_t)(2 * step), target[48] = (uint8_t)(2 * step + 1);
            target[47] = target[63] = 0x7f;
            compare_blocks(accumulators[0], keys[2], target, blocks, 1);
            target[48]--;
            compare_blocks(accumulators[0], keys[2], target, blocks, 1);
        }
    for (size_t offset = 0; offset < 16; offset++) {
        const uint64_t h[3] = {random64(), random64(), 4};
        random_bytes(target + offset, 16 * 90);
        compare_blocks(h, keys[0], target + offset, 90, 1);
    }
}

static void test_poly1305_updates(void)
{
    uint8_t key[32], whole[16], tag[16];
    chapoly_poly1305 mac;

    random_bytes(key, sizeof key);
    for (size_t len = 0; len <= 1100; len += len < 100 ? 1 : 37) {
        chapoly_poly1305_mac(kernel, whole, key, source, len);
        for (size_t split = 0; split <= len; split += len < 100 ? 1 : 13) {
            const size_t middle = (len - split) / 2;
            chapoly_poly1305_init(&mac, key);
            chapoly_poly1305_update(kernel, &mac, source, split);
            chapoly_poly1305_update(kernel, &mac, NULL, 0);
            chapoly_poly1305_update(kernel, &mac, source + split, middle);
            chapoly_poly1305_update(kernel, &mac, source + split + middle, len - split - middle);
            chapoly_poly1305_finish(kernel, &mac, tag);
            CHECK(memcmp(tag, whole, 16) == 0, "%zu bytes split at %zu", len, split);
            CHECK(all((const uint8_t *)&mac, sizeof mac, 0), "a finished state is not wiped");
        }
    }
}

/* A message's state and a range's, joined: h * r^blocks + h of the range, which ends with `rest` bytes of a block. */
static void compare_join(const uint64_t h[3], const uint64_t range_h[3], const uint64_t r[2], uint64_t blocks,
                         size_t rest)
{
    chapoly_poly1305 mac = {.h = {h[0], h[1], h[2]}, .r = {r[0], r[1]}, .s = {7, 8}}, range;
    uint32_t want[LIMBS], factor[LIMBS], power[LIMBS] = {1}, have[LIMBS], added[LIMBS];

    to_bytes(want, h, 3);
    to_bytes(factor, r, 2);
    to_bytes(added, range_h, 3);
    reduce(want);
    for (int bit = 63; bit >= 0; bit--) {
        reference_multiply(power, power);
        if (blocks >> bit & 1)
            reference_multiply(power, factor);
    }
    reference_multiply(want, power);
    for (int i = 0; i < LIMBS; i++)
        want[i] += added[i];
    reduce(want);

    chapoly_poly1305_partial(&range, &mac);
    CHECK(all((const uint8_t *)range.h, sizeof range.h, 0) && memcmp(range.r, r, sizeof range.r) == 0 &&
              range.buffered == 0, "a range begins with nothing");
    memcpy(range.h, range_h, sizeof range.h);
    memcpy(range.buffer, source, rest);
    range.buffered = rest;
    chapoly_poly1305_join(&mac, &range, 16 * blocks + rest);
    CHECK(all((const uint8_t *)&range, sizeof range, 0), "a range that is joined is not wiped");
    CHECK(mac.h[2] <= 4, "h[2] is %" PRIu64 " after a join over %" PRIu64 " blocks", mac.h[2], blocks);
    CHECK(memcmp(mac.r, r, sizeof mac.r) == 0 && mac.s[0] == 7 && mac.s[1] == 8, "the key changes in a join");
    CHECK(mac.buffered == rest && memcmp(mac.buffer, source, rest) == 0, "the rest of a range");
    to_bytes(have, mac.h, 3);
    reduce(have);
    CHECK(memcmp(have, want, sizeof want) == 0, "join over %" PRIu64 " blocks, h %" PRIx64 " %" PRIx64 " %" PRIx64
          ", range %" PRIx64 " %" PRIx64 " %" PRIx64 ", r %" PRIx64 " %" PRIx64, blocks, h[2], h[1], h[0], range_h[2],
          range_h[1], range_h[0], r[1], r[0]);
}

static void test_poly1305_joins(void)
{
    static const uint64_t accumulators[][3] = {
        {0, 0, 0}, {UINT64_MAX, UINT64_MAX, 4}, {UINT64_MAX - 4, UINT64_MAX, 3}, {UINT64_MAX - 5, UINT64_MAX, 3},
        {UINT64_MAX, UINT64_MAX, 3}, {0, 0, 4}, {1, 0, 0}};
    static const uint64_t keys[][2] = {{UINT64_C(0x0ffffffc0fffffff), UINT64_C(0x0ffffffc0ffffffc)}, {0, 0}, {1, 0},
                                       {2, 0}, {0, UINT64_C(0x0ffffffc00000000)}};
    enum { ACCUMULATORS = sizeof accumulators / sizeof accumulators[0], KEYS = sizeof keys / sizeof keys[0] };
    static const uint64_t more[] = {1023, 4096, 4097, UINT32_MAX, UINT64_C(17179869180), /* of the longest message */
                                    UINT64_C(1) << 59, UINT64_MAX / 16};

    for (size_t n = 0; n <= 64 + sizeof more / sizeof more[0]; n++) {
        const uint64_t blocks = n <= 64 ? n : more[n - 65];
        for (size_t k = 0; k <= KEYS; k++) {
            const uint64_t random_r[2] = {random64() & keys[0][0], random64() & keys[0][1]};
            const uint64_t *const r = k < KEYS ? keys[k] : random_r;
            for (size_t i = 0; i < ACCUMULATORS; i++)
                for (size_t j = 0; j < ACCUMULATORS; j++)
                    compare_join(accumulators[i], accumulators[j], r, blocks, (i + j + n) % 16);
            const uint64_t random_h[2][3] = {{random64(), random64(), random64() % 5},
                                             {random64(), random64(), random64() % 5}};
            compare_join(random_h[0], random_h[1], r, blocks, n % 16);
        }
    }
}

/* What is put together from ranges, each taken in by two updates, is the MAC of the whole. */
static void test_poly1305_ranges(void)
{
    enum { MOST = 8 };
    uint8_t key[32], whole[16], tag[16];
    chapoly_poly1305 mac, ranges[MOST];

    for (int round = 0; round < 2000; round++) {
        const size_t len = (size_t)random64() % 10000, count = 1 + (size_t)random64() % MOST;
        size_t at[MOST + 1] = {0}; /* range i is from at[i] on, and may be empty; before at[0] is the message itself */

        random_bytes(key, sizeof key);
        if (round % 4 == 0)
            memset(key, 0xff, 16);
        at[count] = len;
        for (size_t i = count; i-- > 0;)
            at[i] = (size_t)random64() % (at[i + 1] / 16 + 1) * 16;
        chapoly_poly1305_mac(kernel, whole, key, source, len);
        chapoly_poly1305_init(&mac, key);
        chapoly_poly1305_update(kernel, &mac, source, at[0]);
        for (size_t i = count; i-- > 0;) {
            const size_t size = at[i + 1] - at[i], split = (size_t)random64() % (size + 1);
            chapoly_poly1305_partial(&ranges[i], &mac);
            chapoly_poly1305_update(kernel, &ranges[i], source + at[i], split);
            chapoly_poly1305_update(kernel, &ranges[i], source + at[i] + split, size - split);
        }
        for (size_t i = 0; i < count; i++)
            chapoly_poly1305_join(&mac, &ranges[i], at[i + 1] - at[i]);
        chapoly_poly1305_finish(kernel, &mac, tag);
        CHECK(memcmp(tag, whole, 16) == 0, "%zu bytes in %zu ranges", len, count);
    }
}

static void test_tag_equal(void)
{
    uint8_t a[16], b[16];

    random_bytes(a, sizeof a);
    memcpy(b, a, sizeof b);
    CHECK(chapoly_tag_equal(a, b), "equal tags");
    for (int bit = 0; bit < 128; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!chapoly_tag_equal(a, b), "tags that differ in bit %d", bit);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* ---- AEAD. ---- */

/* RFC 8439 2.8 out of the cipher and the MAC, both tested by themselves. */
static void reference_tag(uint8_t tag[16], const chapoly_chacha *chacha, const uint8_t *aad, size_t aad_len,
                          const uint8_t *cipher, size_t len)
{
    const uint8_t zeros[16] = {0};
    uint8_t one_time_key[32] = {0}, lengths[16] = {0};
    chapoly_poly1305 mac;

    for (int i = 0; i < 8; i++) {
        lengths[i] = (uint8_t)((uint64_t)aad_len >> 8 * i);
        lengths[8 + i] = (uint8_t)((uint64_t)len >> 8 * i);
    }
    chapoly_chacha_xor(kernel, chacha, 0, 0, one_time_key, one_time_key, 32);
    chapoly_poly1305_init(&mac, one_time_key);
    chapoly_poly1305_update(kernel, &mac, aad, aad_len);
    chapoly_poly1305_update(kernel, &mac, zeros, -aad_len % 16);
    chapoly_poly1305_update(kernel, &mac, cipher, len);
    chapoly_poly1305_update(kernel, &mac, zeros, -len % 16);
    chapoly_poly1305_update(kernel, &mac, lengths, 16);
    chapoly_poly1305_finish(kernel, &mac, tag);
}

/* Every length through the short forms, and around the first pass and the strips of every kernel. */
static void test_aead_lengths(void)
{
    uint8_t key[32], nonce[24], tag[16], right[16];
    chapoly_chacha chacha;

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    for (size_t len = 0; len < AREA; len += len < 1100 ? 1 : 1021) {
        const size_t aad_len = len % 3 == 0 ? 0 : len * 7 % 600, nonce_size = len % 2 == 0 ? 12 : 24;
        const uint8_t *const aad = source, *const data = source + AREA - len;
        uint8_t *const out = target + AREA - len;

        if (nonce_size == 12)
            chapoly_chacha20_init(&chacha, key, nonce, 20);
        else
            chapoly_xchacha20_init(kernel, &chacha, key, nonce, 20);
        chapoly_chacha_xor(kernel, &chacha, 1, 0, expected, data, len);
        reference_tag(right, &chacha, aad, aad_len, expected, len);
        chapoly_aead_encrypt(kernel, out, tag, key, nonce, nonce_size, aad, aad_len, data, len);
        CHECK(memcmp(out, expected, len) == 0, "ciphertext of %zu", len);
        CHECK(memcmp(tag, right, 16) == 0, "tag of %zu and %zu", aad_len, len);
        CHECK(chapoly_aead_decrypt(kernel, out, tag, key, nonce, nonce_size, aad, aad_len, out, len) == CHAPOLY_OK &&
                  memcmp(out, data, len) == 0, "decrypt %zu in place", len);
        memset(out, 0xa5, len);
        CHECK(chapoly_aead_decrypt(kernel, out, tag, key, nonce, nonce_size, aad, aad_len, expected, len) ==
                  CHAPOLY_OK && memcmp(out, data, len) == 0, "decrypt %zu", len);
    }
}

/* Short messages with associated data of every length to two blocks and more, each at either end of memory. */
static void test_aead_short(void)
{
    uint8_t key[32], nonce[12], tag[16], right[16];
    chapoly_chacha chacha;

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    chapoly_chacha20_init(&chacha, key, nonce, 20);
    for (size_t len = 0; len <= 130; len++) {
        chapoly_chacha_xor(kernel, &chacha, 1, 0, expected, source, len);
        for (size_t aad_len = 0; aad_len <= 80; aad_len += aad_len < 34 ? 1 : 5) {
            uint8_t *const end = target + AREA - len;

            reference_tag(right, &chacha, source + AREA - aad_len, aad_len, expected, len);
            memset(target, 0xa5, len + 16);
            chapoly_aead_encrypt(kernel, target, tag, key, nonce, 12, source + AREA - aad_len, aad_len, source, len);
            CHECK(memcmp(target, expected, len) == 0 && all(target + len, 16, 0xa5), "ciphertext of %zu", len);
            CHECK(memcmp(tag, right, 16) == 0, "tag of %zu and %zu", aad_len, len);

            memcpy(end, expected, len);
            memset(end - 16, 0xa5, 16);
            memcpy(target, source + AREA - aad_len, aad_len);
            CHECK(chapoly_aead_decrypt(kernel, end, tag, key, nonce, 12, target, aad_len, end, len) == CHAPOLY_OK &&
                      memcmp(end, source, len) == 0 && all(end - 16, 16, 0xa5), "decrypt %zu and %zu", aad_len, len);
        }
    }
}

/* ---- Many messages at once. ---- */

/* Batches of every size to 70 and of mixed lengths, against one message at a time; some in place, some forged. */
static void test_batches(void)
{
    enum { MOST = 200, SLOT = AREA / MOST };
    static const size_t limits[] = {1, 17, 100, SLOT - 1};
    static chapoly_packet packets[MOST];
    static uint8_t keys[MOST][32], nonces[MOST][24], tags[MOST][16], single[MOST][16];

    random_bytes(&keys[0][0], sizeof keys);
    random_bytes(&nonces[0][0], sizeof nonces);
    for (size_t round = 0; round < 4 * 72; round++) {
        const size_t count = round / 4 < 71 ? round / 4 : MOST, nonce_size = round % 2 == 0 ? 12 : 24;
        const bool own_keys = round % 3 == 0;

        for (size_t i = 0; i < count; i++) {
            const size_t len = (size_t)random64() % limits[round % 4 % (sizeof limits / sizeof limits[0])];
            const bool in_place = random64() % 2 == 0;
            packets[i] = (chapoly_packet){
                .key = keys[own_keys ? i : 0], .nonce = nonces[i], .associated_data = source,
                .associated_len = (size_t)random64() % 50, .data = source + i * SLOT, .len = len,
                .out = target + i * SLOT, .tag = tags[i],
            };
            chapoly_aead_encrypt(kernel, expected + i * SLOT, single[i], packets[i].key, nonces[i], nonce_size, source,
                                 packets[i].associated_len, packets[i].data, len);
            memset(target + i * SLOT, 0xa5, SLOT);
            if (in_place)
                packets[i].data = memcpy(packets[i].out, packets[i].data, len);
        }
        CHECK(chapoly_aead_encrypt_many(kernel, packets, count, nonce_size) == CHAPOLY_OK, "%zu packets", count);
        for (size_t i = 0; i < count; i++)
            CHECK(memcmp(packets[i].out, expected + i * SLOT, packets[i].len) == 0 &&
                      memcmp(tags[i], single[i], 16) == 0 &&
                      all(packets[i].out + packets[i].len, SLOT - packets[i].len, 0xa5),
                  "packet %zu of %zu, %zu bytes", i, count, packets[i].len);

        for (size_t i = 0; i < count; i++) { /* the way back; every fifth is forged, in its tag or its first byte */
            const bool in_place = random64() % 2 == 0;
            if (i % 5 == 0 && (i % 2 == 0 || packets[i].len == 0))
                tags[i][random64() % 16] ^= 1;
            else if (i % 5 == 0)
                expected[i * SLOT] ^= 1;
            packets[i].data = expected + i * SLOT;
            packets[i].failed = i % 3 == 0;
            if (in_place)
                packets[i].data = memcpy(packets[i].out, packets[i].data, packets[i].len);
        }
        CHECK(chapoly_aead_decrypt_many(kernel, packets, count, nonce_size) == CHAPOLY_OK, "%zu packets", count);
        for (size_t i = 0; i < count; i++) {
            const bool forged = i % 5 == 0, in_place = packets[i].data == packets[i].out;
            CHECK(packets[i].failed == forged, "packet %zu of %zu", i, count);
            CHECK(!forged ? memcmp(packets[i].out, source + i * SLOT, packets[i].len) == 0
                  : in_place ? memcmp(packets[i].out, expected + i * SLOT, packets[i].len) == 0
                             : all(packets[i].out, packets[i].len, 0),
                  "packet %zu of %zu, %zu bytes%s", i, count, packets[i].len, forged ? ", forged" : "");
        }
    }
    if (SIZE_MAX > CHAPOLY_AEAD_MAX) {
        memset(target, 0xa5, AREA);
        packets[0] = packets[1] = (chapoly_packet){.key = keys[0], .nonce = nonces[0], .data = source, .len = 16,
                                                   .out = target, .tag = tags[0]};
        packets[1].len = (size_t)(CHAPOLY_AEAD_MAX + 1);
        CHECK(chapoly_aead_encrypt_many(kernel, packets, 2, 12) == CHAPOLY_COUNTER_OVERFLOW &&
                  chapoly_aead_decrypt_many(kernel, packets, 2, 12) == CHAPOLY_COUNTER_OVERFLOW &&
                  all(target, AREA, 0xa5), "a packet that is too long");
    }
}

/*
 * A batch of these lengths against the portable kernel, one message at a time. Data and results fill the areas from
 * both ends; associated data ends where memory does, with own keys each before that of the next. Every third message is
 * done in place; decrypting, every fifth is forged.
 */
static void compare_batch(size_t count, const size_t lens[], const size_t associated_lens[], size_t nonce_size,
                          bool own_keys)
{
    static chapoly_packet packets[CHAPOLY_MANY_MAX + 1];
    static uint8_t keys[CHAPOLY_MANY_MAX + 1][32], nonces[CHAPOLY_MANY_MAX + 1][24];
    static uint8_t tags[CHAPOLY_MANY_MAX + 1][16], right[CHAPOLY_MANY_MAX + 1][16];
    size_t at[CHAPOLY_MANY_MAX + 1], low = 0, high = AREA;

    random_bytes(&keys[0][0], sizeof keys);
    random_bytes(&nonces[0][0], sizeof nonces);
    memset(target, 0xa5, AREA);
    for (size_t i = 0; i < count; i++) {
        const size_t len = lens[i];
        at[i] = i < count / 2 ? low : high - len;
        if (i < count / 2)
            low += len + 1;
        else
            high -= len + 1;
        packets[i] = (chapoly_packet){
            .key = keys[own_keys ? i : 0], .nonce = nonces[i],
            .associated_data = associated_lens[i] == 0 ? NULL
                               : associated + AREA - associated_lens[i] - (own_keys ? 300 * (count - 1 - i) : 0),
            .associated_len = associated_lens[i], .data = source + at[i], .len = len, .out = target + at[i],
            .tag = tags[i],
        };
        chapoly_aead_encrypt(portable_kernel(), expected + at[i], right[i], packets[i].key, nonces[i], nonce_size,
                             packets[i].associated_data, associated_lens[i], packets[i].data, len);
        if (i % 3 == 0)
            packets[i].data = memcpy(target + at[i], source + at[i], len);
    }
    CHECK(chapoly_aead_encrypt_many(kernel, packets, count, nonce_size) == CHAPOLY_OK, "%zu packets", count);
    for (size_t i = 0; i < count; i++) {
        CHECK(memcmp(target + at[i], expected + at[i], lens[i]) == 0, "packet %zu of %zu, %zu and %zu bytes", i, count,
              associated_lens[i], lens[i]);
        CHECK(memcmp(tags[i], right[i], 16) == 0, "tag %zu of %zu, %zu and %zu bytes", i, count, associated_lens[i],
              lens[i]);
        CHECK(target[i < count / 2 ? at[i] + lens[i] : at[i] - 1] == 0xa5, "byte beside packet %zu of %zu", i, count);
    }

    memset(target, 0xa5, AREA);
    for (size_t i = 0; i < count; i++) {
        packets[i].data = expected + at[i];
        packets[i].failed = i % 2 == 0;
        if (i % 5 == 1 && i % 2 == 0 && lens[i] > 0)
            expected[at[i] + (size_t)random64() % lens[i]] ^= 0x40;
        else if (i % 5 == 1 && i % 3 == 0 && associated_lens[i] > 0)
            packets[i].associated_data--;
        else if (i % 5 == 1)
            tags[i][random64() % 16] ^= 1;
        if (i % 3 == 0)
            packets[i].data = memcpy(target + at[i], expected + at[i], lens[i]);
    }
    CHECK(chapoly_aead_decrypt_many(kernel, packets, count, nonce_size) == CHAPOLY_OK, "%zu packets", count);
    for (size_t i = 0; i < count; i++) {
        const bool forged = i % 5 == 1;
        CHECK(packets[i].failed == forged, "packet %zu of %zu, %zu and %zu bytes", i, count, associated_lens[i],
              lens[i]);
        CHECK(forged && i % 3 != 0 ? all(target + at[i], lens[i], 0)
              : memcmp(target + at[i], (forged ? expected : source) + at[i], lens[i]) == 0,
              "packet %zu of %zu, %zu and %zu bytes%s", i, count, associated_lens[i], lens[i],
              forged ? ", forged" : "");
    }
}

/* Equal and different lengths, of which kernels may take several at the same time. */
static void test_batch_shapes(void)
{
    static const size_t lengths[] = {0,   1,   15,  16,  17,  47,  48,  63,  64,  65,  100,
                                     127, 128, 129, 150, 176, 192, 255, 256, 257, 500, 831};
    /* About where sixteen blocks of one message are taken by themselves, once or twice. */
    static const size_t sliced[] = {831, 832, 833, 1087, 1088, 1089, 1855, 1856, 1857, 1983, 1984};
    static const size_t associated_lengths[] = {0, 1, 13, 16, 17, 31, 48, 63, 64, 65, 80, 150, 300};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    enum { ASSOCIATED = sizeof associated_lengths / sizeof associated_lengths[0] };
    static const size_t counts[] = {2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65};
    size_t lens[CHAPOLY_MANY_MAX + 1], associated_lens[CHAPOLY_MANY_MAX + 1], turn = 0;

    for (size_t l = 0; l < LENGTHS; l++) /* all equal */
        for (size_t a = 0; a < ASSOCIATED; a++, turn++) {
            const size_t count = counts[turn * 7 % 16];
            for (size_t i = 0; i < count; i++)
                lens[i] = lengths[l], associated_lens[i] = associated_lengths[a];
            compare_batch(count, lens, associated_lens, turn % 5 == 0 ? 24 : 12, turn % 3 == 0);
        }
    for (size_t count = 2; count <= CHAPOLY_MANY_MAX + 1; count += count < 20 ? 1 : 5) /* all different; one of them */
        for (size_t round = 0; round < 4; round++, turn++) {
            for (size_t i = 0; i < count; i++) {
                lens[i] = round == 3 ? 64 : (size_t)random64() % (round == 0 ? 100 : 900);
                associated_lens[i] = round == 3 ? 13 : associated_lengths[(round == 1 ? 2 : random64()) % ASSOCIATED];
            }
            if (round == 3)
                lens[turn % count] = 1984;
            compare_batch(count, lens, associated_lens, turn % 5 == 0 ? 24 : 12, turn % 3 == 0);
        }
    for (size_t i = 0; i < 20; i++) /* associated data that keeps a message from the batch */
        lens[i] = 20 * i, associated_lens[i] = i % 7 == 3 ? CHAPOLY_MANY_ASSOCIATED + i % 2 : 5000 * (i % 7 == 5);
    compare_batch(20, lens, associated_lens, 12, false);
    for (size_t len = 1400; len <= 2200; len += 73, turn++) { /* what a kernel may take alone, too */
        for (size_t i = 0; i < 29; i++)
            lens[i] = len, associated_lens[i] = 13;
        lens[turn % 29] -= turn % 2;
        compare_batch(29, lens, associated_lens, 12, turn % 3 == 0);
    }
    for (size_t s = 0; s < sizeof sliced / sizeof sliced[0]; s++)
        for (size_t every = 1; every <= 3; every++, turn++) { /* so many of them among short ones, in two banks */
            const size_t count = 16 + turn % 3;
            for (size_t i = 0; i < count; i++)
                lens[i] = i % every == 0 ? sliced[s] : 80, associated_lens[i] = 13;
            compare_batch(count, lens, associated_lens, turn % 2 == 0 ? 24 : 12, turn % 5 == 0);
        }
}

static void test_aead(void)
{
    static const size_t lengths[] = {0, 1, 16, 63, 64, 65, 114, 128, 129, 256, 385, 640, 641, 1420, 4096};
    uint8_t key[32], nonce[24], aad[40], tag[16];

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    random_bytes(aad, sizeof aad);
    for (size_t nonce_size = 12; nonce_size <= 24; nonce_size += 12)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const size_t len = lengths[i], aad_len = len % 41;
            uint8_t *const dst = target + AREA - len, *const cipher = expected + AREA - len;

            CHECK(chapoly_aead_encrypt(kernel, cipher, tag, key, nonce, nonce_size, aad, aad_len, source, len) ==
                      CHAPOLY_OK, "encrypt %zu", len);
            memcpy(dst, source, len);
            uint8_t again[16];
            chapoly_aead_encrypt(kernel, dst, again, key, nonce, nonce_size, aad, aad_len, dst, len);
            CHECK(memcmp(dst, cipher, len) == 0 && memcmp(again, tag, 16) == 0, "encrypt %zu in place", len);
            CHECK(chapoly_aead_decrypt(kernel, dst, tag, key, nonce, nonce_size, aad, aad_len, dst, len) ==
                      CHAPOLY_OK && memcmp(dst, source, len) == 0, "decrypt %zu in place", len);
            memset(dst, 0xa5, len);
            CHECK(chapoly_aead_decrypt(kernel, dst, tag, key, nonce, nonce_size, aad, aad_len, cipher, len) ==
                      CHAPOLY_OK && memcmp(dst, source, len) == 0, "decrypt %zu", len);

            for (int bit = 0; bit < 128; bit++) {
                tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
                if (len > 0)
                    dst[0] = 0xa5;
                CHECK(chapoly_aead_decrypt(kernel, dst, tag, key, nonce, nonce_size, aad, aad_len, cipher, len) ==
                          CHAPOLY_INVALID_TAG && all(dst, len, 0), "bit %d of the tag flipped, %zu bytes", bit, len);
                tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            for (size_t at = 0; at < len; at += 1 + len / 5) {
                memcpy(dst, cipher, len);
                dst[at] ^= 0x80;
                memcpy(target, dst, len);
                CHECK(chapoly_aead_decrypt(kernel, dst, tag, key, nonce, nonce_size, aad, aad_len, dst, len) ==
                          CHAPOLY_INVALID_TAG && memcmp(dst, target, len) == 0, "byte %zu flipped, in place", at);
            }
            if (aad_len > 0)
                CHECK(chapoly_aead_decrypt(kernel, dst, tag, key, nonce, nonce_size, aad, aad_len - 1, cipher, len) ==
                          CHAPOLY_INVALID_TAG, "associated data cut, %zu bytes", len);
        }

    if (SIZE_MAX > CHAPOLY_AEAD_MAX) { /* refused before anything is read or written */
        const size_t too_long = (size_t)(CHAPOLY_AEAD_MAX + 1);
        memset(target, 0xa5, 64);
        CHECK(chapoly_aead_encrypt(kernel, target, tag, key, nonce, 12, aad, 0, source, too_long) ==
                  CHAPOLY_COUNTER_OVERFLOW, "encrypt too much");
        CHECK(chapoly_aead_decrypt(kernel, target, tag, key, nonce, 12, aad, 0, source, too_long) ==
                  CHAPOLY_COUNTER_OVERFLOW && all(target, 64, 0xa5), "decrypt too much");
    }
}

static void test_messages_in_parts(void)
{
    uint8_t key[32], nonce[24], aad[40], whole[16], tag[16];
    chapoly_message message, before;
    chapoly_chacha chacha;

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    random_bytes(aad, sizeof aad);
    for (size_t nonce_size = 12; nonce_size <= 24; nonce_size += 12)
        for (size_t len = 0; len <= 3000; len += len < 140 ? 1 : 37) {
            const size_t aad_len = len % 41;
            chapoly_aead_encrypt(kernel, expected, whole, key, nonce, nonce_size, aad, aad_len, source, len);
            for (size_t split = 0; split <= len; split += len < 140 ? 1 : 61) {
                uint8_t *const dst = target + AREA - len;
                memcpy(dst, source, len);
                chapoly_message_init(kernel, &message, key, nonce, nonce_size, aad, aad_len);
                chapoly_message_encrypt(kernel, &message, dst, source, split);
                chapoly_message_encrypt(kernel, &message, dst + split, dst + split, len - split); /* in place */
                chapoly_message_finish(kernel, &message, tag);
                CHECK(memcmp(dst, expected, len) == 0 && memcmp(tag, whole, 16) == 0, "%zu bytes encrypted, split "
                      "at %zu", len, split);
                chapoly_message_init(kernel, &message, key, nonce, nonce_size, aad, aad_len);
                chapoly_message_decrypt(kernel, &message, dst, dst, split);
                chapoly_message_decrypt(kernel, &message, dst + split, expected + split, len - split);
                chapoly_message_finish(kernel, &message, tag);
                CHECK(memcmp(dst, source, len) == 0 && memcmp(tag, whole, 16) == 0, "%zu bytes decrypted, split "
                      "at %zu", len, split);
            }
        }

    /* The end: as if all data but `left` bytes had come. More is refused, and then nothing has changed. */
    chapoly_chacha20_init(&chacha, key, nonce, 20);
    chapoly_message_init(kernel, &message, key, nonce, 12, aad, sizeof aad);
    for (size_t left = 0; left <= 5000; left += left < 300 ? 1 : 173) {
        const uint64_t at = CHAPOLY_AEAD_MAX - left;
        message.len = at;
        CHECK(chapoly_message_left(&message) == left, "%zu bytes left", left);
        memcpy(&before, &message, sizeof message);
        memset(target, 0xa5, left + 1);
        CHECK(chapoly_message_encrypt(kernel, &message, target, source, left + 1) == CHAPOLY_COUNTER_OVERFLOW &&
                  chapoly_message_decrypt(kernel, &message, target, source, left + 1) == CHAPOLY_COUNTER_OVERFLOW,
              "%zu bytes left, one more", left);
        CHECK(all(target, left + 1, 0xa5) && memcmp(&before, &message, sizeof message) == 0,
              "a refused part changed something");
        CHECK(chapoly_message_encrypt(kernel, &message, target, source, left) == CHAPOLY_OK, "%zu bytes left", left);
        chapoly_chacha_xor(kernel, &chacha, 1 + at / 64, (unsigned)(at % 64), expected, source, left);
        CHECK(memcmp(target, expected, left) == 0 && chapoly_message_left(&message) == 0, "the last %zu bytes", left);
        CHECK(chapoly_message_encrypt(kernel, &message, NULL, NULL, 0) == CHAPOLY_OK, "nothing, at the end");
    }
}

/* A message of which the first bytes come at once and the others in ranges, the last first. */
static void compare_ranges(size_t len, size_t count, size_t nonce_size)
{
    enum { MOST = 8, ENCRYPT, ENCRYPT_IN_PLACE, DECRYPT, DECRYPT_IN_PLACE, VERIFY, WAYS };
    const size_t aad_len = len % 3 == 0 ? 0 : len % 100;
    uint8_t *const data = source + AREA - len, *const out = target + AREA - len, *const cipher = expected + AREA - len;
    uint8_t key[32], nonce[24], whole[16], tag[16];
    size_t at[MOST + 1] = {0}; /* range i is from at[i] on, and may be empty; before at[0] is the message itself */
    chapoly_message message, ranges[MOST];

    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    at[count] = len;
    for (size_t i = count; i-- > 0;)
        at[i] = (size_t)random64() % (at[i + 1] / 64 + 1) * 64;
    at[0] = count % 3 == 0 ? at[0] : 0;
    chapoly_aead_encrypt(kernel, cipher, whole, key, nonce, nonce_size, source, aad_len, data, len);
    for (int way = ENCRYPT; way < WAYS; way++) {
        const bool encrypting = way <= ENCRYPT_IN_PLACE;
        const bool in_place = way == ENCRYPT_IN_PLACE || way >= DECRYPT_IN_PLACE;
        const uint8_t *const src = in_place ? out : encrypting ? data : cipher;

        memset(out, 0xa5, len);
        if (in_place)
            memcpy(out, encrypting ? data : cipher, len);
        chapoly_message_init(kernel, &message, key, nonce, nonce_size, source, aad_len);
        if (way == VERIFY)
            chapoly_message_authenticate(kernel, &message, src, at[0]);
        else
            (encrypting ? chapoly_message_encrypt : chapoly_message_decrypt)(kernel, &message, out, src, at[0]);
        for (size_t i = count; i-- > 0;) {
            const size_t size = at[i + 1] - at[i];
            chapoly_message_range(&ranges[i], &message, at[i]);
            if (way == VERIFY)
                chapoly_message_authenticate(kernel, &ranges[i], src + at[i], size);
            else
                (encrypting ? chapoly_message_encrypt : chapoly_message_decrypt)(kernel, &ranges[i], out + at[i],
                                                                                 src + at[i], size);
        }
        for (size_t i = 0; i < count; i++)
            chapoly_message_join(&message, &ranges[i]);
        CHECK(all((const uint8_t *)ranges, count * sizeof ranges[0], 0), "a range that is joined is not wiped");
        CHECK(message.len == len, "%" PRIu64 " of %zu bytes", message.len, len);
        chapoly_message_finish(kernel, &message, tag);
        CHECK(memcmp(tag, whole, 16) == 0, "tag of %zu bytes in %zu ranges, way %d", len, count, way);
        CHECK(memcmp(out, encrypting || way == VERIFY ? cipher : data, len) == 0, "%zu bytes in %zu ranges, way %d",
              len, count, way);
    }
}

static void test_messages_in_ranges(void)
{
    static const size_t lengths[] = {2000, 8191, 8192, 8193, 16385, 40001, 49152 + 63, AREA - 100};

    for (size_t len = 0; len <= 1100; len++)
        compare_ranges(len, 1 + len % 8, len % 2 == 0 ? 12 : 24);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t count = 1; count <= 8; count++)
            compare_ranges(lengths[i], count, count % 2 == 0 ? 12 : 24);
}

/* ---- What is the same for all kernels. ---- */

static void test_choice(void)
{
    const chapoly_kernel *first = NULL, *last = NULL;
    bool present;

    for (size_t i = 0; chapoly_kernel_at(i) != NULL; i++) {
        last = chapoly_kernel_at(i);
        if (first == NULL && chapoly_kernel_obstacle(last) == NULL)
            first = last;
        CHECK(last->left_out != NULL ||
                  (last->chacha_xor && last->hchacha && last->poly1305_blocks && last->aead && last->aead_part &&
                   last->aead_many && last->chacha_lanes &&
                   (last->chacha_pass || last->aead != chapoly_aead_by_passes)),
              "%s lacks a function", chapoly_kernel_name(last));
    }
    CHECK(strcmp(chapoly_kernel_name(last), "portable") == 0 && chapoly_kernel_obstacle(last) == NULL,
          "the last kernel runs everywhere");
    for (int i = 0; i < 2; i++) /* looked for, then kept */
        CHECK(chapoly_kernel_chosen() == first, "at first the fastest is chosen");
    chapoly_kernel_choose(last);
    CHECK(chapoly_kernel_chosen() == last, "a choice");
    chapoly_kernel_choose(first);
    for (size_t i = 0; chapoly_cpu_feature(i, &present) != NULL; i++)
        printf("CPU feature %s: %s\n", chapoly_cpu_feature(i, &present), present ? "yes" : "no");
}

static void test_left(void)
{
    const uint8_t zeros[32] = {0};
    chapoly_chacha chacha, legacy;

    chapoly_chacha20_init(&chacha, zeros, zeros, 20);
    chapoly_chacha20_legacy_init(&legacy, zeros, zeros, 20);
    CHECK(chapoly_chacha_left(&chacha, 0, 0) == UINT64_C(1) << 38, "all of it");
    CHECK(chapoly_chacha_left(&chacha, UINT32_MAX, 0) == 64, "the last block");
    CHECK(chapoly_chacha_left(&chacha, UINT32_MAX, 63) == 1, "the last byte");
    CHECK(chapoly_chacha_left(&chacha, UINT32_MAX, 64) == 0, "nothing");
    for (int bit = 32; bit < 64; bit++) /* blocks that the 32-bit counter has not */
        for (unsigned offset = 0; offset <= 64; offset++)
            CHECK(chapoly_chacha_left(&chacha, UINT64_C(1) << bit, offset) == 0 &&
                      chapoly_chacha_left(&chacha, (UINT64_C(1) << bit) + UINT32_MAX, offset) == 0,
                  "beyond the last block, 2^%d, offset %u", bit, offset);
    CHECK(chapoly_chacha_left(&chacha, UINT64_MAX, 0) == 0, "far beyond the last block");
    CHECK(chapoly_chacha_left(&legacy, 0, 0) == UINT64_MAX, "more than a number holds");
    CHECK(chapoly_chacha_left(&legacy, UINT64_MAX - 2, 10) == 3 * 64 - 10, "two blocks and a part");
    CHECK(chapoly_chacha_left(&legacy, UINT64_MAX, 64) == 0, "nothing");
}

static void test_kernel(const char *how)
{
    const unsigned long before = passed;

    test_vectors();
    test_concrete_cases();
    test_chacha_lengths();
    test_chacha_alignment();
    test_chacha_splits();
    test_chacha_within_blocks();
    test_chacha_lanes();
    test_poly1305_blocks();
    test_poly1305_updates();
    test_poly1305_ranges();
    test_aead();
    test_aead_lengths();
    test_aead_short();
    test_batches();
    test_batch_shapes();
    test_messages_in_parts();
    test_messages_in_ranges();
    printf("kernel %s%s: %lu checks passed\n", chapoly_kernel_name(kernel), how, passed - before);
}

#if defined(EMULATED_AVX512)
extern chapoly_chacha_xor_fn emulated_chacha_xor_avx512, emulated_chacha_xor_avx512vl;
extern chapoly_chacha_pass_fn emulated_chacha_pass_avx512vl;
extern chapoly_chacha_lanes_fn emulated_chacha_lanes_avx512;
extern chapoly_aead_fn emulated_aead_avx512;
extern chapoly_aead_part_fn emulated_aead_part_avx512;
extern chapoly_poly1305_blocks_fn emulated_poly1305_blocks_avx512;
extern chapoly_aead_many_fn emulated_aead_many_avx512;

/* The kernels of AVX-512 once more, compiled with emulated/immintrin.h: they run on any CPU. */
static void test_emulated(void)
{
    for (size_t i = 0; chapoly_kernel_at(i) != NULL; i++) {
        chapoly_kernel emulated = *chapoly_kernel_at(i);
        if (strcmp(emulated.name, "avx512") == 0) {
            emulated.chacha_xor = emulated_chacha_xor_avx512;
            emulated.chacha_lanes = emulated_chacha_lanes_avx512;
            emulated.hchacha = portable_kernel()->hchacha;
            emulated.poly1305_blocks = emulated_poly1305_blocks_avx512;
            emulated.aead = emulated_aead_avx512;
            emulated.aead_part = emulated_aead_part_avx512;
            emulated.aead_many = emulated_aead_many_avx512;
        } else if (strcmp(emulated.name, "avx512vl") == 0) {
            emulated.chacha_xor = emulated_chacha_xor_avx512vl;
            emulated.chacha_pass = emulated_chacha_pass_avx512vl;
            emulated.chacha_lanes = portable_kernel()->chacha_lanes;
            emulated.lanes = portable_kernel()->lanes;
            emulated.hchacha = portable_kernel()->hchacha;
            emulated.poly1305_blocks = portable_kernel()->poly1305_blocks;
        } else {
            continue;
        }
        kernel = &emulated;
        test_kernel(", emulated");
    }
}
#endif

int main(int argc, char **argv)
{
    source = guarded_area(), target = guarded_area(), expected = guarded_area(), associated = guarded_area();
    random_bytes(source, AREA);
    random_bytes(associated, AREA);
    test_choice();
    test_left();
    test_tag_equal();
    test_poly1305_joins();
    for (size_t i = 0; chapoly_kernel_at(i) != NULL; i++) {
        kernel = chapoly_kernel_at(i);
        const char *const obstacle = chapoly_kernel_obstacle(kernel);
        bool named = argc == 1;
        for (int n = 1; n < argc; n++)
            named |= strcmp(argv[n], chapoly_kernel_name(kernel)) == 0;
        if (!named)
            continue;
        if (obstacle != NULL) {
            printf("kernel %s cannot run here: %s\n", chapoly_kernel_name(kernel), obstacle);
            continue;
        }
        test_kernel("");
    }
#if defined(EMULATED_AVX512)
    if (argc == 1)
        test_emulated();
#endif
    printf("%lu passed, %lu failed\n", passed, failed);
    return failed != 0;
}
