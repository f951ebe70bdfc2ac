/*
 * Many messages of the AEAD (RFC 8439 2.8) at once: blocks of different messages ride in the lanes of a vector, so that
 * short ones keep a wide kernel as busy as a long one does.
 *
 * Messages are taken in windows. First all blocks of the window's keystreams are made, block 0 with the one-time key of
 * each among them; then each message is xored and authenticated, or authenticated and, if its tag is right, xored.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

enum {
    WINDOW_PACKETS = 64,
    WINDOW_BLOCKS = 256, /* 16 KiB of keystream: half of a first-level cache, on the stack */
};

/* One block of a keystream for each lane. */
typedef struct {
    const uint32_t *states[CHAPOLY_LANES_MAX];
    uint32_t counters[CHAPOLY_LANES_MAX];
    size_t count;
} lanes;

typedef struct {
    uint32_t states[WINDOW_PACKETS][16];
    uint8_t keystream[(WINDOW_BLOCKS + CHAPOLY_LANES_MAX) * CHAPOLY_BLOCK_SIZE];
} window;

static size_t blocks_of(const chapoly_packet *packet)
{
    return 1 + packet->len / CHAPOLY_BLOCK_SIZE + (packet->len % CHAPOLY_BLOCK_SIZE > 0);
}

/*
 * How many packets from here on make a window, and how many blocks of keystream they need. A packet that fills the
 * lanes by itself is better off alone.
 */
static size_t window_size(const chapoly_kernel *kernel, const chapoly_packet *packets, size_t count, size_t *blocks)
{
    size_t n = 0;

    for (*blocks = 0; n < count && n < WINDOW_PACKETS; n++) {
        const size_t more = blocks_of(&packets[n]);
        if (more > kernel->lanes || *blocks + more > WINDOW_BLOCKS)
            break;
        *blocks += more;
    }
    return n;
}

/* The keystreams of n packets, one after the other, each from its block 0 on. */
static void make_keystreams(const chapoly_kernel *kernel, window *w, const chapoly_packet *packets, size_t n,
                            size_t nonce_size)
{
    uint8_t *keystream = w->keystream;
    lanes l = {.count = 0};

    for (size_t i = 0; i < n; i++) {
        const size_t blocks = blocks_of(&packets[i]);
        chapoly_chacha chacha;

        if (nonce_size == CHAPOLY_XNONCE_SIZE)
            chapoly_xchacha20_init(kernel, &chacha, packets[i].key, packets[i].nonce, 20);
        else
            chapoly_chacha20_init(&chacha, packets[i].key, packets[i].nonce, 20);
        memcpy(w->states[i], chacha.words, sizeof w->states[i]);
        for (size_t block = 0; block < blocks; block++) {
            l.states[l.count] = w->states[i];
            l.counters[l.count] = (uint32_t)block;
            if (++l.count == kernel->lanes) {
                kernel->chacha_lanes(keystream, l.states, l.counters, l.count);
                keystream += l.count * CHAPOLY_BLOCK_SIZE;
                l.count = 0;
            }
        }
        chapoly_wipe(&chacha, sizeof chacha);
    }
    if (l.count > 0)
        kernel->chacha_lanes(keystream, l.states, l.counters, l.count);
}

/* One packet after its keystream has been made. */
static void encrypt_one(const chapoly_kernel *kernel, chapoly_packet *packet, const uint8_t *keystream)
{
    chapoly_xor(packet->out, packet->data, keystream + CHAPOLY_BLOCK_SIZE, packet->len);
    chapoly_aead_tag(kernel, packet->tag, keystream, packet->associated_data, packet->associated_len, packet->out,
                     packet->len);
}

static void decrypt_one(const chapoly_kernel *kernel, chapoly_packet *packet, const uint8_t *keystream)
{
    uint8_t expected[16];

    chapoly_aead_tag(kernel, expected, keystream, packet->associated_data, packet->associated_len, packet->data,
                     packet->len);
    packet->failed = !chapoly_tag_equal(packet->tag, expected);
    if (!packet->failed)
        chapoly_xor(packet->out, packet->data, keystream + CHAPOLY_BLOCK_SIZE, packet->len);
    else if (packet->out != packet->data && packet->len > 0)
        memset(packet->out, 0, packet->len);
    chapoly_wipe(expected, sizeof expected);
}

static void encrypt_alone(const chapoly_kernel *kernel, chapoly_packet *p, size_t nonce_size)
{
    chapoly_aead_encrypt(kernel, p->out, p->tag, p->key, p->nonce, nonce_size, p->associated_data, p->associated_len,
                         p->data, p->len);
}

static void decrypt_alone(const chapoly_kernel *kernel, chapoly_packet *p, size_t nonce_size)
{
    p->failed = chapoly_aead_decrypt(kernel, p->out, p->tag, p->key, p->nonce, nonce_size, p->associated_data,
                                     p->associated_len, p->data, p->len) != CHAPOLY_OK;
}

static enum chapoly_status each(const chapoly_kernel *kernel, chapoly_packet *packets, size_t count, size_t nonce_size,
                                void (*one)(const chapoly_kernel *, chapoly_packet *, const uint8_t *),
                                void (*alone)(const chapoly_kernel *, chapoly_packet *, size_t))
{
    window w;
    size_t blocks, most = 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t len = packets[i].len; /* where size_t has 32 bits, compilers warn of a comparison with it */
        if (len > CHAPOLY_AEAD_MAX)
            return CHAPOLY_COUNTER_OVERFLOW;
    }
    if (count == 1) { /* at once: a batch of one should cost no more than one message */
        alone(kernel, packets, nonce_size);
        return CHAPOLY_OK;
    }

    for (size_t n; count > 0; packets += n, count -= n) {
        n = window_size(kernel, packets, count, &blocks);
        if (n < 2) { /* a long one, or one with no company */
            alone(kernel, packets, nonce_size);
            n = 1;
            continue;
        }
        make_keystreams(kernel, &w, packets, n, nonce_size);
        const uint8_t *keystream = w.keystream;
        for (size_t i = 0; i < n; i++) {
            one(kernel, &packets[i], keystream);
            keystream += blocks_of(&packets[i]) * CHAPOLY_BLOCK_SIZE;
        }
        most = blocks > most ? blocks : most;
    }
    if (most > 0)
        chapoly_wipe(&w, sizeof w.states + (most + kernel->lanes) * CHAPOLY_BLOCK_SIZE);
    return CHAPOLY_OK;
}

enum chapoly_status chapoly_aead_encrypt_many(const chapoly_kernel *kernel, chapoly_packet *packets, size_t count,
                                              size_t nonce_size)
{
    return each(kernel, packets, count, nonce_size, encrypt_one, encrypt_alone);
}

enum chapoly_status chapoly_aead_decrypt_many(const chapoly_kernel *kernel, chapoly_packet *packets, size_t count,
                                              size_t nonce_size)
{
    return each(kernel, packets, count, nonce_size, decrypt_one, decrypt_alone);
}
