/* Rows in which some elements are skipped [K1]: what the forward engine converts, and the engine
 * that has them (skipping.c) checks. */
#ifndef TARN_SKIPPING_H
#define TARN_SKIPPING_H

#include "../problem.h"

/* An element is skipped if its bits under the mask are the value, or a number above it. */
typedef struct tarn_skip_rule {
    bool above;
    int64_t bytes;
    uint64_t mask, value;
    uint64_t instead; /* of a skipped element: adds nothing to a sum, and wins no window */
} tarn_skip_rule;

tarn_skip_rule tarn_rule_of_skipping(const tarn_problem *problem);

/* n elements, others instead of those whose cell `x` is skipped; 1 or 0 for each, as it counts or
 * not. */
void tarn_replace_skipped(void *restrict to, const void *from, const void *x,
                          const tarn_skip_rule *rule, int64_t n);
void tarn_count_others(uint8_t *to, const void *x, const tarn_skip_rule *rule, int64_t n);
/* Whether a result may be what stands for a skipped element, or be one. */
bool tarn_any_doubtful(const void *results, const tarn_skip_rule *rule, int64_t n);

#endif
