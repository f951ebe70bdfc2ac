/*
 * ChaCha20-Poly1305 and XChaCha20-Poly1305: the key types, and the functions for those with a new key each time.
 * The two differ in the size of the nonce.
 */
#include "binding.h"

/* The nonce, the data and the associated data of one message. */
static PyObject *encrypt(const module_state *state, const chapoly_kernel *kernel, const uint8_t *key,
                         size_t nonce_size, PyObject *const values[3])
{
    PyObject *result = NULL;
    buffer nonce, data, associated;
    uint8_t *out;

    NO_BUFFER(nonce), NO_BUFFER(data), NO_BUFFER(associated);
    associated.bytes = NULL, associated.size = 0;
    if (!acquire_exactly(&nonce, values[0], "nonce", nonce_size, state->invalid_nonce) ||
        !acquire(&data, values[1], "data"))
        goto done;
    if (data.size > CHAPOLY_AEAD_MAX) {
        raise_too_long(state, "data", CHAPOLY_AEAD_MAX, data.size);
        goto done;
    }
    if (values[2] != NULL && values[2] != Py_None && !acquire(&associated, values[2], "associated_data"))
        goto done;
    result = new_bytes(data.size + CHAPOLY_TAG_SIZE, &out);
    if (result != NULL)
        RELEASING_GIL(data.size + associated.size,
                      chapoly_aead_encrypt(kernel, out, out + data.size, key, nonce.bytes, nonce_size,
                                           associated.bytes, associated.size, data.bytes, data.size));
done:
    release(&nonce), release(&data), release(&associated);
    return result;
}

static PyObject *decrypt(const module_state *state, const chapoly_kernel *kernel, const uint8_t *key,
                         size_t nonce_size, PyObject *const values[3])
{
    PyObject *result = NULL;
    buffer nonce, data, associated;
    uint8_t *out;

    NO_BUFFER(nonce), NO_BUFFER(data), NO_BUFFER(associated);
    associated.bytes = NULL, associated.size = 0;
    if (!acquire_exactly(&nonce, values[0], "nonce", nonce_size, state->invalid_nonce) ||
        !acquire(&data, values[1], "data"))
        goto done;
    if (data.size > CHAPOLY_AEAD_MAX + CHAPOLY_TAG_SIZE) {
        raise_too_long(state, "data", CHAPOLY_AEAD_MAX + CHAPOLY_TAG_SIZE, data.size);
        goto done;
    }
    if (data.size < CHAPOLY_TAG_SIZE) {
        PyErr_Format(state->invalid_tag, "data must be at least %d bytes, got %zu", CHAPOLY_TAG_SIZE, data.size);
        goto done;
    }
    if (values[2] != NULL && values[2] != Py_None && !acquire(&associated, values[2], "associated_data"))
        goto done;
    result = new_bytes(data.size - CHAPOLY_TAG_SIZE, &out);
    if (result != NULL) {
        const size_t size = data.size - CHAPOLY_TAG_SIZE;
        enum chapoly_status status;
        RELEASING_GIL(data.size + associated.size,
                      status = chapoly_aead_decrypt(kernel, out, data.bytes + size, key, nonce.bytes, nonce_size,
                                                    associated.bytes, associated.size, data.bytes, size));
        if (status != CHAPOLY_OK) { /* then chapoly_aead_decrypt has zeroed the result */
            PyErr_SetString(state->invalid_tag, "tag does not match");
            Py_CLEAR(result);
        }
    }
done:
    release(&nonce), release(&data), release(&associated);
    return result;
}

typedef PyObject *direction(const module_state *, const chapoly_kernel *, const uint8_t *, size_t,
                            PyObject *const values[3]);

/* ---- The key types. ---- */

static PyObject *key_new(PyTypeObject *type, PyObject *args, PyObject *keywords, size_t nonce_size)
{
    static const signature s = {"__new__", {"key"}, 1, 1, 1};
    const module_state *state = PyType_GetModuleState(type);
    PyObject *values[1];
    key_object *self;
    buffer key;

    NO_BUFFER(key);
    if (!parse_constructor(&s, type, args, keywords, values) ||
        !acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key))
        return NULL;
    self = (key_object *)PyType_GenericAlloc(type, 0);
    if (self != NULL) {
        self->kernel = chapoly_kernel_chosen();
        self->nonce_size = nonce_size;
        memcpy(self->key, key.bytes, CHAPOLY_KEY_SIZE);
    }
    release(&key);
    return (PyObject *)self;
}

static PyObject *chacha20poly1305_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return key_new(type, args, keywords, CHAPOLY_NONCE_SIZE);
}

static PyObject *xchacha20poly1305_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return key_new(type, args, keywords, CHAPOLY_XNONCE_SIZE);
}

static void key_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    chapoly_wipe(((key_object *)self)->key, CHAPOLY_KEY_SIZE);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *key_call(PyObject *object, const signature *s, direction *work, PyObject *const *args,
                          Py_ssize_t count, PyObject *keywords)
{
    const key_object *self = (const key_object *)object;
    PyObject *values[3];

    if (!parse(s, Py_TYPE(object), args, count, keywords, values))
        return NULL;
    return work(PyType_GetModuleState(Py_TYPE(object)), self->kernel, self->key, self->nonce_size, values);
}

static PyObject *key_encrypt(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"encrypt", {"nonce", "data", "associated_data"}, 2, 3, 3};
    return key_call(self, &s, encrypt, args, count, keywords);
}

static PyObject *key_decrypt(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"decrypt", {"nonce", "data", "associated_data"}, 2, 3, 3};
    return key_call(self, &s, decrypt, args, count, keywords);
}

/* A static method without parameters: `size` bytes from os.urandom, the interpreter's own source. */
static PyObject *random_bytes(const signature *s, int size, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords)
{
    PyObject *values[1], *os, *result;

    if (!parse(s, NULL, args, count, keywords, values))
        return NULL;
    os = PyImport_ImportModule("os");
    result = os != NULL ? PyObject_CallMethod(os, "urandom", "i", size) : NULL;
    Py_XDECREF(os);
    return result;
}

#define RANDOM(function, name, size)                                                                                 \
    static PyObject *function(PyObject *unused, PyObject *const *args, Py_ssize_t count, PyObject *keywords)         \
    {                                                                                                                \
        static const signature s = {name, {NULL}, 0, 0, 0};                                                          \
        (void)unused;                                                                                                \
        return random_bytes(&s, size, args, count, keywords);                                                        \
    }

RANDOM(chacha20poly1305_generate_key, "ChaCha20Poly1305.generate_key", CHAPOLY_KEY_SIZE)
RANDOM(xchacha20poly1305_generate_key, "XChaCha20Poly1305.generate_key", CHAPOLY_KEY_SIZE)
RANDOM(xchacha20poly1305_generate_nonce, "XChaCha20Poly1305.generate_nonce", CHAPOLY_XNONCE_SIZE)

static PyMethodDef chacha20poly1305_methods[] = {
    {"encrypt", FASTCALL(key_encrypt), DOC_ChaCha20Poly1305_encrypt},
    {"decrypt", FASTCALL(key_decrypt), DOC_ChaCha20Poly1305_decrypt},
    {"encrypt_many", FASTCALL(key_encrypt_many), DOC_ChaCha20Poly1305_encrypt_many},
    {"decrypt_many", FASTCALL(key_decrypt_many), DOC_ChaCha20Poly1305_decrypt_many},
    {"encrypt_packed", FASTCALL(key_encrypt_packed), DOC_ChaCha20Poly1305_encrypt_packed},
    {"decrypt_packed", FASTCALL(key_decrypt_packed), DOC_ChaCha20Poly1305_decrypt_packed},
    {"generate_key", FASTCALL(chacha20poly1305_generate_key) | METH_STATIC, DOC_ChaCha20Poly1305_generate_key},
    {"__reduce__", refuse_pickle, METH_NOARGS, NULL},
    {"__getstate__", refuse_pickle, METH_NOARGS, NULL},
    {"__reduce_ex__", refuse_pickle, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef xchacha20poly1305_methods[] = {
    {"encrypt", FASTCALL(key_encrypt), DOC_XChaCha20Poly1305_encrypt},
    {"decrypt", FASTCALL(key_decrypt), DOC_XChaCha20Poly1305_decrypt},
    {"encrypt_many", FASTCALL(key_encrypt_many), DOC_XChaCha20Poly1305_encrypt_many},
    {"decrypt_many", FASTCALL(key_decrypt_many), DOC_XChaCha20Poly1305_decrypt_many},
    {"encrypt_packed", FASTCALL(key_encrypt_packed), DOC_XChaCha20Poly1305_encrypt_packed},
    {"decrypt_packed", FASTCALL(key_decrypt_packed), DOC_XChaCha20Poly1305_decrypt_packed},
    {"generate_key", FASTCALL(xchacha20poly1305_generate_key) | METH_STATIC, DOC_XChaCha20Poly1305_generate_key},
    {"generate_nonce", FASTCALL(xchacha20poly1305_generate_nonce) | METH_STATIC,
     DOC_XChaCha20Poly1305_generate_nonce},
    {"__reduce__", refuse_pickle, METH_NOARGS, NULL},
    {"__getstate__", refuse_pickle, METH_NOARGS, NULL},
    {"__reduce_ex__", refuse_pickle, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot chacha20poly1305_slots[] = {
    {Py_tp_doc, (void *)DOC_ChaCha20Poly1305},
    {Py_tp_new, chacha20poly1305_new},
    {Py_tp_dealloc, key_dealloc},
    {Py_tp_methods, chacha20poly1305_methods},
    {0, NULL},
};

static PyType_Slot xchacha20poly1305_slots[] = {
    {Py_tp_doc, (void *)DOC_XChaCha20Poly1305},
    {Py_tp_new, xchacha20poly1305_new},
    {Py_tp_dealloc, key_dealloc},
    {Py_tp_methods, xchacha20poly1305_methods},
    {0, NULL},
};

PyType_Spec chacha20poly1305_spec = {
    .name = "chapoly.ChaCha20Poly1305",
    .basicsize = sizeof(key_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = chacha20poly1305_slots,
};

PyType_Spec xchacha20poly1305_spec = {
    .name = "chapoly.XChaCha20Poly1305",
    .basicsize = sizeof(key_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = xchacha20poly1305_slots,
};

/* ---- The functions. ---- */

static PyObject *with_key(PyObject *module, const signature *s, size_t nonce_size, direction *work,
                          PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    const module_state *state = PyModule_GetState(module);
    PyObject *values[4], *result;
    buffer key;

    NO_BUFFER(key);
    if (!parse(s, NULL, args, count, keywords, values) ||
        !acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key))
        return NULL;
    result = work(state, chapoly_kernel_chosen(), key.bytes, nonce_size, values + 1);
    release(&key);
    return result;
}

static const signature encrypt_signature = {"encrypt", {"key", "nonce", "data", "associated_data"}, 3, 4, 4};
static const signature decrypt_signature = {"decrypt", {"key", "nonce", "data", "associated_data"}, 3, 4, 4};

static PyObject *chacha20poly1305_encrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                          PyObject *keywords)
{
    return with_key(module, &encrypt_signature, CHAPOLY_NONCE_SIZE, encrypt, args, count, keywords);
}

static PyObject *chacha20poly1305_decrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                          PyObject *keywords)
{
    return with_key(module, &decrypt_signature, CHAPOLY_NONCE_SIZE, decrypt, args, count, keywords);
}

static PyObject *xchacha20poly1305_encrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                           PyObject *keywords)
{
    return with_key(module, &encrypt_signature, CHAPOLY_XNONCE_SIZE, encrypt, args, count, keywords);
}

static PyObject *xchacha20poly1305_decrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                           PyObject *keywords)
{
    return with_key(module, &decrypt_signature, CHAPOLY_XNONCE_SIZE, decrypt, args, count, keywords);
}

public_function aead_functions[] = {
    {"chacha20poly1305_encrypt",
     "chapoly.chacha20poly1305",
     {"encrypt", FASTCALL(chacha20poly1305_encrypt), DOC_chacha20poly1305_encrypt}},
    {"chacha20poly1305_decrypt",
     "chapoly.chacha20poly1305",
     {"decrypt", FASTCALL(chacha20poly1305_decrypt), DOC_chacha20poly1305_decrypt}},
    {"xchacha20poly1305_encrypt",
     "chapoly.xchacha20poly1305",
     {"encrypt", FASTCALL(xchacha20poly1305_encrypt), DOC_xchacha20poly1305_encrypt}},
    {"xchacha20poly1305_decrypt",
     "chapoly.xchacha20poly1305",
     {"decrypt", FASTCALL(xchacha20poly1305_decrypt), DOC_xchacha20poly1305_decrypt}},
    {NULL, NULL, {NULL, NULL, 0, NULL}},
};
