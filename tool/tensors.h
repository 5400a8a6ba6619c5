/* The tensors of a plan, filled with numbers: what check and bench run on. */
#ifndef TARN_TENSORS_H
#define TARN_TENSORS_H

#include "tool.h"

#include <stddef.h>

typedef struct tool_tensors {
    tarn_view view[TARN_OPERANDS]; /* data included */
    size_t bytes[TARN_OPERANDS];
    void *saved; /* winners; NULL if there are none */
    size_t saved_bytes;
} tool_tensors;

/* Numbers from -8 to 8 of which half are whole, so that ties occur; the same in every run. */
bool tool_tensors_make(tool_tensors *tensors, const tarn_plan *plan, tarn_complaint *complaint);
void tool_tensors_free(tool_tensors *tensors);

/* Runs a pass on them. */
tarn_status tool_run_pass(const tarn_plan *plan, tarn_pass pass, const tool_tensors *tensors,
                          tarn_error *error);

/* Whether the plan has that pass, and its name: "vjp, saved". */
bool tool_has_pass(const tarn_plan *plan, tarn_pass pass);
const char *tool_pass_name(tarn_pass pass);

/* The tensors that a pass writes, closed by -1. */
const int *tool_pass_reads(tarn_pass pass);
const int *tool_pass_writes(tarn_pass pass);
enum { TOOL_SAVED = TARN_OPERANDS }; /* the saved winners, in these lists */

#endif
