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
#define SKIP_ROWS(bits)                                                                            \
    typedef int##bits##_t __attribute__((may_alias)) element_##bits;                               \
    static void replace_##bits(void *results, const void *elements, const tarn_skip_rule *rule,    \
                               int64_t n)                                                          \
    {                                                                                              \
        const element_##bits *from = elements, mask = (element_##bits)rule->mask,                  \
                             value = (element_##bits)rule->value,                                  \
                             instead = (element_##bits)rule->instead;                              \
        const int64_t above = rule->above ? n : 0, others = n - above;                             \
        element_##bits *to = results;                                                              \
        for (int64_t i = 0; i < above; i++)                                                        \
            to[i] = (element_##bits)(from[i] & mask) > value ? instead : from[i];                  \
        for (int64_t i = 0; i < others; i++)                                                       \
            to[i] = (element_##bits)(from[i] & mask) == value ? instead : from[i];                 \
    }                                                                                              \
    static void count_##bits(void *results, const void *elements, const tarn_skip_rule *rule,      \
                             int64_t n)                                                            \
    {                                                                                              \
        const element_##bits *from = elements, mask = (element_##bits)rule->mask,                  \
                             value = (element_##bits)rule->value;                                  \
        const int64_t above = rule->above ? n : 0, others = n - above;                             \
        uint8_t *to = results;                                                                     \
        for (int64_t i = 0; i < above; i++)                                                        \
            to[i] = (element_##bits)(from[i] & mask) <= value;                                     \
        for (int64_t i = 0; i < others; i++)                                                       \
            to[i] = (element_##bits)(from[i] & mask) != value;                                     \
    }                                                                                              \
    static void doubt_##bits(void *result, const void *elements, const tarn_skip_rule *rule,       \
                             int64_t n)                                                            \
    {                                                                                              \
        const element_##bits *from = elements, mask = (element_##bits)rule->mask,                  \
                             value = (element_##bits)rule->value,                                  \
                             instead = (element_##bits)rule->instead;                              \
        const int64_t above = rule->above ? n : 0, others = n - above;                             \
        element_##bits found = 0;                                                                  \
        for (int64_t i = 0; i < above; i++)                                                        \
            found |= (from[i] == instead) | ((element_##bits)(from[i] & mask) > value);            \
        for (int64_t i = 0; i < others; i++)                                                       \
            found |= (from[i] == instead) | ((element_##bits)(from[i] & mask) == value);           \
        *(bool *)result = found;                                                                   \
    }
SKIP_ROWS(8)
SKIP_ROWS(16)
SKIP_ROWS(32)
SKIP_ROWS(64)
#undef SKIP_ROWS

typedef void operation(void *to, const void *from, const tarn_skip_rule *rule, int64_t n);

static int width_of(const tarn_skip_rule *rule)
{
    return __builtin_ctz((unsigned)rule->bytes);
}

void tarn_replace_skipped(void *to, const void *from, const tarn_skip_rule *rule, int64_t n)
{
    static operation *const by_width[] = {replace_8, replace_16, replace_32, replace_64};
    by_width[width_of(rule)](to, from, rule, n);
}

void tarn_count_others(uint8_t *to, const void *from, const tarn_skip_rule *rule, int64_t n)
{
    static operation *const by_width[] = {count_8, count_16, count_32, count_64};
    by_width[width_of(rule)](to, from, rule, n);
}

bool tarn_any_doubtful(const void *results, const tarn_skip_rule *rule, int64_t n)
{
    static operation *const by_width[] = {doubt_8, doubt_16, doubt_32, doubt_64};
    bool any;
    by_width[width_of(rule)](&any, results, rule, n);
    return any;
}
