/*
 * What the objects that take a message in parts have in common: one call at a time, update, and the end.
 */
#include "binding.h"

parts_object *new_parts(PyTypeObject *type, const parts_kind *kind, const chapoly_kernel *kernel)
{
    parts_object *self = (parts_object *)PyType_GenericAlloc(type, 0);

    if (self != NULL) {
        self->kind = kind;
        self->kernel = kernel;
        clear_busy(&self->busy);
    }
    return self;
}

static void raise_state_error(parts_object *self, const char *format)
{
    const module_state *state = PyType_GetModuleState(Py_TYPE((PyObject *)self));

    PyErr_Format(state->state_error, format, self->kind->noun);
}

bool claim_even_closed(parts_object *self)
{
    if (!test_and_set_busy(&self->busy))
        return true;
    raise_state_error(self, "another call on this %s is in progress");
    return false;
}

bool must_be_open(parts_object *self)
{
    if (self->closed)
        raise_state_error(self, "%s is closed");
    return !self->closed;
}

bool claim(parts_object *self)
{
    if (!claim_even_closed(self))
        return false;
    if (must_be_open(self))
        return true;
    unclaim(self);
    return false;
}

void unclaim(parts_object *self)
{
    clear_busy(&self->busy);
}

void close_parts(parts_object *self)
{
    chapoly_wipe((uint8_t *)self + self->kind->secrets, self->kind->secrets_size);
    self->closed = true;
}

bool fits(parts_object *self, const char *name, size_t size)
{
    const uint64_t left = self->kind->left(self);

    if (size <= left)
        return true;
    raise_too_long(PyType_GetModuleState(Py_TYPE((PyObject *)self)), name, left, size);
    return false;
}

PyObject *parts_update(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"update", {"data"}, 1, 1, 1};
    parts_object *self = (parts_object *)object;
    PyObject *values[1], *result = NULL;
    buffer data;
    uint8_t *out;

    NO_BUFFER(data);
    if (parse(&s, Py_TYPE(object), args, count, keywords, values) && acquire(&data, values[0], "data") && claim(self)) {
        if (fits(self, "data", data.size) && (result = new_bytes(data.size, &out)) != NULL)
            self->kind->crypt(self, out, data.bytes, data.size, 1);
        unclaim(self);
    }
    release(&data);
    return result;
}

PyObject *parts_update_into(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature with_threads = {"update_into", {"data", "buf", "threads"}, 2, 2, 3};
    static const signature without = {"update_into", {"data", "buf"}, 2, 2, 2};
    parts_object *self = (parts_object *)object;
    const signature *s = self->kind->takes_threads ? &with_threads : &without;
    PyObject *values[3] = {NULL}, *result = NULL;
    buffer data, out;
    size_t threads;

    NO_BUFFER(data), NO_BUFFER(out);
    if (parse(s, Py_TYPE(object), args, count, keywords, values) && acquire(&data, values[0], "data") &&
        acquire_slowly(&out, values[1], "buf") && threads_from(&threads, values[2]) && claim(self)) {
        if (fits(self, "data", data.size) && check_output(&out, "buf", data.size) &&
            check_overlap(&out, "buf", &data, "data", true) && (result = PyLong_FromSize_t(data.size)) != NULL)
            self->kind->crypt(self, out.bytes, data.bytes, data.size, threads);
        unclaim(self);
    }
    release(&data), release(&out);
    return result;
}

PyObject *parts_enter(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (!claim((parts_object *)object))
        return NULL;
    unclaim((parts_object *)object);
    return Py_NewRef(object);
}

PyObject *parts_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    if (!claim_even_closed((parts_object *)object))
        return NULL;
    close_parts((parts_object *)object);
    unclaim((parts_object *)object);
    Py_RETURN_NONE;
}

void parts_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    close_parts((parts_object *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}
