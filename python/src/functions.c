/* Functions with PyTorch's names, less their defaults: tarn/functional.py passes every argument. */
#include "functions.h"

#include "arguments.h"
#include "array.h"
#include "pool_object.h"
#include "pooling.h"
#include "torch_step.h"

#include <string.h>

static module_state *state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* ---- Sliding, adaptive, global ------------------------------------------------------------- */

/* Sets the objects that results go to: `out` is None, an array, or a pair with the indices. */
static int set_out(pooling *call, PyObject *out)
{
    if (call->pass != TARN_FORWARD_INDICES || out == Py_None) {
        call->object[TARN_Y] = out;
        return 0;
    }
    if (!PyTuple_Check(out) || PyTuple_Size(out) != 2) {
        PyErr_SetString(PyExc_TypeError, "out must be a pair of arrays: values and indices");
        return -1;
    }
    call->object[TARN_Y] = PyTuple_GetItem(out, 0);
    call->object[TARN_INDICES] = PyTuple_GetItem(out, 1);
    return 0;
}

static PyObject *run_forward(module_state *state, const tarn_pool *pool, PyObject *x,
                             PyObject *indices, PyObject *out, frame frame)
{
    int with_indices = PyObject_IsTrue(indices);
    if (with_indices < 0)
        return NULL;
    pooling call = {.pool = pool,
                    .pass = with_indices ? TARN_FORWARD_INDICES : TARN_FORWARD,
                    .object = {[TARN_X] = x},
                    .frame = frame};
    return set_out(&call, out) ? NULL : pooling_run(state, &call);
}

/* PyTorch's limit: half the taps, whatever the dilation. */
static int check_padding(const module_state *state, const tarn_pool *pool)
{
    for (int a = 0; a < pool->spatial; a++) {
        int64_t kernel = pool->kernel[a], padding = pool->pad_lo[a];
        if (kernel < 1 || padding <= kernel / 2)
            continue; /* The library's own checker has better words for a bad kernel. */
        return raise_status(
            state, TARN_BAD_WINDOW, a,
            "padding %lld on axis %d is more than half of the kernel %lld; tarn.MaxPool "
            "and its like allow it",
            (long long)padding, a, (long long)kernel);
    }
    return 0;
}

static int parse_window(tarn_pool *pool, PyObject *kernel, PyObject *stride, PyObject *padding,
                        PyObject *dilation)
{
    int spatial = pool->spatial;
    if (parse_axes(kernel, "kernel_size", spatial, pool->kernel) ||
        parse_axes(padding, "padding", spatial, pool->pad_lo) ||
        parse_axes(dilation, "dilation", spatial, pool->dilation))
        return -1;
    memcpy(pool->pad_hi, pool->pad_lo, sizeof pool->pad_hi);
    bool own = stride != Py_None && !(PyTuple_Check(stride) && PyTuple_Size(stride) == 0) &&
               !(PyList_Check(stride) && PyList_Size(stride) == 0);
    if (own)
        return parse_axes(stride, "stride", spatial, pool->stride);
    memcpy(pool->stride, pool->kernel, sizeof pool->stride);
    return 0;
}

/* None: as the operator has it. 0 means that to the library, but is an error to PyTorch. */
static int parse_divisor(const module_state *state, PyObject *object, int64_t *divisor)
{
    if (object == Py_None)
        return 0;
    *divisor = parse_integer(object, "divisor_override");
    if (*divisor == -1 && PyErr_Occurred())
        return -1;
    if (*divisor == 0)
        return raise_status(state, TARN_BAD_VALUE, -1, "divisor_override is 0");
    return 0;
}

/* A pool of that operator and number of spatial axes. */
static int parse_kind(PyObject *op, PyObject *ndim, tarn_pool *pool)
{
    int spatial = parse_spatial(ndim);
    if (spatial < 0)
        return -1;
    *pool = tarn_max_pool(spatial);
    set_operator(pool, PyLong_AsLong(op));
    return PyErr_Occurred() ? -1 : 0;
}

int parse_sliding(const module_state *state, PyObject *const *args, tarn_pool *pool)
{
    if (parse_kind(args[OP], args[SPATIAL], pool))
        return -1;
    int ceil = PyObject_IsTrue(args[CEIL]), count = ceil < 0 ? -1 : PyObject_IsTrue(args[COUNT]);
    if (count < 0)
        return -1;
    pool->ceil_mode = ceil;
    pool->count_include_pad = count;
    set_number(pool, PyFloat_AsDouble(args[NUMBER]));
    if (PyErr_Occurred() ||
        parse_window(pool, args[KERNEL], args[STRIDE], args[PADDING], args[DILATION]) ||
        parse_divisor(state, args[DIVISOR], &pool->divisor) ||
        parse_skip(args[SKIP], args[MIN_COUNT], pool))
        return -1;
    return check_padding(state, pool);
}

int check_count(Py_ssize_t given, int expected)
{
    if (given == expected)
        return 0;
    PyErr_Format(PyExc_TypeError, "expected %d arguments, got %zd", expected, given);
    return -1;
}

static PyObject *sliding(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    tarn_pool pool;
    module_state *state = state_of(module);
    if (check_count(count, SLIDING_ARGUMENTS) || parse_sliding(state, args, &pool))
        return NULL;
    return run_forward(state, &pool, args[X], args[INDICES], args[OUT], FRAME_BATCH);
}

/* The pool that sliding() would run, x and what follows the number not looked at. */
static PyObject *sliding_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    tarn_pool pool;
    module_state *state = state_of(module);
    if (check_count(count, SLIDING_ARGUMENTS) || parse_sliding(state, args, &pool))
        return NULL;
    return pool_create(state->pool_type, state, &pool);
}

/* Sets the output sizes that are None to the sizes of x. */
static int keep_sizes(module_state *state, PyObject *sizes, PyObject *x, bool recorded,
                      tarn_pool *pool)
{
    array array;
    if (recorded ? array_import_recorded(state, x, "x", &array)
                 : array_import(state, x, "x", false, &array))
        return -1;
    int lead = array.view.rank - pool->spatial;
    for (int a = 0; a < pool->spatial && lead >= 0; a++) { /* The rank is judged later. */
        PyObject *size = PySequence_GetItem(sizes, a);
        if (size == Py_None)
            pool->out[a] = array.view.shape[lead + a];
        Py_XDECREF(size);
    }
    array_release(&array);
    return PyErr_Occurred() ? -1 : 0;
}

/* One size for all axes, or a size or None for each. */
static int parse_output_size(module_state *state, PyObject *object, PyObject *x, bool recorded,
                             tarn_pool *pool)
{
    bool keeps = false;
    if (!PyTuple_Check(object) && !PyList_Check(object))
        return parse_axes(object, "output_size", pool->spatial, pool->out);
    if (PySequence_Size(object) != pool->spatial)
        return raise_status(state, TARN_BAD_ARGUMENT, -1,
                            "output_size has %zd entries, expected %d", PySequence_Size(object),
                            pool->spatial);
    for (int a = 0; a < pool->spatial; a++) {
        PyObject *size = PySequence_GetItem(object, a);
        bool none = size == Py_None;
        pool->out[a] = none || !size ? 1 : parse_integer(size, "output_size");
        keeps |= none;
        Py_XDECREF(size);
        if (PyErr_Occurred())
            return -1;
    }
    return keeps ? keep_sizes(state, object, x, recorded, pool) : 0;
}

int parse_adaptive(module_state *state, PyObject *const *args, bool recorded, tarn_pool *pool)
{
    if (parse_kind(args[0], args[1], pool))
        return -1;
    pool->window = TARN_ADAPTIVE;
    set_number(pool, PyFloat_AsDouble(args[4]));
    if (PyErr_Occurred() || parse_skip(args[5], args[6], pool))
        return -1;
    return parse_output_size(state, args[3], args[2], recorded, pool);
}

/* (op, ndim, x, output_size, number, skip, min_count, return_indices, out) */
static PyObject *adaptive(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    tarn_pool pool;
    module_state *state = state_of(module);
    if (check_count(count, 9) || parse_adaptive(state, args, false, &pool))
        return NULL;
    return run_forward(state, &pool, args[2], args[7], args[8], FRAME_FIRST);
}

/* (op, ndim, x, keepdims, ties, number, skip, min_count, out) */
static PyObject *global(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (check_count(count, 9))
        return NULL;
    int spatial = parse_spatial(args[1]);
    int keeps = spatial < 0 ? -1 : PyObject_IsTrue(args[3]);
    if (keeps < 0)
        return NULL;
    tarn_pool pool = tarn_global_max_pool(spatial, !keeps);
    set_operator(&pool, PyLong_AsLong(args[0]));
    if (PyErr_Occurred())
        return NULL;
    set_number(&pool, PyFloat_AsDouble(args[5]));
    if (PyErr_Occurred() || parse_ties(args[4], &pool.ties) || parse_skip(args[6], args[7], &pool))
        return NULL;
    return run_forward(state_of(module), &pool, args[2], Py_False, args[8], FRAME_ANY);
}

/* ---- Forward and backward of a training step ----------------------------------------------- */

/* A pool object's descriptor; NULL with TypeError. */
const tarn_pool *checked_pool(const module_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, state->pool_type))
        return pool_of(object);
    PyErr_Format(PyExc_TypeError, "%R is not a pool", object);
    return NULL;
}

/* (pool, x, y, winners): the values and the winners of a pool that keeps them, into arrays or
 * fresh */
static PyObject *pool_saved(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = state_of(module);
    const tarn_pool *pool = check_count(count, 4) ? NULL : checked_pool(state, args[0]);
    pooling call = {.pool = pool, .pass = TARN_FORWARD_SAVED};
    if (!pool)
        return NULL;
    if (!keeps_winners(pool)) {
        raise_status(state, TARN_BAD_ARGUMENT, -1, "a pool that keeps no winners");
        return NULL;
    }
    call.object[TARN_X] = args[1];
    call.object[TARN_Y] = args[2];
    call.object[WINNERS] = args[3];
    return pooling_run(state, &call);
}

/* A pair of sizes and strides; the dtype is not set. */
static int parse_form(PyObject *form, tarn_view *view)
{
    if (!PyTuple_Check(form) || PyTuple_Size(form) != 2) {
        PyErr_Format(PyExc_TypeError, "%R is not a pair of sizes and strides", form);
        return -1;
    }
    view->rank = parse_shape(PyTuple_GetItem(form, 0), view->shape);
    int strides = view->rank < 0 ? -1 : parse_shape(PyTuple_GetItem(form, 1), view->strides);
    if (strides >= 0 && strides != view->rank)
        return raise_argument("%d sizes, but %d strides", view->rank, strides);
    return strides < 0 ? -1 : 0;
}

/* (pool, form, winners, gy): gx. */
static PyObject *vjp_saved(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = state_of(module);
    tarn_view x;
    const tarn_pool *pool = check_count(count, 4) ? NULL : checked_pool(state, args[0]);
    if (!pool || parse_form(args[1], &x))
        return NULL;
    if (args[2] == Py_None && !is_linear(pool)) {
        PyErr_SetString(PyExc_TypeError, "winners may be None for means only");
        return NULL;
    }
    pooling call = {.pool = pool,
                    .pass = args[2] == Py_None ? TARN_VJP : TARN_VJP_SAVED,
                    .object = {[TARN_GY] = args[3], [WINNERS] = args[2]},
                    .x = &x};
    return pooling_run(state, &call);
}

/* ---- Pad, unpad, unpool -------------------------------------------------------------------- */

/* A helper's call: reads x (and indices), writes y. */
typedef struct {
    array x, indices, out;
    bool has_indices, has_out;
    int spatial;
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL];
    tarn_status (*run)(const tarn_view *x, const tarn_view *indices, int spatial, const int64_t *lo,
                       const int64_t *hi, const tarn_view *y, tarn_error *error);
} helper;

static tarn_status run_pad(const tarn_view *x, const tarn_view *indices, int spatial,
                           const int64_t *lo, const int64_t *hi, const tarn_view *y,
                           tarn_error *error)
{
    (void)indices;
    return tarn_pad(x, spatial, lo, hi, y, error);
}

static tarn_status run_unpad(const tarn_view *x, const tarn_view *indices, int spatial,
                             const int64_t *lo, const int64_t *hi, const tarn_view *y,
                             tarn_error *error)
{
    (void)indices;
    return tarn_unpad(x, spatial, lo, hi, y, error);
}

static tarn_status run_unpool(const tarn_view *x, const tarn_view *indices, int spatial,
                              const int64_t *lo, const int64_t *hi, const tarn_view *y,
                              tarn_error *error)
{
    (void)lo, (void)hi;
    return tarn_unpool(x, indices, spatial, y, error);
}

static PyObject *run_helper(module_state *state, helper *helper, const tarn_view *y)
{
    tarn_error error;
    tarn_status status;
    const tarn_view *indices = helper->has_indices ? &helper->indices.view : NULL;
    Py_BEGIN_ALLOW_THREADS status =
        helper->run(&helper->x.view, indices, helper->spatial, helper->lo, helper->hi, y, &error);
    Py_END_ALLOW_THREADS return status ? raise_error(state, &error) : Py_None;
}

/* Runs into a fresh result whose spatial axes have the given sizes. */
static PyObject *make_helped(module_state *state, helper *helper, const int64_t *sizes)
{
    tarn_error error;
    tarn_view y;
    result result;
    /* An adaptive pool to those sizes has the layout we want: dense, in the axis order of x. */
    tarn_pool pool = tarn_adaptive_max_pool(helper->spatial, sizes);
    if (tarn_output_view(&pool, &helper->x.view, &y, &error))
        return raise_error(state, &error);
    PyObject *shape = make_tuple(y.rank, y.shape), *made = NULL;
    if (shape && !result_prepare(state, &helper->x, &y, shape, false, &result)) {
        y.data = result.data;
        if (run_helper(state, helper, &y))
            made = result_finish(state, &helper->x, &result);
        result_drop(&result);
    }
    Py_XDECREF(shape);
    return made;
}

static PyObject *run_helped(module_state *state, helper *helper, const int64_t *sizes,
                            PyObject *out)
{
    if (!helper->has_out)
        return make_helped(state, helper, sizes);
    if (!run_helper(state, helper, &helper->out.view))
        return NULL;
    Py_INCREF(out);
    return out;
}

static void release_helper(helper *helper)
{
    array_release(&helper->x);
    if (helper->has_indices)
        array_release(&helper->indices);
    if (helper->has_out)
        array_release(&helper->out);
}

/* Reads x, indices unless NULL and out unless None. */
static int read_helper(module_state *state, helper *helper, PyObject *x, PyObject *indices,
                       PyObject *out)
{
    helper->has_indices = helper->has_out = false;
    if (array_import(state, x, "x", false, &helper->x))
        return -1;
    if (indices && array_import(state, indices, "indices", false, &helper->indices))
        goto failed;
    helper->has_indices = indices != NULL;
    if (out != Py_None && array_import(state, out, "out", true, &helper->out))
        goto failed;
    helper->has_out = out != Py_None;
    return 0;
failed:
    release_helper(helper);
    return -1;
}

/* The size of an axis after padding (sign 1) or cropping (-1); at least 1, so that what does not
 * fit is left for the library to refuse. */
static int64_t padded_size(const helper *helper, int a, int sign)
{
    int64_t sum, lead = helper->x.view.rank - helper->spatial;
    if (lead < 0 || __builtin_add_overflow(helper->lo[a], helper->hi[a], &sum) ||
        __builtin_mul_overflow(sum, sign, &sum) ||
        __builtin_add_overflow(helper->x.view.shape[lead + a], sum, &sum))
        return 1;
    return sum > 1 ? sum : 1;
}

/* (x, pad, out) */
static PyObject *pad_or_crop(PyObject *module, PyObject *const *args, Py_ssize_t count, int sign)
{
    module_state *state = state_of(module);
    helper helper = {.run = sign > 0 ? run_pad : run_unpad};
    int64_t sizes[TARN_MAX_SPATIAL];
    if (check_count(count, 3) ||
        (helper.spatial = parse_pairs(args[1], helper.lo, helper.hi)) < 0 ||
        read_helper(state, &helper, args[0], NULL, args[2]))
        return NULL;
    for (int a = 0; a < helper.spatial; a++)
        sizes[a] = padded_size(&helper, a, sign);
    PyObject *made = run_helped(state, &helper, sizes, args[2]);
    release_helper(&helper);
    return made;
}

static PyObject *pad(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return pad_or_crop(module, args, count, 1);
}

static PyObject *unpad(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return pad_or_crop(module, args, count, -1);
}

/* (ndim, x, indices, sizes, out) */
static PyObject *unpool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = state_of(module);
    helper helper = {.run = run_unpool};
    int64_t sizes[TARN_MAX_SPATIAL];
    if (check_count(count, 5) || (helper.spatial = parse_spatial(args[0])) < 0 ||
        parse_axes(args[3], "output_size", helper.spatial, sizes) ||
        read_helper(state, &helper, args[1], args[2], args[4]))
        return NULL;
    PyObject *made = run_helped(state, &helper, sizes, args[4]);
    release_helper(&helper);
    return made;
}

/* ---- Settings ------------------------------------------------------------------------------ */

static int parse_threads(PyObject *object, int least)
{
    int64_t threads = parse_integer(object, "threads");
    if (threads == -1 && PyErr_Occurred())
        return -1;
    if (threads < least || threads > 4096) {
        PyErr_Format(PyExc_ValueError, "%lld threads are not in %d..4096", (long long)threads,
                     least);
        return -1;
    }
    return (int)threads;
}

static PyObject *set_num_threads(PyObject *module, PyObject *number)
{
    (void)module;
    int threads = parse_threads(number, 1);
    if (threads < 0)
        return NULL;
    pooling_threads = threads;
    Py_RETURN_NONE;
}

/* Sets the threads of passes in this thread, 0 for those of the process; returns what it was. */
static PyObject *set_threads_here(PyObject *module, PyObject *number)
{
    (void)module;
    int threads = parse_threads(number, 0);
    if (threads < 0)
        return NULL;
    int former = pooling_threads_here;
    pooling_threads_here = threads;
    return PyLong_FromLong(former);
}

static PyObject *get_num_threads(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(pooling_threads_here ? pooling_threads_here
                           : pooling_threads    ? pooling_threads
                                                : 1);
}

/* Where the nodes of the tree of n terms end that make up the terms [lo,hi) [P4]. */
static PyObject *nodes(PyObject *module, PyObject *args)
{
    (void)module;
    long long n, lo, hi;
    int64_t ends[TARN_MAX_NODES];
    if (!PyArg_ParseTuple(args, "LLL", &n, &lo, &hi))
        return NULL;
    int count = tarn_nodes(n, lo, hi, ends);
    if (count == 0)
        return PyErr_Format(PyExc_ValueError, "%lld to %lld is no part of a list of %lld", lo, hi,
                            n);
    return make_tuple(count, ends);
}

#define FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL
PyMethodDef functions[] = {
    {"sliding", FAST(sliding), NULL},
    {"sliding_pool", FAST(sliding_pool), NULL},
    {"adaptive", FAST(adaptive), NULL},
    {"global_", FAST(global), NULL},
    {"pool_saved", FAST(pool_saved), NULL},
    {"vjp_saved", FAST(vjp_saved), NULL},
    {"jax_core", jax_core_table, METH_NOARGS, NULL},
    {"torch_setup", FAST(torch_setup), NULL},
    {"torch_core", torch_core_table, METH_NOARGS, NULL},
    {"torch_native", FAST(torch_connect), NULL},
    {"torch_is_plain", torch_is_plain, METH_O, NULL},
    {"torch_sliding", FAST(torch_sliding), NULL},
    {"torch_adaptive", FAST(torch_adaptive), NULL},
    {"torch_pool", FAST(torch_pool), NULL},
    {"torch_forward", FAST(torch_forward), NULL},
    {"torch_backward", FAST(torch_backward), NULL},
    {"pad", FAST(pad), NULL},
    {"unpad", FAST(unpad), NULL},
    {"unpool", FAST(unpool), NULL},
    {"nodes", nodes, METH_VARARGS, NULL},
    {"copy_file", copy_file, METH_VARARGS, NULL},
    {"set_num_threads", set_num_threads, METH_O, NULL},
    {"set_threads_here", set_threads_here, METH_O, NULL},
    {"get_num_threads", get_num_threads, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
