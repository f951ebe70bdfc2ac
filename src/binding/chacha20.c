/*
 * The functions of chapoly.chacha20 and chapoly.xchacha20.
 */
#include "binding.h"

static PyObject *block(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"block", {"key", "counter", "nonce"}, 3, 3, 3};
    const module_state *state = PyModule_GetState(module);
    PyObject *values[3], *result = NULL;
    buffer key, nonce;
    uint64_t counter;
    uint8_t *out;

    NO_BUFFER(key), NO_BUFFER(nonce);
    if (parse(&s, NULL, args, count, keywords, values) &&
        acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        integer_up_to(&counter, values[1], "counter", UINT32_MAX, state->counter_overflow) &&
        acquire_exactly(&nonce, values[2], "nonce", CHAPOLY_NONCE_SIZE, state->invalid_nonce) &&
        (result = new_bytes(CHAPOLY_BLOCK_SIZE, &out)) != NULL) {
        chapoly_chacha chacha;
        chapoly_chacha20_init(&chacha, key.bytes, nonce.bytes, 20);
        memset(out, 0, CHAPOLY_BLOCK_SIZE);
        chapoly_chacha_xor(chapoly_kernel_chosen(), &chacha, counter, 0, out, out, CHAPOLY_BLOCK_SIZE);
        chapoly_wipe(&chacha, sizeof chacha);
    }
    release(&key), release(&nonce);
    return result;
}

/* chacha20.cipher and xchacha20.cipher, which differ in the size of the nonce. */
static PyObject *cipher(PyObject *module, size_t nonce_size, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords)
{
    static const signature s = {"cipher", {"key", "counter", "nonce", "data", "rounds", "out"}, 4, 4, 6};
    const module_state *state = PyModule_GetState(module);
    PyObject *values[6], *result = NULL;
    buffer key, nonce, data, out;
    uint64_t counter, left;
    unsigned rounds;

    NO_BUFFER(key), NO_BUFFER(nonce), NO_BUFFER(data), NO_BUFFER(out);
    if (!parse(&s, NULL, args, count, keywords, values) ||
        !acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) ||
        !integer_up_to(&counter, values[1], "counter", UINT32_MAX, state->counter_overflow) ||
        !acquire_exactly(&nonce, values[2], "nonce", nonce_size, state->invalid_nonce) ||
        !acquire(&data, values[3], "data"))
        goto done;
    left = CHAPOLY_BLOCK_SIZE * ((UINT64_C(1) << 32) - counter);
    if (data.size > left) {
        raise_too_long(state, "data", left, data.size);
        goto done;
    }
    if (!rounds_from(&rounds, values[4]))
        goto done;
    if (values[5] == NULL || values[5] == Py_None) {
        result = new_bytes(data.size, &out.bytes);
    } else if (acquire_slowly(&out, values[5], "out") && check_output(&out, "out", data.size) &&
               check_overlap(&out, "out", &key, "key", false) &&
               check_overlap(&out, "out", &nonce, "nonce", false) && check_overlap(&out, "out", &data, "data", true)) {
        result = PyLong_FromSize_t(data.size);
    }
    if (result != NULL) {
        const chapoly_kernel *kernel = chapoly_kernel_chosen();
        chapoly_chacha chacha;
        if (nonce_size == CHAPOLY_XNONCE_SIZE)
            chapoly_xchacha20_init(kernel, &chacha, key.bytes, nonce.bytes, rounds);
        else
            chapoly_chacha20_init(&chacha, key.bytes, nonce.bytes, rounds);
        RELEASING_GIL(data.size,
                      chapoly_chacha_xor(kernel, &chacha, counter, 0, out.bytes, data.bytes, data.size));
        chapoly_wipe(&chacha, sizeof chacha);
    }
done:
    release(&key), release(&nonce), release(&data), release(&out);
    return result;
}

static PyObject *chacha20_cipher(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return cipher(module, CHAPOLY_NONCE_SIZE, args, count, keywords);
}

static PyObject *xchacha20_cipher(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return cipher(module, CHAPOLY_XNONCE_SIZE, args, count, keywords);
}

static PyObject *hchacha20(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"hchacha20", {"key", "nonce16"}, 2, 2, 2};
    const module_state *state = PyModule_GetState(module);
    PyObject *values[2], *result = NULL;
    buffer key, nonce;
    uint8_t *subkey;

    NO_BUFFER(key), NO_BUFFER(nonce);
    if (parse(&s, NULL, args, count, keywords, values) &&
        acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        acquire_exactly(&nonce, values[1], "nonce16", CHAPOLY_HNONCE_SIZE, state->invalid_nonce) &&
        (result = new_bytes(CHAPOLY_SUBKEY_SIZE, &subkey)) != NULL)
        chapoly_hchacha20(chapoly_kernel_chosen(), subkey, key.bytes, nonce.bytes, 20);
    release(&key), release(&nonce);
    return result;
}

public_function chacha20_functions[] = {
    {"chacha20_block", "chapoly.chacha20", {"block", FASTCALL(block), DOC_chacha20_block}},
    {"chacha20_cipher", "chapoly.chacha20", {"cipher", FASTCALL(chacha20_cipher), DOC_chacha20_cipher}},
    {"chacha20_hchacha20", "chapoly.chacha20", {"hchacha20", FASTCALL(hchacha20), DOC_chacha20_hchacha20}},
    {"xchacha20_cipher", "chapoly.xchacha20", {"cipher", FASTCALL(xchacha20_cipher), DOC_xchacha20_cipher}},
    {NULL, NULL, {NULL, NULL, 0, NULL}},
};
