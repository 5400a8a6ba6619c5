#include "plan.h"

#include "executor.h"
#include "float_state.h"
#include "shape.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const operand_names[OPERANDS] = {"x",  "y",  "dx",      "dy",
                                                    "gx", "gy", "indices", "saved"};

const char *tarn_operand_name(int operand)
{
    return operand_names[operand];
}

static bool is_written(int operand)
{
    return operand != TARN_X && operand != TARN_DX && operand != TARN_GY;
}

/* Copies a layout but for the axes it does not have, which are most of a view. */
static void copy_layout(tarn_view *to, const tarn_view *from)
{
    to->data = NULL;
    to->dtype = from->dtype;
    to->rank = from->rank;
    memcpy(to->shape, from->shape, sizeof to->shape[0] * (size_t)from->rank);
    memcpy(to->strides, from->strides, sizeof to->strides[0] * (size_t)from->rank);
}

/* The layout an operand has unless the caller gives another: that of x or y, which come first
 * in the order of tarn_operand; x and y themselves are set already. What a pass makes of them,
 * and is not asked for in the same layout, is dense. */
static void set_default_layout(tarn_plan *plan, int operand)
{
    bool as_x = operand == TARN_DX || operand == TARN_GX;
    tarn_view *view = &plan->view[operand], *like = &plan->view[as_x ? TARN_X : TARN_Y];
    if (operand == TARN_X || operand == TARN_Y)
        return;
    copy_layout(view, like);
    if (operand == TARN_GX || operand == OPERAND_SAVED)
        tarn_make_dense_like(view, like);
    if (operand == TARN_INDICES)
        view->dtype = TARN_I64;
}

/* Fits, as the bytes of every view were checked. */
static int64_t count_elements(const tarn_view *view)
{
    int64_t elements = 1;
    for (int a = 0; a < view->rank; a++)
        elements *= view->shape[a];
    return elements;
}

/* Saved winners are dense, but not of the dtype that their view has: it stands for the shape. They
 * take no more bytes than the indices, which were checked before. */
static int64_t count_bytes(const tarn_plan *plan, int operand)
{
    return count_elements(&plan->view[operand]) * plan->problem.element_bytes[operand];
}

static tarn_status set_layout(tarn_plan *plan, int operand, const tarn_view *given,
                              tarn_error *error)
{
    const char *name = operand_names[operand];
    tarn_view *view = &plan->view[operand];
    tarn_status status;
    set_default_layout(plan, operand);
    if (given) {
        if ((status = tarn_check_view(name, given, &plan->extent[operand], error)) ||
            (status = tarn_check_same_shape(name, given, view, error)))
            return status;
        copy_layout(view, given);
    }
    if ((status = tarn_check_view(name, view, &plan->extent[operand], error)))
        return status;
    if (operand == OPERAND_SAVED) {
        plan->extent[operand] = (tarn_extent){0, count_bytes(plan, operand)};
        return TARN_OK;
    }
    return is_written(operand) ? tarn_check_no_overlap(name, view, error) : TARN_OK;
}

static tarn_status set_layouts(tarn_plan *plan, const tarn_pool *pool, const tarn_view *x,
                               const tarn_options *options, tarn_error *error)
{
    copy_layout(&plan->view[TARN_X], x);
    tarn_output_shape(pool, x, &plan->problem, &plan->view[TARN_Y]);
    for (int k = 0; k < OPERANDS; k++) {
        bool own = options && k != TARN_X && k < TARN_OPERANDS;
        tarn_status status = set_layout(plan, k, own ? options->layout[k] : NULL, error);
        if (status)
            return status;
    }
    return TARN_OK;
}

/* Whether leading axes a and a+1 of the problem can be walked as one in every tensor. */
static bool can_merge(const tarn_problem *problem, int a)
{
    for (int k = 0; k < OPERANDS; k++) {
        int64_t step;
        if (!checked_mul(problem->lead_stride[k][a + 1], problem->lead_size[a + 1], &step) ||
            problem->lead_stride[k][a] != step)
            return false;
    }
    return true;
}

static void merge_last_two(tarn_problem *problem)
{
    int last = --problem->leading;
    problem->lead_size[last - 1] *= problem->lead_size[last];
    for (int k = 0; k < OPERANDS; k++)
        problem->lead_stride[k][last - 1] = problem->lead_stride[k][last];
}

/* Takes the innermost leading axis as lanes if it is contiguous everywhere. */
static void find_lanes(tarn_problem *problem)
{
    problem->lanes = 1;
    int last = problem->leading - 1;
    if (last < 0)
        return;
    for (int k = 0; k < OPERANDS; k++)
        if (problem->lead_stride[k][last] != 1)
            return;
    problem->lanes = problem->lead_size[last];
    problem->leading--;
}

/* The stride of an axis of one place is never stepped by, and may be any number: one that could
 * overflow becomes 0. */
static int64_t harmless_stride(const tarn_view *view, int axis)
{
    const int64_t farthest = INT64_C(1) << 40; /* elements: no tensor in memory has them */
    int64_t stride = view->strides[axis];
    return view->shape[axis] == 1 && (stride > farthest || stride < -farthest) ? 0 : stride;
}

static void set_strides(tarn_plan *plan)
{
    tarn_problem *problem = &plan->problem;
    int leading = plan->view[TARN_X].rank - problem->spatial;
    problem->cache_bytes = LARGER_THAN_CACHES;
    problem->planes = 1;
    problem->lead_size[0] = 1; /* without leading axes: one plane, and no step to another */
    for (int k = 0; k < OPERANDS; k++)
        problem->lead_stride[k][0] = 0;
    for (int a = 0; a < leading; a++) {
        int64_t size = plan->view[TARN_X].shape[a];
        problem->planes *= size;
        if (size == 1)
            continue;
        int at = problem->leading++;
        problem->lead_size[at] = size;
        for (int k = 0; k < OPERANDS; k++)
            problem->lead_stride[k][at] = plan->view[k].strides[a];
        if (at > 0 && can_merge(problem, at - 1))
            merge_last_two(problem);
    }
    for (int k = 0; k < OPERANDS; k++)
        for (int a = 0; a < problem->spatial && leading + a < plan->view[k].rank; a++)
            problem->stride[k][a] = harmless_stride(&plan->view[k], leading + a);
    if (problem->planes > 0)
        find_lanes(problem);
    else
        problem->lanes = 1;
    problem->planes /= problem->lanes;
}

static void set_element_bytes(tarn_problem *problem)
{
    for (int k = 0; k < TARN_OPERANDS; k++)
        problem->element_bytes[k] = (int64_t)tarn_dtype_size(problem->dtype);
    problem->element_bytes[TARN_INDICES] = (int64_t)sizeof(int64_t);
}

bool tarn_pass_exists(const tarn_problem *problem, tarn_pass pass)
{
    bool extreme = problem->op == TARN_MAX || problem->op == TARN_MIN;
    bool derivative = pass == TARN_JVP || pass == TARN_VJP || pass == TARN_VJP_SAVED;
    bool saves = pass == TARN_FORWARD_SAVED || pass == TARN_VJP_SAVED;
    if ((saves || pass == TARN_FORWARD_INDICES) && !extreme)
        return false;
    if (saves && problem->ties != TARN_TIES_FIRST)
        return false;
    return !derivative || is_floating(problem->dtype);
}

static tarn_status choose_kernels(tarn_plan *plan, uint32_t isa, tarn_error *error)
{
    const tarn_problem *problem = &plan->problem;
    uint32_t allowed = isa & tarn_isa_available();
    if (!tarn_is_compiled(problem->op, problem->dtype))
        return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS,
                         "this build leaves out the operator, or %s",
                         tarn_dtype_name(problem->dtype));
    if (!allowed)
        return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS,
                         "no kernel family is left: the options allow 0x%x; this machine and "
                         "the environment variable TARN_ISA allow 0x%x",
                         (unsigned)isa, (unsigned)tarn_isa_available());
    plan->isa = allowed;
    uint64_t former = set_float_state(); /* costs are estimated, and nothing must trap */
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (tarn_pass_exists(problem, (tarn_pass)pass))
            plan->kernel[pass] = tarn_choose_kernel(problem, (tarn_pass)pass, allowed);
    restore_float_state(former);
    return TARN_OK;
}

static tarn_status check_options(const tarn_options *options, tarn_error *error)
{
    if (!options)
        return TARN_OK;
    for (int k = 0; k < 4; k++)
        if (options->reserved[k] != 0)
            return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                             "a reserved member of the options is not 0");
    if (!options->allocator.allocate != !options->allocator.release)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                         "allocator needs both allocate and release, or neither");
    return tarn_check_executor(&options->executor, error);
}

/* As many parts as the executor has, but none smaller than its grain. */
static int parts_worth_starting(const tarn_plan *plan)
{
    const tarn_executor *executor = &plan->executor;
    if (executor->parts <= 1 || executor->grain == 0)
        return executor->parts;
    int64_t elements =
        max_i64(count_elements(&plan->view[TARN_X]), count_elements(&plan->view[TARN_Y]));
    return (int)max_i64(1, min_i64(executor->parts, elements / executor->grain));
}

tarn_status tarn_plan_init(tarn_plan *plan, const tarn_pool *pool, const tarn_view *x,
                           const tarn_options *options, tarn_error *error)
{
    tarn_status status;
    if (!tarn_arithmetic_is_exact())
        return tarn_fail(
            error, TARN_UNSUPPORTED, NO_AXIS,
            "this tarn was compiled with options that change arithmetic, such as "
            "-funsafe-math-optimizations or -ffp-contract=fast: its bits would be wrong");
    if ((status = check_options(options, error)) ||
        (status = tarn_check_pool(pool, x, &plan->problem, error)))
        return status;
    tarn_slide_even_windows(&plan->problem);
    for (int pass = 0; pass < TARN_PASSES; pass++)
        plan->kernel[pass] = NULL;
    set_element_bytes(&plan->problem);
    if ((status = set_layouts(plan, pool, x, options, error)))
        return status;
    set_strides(plan);
    plan->executor = options ? options->executor : tarn_executor_serial();
    plan->executor.parts = parts_worth_starting(plan);
    return choose_kernels(plan, options && options->isa ? options->isa : TARN_ISA_ALL, error);
}

static void *allocate_with_malloc(void *context, size_t bytes)
{
    (void)context;
    return malloc(bytes);
}

static void release_with_free(void *context, void *memory)
{
    (void)context;
    free(memory);
}

tarn_options tarn_options_default(void)
{
    return (tarn_options){.executor = tarn_executor_serial(),
                          .allocator = {allocate_with_malloc, release_with_free, NULL},
                          .isa = TARN_ISA_ALL};
}

/* Copies what is set of a plan, which is little of its many possible axes. */
static void copy_plan(tarn_plan *to, const tarn_plan *from)
{
    size_t axes = (size_t)max_i64(from->problem.leading, 1); /* the first is set always */
    memcpy(&to->problem, &from->problem, offsetof(tarn_problem, lead_size));
    memcpy(to->problem.lead_size, from->problem.lead_size, axes * sizeof(int64_t));
    for (int k = 0; k < OPERANDS; k++) {
        memcpy(to->problem.lead_stride[k], from->problem.lead_stride[k], axes * sizeof(int64_t));
        copy_layout(&to->view[k], &from->view[k]);
    }
    memcpy(to->extent, from->extent, sizeof to->extent);
    memcpy(to->kernel, from->kernel, sizeof to->kernel);
    to->isa = from->isa;
    to->executor = from->executor;
    to->allocator = from->allocator;
}

tarn_status tarn_plan_create(tarn_plan **plan, const tarn_pool *pool, const tarn_view *x,
                             const tarn_options *options, tarn_error *error)
{
    if (!plan)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "plan is NULL");
    *plan = NULL;
    tarn_plan draft;
    tarn_status status = tarn_plan_init(&draft, pool, x, options, error);
    if (status)
        return status;
    bool own = options && options->allocator.allocate;
    draft.allocator = own ? options->allocator : tarn_options_default().allocator;
    tarn_plan *made = draft.allocator.allocate(draft.allocator.context, sizeof *made);
    if (!made)
        return tarn_fail(error, TARN_NO_MEMORY, NO_AXIS, "no memory for a plan of %d bytes",
                         (int)sizeof *made);
    copy_plan(made, &draft);
    *plan = made;
    return tarn_succeed(error);
}

void tarn_plan_destroy(tarn_plan *plan)
{
    if (plan)
        plan->allocator.release(plan->allocator.context, plan);
}

tarn_status tarn_plan_layout(const tarn_plan *plan, tarn_operand operand, tarn_view *view,
                             tarn_error *error)
{
    if (!plan || !view)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", plan ? "view" : "plan");
    if ((int)operand < 0 || operand >= TARN_OPERANDS)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not an operand", (int)operand);
    *view = (tarn_view){.data = NULL};
    copy_layout(view, &plan->view[operand]);
    return tarn_succeed(error);
}

size_t tarn_plan_saved_bytes(const tarn_plan *plan)
{
    if (!plan || !plan->kernel[TARN_FORWARD_SAVED])
        return 0;
    return size_of_bytes(plan->extent[OPERAND_SAVED].hi);
}

int tarn_plan_explain(const tarn_plan *plan, tarn_pass pass, char *text, size_t size)
{
    static const struct {
        const char *name;
        int operands[4]; /* the tensors moved, closed by -1 */
    } passes[TARN_PASSES] = {
        [TARN_FORWARD] = {"forward", {TARN_X, TARN_Y, -1}},
        [TARN_FORWARD_SAVED] = {"forward with saved winners", {TARN_X, TARN_Y, OPERAND_SAVED, -1}},
        [TARN_FORWARD_INDICES] = {"forward with indices", {TARN_X, TARN_Y, TARN_INDICES, -1}},
        [TARN_JVP] = {"jvp", {TARN_X, TARN_DX, TARN_DY, -1}},
        [TARN_VJP] = {"vjp", {TARN_X, TARN_GY, TARN_GX, -1}},
        [TARN_VJP_SAVED] = {"vjp from saved winners", {TARN_GY, TARN_GX, OPERAND_SAVED, -1}},
    };
    if (!plan || (int)pass < 0 || pass >= TARN_PASSES || !plan->kernel[pass])
        return -1;
    uint64_t bytes = 0;
    for (const int *k = passes[pass].operands; *k >= 0; k++)
        if (!is_linear(&plan->problem) || *k != TARN_X || pass < TARN_JVP)
            bytes += (uint64_t)count_bytes(plan, *k);
    const tarn_kernel_row *kernel = plan->kernel[pass];
    char family[64] = "", channels[64] = "";
    if (kernel->engine >= ENGINE_FORWARD) /* from here on they have vectors */
        snprintf(family, sizeof family, ", in vectors of %s, %s", tarn_isa_name(kernel->isa),
                 plan->isa < 2 * kernel->isa ? "the widest allowed"
                                             : "as wider ones gain nothing here");
    if (plan->problem.lanes > 1)
        snprintf(channels, sizeof channels, " with %lld channels last",
                 (long long)plan->problem.lanes);
    int parts = plan->executor.parts > 1 ? plan->executor.parts : 1;
    return snprintf(text, size, "%s: %s, %s%s; moves %llu bytes of %s%s in %d part%s",
                    passes[pass].name, kernel->name, tarn_why_kernel(&plan->problem, pass, kernel),
                    family, (unsigned long long)bytes, tarn_dtype_name(plan->problem.dtype),
                    channels, parts, parts > 1 ? "s" : "");
}
