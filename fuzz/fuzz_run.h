/* Passes judged by the specification: whatever plan is chosen, by memcmp, on memory of exactly
 * the size that the tensors need. */
#ifndef TARN_FUZZ_RUN_H
#define TARN_FUZZ_RUN_H

#include "fuzz.h"

#include <stdio.h>

/* Bytes that are taken one after the other; 0 behind the last. */
typedef struct {
    const unsigned char *data;
    size_t size, at;
} fuzz_bytes;

static inline unsigned fuzz_byte(fuzz_bytes *b)
{
    return b->at < b->size ? b->data[b->at++] : 0;
}

#define fuzz_expect(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Numbers for a tensor: the bytes that are left, again and again, each time otherwise. */
static inline void fuzz_fill(void *memory, size_t count, const fuzz_bytes *b)
{
    size_t left = b->size - b->at;
    for (size_t k = 0; k < count; k++)
        ((unsigned char *)memory)[k] =
            (unsigned char)((left ? b->data[b->at + k % left] : 0) + k / (left + 1) * 37);
}

/* Steps that the specification takes from tap to tap for the dearest pass: for each cell of a
 * gradient all taps of all its windows. */
static inline double fuzz_steps(const tarn_pool *pool, const tarn_view *x, const tarn_view *y)
{
    double cells = 1, outputs = 1, taps = 1;
    for (int a = 0; a < x->rank; a++)
        cells *= (double)x->shape[a];
    for (int a = 0; a < y->rank; a++)
        outputs *= (double)y->shape[a];
    for (int a = 0; a < pool->spatial; a++)
        taps *= pool->window == TARN_SLIDING ? (double)pool->kernel[a]
                                             : (double)x->shape[x->rank - pool->spatial + a];
    return (cells + outputs) * taps * (1 + (taps < outputs ? taps : outputs));
}

/* Elements from the first to the last: strides may be anything. */
static inline double fuzz_reach(const tarn_view *view)
{
    double reach = 1;
    for (int a = 0; a < view->rank; a++) {
        double stride = (double)view->strides[a];
        reach += (double)view->shape[a] * (stride < 0 ? -stride : stride);
    }
    return reach;
}

typedef struct {
    tarn_view view;
    unsigned char *memory;
    size_t bytes;
} fuzz_tensor;

/* Memory for a layout of any strides, which are small; data is set. */
static inline fuzz_tensor fuzz_make_tensor(const tarn_view *layout, const fuzz_bytes *b)
{
    fuzz_tensor made = {.view = *layout};
    int64_t low = 0, high = 1, size = (int64_t)tarn_dtype_size(layout->dtype);
    for (int a = 0; a < layout->rank; a++) {
        if (layout->shape[a] == 0)
            return made.memory = malloc(1), made.view.data = made.memory, made;
        int64_t reach = (layout->shape[a] - 1) * layout->strides[a];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    made.bytes = (size_t)((high - low) * size);
    made.memory = malloc(made.bytes);
    fuzz_expect(made.memory != NULL);
    fuzz_fill(made.memory, made.bytes, b);
    made.view.data = made.memory - low * size;
    return made;
}

/* Every pass with both plans; what is written is compared, what is refused must be refused by
 * both. */
static inline void fuzz_compare_passes(const tarn_plan *plan, const tarn_plan *spec,
                                       const tarn_view *x, const fuzz_bytes *b)
{
    enum { SAVED = TARN_OPERANDS, OPERANDS };
    const tarn_plan *plans[2] = {plan, spec};
    fuzz_tensor tensor[2][TARN_OPERANDS];
    void *at[2][OPERANDS];
    size_t saved = tarn_plan_saved_bytes(plan);
    fuzz_expect(saved == tarn_plan_saved_bytes(spec));
    for (int p = 0; p < 2; p++) {
        for (int k = 0; k < TARN_OPERANDS; k++) {
            tarn_view layout = *x;
            if (k != TARN_X)
                fuzz_expect(!tarn_plan_layout(plans[p], (tarn_operand)k, &layout, NULL));
            tensor[p][k] = fuzz_make_tensor(&layout, b);
            at[p][k] = tensor[p][k].view.data;
        }
        at[p][SAVED] = calloc(saved + 1, 1);
    }
    for (int pass = 0; pass < 6; pass++) {
        tarn_status status[2];
        for (int p = 0; p < 2; p++) {
            void **t = at[p];
            tarn_error error = {.code = TARN_OK};
            bool keep = saved > 0;
            status[p] =
                pass == 0 ? tarn_forward(plans[p], t[TARN_X], t[TARN_Y], NULL, &error)
                : pass == 1
                    ? tarn_forward(plans[p], t[TARN_X], t[TARN_Y], keep ? t[SAVED] : NULL, &error)
                : pass == 2
                    ? tarn_forward_indices(plans[p], t[TARN_X], t[TARN_Y], t[TARN_INDICES], &error)
                : pass == 3
                    ? tarn_jvp(plans[p], t[TARN_X], t[TARN_DX], t[TARN_Y], t[TARN_DY], &error)
                : pass == 4 ? tarn_vjp(plans[p], t[TARN_X], NULL, t[TARN_GY], t[TARN_GX], &error)
                            : tarn_vjp(plans[p], t[TARN_X], keep ? t[SAVED] : NULL, t[TARN_GY],
                                       t[TARN_GX], &error);
            fuzz_expect(error.code == status[p] && (status[p] != 0) == (error.message[0] != '\0'));
        }
        fuzz_expect(status[0] == status[1]);
        for (int k = 0; k < TARN_OPERANDS; k++)
            fuzz_expect(memcmp(tensor[0][k].memory, tensor[1][k].memory, tensor[0][k].bytes) == 0);
        fuzz_expect(memcmp(at[0][SAVED], at[1][SAVED], saved) == 0);
    }
    for (int p = 0; p < 2; p++) {
        for (int k = 0; k < TARN_OPERANDS; k++)
            free(tensor[p][k].memory);
        free(at[p][SAVED]);
    }
}

/* A problem of any kind: the shape query and planning agree; what is refused has a reason; what
 * is small is run. */
static inline void fuzz_problem(const tarn_pool *pool, const tarn_view *x, const fuzz_bytes *b)
{
    tarn_view y;
    tarn_plan *plan, *spec;
    tarn_error error, again;
    tarn_options options = tarn_options_default();
    tarn_status status = tarn_output_view(pool, x, &y, &error);
    fuzz_expect(error.code == status && (status != 0) == (error.message[0] != '\0'));
    tarn_status planned = tarn_plan_create(&plan, pool, x, &options, &again);
    if (planned) { /* other tensors than x and y may be too large */
        fuzz_expect(planned == status ? strcmp(error.message, again.message) == 0
                                      : !status && planned == TARN_OVERFLOW);
        return;
    }
    fuzz_expect(!status);
    options.isa = TARN_ISA_SPEC;
    fuzz_expect(!tarn_plan_create(&spec, pool, x, &options, NULL));
    if (fuzz_steps(pool, x, &y) < 3e4 && fuzz_reach(x) < 1e6)
        fuzz_compare_passes(plan, spec, x, b);
    tarn_plan_destroy(plan);
    tarn_plan_destroy(spec);
}

/* ---- Problems from bytes -------------------------------------------------------------------- */

/* Mostly a small number; after a byte of 250 and more an extreme one. */
static inline int64_t fuzz_number(fuzz_bytes *b, int64_t least, int64_t count)
{
    static const int64_t extremes[] = {0, -1, 1000, INT32_MAX, (int64_t)1 << 40, INT64_MAX};
    unsigned byte = fuzz_byte(b);
    return byte >= 250 ? extremes[byte - 250] : least + byte % count;
}

static inline double fuzz_real(fuzz_bytes *b)
{
    static const double extremes[] = {0, -0.0, 1e-310, 1e300, -1, (double)(1ull << 41)};
    unsigned byte = fuzz_byte(b);
    return byte >= 250 ? extremes[byte - 250] : 1 + (byte - 20) / 16.0;
}

static inline tarn_pool fuzz_take_pool(fuzz_bytes *b)
{
    tarn_pool pool = tarn_max_pool((int)fuzz_number(b, 1, 4));
    pool.op = (tarn_op)(fuzz_byte(b) % (TARN_OPS + 1));
    pool.window = (tarn_window)(fuzz_byte(b) % (TARN_GLOBAL + 2));
    unsigned flags = fuzz_byte(b);
    pool.ceil_mode = flags & 1;
    pool.count_include_pad = flags >> 1 & 1;
    pool.flat = flags >> 2 & 1;
    pool.ties = (tarn_ties)(flags >> 3 & 3);
    pool.divisor = flags & 32 ? fuzz_number(b, 1, 20) : 0;
    pool.beta = pool.power = pool.skip_real = fuzz_real(b);
    if (flags & 64) {
        pool.skip = (tarn_skip)(fuzz_byte(b) % (TARN_SKIPS + 1));
        pool.skip_integer = fuzz_number(b, 0, 4);
        pool.min_count = fuzz_number(b, 0, 5);
    }
    for (int a = 0; a < TARN_MAX_SPATIAL && a < pool.spatial; a++) {
        pool.kernel[a] = fuzz_number(b, 1, 6);
        pool.stride[a] = fuzz_number(b, 1, 4);
        pool.dilation[a] = fuzz_number(b, 1, 3);
        pool.pad_lo[a] = fuzz_number(b, 0, 4);
        pool.pad_hi[a] = fuzz_number(b, 0, 4);
        pool.out[a] = fuzz_number(b, 1, 7);
    }
    return pool;
}

/* Dense, channels last, or strides that anything may come of: reversed, broadcast, with gaps. */
static inline tarn_view fuzz_take_view(fuzz_bytes *b, const tarn_pool *pool)
{
    int64_t shape[TARN_MAX_RANK] = {0};
    unsigned kind = fuzz_byte(b);
    int spatial = pool->spatial > 0 && pool->spatial <= TARN_MAX_SPATIAL ? pool->spatial : 2;
    int rank = spatial + (int)(kind >> 2 & 3);
    tarn_dtype dtype = (tarn_dtype)(fuzz_byte(b) % (TARN_DTYPES + 1));
    for (int a = 0; a < rank; a++)
        shape[a] = fuzz_number(b, a < rank - spatial ? 0 : 1, a < rank - spatial ? 20 : 40);
    tarn_view x = tarn_view_dense(NULL, dtype, rank, shape);
    if ((kind & 3) == 1)
        x = tarn_view_channels_last(NULL, dtype, rank, spatial, shape);
    for (int a = 0; (kind & 3) == 2 && a < rank; a++)
        x.strides[a] = fuzz_number(b, -3, 90);
    return x;
}

#endif
