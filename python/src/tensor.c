/* The type of results that no array library asked for: memory with the buffer protocol and
 * DLPack. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory -------------------------------------------------------------------------------- */

#define ALIGNMENT 64 /* a cache line; what array libraries want before they share memory */

void tensor_memory_release(tensor_memory *memory)
{
    if (memory && atomic_fetch_sub(&memory->references, 1) == 1)
        free(memory);
}

static void delete_versioned(dlpack_versioned *versioned)
{
    tensor_memory_release((tensor_memory *)versioned);
}

static dlpack_dtype dlpack_dtype_of(tarn_dtype dtype)
{
    bool is_unsigned = tarn_dtype_name(dtype)[0] == 'u';
    uint8_t code = dtype == TARN_BF16  ? DLPACK_BFLOAT
                   : dtype <= TARN_F16 ? DLPACK_FLOAT
                   : is_unsigned       ? DLPACK_UINT
                                       : DLPACK_INT;
    return (dlpack_dtype){code, (uint8_t)(8 * tarn_dtype_size(dtype)), 1};
}

tensor_memory *tensor_memory_create(const tarn_view *layout)
{
    size_t header = (sizeof(tensor_memory) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t bytes = tarn_view_bytes(layout);
    tensor_memory *memory = NULL;
    if (bytes < SIZE_MAX / 2)
        memory = aligned_alloc(ALIGNMENT, header + (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&memory->references, 1);
    memory->dtype = layout->dtype;
    memory->bytes = bytes;
    size_t sizes = (size_t)layout->rank * sizeof(int64_t);
    memcpy(memory->shape, layout->shape, sizes);
    memcpy(memory->strides, layout->strides, sizes);
    memory->versioned = (dlpack_versioned){
        .version = {DLPACK_MAJOR, DLPACK_MINOR},
        .deleter = delete_versioned,
        .tensor = {.data = (char *)memory + header,
                   .device = {DLPACK_CPU, 0},
                   .ndim = layout->rank,
                   .dtype = dlpack_dtype_of(layout->dtype),
                   .shape = memory->shape,
                   .strides = memory->strides},
    };
    return memory;
}

/* ---- The object ---------------------------------------------------------------------------- */

typedef struct {
    PyObject ob_base;
    tensor_memory *memory;
} tensor_object;

PyObject *tensor_from_memory(const module_state *state, tensor_memory *memory)
{
    tensor_object *self = (tensor_object *)PyType_GenericAlloc(state->tensor_type, 0);
    if (!self) {
        tensor_memory_release(memory);
        return NULL;
    }
    self->memory = memory;
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tensor_memory_release(((tensor_object *)self)->memory);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* What struct calls the dtype; bf16 has no letter and goes as its bits. */
static char *format_of(tarn_dtype dtype)
{
    static char formats[TARN_DTYPES][2] = {"d", "f", "e", "H", "b", "B",
                                           "h", "H", "i", "I", "q", "Q"};
    return formats[dtype];
}

static int tensor_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    tensor_memory *memory = ((tensor_object *)object)->memory;
    const dlpack_tensor *tensor = &memory->versioned.tensor;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "a tensor of tarn is read with its strides");
        return -1;
    }
    Py_ssize_t itemsize = (Py_ssize_t)tarn_dtype_size(memory->dtype);
    Py_ssize_t *sizes = PyMem_Calloc(2 * (size_t)tensor->ndim + 1, sizeof(Py_ssize_t));
    if (!sizes) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t elements = 1;
    for (int a = 0; a < tensor->ndim; a++) {
        elements *= sizes[a] = (Py_ssize_t)tensor->shape[a];
        sizes[tensor->ndim + a] = (Py_ssize_t)tensor->strides[a] * itemsize;
    }
    Py_INCREF(object);
    *view = (Py_buffer){.buf = tensor->data,
                        .obj = object,
                        .len = elements * itemsize,
                        .itemsize = itemsize,
                        .ndim = tensor->ndim,
                        .format = flags & PyBUF_FORMAT ? format_of(memory->dtype) : NULL,
                        .shape = sizes,
                        .strides = sizes + tensor->ndim,
                        .internal = sizes};
    return 0;
}

static void tensor_releasebuffer(PyObject *object, Py_buffer *view)
{
    (void)object;
    PyMem_Free(view->internal);
}

/* ---- DLPack -------------------------------------------------------------------------------- */

static void delete_managed(dlpack_managed *managed)
{
    tensor_memory_release(managed->context);
    free(managed);
}

/* A capsule that nobody consumed still owns its tensor. */
static void drop_managed(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_managed(PyCapsule_GetPointer(capsule, "dltensor"));
}

static void drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static PyObject *export_managed(tensor_memory *memory)
{
    dlpack_managed *managed = malloc(sizeof *managed);
    if (!managed)
        return PyErr_NoMemory();
    *managed = (dlpack_managed){memory->versioned.tensor, memory, delete_managed};
    atomic_fetch_add(&memory->references, 1);
    PyObject *capsule = PyCapsule_New(managed, "dltensor", drop_managed);
    if (!capsule)
        delete_managed(managed);
    return capsule;
}

static PyObject *export_versioned(tensor_memory *memory)
{
    atomic_fetch_add(&memory->references, 1);
    PyObject *capsule = PyCapsule_New(memory, "dltensor_versioned", drop_versioned);
    if (!capsule)
        tensor_memory_release(memory);
    return capsule;
}

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None). The memory is on the CPU
 * and fresh, so that only the version matters. */
static PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    tensor_memory *memory = ((tensor_object *)object)->memory;
    long major = 0, minor = 0;
    if (version && version != Py_None && !PyArg_ParseTuple(version, "ll", &major, &minor))
        return NULL;
    return major >= 1 ? export_versioned(memory) : export_managed(memory);
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule that shares the memory."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "The CPU."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, "Memory of a result, for array libraries to take over."},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_methods, tensor_methods},
    {Py_bf_getbuffer, tensor_getbuffer},
    {Py_bf_releasebuffer, tensor_releasebuffer},
    {0, NULL},
};

PyType_Spec tensor_spec = {
    .name = "tarn._core.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_slots,
};
