/*
 * Many messages of the AEAD (RFC 8439 2.8) at once: blocks of different messages ride in the lanes of a vector, so that
 * short ones keep a wide kernel as busy as a long one does.
 *
 * Unless a kernel has something better, messages are taken in windows. First all blocks of the window's keystreams are
 * made, block 0 with the one-time key of each among them; then each message is xored and authenticated, or
 * authenticated and, if its tag is right, xored.
 */
#include <string.h>

#include "bytes.h"
#include "kernel.h"

enum {
    WINDOW_PACKETS = CHAPOLY_MANY_MAX,
    WINDOW_BLOCKS = 256, /* 16 KiB of keystream: half of a first-level cache, on the stack */
};

/* One block of a keystream for each lane. */
typedef struct {
    const uint32_t *states[CHAPOLY_LANES_MAX];
    uint32_t counters[CHAPOLY_LANES_MAX];
    size_t count;
} lanes;

typedef struct {
    uint8_t subkeys[WINDOW_PACKETS][CHAPOLY_SUBKEY_SIZE];
    uint32_t states[WINDOW_PACKETS][16];
    uint8_t keystream[(WINDOW_BLOCKS + CHAPOLY_LANES_MAX) * CHAPOLY_BLOCK_SIZE];
} window;

static size_t blocks_of(const chapoly_packet *packet)
{
    return 1 + packet->len / CHAPOLY_BLOCK_SIZE + (packet->len % CHAPOLY_BLOCK_SIZE > 0);
}

/*
 * HChaCha20 is a block of ChaCha20 without the feed-forward (draft-irtf-cfrg-xchacha 2.2), so it is made in lanes, and
 * the feed-forward taken back.
 */
void chapoly_aead_subkeys(const chapoly_kernel *kernel, uint8_t subkeys[][32], const chapoly_packet packets[],
                          size_t count)
{
    uint8_t blocks[CHAPOLY_LANES_MAX * CHAPOLY_BLOCK_SIZE];
    uint32_t states[CHAPOLY_LANES_MAX][16];
    chapoly_chacha chacha;
    lanes l;

    for (size_t done = 0; done < count; done += l.count) {
        l.count = count - done < kernel->lanes ? count - done : kernel->lanes;
        for (size_t i = 0; i < l.count; i++) {
            chapoly_chacha20_init(&chacha, packets[done + i].key, packets[done + i].nonce + 4, 20);
            memcpy(states[i], chacha.words, sizeof states[i]);
            l.states[i] = states[i];
            l.counters[i] = chapoly_load32(packets[done + i].nonce);
        }
        kernel->chacha_lanes(blocks, l.states, l.counters, l.count);
        for (size_t i = 0; i < l.count; i++) {
            const uint8_t *const block = blocks + CHAPOLY_BLOCK_SIZE * i;
            uint8_t *const subkey = subkeys[done + i];
            states[i][12] = l.counters[i];
            for (int j = 0; j < 4; j++) {
                chapoly_store32(subkey + 4 * j, chapoly_load32(block + 4 * j) - states[i][j]);
                chapoly_store32(subkey + 16 + 4 * j, chapoly_load32(block + 48 + 4 * j) - states[i][12 + j]);
            }
        }
    }
    chapoly_wipe(blocks, sizeof blocks);
    chapoly_wipe(states, sizeof states);
    chapoly_wipe(&chacha, sizeof chacha);
}

/* How many packets from here on make a window, and how many blocks of keystream they need. */
static size_t window_size(const chapoly_packet *packets, size_t count, size_t *blocks)
{
    size_t n = 0;

    for (*blocks = 0; n < count; n++) {
        const size_t more = blocks_of(&packets[n]);
        if (*blocks + more > WINDOW_BLOCKS)
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

    if (nonce_size == CHAPOLY_XNONCE_SIZE)
        chapoly_aead_subkeys(kernel, w->subkeys, packets, n);
    for (size_t i = 0; i < n; i++) {
        const size_t blocks = blocks_of(&packets[i]);
        chapoly_chacha chacha;

        if (nonce_size == CHAPOLY_XNONCE_SIZE) {
            uint8_t inner[12] = {0};
            memcpy(inner + 4, packets[i].nonce + 16, 8);
            chapoly_chacha20_init(&chacha, w->subkeys[i], inner, 20);
        } else {
            chapoly_chacha20_init(&chacha, packets[i].key, packets[i].nonce, 20);
        }
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

static void alone(const chapoly_kernel *kernel, chapoly_packet *p, size_t nonce_size, bool decrypting)
{
    if (decrypting)
        p->failed = chapoly_aead_decrypt(kernel, p->out, p->tag, p->key, p->nonce, nonce_size, p->associated_data,
                                         p->associated_len, p->data, p->len) != CHAPOLY_OK;
    else
        chapoly_aead_encrypt(kernel, p->out, p->tag, p->key, p->nonce, nonce_size, p->associated_data,
                             p->associated_len, p->data, p->len);
}

void chapoly_aead_many_by_lanes(const chapoly_kernel *kernel, chapoly_packet packets[], size_t count,
                                size_t nonce_size, bool decrypting)
{
    size_t blocks, most = 0;
    window w;

    for (size_t n; count > 0; packets += n, count -= n) {
        n = window_size(packets, count, &blocks);
        if (n == 1) { /* no company */
            alone(kernel, packets, nonce_size, decrypting);
            continue;
        }
        make_keystreams(kernel, &w, packets, n, nonce_size);
        const uint8_t *keystream = w.keystream;
        for (size_t i = 0; i < n; i++) {
            (decrypting ? decrypt_one : encrypt_one)(kernel, &packets[i], keystream);
            keystream += blocks_of(&packets[i]) * CHAPOLY_BLOCK_SIZE;
        }
        most = blocks > most ? blocks : most;
    }
    if (most > 0)
        chapoly_wipe(&w, sizeof w - sizeof w.keystream + (most + kernel->lanes) * CHAPOLY_BLOCK_SIZE);
}

/* How many packets from here on are taken together. One that fills the lanes by itself is better off alone. */
static size_t together(const chapoly_kernel *kernel, const chapoly_packet *packets, size_t count)
{
    const size_t longest = (kernel->lanes - 1) * CHAPOLY_BLOCK_SIZE;
    size_t n = 0;

    while (n < count && n < CHAPOLY_MANY_MAX && packets[n].len <= longest &&
           packets[n].associated_len <= CHAPOLY_MANY_ASSOCIATED)
        n++;
    return n;
}

static enum chapoly_status each(const chapoly_kernel *kernel, chapoly_packet *packets, size_t count, size_t nonce_size,
                                bool decrypting)
{
    size_t n = together(kernel, packets, count);

    for (size_t i = n; i < count; i++) {
        const uint64_t len = packets[i].len; /* where size_t has 32 bits, compilers warn of a comparison with it */
        if (len > CHAPOLY_AEAD_MAX)
            return CHAPOLY_COUNTER_OVERFLOW;
    }
    for (; count > 0; packets += n, count -= n, n = together(kernel, packets, count)) {
        if (n < 2) { /* a long one, or one with no company */
            n = 1;
            alone(kernel, packets, nonce_size, decrypting);
        } else {
            kernel->aead_many(kernel, packets, n, nonce_size, decrypting);
        }
    }
    return CHAPOLY_OK;
}

enum chapoly_status chapoly_aead_encrypt_many(const chapoly_kernel *kernel, chapoly_packet *packets, size_t count,
                                              size_t nonce_size)
{
    return each(kernel, packets, count, nonce_size, false);
}

enum chapoly_status chapoly_aead_decrypt_many(const chapoly_kernel *kernel, chapoly_packet *packets, size_t count,
                                              size_t nonce_size)
{
    return each(kernel, packets, count, nonce_size, true);
}
