/* Random problems for the tests against exact arithmetic, and windows listed naively.
 *
 * Nothing of src/window.h is used here: taps are enumerated with the formulas of docs/spec.md, one
 * by one, so that a mistake in the library's geometry cannot hide in the reference. Tensors are
 * kept as logical arrays (row-major, plane by plane); views are met only when a pass is run.
 */
#ifndef TARN_EXACT_H
#define TARN_EXACT_H

#include "check.h"
#include "plan.h"
#include "scalar.h"

#include <math.h>

/* Sanitizers slow these tests twentyfold; the code they execute stays the same. */
#ifdef TARN_SHORT_TESTS
#define ROUNDS(n) ((n) / 20 + 2)
#else
#define ROUNDS(n) (n)
#endif

enum { MOST_ELEMENTS = 1024, MOST_TAPS = 512, MOST_AXES = 4 };

/* Two draws in one expression would come in an order that the compiler chooses, so that a seed
 * would not mean the same everywhere: draws are separate statements, and signs have a function. */
static inline double signed_by(rng *r, double value)
{
    return rng_range(r, 0, 1) ? value : -value;
}

/* A drawn problem. `shape` is that of x: at most one leading axis, then the spatial ones. */
typedef struct scene {
    tarn_pool pool;
    int rank;
    int64_t shape[MOST_AXES + 1], size[MOST_AXES], out[MOST_AXES];
    bool channels_last;
    int64_t planes, cells, outs; /* cells and outs of one plane */
    tarn_plan plan;
} scene;

/* One tap: `cell` is its position in the flattened plane if it is real; `counted` says whether it
 * lies inside the padded extent. */
typedef struct tap {
    int64_t cell;
    bool real, counted;
} tap;

typedef struct window {
    int taps, real, counted;
    int depth; /* additions that a term passes on its way through the pairwise sums */
    tap tap[MOST_TAPS];
} window;

static inline int ceil_log2(int64_t n)
{
    int bits = 0;
    while ((INT64_C(1) << bits) < n)
        bits++;
    return bits;
}

/* ---- Windows, by the formulas -------------------------------------------------------------- */

/* Output size of one axis; 0 where the window does not fit. */
static inline int64_t naive_out(const tarn_pool *pool, int a, int64_t size)
{
    if (pool->window == TARN_GLOBAL)
        return 1;
    if (pool->window == TARN_ADAPTIVE)
        return pool->out[a];
    int64_t extent = pool->dilation[a] * (pool->kernel[a] - 1) + 1;
    int64_t room = size + pool->pad_lo[a] + pool->pad_hi[a] - extent, stride = pool->stride[a];
    if (room < 0)
        return 0;
    if (!pool->ceil_mode)
        return room / stride + 1;
    int64_t out = (room + stride - 1) / stride + 1;
    return (out - 1) * stride >= size + pool->pad_lo[a] ? out - 1 : out;
}

static inline int64_t tap_count(const tarn_pool *pool, int a, int64_t size, int64_t o)
{
    if (pool->window == TARN_GLOBAL)
        return size;
    if (pool->window == TARN_ADAPTIVE)
        return ((o + 1) * size + pool->out[a] - 1) / pool->out[a] - o * size / pool->out[a];
    return pool->kernel[a];
}

static inline int64_t tap_place(const tarn_pool *pool, int a, int64_t size, int64_t o, int64_t j)
{
    if (pool->window == TARN_GLOBAL)
        return j;
    if (pool->window == TARN_ADAPTIVE)
        return o * size / pool->out[a] + j;
    return o * pool->stride[a] - pool->pad_lo[a] + pool->dilation[a] * j;
}

static inline bool tap_is_counted(const tarn_pool *pool, int a, int64_t size, int64_t place)
{
    if (pool->window != TARN_SLIDING)
        return true;
    return place >= -pool->pad_lo[a] && place < size + pool->pad_hi[a];
}

static inline void unflatten(int64_t flat, int axes, const int64_t *sizes, int64_t *at)
{
    for (int a = axes - 1; a >= 0; a--) {
        at[a] = flat % sizes[a];
        flat /= sizes[a];
    }
}

static inline tap find_tap(const scene *s, const int64_t *o, const int64_t *j)
{
    tap t = {0, true, true};
    for (int a = 0; a < s->pool.spatial; a++) {
        int64_t place = tap_place(&s->pool, a, s->size[a], o[a], j[a]);
        t.real &= place >= 0 && place < s->size[a];
        t.counted &= tap_is_counted(&s->pool, a, s->size[a], place);
        t.cell = t.cell * s->size[a] + place;
    }
    return t;
}

/* All taps of output `flat`, in row-major order. */
static inline void list_window(const scene *s, int64_t flat, window *w)
{
    int64_t o[MOST_AXES], j[MOST_AXES], sizes[MOST_AXES], count = 1;
    unflatten(flat, s->pool.spatial, s->out, o);
    *w = (window){.taps = 0};
    for (int a = 0; a < s->pool.spatial; a++) {
        sizes[a] = tap_count(&s->pool, a, s->size[a], o[a]);
        count *= sizes[a];
        w->depth += ceil_log2(sizes[a]);
    }
    for (int64_t k = 0; k < count && k < MOST_TAPS; k++) {
        unflatten(k, s->pool.spatial, sizes, j);
        tap t = find_tap(s, o, j);
        w->tap[w->taps++] = t;
        w->real += t.real;
        w->counted += t.counted;
    }
}

/* How many windows read coordinate i of an axis, those before the first output and behind the last
 * one included: they keep their places in the order of summation. */
static inline int64_t readers(const scene *s, int a, int64_t i)
{
    int64_t count = 0;
    if (s->pool.window == TARN_GLOBAL)
        return 1;
    if (s->pool.window == TARN_SLIDING) {
        for (int64_t j = 0; j < s->pool.kernel[a]; j++)
            count += (i + s->pool.pad_lo[a] - s->pool.dilation[a] * j) % s->pool.stride[a] == 0;
        return count;
    }
    for (int64_t o = 0; o < s->out[a]; o++) {
        int64_t start = tap_place(&s->pool, a, s->size[a], o, 0);
        count += i >= start && i < start + tap_count(&s->pool, a, s->size[a], o);
    }
    return count;
}

/* Additions that a window's contribution to a cell passes: halves, or left to right. */
static inline int reader_depth(const scene *s, int64_t cell, bool running)
{
    int64_t i[MOST_AXES];
    int depth = 0;
    unflatten(cell, s->pool.spatial, s->size, i);
    for (int a = 0; a < s->pool.spatial; a++) {
        int64_t n = readers(s, a, i[a]);
        depth += running ? (int)n : ceil_log2(n);
    }
    return depth;
}

/* Divisor of the average over a window; the other window rules count all their taps. */
static inline int64_t naive_divisor(const scene *s, const window *w)
{
    if (s->pool.divisor > 0)
        return s->pool.divisor;
    if (s->pool.window != TARN_SLIDING)
        return w->taps;
    return s->pool.count_include_pad ? w->counted : w->real;
}

/* ---- Drawing problems ---------------------------------------------------------------------- */

static inline const char *describe(const scene *s)
{
    static char text[400];
    static const char *const ops[] = {"max", "min", "avg", "smooth", "lp"};
    static const char *const rules[] = {"sliding", "adaptive", "global"};
    const tarn_pool *p = &s->pool;
    int n = snprintf(text, sizeof text, "%s %s ties%d ceil%d pad-counts%d divisor%lld beta%g cl%d",
                     rules[p->window], ops[p->op], (int)p->ties, p->ceil_mode, p->count_include_pad,
                     (long long)p->divisor, p->beta, s->channels_last);
    for (int a = 0; a < p->spatial; a++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      " [%lld k%lld s%lld d%lld p%lld,%lld o%lld]", (long long)s->size[a],
                      (long long)p->kernel[a], (long long)p->stride[a], (long long)p->dilation[a],
                      (long long)p->pad_lo[a], (long long)p->pad_hi[a], (long long)s->out[a]);
    return text;
}

static inline void draw_axis(rng *r, tarn_pool *pool, int a, int64_t longest)
{
    pool->kernel[a] = rng_range(r, 1, longest > 9 ? 9 : longest);
    pool->stride[a] = rng_range(r, 1, 4);
    pool->dilation[a] = rng_range(r, 0, 1) ? 1 : rng_range(r, 1, 3);
    pool->pad_lo[a] = rng_range(r, 0, 1) ? 0 : rng_range(r, 0, 4);
    pool->pad_hi[a] = rng_range(r, 0, 1) ? 0 : rng_range(r, 0, 4);
    pool->out[a] = rng_range(r, 1, longest + 2);
}

static inline void draw_pool(rng *r, scene *s, tarn_op op)
{
    static const int64_t longest[MOST_AXES] = {24, 7, 4, 3};
    static const int dimensions[] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4};
    int spatial = dimensions[rng_range(r, 0, 11)];
    int leading = (int)rng_range(r, 0, 1);
    s->pool = tarn_max_pool(spatial);
    s->pool.op = op;
    s->pool.window = rng_range(r, 0, 9) < 6 ? TARN_SLIDING : (tarn_window)rng_range(r, 1, 2);
    s->pool.ties = (tarn_ties)rng_range(r, 0, 2);
    s->pool.ceil_mode = (int)rng_range(r, 0, 1);
    s->pool.count_include_pad = (int)rng_range(r, 0, 1);
    s->pool.divisor = rng_range(r, 0, 3) ? 0 : rng_range(r, 1, 11);
    s->pool.flat = (int)rng_range(r, 0, 1);
    s->rank = spatial + leading;
    s->shape[0] = rng_range(r, 1, 3);
    s->channels_last = leading && rng_range(r, 0, 1);
    for (int a = 0; a < spatial; a++) {
        s->size[a] = s->shape[leading + a] = rng_range(r, 1, longest[spatial - 1]);
        draw_axis(r, &s->pool, a, longest[spatial - 1]);
    }
}

/* Sets the sizes that follow from pool and shape; false if the windows do not fit. */
static inline bool measure_scene(scene *s)
{
    s->planes = s->rank > s->pool.spatial ? s->shape[0] : 1;
    s->cells = s->outs = 1;
    for (int a = 0; a < s->pool.spatial; a++) {
        s->out[a] = naive_out(&s->pool, a, s->size[a]);
        s->cells *= s->size[a];
        s->outs *= s->out[a];
    }
    return s->outs > 0 && s->planes * s->outs <= MOST_ELEMENTS &&
           s->planes * s->cells <= MOST_ELEMENTS;
}

/* Plans the scene for a dtype, on the specification itself. */
static inline void plan_scene(scene *s, tarn_dtype dtype)
{
    tarn_error error = {.message = ""};
    tarn_options options = tarn_options_default();
    options.isa = TARN_ISA_SPEC;
    tarn_view x = s->channels_last
                      ? tarn_view_channels_last(NULL, dtype, s->rank, s->pool.spatial, s->shape)
                      : tarn_view_dense(NULL, dtype, s->rank, s->shape);
    tarn_status status = tarn_plan_init(&s->plan, &s->pool, &x, &options, &error);
    CHECK(status == TARN_OK, "%s: %s", describe(s), error.message);
    if (status)
        exit(finish_checks());
}

static inline void draw_scene(rng *r, scene *s, tarn_op op)
{
    do
        draw_pool(r, s, op);
    while (!measure_scene(s));
}

/* One window over n cells. */
static inline void global_scene(scene *s, tarn_op op, int64_t n)
{
    *s = (scene){.rank = 1, .shape = {n}, .size = {n}};
    s->pool = tarn_global_max_pool(1, 0);
    s->pool.op = op;
    measure_scene(s);
}

/* ---- Logical arrays and views -------------------------------------------------------------- */

/* Where logical element `flat` of a tensor lies in its view. */
static inline int64_t place_in_view(const tarn_view *view, int64_t flat)
{
    int64_t at[TARN_MAX_RANK], offset = 0;
    unflatten(flat, view->rank, view->shape, at);
    for (int a = 0; a < view->rank; a++)
        offset += at[a] * view->strides[a];
    return offset;
}

static inline int64_t elements_of(const scene *s, int operand)
{
    bool input = operand == TARN_X || operand == TARN_DX || operand == TARN_GX;
    return s->planes * (input ? s->cells : s->outs);
}

static const tarn_dtype float_dtypes[4] = {TARN_F64, TARN_F32, TARN_F16, TARN_BF16};

/* Significant bits, and the exponents of the least normal and the greatest numbers: of stored
 * values, and of the sums over them. */
typedef struct format {
    int precision, least, greatest;
} format;

static inline format stored_format(tarn_dtype dtype)
{
    static const format formats[] = {
        [TARN_F64] = {53, -1022, 1023},
        [TARN_F32] = {24, -126, 127},
        [TARN_F16] = {11, -14, 15},
        [TARN_BF16] = {8, -126, 127},
    };
    return formats[dtype];
}

static inline format sum_format(tarn_dtype dtype)
{
    return stored_format(dtype == TARN_F64 ? TARN_F64 : TARN_F32);
}

static inline double load_float(tarn_dtype dtype, const void *memory, int64_t at)
{
    switch (dtype) {
    case TARN_F64:
        return ((const double *)memory)[at];
    case TARN_F32:
        return (double)((const float *)memory)[at];
    case TARN_F16:
        return (double)f16_load(((const uint16_t *)memory)[at]);
    default:
        return (double)bf16_load(((const uint16_t *)memory)[at]);
    }
}

static inline void store_float(tarn_dtype dtype, void *memory, int64_t at, double value)
{
    switch (dtype) {
    case TARN_F64:
        ((double *)memory)[at] = value;
        break;
    case TARN_F32:
        ((float *)memory)[at] = (float)value;
        break;
    case TARN_F16:
        ((uint16_t *)memory)[at] = f16_narrow(value);
        break;
    default:
        ((uint16_t *)memory)[at] = bf16_narrow(value);
        break;
    }
}

/* The nearest number that the dtype has. */
static inline double as_dtype(tarn_dtype dtype, double value)
{
    uint64_t memory = 0;
    store_float(dtype, &memory, 0, value);
    return load_float(dtype, &memory, 0);
}

/* Logical tensors of one pass of the library, and the memory behind their views. */
typedef struct floats {
    double x[MOST_ELEMENTS], y[MOST_ELEMENTS], dx[MOST_ELEMENTS], dy[MOST_ELEMENTS];
    double gx[MOST_ELEMENTS], gy[MOST_ELEMENTS];
    int64_t index[MOST_ELEMENTS];
} floats;

static inline void put_floats(const scene *s, int operand, const double *logical, void *memory)
{
    const tarn_view *view = &s->plan.view[operand];
    for (int64_t k = 0; k < elements_of(s, operand); k++)
        store_float(view->dtype, memory, place_in_view(view, k), logical[k]);
}

static inline void get_floats(const scene *s, int operand, double *logical, const void *memory)
{
    const tarn_view *view = &s->plan.view[operand];
    for (int64_t k = 0; k < elements_of(s, operand); k++)
        logical[k] = load_float(view->dtype, memory, place_in_view(view, k));
}

/* Runs every pass of the planned scene on f: y, dy, gx, and the indices where there are any. */
static inline void run_floats(const scene *s, floats *f)
{
    static uint64_t x[MOST_ELEMENTS], y[MOST_ELEMENTS], dx[MOST_ELEMENTS], dy[MOST_ELEMENTS];
    static uint64_t gx[MOST_ELEMENTS], gy[MOST_ELEMENTS];
    static int64_t indices[MOST_ELEMENTS];
    bool extreme = s->pool.op == TARN_MAX || s->pool.op == TARN_MIN;
    put_floats(s, TARN_X, f->x, x);
    put_floats(s, TARN_DX, f->dx, dx);
    put_floats(s, TARN_GY, f->gy, gy);
    tarn_status status = extreme ? tarn_forward_indices(&s->plan, x, y, indices, NULL)
                                 : tarn_forward(&s->plan, x, y, NULL, NULL);
    CHECK(status == TARN_OK, "%s", describe(s));
    CHECK(tarn_jvp(&s->plan, x, dx, NULL, dy, NULL) == TARN_OK, "%s", describe(s));
    CHECK(tarn_vjp(&s->plan, x, NULL, gy, gx, NULL) == TARN_OK, "%s", describe(s));
    get_floats(s, TARN_Y, f->y, y);
    get_floats(s, TARN_DY, f->dy, dy);
    get_floats(s, TARN_GX, f->gx, gx);
    for (int64_t k = 0; extreme && k < elements_of(s, TARN_INDICES); k++)
        f->index[k] = indices[place_in_view(&s->plan.view[TARN_INDICES], k)];
}

#endif
