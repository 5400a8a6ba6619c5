/* The passes: check the call's arguments, split the work, call the kernel. */
#include "error.h"
#include "float_state.h"
#include "plan.h"

/* ---- Arguments ------------------------------------------------------------------------------ */

static bool is_empty(const tarn_plan *plan)
{
    return plan->problem.planes == 0;
}

/* Written tensors first: [0,written) of `used` are written, the rest are read. */
typedef struct {
    int used[4], written, count;
    tarn_tensors tensors;
} call;

static void add_operand(call *call, int operand, const void *data)
{
    call->used[call->count++] = operand;
    call->tensors.base[operand] = (char *)(uintptr_t)data;
}

static void add_written(call *call, int operand, void *data)
{
    add_operand(call, operand, data);
    call->written = call->count;
}

static tarn_status check_aliases(const tarn_plan *plan, const call *call, tarn_error *error)
{
    for (int w = 0; w < call->written; w++)
        for (int k = w + 1; k < call->count; k++) {
            int a = call->used[w], b = call->used[k];
            if (tarn_extents_meet(call->tensors.base[a], plan->extent[a], call->tensors.base[b],
                                  plan->extent[b]))
                return tarn_fail(error, TARN_ALIAS, NO_AXIS,
                                 "%s is written and shares memory with %s", tarn_operand_name(a),
                                 tarn_operand_name(b));
        }
    return TARN_OK;
}

/* Whether a tensor is there and aligned to its elements; saved winners take any address. Sizes
 * are powers of two. */
static bool is_there(const tarn_plan *plan, int operand, const char *data)
{
    int64_t bytes = operand == OPERAND_SAVED ? 1 : plan->problem.element_bytes[operand];
    return data && ((uintptr_t)data & (uintptr_t)(bytes - 1)) == 0;
}

static tarn_status check_call(const tarn_plan *plan, const call *call, tarn_error *error)
{
    if (is_empty(plan))
        return TARN_OK;
    for (int k = 0; k < call->count; k++) {
        int operand = call->used[k];
        const char *data = call->tensors.base[operand];
        if (!is_there(plan, operand, data))
            return tarn_check_data(tarn_operand_name(operand), data, plan->view[operand].dtype,
                                   false, error);
        if (!tarn_extent_fits(data, plan->extent[operand]))
            return tarn_fail(error, TARN_BAD_LAYOUT, NO_AXIS,
                             "%s, with its strides, reaches beyond the address space",
                             tarn_operand_name(operand));
    }
    return check_aliases(plan, call, error);
}

/* ---- Work ----------------------------------------------------------------------------------- */

typedef struct {
    const tarn_problem *problem;
    tarn_kernel *kernel;
    const tarn_tensors *tensors;
    int64_t units;
    int parts;
} work;

static bool is_piece(const tarn_problem *p)
{
    for (int a = 0; a < p->spatial; a++)
        if (p->axis[a].whole != p->axis[a].size)
            return true;
    return false;
}

/* [M5, P1] The index of a cell of the piece becomes that of the whole. */
static int64_t whole_index(const tarn_problem *p, int64_t index)
{
    int64_t result = 0, scale = 1;
    for (int a = p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &p->axis[a];
        result += (index % axis->size + axis->origin) * scale;
        scale *= axis->whole;
        index /= axis->size;
    }
    return result;
}

/* The windows at `o`, from `axis` on, in every lane. */
static void convert_indices(const tarn_problem *p, int64_t *at, int axis, int64_t lo, int64_t hi)
{
    for (int64_t o = lo; o < hi; o++) {
        int64_t *to = at + o * p->stride[TARN_INDICES][axis];
        if (axis + 1 < p->spatial)
            convert_indices(p, to, axis + 1, 0, p->axis[axis + 1].out);
        else
            for (int64_t c = 0; c < p->lanes; c++)
                to[c] = to[c] < 0 ? to[c] : whole_index(p, to[c]);
    }
}

static void convert_units(const work *work, int64_t begin, int64_t end)
{
    tarn_slab slab;
    while (next_slab(work->problem, work->tensors, work->problem->axis[0].out, &begin, end, &slab))
        convert_indices(work->problem, (int64_t *)(void *)slab.base[TARN_INDICES], 0, slab.lo,
                        slab.hi);
}

static void run_units(const work *work, int64_t begin, int64_t end)
{
    uint64_t former = set_float_state();
    work->kernel(work->problem, work->tensors, begin, end);
    restore_float_state(former);
    if (work->tensors->base[TARN_INDICES] && is_piece(work->problem))
        convert_units(work, begin, end);
}

static void run_part(void *argument, int index)
{
    const work *work = argument;
    int64_t begin = muldiv_floor(work->units, index, work->parts);
    int64_t end = muldiv_floor(work->units, index + 1, work->parts);
    run_units(work, begin, end);
}

static tarn_status run(const tarn_plan *plan, tarn_pass pass, const call *call, tarn_error *error)
{
    tarn_status status = check_call(plan, call, error);
    if (status)
        return status;
    const tarn_axis *first = &plan->problem.axis[0];
    bool backward = pass == TARN_VJP || pass == TARN_VJP_SAVED;
    int64_t units = plan->problem.planes * (backward ? first->size : first->out);
    int parts = (int)min_i64(plan->executor.parts, units);
    work work = {&plan->problem, plan->kernel[pass]->run, &call->tensors, units, parts};
    if (parts > 1)
        plan->executor.parallel_for(plan->executor.context, parts, run_part, &work);
    else if (units > 0)
        run_units(&work, 0, units);
    return tarn_succeed(error);
}

/* ---- Passes --------------------------------------------------------------------------------- */

static tarn_status no_plan(tarn_error *error)
{
    return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "plan is NULL");
}

tarn_status tarn_no_derivative(const tarn_problem *problem, tarn_error *error)
{
    if (problem->op == TARN_MODE)
        return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS, "mode has no derivatives");
    return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "derivatives need a floating dtype, x is %s",
                     tarn_dtype_name(problem->dtype));
}

tarn_status tarn_no_winners(const tarn_problem *problem, const char *what, tarn_error *error)
{
    bool extreme = problem->op == TARN_MAX || problem->op == TARN_MIN;
    return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS, "%s: only %s", what,
                     extreme ? "tie rule `first` keeps winners" : "max and min have winners");
}

tarn_status tarn_forward(const tarn_plan *plan, const void *x, void *y, void *saved,
                         tarn_error *error)
{
    if (!plan)
        return no_plan(error);
    if (saved && !plan->kernel[TARN_FORWARD_SAVED])
        return tarn_no_winners(&plan->problem, "saved", error);
    call call = {.count = 0};
    add_written(&call, TARN_Y, y);
    if (saved)
        add_written(&call, OPERAND_SAVED, saved);
    add_operand(&call, TARN_X, x);
    return run(plan, saved ? TARN_FORWARD_SAVED : TARN_FORWARD, &call, error);
}

tarn_status tarn_forward_indices(const tarn_plan *plan, const void *x, void *y, int64_t *indices,
                                 tarn_error *error)
{
    if (!plan)
        return no_plan(error);
    if (!plan->kernel[TARN_FORWARD_INDICES])
        return tarn_no_winners(&plan->problem, "indices", error);
    call call = {.count = 0};
    add_written(&call, TARN_INDICES, indices);
    if (y)
        add_written(&call, TARN_Y, y);
    add_operand(&call, TARN_X, x);
    return run(plan, TARN_FORWARD_INDICES, &call, error);
}

tarn_status tarn_jvp(const tarn_plan *plan, const void *x, const void *dx, void *y, void *dy,
                     tarn_error *error)
{
    if (!plan)
        return no_plan(error);
    if (!plan->kernel[TARN_JVP])
        return tarn_no_derivative(&plan->problem, error);
    call call = {.count = 0};
    add_written(&call, TARN_DY, dy);
    if (y)
        add_written(&call, TARN_Y, y);
    add_operand(&call, TARN_DX, dx);
    if (y || !is_linear(&plan->problem))
        add_operand(&call, TARN_X, x);
    return run(plan, TARN_JVP, &call, error);
}

tarn_status tarn_vjp(const tarn_plan *plan, const void *x, const void *saved, const void *gy,
                     void *gx, tarn_error *error)
{
    if (!plan)
        return no_plan(error);
    if (!plan->kernel[TARN_VJP])
        return tarn_no_derivative(&plan->problem, error);
    if (saved && !plan->kernel[TARN_VJP_SAVED])
        return tarn_no_winners(&plan->problem, "saved", error);
    if (!saved && !x && plan->kernel[TARN_VJP_SAVED] && !is_empty(plan))
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                         "x is NULL, and so is saved: max and min need one of them");
    call call = {.count = 0};
    add_written(&call, TARN_GX, gx);
    add_operand(&call, TARN_GY, gy);
    if (saved)
        add_operand(&call, OPERAND_SAVED, saved);
    else if (!is_linear(&plan->problem))
        add_operand(&call, TARN_X, x);
    return run(plan, saved ? TARN_VJP_SAVED : TARN_VJP, &call, error);
}

/* ---- Calls without a plan ------------------------------------------------------------------- */

/* A plan on the stack for the given views; layout[TARN_X] is x, NULL entries are not used. */
static tarn_status plan_views(tarn_plan *plan, const tarn_pool *pool, const tarn_view *x,
                              const tarn_view *const layout[TARN_OPERANDS], tarn_error *error)
{
    tarn_options options = tarn_options_default();
    for (int k = 0; k < TARN_OPERANDS; k++)
        options.layout[k] = layout[k];
    return tarn_plan_init(plan, pool, x, &options, error);
}

static tarn_status missing(const char *name, tarn_error *error)
{
    return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", name);
}

tarn_status tarn_pool_forward(const tarn_pool *pool, const tarn_view *x, const tarn_view *y,
                              tarn_error *error)
{
    tarn_plan plan;
    if (!y)
        return missing("y", error);
    tarn_status status =
        plan_views(&plan, pool, x, (const tarn_view *[TARN_OPERANDS]){[TARN_Y] = y}, error);
    return status ? status : tarn_forward(&plan, x->data, y->data, NULL, error);
}

tarn_status tarn_pool_indices(const tarn_pool *pool, const tarn_view *x, const tarn_view *y,
                              const tarn_view *indices, tarn_error *error)
{
    tarn_plan plan;
    if (!indices)
        return missing("indices", error);
    const tarn_view *layout[TARN_OPERANDS] = {[TARN_Y] = y, [TARN_INDICES] = indices};
    tarn_status status = plan_views(&plan, pool, x, layout, error);
    if (!status && y && !y->data && plan.problem.planes > 0)
        return missing("y", error);
    if (status)
        return status;
    return tarn_forward_indices(&plan, x->data, y ? y->data : NULL, indices->data, error);
}

tarn_status tarn_pool_jvp(const tarn_pool *pool, const tarn_view *x, const tarn_view *dx,
                          const tarn_view *y, const tarn_view *dy, tarn_error *error)
{
    tarn_plan plan;
    if (!dx || !dy)
        return missing(dx ? "dy" : "dx", error);
    const tarn_view *layout[TARN_OPERANDS] = {[TARN_DX] = dx, [TARN_Y] = y, [TARN_DY] = dy};
    tarn_status status = plan_views(&plan, pool, x, layout, error);
    if (!status && y && !y->data && plan.problem.planes > 0)
        return missing("y", error);
    if (status)
        return status;
    return tarn_jvp(&plan, x->data, dx->data, y ? y->data : NULL, dy->data, error);
}

tarn_status tarn_pool_vjp(const tarn_pool *pool, const tarn_view *x, const tarn_view *gy,
                          const tarn_view *gx, tarn_error *error)
{
    tarn_plan plan;
    if (!gy || !gx)
        return missing(gy ? "gx" : "gy", error);
    const tarn_view *layout[TARN_OPERANDS] = {[TARN_GY] = gy, [TARN_GX] = gx};
    tarn_status status = plan_views(&plan, pool, x, layout, error);
    return status ? status : tarn_vjp(&plan, x->data, NULL, gy->data, gx->data, error);
}
