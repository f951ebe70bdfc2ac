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

#if !defined(__STDC_NO_ATOMICS__)
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "chapoly.h"
#include "docstrings.h"
#include "threads.h"

typedef struct {
    PyObject *invalid_key, *invalid_nonce, *invalid_tag, *counter_overflow, *state_error; /* of chapoly.errors */
    PyTypeObject *tag, *encryptor, *unverified_decryptor;
    PyObject *fresh_bytes; /* a bytes object that nobody else sees: for new_tag */
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

/*
 * The same for a constructor, which gets a tuple and a dict. Code of a value's own, its __index__ or __buffer__, can
 * find the dict (gc.get_referrers) and empty it: values are new references, to be given back by drop_values.
 */
bool parse_constructor(const signature *, PyTypeObject *, PyObject *args, PyObject *keywords, PyObject **values);
void drop_values(const signature *, PyObject **values);

/* ---- Buffers: any C-contiguous buffer; its size is in bytes. ---- */

/* Zero-initialise `view.obj` (NO_BUFFER) before use: release() may then be called on every path. */
typedef struct {
    uint8_t *bytes;
    size_t size;
    Py_buffer view;
    uint8_t copy[CHAPOLY_KEY_SIZE]; /* for acquire_exactly */
} buffer;

#define NO_BUFFER(b) ((b).view.obj = NULL)

/* Fills in the view of any buffer. What is written to is acquired so: check_output reads view.readonly. */
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

/* The same, but of exact bytes only the address and the size: what every input is acquired by. */
static inline bool acquire(buffer *b, PyObject *object, const char *name)
{
    if (!PyBytes_CheckExact(object))
        return acquire_slowly(b, object, name);
    b->bytes = bytes_of(object, &b->size);
    return true;
}

/*
 * A buffer of exactly `size` bytes, no more than a key has, else `error`. What is no bytes object is copied: asking for
 * a later argument may run code (__index__, __buffer__) that changes it.
 */
bool acquire_exactly(buffer *, PyObject *, const char *name, size_t size, PyObject *error);

/* TypeError if it is read-only, ValueError if it is not exactly that size. */
bool check_output(const buffer *, const char *name, size_t size);

/* ValueError if they share a byte, unless both start at the same address and `in_place` is true. */
bool check_overlap(const buffer *output, const char *output_name, const buffer *input, const char *input_name,
                   bool in_place);

static inline void release(buffer *b)
{
    if (b->view.obj == NULL)
        return;
    if (b->bytes == b->copy)
        chapoly_wipe(b->copy, sizeof b->copy);
    PyBuffer_Release(&b->view);
}

/*
 * Under AddressSanitizer the NUL that CPython keeps behind the bytes is out of bounds for us, so that an overrun by
 * one byte is reported although it stays inside the allocation. Only in malloc's memory, where it ends with the object:
 * CPython's own allocator, which -E and -I bring back, would hand it out again.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
int __sanitizer_get_ownership(const volatile void *); /* whether malloc gave it; gcc has no header for it */
#define GUARD_TERMINATOR(object, bytes, size)                                                                        \
    ((size) > 0 && __sanitizer_get_ownership(object) ? __asan_poison_memory_region((bytes) + (size), 1) : (void)0)
#else
#define GUARD_TERMINATOR(object, bytes, size) ((void)0)
#endif

/*
 * From this size on a new object asks for huge pages: memory that is touched for the first time costs more than to
 * encrypt it does, and a quarter of that in pages of 2 MiB. Under 4 MiB there may be no whole one inside. Measured by
 * bench/huge_pages.py.
 */
enum { HUGE_PAGE = 2 << 20, HUGE_PAGES_THRESHOLD = 2 * HUGE_PAGE };

void ask_for_huge_pages(uint8_t *bytes, size_t size);

/* A new bytes object and the address of its `size` bytes. */
static inline PyObject *new_bytes(size_t size, uint8_t **bytes)
{
    PyObject *result;

    if (size > PY_SSIZE_T_MAX) {
        PyErr_SetString(PyExc_OverflowError, "byte string is too large"); /* CPython's own, from a little below on */
        return NULL;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (result != NULL) {
#ifdef Py_LIMITED_API
        *bytes = (uint8_t *)PyBytes_AsString(result);
#else
        *bytes = (uint8_t *)PyBytes_AS_STRING(result);
#endif
        GUARD_TERMINATOR(result, *bytes, size);
        if (size >= HUGE_PAGES_THRESHOLD)
            ask_for_huge_pages(*bytes, size);
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

/* How many threads may work on a message, 1 or more; 1 if object is NULL. */
bool threads_from(size_t *limit, PyObject *object);

/* CounterOverflow: "NAME must be at most LIMIT bytes, got SIZE". */
void raise_too_long(const module_state *, const char *name, uint64_t limit, size_t size);

/* ---- Objects for one call at a time: whether a call is in progress. ---- */

#if !defined(__STDC_NO_ATOMICS__)

typedef atomic_flag busy_flag;

static inline bool test_and_set_busy(busy_flag *busy)
{
    return atomic_flag_test_and_set_explicit(busy, memory_order_acquire);
}

static inline void clear_busy(busy_flag *busy)
{
    atomic_flag_clear_explicit(busy, memory_order_release);
}

#elif !defined(Py_GIL_DISABLED)

typedef bool busy_flag; /* a compiler without C11 atomics: only who holds the GIL comes here */

static inline bool test_and_set_busy(busy_flag *busy)
{
    const bool before = *busy;
    *busy = true;
    return before;
}

static inline void clear_busy(busy_flag *busy)
{
    *busy = false;
}

#else
#error "without the GIL, C11 atomics are needed; MSVC has them with /experimental:c11atomics"
#endif

/* ---- The GIL is released for calls over this many bytes. Measured by bench/gil_threshold.py. ---- */

enum { GIL_THRESHOLD = 4096 };

#define RELEASING_GIL(size, call)                                                                                    \
    do {                                                                                                             \
        if ((size) < (size_t)GIL_THRESHOLD) {                                                                        \
            call;                                                                                                    \
        } else {                                                                                                     \
            Py_BEGIN_ALLOW_THREADS                                                                                   \
            call;                                                                                                    \
            Py_END_ALLOW_THREADS                                                                                     \
        }                                                                                                            \
    } while (0)

/* ---- Objects that take a message in parts: streams, MACs, encryptors, decryptors. ---- */

typedef struct parts_object parts_object;

/* What there is once of each kind. MACs have neither of the functions. */
typedef struct {
    const char *noun;             /* what a StateError calls it */
    size_t secrets, secrets_size; /* where in the object they are; closing it wipes them */
    uint64_t (*left)(const parts_object *); /* how many bytes can come; UINT64_MAX stands for that many or more */
    void (*crypt)(parts_object *, uint8_t *out, const uint8_t *data, size_t size, size_t threads); /* what comes next */
    bool takes_threads; /* update_into has threads=; else threads is 1 */
} parts_kind;

struct parts_object {
    PyObject_HEAD
    const parts_kind *kind;
    const chapoly_kernel *kernel;
    bool closed;
    busy_flag busy; /* a call is in progress; others never wait for it */
};

parts_object *new_parts(PyTypeObject *, const parts_kind *, const chapoly_kernel *);

/* Claims an open object for one call, until unclaim(). StateError if that cannot be; then nothing has changed. */
bool claim(parts_object *);
bool claim_even_closed(parts_object *);
bool must_be_open(parts_object *);
void unclaim(parts_object *);

/* Wipes the secrets for good; the object is claimed. */
void close_parts(parts_object *);

/* CounterOverflow if more bytes come than can. */
bool fits(parts_object *, const char *name, size_t size);

PyObject *parts_update(PyObject *, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
PyObject *parts_update_into(PyObject *, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
PyObject *parts_enter(PyObject *, PyObject *unused);
PyObject *parts_exit(PyObject *, PyObject *const *args, Py_ssize_t count);
void parts_dealloc(PyObject *);

#define METHOD_EXIT(function) ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL

/* ---- What module.c gathers. ---- */

/* A public function: its flat name in this module, the public module that it belongs to, and its definition. */
typedef struct {
    const char *flat_name, *module;
    PyMethodDef definition;
} public_function;

#define FASTCALL(function) ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL | METH_KEYWORDS

/* Each ends with NULL. */
extern public_function chacha20_functions[], poly1305_functions[], aead_functions[], batch_functions[];
#ifndef Py_LIMITED_API
PyObject *chacha20poly1305_vectorcall(PyObject *type, PyObject *const *args, size_t count, PyObject *keywords);
PyObject *xchacha20poly1305_vectorcall(PyObject *type, PyObject *const *args, size_t count, PyObject *keywords);
#endif
extern PyType_Spec tag_spec, chacha20poly1305_spec, xchacha20poly1305_spec, chacha20_spec, xchacha20_spec,
    chacha20_legacy_spec, poly1305_spec, encryptor_spec, unverified_decryptor_spec;

/* A new Tag and the address of its 16 bytes. */
PyObject *new_tag(const module_state *, uint8_t **tag);
void tag_to_hex(char hex[2 * CHAPOLY_TAG_SIZE + 1], const uint8_t tag[CHAPOLY_TAG_SIZE]);

/* Messages in parts, after their associated data. */
PyObject *new_encryptor(const module_state *, const chapoly_kernel *, const uint8_t *key, const uint8_t *nonce,
                        size_t nonce_size, const buffer *associated);
PyObject *new_unverified_decryptor(const module_state *, const chapoly_kernel *, const uint8_t *key,
                                   const uint8_t *nonce, size_t nonce_size, const buffer *associated);
/* The methods of what holds a key. */
#define REFUSE_PICKLE                                                                                                \
    {"__reduce__", refuse_pickle, METH_NOARGS, NULL}, {"__getstate__", refuse_pickle, METH_NOARGS, NULL},            \
    {                                                                                                                \
        "__reduce_ex__", refuse_pickle, METH_O, NULL                                                                 \
    }
PyObject *refuse_pickle(PyObject *self, PyObject *unused);

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
