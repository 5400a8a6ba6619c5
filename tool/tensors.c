#include "tensors.h"
#include "../src/io/convert.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int reads[3], writes[3];
} passes[TARN_PASSES] = {
    [TARN_FORWARD] = {"forward", {TARN_X, -1}, {TARN_Y, -1}},
    [TARN_FORWARD_SAVED] = {"forward, saved", {TARN_X, -1}, {TARN_Y, TOOL_SAVED, -1}},
    [TARN_FORWARD_INDICES] = {"forward, indices", {TARN_X, -1}, {TARN_Y, TARN_INDICES, -1}},
    [TARN_JVP] = {"jvp", {TARN_X, TARN_DX, -1}, {TARN_DY, -1}},
    [TARN_VJP] = {"vjp", {TARN_X, TARN_GY, -1}, {TARN_GX, -1}},
    [TARN_VJP_SAVED] = {"vjp, saved", {TOOL_SAVED, TARN_GY, -1}, {TARN_GX, -1}},
};

const char *tool_pass_name(tarn_pass pass)
{
    return passes[pass].name;
}

const int *tool_pass_reads(tarn_pass pass)
{
    return passes[pass].reads;
}

const int *tool_pass_writes(tarn_pass pass)
{
    return passes[pass].writes;
}

bool tool_has_pass(const tarn_plan *plan, tarn_pass pass)
{
    return tarn_plan_explain(plan, pass, NULL, 0) >= 0;
}

/* The numbers are made in f64 and converted, whatever the dtype. */
static void fill(const tarn_view *view, uint64_t state)
{
    size_t width = tarn_dtype_size(view->dtype), count = tarn_view_bytes(view) / width;
    tarn_view from = {.dtype = TARN_F64}, to = {.dtype = view->dtype};
    for (size_t k = 0; k < count; k++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double number = (double)(int32_t)(state >> 32) * 0x1p-28; /* -8 to 8 */
        if (state >> 31 & 1)
            number = (double)(int)number;
        from.data = &number;
        to.data = (char *)view->data + k * width;
        tarn_convert(&from, false, &to);
    }
}

bool tool_tensors_make(tool_tensors *t, const tarn_plan *plan, tarn_complaint *complaint)
{
    *t = (tool_tensors){.saved_bytes = tarn_plan_saved_bytes(plan)};
    bool good = t->saved_bytes == 0 || (t->saved = malloc(t->saved_bytes));
    for (int k = 0; good && k < TARN_OPERANDS; k++) {
        tarn_plan_layout(plan, (tarn_operand)k, &t->view[k], NULL);
        t->bytes[k] = tarn_view_bytes(&t->view[k]);
        t->view[k].data = malloc(t->bytes[k] ? t->bytes[k] : 1);
        good = t->view[k].data != NULL;
        if (good)
            fill(&t->view[k], (uint64_t)k);
    }
    if (good)
        return true;
    tool_tensors_free(t);
    return tarn_complain(complaint, FAILED_WORK, "no memory for the tensors of this problem");
}

void tool_tensors_free(tool_tensors *t)
{
    for (int k = 0; k < TARN_OPERANDS; k++)
        free(t->view[k].data);
    free(t->saved);
    *t = (tool_tensors){0};
}

tarn_status tool_run_pass(const tarn_plan *plan, tarn_pass pass, const tool_tensors *t,
                          tarn_error *error)
{
    const void *x = t->view[TARN_X].data;
    void *y = t->view[TARN_Y].data;
    switch (pass) {
    case TARN_FORWARD_SAVED:
        return tarn_forward(plan, x, y, t->saved, error);
    case TARN_FORWARD_INDICES:
        return tarn_forward_indices(plan, x, y, t->view[TARN_INDICES].data, error);
    case TARN_JVP:
        return tarn_jvp(plan, x, t->view[TARN_DX].data, NULL, t->view[TARN_DY].data, error);
    case TARN_VJP:
        return tarn_vjp(plan, x, NULL, t->view[TARN_GY].data, t->view[TARN_GX].data, error);
    case TARN_VJP_SAVED:
        return tarn_vjp(plan, NULL, t->saved, t->view[TARN_GY].data, t->view[TARN_GX].data, error);
    default:
        return tarn_forward(plan, x, y, NULL, error);
    }
}
