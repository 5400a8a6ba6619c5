/* The type behind tarn.MaxPool and its like: a descriptor that can be called. */
#ifndef TARN_PYTHON_POOL_OBJECT_H
#define TARN_PYTHON_POOL_OBJECT_H

#include "module.h"

extern PyType_Spec pool_spec;

/* The descriptor of a pool object, which the caller has checked to be one. */
const tarn_pool *pool_of(PyObject *object);

/* An object of that type, which is the module's pool type or derived from it. */
PyObject *pool_create(PyTypeObject *type, module_state *state, const tarn_pool *pool);

#endif
