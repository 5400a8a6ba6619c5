/* What the compiled calls of tarn.jax use: see jax_native.h. */
#include "functions.h"
#include "pooling.h"

#include "../tarn/jax_native.h"

static int threads(void)
{
    return pooling_threads_here ? pooling_threads_here : pooling_threads;
}

static tarn_status plan(const char *problem, tarn_plan **made, tarn_error *error)
{
    tarn_options options = tarn_options_default();
    tarn_pool pool;
    tarn_view x;
    tarn_status status = tarn_problem_parse(problem, &pool, &x, error);
    if (status)
        return status;
    int wanted = choose_threads(&x, 0);
    if (wanted > 1) /* where there are no threads, one does the work */
        tarn_executor_threads(wanted, &options.executor, NULL);
    return tarn_plan_create(made, &pool, &x, &options, error);
}

static tarn_status run(const tarn_plan *plan, jax_pass pass, void *const *in, void *const *out,
                       tarn_error *error)
{
    switch (pass) {
    case JAX_FORWARD: return tarn_forward(plan, in[0], out[0], NULL, error);
    case JAX_SAVED: return tarn_forward(plan, in[0], out[0], out[1], error);
    case JAX_INDICES: return tarn_forward_indices(plan, in[0], NULL, out[0], error);
    case JAX_JVP: return tarn_jvp(plan, in[0], in[1], NULL, out[0], error);
    case JAX_VJP: return tarn_vjp(plan, in[0], NULL, in[1], out[0], error);
    case JAX_VJP_SAVED: return tarn_vjp(plan, NULL, in[0], in[1], out[0], error);
    default: return tarn_vjp(plan, NULL, NULL, in[0], out[0], error);
    }
}

PyObject *jax_core_table(PyObject *module, PyObject *unused)
{
    static jax_core table = {plan, tarn_plan_destroy, threads, run};
    (void)module, (void)unused;
    return PyCapsule_New(&table, JAX_CORE, NULL);
}
