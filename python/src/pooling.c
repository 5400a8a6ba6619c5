#include "pooling.h"

#include "array.h"
#include "interrupts.h"
#include "torch_step.h"

int pooling_threads;
_Thread_local int pooling_threads_here;

/* A pass over fewer elements takes about as long as giving the GIL away, or waking a thread. */
enum { FEW_FOR_GIL = 4096, FEW_FOR_THREADS = 65536 };

/* Which operands a pass reads and makes, closed by -1; x is read where it is given. */
static const struct {
    int reads[3], makes[3];
} passes[TARN_PASSES] = {
    [TARN_FORWARD] = {{-1}, {TARN_Y, -1}},
    [TARN_FORWARD_SAVED] = {{-1}, {TARN_Y, WINNERS, -1}},
    [TARN_FORWARD_INDICES] = {{-1}, {TARN_Y, TARN_INDICES, -1}},
    [TARN_JVP] = {{TARN_DX, -1}, {TARN_DY, -1}},
    [TARN_VJP] = {{TARN_GY, -1}, {TARN_GX, -1}},
    [TARN_VJP_SAVED] = {{TARN_GY, WINNERS, -1}, {TARN_GX, -1}},
};
static const char *const names[OPERANDS] = {"x", "out", "dx", "out", "out", "gy", "out", "winners"};

/* The tensors of a call. */
typedef struct {
    array array[OPERANDS]; /* valid where `given`; that of x in any case */
    result result[3];      /* valid below `made` */
    bool given[OPERANDS];
    int made;
    void *data[OPERANDS];
} tensors;

static int64_t count_elements(const tarn_view *view)
{
    uint64_t count = 1; /* May wrap: it only guesses how long a pass takes. */
    for (int a = 0; a < view->rank; a++)
        count *= (uint64_t)view->shape[a];
    return (int64_t)count;
}

bool is_large(const tarn_view *x, int parts)
{
    return parts > 1 || count_elements(x) >= FEW_FOR_GIL;
}

int choose_threads(const tarn_view *x, int torch)
{
    if (count_elements(x) < FEW_FOR_THREADS)
        return 1;
    int threads = pooling_threads_here ? pooling_threads_here : pooling_threads;
    return threads ? threads : torch ? torch : 1;
}

static int threads_for(const module_state *state, const array *x)
{
    bool many = count_elements(&x->view) >= FEW_FOR_THREADS;
    return choose_threads(&x->view, many && x->object ? torch_threads(state, x->object) : 0);
}

/* ---- Reading ------------------------------------------------------------------------------- */

static int read_operand(module_state *state, const pooling *call, int operand, bool written,
                        tensors *tensors)
{
    PyObject *object = call->object[operand];
    if (written && (!object || object == Py_None))
        return 0; /* It will be made. */
    array *array = &tensors->array[operand];
    if (call->recorded ? array_import_recorded(state, object, names[operand], array)
                       : array_import(state, object, names[operand], written, array))
        return -1;
    tensors->given[operand] = true;
    tensors->data[operand] = tensors->array[operand].view.data;
    return 0;
}

/* x of a backward that does not read it: a layout. Results are of the library that gy comes
 * from. */
static void set_layout(const pooling *call, tensors *tensors)
{
    array *x = &tensors->array[TARN_X], *gy = &tensors->array[TARN_GY];
    if (call->x)
        x->view = *call->x;
    else
        tarn_plan_layout((*call->plan)->plan, TARN_X, &x->view, NULL);
    x->view.dtype = gy->view.dtype;
    x->class = gy->class;
    x->object = gy->object;
    tensors->data[TARN_X] = NULL;
}

static int read_operands(module_state *state, const pooling *call, tensors *tensors)
{
    if (call->object[TARN_X] && read_operand(state, call, TARN_X, false, tensors))
        return -1;
    for (const int *k = passes[call->pass].reads; *k >= 0; k++)
        if (read_operand(state, call, *k, false, tensors))
            return -1;
    for (const int *k = passes[call->pass].makes; *k >= 0; k++)
        if (read_operand(state, call, *k, true, tensors))
            return -1;
    if (!call->object[TARN_X])
        set_layout(call, tensors);
    return 0;
}

/* What the functions with PyTorch's names ask of x beyond what the library asks. */
int check_frame(const module_state *state, const tarn_pool *pool, frame frame, const tarn_view *x)
{
    int spatial = pool->spatial;
    if (frame == FRAME_ANY)
        return 0;
    if (x->rank != spatial + 1 && x->rank != spatial + 2)
        return raise_status(state, TARN_BAD_RANK, -1,
                            "x has rank %d, expected %d (channels, then space) or %d (batch first)",
                            x->rank, spatial + 1, spatial + 2);
    int filled = frame == FRAME_FIRST ? 1 : x->rank - spatial - 1;
    for (int a = filled; a < x->rank; a++)
        if (x->shape[a] == 0)
            return raise_status(state, TARN_BAD_SHAPE, -1,
                                "x is empty in dimension %d; only a batch may be empty", a);
    return 0;
}

/* ---- Winners ------------------------------------------------------------------------------- */

bool is_linear(const tarn_pool *pool)
{
    return pool->op == TARN_AVG && pool->skip == TARN_SKIP_NOTHING;
}

bool keeps_winners(const tarn_pool *pool)
{
    return (pool->op == TARN_MAX || pool->op == TARN_MIN) && pool->ties == TARN_TIES_FIRST;
}

tarn_dtype winner_dtype(const tarn_plan *plan, const tarn_view *y)
{
    int64_t count = count_elements(y), bytes = (int64_t)tarn_plan_saved_bytes(plan);
    return bytes <= count ? TARN_U8 : bytes == 4 * count ? TARN_I32 : TARN_I64;
}

/* Dense, and laid out as y: what the library takes for granted. */
static int check_winners(const module_state *state, const tarn_plan *plan, const tarn_view *winners)
{
    tarn_view y;
    int64_t last = 0;
    tarn_plan_layout(plan, TARN_Y, &y, NULL);
    bool fits = winners->rank == y.rank && winners->dtype == winner_dtype(plan, &y);
    for (int a = 0; fits && a < y.rank; a++) {
        fits = winners->shape[a] == y.shape[a] &&
               (y.shape[a] <= 1 || (winners->strides[a] == y.strides[a] && y.strides[a] > 0));
        last += y.shape[a] > 1 ? (y.shape[a] - 1) * y.strides[a] : 0;
    }
    if (fits && (count_elements(&y) == 0 || last + 1 == count_elements(&y)))
        return 0;
    return raise_status(state, TARN_BAD_LAYOUT, -1, "winners are not laid out as the values are");
}

/* ---- Results ------------------------------------------------------------------------------- */

static int make_result(module_state *state, plan_entry *entry, int operand, tensors *tensors)
{
    tarn_operand like = operand == WINNERS ? TARN_Y : (tarn_operand)operand;
    PyObject *shape = plan_shape(state, entry, like);
    const array *x = &tensors->array[TARN_X];
    result *result = &tensors->result[tensors->made];
    if (!shape)
        return -1;
    tarn_view layout;
    layout.dtype = operand == TARN_INDICES ? TARN_I64 : x->view.dtype;
    if (!entry->dense[like] || x->class.kind != ARRAY_NUMPY || operand == WINNERS)
        tarn_plan_layout(entry->plan, like, &layout, NULL);
    if (operand == WINNERS)
        layout.dtype = winner_dtype(entry->plan, &layout);
    if (result_prepare(state, x, &layout, shape, entry->dense[like], result))
        return -1;
    tensors->made++;
    tensors->data[operand] = result->data;
    return 0;
}

static int make_results(module_state *state, const pooling *call, plan_entry *entry,
                        tensors *tensors)
{
    for (const int *k = passes[call->pass].makes; *k >= 0; k++)
        if (!tensors->given[*k] && make_result(state, entry, *k, tensors))
            return -1;
    return 0;
}

/* Operand k as an object: what was given, or the next of the results that were made. */
static PyObject *finish_operand(module_state *state, const pooling *call, tensors *tensors,
                                int operand, int *next)
{
    if (!tensors->given[operand])
        return result_finish(state, &tensors->array[TARN_X], &tensors->result[(*next)++]);
    Py_INCREF(call->object[operand]);
    return call->object[operand];
}

static PyObject *finish_results(module_state *state, const pooling *call, tensors *tensors)
{
    int next = 0;
    const int *makes = passes[call->pass].makes;
    PyObject *first = finish_operand(state, call, tensors, makes[0], &next);
    if (!first || makes[1] < 0)
        return first;
    PyObject *second = finish_operand(state, call, tensors, makes[1], &next);
    PyObject *both = second ? PyTuple_Pack(2, first, second) : NULL;
    Py_DECREF(first);
    Py_XDECREF(second);
    return both;
}

/* ---- Running ------------------------------------------------------------------------------- */

static tarn_status run_pass(const tarn_plan *plan, tarn_pass pass, void *const *data,
                            tarn_error *error)
{
    switch (pass) {
    case TARN_FORWARD:
        return tarn_forward(plan, data[TARN_X], data[TARN_Y], NULL, error);
    case TARN_FORWARD_SAVED:
        return tarn_forward(plan, data[TARN_X], data[TARN_Y], data[WINNERS], error);
    case TARN_FORWARD_INDICES:
        return tarn_forward_indices(plan, data[TARN_X], data[TARN_Y], data[TARN_INDICES], error);
    case TARN_JVP:
        return tarn_jvp(plan, data[TARN_X], data[TARN_DX], NULL, data[TARN_DY], error);
    case TARN_VJP_SAVED:
        return tarn_vjp(plan, NULL, data[WINNERS], data[TARN_GY], data[TARN_GX], error);
    default:
        return tarn_vjp(plan, data[TARN_X], NULL, data[TARN_GY], data[TARN_GX], error);
    }
}

int run_plan(const module_state *state, const tarn_plan *plan, tarn_pass pass, bool large,
             void *const *data)
{
    tarn_error error;
    watch watch;
    if (large)
        watch_begin(&watch);
    tarn_status status = run_pass(plan, pass, data, &error);
    if (large && watch_end(&watch))
        return -1;
    if (status)
        raise_error(state, &error);
    return status ? -1 : 0;
}

/* Whether every array given lies as the plan has it. */
static bool fits_plan(const tensors *tensors, const tarn_plan *plan)
{
    bool fits = true;
    for (int k = 0; k < TARN_OPERANDS && fits; k++) {
        const tarn_view *view = &tensors->array[k].view;
        tarn_view wanted;
        if (!tensors->given[k])
            continue;
        tarn_plan_layout(plan, (tarn_operand)k, &wanted, NULL);
        fits = view->dtype == wanted.dtype && view->rank == wanted.rank;
        for (int a = 0; fits && a < wanted.rank; a++)
            fits = view->shape[a] == wanted.shape[a] &&
                   (wanted.shape[a] <= 1 || view->strides[a] == wanted.strides[a]);
    }
    return fits;
}

/* The plan that came with the call, or one for the layouts of its arrays; NULL with an
 * exception. */
static plan_entry *find_plan(module_state *state, const pooling *call, const tensors *tensors)
{
    const tarn_view *x = &tensors->array[TARN_X].view, *layout[TARN_OPERANDS] = {NULL};
    tarn_view y;
    int parts = count_parts(call->pool, x, call->pass);
    if (call->plan && *call->plan && (*call->plan)->parts == parts &&
        fits_plan(tensors, (*call->plan)->plan)) {
        plan_take(state, *call->plan);
        return *call->plan;
    }
    for (int k = TARN_X + 1; k < TARN_OPERANDS; k++)
        if (tensors->given[k])
            layout[k] = &tensors->array[k].view;
    if (tensors->given[WINNERS] && !layout[TARN_Y]) { /* They were laid out as y was. */
        y = tensors->array[WINNERS].view;
        y.dtype = x->dtype;
        layout[TARN_Y] = &y;
    }
    return plan_get(state, call->pool, x, layout, threads_for(state, &tensors->array[TARN_X]),
                    NULL, parts);
}

static PyObject *run_tensors(module_state *state, const pooling *call, tensors *tensors)
{
    const tarn_view *x = &tensors->array[TARN_X].view;
    if (check_frame(state, call->pool, call->frame, x))
        return NULL;
    plan_entry *entry = find_plan(state, call, tensors);
    if (!entry)
        return NULL;
    PyObject *made = NULL;
    bool bad =
        tensors->given[WINNERS] && check_winners(state, entry->plan, &tensors->array[WINNERS].view);
    if (!bad && !make_results(state, call, entry, tensors) &&
        !run_plan(state, entry->plan, call->pass, is_large(x, entry->parts), tensors->data))
        made = finish_results(state, call, tensors);
    if (made && call->plan && !*call->plan)
        *call->plan = entry;
    else
        plan_put(state, entry);
    return made;
}

PyObject *pooling_run(module_state *state, const pooling *call)
{
    tensors tensors; /* Large: only what is used is set. */
    tensors.made = 0;
    for (int k = 0; k < OPERANDS; k++)
        tensors.given[k] = false;
    PyObject *made = NULL;
    if (!read_operands(state, call, &tensors))
        made = run_tensors(state, call, &tensors);
    for (int k = 0; k < tensors.made; k++)
        result_drop(&tensors.result[k]); /* Those finished are empty. */
    for (int k = 0; k < OPERANDS; k++)
        if (tensors.given[k])
            array_release(&tensors.array[k]);
    return made;
}
