/* What the files of the extension share: the module's state, and one way to raise. */
#ifndef TARN_PYTHON_MODULE_H
#define TARN_PYTHON_MODULE_H

/* One wheel for CPython 3.11 and later. Free-threaded builds have no limited API yet. */
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <tarn.h>

#define CLASSES 16     /* array types remembered; others are looked at anew each time */
#define PLAN_SLOTS 512 /* a power of two */

/* How arrays of a Python type are read, and how results of that type are made. */
typedef enum { ARRAY_NUMPY, ARRAY_EXCHANGE, ARRAY_DLPACK, ARRAY_BUFFER } array_kind;

typedef struct {
    PyTypeObject *type;
    array_kind kind;
    const struct dlpack_exchange *exchange; /* ARRAY_EXCHANGE: the type's own functions */
} array_class;

typedef struct {
    PyObject *module;
    PyObject *error;         /* tarn.Error */
    PyObject *requires_grad; /* the word */
    PyTypeObject *tensor_type, *pool_type, *graph_type, *step_type;
    struct torch_hooks *torch; /* once tarn.torch is imported */
    array_class classes[CLASSES];
    int class_count;
    PyObject *numpy_empty, *numpy_dtype[TARN_DTYPES]; /* once NumPy has been met */
    struct plan_entry *plans[PLAN_SLOTS];
#ifdef Py_GIL_DISABLED
    PyMutex lock; /* guards classes and plans; elsewhere the GIL does */
#endif
} module_state;

#ifdef Py_GIL_DISABLED
#define STATE_LOCK(state) PyMutex_Lock(&(state)->lock)
#define STATE_UNLOCK(state) PyMutex_Unlock(&(state)->lock)
#else
#define STATE_LOCK(state) ((void)(state))
#define STATE_UNLOCK(state) ((void)(state))
#endif

/* Raises tarn.Error (MemoryError for NO_MEMORY) with the library's sentence. Returns NULL. */
PyObject *raise_error(const module_state *state, const tarn_error *error);

/* Raises tarn.Error with a code and a sentence of our own. Returns -1. */
int raise_status(const module_state *state, tarn_status code, int axis, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Raises tarn.Error for a bad argument where there is no state at hand. Returns -1. */
int raise_argument(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A tuple of integers. */
PyObject *make_tuple(int count, const int64_t *values);

#endif
