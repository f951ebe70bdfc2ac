/*
 * ChaCha20-Poly1305 and XChaCha20-Poly1305: the key types, and the functions for those with a new key each time.
 * The two differ in the size of the nonce.
 */
#include "binding.h"

/* ---- One message: whose key, what the call was given, and where the result goes. ---- */

typedef struct {
    const module_state *state;
    const chapoly_kernel *kernel;
    const uint8_t *key;
    size_t nonce_size;
    size_t size; /* of the plaintext, and of the ciphertext without its tag */
    size_t threads; /* that may work on it */
    buffer nonce, data, tag, associated, out;
} message;

static void begin(message *m, const module_state *state, const chapoly_kernel *kernel, const uint8_t *key,
                  size_t nonce_size)
{
    m->state = state, m->kernel = kernel, m->key = key, m->nonce_size = nonce_size, m->threads = 1;
    NO_BUFFER(m->nonce), NO_BUFFER(m->data), NO_BUFFER(m->tag), NO_BUFFER(m->associated), NO_BUFFER(m->out);
}

static void end(message *m)
{
    release(&m->nonce), release(&m->data), release(&m->tag), release(&m->associated), release(&m->out);
}

/* What follows takes one argument each, and is called in the order of the parameters. */

static bool take_nonce(message *m, PyObject *object)
{
    return acquire_exactly(&m->nonce, object, "nonce", m->nonce_size, m->state->invalid_nonce);
}

/* `size` bytes are of `most` at most. */
static bool limited(const message *m, const char *name, size_t size, uint64_t most)
{
    if (size <= most)
        return true;
    raise_too_long(m->state, name, most, size);
    return false;
}

/* A plaintext, or a ciphertext without its tag. */
static bool take_data(message *m, PyObject *object)
{
    if (!acquire(&m->data, object, "data") || !limited(m, "data", m->data.size, CHAPOLY_AEAD_MAX))
        return false;
    m->size = m->data.size;
    return true;
}

/* A ciphertext and the tag behind it. */
static bool take_sealed(message *m, PyObject *object)
{
    if (!acquire(&m->data, object, "data") ||
        !limited(m, "data", m->data.size, CHAPOLY_AEAD_MAX + CHAPOLY_TAG_SIZE))
        return false;
    if (m->data.size < CHAPOLY_TAG_SIZE) {
        PyErr_Format(m->state->invalid_tag, "data must be at least %d bytes, got %zu", CHAPOLY_TAG_SIZE, m->data.size);
        return false;
    }
    m->size = m->data.size - CHAPOLY_TAG_SIZE;
    m->tag.bytes = m->data.bytes + m->size;
    return true;
}

static bool take_tag(message *m, PyObject *object)
{
    return acquire_exactly(&m->tag, object, "tag", CHAPOLY_TAG_SIZE, m->state->invalid_tag);
}

static bool take_associated(message *m, PyObject *object)
{
    if (object != NULL && object != Py_None)
        return acquire(&m->associated, object, "associated_data");
    m->associated.bytes = NULL, m->associated.size = 0;
    return true;
}

static bool take_threads(message *m, PyObject *object)
{
    return threads_from(&m->threads, object);
}

/* An output for `size` bytes; all inputs are there. */
static bool take_output(message *m, PyObject *object, size_t size)
{
    return acquire_slowly(&m->out, object, "buf") && check_output(&m->out, "buf", size) &&
           check_overlap(&m->out, "buf", &m->nonce, "nonce", false) &&
           check_overlap(&m->out, "buf", &m->data, "data", true) &&
           check_overlap(&m->out, "buf", &m->associated, "associated_data", false);
}

/* A plaintext or ciphertext that is its own output; check_in_place() follows when all arguments are there. */
static bool take_in_place(message *m, PyObject *object)
{
    if (!acquire_slowly(&m->out, object, "buf") || !check_output(&m->out, "buf", m->out.size) ||
        !limited(m, "buf", m->out.size, CHAPOLY_AEAD_MAX))
        return false;
    m->data.bytes = m->out.bytes;
    m->size = m->data.size = m->out.size;
    return true;
}

static bool check_in_place(const message *m, bool has_tag)
{
    return check_overlap(&m->out, "buf", &m->nonce, "nonce", false) &&
           (!has_tag || check_overlap(&m->out, "buf", &m->tag, "tag", false)) &&
           check_overlap(&m->out, "buf", &m->associated, "associated_data", false);
}

static void seal(const message *m, uint8_t *ciphertext, uint8_t *tag)
{
    RELEASING_GIL(m->size + m->associated.size,
                  threads_aead_encrypt(threads_for(m->size, m->threads), m->kernel, ciphertext, tag, m->key,
                                       m->nonce.bytes, m->nonce_size, m->associated.bytes, m->associated.size,
                                       m->data.bytes, m->size));
}

/* Returns `result` if the tag is right. Otherwise a plaintext that is not in place has been zeroed. */
static PyObject *unseal(const message *m, uint8_t *plaintext, PyObject *result)
{
    enum chapoly_status status;

    RELEASING_GIL(m->size + m->associated.size,
                  status = threads_aead_decrypt(threads_for(m->size, m->threads), m->kernel, plaintext, m->tag.bytes,
                                                m->key, m->nonce.bytes, m->nonce_size, m->associated.bytes,
                                                m->associated.size, m->data.bytes, m->size));
    if (status == CHAPOLY_OK)
        return result;
    PyErr_SetString(m->state->invalid_tag, "tag does not match");
    Py_DECREF(result);
    return NULL;
}

/*
 * ---- The forms of a call. What they return is made first: when memory is short, nothing has been written. ----
 * Their names begin with form_, as unistd.h may have an encrypt (musl).
 */

typedef PyObject *form(message *, PyObject *const *values);

static PyObject *form_encrypt(message *m, PyObject *const *values) /* nonce, data, associated_data, threads */
{
    PyObject *result = NULL;
    uint8_t *out;

    if (take_nonce(m, values[0]) && take_data(m, values[1]) && take_associated(m, values[2]) &&
        take_threads(m, values[3]) && (result = new_bytes(m->size + CHAPOLY_TAG_SIZE, &out)) != NULL)
        seal(m, out, out + m->size);
    return result;
}

static PyObject *form_decrypt(message *m, PyObject *const *values) /* nonce, data, associated_data, threads */
{
    PyObject *result = NULL;
    uint8_t *out;

    if (take_nonce(m, values[0]) && take_sealed(m, values[1]) && take_associated(m, values[2]) &&
        take_threads(m, values[3]) && (result = new_bytes(m->size, &out)) != NULL)
        result = unseal(m, out, result);
    return result;
}

static PyObject *form_encrypt_into(message *m, PyObject *const *values) /* nonce, data, associated_data, buf, threads */
{
    PyObject *result = NULL;

    if (take_nonce(m, values[0]) && take_data(m, values[1]) && take_associated(m, values[2]) &&
        take_output(m, values[3], m->size + CHAPOLY_TAG_SIZE) && take_threads(m, values[4]) &&
        (result = PyLong_FromSize_t(m->out.size)) != NULL)
        seal(m, m->out.bytes, m->out.bytes + m->size);
    return result;
}

static PyObject *form_decrypt_into(message *m, PyObject *const *values) /* nonce, data, associated_data, buf, threads */
{
    PyObject *result = NULL;

    if (take_nonce(m, values[0]) && take_sealed(m, values[1]) && take_associated(m, values[2]) &&
        take_output(m, values[3], m->size) && take_threads(m, values[4]) &&
        (result = PyLong_FromSize_t(m->size)) != NULL)
        result = unseal(m, m->out.bytes, result);
    return result;
}

static PyObject *form_encrypt_detached(message *m, PyObject *const *values) /* nonce, data, associated_data */
{
    PyObject *ciphertext = NULL, *tag = NULL, *result = NULL;
    uint8_t *out, *tag_out;

    if (take_nonce(m, values[0]) && take_data(m, values[1]) && take_associated(m, values[2]) &&
        (ciphertext = new_bytes(m->size, &out)) != NULL && (tag = new_tag(m->state, &tag_out)) != NULL &&
        (result = PyTuple_Pack(2, ciphertext, tag)) != NULL)
        seal(m, out, tag_out);
    Py_XDECREF(ciphertext);
    Py_XDECREF(tag);
    return result;
}

static PyObject *form_decrypt_detached(message *m, PyObject *const *values) /* nonce, data, tag, associated_data */
{
    PyObject *result = NULL;
    uint8_t *out;

    if (take_nonce(m, values[0]) && take_data(m, values[1]) && take_tag(m, values[2]) &&
        take_associated(m, values[3]) && (result = new_bytes(m->size, &out)) != NULL)
        result = unseal(m, out, result);
    return result;
}

static PyObject *form_encrypt_in_place(message *m, PyObject *const *values) /* nonce, buf, associated_data */
{
    PyObject *result = NULL;
    uint8_t *tag;

    if (take_nonce(m, values[0]) && take_in_place(m, values[1]) && take_associated(m, values[2]) &&
        check_in_place(m, false) && (result = new_tag(m->state, &tag)) != NULL)
        seal(m, m->out.bytes, tag);
    return result;
}

static PyObject *form_decrypt_in_place(message *m, PyObject *const *values) /* nonce, buf, tag, associated_data */
{
    if (take_nonce(m, values[0]) && take_in_place(m, values[1]) && take_tag(m, values[2]) &&
        take_associated(m, values[3]) && check_in_place(m, true))
        return unseal(m, m->out.bytes, Py_NewRef(Py_None));
    return NULL;
}

static PyObject *form_encryptor(message *m, PyObject *const *values) /* nonce, associated_data */
{
    if (take_nonce(m, values[0]) && take_associated(m, values[1]))
        return new_encryptor(m->state, m->kernel, m->key, m->nonce.bytes, m->nonce_size, &m->associated);
    return NULL;
}

static PyObject *form_unverified_decryptor(message *m, PyObject *const *values) /* nonce, associated_data */
{
    if (take_nonce(m, values[0]) && take_associated(m, values[1]))
        return new_unverified_decryptor(m->state, m->kernel, m->key, m->nonce.bytes, m->nonce_size, &m->associated);
    return NULL;
}

/* ---- The key types. ---- */

static const signature new_signature = {"__new__", {"key"}, 1, 1, 1};

static PyObject *make_key(PyTypeObject *type, PyObject *const *values, size_t nonce_size)
{
    const module_state *state = PyType_GetModuleState(type);
    key_object *self = NULL;
    buffer key;

    NO_BUFFER(key);
    if (acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        (self = (key_object *)PyType_GenericAlloc(type, 0)) != NULL) {
        self->kernel = chapoly_kernel_chosen();
        self->nonce_size = nonce_size;
        memcpy(self->key, key.bytes, CHAPOLY_KEY_SIZE);
    }
    release(&key);
    return (PyObject *)self;
}

static PyObject *key_new(PyTypeObject *type, PyObject *args, PyObject *keywords, size_t nonce_size)
{
    PyObject *values[1], *self;

    if (!parse_constructor(&new_signature, type, args, keywords, values))
        return NULL;
    self = make_key(type, values, nonce_size);
    drop_values(&new_signature, values);
    return self;
}

static PyObject *chacha20poly1305_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return key_new(type, args, keywords, CHAPOLY_NONCE_SIZE);
}

static PyObject *xchacha20poly1305_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return key_new(type, args, keywords, CHAPOLY_XNONCE_SIZE);
}

/* The same without a tuple made for the arguments: for protocols with a new key each time. */
#ifndef Py_LIMITED_API
static PyObject *key_vectorcall(PyObject *type, PyObject *const *args, size_t count, PyObject *keywords,
                                size_t nonce_size)
{
    PyObject *values[1];

    return parse(&new_signature, (PyTypeObject *)type, args, PyVectorcall_NARGS(count), keywords, values)
               ? make_key((PyTypeObject *)type, values, nonce_size)
               : NULL;
}

PyObject *chacha20poly1305_vectorcall(PyObject *type, PyObject *const *args, size_t count, PyObject *keywords)
{
    return key_vectorcall(type, args, count, keywords, CHAPOLY_NONCE_SIZE);
}

PyObject *xchacha20poly1305_vectorcall(PyObject *type, PyObject *const *args, size_t count, PyObject *keywords)
{
    return key_vectorcall(type, args, count, keywords, CHAPOLY_XNONCE_SIZE);
}
#endif

static void key_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    chapoly_wipe(((key_object *)self)->key, CHAPOLY_KEY_SIZE);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *key_call(PyObject *object, const signature *s, form *work, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    const key_object *self = (const key_object *)object;
    PyObject *values[5], *result;
    message m;

    if (!parse(s, Py_TYPE(object), args, count, keywords, values))
        return NULL;
    begin(&m, PyType_GetModuleState(Py_TYPE(object)), self->kernel, self->key, self->nonce_size);
    result = work(&m, values);
    end(&m);
    return result;
}

/* A method of the name of its form, with the names of its parameters, of which so many are required. */
#define METHOD(form, required, positional, total, ...)                                                               \
    static PyObject *key_##form(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)         \
    {                                                                                                                \
        static const signature s = {#form, {__VA_ARGS__}, required, positional, total};                              \
        return key_call(self, &s, form_##form, args, count, keywords);                                               \
    }

METHOD(encrypt, 2, 3, 4, "nonce", "data", "associated_data", "threads")
METHOD(decrypt, 2, 3, 4, "nonce", "data", "associated_data", "threads")
METHOD(encrypt_into, 4, 4, 5, "nonce", "data", "associated_data", "buf", "threads")
METHOD(decrypt_into, 4, 4, 5, "nonce", "data", "associated_data", "buf", "threads")
METHOD(encrypt_detached, 2, 3, 3, "nonce", "data", "associated_data")
METHOD(decrypt_detached, 3, 4, 4, "nonce", "data", "tag", "associated_data")
METHOD(encrypt_in_place, 2, 3, 3, "nonce", "buf", "associated_data")
METHOD(decrypt_in_place, 3, 4, 4, "nonce", "buf", "tag", "associated_data")
METHOD(encryptor, 1, 2, 2, "nonce", "associated_data")
METHOD(unverified_decryptor, 1, 2, 2, "nonce", "associated_data")

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

/* One type: its name, the prefix of its functions, and the methods that the other lacks. */
#define KEY_TYPE(type, prefix, ...)                                                                                  \
    static PyMethodDef prefix##_methods[] = {                                                                        \
        {"encrypt", FASTCALL(key_encrypt), DOC_##type##_encrypt},                                                    \
        {"decrypt", FASTCALL(key_decrypt), DOC_##type##_decrypt},                                                    \
        {"encrypt_into", FASTCALL(key_encrypt_into), DOC_##type##_encrypt_into},                                     \
        {"decrypt_into", FASTCALL(key_decrypt_into), DOC_##type##_decrypt_into},                                     \
        {"encrypt_detached", FASTCALL(key_encrypt_detached), DOC_##type##_encrypt_detached},                         \
        {"decrypt_detached", FASTCALL(key_decrypt_detached), DOC_##type##_decrypt_detached},                         \
        {"encrypt_in_place", FASTCALL(key_encrypt_in_place), DOC_##type##_encrypt_in_place},                         \
        {"decrypt_in_place", FASTCALL(key_decrypt_in_place), DOC_##type##_decrypt_in_place},                         \
        {"encryptor", FASTCALL(key_encryptor), DOC_##type##_encryptor},                                              \
        {"unverified_decryptor", FASTCALL(key_unverified_decryptor), DOC_##type##_unverified_decryptor},             \
        {"encrypt_many", FASTCALL(key_encrypt_many), DOC_##type##_encrypt_many},                                     \
        {"decrypt_many", FASTCALL(key_decrypt_many), DOC_##type##_decrypt_many},                                     \
        {"encrypt_packed", FASTCALL(key_encrypt_packed), DOC_##type##_encrypt_packed},                               \
        {"decrypt_packed", FASTCALL(key_decrypt_packed), DOC_##type##_decrypt_packed},                               \
        {"generate_key", FASTCALL(prefix##_generate_key) | METH_STATIC, DOC_##type##_generate_key},                  \
        __VA_ARGS__ REFUSE_PICKLE,                                                                                   \
        {NULL, NULL, 0, NULL},                                                                                       \
    };                                                                                                               \
    static PyType_Slot prefix##_slots[] = {                                                                          \
        {Py_tp_doc, (void *)DOC_##type},                                                                             \
        {Py_tp_new, prefix##_new},                                                                                   \
        {Py_tp_dealloc, key_dealloc},                                                                                \
        {Py_tp_methods, prefix##_methods},                                                                           \
        {0, NULL},                                                                                                   \
    };                                                                                                               \
    PyType_Spec prefix##_spec = {                                                                                    \
        .name = "chapoly." #type,                                                                                    \
        .basicsize = sizeof(key_object),                                                                             \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,                                                      \
        .slots = prefix##_slots,                                                                                     \
    }

KEY_TYPE(ChaCha20Poly1305, chacha20poly1305, );
KEY_TYPE(XChaCha20Poly1305, xchacha20poly1305,
         {"generate_nonce", FASTCALL(xchacha20poly1305_generate_nonce) | METH_STATIC,
          DOC_XChaCha20Poly1305_generate_nonce}, );

/* ---- The functions. ---- */

static PyObject *with_key(PyObject *module, const signature *s, size_t nonce_size, form *work, PyObject *const *args,
                          Py_ssize_t count, PyObject *keywords)
{
    const module_state *state = PyModule_GetState(module);
    PyObject *values[5], *result;
    message m;
    buffer key;

    NO_BUFFER(key);
    if (!parse(s, NULL, args, count, keywords, values) ||
        !acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key))
        return NULL;
    begin(&m, state, chapoly_kernel_chosen(), key.bytes, nonce_size);
    result = work(&m, values + 1);
    end(&m);
    release(&key);
    return result;
}

static const signature encrypt_signature = {"encrypt", {"key", "nonce", "data", "associated_data", "threads"}, 3, 4, 5};
static const signature decrypt_signature = {"decrypt", {"key", "nonce", "data", "associated_data", "threads"}, 3, 4, 5};

static PyObject *chacha20poly1305_encrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                          PyObject *keywords)
{
    return with_key(module, &encrypt_signature, CHAPOLY_NONCE_SIZE, form_encrypt, args, count, keywords);
}

static PyObject *chacha20poly1305_decrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                          PyObject *keywords)
{
    return with_key(module, &decrypt_signature, CHAPOLY_NONCE_SIZE, form_decrypt, args, count, keywords);
}

static PyObject *xchacha20poly1305_encrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                           PyObject *keywords)
{
    return with_key(module, &encrypt_signature, CHAPOLY_XNONCE_SIZE, form_encrypt, args, count, keywords);
}

static PyObject *xchacha20poly1305_decrypt(PyObject *module, PyObject *const *args, Py_ssize_t count,
                                           PyObject *keywords)
{
    return with_key(module, &decrypt_signature, CHAPOLY_XNONCE_SIZE, form_decrypt, args, count, keywords);
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
