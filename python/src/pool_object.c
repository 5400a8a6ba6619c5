#include "pool_object.h"

#include "arguments.h"
#include "pooling.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    PyObject ob_base;
    tarn_pool pool;
    module_state *state; /* lives as long as its module, which the type holds */
} pool_object;

const tarn_pool *pool_of(PyObject *object)
{
    return &((pool_object *)object)->pool;
}

PyObject *pool_create(PyTypeObject *type, module_state *state, const tarn_pool *pool)
{
    pool_object *self = (pool_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->pool = *pool;
    self->state = state;
    return (PyObject *)self;
}

/* ---- Making -------------------------------------------------------------------------------- */

/* The module's state by the first type of the method resolution order that has one. */
static module_state *find_state(PyTypeObject *type)
{
    for (; type; type = (PyTypeObject *)PyType_GetSlot(type, Py_tp_base)) {
        PyObject *module = PyType_GetModule(type);
        if (module)
            return PyModule_GetState(module);
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_TypeError, "not a type of tarn");
    return NULL;
}

/* (op, window, ndim, kernel, stride, padding, dilation, output_size, ceil, count_include_pad,
 * divisor, number, ties, flat, skip, min_count); operator and number as set_operator() and
 * set_number() have them */
static int parse_pool(PyObject *args, tarn_pool *pool)
{
    int op, window, spatial;
    PyObject *kernel, *stride, *padding, *dilation, *out, *ties, *skip, *min_count;
    long long divisor;
    tarn_pool made;
    int ceil, count, flat;
    double number;
    if (!PyArg_ParseTuple(args, "iiiOOOOOppLdOpOO", &op, &window, &spatial, &kernel, &stride,
                          &padding, &dilation, &out, &ceil, &count, &divisor, &number, &ties, &flat,
                          &skip, &min_count))
        return -1;
    made = tarn_max_pool(spatial);
    made.window = (tarn_window)window;
    made.ceil_mode = ceil;
    made.count_include_pad = count;
    made.divisor = divisor;
    set_operator(&made, op);
    set_number(&made, number);
    made.flat = flat;
    if (spatial < 1 || spatial > TARN_MAX_SPATIAL)
        return raise_argument("%d spatial axes are not in 1..%d", spatial, TARN_MAX_SPATIAL);
    if (parse_axes(kernel, "kernel", spatial, made.kernel) ||
        parse_axes(stride == Py_None ? kernel : stride, "stride", spatial, made.stride) ||
        parse_padding(padding, spatial, made.pad_lo, made.pad_hi) ||
        parse_axes(dilation, "dilation", spatial, made.dilation) ||
        parse_axes(out, "output_size", spatial, made.out) || parse_ties(ties, &made.ties) ||
        parse_skip(skip, min_count, &made))
        return -1;
    *pool = made;
    return 0;
}

/* An object of `type` with that descriptor. */
static PyObject *make_object(PyTypeObject *type, const tarn_pool *pool)
{
    module_state *state = find_state(type);
    return state ? pool_create(type, state, pool) : NULL;
}

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    tarn_pool pool;
    (void)kwargs;
    return parse_pool(args, &pool) ? NULL : make_object(type, &pool);
}

static void pool_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* ---- Text ---------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 2048 }; /* Eight axes of the longest numbers fit. */

/* What follows the descriptor in a problem string. With as many axes as there can be, the number of
 * spatial ones does not go without saying. */
#define ANY_PROBLEM " f32 1x1x1x1x1x1x1x1"

static PyObject *pool_text(PyObject *object, void *unused)
{
    (void)unused;
    const int64_t ones[TARN_MAX_SPATIAL] = {1, 1, 1, 1, 1, 1, 1, 1};
    char text[TEXT_BYTES];
    tarn_view x = tarn_view_dense(NULL, TARN_F32, TARN_MAX_SPATIAL, ones);
    int length = tarn_problem_format(pool_of(object), &x, text, sizeof text);
    char *tail = length >= 0 && length < TEXT_BYTES ? strstr(text, ANY_PROBLEM) : NULL;
    if (!tail)
        return PyErr_Format(PyExc_ValueError, "a pool that has no text");
    const char *rest = tail + strlen(ANY_PROBLEM);
    memmove(tail, rest, strlen(rest) + 1);
    return PyUnicode_FromString(text);
}

/* parse(text): the pool that a problem string describes, of the type it is called on. */
static PyObject *pool_parse(PyObject *type, PyObject *text)
{
    tarn_pool pool;
    tarn_view x;
    tarn_error error;
    PyObject *problem = PyUnicode_FromFormat("%S%s", text, ANY_PROBLEM);
    const char *words = problem ? PyUnicode_AsUTF8AndSize(problem, NULL) : NULL;
    const module_state *state = words ? find_state((PyTypeObject *)type) : NULL;
    PyObject *made = NULL;
    if (state && tarn_problem_parse(words, &pool, &x, &error))
        raise_error(state, &error);
    else if (state)
        made = make_object((PyTypeObject *)type, &pool);
    Py_XDECREF(problem);
    return made;
}

static PyObject *pool_repr(PyObject *self)
{
    PyObject *name = PyType_GetName(Py_TYPE(self)), *text = pool_text(self, NULL);
    PyObject *made = name && text ? PyUnicode_FromFormat("tarn.%U.parse(%R)", name, text) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(text);
    return made;
}

/* ---- As values ----------------------------------------------------------------------------- */

static Py_hash_t pool_hash(PyObject *self)
{
    PyObject *text = pool_text(self, NULL);
    Py_hash_t hash = text ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    return hash;
}

/* Pools are equal if they describe the same; which class made them does not matter. */
static PyObject *pool_compare(PyObject *self, PyObject *other, int operator)
{
    const module_state *state = ((pool_object *)self)->state;
    if ((operator!= Py_EQ && operator!= Py_NE) || !PyObject_TypeCheck(other, state->pool_type))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *mine = pool_text(self, NULL), *theirs = mine ? pool_text(other, NULL) : NULL;
    PyObject *is = theirs ? PyObject_RichCompare(mine, theirs, operator) : NULL;
    Py_XDECREF(theirs);
    Py_XDECREF(mine);
    return is;
}

/* For pickle and copy: parse() and its argument. */
static PyObject *pool_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *text = pool_text(self, NULL);
    PyObject *parse = text ? PyObject_GetAttrString((PyObject *)Py_TYPE(self), "parse") : NULL;
    PyObject *made = parse ? Py_BuildValue("(N(N))", parse, text) : NULL;
    if (!parse)
        Py_XDECREF(text);
    return made;
}

/* For dask: equal pools have equal tokens. */
static PyObject *pool_token(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *text = pool_text(self, NULL);
    return text ? Py_BuildValue("(sN)", "tarn.Pool", text) : NULL;
}

/* ---- Passes -------------------------------------------------------------------------------- */

static PyObject *run(PyObject *object, pooling *call)
{
    pool_object *self = (pool_object *)object;
    call->pool = &self->pool;
    return pooling_run(self->state, call);
}

static PyObject *pool_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "out", NULL};
    pooling call = {.pass = TARN_FORWARD};
    if (!kwargs && PyTuple_Size(args) == 1)
        call.object[TARN_X] = PyTuple_GetItem(args, 0); /* the usual call, without the parser */
    else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O", names, &call.object[TARN_X],
                                          &call.object[TARN_Y]))
        return NULL;
    return run(self, &call);
}

/* The values and the indices of the winners; `out` is a pair of arrays, or entries may be None. */
static PyObject *pool_forward_indices(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "out", NULL};
    pooling call = {.pass = TARN_FORWARD_INDICES};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$(OO)", names, &call.object[TARN_X],
                                     &call.object[TARN_Y], &call.object[TARN_INDICES]))
        return NULL;
    return run(self, &call);
}

static PyObject *pool_indices(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "out", NULL};
    pooling call = {.pass = TARN_FORWARD_INDICES};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O", names, &call.object[TARN_X],
                                     &call.object[TARN_INDICES]))
        return NULL;
    PyObject *both = run(self, &call);
    PyObject *indices = both ? PyTuple_GetItem(both, 1) : NULL;
    Py_XINCREF(indices);
    Py_XDECREF(both);
    return indices;
}

static PyObject *pool_jvp(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "dx", "out", NULL};
    pooling call = {.pass = TARN_JVP};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$O", names, &call.object[TARN_X],
                                     &call.object[TARN_DX], &call.object[TARN_DY]))
        return NULL;
    return run(self, &call);
}

static PyObject *pool_vjp(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "gy", "out", NULL};
    pooling call = {.pass = TARN_VJP};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$O", names, &call.object[TARN_X],
                                     &call.object[TARN_GY], &call.object[TARN_GX]))
        return NULL;
    return run(self, &call);
}

/* ---- Questions ----------------------------------------------------------------------------- */

/* A pool whose shapes and pieces are those of this one, and which any dtype goes with. */
static tarn_pool of_any_dtype(tarn_pool pool)
{
    pool.skip = TARN_SKIP_NOTHING;
    if (pool.op == TARN_MODE)
        pool.op = TARN_MAX;
    return pool;
}

static PyObject *pool_output_shape(PyObject *object, PyObject *sizes)
{
    pool_object *self = (pool_object *)object;
    int64_t shape[TARN_MAX_RANK];
    tarn_error error;
    tarn_view y;
    int rank = parse_shape(sizes, shape);
    if (rank < 0)
        return NULL;
    tarn_view x = tarn_view_dense(NULL, TARN_F32, rank, shape);
    tarn_pool pool = of_any_dtype(self->pool);
    if (tarn_output_view(&pool, &x, &y, &error))
        return raise_error(self->state, &error);
    return make_tuple(y.rank, y.shape);
}

/* Slices of a box, counted from those of another, or from 0. */
static PyObject *make_slices(int rank, const tarn_box *box, const tarn_box *from)
{
    PyObject *slices = PyTuple_New(rank);
    for (int k = 0; slices && k < rank; k++) {
        int64_t base = from ? from->lo[k] : 0;
        PyObject *lo = PyLong_FromLongLong(box->lo[k] - base);
        PyObject *hi = lo ? PyLong_FromLongLong(box->hi[k] - base) : NULL;
        PyObject *slice = hi ? PySlice_New(lo, hi, NULL) : NULL;
        Py_XDECREF(lo);
        Py_XDECREF(hi);
        if (!slice || PyTuple_SetItem(slices, k, slice))
            Py_CLEAR(slices);
    }
    return slices;
}

/* A slice for each axis of the tensor, or for the first of them. */
static int parse_box(PyObject *object, const tarn_view *written, tarn_box *box)
{
    Py_ssize_t given = PyTuple_Check(object) ? PyTuple_Size(object) : -1;
    if (given < 0 || given > written->rank)
        return raise_argument("box must be a tuple of at most %d slices", written->rank);
    for (int k = 0; k < written->rank; k++) {
        Py_ssize_t lo = 0, hi = PY_SSIZE_T_MAX, step = 1;
        if (k < given && PySlice_Unpack(PyTuple_GetItem(object, k), &lo, &hi, &step))
            return -1;
        if (step != 1)
            return raise_argument("the step of slice %d is not 1", k);
        PySlice_AdjustIndices((Py_ssize_t)written->shape[k], &lo, &hi, step);
        box->lo[k] = lo;
        box->hi[k] = hi;
    }
    return 0;
}

static int parse_pass(const char *word, tarn_pass *pass)
{
    static const struct {
        const char *word;
        tarn_pass pass;
    } passes[] = {{"forward", TARN_FORWARD},
                  {"indices", TARN_FORWARD_INDICES},
                  {"jvp", TARN_JVP},
                  {"vjp", TARN_VJP}};
    for (size_t k = 0; k < sizeof passes / sizeof *passes; k++)
        if (strcmp(word, passes[k].word) == 0) {
            *pass = passes[k].pass;
            return 0;
        }
    return raise_argument("pass_ is 'forward', 'indices', 'jvp' or 'vjp'");
}

static PyObject *pool_piece(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "box", "pass_", NULL};
    pool_object *self = (pool_object *)object;
    PyObject *sizes, *slices;
    const char *word = "forward";
    int64_t shape[TARN_MAX_RANK];
    tarn_pass pass = TARN_FORWARD;
    tarn_box box, x_box, y_box;
    tarn_pool piece;
    tarn_view y;
    tarn_error error;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|s", names, &sizes, &slices, &word) ||
        parse_pass(word, &pass))
        return NULL;
    int rank = parse_shape(sizes, shape);
    if (rank < 0)
        return NULL;
    tarn_view x = tarn_view_dense(NULL, TARN_F32, rank, shape);
    tarn_pool pool = self->pool;
    if (pool.op == TARN_MODE) /* for its shapes; x has a dtype of its own */
        pool.op = TARN_MAX;
    if (pool.skip != TARN_SKIP_NOTHING)
        pool.skip = TARN_SKIP_NAN;
    if (tarn_output_view(&pool, &x, &y, &error))
        return raise_error(self->state, &error);
    const tarn_view *written = pass == TARN_VJP ? &x : &y;
    if (parse_box(slices, written, &box))
        return NULL;
    if (tarn_piece(&pool, &x, pass, &box, &piece, &x_box, &y_box, &error))
        return raise_error(self->state, &error);
    piece.op = self->pool.op;
    piece.skip = self->pool.skip;
    PyObject *made = pool_create(self->state->pool_type, self->state, &piece);
    return made
               ? Py_BuildValue("(NNNN)", made, make_slices(rank, &x_box, NULL),
                               make_slices(y.rank, &y_box, NULL),
                               make_slices(written->rank, &box, pass == TARN_VJP ? &x_box : &y_box))
               : NULL;
}

/* One line for each pass that the plan has. */
static PyObject *explain_plan(const tarn_plan *plan)
{
    PyObject *text = PyUnicode_FromString("");
    char line[512];
    for (int pass = 0; text && pass < TARN_PASSES; pass++) {
        if (tarn_plan_explain(plan, (tarn_pass)pass, line, sizeof line) < 0)
            continue;
        PyObject *longer =
            PyUnicode_FromFormat("%U%s%s", text, PyUnicode_GetLength(text) ? "\n" : "", line);
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

static PyObject *pool_explain(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "dtype", NULL};
    pool_object *self = (pool_object *)object;
    PyObject *sizes, *dtype_object = NULL;
    int64_t shape[TARN_MAX_RANK];
    tarn_dtype dtype = TARN_F32;
    tarn_plan *plan;
    tarn_error error;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &sizes, &dtype_object) ||
        (dtype_object && parse_dtype(dtype_object, &dtype)))
        return NULL;
    int rank = parse_shape(sizes, shape);
    if (rank < 0)
        return NULL;
    tarn_view x = tarn_view_dense(NULL, dtype, rank, shape);
    if (tarn_plan_create(&plan, &self->pool, &x, NULL, &error))
        return raise_error(self->state, &error);
    PyObject *text = explain_plan(plan);
    tarn_plan_destroy(plan);
    return text;
}

/* ---- The type ------------------------------------------------------------------------------ */

#define KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS
static PyMethodDef pool_methods[] = {
    {"forward_indices", KEYWORDS(pool_forward_indices),
     "forward_indices($self, x, *, out=(None, None))\n--\n\n"
     "The values and the indices of the winners, in one pass."},
    {"indices", KEYWORDS(pool_indices),
     "indices($self, x, *, out=None)\n--\n\n"
     "Where the winners of max and min lie: positions in the flattened spatial axes of x, int64.\n"
     "-1 for a window that holds nothing but padding."},
    {"jvp", KEYWORDS(pool_jvp),
     "jvp($self, x, dx, *, out=None)\n--\n\n"
     "The tangent of the result for the tangent dx of x: J(x) dx."},
    {"vjp", KEYWORDS(pool_vjp),
     "vjp($self, x, gy, *, out=None)\n--\n\n"
     "The gradient of x for the gradient gy of the result: J(x)' gy."},
    {"output_shape", pool_output_shape, METH_O,
     "output_shape($self, shape, /)\n--\n\nThe shape of the result for an input of that shape."},
    {"piece", KEYWORDS(pool_piece),
     "piece($self, shape, box, pass_='forward')\n--\n\n"
     "What computes a box of the result for an input of that shape, with the bits of one call.\n\n"
     "``box`` is a tuple of slices: of x's gradient if ``pass_`` is 'vjp', otherwise of the "
     "result\n"
     "('forward', 'indices' or 'jvp'). Returns (pool, x, y, keep): the pool to call, the slices "
     "of\n"
     "x (also of dx and x's gradient) and of the result (also of gy) that belong to the call, and\n"
     "the slices of what it returns that are the box."},
    {"explain", KEYWORDS(pool_explain),
     "explain($self, shape, dtype='f32')\n--\n\n"
     "Which kernel each pass would run on a dense input, and the bytes it moves."},
    {"__reduce__", pool_reduce, METH_NOARGS, NULL},
    {"__dask_tokenize__", pool_token, METH_NOARGS, NULL},
    {"parse", pool_parse, METH_O | METH_CLASS,
     "parse(text, /)\n--\n\nThe pool that the words of a problem string describe: 'max k3s2p1'."},
    {NULL, NULL, 0, NULL},
};

static PyObject *pool_window(PyObject *object, void *unused)
{
    static const char *const words[TARN_WINDOWS] = {"sliding", "adaptive", "global"};
    (void)unused;
    tarn_window window = pool_of(object)->window;
    return PyUnicode_FromString((int)window < TARN_WINDOWS ? words[window] : "?");
}

static PyObject *pool_axes(PyObject *object, void *unused)
{
    (void)unused;
    const tarn_pool *pool = pool_of(object);
    PyObject *axes = PyTuple_New(pool->spatial);
    for (int a = 0; axes && a < pool->spatial; a++) {
        int64_t numbers[] = {pool->kernel[a], pool->stride[a], pool->dilation[a],
                             pool->pad_lo[a], pool->pad_hi[a], pool->out[a]};
        PyObject *axis = make_tuple(6, numbers);
        if (!axis || PyTuple_SetItem(axes, a, axis))
            Py_CLEAR(axes);
    }
    return axes;
}

static PyObject *pool_op(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLong(pool_of(object)->op);
}

static PyObject *pool_beta(PyObject *object, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble(pool_of(object)->beta);
}

static PyObject *pool_power(PyObject *object, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble(pool_of(object)->power);
}

static PyObject *pool_ceil(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(pool_of(object)->ceil_mode);
}

static PyObject *pool_flat(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(pool_of(object)->flat);
}

static PyObject *pool_keeps_winners(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(keeps_winners(pool_of(object)));
}

static PyObject *pool_divisor(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(pool_of(object)->divisor);
}

static PyObject *pool_linear(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(is_linear(pool_of(object)));
}

static PyObject *pool_skips(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(pool_of(object)->skip != TARN_SKIP_NOTHING);
}

static PyGetSetDef pool_attributes[] = {
    {"op", pool_op, NULL, "The operator: _core.MAX and its like.", NULL},
    {"window", pool_window, NULL, "'sliding', 'adaptive' or 'global'.", NULL},
    {"axes", pool_axes, NULL,
     "For each spatial axis (kernel, stride, dilation, padding before, behind, output size).",
     NULL},
    {"beta", pool_beta, NULL, "The sharpness of smooth max.", NULL},
    {"power", pool_power, NULL, "The p of Lp's norm.", NULL},
    {"ceil", pool_ceil, NULL, "Whether a last window may hang over the edge.", NULL},
    {"flat", pool_flat, NULL, "Whether a global pool drops the spatial axes.", NULL},
    {"keeps_winners", pool_keeps_winners, NULL,
     "Whether a gradient needs the winners and not x: max and min with the tie rule 'first'.",
     NULL},
    {"divisor", pool_divisor, NULL, "The given divisor of means; 0 counts taps.", NULL},
    {"linear", pool_linear, NULL,
     "Whether derivatives do not depend on x: means that skip nothing.", NULL},
    {"skips", pool_skips, NULL, "Whether NaN, or a value, is skipped.", NULL},
    {"text", pool_text, NULL, "The pool as the words of a problem string; see parse().", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot pool_slots[] = {
    {Py_tp_doc, "What every kind of pool can do. Make one with MaxPool and its like."},
    {Py_tp_new, pool_new},
    {Py_tp_dealloc, pool_dealloc},
    {Py_tp_call, pool_call},
    {Py_tp_repr, pool_repr},
    {Py_tp_hash, pool_hash},
    {Py_tp_richcompare, pool_compare},
    {Py_tp_methods, pool_methods},
    {Py_tp_getset, pool_attributes},
    {0, NULL},
};

PyType_Spec pool_spec = {
    .name = "tarn._core.Pool",
    .basicsize = sizeof(pool_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pool_slots,
};
