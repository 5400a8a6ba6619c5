#include "skip.h"

#include "error.h"
#include "float_state.h"
#include "shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Text ----------------------------------------------------------------------------------- */

/* Digits, maybe behind a sign, that fit 64 bits. */
static bool read_integer(const char *text, tarn_pool *pool)
{
    const char *digits = text + (*text == '-');
    if (!*digits || digits[strspn(digits, "0123456789")])
        return false;
    errno = 0;
    pool->skip = TARN_SKIP_INTEGER;
    pool->skip_integer = strtoll(text, NULL, 10);
    if (errno != ERANGE)
        return true;
    errno = 0;
    pool->skip = TARN_SKIP_UNSIGNED;
    pool->skip_integer = (int64_t)strtoull(text, NULL, 10);
    return errno != ERANGE && digits == text;
}

static bool read_real(const char *text, double *number)
{
    if (tarn_read_decimal(text, number))
        return true;
    *number = *text == '-' ? -INFINITY : INFINITY;
    return !strcmp(text, "inf") || !strcmp(text, "-inf");
}

bool tarn_read_skip(const char *text, tarn_pool *pool)
{
    tarn_pool read = *pool;
    read.skip = TARN_SKIP_NAN;
    if (strcmp(text, "nan") != 0 && !read_integer(text, &read)) {
        read.skip = TARN_SKIP_REAL;
        if (!read_real(text, &read.skip_real))
            return false;
    }
    *pool = read;
    return true;
}

void tarn_print_skip(const tarn_pool *pool, char text[DECIMAL_BYTES])
{
    switch (pool->skip) {
    case TARN_SKIP_NAN:
        snprintf(text, DECIMAL_BYTES, "nan");
        break;
    case TARN_SKIP_INTEGER:
        snprintf(text, DECIMAL_BYTES, "%lld", (long long)pool->skip_integer);
        break;
    case TARN_SKIP_UNSIGNED:
        snprintf(text, DECIMAL_BYTES, "%llu", (unsigned long long)pool->skip_integer);
        break;
    default:
        tarn_print_decimal(is_zero_in_any_state(pool->skip_real) ? 0 : pool->skip_real, text);
    }
}

/* ---- Elements ------------------------------------------------------------------------------- */

static void store_float(double number, tarn_dtype dtype, char *element)
{
    float single = f32_narrow(number);
    uint16_t half = dtype == TARN_F16 ? f16_narrow(number) : bf16_narrow(number);
    number = f64_store(number);
    const void *from = dtype == TARN_F64   ? (void *)&number
                       : dtype == TARN_F32 ? (void *)&single
                                           : &half;
    memcpy(element, from, tarn_dtype_size(dtype));
}

static double load_float(tarn_dtype dtype, const char *element)
{
    double number;
    float single;
    uint16_t half;
    memcpy(&number, element, sizeof number);
    memcpy(&single, element, sizeof single);
    memcpy(&half, element, sizeof half);
    return dtype == TARN_F64   ? number
           : dtype == TARN_F32 ? (double)single
           : dtype == TARN_F16 ? (double)f16_load(half)
                               : (double)bf16_load(half);
}

/* Whether a number that was finite still is. */
static bool round_to_float(const tarn_pool *pool, tarn_dtype dtype, char *element)
{
    double number = pool->skip == TARN_SKIP_NAN        ? NAN
                    : pool->skip == TARN_SKIP_INTEGER  ? (double)pool->skip_integer
                    : pool->skip == TARN_SKIP_UNSIGNED ? (double)(uint64_t)pool->skip_integer
                                                       : pool->skip_real + 0.0;
    store_float(number, dtype, element);
    return !isinf(load_float(dtype, element)) || isinf(number);
}

/* The number as a sign and a magnitude; false if it is no integer of so many bits. */
static bool split_number(const tarn_pool *pool, bool *negative, uint64_t *magnitude)
{
    *negative = pool->skip == TARN_SKIP_INTEGER && pool->skip_integer < 0;
    *magnitude = *negative ? 0 - (uint64_t)pool->skip_integer : (uint64_t)pool->skip_integer;
    if (pool->skip != TARN_SKIP_REAL)
        return true;
    double number = pool->skip_real < 0 ? -pool->skip_real : pool->skip_real;
    if (!(number < 0x1p64))
        return false;
    *negative = pool->skip_real < 0;
    *magnitude = (uint64_t)number;
    return (double)*magnitude == number;
}

/* Whether the number is one of the dtype. */
static bool fit_integer(const tarn_pool *pool, tarn_dtype dtype, char *element)
{
    int bits = 8 * (int)tarn_dtype_size(dtype);
    bool is_signed =
        dtype == TARN_I8 || dtype == TARN_I16 || dtype == TARN_I32 || dtype == TARN_I64;
    uint64_t most = UINT64_MAX >> (64 - bits + is_signed), magnitude; /* of positive ones */
    bool negative;
    if (!split_number(pool, &negative, &magnitude) ||
        magnitude > (negative ? most * is_signed + is_signed : most))
        return false;
    uint64_t wide = negative ? 0 - magnitude : magnitude;
    uint32_t four = (uint32_t)wide;
    uint16_t two = (uint16_t)wide;
    uint8_t one = (uint8_t)wide;
    const void *const from[] = {[1] = &one, [2] = &two, [4] = &four, [8] = &wide};
    memcpy(element, from[bits / 8], (size_t)bits / 8);
    return true;
}

/* Not inlined: rounds as set_float_state() says. */
static __attribute__((noinline)) bool fit_element(const tarn_pool *pool, tarn_dtype dtype,
                                                  char *element)
{
    return is_floating(dtype) ? round_to_float(pool, dtype, element)
                              : fit_integer(pool, dtype, element);
}

static tarn_status check_rule(const tarn_pool *pool, tarn_dtype dtype, tarn_error *error)
{
    if ((int)pool->skip < 0 || pool->skip >= TARN_SKIPS)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not a rule of skipping",
                         (int)pool->skip);
    if (pool->op == TARN_SMOOTH || pool->op == TARN_LP)
        return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS,
                         "%s does not skip: max, min, avg and mode do",
                         pool->op == TARN_LP ? "lp" : "smooth max");
    if (pool->skip == TARN_SKIP_NAN && !is_floating(dtype))
        return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS,
                         "skipping NaN needs a floating dtype, x is %s", tarn_dtype_name(dtype));
    if (pool->skip == TARN_SKIP_REAL && isnan(pool->skip_real))
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS,
                         "the skipped value is NaN: that is a rule of its own");
    if (pool->min_count < 0)
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS, "min_count %lld is negative",
                         (long long)pool->min_count);
    return TARN_OK;
}

tarn_status tarn_check_skip(const tarn_pool *pool, tarn_dtype dtype, tarn_problem *problem,
                            tarn_error *error)
{
    if (pool->skip == TARN_SKIP_NOTHING)
        return TARN_OK;
    tarn_status status = check_rule(pool, dtype, error);
    if (status)
        return status;
    uint64_t former = set_float_state();
    bool fits = fit_element(pool, dtype, problem->skipped);
    restore_float_state(former);
    if (!fits) {
        char text[DECIMAL_BYTES];
        tarn_print_skip(pool, text);
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS,
                         "the skipped value %s is not a number of %s", text,
                         tarn_dtype_name(dtype));
    }
    problem->skips = pool->skip == TARN_SKIP_NAN ? SKIPS_NAN : SKIPS_VALUE;
    problem->min_count = pool->min_count;
    return TARN_OK;
}
