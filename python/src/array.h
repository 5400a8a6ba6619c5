/* Arrays of other libraries: read without a copy, and made to hold results. */
#ifndef TARN_PYTHON_ARRAY_H
#define TARN_PYTHON_ARRAY_H

#include "dlpack.h"
#include "module.h"

/* An array borrowed for one call. Only the first `rank` entries of the view are set. */
typedef struct {
    tarn_view view;
    array_class class;
    PyObject *object; /* borrowed */
    PyObject *keep; /* owned: a capsule, or the array whose buffer is held; NULL if there is none */
    Py_buffer buffer; /* held if buffer.obj is set */
} array;

/* Reads `object`; `name` stands in messages. A written array must be writable. Returns 0, or -1
 * with an exception set; then there is nothing to release. */
int array_import(module_state *state, PyObject *object, const char *name, bool written,
                 array *array);
/* Whether the object's type has a table of DLPack functions that lends the object's memory on the
 * CPU. No exception is left. */
bool array_is_lent(module_state *state, PyObject *object);

/* array_import() for a tensor of PyTorch whose gradients are not lost by reading it. */
int array_import_recorded(module_state *state, PyObject *object, const char *name, array *array);
void array_release(array *array);

/* A result on its way: memory first, the Python object when it has been filled. */
typedef struct {
    void *data;
    PyObject *object;             /* ARRAY_NUMPY: the array itself */
    struct tensor_memory *memory; /* the others */
    array_class class;
} result;

/* Memory for a result of the type of `like` with that layout (its data is not used); `shape` is the
 * tuple of its sizes and `dense` says that the layout is row-major. */
int result_prepare(module_state *state, const array *like, const tarn_view *layout, PyObject *shape,
                   bool dense, result *result);
/* The filled result as an object; a new reference, or NULL with an exception. */
PyObject *result_finish(module_state *state, const array *like, result *result);
/* Drops a result that will not be finished. */
void result_drop(result *result);

#endif
