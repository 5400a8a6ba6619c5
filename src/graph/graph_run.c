/* Running: check the caller's pointers, then one step after the other. */
#include "graph_program.h"

#include "../error.h"
#include "../float_state.h"
#include "../layout.h"
#include "../plan.h"

/* ---- Steps --------------------------------------------------------------------------------- */

static tarn_status run_pool(const tarn_program *p, const tarn_step *step, tarn_error *error)
{
    const tarn_ref *ref = program_ref(p, step->first);
    char *at[4] = {NULL};
    for (int k = 0; k < step->count; k++)
        at[k] = program_at(p, &ref[k]);
    switch (step->kind) {
    case STEP_FORWARD:
        if (step->with_saved)
            return tarn_forward(step->plan, at[2], at[0], at[1], error);
        return tarn_forward(step->plan, at[1], at[0], NULL, error);
    case STEP_JVP:
        if (step->with_value)
            return tarn_jvp(step->plan, at[3], at[2], at[1], at[0], error);
        return tarn_jvp(step->plan, at[2], at[1], NULL, at[0], error);
    default:
        if (step->with_saved)
            return tarn_vjp(step->plan, NULL, at[2], at[1], at[0], error);
        return tarn_vjp(step->plan, at[2], NULL, at[1], at[0], error);
    }
}

/* The caller may have no error to fill, a payload always has; it may return a status and leave the
 * error alone. */
static tarn_status settle_error(const tarn_step *step, tarn_status status, const tarn_error *made,
                                tarn_error *error)
{
    if (!status)
        return TARN_OK;
    if (made->code != status)
        return tarn_fail(error, status, NO_AXIS, "the custom node %s failed with %s",
                         step->custom->name, tarn_status_name(status));
    return tarn_fail(error, status, made->axis, "%.*s", (int)sizeof made->message - 1,
                     made->message);
}

/* The views of a custom step lie in the order of its refs. */
static tarn_status run_custom(const tarn_program *p, const tarn_step *step, tarn_error *error)
{
    const tarn_custom *custom = &step->custom->custom;
    const tarn_ref *ref = program_ref(p, step->first);
    tarn_view *view = (tarn_view *)p->views.items + step->detail;
    tarn_error made;
    tarn_status status;
    tarn_succeed(&made);
    for (int k = 0; k < step->count; k++)
        view[k].data = program_at(p, &ref[k]);
    if (step->kind == STEP_CUSTOM_FORWARD) /* y, x... */
        status = custom->forward(custom->context, view + 1, view, &made);
    else if (step->kind == STEP_CUSTOM_JVP) /* dy, x..., dx... */
        status =
            custom->jvp(custom->context, view + 1, view + 1 + (step->count - 1) / 2, view, &made);
    else /* gx..., gy, x... */
        status = custom->vjp(custom->context, view + step->written + 1, view + step->written, view,
                             &made);
    return settle_error(step, status, &made, error);
}

static void run_arithmetic(const tarn_program *p, const tarn_step *step, const tarn_ref *ref)
{
    const tarn_arithmetic *arithmetic = step->arithmetic;
    int64_t elements = ref->place.bytes / (int64_t)arithmetic->element_bytes;
    uint64_t former = set_float_state();
    if (step->kind == STEP_SUM)
        arithmetic->sum(p, ref, ref + 1, step->count - 1, elements);
    else
        arithmetic->scale(program_at(p, ref + 1), program_at(p, ref), step->factor, elements);
    restore_float_state(former);
}

tarn_status tarn_run_step(tarn_program *p, int64_t k, tarn_error *error)
{
    const tarn_step *step = program_step(p, k);
    const tarn_ref *ref = program_ref(p, step->first);
    switch (step->kind) {
    case STEP_FORWARD:
    case STEP_JVP:
    case STEP_VJP:
        return run_pool(p, step, error);
    case STEP_SUM:
    case STEP_SCALE:
        run_arithmetic(p, step, ref);
        return TARN_OK;
    case STEP_INTO:
        tarn_copy_box((const tarn_inset *)p->boxes.items + step->detail, program_at(p, ref),
                      program_at(p, ref + 1), true);
        return TARN_OK;
    case STEP_OUT_OF:
        tarn_copy_box((const tarn_inset *)p->boxes.items + step->detail, program_at(p, ref + 1),
                      program_at(p, ref), false);
        return TARN_OK;
    case STEP_ZERO:
        memset(program_at(p, ref), 0, (size_t)ref->place.bytes);
        return TARN_OK;
    default:
        return run_custom(p, step, error);
    }
}

/* ---- Arguments ----------------------------------------------------------------------------- */

typedef struct {
    const void *const *inputs, *const *seeds;
    void *const *outputs, *const *results;
} arguments;

/* The caller's pointer for a base, and what to call it. */
static const void *pointer_of(const tarn_program *p, const arguments *a, int base,
                              const char **array, int *index)
{
    bool jvp = p->request.mode == TARN_GRAPH_JVP;
    if (base >= p->base_results) {
        *array = jvp ? "output_tangents" : "gradients";
        *index = base - p->base_results;
        return a->results ? a->results[*index] : NULL;
    }
    if (base >= p->base_seeds) {
        *array = jvp ? "input_tangents" : "cotangents";
        *index = base - p->base_seeds;
        return a->seeds ? a->seeds[*index] : NULL;
    }
    if (base >= p->base_outputs) {
        *array = "outputs";
        *index = base - p->base_outputs;
        return a->outputs ? a->outputs[*index] : NULL;
    }
    *array = "inputs";
    *index = base - p->base_inputs;
    return a->inputs ? a->inputs[*index] : NULL;
}

static tarn_status set_base(tarn_program *p, const arguments *a, int base, tarn_error *error)
{
    const tarn_buffer *buffer = program_buffer(p, p->external[base]);
    const char *array;
    int index;
    const void *data = pointer_of(p, a, base, &array, &index);
    if (!data && buffer->bytes > 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s[%d] is NULL", array, index);
    if (buffer->bytes > 0 && (uintptr_t)data % (uintptr_t)p->external_alignment[base] != 0)
        return tarn_fail(error, TARN_BAD_LAYOUT, NO_AXIS,
                         "%s[%d] is not aligned to its %d-byte elements", array, index,
                         p->external_alignment[base]);
    if (!tarn_extent_fits(data, (tarn_extent){0, buffer->bytes}))
        return tarn_fail(error, TARN_BAD_LAYOUT, NO_AXIS, "%s[%d] reaches beyond the address space",
                         array, index);
    p->base[base] = data ? (char *)(uintptr_t)data : p->base[0];
    return TARN_OK;
}

static tarn_status refuse_alias(const tarn_program *p, const arguments *args, int written,
                                int other, tarn_error *error)
{
    const char *first, *second;
    int i, j;
    pointer_of(p, args, written, &first, &i);
    pointer_of(p, args, other, &second, &j);
    return tarn_fail(error, TARN_ALIAS, NO_AXIS, "%s[%d] is written and shares memory with %s[%d]",
                     first, i, second, j);
}

/* Callers mostly come with the same tensors again: then there is nothing to move. */
static void sort_by_address(tarn_program *p)
{
    for (int k = 1; k < p->tensors; k++) {
        int base = p->by_address[k], at = k;
        for (; at > 0 && (uintptr_t)p->base[p->by_address[at - 1]] > (uintptr_t)p->base[base]; at--)
            p->by_address[at] = p->by_address[at - 1];
        p->by_address[at] = base;
    }
}

static uintptr_t end_of(const tarn_program *p, int base)
{
    return (uintptr_t)p->base[base] + (uintptr_t)program_buffer(p, p->external[base])->bytes;
}

/* By address, a tensor meets one before it only if it meets the one that reaches farthest. */
static tarn_status check_aliases(tarn_program *p, const arguments *args, tarn_error *error)
{
    int farthest = 0, farthest_written = 0; /* bases; 0: none */
    sort_by_address(p);
    for (int k = 0; k < p->tensors; k++) {
        int base = p->by_address[k];
        bool written = program_buffer(p, p->external[base])->written;
        int other = written ? farthest : farthest_written;
        if (other && (uintptr_t)p->base[base] < end_of(p, other))
            return refuse_alias(p, args, written ? base : other, written ? other : base, error);
        if (!farthest || end_of(p, base) > end_of(p, farthest))
            farthest = base;
        if (written) /* it begins behind all others */
            farthest_written = base;
    }
    return TARN_OK;
}

static tarn_status set_bases(tarn_program *p, const arguments *args, tarn_error *error)
{
    tarn_status status = TARN_OK;
    for (int base = 1; base < p->base_constants && !status; base++)
        if (p->external[base] != NO_BUFFER)
            status = set_base(p, args, base, error);
    return status ? status : check_aliases(p, args, error);
}

static tarn_status check_mode(const tarn_program *p, tarn_mode mode, tarn_error *error)
{
    static const char *const names[TARN_MODES] = {"forward", "JVP", "VJP"};
    if (!p)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "program is NULL");
    if (p->request.mode != mode)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "the program was compiled for %s",
                         names[p->request.mode]);
    return TARN_OK;
}

static tarn_status run(tarn_program *p, tarn_mode mode, const arguments *args, tarn_error *error)
{
    tarn_status status;
    if ((status = check_mode(p, mode, error)) || (status = set_bases(p, args, error)))
        return status;
    for (int64_t k = 0; k < p->steps.count; k++)
        if ((status = tarn_run_step(p, k, error)))
            return status;
    return tarn_succeed(error);
}

tarn_status tarn_program_forward(tarn_program *program, const void *const *inputs,
                                 void *const *outputs, tarn_error *error)
{
    return run(program, TARN_GRAPH_FORWARD, &(arguments){.inputs = inputs, .outputs = outputs},
               error);
}

tarn_status tarn_program_jvp(tarn_program *program, const void *const *inputs,
                             const void *const *input_tangents, void *const *outputs,
                             void *const *output_tangents, tarn_error *error)
{
    return run(program, TARN_GRAPH_JVP,
               &(arguments){inputs, input_tangents, outputs, output_tangents}, error);
}

tarn_status tarn_program_vjp(tarn_program *program, const void *const *inputs,
                             const void *const *cotangents, void *const *outputs,
                             void *const *gradients, tarn_error *error)
{
    return run(program, TARN_GRAPH_VJP, &(arguments){inputs, cotangents, outputs, gradients},
               error);
}

/* ---- Without compiling --------------------------------------------------------------------- */

static tarn_status run_once(const tarn_graph *graph, tarn_mode mode, const arguments *args,
                            const tarn_options *options, tarn_error *error)
{
    tarn_request request = {.mode = mode, .values = args->outputs != NULL};
    tarn_program *program;
    tarn_status status = tarn_graph_compile(&program, graph, &request, options, error);
    if (status)
        return status;
    status = run(program, mode, args, error);
    tarn_program_destroy(program);
    return status;
}

tarn_status tarn_graph_forward(const tarn_graph *graph, const void *const *inputs,
                               void *const *outputs, const tarn_options *options, tarn_error *error)
{
    return run_once(graph, TARN_GRAPH_FORWARD, &(arguments){.inputs = inputs, .outputs = outputs},
                    options, error);
}

tarn_status tarn_graph_jvp(const tarn_graph *graph, const void *const *inputs,
                           const void *const *input_tangents, void *const *outputs,
                           void *const *output_tangents, const tarn_options *options,
                           tarn_error *error)
{
    return run_once(graph, TARN_GRAPH_JVP,
                    &(arguments){inputs, input_tangents, outputs, output_tangents}, options, error);
}

tarn_status tarn_graph_vjp(const tarn_graph *graph, const void *const *inputs,
                           const void *const *cotangents, void *const *outputs,
                           void *const *gradients, const tarn_options *options, tarn_error *error)
{
    return run_once(graph, TARN_GRAPH_VJP, &(arguments){inputs, cotangents, outputs, gradients},
                    options, error);
}
