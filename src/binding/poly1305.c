/*
 * The functions of chapoly.poly1305.
 */
#include "binding.h"

static PyObject *mac(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const signature s = {"mac", {"key", "message"}, 2, 2, 2};
    const module_state *state = PyModule_GetState(module);
    PyObject *values[2], *result = NULL;
    buffer key, message;
    uint8_t tag[16];

    NO_BUFFER(key), NO_BUFFER(message);
    if (parse(&s, NULL, args, count, keywords, values) &&
        acquire_exactly(&key, values[0], "key", CHAPOLY_KEY_SIZE, state->invalid_key) &&
        acquire(&message, values[1], "message")) {
        RELEASING_GIL(message.size, chapoly_poly1305_mac(chapoly_kernel_chosen(), tag, key.bytes, message.bytes,
                                                         message.size));
        result = new_tag(state, tag);
    }
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
