/*
 * One message in several platform threads: the work is cut into as many ranges, of nearly the same size.
 */
#if !defined(_POSIX_C_SOURCE) && !defined(_DEFAULT_SOURCE)
#define _POSIX_C_SOURCE 200809L /* for the masks of signals, where C11 is strict (musl) */
#endif
#include "threads.h"

#include <string.h>

/*
 * So many bytes for each. Measured by bench/thread_threshold.py on a Zen 5 (gcc 12.2): of 512 KiB two threads make
 * avx512 slower (0.7 to 0.96 times as fast), of 1 MiB faster (1.04 to 1.2; avx2 1.5). Starting one takes 15 to 40 us.
 */
#ifndef WORTH_A_THREAD
#define WORTH_A_THREAD 524288
#endif

typedef struct work work;

/* What one thread does. */
typedef struct {
    const work *work;
    size_t at, len;          /* the bytes of the data that it takes */
    chapoly_message message; /* the same of the AEAD's message, if there is one */
} range;

/* What all have in common; it does not change while they are at work. */
struct work {
    void (*task)(range *);
    const chapoly_kernel *kernel;
    const chapoly_message *message; /* for the AEAD */
    const chapoly_chacha *chacha;   /* for the cipher alone, and where its keystream begins */
    uint64_t block;
    unsigned offset;
    uint8_t *dst;
    const uint8_t *src;
};

/* ---- Threads of the platform. ---- */

#if defined(_WIN32)
#include <windows.h>

typedef HANDLE thread;

static DWORD WINAPI run(void *r)
{
    ((range *)r)->work->task(r);
    return 0;
}

static bool start(thread *t, range *r)
{
    *t = CreateThread(NULL, 0, run, r, 0, NULL);
    return *t != NULL;
}

static void join(thread t)
{
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}

#else
#include <pthread.h>
#include <signal.h>

typedef pthread_t thread;

static void *run(void *r)
{
    ((range *)r)->work->task(r);
    return NULL;
}

/*
 * The program's signals are not for a thread that it does not know: another must be woken up by them. But those that
 * tell of a fault belong to the thread that has it, in a mapped file that was cut for instance.
 */
static bool start(thread *t, range *r)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t set, before;
    int status;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, &before);
    status = pthread_create(t, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

static void join(thread t)
{
    pthread_join(t, NULL);
}

#endif

/* Cuts `len` bytes into ranges that begin at multiples of 64, and returns when all threads have done theirs. */
static void in_ranges(const work *w, range *ranges, size_t count, size_t len)
{
    const size_t size = len / count / CHAPOLY_BLOCK_SIZE * CHAPOLY_BLOCK_SIZE;
    bool started[THREADS_MAX];
    thread threads[THREADS_MAX];

    for (size_t i = 0; i < count; i++) {
        ranges[i].work = w;
        ranges[i].at = i * size;
        ranges[i].len = i < count - 1 ? size : len - ranges[i].at;
        started[i] = i > 0 && start(&threads[i], &ranges[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (!started[i])
            w->task(&ranges[i]);
    for (size_t i = 0; i < count; i++)
        if (started[i])
            join(threads[i]);
}

/* ---- The tasks. ---- */

static void cipher_range(range *r)
{
    const work *w = r->work;
    const uint64_t start = w->offset + (uint64_t)r->at; /* from w->block on */

    chapoly_chacha_xor(w->kernel, w->chacha, w->block + start / CHAPOLY_BLOCK_SIZE,
                       (unsigned)(start % CHAPOLY_BLOCK_SIZE), w->dst + r->at, w->src + r->at, r->len);
}

static void encrypt_range(range *r)
{
    const work *w = r->work;

    chapoly_message_range(&r->message, w->message, r->at);
    chapoly_message_encrypt(w->kernel, &r->message, w->dst + r->at, w->src + r->at, r->len);
}

static void decrypt_range(range *r)
{
    const work *w = r->work;

    chapoly_message_range(&r->message, w->message, r->at);
    chapoly_message_decrypt(w->kernel, &r->message, w->dst + r->at, w->src + r->at, r->len);
}

static void authenticate_range(range *r)
{
    const work *w = r->work;

    chapoly_message_range(&r->message, w->message, r->at);
    chapoly_message_authenticate(w->kernel, &r->message, w->src + r->at, r->len);
}

/* A task for every range of a message, which has just been begun, and the tag of it all. */
static void run_to_tag(const work *w, chapoly_message *message, uint8_t tag[16], size_t threads, size_t len)
{
    range ranges[THREADS_MAX];

    in_ranges(w, ranges, threads, len);
    for (size_t i = 0; i < threads; i++)
        chapoly_message_join(message, &ranges[i].message);
    chapoly_message_finish(w->kernel, message, tag);
}

/* ---- What the binding calls. ---- */

size_t threads_for(size_t size, size_t limit)
{
    const size_t worth = size / WORTH_A_THREAD < THREADS_MAX ? size / WORTH_A_THREAD : THREADS_MAX;
    const size_t count = limit < worth ? limit : worth;

    return count > 1 ? count : 1;
}

/* Then the functions for one thread refuse. A function of its own, since size_t may have 32 bits. */
static bool too_long(uint64_t len)
{
    return len > CHAPOLY_AEAD_MAX;
}

enum chapoly_status threads_chacha_xor(size_t threads, const chapoly_kernel *kernel, const chapoly_chacha *chacha,
                                       uint64_t block, unsigned offset, uint8_t *dst, const uint8_t *src, size_t len)
{
    const work w = {.task = cipher_range, .kernel = kernel, .chacha = chacha, .block = block, .offset = offset,
                    .dst = dst, .src = src};
    range ranges[THREADS_MAX];

    if (threads == 1)
        return chapoly_chacha_xor(kernel, chacha, block, offset, dst, src, len);
    if (len > chapoly_chacha_left(chacha, block, offset))
        return CHAPOLY_COUNTER_OVERFLOW;
    in_ranges(&w, ranges, threads, len);
    return CHAPOLY_OK;
}

enum chapoly_status threads_aead_encrypt(size_t threads, const chapoly_kernel *kernel, uint8_t *ciphertext,
                                         uint8_t tag[16], const uint8_t key[32], const uint8_t *nonce,
                                         size_t nonce_size, const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *plaintext, size_t len)
{
    chapoly_message message;
    const work w = {.task = encrypt_range, .kernel = kernel, .message = &message, .dst = ciphertext, .src = plaintext};

    if (threads == 1 || too_long(len))
        return chapoly_aead_encrypt(kernel, ciphertext, tag, key, nonce, nonce_size, associated_data, associated_len,
                                    plaintext, len);
    chapoly_message_init(kernel, &message, key, nonce, nonce_size, associated_data, associated_len);
    run_to_tag(&w, &message, tag, threads, len);
    return CHAPOLY_OK;
}

enum chapoly_status threads_aead_decrypt(size_t threads, const chapoly_kernel *kernel, uint8_t *plaintext,
                                         const uint8_t tag[16], const uint8_t key[32], const uint8_t *nonce,
                                         size_t nonce_size, const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *ciphertext, size_t len)
{
    const bool in_place = plaintext == ciphertext;
    chapoly_message message;
    const work w = {.task = in_place ? authenticate_range : decrypt_range, .kernel = kernel, .message = &message,
                    .dst = plaintext, .src = ciphertext};
    chapoly_chacha chacha;
    uint8_t expected[16];
    bool valid;

    if (threads == 1 || too_long(len))
        return chapoly_aead_decrypt(kernel, plaintext, tag, key, nonce, nonce_size, associated_data, associated_len,
                                    ciphertext, len);
    chapoly_message_init(kernel, &message, key, nonce, nonce_size, associated_data, associated_len);
    chacha = message.chacha;
    run_to_tag(&w, &message, expected, threads, len);
    valid = chapoly_tag_equal(tag, expected);
    if (valid && in_place) /* only now; the data begins at block 1 */
        threads_chacha_xor(threads, kernel, &chacha, 1, 0, plaintext, ciphertext, len);
    else if (!valid && !in_place && len > 0)
        memset(plaintext, 0, len);
    chapoly_wipe(expected, sizeof expected); /* a forger must not learn the right tag from dead memory */
    chapoly_wipe(&chacha, sizeof chacha);
    return valid ? CHAPOLY_OK : CHAPOLY_INVALID_TAG;
}
