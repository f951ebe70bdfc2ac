/*
 * Tag: a final subclass of bytes, always 16 bytes, compared in constant time.
 */
#include "binding.h"

/*
 * Allocates the one result object itself: the constructor of bytes would make a second. What bytes keeps between its
 * size and its bytes (the hash, -1 until it is asked for; the limited API does not name it) is as in a fresh object.
 */
PyObject *new_tag(const module_state *state, uint8_t **tag)
{
    PyObject *self = PyType_GenericAlloc(state->tag, CHAPOLY_TAG_SIZE);

    if (self != NULL) {
        char *const bytes = PyBytes_AsString(self), *const fields = (char *)self + sizeof(PyVarObject);
        memcpy(fields, (char *)state->fresh_bytes + sizeof(PyVarObject), (size_t)(bytes - fields));
        *tag = (uint8_t *)bytes;
    }
    return self;
}

static PyObject *tag_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const signature s = {"__new__", {"tag"}, 1, 1, 1};
    const module_state *state = PyType_GetModuleState(type);
    PyObject *values[1], *self = NULL;
    buffer bytes;
    uint8_t *tag;

    NO_BUFFER(bytes);
    if (!parse_constructor(&s, type, args, keywords, values))
        return NULL;
    if (acquire_exactly(&bytes, values[0], "tag", CHAPOLY_TAG_SIZE, state->invalid_tag) &&
        (self = new_tag(state, &tag)) != NULL)
        memcpy(tag, bytes.bytes, CHAPOLY_TAG_SIZE);
    release(&bytes);
    drop_values(&s, values);
    return self;
}

/* Equality for any bytes-like operand; everything else about order is refused, since it would take time that tells. */
static PyObject *tag_richcompare(PyObject *self, PyObject *other, int operator)
{
    static const char *const names[] = {"<", "<=", "==", "!=", ">", ">="};
    const uint8_t *tag = (const uint8_t *)PyBytes_AsString(self);
    uint8_t bytes[16];
    Py_buffer view;
    bool equal = false;

    if (operator != Py_EQ && operator != Py_NE) {
        PyObject *left = PyType_GetName(Py_TYPE(self)), *right = PyType_GetName(Py_TYPE(other));
        if (left != NULL && right != NULL)
            PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%U' and '%U'", names[operator],
                         left, right);
        Py_XDECREF(left);
        Py_XDECREF(right);
        return NULL;
    }
    if (!PyObject_CheckBuffer(other))
        Py_RETURN_NOTIMPLEMENTED;
    if (PyObject_GetBuffer(other, &view, PyBUF_FULL_RO) < 0)
        return NULL;
    if (view.len == 16) {
        if (PyBuffer_ToContiguous(bytes, &view, 16, 'C') < 0) {
            PyBuffer_Release(&view);
            return NULL;
        }
        equal = chapoly_tag_equal(tag, bytes);
    }
    PyBuffer_Release(&view);
    return PyBool_FromLong(equal == (operator == Py_EQ));
}

void tag_to_hex(char hex[2 * CHAPOLY_TAG_SIZE + 1], const uint8_t tag[CHAPOLY_TAG_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < CHAPOLY_TAG_SIZE; i++) {
        hex[2 * i] = digits[tag[i] >> 4];
        hex[2 * i + 1] = digits[tag[i] & 15];
    }
    hex[2 * CHAPOLY_TAG_SIZE] = '\0';
}

static PyObject *tag_repr(PyObject *self)
{
    char hex[2 * CHAPOLY_TAG_SIZE + 1];

    tag_to_hex(hex, (const uint8_t *)PyBytes_AsString(self));
    return PyUnicode_FromFormat("Tag('%s')", hex);
}

/* bytes would pickle with protocols 0 and 1 by a way that a final type refuses. */
static PyObject *tag_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("O(y#)", Py_TYPE(self), PyBytes_AsString(self), (Py_ssize_t)16);
}

static PyMethodDef methods[] = {
    {"__reduce__", tag_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)DOC_Tag},
    {Py_tp_new, tag_new},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_richcompare, tag_richcompare},
    {Py_tp_repr, tag_repr},
    {Py_tp_str, tag_repr},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec tag_spec = {
    .name = "chapoly.Tag",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
