/* Tensors for tests: memory of exactly the size a layout needs, filled from a seed, compared by
 * bits. Numbers pass through double, so a test can be written once for every dtype. */
#ifndef TARN_FIXTURE_H
#define TARN_FIXTURE_H

#include "check.h"
#include "scalar.h"

/* What an untouched output holds: no test data has this byte everywhere. */
#define POISON 0xa5

typedef struct {
    tarn_view view; /* data points into memory */
    unsigned char *memory;
    size_t bytes;
} tensor;

static inline int64_t count_of(const tarn_view *view)
{
    int64_t count = 1;
    for (int a = 0; a < view->rank; a++)
        count *= view->shape[a];
    return count;
}

/* Poisoned memory for a layout whose strides are not negative. Not a byte more than needed, so
 * that a sanitizer sees the first one outside. */
static inline tensor tensor_like(const tarn_view *layout)
{
    tensor made = {.view = *layout};
    int64_t elements = count_of(layout) > 0;
    for (int a = 0; a < layout->rank && elements > 0; a++)
        elements += (layout->shape[a] - 1) * layout->strides[a];
    made.bytes = (size_t)elements * tarn_dtype_size(layout->dtype);
    made.memory = malloc(made.bytes ? made.bytes : 1);
    if (!made.memory)
        abort();
    memset(made.memory, POISON, made.bytes);
    made.view.data = made.memory;
    return made;
}

static inline tensor tensor_dense(tarn_dtype dtype, int rank, const int64_t *shape)
{
    tarn_view layout = tarn_view_dense(NULL, dtype, rank, shape);
    return tensor_like(&layout);
}

static inline void tensor_free(tensor *t)
{
    free(t->memory);
    t->memory = NULL;
}

static inline bool is_poison(const void *memory, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        if (((const unsigned char *)memory)[k] != POISON)
            return false;
    return true;
}

/* Writes a number that the dtype can hold. */
static inline void put_number(tarn_dtype dtype, void *at, double number)
{
#define PUT(type, value)                                                                           \
    {                                                                                              \
        type stored = (type)(value);                                                               \
        memcpy(at, &stored, sizeof stored);                                                        \
        break;                                                                                     \
    }
    switch (dtype) {
    case TARN_F64:
        PUT(double, number)
    case TARN_F32:
        PUT(float, number)
    case TARN_F16:
        PUT(uint16_t, f16_narrow(number))
    case TARN_BF16:
        PUT(uint16_t, bf16_narrow(number))
    case TARN_I8:
        PUT(int8_t, number)
    case TARN_U8:
        PUT(uint8_t, number)
    case TARN_I16:
        PUT(int16_t, number)
    case TARN_U16:
        PUT(uint16_t, number)
    case TARN_I32:
        PUT(int32_t, number)
    case TARN_U32:
        PUT(uint32_t, number)
    case TARN_I64:
        PUT(int64_t, number)
    case TARN_U64:
        PUT(uint64_t, number)
    default:
        abort();
    }
#undef PUT
}

static inline double get_number(tarn_dtype dtype, const void *at)
{
#define GET(type, conversion)                                                                      \
    {                                                                                              \
        type stored;                                                                               \
        memcpy(&stored, at, sizeof stored);                                                        \
        return (double)conversion(stored);                                                         \
    }
    switch (dtype) {
    case TARN_F64:
        GET(double, )
    case TARN_F32:
        GET(float, )
    case TARN_F16:
        GET(uint16_t, f16_load)
    case TARN_BF16:
        GET(uint16_t, bf16_load)
    case TARN_I8:
        GET(int8_t, )
    case TARN_U8:
        GET(uint8_t, )
    case TARN_I16:
        GET(int16_t, )
    case TARN_U16:
        GET(uint16_t, )
    case TARN_I32:
        GET(int32_t, )
    case TARN_U32:
        GET(uint32_t, )
    case TARN_I64:
        GET(int64_t, )
    case TARN_U64:
        GET(uint64_t, )
    default:
        abort();
    }
#undef GET
}

static inline bool is_floating_dtype(tarn_dtype dtype)
{
    return dtype <= TARN_BF16;
}

static inline bool is_unsigned_dtype(tarn_dtype dtype)
{
    return dtype == TARN_U8 || dtype == TARN_U16 || dtype == TARN_U32 || dtype == TARN_U64;
}

/* Element `at` (one coordinate for each axis) of a view. */
static inline void *element_at(const tarn_view *view, const int64_t *at)
{
    int64_t offset = 0;
    for (int a = 0; a < view->rank; a++)
        offset += at[a] * view->strides[a];
    return (char *)view->data + offset * (int64_t)tarn_dtype_size(view->dtype);
}

/* The next index in row-major order; false after the last. */
static inline bool step_index(const tarn_view *view, int64_t *at)
{
    for (int a = view->rank - 1; a >= 0; a--) {
        if (++at[a] < view->shape[a])
            return true;
        at[a] = 0;
    }
    return false;
}

/* Small numbers with many ties: what finds wrong tie rules. Exact in every dtype. */
static inline double random_small(rng *r, tarn_dtype dtype)
{
    int64_t low = is_unsigned_dtype(dtype) ? 0 : -6;
    double number = (double)rng_range(r, low, 6);
    return is_floating_dtype(dtype) ? number * 0.25 : number;
}

/* Numbers of many magnitudes: what finds a wrong order of summation. */
static inline double random_wide(rng *r, tarn_dtype dtype)
{
    if (!is_floating_dtype(dtype))
        return (double)rng_range(r, is_unsigned_dtype(dtype) ? 0 : -128, 127);
    return (rng_unit(r) - 0.5) * (double)(1 << rng_range(r, 0, 8));
}

static inline void fill(const tarn_view *view, rng *r, double (*random)(rng *, tarn_dtype))
{
    int64_t at[TARN_MAX_RANK] = {0};
    if (count_of(view) == 0)
        return;
    do
        put_number(view->dtype, element_at(view, at), random(r, view->dtype));
    while (step_index(view, at));
}

/* Same shape, same dtype, same bits, whatever the strides. */
static inline bool same_elements(const tarn_view *a, const tarn_view *b)
{
    int64_t at[TARN_MAX_RANK] = {0};
    if (a->dtype != b->dtype || count_of(a) != count_of(b) || a->rank != b->rank)
        return false;
    if (count_of(a) == 0)
        return true;
    do
        if (memcmp(element_at(a, at), element_at(b, at), tarn_dtype_size(a->dtype)) != 0)
            return false;
    while (step_index(a, at));
    return true;
}

/* Copies bits between views of one shape. */
static inline void copy_view(const tarn_view *from, const tarn_view *to)
{
    int64_t at[TARN_MAX_RANK] = {0};
    if (count_of(from) == 0)
        return;
    do
        memcpy(element_at(to, at), element_at(from, at), tarn_dtype_size(from->dtype));
    while (step_index(from, at));
}

#endif
