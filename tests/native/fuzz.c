/*
 * What a fuzzer makes up, asked of every kernel that can run here: all must answer as the portable one does.
 *
 * Built as a target of libFuzzer by scripts/fuzz. With REPLAY it is a program that asks what the files hold that are
 * named as arguments: the committed corpus, which reaches each branch, runs among the C tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chapoly.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- Choices are taken from the input; after its end all are 0. ---- */

typedef struct {
    const uint8_t *at;
    size_t left;
} input;

static uint8_t byte_of(input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static uint32_t number(input *in, uint32_t below)
{
    const uint32_t high = byte_of(in), low = byte_of(in);

    return (high << 8 | low) % below;
}

static void bytes_of(input *in, uint8_t *p, size_t len)
{
    const size_t there = in->left < len ? in->left : len;

    memset(p, 0, len);
    if (there > 0) {
        memcpy(p, in->at, there);
        in->at += there;
        in->left -= there;
    }
}

/* ---- Memory as long as what it is for, so that AddressSanitizer sees what goes beyond. ---- */

typedef struct {
    uint8_t *memory, *p;
    size_t len;
} area;

static area area_of(size_t len, size_t offset)
{
    area a = {malloc(len + offset + 1), NULL, len};

    if (a.memory == NULL)
        abort();
    a.p = a.memory + offset;
    memset(a.memory, 0xa5, len + offset + 1);
    return a;
}

/* Data: what is left of the input over and over, all ones, or such that no two blocks are equal. */
static area data_of(input *in, size_t len)
{
    const area a = area_of(len, number(in, 64));
    const unsigned kind = byte_of(in) % 3;
    uint32_t state = 1;

    for (size_t i = 0; i < len; i++) {
        state = state * 1664525 + 1013904223;
        a.p[i] = (uint8_t)(kind == 0 ? (in->left > 0 ? in->at[i % in->left] : 0) : kind == 1 ? 0xff : state >> 24);
    }
    return a;
}

static area copy_of(const area *from)
{
    const area a = area_of(from->len, (size_t)(from->p - from->memory));

    memcpy(a.p, from->p, from->len);
    return a;
}

static void must(bool right, const char *what, const chapoly_kernel *kernel)
{
    if (!right) {
        fprintf(stderr, "%s: %s is wrong\n", what, chapoly_kernel_name(kernel));
        abort();
    }
}

static bool same(const area *a, const area *b)
{
    return memcmp(a->p, b->p, a->len) == 0 && a->p[a->len] == 0xa5 && b->p[b->len] == 0xa5;
}

/* ---- One question of each kind: its answer is written to `answer`, which every kernel must give. ---- */

enum { LONGEST = 9000 }; /* over a strip */

/* ChaCha in up to four stretches, each of which begins where the one before ended. */
static area ask_chacha(const chapoly_kernel *kernel, input in)
{
    static const unsigned rounds[] = {8, 12, 20};
    uint8_t key[32], nonce[24];
    chapoly_chacha chacha;
    chapoly_begun_block begun = {.there = false};
    const unsigned variant = byte_of(&in) % 3, count = rounds[byte_of(&in) % 3];
    const unsigned start = byte_of(&in); /* at the beginning, or so far from where a counter ends, or its low word */
    uint64_t block = start < 128 ? start : (variant == 2 && start < 192 ? 0 : UINT64_C(1) << 32) - (256 - start);
    unsigned offset = byte_of(&in) % 65;
    const bool in_place = byte_of(&in) % 2 == 1;
    area data, out;
    size_t done = 0;

    bytes_of(&in, key, sizeof key);
    bytes_of(&in, nonce, sizeof nonce);
    data = data_of(&in, number(&in, LONGEST));
    if (variant == 0)
        chapoly_chacha20_init(&chacha, key, nonce, count);
    else if (variant == 1)
        chapoly_xchacha20_init(kernel, &chacha, key, nonce, count);
    else
        chapoly_chacha20_legacy_init(&chacha, key, nonce, count);
    out = in_place ? copy_of(&data) : area_of(data.len, number(&in, 64));
    for (int stretch = 0; stretch < 4; stretch++) {
        const size_t left = data.len - done, len = stretch == 3 ? left : number(&in, (uint32_t)left + 1);
        const uint8_t *const from = in_place ? out.p + done : data.p + done;
        const uint64_t left_there = chapoly_chacha_left(&chacha, block, offset);
        if (offset + len <= 64 && len <= left_there) {
            chapoly_chacha_xor_in_block(kernel, &chacha, &begun, block, offset, out.p + done, from, len);
        } else {
            const enum chapoly_status status =
                chapoly_chacha_xor(kernel, &chacha, block, offset, out.p + done, from, len);
            must((status == CHAPOLY_OK) == (len <= left_there), "the end of the keystream", kernel);
            if (status != CHAPOLY_OK)
                break;
        }
        done += len;
        block += (offset + len) / 64;
        offset = (unsigned)(offset + len) % 64;
        if (chapoly_chacha_left(&chacha, block, offset) == 0)
            break;
    }
    free(data.memory);
    return out;
}

static area ask_hchacha(const chapoly_kernel *kernel, input in)
{
    static const unsigned rounds[] = {8, 12, 20};
    uint8_t key[32], nonce[16];
    const area subkey = area_of(32, 0);

    bytes_of(&in, key, sizeof key);
    bytes_of(&in, nonce, sizeof nonce);
    chapoly_hchacha20(kernel, subkey.p, key, nonce, rounds[byte_of(&in) % 3]);
    return subkey;
}

/* Poly1305 in up to four stretches, or as two ranges. */
static area ask_poly1305(const chapoly_kernel *kernel, input in)
{
    uint8_t key[32];
    chapoly_poly1305 mac, range;
    const bool in_ranges = byte_of(&in) % 2 == 1;
    const area tag = area_of(16, 0);
    area message;
    size_t done = 0;

    bytes_of(&in, key, sizeof key);
    message = data_of(&in, number(&in, LONGEST));
    chapoly_poly1305_init(&mac, key);
    if (in_ranges) {
        done = message.len == 0 ? 0 : number(&in, (uint32_t)message.len) / 16 * 16;
        chapoly_poly1305_partial(&range, &mac);
        chapoly_poly1305_update(kernel, &mac, message.p, done);
        chapoly_poly1305_update(kernel, &range, message.p + done, (message.len - done) / 16 * 16);
        chapoly_poly1305_join(&mac, &range, (message.len - done) / 16 * 16);
        done += (message.len - done) / 16 * 16;
    }
    for (int stretch = 0; stretch < 4; stretch++) {
        const size_t left = message.len - done, len = stretch == 3 ? left : number(&in, (uint32_t)left + 1);
        chapoly_poly1305_update(kernel, &mac, message.p + done, len);
        done += len;
    }
    chapoly_poly1305_finish(kernel, &mac, tag.p);
    free(message.memory);
    return tag;
}

/* A message and its tag; then it is opened again, as it is or with a wrong bit. */
static area ask_aead(const chapoly_kernel *kernel, input in)
{
    uint8_t key[32], nonce[24], forged[16];
    const size_t nonce_size = byte_of(&in) % 2 == 0 ? 12 : 24;
    const bool in_place = byte_of(&in) % 2 == 1;
    const unsigned wrong_bit = byte_of(&in);
    area associated_data, plaintext, sealed, opened;
    enum chapoly_status status;

    bytes_of(&in, key, sizeof key);
    bytes_of(&in, nonce, sizeof nonce);
    associated_data = data_of(&in, number(&in, 700));
    plaintext = data_of(&in, number(&in, LONGEST));
    sealed = area_of(plaintext.len + 16, number(&in, 64));
    if (in_place)
        memcpy(sealed.p, plaintext.p, plaintext.len);
    must(chapoly_aead_encrypt(kernel, sealed.p, sealed.p + plaintext.len, key, nonce, nonce_size, associated_data.p,
                              associated_data.len, in_place ? sealed.p : plaintext.p, plaintext.len) == CHAPOLY_OK,
         "encrypt", kernel);
    memcpy(forged, sealed.p + plaintext.len, sizeof forged);
    if (wrong_bit < 128)
        forged[wrong_bit / 8] ^= (uint8_t)(1u << wrong_bit % 8);
    opened = area_of(plaintext.len, number(&in, 64));
    if (in_place)
        memcpy(opened.p, sealed.p, plaintext.len);
    status = chapoly_aead_decrypt(kernel, opened.p, forged, key, nonce, nonce_size, associated_data.p,
                                  associated_data.len, in_place ? opened.p : sealed.p, plaintext.len);
    must(status == (wrong_bit < 128 ? CHAPOLY_INVALID_TAG : CHAPOLY_OK), "verification", kernel);
    if (status == CHAPOLY_OK) {
        must(same(&opened, &plaintext), "decrypt", kernel);
    } else {
        for (size_t i = 0; i < plaintext.len; i++)
            must(opened.p[i] == (in_place ? sealed.p[i] : 0), "what a forgery leaves", kernel);
    }
    free(associated_data.memory), free(plaintext.memory), free(opened.memory);
    return sealed;
}

/* A message in up to four parts, of which the last may be a range of its own. */
static area ask_message(const chapoly_kernel *kernel, input in)
{
    uint8_t key[32], nonce[24];
    const size_t nonce_size = byte_of(&in) % 2 == 0 ? 12 : 24;
    const unsigned how = byte_of(&in) % 3;
    chapoly_message message, range;
    area associated_data, data, out;
    size_t done = 0;

    bytes_of(&in, key, sizeof key);
    bytes_of(&in, nonce, sizeof nonce);
    associated_data = data_of(&in, number(&in, 700));
    data = data_of(&in, number(&in, LONGEST));
    out = area_of(data.len + 16, number(&in, 64));
    chapoly_message_init(kernel, &message, key, nonce, nonce_size, associated_data.p, associated_data.len);
    for (int part = 0; part < 4; part++) {
        const size_t left = data.len - done;
        size_t len = part == 3 ? left : number(&in, (uint32_t)left + 1);
        if (part < 3 && how == 2)
            len -= len % 64;
        if (part == 3 && how == 2) {
            chapoly_message_range(&range, &message, done);
            chapoly_message_encrypt(kernel, &range, out.p + done, data.p + done, len);
            chapoly_message_join(&message, &range);
        } else {
            (how == 1 ? chapoly_message_decrypt : chapoly_message_encrypt)(kernel, &message, out.p + done,
                                                                           data.p + done, len);
        }
        done += len;
    }
    chapoly_message_finish(kernel, &message, out.p + data.len);
    free(associated_data.memory), free(data.memory);
    return out;
}

/* Packets that are encrypted, and opened again, some of them forged. */
static area ask_batch(const chapoly_kernel *kernel, input in)
{
    enum { MOST = 70, WIDEST = 2200 };
    chapoly_packet packets[MOST];
    const size_t count = number(&in, MOST + 1), nonce_size = byte_of(&in) % 2 == 0 ? 12 : 24;
    const size_t keys = byte_of(&in) % 3, lengths = byte_of(&in) % 3; /* of all the same, of two kinds, any */
    const unsigned forge = byte_of(&in);
    area data, sealed, opened, out;
    size_t at = 0;

    data = data_of(&in, WIDEST + 32 * 3);
    sealed = area_of((WIDEST + 16) * count, number(&in, 64));
    memset(sealed.p, 0, sealed.len); /* where nothing is written, every kernel has the same */
    for (size_t i = 0; i < count; i++) {
        const size_t len = i == 0 || lengths == 2 || (lengths == 1 && i == 1)
                               ? number(&in, byte_of(&in) % 4 == 0 ? WIDEST : 200)
                               : packets[lengths == 0 ? 0 : i % 2].len;
        const size_t associated_len = lengths == 2 ? number(&in, 100) : 13;
        packets[i] = (chapoly_packet){
            .key = data.p + (keys == 0 ? 0 : keys == 1 ? 32 * (i % 2) : i),
            .nonce = data.p + 3 * i % 64,
            .associated_data = data.p + i,
            .associated_len = associated_len,
            .data = data.p + 2 * i % 64,
            .len = len,
            .out = sealed.p + at,
            .tag = sealed.p + at + len,
        };
        at += len + 16;
    }
    must(chapoly_aead_encrypt_many(kernel, packets, count, nonce_size) == CHAPOLY_OK, "encrypt_many", kernel);
    opened = area_of(sealed.len, 0);
    out = copy_of(&sealed);
    for (size_t i = 0; i < count; i++) {
        if (forge > 0 && i % forge == 0)
            packets[i].tag[i % 16] ^= 0x10;
        packets[i].data = packets[i].out;
        packets[i].out = opened.p + (packets[i].data - sealed.p);
    }
    must(chapoly_aead_decrypt_many(kernel, packets, count, nonce_size) == CHAPOLY_OK, "decrypt_many", kernel);
    for (size_t i = 0; i < count; i++) {
        const bool forged = forge > 0 && i % forge == 0;
        must(packets[i].failed == forged, "verification of many", kernel);
        for (size_t b = 0; b < packets[i].len; b++)
            must(packets[i].out[b] == (forged ? 0 : data.p[2 * i % 64 + b]), "decrypt_many", kernel);
    }
    free(data.memory), free(sealed.memory), free(opened.memory);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static area (*const questions[])(const chapoly_kernel *, input) = {
        ask_chacha, ask_hchacha, ask_poly1305, ask_aead, ask_message, ask_batch,
    };
    static const char *const names[] = {"ChaCha", "HChaCha20", "Poly1305", "the AEAD", "a message in parts", "a batch"};
    input in = {bytes, size};
    const unsigned which = byte_of(&in) % (sizeof questions / sizeof questions[0]);
    const chapoly_kernel *portable = NULL, *kernel;
    area right, answer;

    for (size_t i = 0; (kernel = chapoly_kernel_at(i)) != NULL; i++)
        portable = kernel; /* the last */
    right = questions[which](portable, in);
    for (size_t i = 0; (kernel = chapoly_kernel_at(i)) != portable; i++) {
        if (chapoly_kernel_obstacle(kernel) != NULL)
            continue;
        answer = questions[which](kernel, in);
        must(same(&right, &answer), names[which], kernel);
        free(answer.memory);
    }
    free(right.memory);
    return 0;
}

#if defined(REPLAY)
int main(int count, char **names)
{
    static uint8_t bytes[1 << 16];

    for (int i = 1; i < count; i++) {
        FILE *const file = fopen(names[i], "rb");
        if (file == NULL) {
            perror(names[i]);
            return 2;
        }
        LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof bytes, file));
        fclose(file);
    }
    printf("%d inputs, every kernel as the portable one\n", count - 1);
    return count > 1 ? 0 : 2;
}
#endif
