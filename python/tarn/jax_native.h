/* What tarn._core offers the compiled calls of tarn.jax: C on one side, C++ against XLA's headers
 * on the other. None of it wants the GIL. */
#ifndef TARN_JAX_NATIVE_H
#define TARN_JAX_NATIVE_H

#include "tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call computes, from and to which arrays. */
typedef enum {
    JAX_FORWARD,   /* x -> y */
    JAX_SAVED,     /* x -> y, winners */
    JAX_INDICES,   /* x -> indices */
    JAX_JVP,       /* x, dx -> dy */
    JAX_VJP,       /* x, gy -> gx */
    JAX_VJP_SAVED, /* winners, gy -> gx */
    JAX_VJP_MEAN,  /* gy -> gx */
    JAX_PASSES
} jax_pass;

typedef struct {
    /* A plan for a problem string, with as many threads as the package now uses for such x. */
    tarn_status (*plan)(const char *problem, tarn_plan **plan, tarn_error *error);
    void (*destroy)(tarn_plan *plan);
    int (*threads)(void); /* what a plan that is made now would have at most */
    tarn_status (*run)(const tarn_plan *plan, jax_pass pass, void *const *in, void *const *out,
                       tarn_error *error);
} jax_core;

/* The capsule that holds it. The name is changed with the structure above. */
#define JAX_CORE "tarn.jax_core.1"

#ifdef __cplusplus
}
#endif

#endif
