#include "convert.h"
#include "../scalar.h"

#include <string.h>

/* An element on its way: every integer, or every floating number, exactly. */
typedef struct {
    bool whole;
    tarn_wide integer;
    double number;
} value;

static void copy_element(const char *from, bool swapped, char *to, size_t size)
{
    if (!swapped)
        memcpy(to, from, size);
    for (size_t k = 0; k < size && swapped; k++)
        to[k] = from[size - 1 - k];
}

#define LOAD_FLOAT(dtype, name)                                                                    \
    case dtype: {                                                                                  \
        name##_s stored;                                                                           \
        memcpy(&stored, bytes, sizeof stored);                                                     \
        return (value){.number = name##_widen(stored)};                                            \
    }
#define LOAD_INTEGER(dtype, name)                                                                  \
    case dtype: {                                                                                  \
        name##_s stored;                                                                           \
        memcpy(&stored, bytes, sizeof stored);                                                     \
        return (value){.whole = true, .integer = name##_load(stored)};                             \
    }

static value load(const char *bytes, tarn_dtype dtype)
{
    switch (dtype) {
        LOAD_FLOAT(TARN_F64, f64)
        LOAD_FLOAT(TARN_F32, f32)
        LOAD_FLOAT(TARN_F16, f16)
        LOAD_FLOAT(TARN_BF16, bf16)
        LOAD_INTEGER(TARN_I8, i8)
        LOAD_INTEGER(TARN_U8, u8)
        LOAD_INTEGER(TARN_I16, i16)
        LOAD_INTEGER(TARN_U16, u16)
        LOAD_INTEGER(TARN_I32, i32)
        LOAD_INTEGER(TARN_U32, u32)
        LOAD_INTEGER(TARN_I64, i64)
        LOAD_INTEGER(TARN_U64, u64)
    default:
        return (value){.whole = true};
    }
}

/* An integer of the types there are, -2^63 to 2^64 - 1, rounded to a double. */
static double nearest_double(tarn_wide integer)
{
    uint64_t low = wide_low(integer);
    return wide_less(integer, wide_of(0)) ? -(double)(0 - low) : (double)low;
}

/* As a double that is odd in its last bit if inexact: rounding it again, to a narrower type, then
 * gives what rounding once would. */
static double odd_double(tarn_wide integer)
{
    bool negative = wide_less(integer, wide_of(0));
    uint64_t size = negative ? 0 - wide_low(integer) : wide_low(integer);
    double nearest = (double)size;
    bool above = nearest >= 0x1p64;
    uint64_t taken = above ? 0 : (uint64_t)nearest, bits = bits_of_f64(nearest);
    if ((above || taken != size) && !(bits & 1))
        nearest = f64_of_bits(!above && size > taken ? bits + 1 : bits - 1);
    return negative ? -nearest : nearest;
}

/* Half to even, within 65 bits: no type holds more. NaN is 0. */
static tarn_wide rounded(double number)
{
    const double most = 0x1p64;
    if (number != number)
        return wide_of(0);
    double size = number < 0 ? -number : number;
    if (size >= most)
        return number < 0 ? wide_mul(INT64_MIN, 2) : wide_mul(INT64_MIN, -2);
    uint64_t below = (uint64_t)size;
    double rest = size - (double)below;
    below += rest > 0.5 || (rest == 0.5 && (below & 1));
    return number < 0 ? wide_negated(wide_of_unsigned(below)) : wide_of_unsigned(below);
}

#define STORE_FLOAT(dtype, name)                                                                   \
    case dtype: {                                                                                  \
        name##_s stored = name##_narrow(v.whole ? odd_double(v.integer) : v.number);               \
        memcpy(bytes, &stored, sizeof stored);                                                     \
        return;                                                                                    \
    }
#define STORE_INTEGER(dtype, name)                                                                 \
    case dtype: {                                                                                  \
        name##_s stored = name##_store(v.whole ? v.integer : rounded(v.number));                   \
        memcpy(bytes, &stored, sizeof stored);                                                     \
        return;                                                                                    \
    }

static void store(value v, tarn_dtype dtype, char *bytes)
{
    switch (dtype) {
    case TARN_F64: {
        double stored = v.whole ? nearest_double(v.integer) : f64_narrow(v.number);
        memcpy(bytes, &stored, sizeof stored);
        return;
    }
        STORE_FLOAT(TARN_F32, f32)
        STORE_FLOAT(TARN_F16, f16)
        STORE_FLOAT(TARN_BF16, bf16)
        STORE_INTEGER(TARN_I8, i8)
        STORE_INTEGER(TARN_U8, u8)
        STORE_INTEGER(TARN_I16, i16)
        STORE_INTEGER(TARN_U16, u16)
        STORE_INTEGER(TARN_I32, i32)
        STORE_INTEGER(TARN_U32, u32)
        STORE_INTEGER(TARN_I64, i64)
        STORE_INTEGER(TARN_U64, u64)
    default:
        return;
    }
}

/* One run along the innermost axis. */
static void convert_run(const tarn_view *from, bool swapped, const tarn_view *to,
                        const char *source, char *target, int64_t count, int64_t step,
                        int64_t target_step)
{
    size_t size = tarn_dtype_size(from->dtype), target_size = tarn_dtype_size(to->dtype);
    bool same = from->dtype == to->dtype;
    if (same && !swapped && step == 1 && target_step == 1) {
        memcpy(target, source, (size_t)count * size);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        char element[8];
        copy_element(source + k * step * (int64_t)size, swapped, element, size);
        char *place = target + k * target_step * (int64_t)target_size;
        if (same)
            memcpy(place, element, size);
        else
            store(load(element, from->dtype), to->dtype, place);
    }
}

/* The axis along which elements of the target are nearest: it becomes the inner loop. */
static int innermost_axis(const tarn_view *to)
{
    int best = to->rank - 1;
    for (int a = 0; a < to->rank; a++)
        if (to->shape[a] > 1 && (to->shape[best] <= 1 || to->strides[a] < to->strides[best]))
            best = a;
    return best;
}

/* Moves `at` to the next run; false behind the last. */
static bool advance(const tarn_view *to, int inner, int64_t *at)
{
    for (int a = to->rank - 1; a >= 0; a--) {
        if (a == inner)
            continue;
        if (++at[a] < to->shape[a])
            return true;
        at[a] = 0;
    }
    return false;
}

void tarn_convert(const tarn_view *from, bool swapped, const tarn_view *to)
{
    int64_t at[TARN_MAX_RANK + 1] = {0};
    int inner = innermost_axis(to);
    for (int a = 0; a < to->rank; a++)
        if (to->shape[a] == 0)
            return;
    int64_t count = to->rank ? to->shape[inner] : 1;
    do {
        int64_t offset = 0, target = 0;
        for (int a = 0; a < to->rank; a++) {
            offset += at[a] * from->strides[a];
            target += at[a] * to->strides[a];
        }
        convert_run(from, swapped, to,
                    (const char *)from->data + offset * (int64_t)tarn_dtype_size(from->dtype),
                    (char *)to->data + target * (int64_t)tarn_dtype_size(to->dtype), count,
                    to->rank ? from->strides[inner] : 1, to->rank ? to->strides[inner] : 1);
    } while (to->rank > 0 && advance(to, inner, at));
}

bool tarn_is_direct(const tarn_view *view, bool swapped, tarn_dtype dtype)
{
    return !swapped && view->dtype == dtype &&
           (uintptr_t)view->data % tarn_dtype_size(view->dtype) == 0;
}
