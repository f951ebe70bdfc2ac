/*
 * Encryptor and UnverifiedDecryptor: the AEAD for a message in parts, of either size of nonce.
 */
#include "binding.h"

typedef struct {
    parts_object parts;
    chapoly_message message;
    bool verified;
} message_object;

static uint64_t left(const parts_object *parts)
{
    return chapoly_message_left(&((const message_object *)parts)->message);
}

static void encrypt_part(parts_object *parts, uint8_t *out, const uint8_t *data, size_t size, size_t threads)
{
    chapoly_message *message = &((message_object *)parts)->message;

    (void)threads;
    RELEASING_GIL(size, chapoly_message_encrypt(parts->kernel, message, out, data, size));
}

static void decrypt_part(parts_object *parts, uint8_t *out, const uint8_t *data, size_t size, size_t threads)
{
    chapoly_message *message = &((message_object *)parts)->message;

    (void)threads;
    RELEASING_GIL(size, chapoly_message_decrypt(parts->kernel, message, out, data, size));
}

static const parts_kind encryptor = {
    "encryptor", offsetof(message_object, message), sizeof(chapoly_message), left, encrypt_part, false,
};
static const parts_kind decryptor = {
    "decryptor", offsetof(message_object, message), sizeof(chapoly_message), left, decrypt_part, false,
};

static PyObject *begin(PyTypeObject *type, const parts_kind *kind, const chapoly_kernel *kernel, const uint8_t *key,
                       const uint8_t *nonce, size_t nonce_size, const buffer *associated)
{
    message_object *self = (message_object *)new_parts(type, kind, kernel);

    if (self != NULL)
        RELEASING_GIL(associated->size, chapoly_message_init(kernel, &self->message, key, nonce, nonce_size,
                                                             associated->bytes, associated->size));
    return (PyObject *)self;
}

PyObject *new_encryptor(const module_state *state, const chapoly_kernel *kernel, const uint8_t *key,
                        const uint8_t *nonce, size_t nonce_size, const buffer *associated)
{
    return begin(state->encryptor, &encryptor, kernel, key, nonce, nonce_size, associated);
}

PyObject *new_unverified_decryptor(const module_state *state, const chapoly_kernel *kernel, const uint8_t *key,
                                   const uint8_t *nonce, size_t nonce_size, const buffer *associated)
{
    return begin(state->unverified_decryptor, &decryptor, kernel, key, nonce, nonce_size, associated);
}

/* Only the methods of keys make these objects. */
static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const signature s = {"__new__", {NULL}, 0, 0, 0};
    PyObject *values[1], *name;

    if (!parse_constructor(&s, type, args, keywords, values))
        return NULL;
    drop_values(&s, values);
    name = PyType_GetName(type);
    if (name != NULL) {
        PyErr_Format(PyExc_TypeError, "cannot create 'chapoly.%U' instances", name);
        Py_DECREF(name);
    }
    return NULL;
}

static PyObject *encryptor_finalize(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"finalize", {NULL}, 0, 0, 0};
    message_object *self = (message_object *)object;
    PyObject *values[1], *result = NULL;
    uint8_t *tag;

    if (parse(&s, Py_TYPE(object), args, count, keywords, values) && claim(&self->parts)) {
        result = new_tag(PyType_GetModuleState(Py_TYPE(object)), &tag);
        if (result != NULL) {
            chapoly_message_finish(self->parts.kernel, &self->message, tag);
            close_parts(&self->parts);
        }
        unclaim(&self->parts);
    }
    return result;
}

static PyObject *decryptor_verify(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"verify", {"tag"}, 1, 1, 1};
    const module_state *state = PyType_GetModuleState(Py_TYPE(object));
    message_object *self = (message_object *)object;
    PyObject *values[1], *result = NULL;
    uint8_t expected[CHAPOLY_TAG_SIZE];
    buffer tag;

    NO_BUFFER(tag);
    if (parse(&s, Py_TYPE(object), args, count, keywords, values) &&
        acquire_exactly(&tag, values[0], "tag", CHAPOLY_TAG_SIZE, state->invalid_tag) && claim(&self->parts)) {
        chapoly_message_finish(self->parts.kernel, &self->message, expected);
        self->verified = chapoly_tag_equal(tag.bytes, expected);
        chapoly_wipe(expected, sizeof expected);
        close_parts(&self->parts);
        if (self->verified)
            result = Py_NewRef(Py_None);
        else
            PyErr_SetString(state->invalid_tag, "tag does not match");
        unclaim(&self->parts);
    }
    release(&tag);
    return result;
}

/* __exit__(type, value, traceback): type is None if no exception is on its way. */
static PyObject *decryptor_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    const module_state *state = PyType_GetModuleState(Py_TYPE(object));
    PyObject *result = parts_exit(object, args, count);

    if (result != NULL && !((message_object *)object)->verified && (count == 0 || args[0] == Py_None)) {
        PyErr_SetString(state->invalid_tag, "the with block ended without a successful verify()");
        Py_CLEAR(result);
    }
    return result;
}

/*
 * Called before the memory goes, or by hand. The warning may be an error, which nobody can catch here, and may keep the
 * object: it is closed by then. An exception that is on its way stays.
 */
static void decryptor_finalize(PyObject *object)
{
    message_object *self = (message_object *)object;
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (!claim_even_closed(&self->parts)) {
        PyErr_Clear();
    } else {
        const bool dropped = !self->parts.closed;
        close_parts(&self->parts);
        unclaim(&self->parts);
        if (dropped && PyErr_ResourceWarning(object, 1, "an UnverifiedDecryptor was dropped without verify(): "
                                                        "nobody has vouched for its plaintext") < 0)
            PyErr_WriteUnraisable(object);
    }
    PyErr_Restore(type, value, traceback);
}

/* ---- The types. ---- */

static PyMethodDef encryptor_methods[] = {
    {"update", FASTCALL(parts_update), DOC_Encryptor_update},
    {"update_into", FASTCALL(parts_update_into), DOC_Encryptor_update_into},
    {"finalize", FASTCALL(encryptor_finalize), DOC_Encryptor_finalize},
    {"__enter__", parts_enter, METH_NOARGS, DOC_Encryptor___enter__},
    {"__exit__", METHOD_EXIT(parts_exit), DOC_Encryptor___exit__},
    REFUSE_PICKLE,
    {NULL, NULL, 0, NULL},
};

static PyMethodDef decryptor_methods[] = {
    {"update", FASTCALL(parts_update), DOC_UnverifiedDecryptor_update},
    {"update_into", FASTCALL(parts_update_into), DOC_UnverifiedDecryptor_update_into},
    {"verify", FASTCALL(decryptor_verify), DOC_UnverifiedDecryptor_verify},
    {"__enter__", parts_enter, METH_NOARGS, DOC_UnverifiedDecryptor___enter__},
    {"__exit__", METHOD_EXIT(decryptor_exit), DOC_UnverifiedDecryptor___exit__},
    REFUSE_PICKLE,
    {NULL, NULL, 0, NULL},
};

static PyType_Slot encryptor_slots[] = {
    {Py_tp_doc, (void *)DOC_Encryptor},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, parts_dealloc},
    {Py_tp_methods, encryptor_methods},
    {0, NULL},
};

static PyType_Slot decryptor_slots[] = {
    {Py_tp_doc, (void *)DOC_UnverifiedDecryptor},
    {Py_tp_new, refuse_new},
    {Py_tp_finalize, decryptor_finalize}, /* CPython's own tp_dealloc calls it, and lets it keep the object */
    {Py_tp_methods, decryptor_methods},
    {0, NULL},
};

PyType_Spec encryptor_spec = {
    .name = "chapoly.Encryptor",
    .basicsize = sizeof(message_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = encryptor_slots,
};

PyType_Spec unverified_decryptor_spec = {
    .name = "chapoly.UnverifiedDecryptor",
    .basicsize = sizeof(message_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = decryptor_slots,
};
