/* PyTorch's tensors in eager mode. Its dispatcher takes longer than pooling a small tensor, and for
 * an ordinary tensor that nobody watches it has nothing to do. Every other tensor is left to the
 * registered operators: the functions here return NotImplemented. */
#include "torch_step.h"

#include "array.h"
#include "functions.h"
#include "pool_object.h"
#include "pooling.h"

#include <stdlib.h>

/* What tarn/torch.py hands over, in this order. */
enum {
    TENSOR,       /* the class torch.Tensor */
    IS_NEGATIVE,  /* is_negative(tensor): whether its numbers are those of its memory times -1 */
    TRANSFORMS,   /* these four are false unless somebody watches: functorch, */
    MODES,        /* dispatch modes, */
    FUNCTIONS,    /* function modes, */
    TRACER,       /* torch.jit.trace */
    FORWARD_AD,   /* a dictionary whose "_current_level" is negative outside of forward mode */
    GRADIENTS,    /* gradients(): whether they are recorded */
    THREADS,      /* threads(): how many PyTorch uses */
    FIRST,        /* first(): called before the first step is recorded without a compiled one */
    RECORD,       /* record(x, step): calls torch_forward() and has torch_backward() called later */
    BY_OPERATORS, /* by_operators(step, saved, gy): the gradient, by the registered operators */
    LAID_OUT,     /* laid_out(gy, strides): a copy */
    HOOKS
};

typedef struct torch_hooks {
    PyObject *hook[HOOKS];
    PyObject *level, *requires_grad, *save, *saved, *step; /* words */
    bool has_recorded;
    const torch_native *native; /* the compiled step, which then does all of this; NULL without */
} torch_hooks;

/* ---- Setting up ---------------------------------------------------------------------------- */

void torch_clear(module_state *state)
{
    torch_hooks *torch = state->torch;
    state->torch = NULL;
    if (!torch)
        return;
    for (int k = 0; k < HOOKS; k++)
        Py_XDECREF(torch->hook[k]);
    PyObject *words[] = {torch->level, torch->requires_grad, torch->save, torch->saved,
                         torch->step};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        Py_XDECREF(words[k]);
    free(torch);
}

int torch_traverse(const module_state *state, visitproc visit, void *arg)
{
    for (int k = 0; state->torch && k < HOOKS; k++)
        Py_VISIT(state->torch->hook[k]);
    return 0;
}

PyObject *torch_setup(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    if (check_count(count, HOOKS))
        return NULL;
    torch_hooks *torch = calloc(1, sizeof *torch);
    if (!torch)
        return PyErr_NoMemory();
    for (int k = 0; k < HOOKS; k++) {
        Py_INCREF(args[k]);
        torch->hook[k] = args[k];
    }
    torch->level = PyUnicode_InternFromString("_current_level");
    torch->requires_grad = PyUnicode_InternFromString("requires_grad");
    torch->save = PyUnicode_InternFromString("save_for_backward");
    torch->saved = PyUnicode_InternFromString("saved_tensors");
    torch->step = PyUnicode_InternFromString("step");
    torch_clear(state);
    torch_remember_process();
    state->torch = torch;
    if (PyErr_Occurred()) {
        torch_clear(state);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* (capsule of torch_native, or None): has the compiled step do the work, or no longer. */
PyObject *torch_connect(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    if (check_count(count, 1))
        return NULL;
    const torch_native *native = NULL;
    if (args[0] != Py_None && !(native = PyCapsule_GetPointer(args[0], TORCH_NATIVE)))
        return NULL;
    if (!state->torch) {
        PyErr_SetString(PyExc_TypeError, "PyTorch is not set up");
        return NULL;
    }
    state->torch->native = native;
    Py_RETURN_NONE;
}

/* ---- Who takes part ------------------------------------------------------------------------ */

/* 1 if the call says yes, 0 if no, -1 with an exception. */
static int answer(PyObject *made)
{
    int is = made ? PyObject_IsTrue(made) : -1;
    Py_XDECREF(made);
    return is;
}

static int ask(const torch_hooks *torch, int hook)
{
    return answer(PyObject_CallNoArgs(torch->hook[hook]));
}

/* Whether the tensor's numbers are what its memory on the CPU says. Sparse, nested, quantised,
 * wrapped and fake tensors have no memory that PyTorch would lend, zero tensors none at all. Asking
 * for the tensor's dispatch keys would settle it in one call, which takes as long as pooling. */
static int is_ordinary(module_state *state, PyObject *tensor)
{
    const torch_hooks *torch = state->torch;
    if ((PyObject *)Py_TYPE(tensor) != torch->hook[TENSOR])
        return 0;
    if (!array_is_lent(state, tensor))
        return 0;
    int negative = answer(PyObject_CallFunctionObjArgs(torch->hook[IS_NEGATIVE], tensor, NULL));
    return negative < 0 ? -1 : !negative;
}

/* Whether no transform, mode, tracer or forward-mode derivative is on. */
static int is_unwatched(const torch_hooks *torch)
{
    PyObject *level = PyDict_GetItemWithError(torch->hook[FORWARD_AD], torch->level);
    if (!level || PyLong_AsLong(level) >= 0)
        return PyErr_Occurred() ? -1 : 0;
    for (int k = TRANSFORMS; k <= TRACER; k++) {
        int is = ask(torch, k);
        if (is)
            return is < 0 ? -1 : 0;
    }
    return 1;
}

/* Whether the functions of this file may take the tensor. */
static int is_plain(module_state *state, PyObject *tensor)
{
    int is = is_unwatched(state->torch);
    return is == 1 ? is_ordinary(state, tensor) : is;
}

/* Whether gradients of a tensor are recorded; of the first, PyTorch's side is told, which then
 * compiles a step. */
static int is_recorded(torch_hooks *torch, PyObject *x)
{
    int is = answer(PyObject_GetAttr(x, torch->requires_grad));
    if (is == 1)
        is = ask(torch, GRADIENTS);
    if (is != 1 || torch->has_recorded)
        return is;
    torch->has_recorded = true;
    PyObject *done = PyObject_CallNoArgs(torch->hook[FIRST]);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

static torch_way find_way(module_state *state, PyObject *x)
{
    torch_hooks *torch = state->torch;
    if (!torch)
        return TORCH_BY_OPERATORS;
    if (torch->native)
        return torch->native->way(x);
    int plain = is_plain(state, x), recorded = 0;
    bool tensor = (PyObject *)Py_TYPE(x) == torch->hook[TENSOR];
    if (plain == 1 || (plain == 0 && tensor && !torch->has_recorded))
        recorded = is_recorded(torch, x);
    if (plain < 0 || recorded < 0)
        return TORCH_FAILED;
    return !plain ? TORCH_BY_OPERATORS : recorded ? TORCH_RECORD : TORCH_RUN;
}

/* (x): whether the functions of this file would take it. */
PyObject *torch_is_plain(PyObject *module, PyObject *x)
{
    torch_way way = find_way(PyModule_GetState(module), x);
    return way == TORCH_FAILED ? NULL : PyBool_FromLong(way >= TORCH_RUN);
}

int torch_threads(const module_state *state, PyObject *object)
{
    const torch_hooks *torch = state->torch;
    if (!torch || (PyObject *)Py_TYPE(object) != torch->hook[TENSOR])
        return 0;
    PyObject *number = PyObject_CallNoArgs(torch->hook[THREADS]);
    long threads = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    PyErr_Clear();
    return threads < 1 || threads > 4096 ? 0 : (int)threads;
}

/* ---- Forward ------------------------------------------------------------------------------- */

static PyObject *make_step(module_state *state, const tarn_pool *pool, frame frame, tarn_pass pass)
{
    step_object *step = (step_object *)PyType_GenericAlloc(state->step_type, 0);
    if (!step)
        return NULL;
    step->pool = *pool;
    step->frame = frame;
    step->pass = pass;
    step->plan = NULL;
    step->state = state;
    return (PyObject *)step;
}

/* By the compiled step, or by a node of Python's. */
static PyObject *go_with_step(module_state *state, torch_way way, const tarn_pool *pool,
                              PyObject *x, tarn_pass pass, frame frame)
{
    const torch_hooks *torch = state->torch;
    PyObject *step = make_step(state, pool, frame, pass), *y = NULL;
    if (step && torch->native)
        y = torch->native->run(step, x, way);
    else if (step)
        y = PyObject_CallFunctionObjArgs(torch->hook[RECORD], x, step, NULL);
    Py_XDECREF(step);
    return y;
}

/* The result of a pool the way that was found; indices are recorded by operators only. */
static PyObject *go(module_state *state, torch_way way, const tarn_pool *pool, PyObject *x,
                    PyObject *indices, frame frame)
{
    int with_indices = PyObject_IsTrue(indices);
    if (with_indices < 0)
        return NULL;
    bool recorded = way == TORCH_RECORD;
    if (recorded && with_indices)
        Py_RETURN_NOTIMPLEMENTED;
    tarn_pass pass = with_indices                      ? TARN_FORWARD_INDICES
                     : recorded && keeps_winners(pool) ? TARN_FORWARD_SAVED
                                                       : TARN_FORWARD;
    if (recorded || state->torch->native)
        return go_with_step(state, way, pool, x, pass, frame);
    pooling call = {
        .pool = pool, .pass = pass, .object = {[TARN_X] = x}, .frame = frame, .recorded = true};
    return pooling_run(state, &call);
}

/* NULL, or NotImplemented where the operators must do it. */
static PyObject *leave(torch_way way)
{
    if (way == TORCH_FAILED)
        return NULL;
    Py_RETURN_NOTIMPLEMENTED;
}

/* As sliding(), without `out`. */
PyObject *torch_sliding(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    tarn_pool pool;
    if (check_count(count, OUT))
        return NULL;
    torch_way way = find_way(state, args[X]);
    if (way < TORCH_RUN)
        return leave(way);
    return parse_sliding(state, args, &pool)
               ? NULL
               : go(state, way, &pool, args[X], args[INDICES], FRAME_BATCH);
}

/* As adaptive(), without `out`. */
PyObject *torch_adaptive(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    tarn_pool pool;
    if (check_count(count, 8))
        return NULL;
    torch_way way = find_way(state, args[2]);
    if (way < TORCH_RUN)
        return leave(way);
    return parse_adaptive(state, args, true, &pool)
               ? NULL
               : go(state, way, &pool, args[2], args[7], FRAME_FIRST);
}

/* (pool, x) */
PyObject *torch_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    const tarn_pool *pool = check_count(count, 2) ? NULL : checked_pool(state, args[0]);
    if (!pool)
        return NULL;
    torch_way way = find_way(state, args[1]);
    return way < TORCH_RUN ? leave(way) : go(state, way, pool, args[1], Py_False, FRAME_ANY);
}

/* The step, if the object is one and PyTorch is set up; NULL with TypeError. */
static step_object *checked_step(const module_state *state, PyObject *object)
{
    if (state->torch && Py_TYPE(object) == state->step_type)
        return (step_object *)object;
    PyErr_SetString(PyExc_TypeError, "not a step of tarn.torch");
    return NULL;
}

/* Has autograd's node keep the step, and what the backward needs: winners, x, or for means
 * nothing. */
static int keep(const torch_hooks *torch, PyObject *node, PyObject *step, PyObject *saved)
{
    if (PyObject_SetAttr(node, torch->step, step))
        return -1;
    PyObject *done = saved ? PyObject_CallMethodObjArgs(node, torch->save, saved, NULL) : Py_None;
    if (!done)
        return -1;
    if (saved)
        Py_DECREF(done);
    return 0;
}

/* (node, x, step): the forward of the autograd function. */
PyObject *torch_forward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    step_object *step = check_count(count, 3) ? NULL : checked_step(state, args[2]);
    if (!step)
        return NULL;
    bool keeps = step->pass == TARN_FORWARD_SAVED;
    pooling call = {.pool = &step->pool,
                    .pass = step->pass,
                    .object = {[TARN_X] = args[1]},
                    .frame = step->frame,
                    .recorded = true,
                    .plan = &step->plan};
    PyObject *made = pooling_run(state, &call);
    if (!made)
        return NULL;
    PyObject *y = keeps ? PyTuple_GetItem(made, 0) : made;
    PyObject *saved = keeps ? PyTuple_GetItem(made, 1) : is_linear(&step->pool) ? NULL : args[1];
    int status = keep(state->torch, args[0], args[2], saved);
    Py_INCREF(y);
    Py_DECREF(made);
    if (status)
        Py_CLEAR(y);
    return y;
}

/* ---- Backward ------------------------------------------------------------------------------ */

static PyObject *strides_of(const step_object *step, tarn_operand operand)
{
    tarn_view view;
    tarn_plan_layout(step->plan->plan, operand, &view, NULL);
    return make_tuple(view.rank, view.strides);
}

/* gy as y lies, a new reference: backward kernels are many times slower where it lies otherwise. */
static PyObject *lay_out(const torch_hooks *torch, step_object *step, PyObject *gy)
{
    array array;
    tarn_view y;
    bool fits = true;
    if (array_import_recorded(step->state, gy, "gy", &array))
        return NULL;
    tarn_plan_layout(step->plan->plan, TARN_Y, &y, NULL);
    for (int a = 0; a < y.rank && a < array.view.rank; a++)
        fits &= y.shape[a] <= 1 || array.view.strides[a] == y.strides[a];
    array_release(&array);
    if (fits) {
        Py_INCREF(gy);
        return gy;
    }
    PyObject *strides = strides_of(step, TARN_Y);
    PyObject *copy =
        strides ? PyObject_CallFunctionObjArgs(torch->hook[LAID_OUT], gy, strides, NULL) : NULL;
    Py_XDECREF(strides);
    return copy;
}

static PyObject *run_backward(const torch_hooks *torch, step_object *step, PyObject *saved,
                              PyObject *gy)
{
    PyObject *laid = lay_out(torch, step, gy);
    if (!laid)
        return NULL;
    pooling call = {.pool = &step->pool,
                    .pass = TARN_VJP,
                    .object = {[TARN_GY] = laid},
                    .recorded = true,
                    .plan = &step->plan};
    PyObject *first = PyTuple_Size(saved) ? PyTuple_GetItem(saved, 0) : NULL;
    if (first && keeps_winners(&step->pool)) {
        call.object[WINNERS] = first;
        call.pass = TARN_VJP_SAVED;
    } else if (first) {
        call.object[TARN_X] = first;
    }
    PyObject *gx = pooling_run(step->state, &call);
    Py_DECREF(laid);
    return gx;
}

/* Whether this backward is an ordinary one: not recorded itself, and nobody watches. Hooks on saved
 * tensors may have brought something else back; of winners the type will do, being integers. */
static int is_simple(module_state *state, const tarn_pool *pool, PyObject *saved, PyObject *gy)
{
    int is = ask(state->torch, GRADIENTS);
    if (is)
        return is < 0 ? -1 : 0;
    is = is_plain(state, gy);
    PyObject *first = is == 1 && PyTuple_Size(saved) ? PyTuple_GetItem(saved, 0) : NULL;
    if (!first)
        return is;
    return keeps_winners(pool) ? (PyObject *)Py_TYPE(first) == state->torch->hook[TENSOR]
                               : is_ordinary(state, first);
}

PyObject *step_by_operators(PyObject *step, PyObject *saved, PyObject *gy)
{
    const module_state *state = ((step_object *)step)->state;
    PyObject *tuple = saved ? PyTuple_Pack(1, saved) : PyTuple_New(0), *gx = NULL;
    if (tuple && state->torch)
        gx = PyObject_CallFunctionObjArgs(state->torch->hook[BY_OPERATORS], step, tuple, gy, NULL);
    Py_XDECREF(tuple);
    return gx;
}

/* The gradient for a step that has run forward, and what its node saved. */
static PyObject *find_gradient(module_state *state, step_object *step, PyObject *saved,
                               PyObject *gy)
{
    int simple = is_simple(state, &step->pool, saved, gy);
    if (simple < 0)
        return NULL;
    if (simple)
        return run_backward(state->torch, step, saved, gy);
    return PyObject_CallFunctionObjArgs(state->torch->hook[BY_OPERATORS], step, saved, gy, NULL);
}

/* (node, gy): the backward of the autograd function, (gx, None). */
PyObject *torch_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = PyModule_GetState(module);
    const torch_hooks *torch = state->torch;
    if (check_count(count, 2) || (!torch && !checked_step(state, args[0])))
        return NULL;
    PyObject *object = PyObject_GetAttr(args[0], torch->step), *saved = NULL, *gx = NULL;
    step_object *step = object ? checked_step(state, object) : NULL;
    if (step)
        saved = PyObject_GetAttr(args[0], torch->saved);
    if (saved && PyTuple_Check(saved) && step->plan)
        gx = find_gradient(state, step, saved, args[1]);
    else if (saved)
        PyErr_SetString(PyExc_TypeError, "a step that has not run forward");
    PyObject *both = gx ? PyTuple_Pack(2, gx, Py_None) : NULL;
    Py_XDECREF(gx);
    Py_XDECREF(saved);
    Py_XDECREF(object);
    return both;
}

/* ---- The type ------------------------------------------------------------------------------ */

static void step_dealloc(PyObject *self)
{
    step_object *step = (step_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (step->plan)
        plan_put(step->state, step->plan);
    release(self);
    Py_DECREF(type);
}

static PyObject *step_pool(PyObject *self, void *unused)
{
    (void)unused;
    const step_object *step = (step_object *)self;
    return pool_create(step->state->pool_type, step->state, &step->pool);
}

/* The sizes and strides of gx. */
static PyObject *step_form(PyObject *self, void *unused)
{
    (void)unused;
    step_object *step = (step_object *)self;
    PyObject *shape = step->plan ? plan_shape(step->state, step->plan, TARN_GX) : NULL;
    PyObject *strides = shape ? strides_of(step, TARN_GX) : NULL;
    PyObject *form = strides ? PyTuple_Pack(2, shape, strides) : NULL;
    Py_XDECREF(strides);
    return form;
}

static PyGetSetDef step_attributes[] = {
    {"pool", step_pool, NULL, NULL, NULL},
    {"form", step_form, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot step_slots[] = {
    {Py_tp_doc, "A pool between its forward and its backward."},
    {Py_tp_dealloc, step_dealloc},
    {Py_tp_getset, step_attributes},
    {0, NULL},
};

PyType_Spec step_spec = {
    .name = "tarn._core.Step",
    .basicsize = sizeof(step_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = step_slots,
};
