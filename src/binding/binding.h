/*
 * binding.h: what the files of the binding share: the module's state, arguments, buffers, numbers.
 *
 * The binding turns Python objects into pointers and lengths, checks them in the order of the parameters, calls
 * chapoly.h once, and turns what comes back into a result or an exception. It holds no cipher word.
 */
#ifndef CHAPOLY_BINDING_H
#define CHAPOLY_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <string.h>

#include "chapoly.h"
#include "docstrings.h"

typedef struct {
    PyObject *invalid_key, *invalid_nonce, *invalid_tag, *counter_overflow, *state_error; /* of chapoly.errors */
    PyTypeObject *tag;
} module_state;

/* ---- Arguments. ---- */

enum { PARAMETERS_MAX = 6 };

/* A function's parameters, the required ones first; those after `positional` are keyword-only. */
typedef struct {
    const char *name;
    const char *parameters[PARAMETERS_MAX];
    int required, positional, total;
} signature;

/* values[i] becomes argument i, borrowed, or NULL if it was not given. `owner` is the type of a method, else NULL. */
bool parse_slowly(const signature *, PyTypeObject *owner, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                  PyObject **values);

static inline bool parse(const signature *s, PyTypeObject *owner, PyObject *const *args, Py_ssize_t count,
                         PyObject *keywords, PyObject **values)
{
    if (keywords != NULL || count < s->required || count > s->positional)
        return parse_slowly(s, owner, args, count, keywords, values);
    for (Py_ssize_t i = 0; i < s->total; i++)
        values[i] = i < count ? args[i] : NULL;
    return true;
}

/* The same for a constructor, which gets a tuple and a dict. */
bool parse_constructor(const signature *, PyTypeObject *, PyObject *args, PyObject *keywords, PyObject **values);

/* ---- Buffers: any C-contiguous buffer; its size is in bytes. ---- */

/* Zero-initialise `view.obj` (NO_BUFFER) before use: release() may then be called on every path. */
typedef struct {
    uint8_t *bytes;
    size_t size;
    Py_buffer view;
} buffer;

#define NO_BUFFER(b) ((b).view.obj = NULL)

bool acquire_slowly(buffer *, PyObject *, const char *name);

/* The same for item `index` of a list, which messages call NAME[INDEX]. */
bool acquire_item_slowly(buffer *, PyObject *, const char *name, size_t index);

/* The content and the size of an object that is bytes. */
static inline uint8_t *bytes_of(PyObject *object, size_t *size)
{
#ifdef Py_LIMITED_API
    *size = (size_t)PyBytes_Size(object);
    return (uint8_t *)PyBytes_AsString(object);
#else
    *size = (size_t)PyBytes_GET_SIZE(object);
    return (uint8_t *)PyBytes_AS_STRING(object);
#endif
}

static inline bool acquire(buffer *b, PyObject *object, const char *name)
{
    if (!PyBytes_CheckExact(object))
        return acquire_slowly(b, object, name);
    b->bytes = bytes_of(object, &b->size);
    return true;
}

/* A buffer of exactly `size` bytes, else `error`. */
bool acquire_exactly(buffer *, PyObject *, const char *name, size_t size, PyObject *error);

/* A buffer to write to; one that is read-only is noticed by check_output, after a stream has been claimed. */
bool acquire_output(buffer *, PyObject *, const char *name);

/* TypeError if it is read-only, ValueError if it is not exactly that size. */
bool check_output(const buffer *, const char *name, size_t size);

/* ValueError if they share a byte, unless both start at the same address and `in_place` is true. */
bool check_overlap(const buffer *output, const char *output_name, const buffer *input, const char *input_name,
                   bool in_place);

static inline void release(buffer *b)
{
    if (b->view.obj != NULL)
        PyBuffer_Release(&b->view);
}

/*
 * Under AddressSanitizer the NUL that CPython keeps behind the bytes is out of bounds for us, so that an overrun by
 * one byte is reported although it stays inside the allocation.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define GUARD_TERMINATOR(bytes, size) ((size) > 0 ? __asan_poison_memory_region((bytes) + (size), 1) : (void)0)
#else
#define GUARD_TERMINATOR(bytes, size) ((void)0)
#endif

/* A new bytes object and the address of its `size` bytes. */
static inline PyObject *new_bytes(size_t size, uint8_t **bytes)
{
    PyObject *result;

    if (size > PY_SSIZE_T_MAX - 64) { /* room for the object's own header */
        PyErr_NoMemory();
        return NULL;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (result != NULL) {
#ifdef Py_LIMITED_API
        *bytes = (uint8_t *)PyBytes_AsString(result);
#else
        *bytes = (uint8_t *)PyBytes_AS_STRING(result);
#endif
        GUARD_TERMINATOR(*bytes, size);
    }
    return result;
}

/* ---- Numbers. ---- */

/* "NAME must be 0 to MAX, got NUMBER" as `error` if `object` is no integer from 0 to max; TypeError if no integer. */
bool integer_up_to(uint64_t *, PyObject *object, const char *name, uint64_t max, PyObject *error);
void raise_out_of_range(PyObject *error, const char *name, const char *max, PyObject *number);

/* What a message shows of a number: itself, or words if it is a giant (whose str() could fail). New reference. */
PyObject *shown(PyObject *number);

/* 8, 12 or 20; 20 if object is NULL. */
bool rounds_from(unsigned *, PyObject *object);

/* CounterOverflow: "NAME must be at most LIMIT bytes, got SIZE". */
void raise_too_long(const module_state *, const char *name, uint64_t limit, size_t size);

/* ---- The GIL is released for calls over this many bytes. Measured by bench/gil_threshold.py. ---- */

enum { GIL_THRESHOLD = 2048 };

#define RELEASING_GIL(size, call)                                                                                    \
    do {                                                                                                             \
        if ((size) < (size_t)GIL_THRESHOLD) {                                                                             \
            call;                                                                                                    \
        } else {                                                                                                     \
            Py_BEGIN_ALLOW_THREADS                                                                                   \
            call;                                                                                                    \
            Py_END_ALLOW_THREADS                                                                                     \
        }                                                                                                            \
    } while (0)

/* ---- What module.c gathers. ---- */

/* A public function: its flat name in this module, the public module that it belongs to, and its definition. */
typedef struct {
    const char *flat_name, *module;
    PyMethodDef definition;
} public_function;

#define FASTCALL(function) ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL | METH_KEYWORDS

/* Each ends with NULL. */
extern public_function chacha20_functions[], poly1305_functions[], aead_functions[], batch_functions[];
extern PyType_Spec tag_spec, chacha20poly1305_spec, xchacha20poly1305_spec, chacha20_spec, xchacha20_spec,
    chacha20_legacy_spec;

PyObject *new_tag(const module_state *, const uint8_t tag[16]);
PyObject *refuse_pickle(PyObject *self, PyObject *unused); /* __reduce__ and __reduce_ex__ of what holds a key */

/* ---- A key for the AEAD, in aead.c; its methods for many messages are in batch.c. ---- */

typedef struct {
    PyObject_HEAD
    const chapoly_kernel *kernel; /* the one in use when the object was made */
    size_t nonce_size;
    uint8_t key[CHAPOLY_KEY_SIZE];
} key_object;

typedef PyObject *fastcall(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords);

fastcall key_encrypt_many, key_decrypt_many, key_encrypt_packed, key_decrypt_packed;

#endif
