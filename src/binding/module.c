/*
 * The module chapoly._native: gathers functions and types, and steers the kernels.
 */
#include "binding.h"

PyObject *refuse_pickle(PyObject *self, PyObject *unused)
{
    PyObject *type = PyType_GetName(Py_TYPE(self));

    (void)unused;
    if (type != NULL)
        PyErr_Format(PyExc_TypeError, "cannot pickle '%U' object", type);
    Py_XDECREF(type);
    return NULL;
}

/* ---- Kernels: for _backend.py and testing.py. ---- */

static PyObject *kernels(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0), *result = NULL;
    const chapoly_kernel *kernel;

    (void)module, (void)unused;
    for (size_t i = 0; list != NULL && (kernel = chapoly_kernel_at(i)) != NULL; i++) {
        PyObject *item = Py_BuildValue("szz", chapoly_kernel_name(kernel), chapoly_kernel_obstacle(kernel),
                                       chapoly_kernel_drawback(kernel));
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (list != NULL)
        result = PyList_AsTuple(list);
    Py_XDECREF(list);
    return result;
}

static PyObject *use(PyObject *module, PyObject *name)
{
    (void)module;
    if (PyUnicode_Check(name))
        for (size_t i = 0; chapoly_kernel_at(i) != NULL; i++) {
            const chapoly_kernel *kernel = chapoly_kernel_at(i);
            if (PyUnicode_CompareWithASCIIString(name, chapoly_kernel_name(kernel)) == 0 &&
                chapoly_kernel_obstacle(kernel) == NULL) {
                chapoly_kernel_choose(kernel);
                Py_RETURN_NONE;
            }
        }
    PyErr_Format(PyExc_ValueError, "no kernel %R can run here", name);
    return NULL;
}

static PyObject *cpu_features(PyObject *module, PyObject *unused)
{
    PyObject *result = PyDict_New();
    const char *name;
    bool present;

    (void)module, (void)unused;
    for (size_t i = 0; result != NULL && (name = chapoly_cpu_feature(i, &present)) != NULL; i++)
        if (PyDict_SetItemString(result, name, present ? Py_True : Py_False) < 0)
            Py_CLEAR(result);
    return result;
}

static PyMethodDef functions[] = {
    {"kernels", kernels, METH_NOARGS,
     "kernels()\n--\n\n"
     "Name of each native kernel, what keeps it from running, and why one before it is preferred; or None."},
    {"use", use, METH_O, "use($module, name)\n--\n\nMakes a kernel that can run here the one in use."},
    {"cpu_features", cpu_features, METH_NOARGS,
     "cpu_features()\n--\n\nThe CPU features that the choice of a kernel looks at."},
    {NULL, NULL, 0, NULL},
};

/* ---- What the public modules take from here. ---- */

static int add_functions(PyObject *module, public_function *list)
{
    for (; list->flat_name != NULL; list++) {
        PyObject *owner = PyUnicode_FromString(list->module), *function;
        int status = -1;
        function = owner != NULL ? PyCFunction_NewEx(&list->definition, module, owner) : NULL;
        if (function != NULL)
            status = PyModule_AddObjectRef(module, list->flat_name, function);
        Py_XDECREF(owner);
        Py_XDECREF(function);
        if (status < 0)
            return -1;
    }
    return 0;
}

#define KEY_SIZE {"KEY_SIZE", CHAPOLY_KEY_SIZE, NULL}
#define NONCE_SIZE(size) {"NONCE_SIZE", size, NULL}
#define TAG_SIZE {"TAG_SIZE", CHAPOLY_TAG_SIZE, NULL}

/* A class attribute: a number, or a text. */
typedef struct {
    const char *name;
    long number;
    const char *text;
} constant;

/*
 * Sets a class attribute of a type that is immutable from the start (the limited API has no other way): the generic
 * function writes into the type's own dictionary. Nobody has seen the type yet.
 */
static int set_constant(PyObject *type, const constant *c)
{
    PyObject *key = PyUnicode_InternFromString(c->name);
    PyObject *value = c->text != NULL ? PyUnicode_FromString(c->text) : PyLong_FromLong(c->number);
    int status = key != NULL && value != NULL ? PyObject_GenericSetAttr(type, key, value) : -1;

    Py_XDECREF(key);
    Py_XDECREF(value);
    return status;
}

/* `count` constants, or fewer: the name of what is not there is NULL. */
static PyObject *add_type(PyObject *module, PyType_Spec *spec, PyObject *base, const constant *constants, size_t count)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, base);

    if (type == NULL)
        return NULL;
    for (size_t i = 0; i < count && constants[i].name != NULL; i++) {
        if (set_constant(type, &constants[i]) < 0) {
            Py_DECREF(type);
            return NULL;
        }
    }
    if (PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_DECREF(type);
        return NULL;
    }
    PyType_Modified((PyTypeObject *)type);
    return type;
}

static int add_types(PyObject *module, module_state *state)
{
    enum { CONSTANTS = 3 };
    const struct {
        PyType_Spec *spec;
        PyTypeObject **kept; /* where the state keeps it, for those that functions make */
        constant constants[CONSTANTS];
    } types[] = {
        {&tag_spec, &state->tag, {{0}}},
        {&chacha20poly1305_spec, NULL, {KEY_SIZE, NONCE_SIZE(CHAPOLY_NONCE_SIZE), TAG_SIZE}},
        {&xchacha20poly1305_spec, NULL, {KEY_SIZE, NONCE_SIZE(CHAPOLY_XNONCE_SIZE), TAG_SIZE}},
        {&encryptor_spec, &state->encryptor, {{0}}},
        {&unverified_decryptor_spec, &state->unverified_decryptor, {{0}}},
        {&chacha20_spec, NULL, {KEY_SIZE, NONCE_SIZE(CHAPOLY_NONCE_SIZE)}},
        {&xchacha20_spec, NULL, {KEY_SIZE, NONCE_SIZE(CHAPOLY_XNONCE_SIZE)}},
        {&chacha20_legacy_spec, NULL, {KEY_SIZE, NONCE_SIZE(CHAPOLY_LEGACY_NONCE_SIZE)}},
        {&poly1305_spec,
         NULL,
         {{"name", 0, "poly1305"}, {"digest_size", CHAPOLY_TAG_SIZE, NULL}, {"block_size", 16, NULL}}},
    };

    state->fresh_bytes = PyBytes_FromStringAndSize(NULL, CHAPOLY_TAG_SIZE);
    if (state->fresh_bytes == NULL)
        return -1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        PyObject *base = types[i].spec == &tag_spec ? (PyObject *)&PyBytes_Type : NULL;
        PyObject *type = add_type(module, types[i].spec, base, types[i].constants, CONSTANTS);
        if (type == NULL)
            return -1;
#ifndef Py_LIMITED_API
        if (types[i].spec == &chacha20poly1305_spec)
            ((PyTypeObject *)type)->tp_vectorcall = chacha20poly1305_vectorcall;
        else if (types[i].spec == &xchacha20poly1305_spec)
            ((PyTypeObject *)type)->tp_vectorcall = xchacha20poly1305_vectorcall;
#endif
        if (types[i].kept != NULL)
            *types[i].kept = (PyTypeObject *)type;
        else
            Py_DECREF(type);
    }
    return 0;
}

static int import_errors(module_state *state)
{
    PyObject *errors = PyImport_ImportModule("chapoly.errors");

    if (errors == NULL)
        return -1;
    state->invalid_key = PyObject_GetAttrString(errors, "InvalidKey");
    state->invalid_nonce = PyObject_GetAttrString(errors, "InvalidNonce");
    state->invalid_tag = PyObject_GetAttrString(errors, "InvalidTag");
    state->counter_overflow = PyObject_GetAttrString(errors, "CounterOverflow");
    state->state_error = PyObject_GetAttrString(errors, "StateError");
    Py_DECREF(errors);
    return state->invalid_key && state->invalid_nonce && state->invalid_tag && state->counter_overflow &&
                   state->state_error
               ? 0
               : -1;
}

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);

    return import_errors(state) < 0 || add_types(module, state) < 0 || add_functions(module, chacha20_functions) < 0 ||
                   add_functions(module, poly1305_functions) < 0 || add_functions(module, aead_functions) < 0 ||
                   add_functions(module, batch_functions) < 0
               ? -1
               : 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);

    Py_VISIT(state->invalid_key);
    Py_VISIT(state->invalid_nonce);
    Py_VISIT(state->invalid_tag);
    Py_VISIT(state->counter_overflow);
    Py_VISIT(state->state_error);
    Py_VISIT(state->tag);
    Py_VISIT(state->encryptor);
    Py_VISIT(state->unverified_decryptor); /* not fresh_bytes, which gc.get_referents would show */
    return 0;
}

static int clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);

    Py_CLEAR(state->invalid_key);
    Py_CLEAR(state->invalid_nonce);
    Py_CLEAR(state->invalid_tag);
    Py_CLEAR(state->counter_overflow);
    Py_CLEAR(state->state_error);
    Py_CLEAR(state->tag);
    Py_CLEAR(state->encryptor);
    Py_CLEAR(state->unverified_decryptor);
    Py_CLEAR(state->fresh_bytes);
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

/*
 * CPython refuses slots that it does not know, but from 3.12 on wants to hear that each interpreter may have its own
 * GIL, and from 3.13 on that none is needed. The limited API of 3.11 names neither slot nor value. So there is a
 * definition for each, which takes more of one array the newer CPython is: nothing is filled in at run time, when
 * another interpreter may be reading.
 */
enum { MOD_MULTIPLE_INTERPRETERS = 3, MOD_GIL = 4 };

static PyModuleDef_Slot slots[] = {
    {MOD_GIL, (void *)1},                   /* Py_MOD_GIL_NOT_USED */
    {MOD_MULTIPLE_INTERPRETERS, (void *)2}, /* Py_MOD_PER_INTERPRETER_GIL_SUPPORTED */
    {Py_mod_exec, execute},
    {0, NULL},
};

#define DEFINITION(first_slot)                                                                                       \
    {                                                                                                                \
        PyModuleDef_HEAD_INIT, .m_name = "chapoly._native",                                                          \
        .m_doc = "The native implementation of chapoly; import chapoly instead.", .m_size = sizeof(module_state),    \
        .m_methods = functions, .m_slots = slots + (first_slot), .m_traverse = traverse, .m_clear = clear,           \
        .m_free = free_module,                                                                                       \
    }

static PyModuleDef for_3_13 = DEFINITION(0), for_3_12 = DEFINITION(1), for_3_11 = DEFINITION(2);

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(Py_Version >= 0x030d0000 ? &for_3_13 : Py_Version >= 0x030c0000 ? &for_3_12 : &for_3_11);
}
