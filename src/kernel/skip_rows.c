/* Rows in which some elements are skipped: see skipping.h. */
#include "skipping.h"

/* The bits of infinity, of a floating dtype. */
static uint64_t infinity_of(tarn_dtype dtype)
{
    static const uint64_t bits[] = {[TARN_F64] = UINT64_C(0x7ff0000000000000),
                                    [TARN_F32] = 0x7f800000,
                                    [TARN_F16] = 0x7c00,
                                    [TARN_BF16] = 0x7f80};
    return bits[dtype];
}

/* What no element is less than, for max, or greater than, for min. */
static uint64_t neutral_of(const tarn_problem *p, uint64_t sign)
{
    bool is_unsigned =
        p->dtype == TARN_U8 || p->dtype == TARN_U16 || p->dtype == TARN_U32 || p->dtype == TARN_U64;
    uint64_t least = is_unsigned ? 0 : sign;
    if (p->dtype <= TARN_BF16)
        return infinity_of(p->dtype) | (p->op == TARN_MAX ? sign : 0);
    return p->op == TARN_MAX ? least : ~least;
}

tarn_skip_rule tarn_rule_of_skipping(const tarn_problem *p)
{
    tarn_skip_rule rule = {.bytes = p->element_bytes[TARN_X]};
    uint64_t sign = UINT64_C(1) << (8 * rule.bytes - 1), all = sign | (sign - 1);
    memcpy(&rule.value, p->skipped, sizeof rule.value);
    rule.value &= all;
    rule.above = p->skips == SKIPS_NAN;
    rule.mask = all;
    if (rule.above)
        rule.value = infinity_of(p->dtype);
    if (p->dtype <= TARN_BF16 && (rule.above || rule.value == 0)) /* zeros are equal */
        rule.mask = all ^ sign;
    rule.instead = p->op == TARN_AVG ? 0 : neutral_of(p, sign) & all;
    return rule;
}

/* Loops over integers as wide as elements. What is above has a mask without the sign. */
#define LOOP(bits, COMPARISON, DO)                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                              \
        typedef int##bits##_t __attribute__((may_alias)) element;                                  \
        const element cell = ((const element *)x)[i];                                              \
        const bool skipped = (element)(cell & (element)rule->mask) COMPARISON(element)rule->value; \
        DO;                                                                                        \
    }
#define LOOP_OF_WIDTH(bits, DO)                                                                    \
    case bits / 8:                                                                                 \
        if (rule->above)                                                                           \
            LOOP(bits, >, DO)                                                                      \
        else                                                                                       \
            LOOP(bits, ==, DO)                                                                     \
        break;
#define EACH(DO)                                                                                   \
    switch (rule->bytes) {                                                                         \
        LOOP_OF_WIDTH(8, DO)                                                                       \
        LOOP_OF_WIDTH(16, DO)                                                                      \
        LOOP_OF_WIDTH(32, DO)                                                                      \
        LOOP_OF_WIDTH(64, DO)                                                                      \
    }

void tarn_replace_skipped(void *restrict to, const void *from, const void *x,
                          const tarn_skip_rule *where, int64_t n)
{
    const tarn_skip_rule own = *where, *const rule = &own; /* no store changes it */
    EACH(const element value = ((const element *)from)[i];
         ((element *)to)[i] = skipped ? (element)rule->instead : value)
}

void tarn_count_others(uint8_t *to, const void *x, const tarn_skip_rule *where, int64_t n)
{
    const tarn_skip_rule own = *where, *const rule = &own;
    EACH(to[i] = !skipped)
}

bool tarn_any_doubtful(const void *x, const tarn_skip_rule *rule, int64_t n)
{
    uint8_t doubtful = 0;
    EACH(doubtful |= skipped | (cell == (element)rule->instead))
    return doubtful;
}
