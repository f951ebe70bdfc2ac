/*
 * threads.h: chapoly.h's functions for one message, in several platform threads.
 *
 * The threads are started for the call and have ended when it returns. They touch no Python object, and this file and
 * threads.c know nothing of Python: they are called with the GIL released. What a thread that could not be started
 * should have done, the caller does. The results are the same for any number of threads.
 */
#ifndef CHAPOLY_THREADS_H
#define CHAPOLY_THREADS_H

#include "chapoly.h"

enum { THREADS_MAX = 64 };

/* How many threads are worth while for `size` bytes, if there may be `limit`, at least 1: from 1 to THREADS_MAX. */
size_t threads_for(size_t size, size_t limit);

/* As in chapoly.h, in `threads` threads, from 1 to THREADS_MAX; the caller's is one of them. */

enum chapoly_status threads_chacha_xor(size_t threads, const chapoly_kernel *, const chapoly_chacha *, uint64_t block,
                                       unsigned offset, uint8_t *dst, const uint8_t *src, size_t len);

enum chapoly_status threads_aead_encrypt(size_t threads, const chapoly_kernel *, uint8_t *ciphertext, uint8_t tag[16],
                                         const uint8_t key[32], const uint8_t *nonce, size_t nonce_size,
                                         const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *plaintext, size_t len);

enum chapoly_status threads_aead_decrypt(size_t threads, const chapoly_kernel *, uint8_t *plaintext,
                                         const uint8_t tag[16], const uint8_t key[32], const uint8_t *nonce,
                                         size_t nonce_size, const uint8_t *associated_data, size_t associated_len,
                                         const uint8_t *ciphertext, size_t len);

#endif
