/*
 * Many messages in one call, for ChaCha20-Poly1305 and XChaCha20-Poly1305: lists of packets, and packets packed in one
 * buffer. Everything is checked before the first packet is computed.
 */
#include "binding.h"

/* Whose key, and what to do. */
typedef struct {
    const module_state *state;
    const chapoly_kernel *kernel;
    const uint8_t *key; /* NULL if each packet has its own */
    size_t nonce_size;
    bool decrypting;
} task;

static void compute(const task *t, chapoly_packet *packets, size_t count)
{
    (t->decrypting ? chapoly_aead_decrypt_many : chapoly_aead_encrypt_many)(t->kernel, packets, count, t->nonce_size);
}

/* The most that a packet may have of data. */
static uint64_t most(const task *t)
{
    return CHAPOLY_AEAD_MAX + (t->decrypting ? CHAPOLY_TAG_SIZE : 0);
}

static bool check_count(const char *name, size_t wanted, size_t count)
{
    if (count == wanted)
        return true;
    PyErr_Format(PyExc_ValueError, "%s must have %zu item%s, got %zu", name, wanted, wanted == 1 ? "" : "s", count);
    return false;
}

/* What decides whether the GIL is released: the bytes of a packet, and a block for its one-time key. */
static size_t weight(size_t len, size_t associated_len)
{
    return CHAPOLY_BLOCK_SIZE + len + associated_len;
}

/* ---- Lists. ---- */

enum { KEYS, NONCES, DATAS, ASSOCIATED, LISTS, RESULTS = LISTS, COLUMNS };

static const char *const names[LISTS] = {"keys", "nonces", "datas", "associated_datas"};

/*
 * The items that a list held when the call began, or the results. They are owned: whatever happens to the list during
 * the call, its items stay.
 */
typedef struct {
    PyObject **items; /* in the table; NULL if there is no such column, and for an item that is not there yet */
    buffer *buffers;  /* of the items that are not exactly bytes; NULL as long as there are none */
} column;

enum { ROW = sizeof(chapoly_packet) + COLUMNS * sizeof(PyObject *) };

typedef struct {
    size_t count, too_short, weight; /* of packets: all, those that have no tag; and their weight */
    chapoly_packet *packets;         /* the table, one allocation: the packets, */
    PyObject **items;                /* and behind them one column after the other */
    column columns[COLUMNS];
    buffer associated; /* the same for all packets */
    struct {           /* the table of a single packet: an allocation would show in its time */
        chapoly_packet packet;
        PyObject *items[COLUMNS];
    } single;
} batch;

static void begin(batch *b)
{
    b->count = b->too_short = b->weight = 0;
    b->packets = NULL;
    for (int c = 0; c < COLUMNS; c++)
        b->columns[c] = (column){NULL, NULL};
    NO_BUFFER(b->associated);
}

/* The first list says how many packets there are. */
static bool make_table(batch *b, size_t count)
{
    b->count = count;
    if (count > 1) {
        b->packets = PyMem_Calloc(count, ROW);
        if (b->packets == NULL)
            PyErr_NoMemory();
        else
            b->items = (PyObject **)(void *)(b->packets + count);
        return b->packets != NULL;
    }
    b->packets = &b->single.packet;
    b->items = b->single.items;
    b->single.packet = (chapoly_packet){.key = NULL};
    for (int c = 0; c < COLUMNS; c++)
        b->single.items[c] = NULL;
    return true;
}

static PyObject **add_column(batch *b, int c)
{
    return b->columns[c].items = b->items + (size_t)c * b->count;
}

static void end(batch *b)
{
    for (int c = 0; c < LISTS; c++) {
        column *const at = &b->columns[c];
        for (size_t i = 0; at->items != NULL && i < b->count; i++)
            Py_XDECREF(at->items[i]);
        if (at->buffers != NULL) {
            for (size_t i = 0; i < b->count; i++)
                release(&at->buffers[i]);
            PyMem_Free(at->buffers);
        }
    }
    if (b->packets != &b->single.packet)
        PyMem_Free(b->packets);
    release(&b->associated);
}

/* For results that cannot be returned: they may be plaintexts. */
static void discard_results(batch *b)
{
    PyObject *const *const results = b->columns[RESULTS].items;

    for (size_t i = 0; results != NULL && i < b->count; i++)
        if (results[i] != NULL) {
            size_t size;
            uint8_t *const bytes = bytes_of(results[i], &size);
            chapoly_wipe(bytes, size);
            Py_DECREF(results[i]);
        }
}

/* Interned: CPython keeps the names that a type was asked for, and a new string each time would fill its cache. */
static bool has_getitem(PyObject *type)
{
    PyObject *const name = PyUnicode_InternFromString("__getitem__");
    const bool has = name != NULL && PyObject_HasAttr(type, name);

    if (name == NULL)
        PyErr_Clear(); /* as PyObject_HasAttr does */
    Py_XDECREF(name);
    return has;
}

/* A list or a tuple with the items of a sequence; a string or a dict is none. */
static inline PyObject *sequence_of(PyObject *object, const char *name, const char *kind)
{
    PyObject *type;

    if (PyList_CheckExact(object) || PyTuple_CheckExact(object))
        return Py_NewRef(object);
    if (!PyUnicode_Check(object) && !PyDict_Check(object) && has_getitem((PyObject *)Py_TYPE(object)))
        return PySequence_List(object);
    type = PyType_GetName(Py_TYPE(object));
    if (type != NULL)
        PyErr_Format(PyExc_TypeError, "%s must be %s, not %U", name, kind, type);
    Py_XDECREF(type);
    return NULL;
}

/* Fills a column. The first one says how many packets there are. No code of the caller's runs among the items. */
static inline bool take_items(batch *b, int c, PyObject *object, const char *kind)
{
    PyObject *const sequence = sequence_of(object, names[c], kind), **items;
    bool taken = false;
    size_t count;

    if (sequence == NULL)
        return false;
#ifdef Py_LIMITED_API
    count = (size_t)PySequence_Size(sequence);
#else
    count = (size_t)PySequence_Fast_GET_SIZE(sequence);
#endif
    if (b->packets == NULL ? make_table(b, count) : check_count(names[c], b->count, count)) {
        items = add_column(b, c);
        taken = true;
#if defined(Py_LIMITED_API) || defined(Py_GIL_DISABLED)
        for (size_t i = 0; taken && i < count; i++)
            taken = (items[i] = PySequence_GetItem(sequence, (Py_ssize_t)i)) != NULL;
#else
        for (size_t i = 0; i < count; i++)
            items[i] = Py_NewRef(PySequence_Fast_ITEMS(sequence)[i]);
#endif
    }
    Py_DECREF(sequence);
    return taken;
}

typedef struct {
    uint8_t *bytes;
    size_t size;
} span;

static bool acquire_item(batch *b, int c, size_t i, span *s)
{
    column *const at = &b->columns[c];

    if (PyBytes_CheckExact(at->items[i])) {
        s->bytes = bytes_of(at->items[i], &s->size);
        return true;
    }
    if (at->buffers == NULL && (at->buffers = PyMem_Calloc(b->count, sizeof *at->buffers)) == NULL) {
        PyErr_NoMemory();
        return false;
    }
    if (!acquire_item_slowly(&at->buffers[i], at->items[i], names[c], i))
        return false;
    *s = (span){at->buffers[i].bytes, at->buffers[i].size};
    return true;
}

/* Keys or nonces. */
static bool take_exactly(batch *b, int c, PyObject *object, size_t size, PyObject *error)
{
    span s;

    if (!take_items(b, c, object, "a sequence"))
        return false;
    for (size_t i = 0; i < b->count; i++) {
        if (!acquire_item(b, c, i, &s))
            return false;
        if (s.size != size) {
            PyErr_Format(error, "%s[%zu] must be %zu bytes, got %zu", names[c], i, size, s.size);
            return false;
        }
        *(c == KEYS ? &b->packets[i].key : &b->packets[i].nonce) = s.bytes;
    }
    return true;
}

/* A packet without a tag of its own, because it is too short to be one, keeps NULL for it. */
static bool take_datas(batch *b, const task *t, PyObject *object)
{
    span s;

    if (!take_items(b, DATAS, object, "a sequence"))
        return false;
    for (size_t i = 0; i < b->count; i++) {
        chapoly_packet *const packet = &b->packets[i];
        if (!acquire_item(b, DATAS, i, &s))
            return false;
        if (s.size > most(t)) {
            char name[40];
            PyOS_snprintf(name, sizeof name, "datas[%zu]", i);
            raise_too_long(t->state, name, most(t), s.size);
            return false;
        }
        if (t->key != NULL)
            packet->key = t->key;
        packet->data = s.bytes;
        if (!t->decrypting) {
            packet->len = s.size;
        } else if (s.size >= CHAPOLY_TAG_SIZE) {
            packet->len = s.size - CHAPOLY_TAG_SIZE;
            packet->tag = s.bytes + packet->len;
        } else {
            b->too_short++;
        }
        b->weight += weight(packet->len, 0);
    }
    return true;
}

/* None, one buffer for all, or one (or None) for each. */
static bool take_associated(batch *b, PyObject *object)
{
    const bool one_for_all = object != NULL && PyObject_CheckBuffer(object);
    span s = {NULL, 0};

    if (object == NULL || object == Py_None)
        return true;
    if (one_for_all) {
        if (!acquire(&b->associated, object, names[ASSOCIATED]))
            return false;
        s = (span){b->associated.bytes, b->associated.size};
    } else if (!take_items(b, ASSOCIATED, object, "bytes-like or a sequence")) {
        return false;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (!one_for_all && b->columns[ASSOCIATED].items[i] == Py_None)
            continue;
        if (!one_for_all && !acquire_item(b, ASSOCIATED, i, &s))
            return false;
        b->packets[i].associated_data = s.bytes;
        b->packets[i].associated_len = s.size;
        b->weight += s.size;
    }
    return true;
}

/* A place for the result of each packet. */
static bool make_results(batch *b, const task *t)
{
    PyObject **const results = add_column(b, RESULTS);

    for (size_t i = 0; i < b->count; i++) {
        chapoly_packet *const packet = &b->packets[i];
        if (t->decrypting && packet->tag == NULL)
            continue;
        PyObject *const result = new_bytes(packet->len + (t->decrypting ? 0 : CHAPOLY_TAG_SIZE), &packet->out);
        if (result == NULL)
            return false;
        results[i] = result;
        if (!t->decrypting)
            packet->tag = packet->out + packet->len;
    }
    return true;
}

/* Moves the packets that have a tag to the front; how many they are. */
static size_t whole_packets(batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->count; i++) {
        if (b->packets[i].tag == NULL)
            continue;
        if (n < i)
            b->packets[n] = b->packets[i];
        n++;
    }
    return n;
}

/* The results as a list, with None in place of a packet that was too short or has failed (then its result is zeros). */
static PyObject *list_of_results(batch *b)
{
    PyObject *const list = PyList_New((Py_ssize_t)b->count), **const results = b->columns[RESULTS].items;
    const chapoly_packet *packet = b->packets;

    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < b->count; i++) {
        PyObject *result = results[i];
        if (result != NULL && packet++->failed)
            Py_CLEAR(result);
        if (result == NULL)
            result = Py_NewRef(Py_None);
#ifdef Py_LIMITED_API
        PyList_SetItem(list, (Py_ssize_t)i, result);
#else
        PyList_SET_ITEM(list, (Py_ssize_t)i, result);
#endif
    }
    return list;
}

/* keys (unless the task has one), nonces, datas, associated_datas. */
static PyObject *many(const task *t, PyObject *const *values)
{
    PyObject *result = NULL;
    batch b;

    begin(&b);
    if ((t->key != NULL ||
         take_exactly(&b, KEYS, *values++, CHAPOLY_KEY_SIZE, t->state->invalid_key)) &&
        take_exactly(&b, NONCES, values[0], t->nonce_size, t->state->invalid_nonce) &&
        take_datas(&b, t, values[1]) && take_associated(&b, values[2]) && make_results(&b, t)) {
        const size_t n = b.too_short > 0 ? whole_packets(&b) : b.count;
        RELEASING_GIL(b.weight, compute(t, b.packets, n));
        result = list_of_results(&b);
    }
    if (result == NULL)
        discard_results(&b);
    end(&b);
    return result;
}

/* ---- Packed. ---- */

typedef struct {
    size_t count, first, last; /* packets; the first and the last offset */
    buffer nonces, data, offsets, out, failed, associated;
} packed;

static void begin_packed(packed *p)
{
    NO_BUFFER(p->nonces), NO_BUFFER(p->data), NO_BUFFER(p->offsets), NO_BUFFER(p->out), NO_BUFFER(p->failed);
    NO_BUFFER(p->associated);
    p->associated.bytes = NULL, p->associated.size = 0;
}

static void end_packed(packed *p)
{
    release(&p->nonces), release(&p->data), release(&p->offsets), release(&p->out), release(&p->failed);
    release(&p->associated);
}

static bool take_nonces(const task *t, packed *p, PyObject *object)
{
    if (!acquire(&p->nonces, object, "nonces"))
        return false;
    if (p->nonces.size % t->nonce_size != 0) {
        PyErr_Format(t->state->invalid_nonce, "nonces must be a multiple of %zu bytes, got %zu", t->nonce_size,
                     p->nonces.size);
        return false;
    }
    p->count = p->nonces.size / t->nonce_size;
    return true;
}

/* Whether these are native integers of eight bytes: where `l` has only four, the size tells. */
static bool is_int64(const char *format, Py_ssize_t item_size)
{
    if (*format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>'))
        format++;
    return item_size == 8 && (strcmp(format, "q") == 0 || strcmp(format, "l") == 0);
}

static int64_t offset(const packed *p, size_t i)
{
    int64_t value;

    memcpy(&value, p->offsets.bytes + 8 * i, sizeof value); /* at any alignment */
    return value;
}

/* They ascend within the data, and each packet has a size that it can have. */
static bool check_offsets(const task *t, const packed *p)
{
    char name[80];

    for (size_t i = 0, low = 0; i <= p->count; i++) {
        const int64_t value = offset(p, i);
        if (value < 0 || (uint64_t)value < low || (uint64_t)value > p->data.size) {
            PyErr_Format(PyExc_ValueError, "offsets[%zu] must be %zu to %zu, got %lld", i, low, p->data.size,
                         (long long)value);
            return false;
        }
        const size_t size = (size_t)value - low;
        if (i > 0 && (size > most(t) || (t->decrypting && size < CHAPOLY_TAG_SIZE))) {
            PyOS_snprintf(name, sizeof name, "data[offsets[%zu]:offsets[%zu]]", i - 1, i);
            if (size > most(t))
                raise_too_long(t->state, name, most(t), size);
            else
                PyErr_Format(PyExc_ValueError, "%s must be at least %d bytes, got %zu", name, CHAPOLY_TAG_SIZE, size);
            return false;
        }
        low = (size_t)value;
    }
    return true;
}

static bool take_offsets(const task *t, packed *p, PyObject *object)
{
    const char *format;

    if (!acquire_slowly(&p->offsets, object, "offsets")) /* never the fast path: what counts is the format */
        return false;
    format = p->offsets.view.format != NULL ? p->offsets.view.format : "B";
    if (!is_int64(format, p->offsets.view.itemsize)) {
        PyErr_Format(PyExc_TypeError, "offsets must be int64, got items of format '%s'", format);
        return false;
    }
    if (!check_count("offsets", p->count + 1, p->offsets.size / 8) || !check_offsets(t, p))
        return false;
    p->first = (size_t)offset(p, 0);
    p->last = (size_t)offset(p, p->count);
    return true;
}

static bool take_output(buffer *output, PyObject *object, const char *name, size_t size)
{
    return acquire_slowly(output, object, name) && check_output(output, name, size);
}

/* No output overlaps anything; each result lies elsewhere than its packet, so that nothing could work in place. */
static bool check_apart(const packed *p, const buffer *output, const char *name)
{
    return check_overlap(output, name, &p->nonces, "nonces", false) &&
           check_overlap(output, name, &p->data, "data", false) &&
           check_overlap(output, name, &p->offsets, "offsets", false) &&
           check_overlap(output, name, &p->associated, "associated_data", false);
}

/*
 * Where packet i ends. Should another thread have changed the offsets since they were checked, this is still a place
 * that leaves each packet its tag, and every result inside of `out`.
 */
static size_t end_of(const task *t, const packed *p, size_t i, size_t start)
{
    const size_t tag = t->decrypting ? CHAPOLY_TAG_SIZE : 0;
    const size_t low = start + tag, high = p->last - tag * (p->count - 1 - i), value = (size_t)offset(p, i + 1);

    return value < low ? low : value > high ? high : value;
}

/* All packets, a window at a time; how many have failed. Touches no Python object. */
static size_t compute_packed(const task *t, const packed *p)
{
    enum { WINDOW = 64 }; /* as many as chapoly.h computes together at most */
    chapoly_packet packets[WINDOW];
    size_t failures = 0, start = p->first, done = 0;

    while (done < p->count) {
        const size_t n = p->count - done < WINDOW ? p->count - done : WINDOW;
        for (size_t i = 0; i < n; i++) {
            const size_t end = end_of(t, p, done + i, start), shift = CHAPOLY_TAG_SIZE * (done + i);
            const size_t len = end - start - (t->decrypting ? CHAPOLY_TAG_SIZE : 0);
            uint8_t *const data = p->data.bytes + start;
            uint8_t *const out = p->out.bytes + (t->decrypting ? start - shift : start + shift);
            chapoly_packet *const packet = &packets[i]; /* field by field: gcc would set all to zero first */
            packet->key = t->key;
            packet->nonce = p->nonces.bytes + t->nonce_size * (done + i);
            packet->associated_data = p->associated.bytes;
            packet->associated_len = p->associated.size;
            packet->data = data;
            packet->len = len;
            packet->out = out;
            packet->tag = (t->decrypting ? data : out) + len;
            packet->failed = false;
            start = end;
        }
        compute(t, packets, n);
        for (size_t i = 0; t->decrypting && i < n; i++) {
            p->failed.bytes[done + i] = packets[i].failed;
            failures += packets[i].failed;
        }
        done += n;
    }
    return failures;
}

/* nonces, data, offsets, out, failed (if decrypting), associated_data. */
static PyObject *pack(const task *t, PyObject *const *values)
{
    PyObject *result = NULL;
    size_t failures;
    packed p;

    begin_packed(&p);
    if (!take_nonces(t, &p, values[0]) || !acquire(&p.data, values[1], "data") || !take_offsets(t, &p, values[2]))
        goto done;
    const size_t tags = CHAPOLY_TAG_SIZE * p.count; /* at most 4/3 of the nonces' size */
    if (!take_output(&p.out, values[3], "out", t->decrypting ? p.last - tags : p.last + tags) ||
        (t->decrypting && !take_output(&p.failed, values[4], "failed", p.count)))
        goto done;
    values += t->decrypting ? 5 : 4;
    if ((*values != NULL && *values != Py_None && !acquire(&p.associated, *values, "associated_data")) ||
        !check_apart(&p, &p.out, "out") ||
        (t->decrypting && !(check_apart(&p, &p.failed, "failed") &&
                            check_overlap(&p.failed, "failed", &p.out, "out", false))))
        goto done;
    if (!t->decrypting && (result = PyLong_FromSize_t(p.out.size - p.first)) == NULL)
        goto done;
    RELEASING_GIL(p.last - p.first + p.count * weight(0, p.associated.size), failures = compute_packed(t, &p));
    if (t->decrypting)
        result = PyLong_FromSize_t(failures);
done:
    end_packed(&p);
    return result;
}

/* ---- Methods and functions. ---- */

static PyObject *key_call(PyObject *object, const signature *s, PyObject *work(const task *, PyObject *const *),
                          bool decrypting, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    const key_object *const self = (const key_object *)object;
    PyObject *values[PARAMETERS_MAX];

    if (!parse(s, Py_TYPE(object), args, count, keywords, values))
        return NULL;
    const task t = {PyType_GetModuleState(Py_TYPE(object)), self->kernel, self->key, self->nonce_size, decrypting};
    return work(&t, values);
}

/* A method, with its parameters, of which so many are required. */
#define METHOD(name, work, decrypting, required, total, ...)                                                         \
    PyObject *key_##name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)                \
    {                                                                                                                \
        static const signature s = {#name, {__VA_ARGS__}, required, total, total};                                   \
        return key_call(self, &s, work, decrypting, args, count, keywords);                                          \
    }

METHOD(encrypt_many, many, false, 2, 3, "nonces", "datas", "associated_datas")
METHOD(decrypt_many, many, true, 2, 3, "nonces", "datas", "associated_datas")
METHOD(encrypt_packed, pack, false, 4, 5, "nonces", "data", "offsets", "out", "associated_data")
METHOD(decrypt_packed, pack, true, 5, 6, "nonces", "data", "offsets", "out", "failed", "associated_data")

/* A function of a public module: a key for each packet. */
#define FUNCTION(module_name, name, nonce_size, decrypting)                                                          \
    static PyObject *module_name##_##name(PyObject *module, PyObject *const *args, Py_ssize_t count,                 \
                                          PyObject *keywords)                                                        \
    {                                                                                                                \
        static const signature s = {#name, {"keys", "nonces", "datas", "associated_datas"}, 3, 4, 4};                \
        const task t = {PyModule_GetState(module), chapoly_kernel_chosen(), NULL, nonce_size, decrypting};           \
        PyObject *values[4];                                                                                         \
        return parse(&s, NULL, args, count, keywords, values) ? many(&t, values) : NULL;                             \
    }

FUNCTION(chacha20poly1305, encrypt_many, CHAPOLY_NONCE_SIZE, false)
FUNCTION(chacha20poly1305, decrypt_many, CHAPOLY_NONCE_SIZE, true)
FUNCTION(xchacha20poly1305, encrypt_many, CHAPOLY_XNONCE_SIZE, false)
FUNCTION(xchacha20poly1305, decrypt_many, CHAPOLY_XNONCE_SIZE, true)

#define PUBLIC(module_name, name)                                                                                    \
    {#module_name "_" #name,                                                                                         \
     "chapoly." #module_name,                                                                                        \
     {#name, FASTCALL(module_name##_##name), DOC_##module_name##_##name}}

public_function batch_functions[] = {
    PUBLIC(chacha20poly1305, encrypt_many),
    PUBLIC(chacha20poly1305, decrypt_many),
    PUBLIC(xchacha20poly1305, encrypt_many),
    PUBLIC(xchacha20poly1305, decrypt_many),
    {NULL, NULL, {NULL, NULL, 0, NULL}},
};
