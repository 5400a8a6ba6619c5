/* Memory that outlives the call that made it, shared by DLPack capsules and tensor objects. */
#ifndef TARN_PYTHON_TENSOR_H
#define TARN_PYTHON_TENSOR_H

#include "dlpack.h"
#include "module.h"

#include <stdatomic.h>

typedef struct tensor_memory {
    dlpack_versioned versioned; /* first: its deleter finds the block */
    atomic_int references;
    int64_t shape[TARN_MAX_RANK], strides[TARN_MAX_RANK];
    tarn_dtype dtype;
    size_t bytes;
} tensor_memory;

/* A block with one reference for a checked layout; NULL with MemoryError. */
tensor_memory *tensor_memory_create(const tarn_view *layout);
void tensor_memory_release(tensor_memory *memory);

/* An object of the module's tensor type; takes over the reference. */
PyObject *tensor_from_memory(const module_state *state, tensor_memory *memory);

extern PyType_Spec tensor_spec;

#endif
