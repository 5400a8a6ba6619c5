/* The functions of the module. */
#ifndef TARN_PYTHON_FUNCTIONS_H
#define TARN_PYTHON_FUNCTIONS_H

#include "module.h"

extern PyMethodDef functions[];

/* Arguments of the sliding functions by their places. */
enum {
    OP,
    SPATIAL,
    X,
    KERNEL,
    STRIDE,
    PADDING,
    DILATION,
    CEIL,
    COUNT,
    DIVISOR,
    NUMBER,
    SKIP,
    MIN_COUNT,
    INDICES,
    OUT,
    SLIDING_ARGUMENTS
};

/* The pool that they, or those of the adaptive functions (op, ndim, x, output_size, number, skip,
 * min_count), describe. */
int parse_sliding(const module_state *state, PyObject *const *args, tarn_pool *pool);
int parse_adaptive(module_state *state, PyObject *const *args, bool recorded, tarn_pool *pool);

/* A pool object's descriptor; NULL with TypeError. */
const tarn_pool *checked_pool(const module_state *state, PyObject *object);

/* A capsule of the functions that the compiled calls of tarn.jax use. (jax_native.c) */
PyObject *jax_core_table(PyObject *module, PyObject *unused);

/* A file copied through memory. (copy_file.c) */
PyObject *copy_file(PyObject *module, PyObject *args);

/* 0, or -1 with TypeError for a wrong number of arguments. */
int check_count(Py_ssize_t given, int expected);

#endif
