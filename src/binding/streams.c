/*
 * ChaCha20, XChaCha20 and ChaCha20Legacy: keystreams with a position.
 *
 * A position is a block and an offset in it, 0..63; only the very end is offset 64 of the last block.
 */
#include "binding.h"

typedef struct {
    parts_object parts;
    struct {
        chapoly_chacha chacha;
        chapoly_begun_block begun;
    } secrets;
    uint64_t block;
    unsigned offset;
} stream_object;

static uint64_t last_block(const stream_object *self)
{
    return self->secrets.chacha.wide ? UINT64_MAX : UINT32_MAX;
}

static uint64_t left(const parts_object *parts)
{
    const stream_object *self = (const stream_object *)parts;

    return chapoly_chacha_left(&self->secrets.chacha, self->block, self->offset);
}

/* Moves on by `size` bytes, no more than are left. */
static void advance(stream_object *self, size_t size)
{
    const uint64_t bytes = self->offset + (uint64_t)size; /* size < 2^63 */

    if (bytes / 64 > last_block(self) - self->block) {
        self->block = last_block(self);
        self->offset = 64;
    } else {
        self->block += bytes / 64;
        self->offset = (unsigned)(bytes % 64);
    }
}

static void xor(parts_object *parts, uint8_t *out, const uint8_t *data, size_t size, size_t threads)
{
    stream_object *self = (stream_object *)parts;

    if (size < 64 && self->offset + size <= 64)
        chapoly_chacha_xor_in_block(parts->kernel, &self->secrets.chacha, &self->secrets.begun, self->block,
                                    self->offset, out, data, size);
    else
        RELEASING_GIL(size, threads_chacha_xor(threads_for(size, threads), parts->kernel, &self->secrets.chacha,
                                               self->block, self->offset, out, data, size));
    advance(self, size);
}

static const parts_kind kind = {
    "stream", offsetof(stream_object, secrets), sizeof(((stream_object *)NULL)->secrets), left, xor, true,
};

/* 64 * blocks + offset, which can have 71 bits. */
static PyObject *bytes_in(uint64_t blocks, unsigned offset)
{
    PyObject *high = PyLong_FromUnsignedLongLong(blocks), *low = PyLong_FromUnsignedLong(offset);
    PyObject *size = PyLong_FromLong(CHAPOLY_BLOCK_SIZE), *product = NULL, *sum = NULL;

    if (high != NULL && low != NULL && size != NULL && (product = PyNumber_Multiply(high, size)) != NULL)
        sum = PyNumber_Add(product, low);
    Py_XDECREF(high);
    Py_XDECREF(low);
    Py_XDECREF(size);
    Py_XDECREF(product);
    return sum;
}

/* Raises for a number of bytes that is negative, more than are left, or more than can be. */
static void raise_wrong_size(stream_object *self, PyObject *number)
{
    PyObject *left = bytes_in(last_block(self) - self->block, 64 - self->offset), *zero = PyLong_FromLong(0);
    const module_state *state = PyType_GetModuleState(Py_TYPE((PyObject *)self));
    PyObject *got = shown(number);

    if (left != NULL && zero != NULL && got != NULL) {
        if (PyObject_RichCompareBool(number, zero, Py_LT))
            PyErr_Format(PyExc_ValueError, "n must be 0 or more, got %U", got);
        else if (PyObject_RichCompareBool(number, left, Py_GT))
            PyErr_Format(state->counter_overflow, "n must be at most %S bytes, got %U", left, got);
        else
            PyNumber_AsSsize_t(number, PyExc_OverflowError); /* raises what bytes(n) would */
    }
    Py_XDECREF(left);
    Py_XDECREF(zero);
    Py_XDECREF(got);
}

static PyObject *stream_keystream(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"keystream", {"n"}, 1, 1, 1};
    stream_object *self = (stream_object *)object;
    PyObject *values[1], *number, *result = NULL;
    uint8_t *out;

    if (!parse(&s, Py_TYPE(object), args, count, keywords, values) || (number = PyNumber_Index(values[0])) == NULL)
        return NULL;
    if (claim(&self->parts)) {
        const size_t size = PyLong_AsSize_t(number);
        if (size > PY_SSIZE_T_MAX || size > left(&self->parts)) {
            PyErr_Clear();
            raise_wrong_size(self, number);
        } else if ((result = new_bytes(size, &out)) != NULL) {
            memset(out, 0, size);
            xor(&self->parts, out, out, size, 1);
        }
        unclaim(&self->parts);
    }
    Py_DECREF(number);
    return result;
}

/*
 * The position `number`, if it is one. Byte n > 0 follows byte n - 1, which lies in block (n - 1) / 64: so the end of
 * the stream needs no arithmetic beyond 64 bits.
 */
static bool position_from(const stream_object *self, PyObject *number, uint64_t *block, unsigned *offset)
{
    PyObject *one = PyLong_FromLong(1), *six = PyLong_FromLong(6), *mask = PyLong_FromLong(63);
    PyObject *before = NULL, *high = NULL, *low = NULL;
    const int positive = one != NULL ? PyObject_IsTrue(number) : -1;
    bool ok = false;

    if (positive == 0) {
        *block = *offset = 0;
        ok = true;
    } else if (positive == 1 && six != NULL && mask != NULL && (before = PyNumber_Subtract(number, one)) != NULL &&
               (high = PyNumber_Rshift(before, six)) != NULL && (low = PyNumber_And(before, mask)) != NULL) {
        *block = PyLong_AsUnsignedLongLong(high); /* an OverflowError if it is negative or over 64 bits */
        *offset = (unsigned)PyLong_AsUnsignedLong(low) + 1;
        ok = !PyErr_Occurred() && *block <= last_block(self);
        if (ok && *offset == 64 && *block < last_block(self)) {
            *block += 1;
            *offset = 0;
        }
    }
    Py_XDECREF(one);
    Py_XDECREF(six);
    Py_XDECREF(mask);
    Py_XDECREF(before);
    Py_XDECREF(high);
    Py_XDECREF(low);
    if (!ok && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_OverflowError))) {
        const module_state *state = PyType_GetModuleState(Py_TYPE((PyObject *)self));
        PyErr_Clear();
        raise_out_of_range(state->counter_overflow, "byte", /* to 2^70 or 2^38 */
                           self->secrets.chacha.wide ? "1180591620717411303424" : "274877906944", number);
    }
    return ok;
}

static PyObject *stream_seek(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"seek", {"byte"}, 1, 1, 1};
    stream_object *self = (stream_object *)object;
    PyObject *values[1], *number, *result = NULL;
    uint64_t block;
    unsigned offset;

    if (!parse(&s, Py_TYPE(object), args, count, keywords, values) || (number = PyNumber_Index(values[0])) == NULL)
        return NULL;
    if (claim(&self->parts)) {
        if (position_from(self, number, &block, &offset)) {
            self->block = block;
            self->offset = offset;
            result = Py_NewRef(Py_None);
        }
        unclaim(&self->parts);
    }
    Py_DECREF(number);
    return result;
}

static PyObject *stream_tell(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"tell", {NULL}, 0, 0, 0};
    stream_object *self = (stream_object *)object;
    PyObject *values[1], *result = NULL;

    if (parse(&s, Py_TYPE(object), args, count, keywords, values) && claim(&self->parts)) {
        result = bytes_in(self->block, self->offset);
        unclaim(&self->parts);
    }
    return result;
}

/* ---- The types. ---- */

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *keywords, size_t nonce_size)
{
    static const signature s = {"__new__", {"key", "nonce", "counter", "rounds"}, 2, 2, 4};
    const module_state *state = PyType_GetModuleState(type);
    const uint64_t last = nonce_size == CHAPOLY_LEGACY_NONCE_SIZE ? UINT64_MAX : UINT32_MAX;
    stream_object *self = NULL;
    PyObject *values[4];
    buffer key, nonce;
    uint64_t counter = 0;
    unsigned rounds;

    NO_BUFFER(key), NO_BUFFER(nonce);
    if (!parse_constructor(&s, type, args, keywords, values))
        return NULL;
    if (acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        acquire_exactly(&nonce, values[1], "nonce", nonce_size, state->invalid_nonce) &&
        (values[2] == NULL || integer_up_to(&counter, values[2], "counter", last, state->counter_overflow)) &&
        rounds_from(&rounds, values[3]) &&
        (self = (stream_object *)new_parts(type, &kind, chapoly_kernel_chosen())) != NULL) {
        self->block = counter;
        if (nonce_size == CHAPOLY_XNONCE_SIZE)
            chapoly_xchacha20_init(self->parts.kernel, &self->secrets.chacha, key.bytes, nonce.bytes, rounds);
        else if (nonce_size == CHAPOLY_LEGACY_NONCE_SIZE)
            chapoly_chacha20_legacy_init(&self->secrets.chacha, key.bytes, nonce.bytes, rounds);
        else
            chapoly_chacha20_init(&self->secrets.chacha, key.bytes, nonce.bytes, rounds);
    }
    release(&key), release(&nonce);
    drop_values(&s, values);
    return (PyObject *)self;
}

/* One type: its name, the prefix of its functions, and the size of its nonce. */
#define STREAM_TYPE(type, prefix, nonce_size)                                                                        \
    static PyObject *prefix##_new(PyTypeObject *t, PyObject *args, PyObject *keywords)                               \
    {                                                                                                                \
        return stream_new(t, args, keywords, nonce_size);                                                            \
    }                                                                                                                \
    static PyMethodDef prefix##_methods[] = {                                                                        \
        {"update", FASTCALL(parts_update), DOC_##type##_update},                                                    \
        {"update_into", FASTCALL(parts_update_into), DOC_##type##_update_into},                                     \
        {"keystream", FASTCALL(stream_keystream), DOC_##type##_keystream},                                           \
        {"seek", FASTCALL(stream_seek), DOC_##type##_seek},                                                          \
        {"tell", FASTCALL(stream_tell), DOC_##type##_tell},                                                          \
        {"__enter__", parts_enter, METH_NOARGS, DOC_##type##___enter__},                                            \
        {"__exit__", METHOD_EXIT(parts_exit), DOC_##type##___exit__},                \
        REFUSE_PICKLE,                                                                                               \
        {NULL, NULL, 0, NULL},                                                                                       \
    };                                                                                                               \
    static PyType_Slot prefix##_slots[] = {                                                                          \
        {Py_tp_doc, (void *)DOC_##type},                                                                             \
        {Py_tp_new, prefix##_new},                                                                                   \
        {Py_tp_dealloc, parts_dealloc},                                                                             \
        {Py_tp_methods, prefix##_methods},                                                                           \
        {0, NULL},                                                                                                   \
    };                                                                                                               \
    PyType_Spec prefix##_spec = {                                                                                    \
        .name = "chapoly." #type,                                                                                    \
        .basicsize = sizeof(stream_object),                                                                          \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,                                                      \
        .slots = prefix##_slots,                                                                                     \
    }

STREAM_TYPE(ChaCha20, chacha20, CHAPOLY_NONCE_SIZE);
STREAM_TYPE(XChaCha20, xchacha20, CHAPOLY_XNONCE_SIZE);
STREAM_TYPE(ChaCha20Legacy, chacha20_legacy, CHAPOLY_LEGACY_NONCE_SIZE);
