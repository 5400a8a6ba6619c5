/* Plans remembered by what they were made for, so that a small call does not plan. */
#ifndef TARN_PYTHON_PLAN_CACHE_H
#define TARN_PYTHON_PLAN_CACHE_H

#include "module.h"

typedef struct plan_entry {
    tarn_plan *plan;
    PyObject *shape[TARN_OPERANDS]; /* made when first asked for */
    bool dense[TARN_OPERANDS];      /* row-major; valid where shape is set */
    int threads, parts;             /* of its passes: see interrupts.h */
    int users;                      /* the table, and calls that run the plan */
    uint64_t hash;
    int words;
    int64_t key[];
} plan_entry;

/* The plan for a pool, an input and given layouts (NULL: the plan's defaults) on so many threads,
 * the library's own or those of `loop`, and in so many parts; new or remembered. NULL with an
 * exception. Give it back with plan_put(). */
plan_entry *plan_get(module_state *state, const tarn_pool *pool, const tarn_view *x,
                     const tarn_view *const layout[TARN_OPERANDS], int threads,
                     tarn_parallel_for loop, int parts);
/* One user more, of a plan in use. */
void plan_take(module_state *state, plan_entry *entry);
void plan_put(module_state *state, plan_entry *entry);

/* The tuple of sizes of an operand, borrowed from the entry; NULL with an exception. */
PyObject *plan_shape(module_state *state, plan_entry *entry, tarn_operand operand);

/* Forgets every plan. */
void plan_cache_clear(module_state *state);

#endif
