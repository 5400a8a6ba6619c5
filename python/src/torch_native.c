/* What the compiled step of tarn.torch calls: see torch_native.h. */
#include "interrupts.h"
#include "torch_step.h"

#include <unistd.h>

static long process; /* that imported tarn.torch */

static step_object *step_of(PyObject *object)
{
    return (step_object *)object;
}

static int plan(PyObject *object, const tarn_view *x, int threads, tarn_parallel_for loop)
{
    step_object *step = step_of(object);
    int wanted = choose_threads(x, threads);
    const tarn_view *layout[TARN_OPERANDS] = {NULL};
    if (check_frame(step->state, &step->pool, step->frame, x))
        return -1;
    step->plan = plan_get(step->state, &step->pool, x, layout, wanted,
                          wanted == threads ? loop : NULL,
                          count_parts(&step->pool, x, step->pass));
    return step->plan ? 0 : -1;
}

static void layout(PyObject *object, tarn_operand operand, tarn_view *view)
{
    tarn_plan_layout(step_of(object)->plan->plan, operand, view, NULL);
}

static int forward(PyObject *object, const void *x, void *y, void *second)
{
    step_object *step = step_of(object);
    void *data[OPERANDS] = {
        [TARN_X] = (void *)x, [TARN_Y] = y, [TARN_INDICES] = second, [WINNERS] = second};
    tarn_view view;
    layout(object, TARN_X, &view);
    return run_plan(step->state, step->plan->plan, step->pass, is_large(&view, step->plan->parts),
                    data);
}

static const tarn_pool *pool(PyObject *object)
{
    return &step_of(object)->pool;
}

static tarn_dtype second(PyObject *object, const tarn_view *y)
{
    const step_object *step = step_of(object);
    if (step->pass == TARN_FORWARD_INDICES)
        return TARN_I64;
    return step->pass == TARN_FORWARD_SAVED ? winner_dtype(step->plan->plan, y) : TARN_DTYPES;
}

static int saves(PyObject *object)
{
    const step_object *step = step_of(object);
    return step->pass == TARN_FORWARD_SAVED ? 2 : !is_linear(&step->pool);
}

static tarn_status vjp(PyObject *object, const void *x, const void *winners, const void *gy,
                       void *gx, tarn_error *error)
{
    return tarn_vjp(step_of(object)->plan->plan, x, winners, gy, gx, error);
}

static tarn_pass backward_pass(const step_object *step)
{
    return step->pass == TARN_FORWARD_SAVED ? TARN_VJP_SAVED : TARN_VJP;
}

static int is_long(PyObject *object)
{
    const step_object *step = step_of(object);
    tarn_view x;
    layout(object, TARN_X, &x);
    return count_parts(&step->pool, &x, backward_pass(step)) > 1;
}

static int watched_vjp(PyObject *object, const void *x, const void *winners, const void *gy,
                       void *gx)
{
    step_object *step = step_of(object);
    const tarn_view *layouts[TARN_OPERANDS] = {NULL};
    tarn_pass pass = backward_pass(step);
    void *data[OPERANDS] = {[TARN_X] = (void *)x,
                            [WINNERS] = (void *)winners,
                            [TARN_GY] = (void *)gy,
                            [TARN_GX] = gx};
    tarn_view view;
    layout(object, TARN_X, &view);
    plan_entry *entry = plan_get(step->state, &step->pool, &view, layouts, step->plan->threads,
                                 NULL, count_parts(&step->pool, &view, pass));
    int status = entry ? run_plan(step->state, entry->plan, pass, true, data) : -1;
    if (entry)
        plan_put(step->state, entry);
    return status;
}

static void own_threads(int count, void (*body)(void *argument, int index), void *argument)
{
    tarn_executor own;
    if (!tarn_executor_threads(count, &own, NULL))
        own.parallel_for(own.context, count, body, argument);
    else
        for (int k = 0; k < count; k++)
            body(argument, k);
}

void torch_remember_process(void)
{
    process = (long)getpid();
}

static int is_forked(void)
{
    return (long)getpid() != process;
}

PyObject *torch_core_table(PyObject *module, PyObject *unused)
{
    static torch_core table = {plan, forward, step_by_operators, watched_vjp, layout, pool,
                               second, saves, vjp, is_long, own_threads, is_forked};
    (void)module, (void)unused;
    return PyCapsule_New(&table, TORCH_CORE, NULL);
}
