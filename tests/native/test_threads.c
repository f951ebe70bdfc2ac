/*
 * Tests of one message in several threads, on every kernel that can run here: the binding's threads.c, which needs no
 * Python, with every start of a thread watched. Run them under ThreadSanitizer too (-Db_sanitize=thread).
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int watched_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int watched_join(pthread_t, void **);
#define pthread_create watched_create
#define pthread_join watched_join
#include "../../src/binding/threads.c"
#undef pthread_create
#undef pthread_join

#include "check.h"

/* ---- Threads, watched. ---- */

static uint64_t refused; /* bit i: the i-th start from now on fails */
static unsigned starts, joins;
static atomic_uint running_elsewhere, wrong_masks;
static pthread_t caller;

struct job {
    void *(*function)(void *);
    void *argument;
};

static bool is_blocked(int number)
{
    sigset_t set;

    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, number) == 1;
}

static void *watched(void *p)
{
    struct job job = *(struct job *)p;

    free(p);
    if (!pthread_equal(pthread_self(), caller))
        running_elsewhere++;
    if (!is_blocked(SIGINT) || !is_blocked(SIGALRM) || is_blocked(SIGSEGV) || is_blocked(SIGBUS))
        wrong_masks++;
    return job.function(job.argument);
}

static int watched_create(pthread_t *t, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    struct job *job;
    int status;

    if (refused >> starts++ % 64 & 1)
        return 11; /* EAGAIN on Linux */
    job = malloc(sizeof *job);
    *job = (struct job){function, argument};
    status = pthread_create(t, attributes, watched, job);
    if (status != 0)
        abort(); /* the machine is too small for the test */
    return 0;
}

static int watched_join(pthread_t t, void **result)
{
    joins++;
    return pthread_join(t, result);
}

/* Before a call: which starts will fail. After it: whether as many threads were started as wanted, and all joined. */
static void watch(uint64_t which)
{
    refused = which;
    starts = joins = 0;
    running_elsewhere = wrong_masks = 0;
    caller = pthread_self();
}

static bool watched_well(size_t threads)
{
    unsigned good = 0;

    for (size_t i = 0; i + 1 < threads; i++)
        good += !(refused >> i & 1);
    return starts == threads - 1 && joins == good && running_elsewhere == good && wrong_masks == 0 &&
           !is_blocked(SIGINT) && !is_blocked(SIGSEGV);
}

/* ---- Memory that ends where it ends. ---- */

enum { AREA = 1 << 17 };

static uint8_t *guarded_area(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, AREA + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (AREA % page != 0 || p == MAP_FAILED || mprotect(p, page, PROT_NONE) != 0 ||
        mprotect(p + page + AREA, page, PROT_NONE) != 0) {
        perror("guard pages");
        exit(2);
    }
    return p + page;
}

static uint8_t *source, *target, *expected;

static const uint8_t key[32] = {1, 2, 3}, nonce[24] = {4, 5, 6}, aad[13] = {7, 8, 9};

/* ---- The tests. ---- */

static void test_count(void)
{
    const size_t limits[] = {1, 2, 3, 8, THREADS_MAX, THREADS_MAX + 1, SIZE_MAX};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        for (size_t n = 0; n <= THREADS_MAX + 2; n++)
            for (size_t more = 0; more < WORTH_A_THREAD; more += WORTH_A_THREAD - 1) {
                size_t right = n < limits[i] ? n : limits[i];
                right = right < 1 ? 1 : right < THREADS_MAX ? right : THREADS_MAX;
                CHECK(threads_for(n * WORTH_A_THREAD + more, limits[i]) == right, "%zu and %zu bytes, up to %zu", n,
                      more, limits[i]);
            }
    CHECK(threads_for(SIZE_MAX, SIZE_MAX) == THREADS_MAX, "all there is");
}

/* Every number of threads against one; `which` starts of threads fail. */
static void compare_chacha(size_t threads, size_t len, uint64_t which, bool wide, uint64_t block, unsigned offset)
{
    uint8_t *const src = source + AREA - len, *const dst = target + AREA - len;
    chapoly_chacha chacha;

    if (wide)
        chapoly_chacha20_legacy_init(&chacha, key, nonce, 8);
    else
        chapoly_chacha20_init(&chacha, key, nonce, 20);
    chapoly_chacha_xor(kernel, &chacha, block, offset, expected, src, len);
    for (int in_place = 0; in_place < 2; in_place++) {
        memcpy(dst, src, len);
        watch(which);
        CHECK(threads_chacha_xor(threads, kernel, &chacha, block, offset, dst, in_place ? dst : src, len) ==
                  CHAPOLY_OK && memcmp(dst, expected, len) == 0,
              "ChaCha20, %zu bytes in %zu threads from %llu, %u", len, threads, (unsigned long long)block, offset);
        CHECK(watched_well(threads), "%u started, %u joined of %zu", starts, joins, threads);
    }
}

static void compare_aead(size_t threads, size_t len, uint64_t which, size_t nonce_size)
{
    uint8_t *const src = source + AREA - len, *const dst = target + AREA - len, *const cipher = expected + AREA - len;
    uint8_t whole[16], tag[16];

    chapoly_aead_encrypt(kernel, cipher, whole, key, nonce, nonce_size, aad, sizeof aad, src, len);
    for (int in_place = 0; in_place < 2; in_place++) {
        memcpy(dst, src, len);
        watch(which);
        CHECK(threads_aead_encrypt(threads, kernel, dst, tag, key, nonce, nonce_size, aad, sizeof aad,
                                   in_place ? dst : src, len) == CHAPOLY_OK && memcmp(dst, cipher, len) == 0 &&
                  memcmp(tag, whole, 16) == 0, "encrypt %zu bytes in %zu threads", len, threads);
        CHECK(watched_well(threads), "%u started, %u joined of %zu", starts, joins, threads);
    }
    memset(dst, 0xa5, len);
    watch(which);
    CHECK(threads_aead_decrypt(threads, kernel, dst, whole, key, nonce, nonce_size, aad, sizeof aad, cipher, len) ==
              CHAPOLY_OK && memcmp(dst, src, len) == 0, "decrypt %zu bytes in %zu threads", len, threads);
    CHECK(watched_well(threads), "%u started, %u joined of %zu", starts, joins, threads);
    memcpy(dst, cipher, len);
    watch(0);
    CHECK(threads_aead_decrypt(threads, kernel, dst, whole, key, nonce, nonce_size, aad, sizeof aad, dst, len) ==
              CHAPOLY_OK && memcmp(dst, src, len) == 0, "decrypt %zu bytes in %zu threads, in place", len, threads);
    CHECK(starts == 2 * (threads - 1) && joins == starts, "in place there are two rounds: %u started", starts);
}

static void test_sizes(void)
{
    static const size_t sizes[] = {0, 1, 15, 16, 63, 64, 65, 127, 128, 511, 512, 513, 1000, 4095, 20000, 65535, 100001};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t threads = 1; threads <= 8; threads++) {
            const size_t len = sizes[i] + (sizes[i] > 64 ? threads : 0); /* remainders of all kinds */
            compare_aead(threads, len, 0, threads % 2 == 0 ? 12 : 24);
            for (unsigned offset = 0; offset < 64; offset += 21)
                compare_chacha(threads, len, 0, false, 5, offset);
            compare_chacha(threads, len, 0, true, UINT32_MAX - len / 128, 63); /* the counter carries in the middle */
            compare_chacha(threads, len, 0, false, UINT32_MAX - (len + 63) / 64 + 1 - (len == 0), 0); /* to the end */
        }
    compare_aead(THREADS_MAX, AREA - 3, 0, 12);
    compare_chacha(THREADS_MAX, AREA - 3, 0, true, 0, 0);
}

/* Whichever threads do not start, what they should have done is done. */
static void test_starts_that_fail(void)
{
    for (uint64_t which = 0; which < 1 << 4; which++) {
        compare_aead(5, 5000, which, 12);
        compare_chacha(5, 5000, which, false, 0, 1);
    }
    compare_aead(THREADS_MAX, 50000, UINT64_MAX, 24);
    compare_aead(THREADS_MAX, 50000, UINT64_C(0x123456789abcdef), 24);
}

/* A flipped bit in any range, in the tag or in the associated data: nothing of the plaintext is left, and in place
   nothing is written, which read-only memory shows. */
static void test_forgeries(void)
{
    enum { LEN = 4 * 6400, THREADS = 4 };
    uint8_t tag[16], other[sizeof aad];

    chapoly_aead_encrypt(kernel, expected, tag, key, nonce, 12, aad, sizeof aad, source, LEN);
    for (size_t at = 0; at <= LEN + 16; at += at < LEN ? 1600 : 1) {
        const bool in_aad = at == LEN + 16;
        memcpy(other, aad, sizeof aad);
        uint8_t *const bit = at < LEN ? &expected[at] : in_aad ? &other[12] : &tag[at - LEN];
        *bit ^= 0x40;
        memset(target, 0xa5, LEN + 1);
        watch(0);
        CHECK(threads_aead_decrypt(THREADS, kernel, target, tag, key, nonce, 12, other, sizeof other, expected, LEN) ==
                  CHAPOLY_INVALID_TAG && all(target, LEN, 0) && target[LEN] == 0xa5, "forged at %zu", at);
        CHECK(starts == THREADS - 1, "%u started", starts);
        memcpy(target, expected, LEN);
        mprotect(target, AREA, PROT_READ);
        watch(0);
        CHECK(threads_aead_decrypt(THREADS, kernel, target, tag, key, nonce, 12, other, sizeof other, target, LEN) ==
                  CHAPOLY_INVALID_TAG && memcmp(target, expected, LEN) == 0, "forged at %zu, in place", at);
        CHECK(starts == THREADS - 1, "%u started", starts);
        mprotect(target, AREA, PROT_READ | PROT_WRITE);
        *bit ^= 0x40;
    }
}

/* Refused before a thread is started or anything is written. */
static void test_limits(void)
{
    chapoly_chacha chacha;
    uint8_t tag[16] = {0};

    watch(0);
    memset(target, 0xa5, AREA);
    chapoly_chacha20_init(&chacha, key, nonce, 20);
    CHECK(threads_chacha_xor(4, kernel, &chacha, UINT32_MAX - 99, 7, target, source, 6400 - 6) ==
              CHAPOLY_COUNTER_OVERFLOW, "one byte too many");
    if (SIZE_MAX > CHAPOLY_AEAD_MAX) {
        const size_t len = (size_t)(CHAPOLY_AEAD_MAX + 1);
        CHECK(threads_aead_encrypt(4, kernel, target, tag, key, nonce, 12, aad, 0, source, len) ==
                  CHAPOLY_COUNTER_OVERFLOW, "encrypt too much");
        CHECK(threads_aead_decrypt(4, kernel, target, tag, key, nonce, 12, aad, 0, source, len) ==
                  CHAPOLY_COUNTER_OVERFLOW, "decrypt too much");
    }
    CHECK(starts == 0 && all(target, AREA, 0xa5) && all(tag, 16, 0), "refused");
}

/* ---- One key, one stream and the choice of a kernel in many threads at once. ---- */

enum { SHARING = 8, MESSAGE = 3000 };

static chapoly_chacha shared_stream;
static atomic_uint wrong_in_threads;

/* Everything of the message at once, then the stream in pieces from a place of its own on. */
static void *use_shared(void *p)
{
    const size_t i = (size_t)(uintptr_t)p;
    uint8_t own_nonce[12] = {(uint8_t)i}, sealed[MESSAGE], opened[MESSAGE], tag[16], stream[MESSAGE];

    for (size_t turn = 0; turn < 20; turn++) {
        const size_t len = MESSAGE - 100 * turn;
        bool right = chapoly_kernel_chosen() != NULL;
        chapoly_aead_encrypt(kernel, sealed, tag, key, own_nonce, 12, aad, sizeof aad, source, len);
        right &= chapoly_aead_decrypt(kernel, opened, tag, key, own_nonce, 12, aad, sizeof aad, sealed, len) ==
                 CHAPOLY_OK;
        right &= memcmp(opened, source, len) == 0;
        for (size_t at = 0; at < MESSAGE; at += 500)
            chapoly_chacha_xor(kernel, &shared_stream, (i + at) / 64, (i + at) % 64, stream + at, source + at, 500);
        chapoly_chacha_xor(kernel, &shared_stream, i / 64, i % 64, stream, stream, MESSAGE);
        right &= memcmp(stream, source, MESSAGE) == 0;
        atomic_fetch_add(&wrong_in_threads, !right);
    }
    return NULL;
}

static void test_sharing(void)
{
    pthread_t threads[SHARING];

    chapoly_chacha20_init(&shared_stream, key, nonce, 20);
    for (size_t i = 0; i < SHARING; i++)
        CHECK(pthread_create(&threads[i], NULL, use_shared, (void *)(uintptr_t)i) == 0, "a thread did not start");
    for (size_t i = 0; i < SHARING; i++)
        CHECK(pthread_join(threads[i], NULL) == 0, "a thread did not end");
    CHECK(wrong_in_threads == 0, "%u wrong results of threads that share a key", wrong_in_threads);
}

int main(void)
{
    source = guarded_area(), target = guarded_area(), expected = guarded_area();
    for (size_t i = 0; i < AREA; i++)
        source[i] = (uint8_t)(i * i >> 7);
    test_count();
    for (size_t i = 0; chapoly_kernel_at(i) != NULL; i++) {
        kernel = chapoly_kernel_at(i);
        if (chapoly_kernel_obstacle(kernel) != NULL)
            continue;
        test_sizes();
        test_starts_that_fail();
        test_forgeries();
        test_limits();
        test_sharing();
        printf("kernel %s: %lu checks so far\n", chapoly_kernel_name(kernel), passed);
    }
    printf("%lu passed, %lu failed\n", passed, failed);
    return failed != 0;
}
