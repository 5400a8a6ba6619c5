#include "array.h"

#include "tensor.h"

#include <string.h>

/* ---- Which kind of array a type is --------------------------------------------------------- */

/* sys.modules[name], borrowed; NULL without an exception if it was never imported. */
static PyObject *loaded_module(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    return modules ? PyDict_GetItemString(modules, name) : NULL;
}

static int remember_numpy(module_state *state, PyObject *numpy)
{
    static const char *const names[TARN_DTYPES] = {
        [TARN_F64] = "float64", [TARN_F32] = "float32", [TARN_F16] = "float16",
        [TARN_I8] = "int8",     [TARN_U8] = "uint8",    [TARN_I16] = "int16",
        [TARN_U16] = "uint16",  [TARN_I32] = "int32",   [TARN_U32] = "uint32",
        [TARN_I64] = "int64",   [TARN_U64] = "uint64", /* bf16 comes with the array */
    };
    if (state->numpy_empty)
        return 0;
    for (int k = 0; k < TARN_DTYPES; k++)
        if (names[k] &&
            !(state->numpy_dtype[k] = PyObject_CallMethod(numpy, "dtype", "s", names[k])))
            return -1;
    state->numpy_empty = PyObject_GetAttrString(numpy, "empty");
    return state->numpy_empty ? 0 : -1;
}

/* 1 if `object` is a NumPy array, 0 if it is not, -1 with an exception. */
static int is_numpy(module_state *state, PyObject *object)
{
    PyObject *numpy = loaded_module("numpy");
    PyObject *type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    if (!type) {
        PyErr_Clear(); /* A module of that name that is not NumPy, or half imported. */
        return 0;
    }
    int is = PyObject_IsInstance(object, type);
    Py_DECREF(type);
    return is == 1 && remember_numpy(state, numpy) ? -1 : is;
}

/* A mask would be lost here in silence. Asked once for each type, so of all arrays that can have
 * one. */
static int check_unmasked(PyObject *object, const char *name)
{
    PyObject *masked = loaded_module("numpy.ma");
    PyObject *type = masked ? PyObject_GetAttrString(masked, "MaskedArray") : NULL;
    int is = type ? PyObject_IsInstance(object, type) : 0;
    Py_XDECREF(type);
    if (!type)
        PyErr_Clear();
    if (is == 1)
        PyErr_Format(PyExc_TypeError,
                     "%s is a masked array, and tarn has no masks: give it x.filled(number), or "
                     "x.data to pool what lies below the mask",
                     name);
    return is ? -1 : 0;
}

/* The type's table of DLPack functions, if it has one we understand. */
static const dlpack_exchange *find_exchange(PyTypeObject *type)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const dlpack_exchange *exchange = NULL;
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    PyErr_Clear();
    Py_XDECREF(capsule); /* The table is static by the protocol. */
    while (exchange && exchange->version.major != DLPACK_MAJOR)
        exchange = exchange->previous;
    return exchange && exchange->borrow ? exchange : NULL;
}

static int classify(module_state *state, PyObject *object, const char *name, array_class *class)
{
    *class = (array_class){.type = Py_TYPE(object)};
    int numpy = is_numpy(state, object);
    if (numpy < 0 || (numpy && check_unmasked(object, name)))
        return -1;
    if (numpy) {
        class->kind = ARRAY_NUMPY;
    } else if ((class->exchange = find_exchange(class->type))) {
        class->kind = ARRAY_EXCHANGE;
    } else if (PyObject_HasAttrString(object, "__dlpack__")) {
        class->kind = ARRAY_DLPACK;
    } else if (PyObject_CheckBuffer(object)) {
        class->kind = ARRAY_BUFFER;
    } else {
        PyObject *type_name = PyType_GetName(class->type);
        PyErr_Format(PyExc_TypeError,
                     "%s is a %U, not an array: it has neither the buffer protocol nor __dlpack__",
                     name, type_name);
        Py_XDECREF(type_name);
        return -1;
    }
    return 0;
}

static int find_class(module_state *state, PyObject *object, const char *name, array_class *class)
{
    STATE_LOCK(state);
    for (int k = 0; k < state->class_count; k++)
        if (state->classes[k].type == Py_TYPE(object)) {
            *class = state->classes[k];
            STATE_UNLOCK(state);
            return 0;
        }
    STATE_UNLOCK(state);
    if (classify(state, object, name, class))
        return -1;
    STATE_LOCK(state);
    if (state->class_count < CLASSES) {
        Py_INCREF((PyObject *)class->type);
        state->classes[state->class_count++] = *class;
    }
    STATE_UNLOCK(state);
    return 0;
}

/* ---- The buffer protocol ------------------------------------------------------------------- */

/* The dtype that struct's letter and the size mean; -1 for others. Sizes tell `l` apart. */
static int dtype_of_format(const char *format, Py_ssize_t itemsize)
{
    const char *letters[] = {"efd", "bhilq", "BHILQ"};
    static const tarn_dtype dtypes[3][4] = {{(tarn_dtype)-1, TARN_F16, TARN_F32, TARN_F64},
                                            {TARN_I8, TARN_I16, TARN_I32, TARN_I64},
                                            {TARN_U8, TARN_U16, TARN_U32, TARN_U64}};
    int log2 = itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : itemsize == 8 ? 3 : -1;
    const uint16_t one = 1;
    char native = *(const char *)&one ? '<' : '>';
    if (!format)
        format = "B";
    if (*format == '@' || *format == '=' || *format == native)
        format++;
    if (log2 < 0 || !*format || format[1])
        return -1;
    for (int k = 0; k < 3; k++)
        if (strchr(letters[k], *format))
            return (int)dtypes[k][log2];
    return -1;
}

static int view_of_buffer(const module_state *state, const char *name, array *array)
{
    const Py_buffer *buffer = &array->buffer;
    tarn_view *view = &array->view;
    int dtype = dtype_of_format(buffer->format, buffer->itemsize);
    if (dtype < 0)
        return raise_status(state, TARN_BAD_DTYPE, -1,
                            "%s has elements of the format '%.20s', which is no dtype of tarn",
                            name, buffer->format ? buffer->format : "");
    if (buffer->ndim > TARN_MAX_RANK || (buffer->ndim && !buffer->shape))
        return raise_status(state, TARN_BAD_RANK, -1, "%s has a buffer of %d dimensions", name,
                            buffer->ndim);
    if (!buffer->strides) { /* arrays of ctypes: row-major goes without saying */
        int64_t shape[TARN_MAX_RANK];
        for (int a = 0; a < buffer->ndim; a++)
            shape[a] = buffer->shape[a];
        *view = tarn_view_dense(buffer->buf, (tarn_dtype)dtype, buffer->ndim, shape);
        return 0;
    }
    view->data = buffer->buf;
    view->dtype = (tarn_dtype)dtype;
    view->rank = buffer->ndim;
    for (int a = 0; a < buffer->ndim; a++) {
        if (buffer->strides[a] % buffer->itemsize)
            return raise_status(
                state, TARN_BAD_LAYOUT, -1,
                "%s has a stride of %zd bytes in dimension %d, which is no multiple "
                "of its %zd-byte elements",
                name, buffer->strides[a], a, buffer->itemsize);
        view->shape[a] = buffer->shape[a];
        view->strides[a] = buffer->strides[a] / buffer->itemsize;
    }
    return 0;
}

static int hold_buffer(const module_state *state, PyObject *object, const char *name, bool written,
                       array *array)
{
    if (PyObject_GetBuffer(object, &array->buffer, written ? PyBUF_RECORDS : PyBUF_RECORDS_RO)) {
        array->buffer.obj = NULL;
        return -1;
    }
    if (view_of_buffer(state, name, array)) {
        PyBuffer_Release(&array->buffer);
        return -1;
    }
    return 0;
}

/* ---- NumPy --------------------------------------------------------------------------------- */

/* Whether a NumPy array holds bfloat16 (ml_dtypes), which the buffer protocol cannot say. */
static bool holds_bfloat16(PyObject *object)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    bool is = name && PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, "bfloat16");
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return is;
}

static int hold_bfloat16(const module_state *state, PyObject *object, const char *name,
                         bool written, array *array)
{
    array->keep = PyObject_CallMethod(object, "view", "s", "uint16");
    if (!array->keep)
        return -1;
    if (hold_buffer(state, array->keep, name, written, array)) {
        Py_CLEAR(array->keep);
        return -1;
    }
    array->view.dtype = TARN_BF16;
    return 0;
}

static int import_numpy(const module_state *state, PyObject *object, const char *name, bool written,
                        array *array)
{
    if (!hold_buffer(state, object, name, written, array))
        return 0;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!holds_bfloat16(object)) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return hold_bfloat16(state, object, name, written, array);
}

/* ---- DLPack -------------------------------------------------------------------------------- */

static int dtype_of_dlpack(dlpack_dtype dtype)
{
    if (dtype.code == DLPACK_BFLOAT)
        return dtype.bits == 16 && dtype.lanes == 1 ? TARN_BF16 : -1;
    const char *format = dtype.code == DLPACK_FLOAT  ? "d"
                         : dtype.code == DLPACK_INT  ? "q"
                         : dtype.code == DLPACK_UINT ? "Q"
                                                     : "";
    return dtype.lanes == 1 && dtype.bits % 8 == 0 ? dtype_of_format(format, dtype.bits / 8) : -1;
}

static int refuse_device(const char *name, int type, int id)
{
    static const char *const names[] = {
        [1] = "CPU",    [2] = "CUDA",  [3] = "CUDA host", [4] = "OpenCL",
        [7] = "Vulkan", [8] = "Metal", [10] = "ROCm",     [14] = "oneAPI"};
    const char *device =
        type > 0 && type < (int)(sizeof names / sizeof *names) ? names[type] : NULL;
    PyErr_Format(
        PyExc_BufferError,
        "%s lies on device %s:%d (DLPack type %d); tarn reads memory of the CPU only: copy "
        "the array to the host first",
        name, device ? device : "?", id, type);
    return -1;
}

/* Complex numbers and booleans by their names, others (8-bit floats, say) by their codes. */
static int refuse_dlpack_dtype(const module_state *state, const char *name, dlpack_dtype dtype)
{
    const char *word = dtype.code == DLPACK_COMPLEX ? "complex numbers"
                       : dtype.code == DLPACK_BOOL  ? "booleans"
                                                    : "elements of a type";
    return raise_status(state, TARN_BAD_DTYPE, -1,
                        "%s has %s that tarn does not pool (DLPack code %d, %d bits, %d lanes)",
                        name, word, dtype.code, dtype.bits, dtype.lanes);
}

static int view_of_dlpack(const module_state *state, const dlpack_tensor *tensor, const char *name,
                          tarn_view *view)
{
    if (tensor->device.type != DLPACK_CPU)
        return refuse_device(name, tensor->device.type, tensor->device.id);
    int dtype = dtype_of_dlpack(tensor->dtype);
    if (dtype < 0)
        return refuse_dlpack_dtype(state, name, tensor->dtype);
    if (tensor->ndim < 0 || tensor->ndim > TARN_MAX_RANK || (tensor->ndim && !tensor->shape))
        return raise_status(state, TARN_BAD_RANK, -1, "%s has rank %d, not in 0..%d", name,
                            tensor->ndim, TARN_MAX_RANK);
    void *data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    if (!tensor->strides) {
        *view = tarn_view_dense(data, (tarn_dtype)dtype, tensor->ndim, tensor->shape);
        return 0;
    }
    view->data = data;
    view->dtype = (tarn_dtype)dtype;
    view->rank = tensor->ndim;
    memcpy(view->shape, tensor->shape, (size_t)tensor->ndim * sizeof(int64_t));
    memcpy(view->strides, tensor->strides, (size_t)tensor->ndim * sizeof(int64_t));
    return 0;
}

/* -1 with an exception if the array says that it lies elsewhere: asking for a capsule might copy it
 * or wait for it. */
static int check_device(PyObject *object, const char *name)
{
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    PyObject *type = device ? PySequence_GetItem(device, 0) : NULL;
    PyObject *id = type ? PySequence_GetItem(device, 1) : NULL;
    long type_number = id ? PyLong_AsLong(type) : -1;
    long id_number = id && !PyErr_Occurred() ? PyLong_AsLong(id) : -1;
    Py_XDECREF(id);
    Py_XDECREF(type);
    Py_XDECREF(device);
    if (PyErr_Occurred())
        return -1;
    return type_number == DLPACK_CPU ? 0 : refuse_device(name, (int)type_number, (int)id_number);
}

static PyObject *ask_for_capsule(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0);
    PyObject *version = Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR, DLPACK_MINOR);
    PyObject *capsule = NULL;
    if (method && none && version) {
        capsule = PyObject_Call(method, none, version);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* older than versions */
            PyErr_Clear();
            capsule = PyObject_Call(method, none, NULL);
        }
    }
    Py_XDECREF(version);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

static int view_of_capsule(const module_state *state, PyObject *capsule, const char *name,
                           bool written, tarn_view *view)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const dlpack_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (versioned->version.major != DLPACK_MAJOR) {
            PyErr_Format(PyExc_BufferError, "%s speaks DLPack %d.%d, tarn speaks %d.x", name,
                         (int)versioned->version.major, (int)versioned->version.minor,
                         DLPACK_MAJOR);
            return -1;
        }
        if (written && versioned->flags & DLPACK_READ_ONLY) {
            PyErr_Format(PyExc_BufferError, "%s is read-only", name);
            return -1;
        }
        return view_of_dlpack(state, &versioned->tensor, name, view);
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        const dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        return view_of_dlpack(state, &managed->tensor, name, view);
    }
    PyErr_Format(PyExc_TypeError, "%s has a __dlpack__ that did not return a DLPack capsule", name);
    return -1;
}

/* Old capsules cannot say that an array is immutable. If it has a buffer, too, that can. */
static int check_writable(PyObject *object, const char *name)
{
    Py_buffer buffer;
    if (!PyObject_CheckBuffer(object))
        return 0;
    if (!PyObject_GetBuffer(object, &buffer, PyBUF_STRIDES | PyBUF_WRITABLE)) {
        PyBuffer_Release(&buffer);
        return 0;
    }
    PyErr_Format(PyExc_BufferError, "%s is read-only", name);
    return -1;
}

/* Whether a tensor of PyTorch is lent as the numbers below its negative bit (z.conj().imag has it);
 * -1 with an exception. Others have no such thing. */
static int check_not_negative(PyObject *object, const char *name)
{
    PyObject *flag = PyObject_CallMethod(object, "is_neg", NULL);
    int is = flag ? PyObject_IsTrue(flag) : 0;
    Py_XDECREF(flag);
    PyErr_Clear();
    if (is != 1)
        return 0;
    PyErr_Format(
        PyExc_BufferError,
        "%s has PyTorch's negative bit, which other libraries do not see: use the functions "
        "of tarn.torch, or resolve_neg() it",
        name);
    return -1;
}

/* Whether a tensor of PyTorch carries a tangent of forward-mode differentiation; -1 with an
 * exception. PyTorch counts its levels from 0 in a private place; if that is gone, it is asked each
 * time. Below autograd, where a tensor has none, it may answer with a RuntimeError. */
static int has_tangent(PyObject *object)
{
    PyObject *module = loaded_module("torch.autograd.forward_ad");
    PyObject *level = module ? PyObject_GetAttrString(module, "_current_level") : NULL;
    bool none = !module || (level && PyLong_AsLong(level) < 0);
    Py_XDECREF(level);
    PyErr_Clear();
    if (none)
        return 0;
    PyObject *pair = PyObject_CallMethod(module, "unpack_dual", "O", object);
    if (!pair && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear();
        return 0;
    }
    PyObject *tangent = pair ? PySequence_GetItem(pair, 1) : NULL;
    int has = tangent ? tangent != Py_None : -1;
    Py_XDECREF(tangent);
    Py_XDECREF(pair);
    return has;
}

/* Tensors that record gradients would lose them here in silence. */
static int check_no_gradient(const module_state *state, PyObject *object, const char *name)
{
    PyObject *flag = PyObject_GetAttr(object, state->requires_grad);
    int is = flag ? PyObject_IsTrue(flag) : 0;
    PyErr_Clear();
    if (!flag) /* not a tensor of PyTorch */
        return 0;
    Py_DECREF(flag);
    const char *what = "requires grad";
    if (is != 1) {
        is = has_tangent(object);
        what = "carries a forward-mode tangent";
    }
    if (is == 1)
        PyErr_Format(PyExc_BufferError,
                     "%s %s, which is lost here: use the functions of tarn.torch, or detach() it",
                     name, what);
    return is ? -1 : 0;
}

/* The capsule is held, not consumed: its own destructor gives the tensor back. */
static int import_dlpack(const module_state *state, PyObject *object, const char *name,
                         bool written, array *array)
{
    if (check_no_gradient(state, object, name) || check_device(object, name) ||
        check_not_negative(object, name) || (written && check_writable(object, name)))
        return -1;
    array->keep = ask_for_capsule(object);
    if (!array->keep)
        return -1;
    if (view_of_capsule(state, array->keep, name, written, &array->view)) {
        Py_CLEAR(array->keep);
        return -1;
    }
    return 0;
}

static int import_exchange(const module_state *state, PyObject *object, const char *name,
                           array *array)
{
    dlpack_tensor tensor;
    if (check_no_gradient(state, object, name) || check_not_negative(object, name) ||
        array->class.exchange->borrow(object, &tensor))
        return -1;
    return view_of_dlpack(state, &tensor, name, &array->view);
}

/* ---- Import -------------------------------------------------------------------------------- */

int array_import(module_state *state, PyObject *object, const char *name, bool written,
                 array *array)
{
    array->object = object;
    array->keep = NULL;
    array->buffer.obj = NULL;
    if (find_class(state, object, name, &array->class))
        return -1;
    switch (array->class.kind) {
    case ARRAY_NUMPY:
        return import_numpy(state, object, name, written, array);
    case ARRAY_EXCHANGE:
        return import_exchange(state, object, name, array);
    case ARRAY_DLPACK:
        return import_dlpack(state, object, name, written, array);
    case ARRAY_BUFFER:
        break;
    }
    return hold_buffer(state, object, name, written, array);
}

bool array_is_lent(module_state *state, PyObject *object)
{
    array_class class;
    dlpack_tensor tensor = {.data = NULL};
    bool is = !find_class(state, object, "x", &class) && class.kind == ARRAY_EXCHANGE &&
              !class.exchange->borrow(object, &tensor) && tensor.device.type == DLPACK_CPU;
    for (int a = 0; is && !tensor.data && a < tensor.ndim; a++)
        tensor.data = tensor.shape[a] ? NULL : object; /* Empty tensors have no memory. */
    PyErr_Clear();
    return is && tensor.data;
}

/* Tables of functions give the tensor away as it is; __dlpack__ wants it without its gradient. */
int array_import_recorded(module_state *state, PyObject *object, const char *name, array *array)
{
    dlpack_tensor tensor;
    array->object = object;
    array->keep = NULL;
    array->buffer.obj = NULL;
    if (find_class(state, object, name, &array->class))
        return -1;
    if (array->class.kind == ARRAY_EXCHANGE)
        return array->class.exchange->borrow(object, &tensor)
                   ? -1
                   : view_of_dlpack(state, &tensor, name, &array->view);
    PyObject *plain = PyObject_CallMethod(object, "detach", NULL);
    int status = plain ? array_import(state, plain, name, false, array) : -1;
    array->object = object;
    Py_XDECREF(plain); /* What was imported holds the memory. */
    return status;
}

void array_release(array *array)
{
    if (array->buffer.obj)
        PyBuffer_Release(&array->buffer);
    Py_CLEAR(array->keep);
}

/* ---- Results ------------------------------------------------------------------------------- */

/* Axes from the outermost in memory to the innermost; the layout is dense. */
static void nesting_order(const tarn_view *layout, int *order)
{
    for (int a = 0; a < layout->rank; a++) {
        int place = a;
        while (place > 0 && layout->strides[order[place - 1]] < layout->strides[a]) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = a;
    }
}

/* An array of the given layout: a row-major one whose axes are then put in their places. */
static PyObject *permuted_empty(const module_state *state, const tarn_view *layout, PyObject *dtype)
{
    int order[TARN_MAX_RANK];
    int64_t sizes[TARN_MAX_RANK], places[TARN_MAX_RANK];
    nesting_order(layout, order);
    for (int k = 0; k < layout->rank; k++) {
        sizes[k] = layout->shape[order[k]];
        places[order[k]] = k;
    }
    PyObject *shape = make_tuple(layout->rank, sizes);
    PyObject *axes = make_tuple(layout->rank, places);
    PyObject *base = NULL, *made = NULL;
    if (shape && axes)
        base = PyObject_CallFunctionObjArgs(state->numpy_empty, shape, dtype, NULL);
    if (base)
        made = PyObject_CallMethod(base, "transpose", "O", axes);
    Py_XDECREF(base);
    Py_XDECREF(axes);
    Py_XDECREF(shape);
    return made;
}

static PyObject *numpy_dtype_of(const module_state *state, const array *like, tarn_dtype dtype)
{
    PyObject *known = state->numpy_dtype[dtype];
    if (!known)
        return PyObject_GetAttrString(like->object, "dtype");
    Py_INCREF(known);
    return known;
}

static int prepare_numpy(const module_state *state, const array *like, const tarn_view *layout,
                         PyObject *shape, bool dense, result *result)
{
    PyObject *dtype = numpy_dtype_of(state, like, layout->dtype);
    if (!dtype)
        return -1;
    result->object = dense ? PyObject_CallFunctionObjArgs(state->numpy_empty, shape, dtype, NULL)
                           : permuted_empty(state, layout, dtype);
    Py_DECREF(dtype);
    if (!result->object)
        return -1;
    array held = {.keep = NULL};
    if (import_numpy(state, result->object, "the result", true, &held)) {
        Py_CLEAR(result->object);
        return -1;
    }
    result->data = held.view.data; /* The array keeps it; nobody else can resize it yet. */
    array_release(&held);
    return 0;
}

int result_prepare(module_state *state, const array *like, const tarn_view *layout, PyObject *shape,
                   bool dense, result *result)
{
    result->class = like->class;
    result->object = NULL;
    result->memory = NULL;
    if (like->class.kind == ARRAY_NUMPY)
        return prepare_numpy(state, like, layout, shape, dense, result);
    result->memory = tensor_memory_create(layout);
    if (!result->memory)
        return -1;
    result->data = result->memory->versioned.tensor.data;
    return 0;
}

/* The function from_dlpack of the library that the array comes from. */
static PyObject *find_from_dlpack(PyObject *object)
{
    PyObject *space = PyObject_CallMethod(object, "__array_namespace__", NULL);
    if (!space) {
        PyErr_Clear();
        PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
        PyObject *root = name ? PyObject_CallMethod(name, "partition", "s", ".") : NULL;
        PyObject *word = root ? PySequence_GetItem(root, 0) : NULL;
        space = word ? PyImport_Import(word) : NULL;
        Py_XDECREF(word);
        Py_XDECREF(root);
        Py_XDECREF(name);
    }
    PyObject *function = space ? PyObject_GetAttrString(space, "from_dlpack") : NULL;
    Py_XDECREF(space);
    return function;
}

static PyObject *finish_dlpack(const module_state *state, const array *like, tensor_memory *memory)
{
    PyObject *tensor = tensor_from_memory(state, memory);
    PyObject *function = tensor ? find_from_dlpack(like->object) : NULL;
    PyObject *made = NULL;
    if (function)
        made = PyObject_CallFunctionObjArgs(function, tensor, NULL);
    else if (tensor) { /* A library without from_dlpack: the tensor is an array, too. */
        PyErr_Clear();
        return tensor;
    }
    Py_XDECREF(function);
    Py_XDECREF(tensor);
    return made;
}

static PyObject *finish_buffer(const module_state *state, tensor_memory *memory)
{
    PyObject *tensor = tensor_from_memory(state, memory);
    PyObject *view = tensor ? PyMemoryView_FromObject(tensor) : NULL;
    Py_XDECREF(tensor);
    return view;
}

PyObject *result_finish(module_state *state, const array *like, result *result)
{
    tensor_memory *memory = result->memory;
    PyObject *object = result->object;
    result->memory = NULL;
    result->object = NULL;
    switch (result->class.kind) {
    case ARRAY_NUMPY:
        return object;
    case ARRAY_EXCHANGE:
        if (result->class.exchange->to_object(&memory->versioned, (void **)&object))
            return NULL;
        return object;
    case ARRAY_DLPACK:
        return finish_dlpack(state, like, memory);
    case ARRAY_BUFFER:
        break;
    }
    return finish_buffer(state, memory);
}

void result_drop(result *result)
{
    tensor_memory_release(result->memory);
    Py_CLEAR(result->object);
    result->memory = NULL;
}
