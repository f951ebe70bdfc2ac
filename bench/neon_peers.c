/*
 * Calls OpenSSL or libsodium once per size between two marks, as counts.c calls chapoly's kernels, for neon_counts.py
 * --peers: neon_peers openssl|libsodium chacha|poly1305|aead SIZE... Says their version first.
 *
 * Every call is made twice, and only the second lies between the marks: by then functions are bound, methods fetched
 * and the CPU known. Keys are set in the call, contexts are made before. What this needs of the libraries' headers is
 * declared here, so that only the libraries must be there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"

/* OpenSSL 3. */
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_mac_st EVP_MAC;
typedef struct evp_mac_ctx_st EVP_MAC_CTX;
const char *OpenSSL_version(int);
EVP_CIPHER_CTX *EVP_CIPHER_CTX_new(void);
EVP_CIPHER *EVP_CIPHER_fetch(void *, const char *, const char *);
int EVP_EncryptInit_ex(EVP_CIPHER_CTX *, const EVP_CIPHER *, void *, const uint8_t *key, const uint8_t *nonce);
int EVP_EncryptUpdate(EVP_CIPHER_CTX *, uint8_t *out, int *, const uint8_t *in, int size);
int EVP_EncryptFinal_ex(EVP_CIPHER_CTX *, uint8_t *, int *);
int EVP_CIPHER_CTX_ctrl(EVP_CIPHER_CTX *, int type, int size, void *);
EVP_MAC *EVP_MAC_fetch(void *, const char *, const char *);
EVP_MAC_CTX *EVP_MAC_CTX_new(EVP_MAC *);
int EVP_MAC_init(EVP_MAC_CTX *, const uint8_t *key, size_t, const void *);
int EVP_MAC_update(EVP_MAC_CTX *, const uint8_t *, size_t);
int EVP_MAC_final(EVP_MAC_CTX *, uint8_t *, size_t *, size_t);
enum { EVP_CTRL_AEAD_GET_TAG = 0x10 };

/* libsodium. */
int sodium_init(void);
const char *sodium_version_string(void);
int crypto_aead_chacha20poly1305_ietf_encrypt_detached(uint8_t *, uint8_t *tag, unsigned long long *, const uint8_t *,
                                                       unsigned long long, const uint8_t *associated_data,
                                                       unsigned long long, const uint8_t *, const uint8_t *nonce,
                                                       const uint8_t *key);
int crypto_stream_chacha20_ietf_xor(uint8_t *, const uint8_t *, unsigned long long, const uint8_t *nonce,
                                    const uint8_t *key);
int crypto_onetimeauth_poly1305(uint8_t *tag, const uint8_t *, unsigned long long, const uint8_t *key);

static uint8_t data[1 << 17], tag[16], key[32], nonce[16], associated_data[13];
static EVP_CIPHER_CTX *cipher;
static EVP_MAC_CTX *mac;

static int openssl_aead(size_t size)
{
    int n;

    return EVP_EncryptInit_ex(cipher, NULL, NULL, key, nonce) == 1 &&
           EVP_EncryptUpdate(cipher, NULL, &n, associated_data, sizeof associated_data) == 1 &&
           EVP_EncryptUpdate(cipher, data, &n, data, (int)size) == 1 && EVP_EncryptFinal_ex(cipher, data, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) == 1;
}

static int openssl_chacha(size_t size)
{
    int n;

    return EVP_EncryptInit_ex(cipher, NULL, NULL, key, nonce) == 1 &&
           EVP_EncryptUpdate(cipher, data, &n, data, (int)size) == 1;
}

static int openssl_poly1305(size_t size)
{
    size_t n;

    return EVP_MAC_init(mac, key, sizeof key, NULL) == 1 && EVP_MAC_update(mac, data, size) == 1 &&
           EVP_MAC_final(mac, tag, &n, sizeof tag) == 1;
}

static int libsodium_aead(size_t size)
{
    return crypto_aead_chacha20poly1305_ietf_encrypt_detached(data, tag, NULL, data, size, associated_data,
                                                              sizeof associated_data, NULL, nonce, key) == 0;
}

static int libsodium_chacha(size_t size)
{
    return crypto_stream_chacha20_ietf_xor(data, data, size, nonce, key) == 0;
}

static int libsodium_poly1305(size_t size)
{
    return crypto_onetimeauth_poly1305(tag, data, size, key) == 0;
}

int main(int argc, char **argv)
{
    int (*call)(size_t);

    if (argc < 4)
        return 2;
    const int is_aead = strcmp(argv[2], "aead") == 0, is_chacha = strcmp(argv[2], "chacha") == 0;
    if (strcmp(argv[1], "openssl") == 0) {
        puts(OpenSSL_version(0));
        cipher = EVP_CIPHER_CTX_new();
        mac = EVP_MAC_CTX_new(EVP_MAC_fetch(NULL, "POLY1305", NULL));
        EVP_EncryptInit_ex(cipher, EVP_CIPHER_fetch(NULL, is_aead ? "ChaCha20-Poly1305" : "ChaCha20", NULL), NULL, NULL,
                           NULL);
        call = is_aead ? openssl_aead : is_chacha ? openssl_chacha : openssl_poly1305;
    } else {
        printf("libsodium %s\n", sodium_version_string());
        if (sodium_init() < 0)
            return 1;
        call = is_aead ? libsodium_aead : is_chacha ? libsodium_chacha : libsodium_poly1305;
    }
    for (int i = 3; i < argc; i++) {
        const size_t size = (size_t)strtoul(argv[i], NULL, 10);
        if (!call(size))
            return 1;
        mark_begin();
        call(size);
        mark_end();
    }
    return 0;
}
