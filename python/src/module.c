#include "module.h"

#include "arguments.h"
#include "functions.h"
#include "graph_object.h"
#include "plan_cache.h"
#include "pool_object.h"
#include "tensor.h"
#include "torch_step.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Errors and tuples --------------------------------------------------------------------- */

PyObject *raise_error(const module_state *state, const tarn_error *error)
{
    if (error->code == TARN_NO_MEMORY) {
        PyErr_SetString(PyExc_MemoryError, error->message);
        return NULL;
    }
    PyObject *made = PyObject_CallFunction(state->error, "ssi", error->message,
                                           tarn_status_name(error->code), error->axis);
    if (made)
        PyErr_SetObject(state->error, made);
    Py_XDECREF(made);
    return NULL;
}

/* tarn/errors.py defines the exception: a class of two bases is a line there. */
static PyObject *import_error(void)
{
    PyObject *errors = PyImport_ImportModule("tarn.errors");
    PyObject *error = errors ? PyObject_GetAttrString(errors, "Error") : NULL;
    Py_XDECREF(errors);
    return error;
}

int raise_status(const module_state *state, tarn_status code, int axis, const char *format, ...)
{
    tarn_error error = {.code = code, .axis = axis};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    raise_error(state, &error);
    return -1;
}

int raise_argument(const char *format, ...)
{
    tarn_error error = {.code = TARN_BAD_ARGUMENT, .axis = -1};
    module_state state = {.error = import_error()};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    if (state.error)
        raise_error(&state, &error);
    Py_XDECREF(state.error);
    return -1;
}

PyObject *make_tuple(int count, const int64_t *values)
{
    PyObject *tuple = PyTuple_New(count);
    for (int k = 0; tuple && k < count; k++) {
        PyObject *value = PyLong_FromLongLong(values[k]);
        if (!value || PyTuple_SetItem(tuple, k, value))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* ---- Making -------------------------------------------------------------------------------- */

/* Makes a type of the module; *type keeps a reference. */
static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type ? PyModule_AddType(module, *type) : -1;
}

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        int value;
    } constants[] = {{"MAX", TARN_MAX},
                     {"MIN", TARN_MIN},
                     {"AVG", TARN_AVG},
                     {"SMOOTH", TARN_SMOOTH},
                     {"LP", TARN_LP},
                     {"MODE", TARN_MODE},
                     {"SUM", SUM},
                     {"SLIDING", TARN_SLIDING},
                     {"ADAPTIVE", TARN_ADAPTIVE},
                     {"GLOBAL", TARN_GLOBAL}};
    for (size_t k = 0; k < sizeof constants / sizeof *constants; k++)
        if (PyModule_AddIntConstant(module, constants[k].name, constants[k].value))
            return -1;
    return PyModule_AddStringConstant(module, "version", tarn_version());
}

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    state->module = module; /* borrowed: the state is part of it */
    state->error = import_error();
    state->requires_grad = PyUnicode_InternFromString("requires_grad");
    if (!state->error || !state->requires_grad ||
        add_type(module, &tensor_spec, &state->tensor_type) ||
        add_type(module, &pool_spec, &state->pool_type) ||
        add_type(module, &graph_spec, &state->graph_type) ||
        add_type(module, &step_spec, &state->step_type))
        return -1;
    return add_constants(module);
}

/* ---- Unmaking ------------------------------------------------------------------------------ */

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    Py_VISIT(state->tensor_type);
    Py_VISIT(state->pool_type);
    Py_VISIT(state->graph_type);
    Py_VISIT(state->step_type);
    if (torch_traverse(state, visit, arg))
        return -1;
    Py_VISIT(state->numpy_empty);
    for (int k = 0; k < state->class_count; k++)
        Py_VISIT(state->classes[k].type);
    return 0;
}

static int clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    plan_cache_clear(state);
    Py_CLEAR(state->error);
    Py_CLEAR(state->requires_grad);
    Py_CLEAR(state->tensor_type);
    Py_CLEAR(state->pool_type);
    Py_CLEAR(state->graph_type);
    Py_CLEAR(state->step_type);
    torch_clear(state);
    Py_CLEAR(state->numpy_empty);
    for (int k = 0; k < TARN_DTYPES; k++)
        Py_CLEAR(state->numpy_dtype[k]);
    while (state->class_count > 0)
        Py_CLEAR(state->classes[--state->class_count].type);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "tarn._core",
    .m_doc = "The C library, seen from Python. Use the package tarn, not this module.",
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
