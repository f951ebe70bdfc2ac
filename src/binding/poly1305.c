/*
 * The functions of chapoly.poly1305, and Poly1305 for a message in parts.
 */
#include "binding.h"

static PyObject *mac(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"mac", {"key", "message"}, 2, 2, 2};
    const module_state *state = PyModule_GetState(module);
    PyObject *values[2], *result = NULL;
    buffer key, message;
    uint8_t *tag;

    NO_BUFFER(key), NO_BUFFER(message);
    if (parse(&s, NULL, args, count, keywords, values) &&
        acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        acquire(&message, values[1], "message") && (result = new_tag(state, &tag)) != NULL)
        RELEASING_GIL(message.size, chapoly_poly1305_mac(chapoly_kernel_chosen(), tag, key.bytes, message.bytes,
                                                         message.size));
    release(&key), release(&message);
    return result;
}

static PyObject *verify(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"verify", {"key", "message", "tag"}, 3, 3, 3};
    const module_state *state = PyModule_GetState(module);
    PyObject *values[3], *result = NULL;
    buffer key, message, tag;
    uint8_t expected[16];

    NO_BUFFER(key), NO_BUFFER(message), NO_BUFFER(tag);
    if (parse(&s, NULL, args, count, keywords, values) &&
        acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        acquire(&message, values[1], "message") &&
        acquire_exactly(&tag, values[2], "tag", CHAPOLY_TAG_SIZE, state->invalid_tag)) {
        RELEASING_GIL(message.size, chapoly_poly1305_mac(chapoly_kernel_chosen(), expected, key.bytes, message.bytes,
                                                         message.size));
        if (chapoly_tag_equal(tag.bytes, expected))
            result = Py_NewRef(Py_None);
        else
            PyErr_SetString(state->invalid_tag, "tag does not match");
        chapoly_wipe(expected, sizeof expected);
    }
    release(&key), release(&message), release(&tag);
    return result;
}

public_function poly1305_functions[] = {
    {"poly1305_mac", "chapoly.poly1305", {"mac", FASTCALL(mac), DOC_poly1305_mac}},
    {"poly1305_verify", "chapoly.poly1305", {"verify", FASTCALL(verify), DOC_poly1305_verify}},
    {NULL, NULL, {NULL, NULL, 0, NULL}},
};

/* ---- A message in parts. ---- */

typedef struct {
    parts_object parts;
    struct {
        chapoly_poly1305 state;
        uint8_t tag[CHAPOLY_TAG_SIZE]; /* once digest() has ended the message */
    } secrets;
    bool digested;
} mac_object;

static const parts_kind kind = {
    "MAC", offsetof(mac_object, secrets), sizeof(((mac_object *)NULL)->secrets), NULL, NULL, false,
};

static PyObject *mac_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const signature s = {"__new__", {"key"}, 1, 1, 1};
    const module_state *state = PyType_GetModuleState(type);
    PyObject *values[1];
    mac_object *self = NULL;
    buffer key;

    NO_BUFFER(key);
    if (!parse_constructor(&s, type, args, keywords, values))
        return NULL;
    if (acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        (self = (mac_object *)new_parts(type, &kind, chapoly_kernel_chosen())) != NULL)
        chapoly_poly1305_init(&self->secrets.state, key.bytes);
    release(&key);
    drop_values(&s, values);
    return (PyObject *)self;
}

static PyObject *mac_update(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"update", {"data"}, 1, 1, 1};
    mac_object *self = (mac_object *)object;
    PyObject *values[1], *result = NULL;
    buffer data;

    NO_BUFFER(data);
    if (parse(&s, Py_TYPE(object), args, count, keywords, values) && acquire(&data, values[0], "data") &&
        claim(&self->parts)) {
        RELEASING_GIL(data.size, chapoly_poly1305_update(self->parts.kernel, &self->secrets.state, data.bytes,
                                                         data.size));
        unclaim(&self->parts);
        result = Py_NewRef(Py_None);
    }
    release(&data);
    return result;
}

static PyObject *mac_finalize(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"finalize", {NULL}, 0, 0, 0};
    mac_object *self = (mac_object *)object;
    PyObject *values[1], *result = NULL;
    uint8_t *tag;

    if (parse(&s, Py_TYPE(object), args, count, keywords, values) && claim(&self->parts)) {
        result = new_tag(PyType_GetModuleState(Py_TYPE(object)), &tag);
        if (result != NULL) {
            chapoly_poly1305_finish(self->parts.kernel, &self->secrets.state, tag);
            close_parts(&self->parts);
        }
        unclaim(&self->parts);
    }
    return result;
}

static PyObject *mac_verify(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"verify", {"tag"}, 1, 1, 1};
    const module_state *state = PyType_GetModuleState(Py_TYPE(object));
    mac_object *self = (mac_object *)object;
    PyObject *values[1], *result = NULL;
    buffer tag;

    NO_BUFFER(tag);
    if (parse(&s, Py_TYPE(object), args, count, keywords, values) &&
        acquire_exactly(&tag, values[0], "tag", CHAPOLY_TAG_SIZE, state->invalid_tag) && claim(&self->parts)) {
        chapoly_poly1305_finish(self->parts.kernel, &self->secrets.state, self->secrets.tag);
        if (chapoly_tag_equal(tag.bytes, self->secrets.tag))
            result = Py_NewRef(Py_None);
        else
            PyErr_SetString(state->invalid_tag, "tag does not match");
        close_parts(&self->parts);
        unclaim(&self->parts);
    }
    release(&tag);
    return result;
}

/* Copies the tag, which stays in the object; the first time it ends the message. */
static bool take_digest(PyObject *object, uint8_t tag[CHAPOLY_TAG_SIZE])
{
    mac_object *self = (mac_object *)object;
    bool ok;

    if (!claim_even_closed(&self->parts))
        return false;
    ok = self->digested || must_be_open(&self->parts);
    if (ok && !self->digested) {
        chapoly_poly1305_finish(self->parts.kernel, &self->secrets.state, self->secrets.tag);
        self->parts.closed = self->digested = true;
    }
    memcpy(tag, self->secrets.tag, CHAPOLY_TAG_SIZE);
    unclaim(&self->parts);
    return ok;
}

static PyObject *mac_digest(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"digest", {NULL}, 0, 0, 0};
    PyObject *values[1], *result = NULL;
    uint8_t *tag;

    if (parse(&s, Py_TYPE(object), args, count, keywords, values) &&
        (result = new_tag(PyType_GetModuleState(Py_TYPE(object)), &tag)) != NULL && !take_digest(object, tag))
        Py_CLEAR(result);
    return result;
}

static PyObject *mac_hexdigest(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"hexdigest", {NULL}, 0, 0, 0};
    PyObject *values[1], *result = NULL;
    uint8_t tag[CHAPOLY_TAG_SIZE];
    char hex[2 * CHAPOLY_TAG_SIZE + 1];

    if (parse(&s, Py_TYPE(object), args, count, keywords, values) && take_digest(object, tag)) {
        tag_to_hex(hex, tag);
        result = PyUnicode_FromString(hex);
    }
    return result;
}

static PyMethodDef mac_methods[] = {
    {"update", FASTCALL(mac_update), DOC_Poly1305_update},
    {"finalize", FASTCALL(mac_finalize), DOC_Poly1305_finalize},
    {"verify", FASTCALL(mac_verify), DOC_Poly1305_verify},
    {"digest", FASTCALL(mac_digest), DOC_Poly1305_digest},
    {"hexdigest", FASTCALL(mac_hexdigest), DOC_Poly1305_hexdigest},
    REFUSE_PICKLE,
    {NULL, NULL, 0, NULL},
};

static PyType_Slot mac_slots[] = {
    {Py_tp_doc, (void *)DOC_Poly1305},
    {Py_tp_new, mac_new},
    {Py_tp_dealloc, parts_dealloc},
    {Py_tp_methods, mac_methods},
    {0, NULL},
};

PyType_Spec poly1305_spec = {
    .name = "chapoly.Poly1305",
    .basicsize = sizeof(mac_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = mac_slots,
};
