/*
 * Arguments, buffers and numbers, with the texts that Python itself and chapoly.pure use.
 */
#include "binding.h"

#include <limits.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

/* ---- Arguments. The order of the checks and their texts are those of a Python function. ---- */

/* The name that a message shows: "encrypt", or "ChaCha20.update". */
static PyObject *qualified_name(const signature *s, PyTypeObject *owner)
{
    PyObject *type, *name;

    if (owner == NULL)
        return PyUnicode_FromString(s->name);
    type = PyType_GetName(owner);
    name = type != NULL ? PyUnicode_FromFormat("%U.%s", type, s->name) : NULL;
    Py_XDECREF(type);
    return name;
}

/* TypeError: the qualified name, then `rest` (a new reference, taken over; NULL if it could not be made). */
static void raise_about(const signature *s, PyTypeObject *owner, PyObject *rest)
{
    PyObject *name = rest != NULL ? qualified_name(s, owner) : NULL;

    if (name != NULL)
        PyErr_Format(PyExc_TypeError, "%U() %U", name, rest);
    Py_XDECREF(name);
    Py_XDECREF(rest);
}

static bool take_keyword(const signature *s, PyTypeObject *owner, PyObject *keyword, PyObject *value, PyObject **values)
{
    const char *const bound = strcmp(s->name, "__new__") == 0 ? "cls" : "self"; /* the first parameter in Python */
    const char *problem = "an unexpected keyword argument";

    if (!PyUnicode_Check(keyword)) { /* the dict of a constructor comes here unchecked */
        PyErr_SetString(PyExc_TypeError, "keywords must be strings");
        return false;
    }
    for (int i = 0; i < s->total; i++) {
        if (PyUnicode_CompareWithASCIIString(keyword, s->parameters[i]) != 0)
            continue;
        if (values[i] == NULL) {
            values[i] = value;
            return true;
        }
        problem = "multiple values for argument";
    }
    if (owner != NULL && PyUnicode_CompareWithASCIIString(keyword, bound) == 0)
        problem = "multiple values for argument";
    raise_about(s, owner, PyUnicode_FromFormat("got %s '%U'", problem, keyword));
    return false;
}

static void raise_too_many(const signature *s, PyTypeObject *owner, Py_ssize_t count, PyObject **values)
{
    const int self = owner != NULL ? 1 : 0; /* Python counts it */
    const int most = s->positional + self, least = s->required + self;
    const Py_ssize_t given = count + self;
    char range[40], extra[80] = "";
    int keyword_only = 0;

    for (int i = s->positional; i < s->total; i++)
        keyword_only += values[i] != NULL;
    if (least < most)
        PyOS_snprintf(range, sizeof range, "from %d to %d", least, most);
    else
        PyOS_snprintf(range, sizeof range, "%d", most);
    if (keyword_only > 0)
        PyOS_snprintf(extra, sizeof extra, " positional argument%s (and %d keyword-only argument%s)",
                      given != 1 ? "s" : "", keyword_only, keyword_only != 1 ? "s" : "");
    raise_about(s, owner,
                PyUnicode_FromFormat("takes %s positional argument%s but %zd%s %s given", range,
                                     least < most || most != 1 ? "s" : "", given, extra,
                                     given != 1 || keyword_only > 0 ? "were" : "was"));
}

static void raise_missing(const signature *s, PyTypeObject *owner, PyObject **values)
{
    const char *missing[PARAMETERS_MAX] = {NULL};
    int count = 0;
    PyObject *text;

    for (int i = 0; i < s->required; i++)
        if (values[i] == NULL)
            missing[count++] = s->parameters[i];
    text = PyUnicode_FromFormat("missing %d required positional argument%s: '%s'", count, count > 1 ? "s" : "",
                                missing[0]);
    for (int i = 1; i < count && text != NULL; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%s'%s'", text, count > 2 ? ", " : " ",
                                                i == count - 1 ? "and " : "", missing[i]);
        Py_DECREF(text);
        text = longer;
    }
    raise_about(s, owner, text);
}

/* After positional and keyword arguments have been taken: were there too many, are any missing? */
static bool complete(const signature *s, PyTypeObject *owner, Py_ssize_t count, PyObject **values)
{
    if (count > s->positional) {
        raise_too_many(s, owner, count, values);
        return false;
    }
    for (int i = 0; i < s->required; i++) {
        if (values[i] == NULL) {
            raise_missing(s, owner, values);
            return false;
        }
    }
    return true;
}

bool parse_slowly(const signature *s, PyTypeObject *owner, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                  PyObject **values)
{
    const Py_ssize_t keyword_count = keywords != NULL ? PyTuple_Size(keywords) : 0;

    for (Py_ssize_t i = 0; i < s->total; i++)
        values[i] = i < count && i < s->positional ? args[i] : NULL;
    for (Py_ssize_t i = 0; i < keyword_count; i++)
        if (!take_keyword(s, owner, PyTuple_GetItem(keywords, i), args[count + i], values))
            return false;
    return complete(s, owner, count, values);
}

bool parse_constructor(const signature *s, PyTypeObject *type, PyObject *args, PyObject *keywords, PyObject **values)
{
    const Py_ssize_t count = PyTuple_Size(args);
    PyObject *keyword, *value;
    Py_ssize_t position = 0;

    for (Py_ssize_t i = 0; i < s->total; i++)
        values[i] = i < count && i < s->positional ? PyTuple_GetItem(args, i) : NULL;
    while (keywords != NULL && PyDict_Next(keywords, &position, &keyword, &value))
        if (!take_keyword(s, type, keyword, value, values))
            return false;
    if (!complete(s, type, count, values))
        return false;
    for (int i = 0; i < s->total; i++)
        Py_XINCREF(values[i]);
    return true;
}

void drop_values(const signature *s, PyObject **values)
{
    for (int i = 0; i < s->total; i++)
        Py_XDECREF(values[i]);
}

/* ---- Buffers. ---- */

static uint8_t nothing; /* where an empty buffer without an address points */

/* "NAME must be WHAT", or "NAME[INDEX] must be WHAT". */
static void raise_must_be(PyObject *error, const char *name, Py_ssize_t index, PyObject *what)
{
    if (what != NULL && index < 0)
        PyErr_Format(error, "%s must be %U", name, what);
    else if (what != NULL)
        PyErr_Format(error, "%s[%zd] must be %U", name, index, what);
    Py_XDECREF(what);
}

/* index is that of an item, or -1. */
static bool acquire_any(buffer *b, PyObject *object, const char *name, Py_ssize_t index)
{
    if (!PyObject_CheckBuffer(object)) {
        PyObject *type = PyType_GetName(Py_TYPE(object));
        if (type != NULL)
            raise_must_be(PyExc_TypeError, name, index, PyUnicode_FromFormat("bytes-like, not %U", type));
        Py_XDECREF(type);
        return false;
    }
    if (PyObject_GetBuffer(object, &b->view, PyBUF_FULL_RO) < 0)
        return false;
    if (!PyBuffer_IsContiguous(&b->view, 'C')) {
        raise_must_be(PyExc_BufferError, name, index, PyUnicode_FromString("C-contiguous"));
        PyBuffer_Release(&b->view);
        return false;
    }
    b->bytes = b->view.buf != NULL ? b->view.buf : &nothing;
    b->size = (size_t)b->view.len;
    return true;
}

bool acquire_slowly(buffer *b, PyObject *object, const char *name)
{
    return acquire_any(b, object, name, -1);
}

bool acquire_item_slowly(buffer *b, PyObject *object, const char *name, size_t index)
{
    return acquire_any(b, object, name, (Py_ssize_t)index);
}

bool acquire_exactly(buffer *b, PyObject *object, const char *name, size_t size, PyObject *error)
{
    if (!acquire(b, object, name))
        return false;
    if (b->size != size) {
        PyErr_Format(error, "%s must be %zu bytes, got %zu", name, size, b->size);
        release(b);
        NO_BUFFER(*b);
        return false;
    }
    if (b->view.obj != NULL)
        b->bytes = memcpy(b->copy, b->bytes, size);
    return true;
}

bool check_output(const buffer *b, const char *name, size_t size)
{
    if (b->view.readonly)
        PyErr_Format(PyExc_TypeError, "%s must be writable", name);
    else if (b->size != size)
        PyErr_Format(PyExc_ValueError, "%s must be %zu bytes, got %zu", name, size, b->size);
    else
        return true;
    return false;
}

/* Where the caller's memory begins. */
static uintptr_t address(const buffer *b)
{
    return (uintptr_t)(b->view.obj != NULL ? b->view.buf : b->bytes);
}

bool check_overlap(const buffer *output, const char *output_name, const buffer *input, const char *input_name,
                   bool in_place)
{
    const uintptr_t o = address(output), i = address(input);

    if (output->size == 0 || input->size == 0 || o + output->size <= i || i + input->size <= o || (in_place && o == i))
        return true;
    PyErr_Format(PyExc_ValueError, "%s overlaps %s", output_name, input_name);
    return false;
}

/*
 * It is advice, about whole huge pages inside what was just allocated: it changes no content, and where the system
 * gives none (in /sys/kernel/mm/transparent_hugepage/enabled: never), all stays as it was.
 */
void ask_for_huge_pages(uint8_t *bytes, size_t size)
{
#if defined(MADV_HUGEPAGE)
    const uintptr_t mask = ~((uintptr_t)HUGE_PAGE - 1);
    const uintptr_t start = ((uintptr_t)bytes + HUGE_PAGE - 1) & mask, end = ((uintptr_t)bytes + size) & mask;

    if (start < end)
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)bytes, (void)size;
#endif
}

/* ---- Numbers. ---- */

PyObject *shown(PyObject *number)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);

    if (value == -1 && PyErr_Occurred())
        return NULL;
    if (overflow != 0 || value == LLONG_MIN)
        return PyUnicode_FromString("an integer over 63 bits");
    return PyUnicode_FromFormat("%lld", value);
}

void raise_out_of_range(PyObject *error, const char *name, const char *max, PyObject *number)
{
    PyObject *got = shown(number);

    if (got != NULL)
        PyErr_Format(error, "%s must be 0 to %s, got %U", name, max, got);
    Py_XDECREF(got);
}

bool integer_up_to(uint64_t *value, PyObject *object, const char *name, uint64_t max, PyObject *error)
{
    PyObject *number = PyNumber_Index(object);
    char limit[24];

    if (number == NULL)
        return false;
    *value = PyLong_AsUnsignedLongLong(number);
    if (*value == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear(); /* it can only be an OverflowError: negative, or over 64 bits */
    } else if (*value <= max) {
        Py_DECREF(number);
        return true;
    }
    PyOS_snprintf(limit, sizeof limit, "%llu", (unsigned long long)max);
    raise_out_of_range(error, name, limit, number);
    Py_DECREF(number);
    return false;
}

/* ValueError: "MUST_BE, got NUMBER", which is taken over. */
static bool refuse_number(const char *must_be, PyObject *number)
{
    PyObject *got = shown(number);

    if (got != NULL)
        PyErr_Format(PyExc_ValueError, "%s, got %U", must_be, got);
    Py_XDECREF(got);
    Py_DECREF(number);
    return false;
}

bool rounds_from(unsigned *rounds, PyObject *object)
{
    PyObject *number;
    int overflow;
    long value;

    *rounds = 20;
    if (object == NULL)
        return true;
    number = PyNumber_Index(object);
    if (number == NULL)
        return false;
    value = PyLong_AsLongAndOverflow(number, &overflow);
    if (value == 8 || value == 12 || value == 20) {
        *rounds = (unsigned)value;
        Py_DECREF(number);
        return true;
    }
    return refuse_number("rounds must be 8, 12 or 20", number);
}

bool threads_from(size_t *limit, PyObject *object)
{
    PyObject *number;
    int overflow;
    long value;

    *limit = 1;
    if (object == NULL)
        return true;
    number = PyNumber_Index(object);
    if (number == NULL)
        return false;
    value = PyLong_AsLongAndOverflow(number, &overflow);
    if (value >= 1 || overflow > 0) {
        *limit = overflow > 0 ? SIZE_MAX : (size_t)value;
        Py_DECREF(number);
        return true;
    }
    return refuse_number("threads must be 1 or more", number);
}

void raise_too_long(const module_state *state, const char *name, uint64_t limit, size_t size)
{
    PyErr_Format(state->counter_overflow, "%s must be at most %llu bytes, got %zu", name, (unsigned long long)limit,
                 size);
}
