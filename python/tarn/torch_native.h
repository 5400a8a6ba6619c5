/* What tarn._core and the compiled step of tarn.torch offer each other: C on one side, C++ against
 * the PyTorch that is installed on the other. Include Python.h first. */
#ifndef TARN_TORCH_NATIVE_H
#define TARN_TORCH_NATIVE_H

#include "tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a tensor is pooled. */
typedef enum { TORCH_FAILED, TORCH_BY_OPERATORS, TORCH_RUN, TORCH_RECORD } torch_way;

/* A step (tarn._core.Step) is a pool between its forward and its backward. */
typedef struct {
    /* These want the GIL. */
    /* 0, or -1 with an exception. `loop` runs the parts on PyTorch's threads, which are as many. */
    int (*plan)(PyObject *step, const tarn_view *x, int threads, tarn_parallel_for loop);
    int (*forward)(PyObject *step, const void *x, void *y, void *second); /* likewise */
    PyObject *(*vjp_by_operators)(PyObject *step, PyObject *saved, PyObject *gy);
    int (*watched_vjp)(PyObject *step, const void *x, const void *winners, const void *gy,
                       void *gx); /* likewise; can be interrupted */
    /* These do not. `second` is what a pass makes beside y, with y's layout: winners or indices. */
    void (*layout)(PyObject *step, tarn_operand operand, tarn_view *layout);
    const tarn_pool *(*pool)(PyObject *step);
    tarn_dtype (*second)(PyObject *step, const tarn_view *y); /* TARN_DTYPES: nothing */
    int (*saves)(PyObject *step); /* what a backward needs: 0 nothing, 1 x, 2 winners */
    tarn_status (*vjp)(PyObject *step, const void *x, const void *winners, const void *gy, void *gx,
                       tarn_error *error);
    int (*is_long)(PyObject *step); /* whether its backward should be the watched one */
    void (*own_threads)(int count, void (*body)(void *argument, int index), void *argument);
    int (*is_forked)(void); /* since tarn.torch was imported */
} torch_core;

typedef struct {
    torch_way (*way)(PyObject *x);
    /* The result, or a pair with indices; NULL with an exception. */
    PyObject *(*run)(PyObject *step, PyObject *x, torch_way way);
} torch_native;

/* The capsules that hold them. The name is changed with the structures above. */
#define TORCH_CORE "tarn.torch_core.3"
#define TORCH_NATIVE "tarn.torch_native.1"

#ifdef __cplusplus
}
#endif

#endif
