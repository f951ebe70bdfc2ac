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

    (void)module, (void)unused;
    for (size_t i = 0; list != NULL && chapoly_kernel_at(i) != NULL; i++) {
        const chapoly_kernel *kernel = chapoly_kernel_at(i);
        PyObject *item = Py_BuildValue("sz", chapoly_kernel_name(kernel), chapoly_kernel_obstacle(kernel));
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
     "kernels()\n--\n\nEach native kernel's name and what keeps it from running here, or None; fastest first."},
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

/*
 * Sets a class attribute of a type that is immutable from the start (the limited API has no other way): the generic
 * function writes into the type's own dictionary. Nobody has seen the type yet.
 */
static int set_size(PyObject *type, const char *name, long size)
{
    PyObject *key = PyUnicode_InternFromString(name), *value = PyLong_FromLong(size);
    int status = key != NULL && value != NULL ? PyObject_GenericSetAttr(type, key, value) : -1;

    Py_XDECREF(key);
    Py_XDECREF(value);
    return status;
}

static PyObject *add_type(PyObject *module, PyType_Spec *spec, PyObject *base, long nonce_size, long tag_size)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, base);

    if (type == NULL)
        return NULL;
    if ((nonce_size > 0 && (set_size(type, "KEY_SIZE", CHAPOLY_KEY_SIZE) < 0 ||
                            set_size(type, "NONCE_SIZE", nonce_size) < 0)) ||
        (tag_size > 0 && set_size(type, "TAG_SIZE", tag_size) < 0) ||
        PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_DECREF(type);
        return NULL;
    }
    PyType_Modified((PyTypeObject *)type);
    return type;
}

static int add_types(PyObject *module, module_state *state)
{
    static const struct {
        PyType_Spec *spec;
        long nonce_size, tag_size;
    } types[] = {
        {&chacha20poly1305_spec, CHAPOLY_NONCE_SIZE, CHAPOLY_TAG_SIZE},
        {&xchacha20poly1305_spec, CHAPOLY_XNONCE_SIZE, CHAPOLY_TAG_SIZE},
        {&chacha20_spec, CHAPOLY_NONCE_SIZE, 0},
        {&xchacha20_spec, CHAPOLY_XNONCE_SIZE, 0},
        {&chacha20_legacy_spec, CHAPOLY_LEGACY_NONCE_SIZE, 0},
    };

    state->tag = (PyTypeObject *)add_type(module, &tag_spec, (PyObject *)&PyBytes_Type, 0, 0);
    if (state->tag == NULL)
        return -1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        PyObject *type = add_type(module, types[i].spec, NULL, types[i].nonce_size, types[i].tag_size);
        if (type == NULL)
            return -1;
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
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

/* Filled in by PyInit: CPython 3.11 refuses slots that it does not know, 3.12 and later want them (see below). */
static PyModuleDef_Slot slots[4] = {{Py_mod_exec, execute}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "chapoly._native",
    .m_doc = "The native implementation of chapoly; import chapoly instead.",
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    /* Numbers and values of slots that the limited API of 3.11 does not name. */
    enum { MOD_MULTIPLE_INTERPRETERS = 3, MOD_GIL = 4 };
    void *const per_interpreter_gil = (void *)2, *const gil_not_used = (void *)1;
    int next = 1;

    if (Py_Version >= 0x030c0000)
        slots[next++] = (PyModuleDef_Slot){MOD_MULTIPLE_INTERPRETERS, per_interpreter_gil};
    if (Py_Version >= 0x030d0000)
        slots[next++] = (PyModuleDef_Slot){MOD_GIL, gil_not_used};
    slots[next] = (PyModuleDef_Slot){0, NULL};
    return PyModuleDef_Init(&definition);
}
