#include "bench_reference.h"

#include "../src/scalar.h"

#include <math.h>

/* ---- Elements ------------------------------------------------------------------------------ */

typedef struct {
    int64_t at[TARN_MAX_RANK];
} position;

static int64_t count_elements(const tarn_view *view)
{
    int64_t count = 1;
    for (int a = 0; a < view->rank; a++)
        count *= view->shape[a];
    return count;
}

static position position_of(const tarn_view *view, int64_t element)
{
    position p = {{0}};
    for (int a = view->rank - 1; a >= 0; a--) {
        p.at[a] = element % view->shape[a];
        element /= view->shape[a];
    }
    return p;
}

static long double element_at(const tarn_view *view, const position *p)
{
    int64_t offset = 0;
    for (int a = 0; a < view->rank; a++)
        offset += p->at[a] * view->strides[a];
    const char *here = (const char *)view->data + offset * (int64_t)tarn_dtype_size(view->dtype);
    switch (view->dtype) {
#define LOAD(DTYPE, name)                                                                          \
    case TARN_##DTYPE: {                                                                           \
        name##_s value;                                                                            \
        memcpy(&value, here, sizeof value);                                                        \
        return (long double)name##_load(value);                                                    \
    }
        LOAD(F64, f64)
        LOAD(F32, f32)
        LOAD(F16, f16)
        LOAD(BF16, bf16)
        LOAD(I8, i8)
        LOAD(U8, u8)
        LOAD(I16, i16)
        LOAD(U16, u16)
        LOAD(I32, i32)
        LOAD(U32, u32)
        LOAD(I64, i64)
        LOAD(U64, u64)
#undef LOAD
    default:
        return NAN;
    }
}

/* ---- Windows ------------------------------------------------------------------------------- */

/* Cells first, first + step, ... of one axis; those outside [0,size) are padding. */
typedef struct {
    int64_t first, step, count;
} taps;

static taps taps_of(const bench_case *c, int axis, int64_t o)
{
    const tarn_pool *pool = &c->pool;
    int64_t size = c->view[TARN_X].shape[c->view[TARN_X].rank - pool->spatial + axis];
    if (pool->window == TARN_GLOBAL)
        return (taps){0, 1, size};
    if (pool->window == TARN_ADAPTIVE) {
        int64_t begin = tarn_adaptive_start(o, size, pool->out[axis]);
        return (taps){begin, 1, tarn_adaptive_end(o, size, pool->out[axis]) - begin};
    }
    return (taps){o * pool->stride[axis] - pool->pad_lo[axis], pool->dilation[axis],
                  pool->kernel[axis]};
}

static bool taps_include(const taps *t, int64_t cell)
{
    int64_t distance = cell - t->first;
    return distance >= 0 && distance % t->step == 0 && distance / t->step < t->count;
}

/* Moves to the next point of a box, the last axis fastest; false after the last point. */
static bool advance(int64_t *at, const int64_t *count, int axes)
{
    for (int a = axes - 1; a >= 0; a--) {
        if (++at[a] < count[a])
            return true;
        at[a] = 0;
    }
    return false;
}

/* What all passes need to know of a window. */
typedef struct {
    position winner; /* of the first extreme tap */
    long double extreme, sum, tangents, weights, weighted_tangents;
    int64_t real,
        counted; /* taps: inside x; inside x and padding, which ends where the axis does */
} summary;

static void add_real_tap(const bench_case *c, const position *p, summary *s)
{
    long double value = element_at(&c->view[TARN_X], p);
    long double tangent = element_at(&c->view[TARN_DX], p);
    bool wins = c->pool.op == TARN_MIN ? value < s->extreme : value > s->extreme;
    if (s->real++ == 0 || wins) {
        s->extreme = value;
        s->winner = *p;
    }
    s->sum += value;
    s->tangents += tangent;
    if (c->pool.op == TARN_SMOOTH) {
        long double weight = expl(c->pool.beta * value);
        s->weights += weight;
        s->weighted_tangents += weight * tangent;
    }
}

/* A window of the plane of `lead`; o is its spatial output position. */
static summary summarise(const bench_case *c, const position *lead, const int64_t *o)
{
    const tarn_view *x = &c->view[TARN_X];
    int spatial = c->pool.spatial, first = x->rank - spatial;
    summary s = {.real = 0};
    taps t[TARN_MAX_SPATIAL];
    int64_t at[TARN_MAX_SPATIAL] = {0}, count[TARN_MAX_SPATIAL];
    for (int a = 0; a < spatial; a++) {
        t[a] = taps_of(c, a, o[a]);
        count[a] = t[a].count;
    }
    do {
        position p = *lead;
        bool real = true, counted = true;
        for (int a = 0; a < spatial; a++) {
            int64_t cell = p.at[first + a] = t[a].first + at[a] * t[a].step;
            real = real && cell >= 0 && cell < x->shape[first + a];
            counted = counted && cell < x->shape[first + a] + c->pool.pad_hi[a];
        }
        s.counted += counted;
        if (real)
            add_real_tap(c, &p, &s);
        else if (c->pool.count_include_pad)
            s.weights += 1; /* exp(beta * 0) */
    } while (advance(at, count, spatial));
    return s;
}

static long double divisor_of(const bench_case *c, const summary *s)
{
    if (c->pool.divisor > 0)
        return (long double)c->pool.divisor;
    return (long double)(c->pool.count_include_pad ? s->counted : s->real);
}

/* ---- Passes -------------------------------------------------------------------------------- */

static long double value_of(const bench_case *c, const summary *s)
{
    switch (c->pool.op) {
    case TARN_AVG: {
        long double mean = s->sum / divisor_of(c, s);
        return c->view[TARN_X].dtype <= TARN_BF16 ? mean : rintl(mean);
    }
    case TARN_SMOOTH:
        return logl(s->weights) / c->pool.beta;
    default:
        return s->extreme;
    }
}

static long double tangent_of(const bench_case *c, const summary *s)
{
    switch (c->pool.op) {
    case TARN_AVG:
        return s->tangents / divisor_of(c, s);
    case TARN_SMOOTH:
        return s->weighted_tangents / s->weights;
    default:
        return element_at(&c->view[TARN_DX], &s->winner);
    }
}

/* What a unit in the cotangent of a window adds to the cell. */
static long double share_of(const bench_case *c, const summary *s, const position *cell)
{
    switch (c->pool.op) {
    case TARN_AVG:
        return 1 / divisor_of(c, s);
    case TARN_SMOOTH:
        return expl(c->pool.beta * element_at(&c->view[TARN_X], cell)) / s->weights;
    default:
        return memcmp(&s->winner, cell, sizeof *cell) == 0;
    }
}

static const int64_t *spatial_part(const bench_case *c, const position *p)
{
    return p->at + c->view[TARN_X].rank - c->pool.spatial;
}

static bool window_reads(const bench_case *c, const position *window, const position *cell)
{
    for (int a = 0; a < c->pool.spatial; a++) {
        taps t = taps_of(c, a, spatial_part(c, window)[a]);
        if (!taps_include(&t, spatial_part(c, cell)[a]))
            return false;
    }
    return true;
}

/* The first of `out` windows of an axis that reads a cell, and how many do, one after the other. */
static taps windows_of(const bench_case *c, int axis, int64_t cell, int64_t out)
{
    taps windows = {0, 1, 0};
    for (int64_t o = 0; o < out; o++) {
        taps t = taps_of(c, axis, o);
        if (cell < t.first || cell > t.first + (t.count - 1) * t.step)
            continue;
        windows.first = windows.count ? windows.first : o;
        windows.count = o + 1 - windows.first;
    }
    return windows;
}

static long double cotangent(const bench_case *c, const position *cell)
{
    const tarn_view *gy = &c->view[TARN_GY];
    int spatial = c->pool.spatial, first = c->view[TARN_X].rank - spatial;
    int64_t at[TARN_MAX_SPATIAL] = {0}, count[TARN_MAX_SPATIAL];
    taps windows[TARN_MAX_SPATIAL];
    long double sum = 0;
    for (int a = 0; a < spatial; a++) {
        int64_t out = c->pool.window == TARN_GLOBAL ? 1 : gy->shape[first + a];
        windows[a] = windows_of(c, a, cell->at[first + a], out);
        if ((count[a] = windows[a].count) == 0)
            return 0;
    }
    do {
        position window = *cell;
        for (int a = 0; a < spatial; a++)
            window.at[first + a] = windows[a].first + at[a];
        if (!window_reads(c, &window, cell))
            continue;
        summary s = summarise(c, cell, window.at + first);
        sum += share_of(c, &s, cell) * element_at(gy, &window);
    } while (advance(at, count, spatial));
    return sum;
}

double bench_reference(const bench_case *c, tarn_pass pass, int64_t element)
{
    position p = position_of(&c->view[bench_result(pass)], element);
    if (bench_result(pass) == TARN_GX)
        return (double)cotangent(c, &p);
    summary s = summarise(c, &p, spatial_part(c, &p));
    return (double)(pass == TARN_JVP ? tangent_of(c, &s) : value_of(c, &s));
}

/* ---- Probes -------------------------------------------------------------------------------- */

static double taps_per_element(const bench_case *c, tarn_pass pass)
{
    const tarn_view *x = &c->view[TARN_X], *y = &c->view[TARN_Y];
    double taps_per_window = 1;
    for (int a = 0; a < c->pool.spatial; a++)
        taps_per_window *= (double)taps_of(c, a, 0).count;
    double windows_per_cell =
        taps_per_window * (double)count_elements(y) / (double)count_elements(x);
    return taps_per_window * (bench_result(pass) == TARN_GX ? 1 + windows_per_cell : 1);
}

int64_t bench_probes(const bench_case *c, tarn_pass pass)
{
    const double most_taps = 4e5, fewest = 4, most = 250; /* a tap takes some 40 ns */
    double affordable = most_taps / taps_per_element(c, pass);
    double probes = affordable < fewest ? fewest : affordable > most ? most : affordable;
    int64_t elements = count_elements(&c->view[bench_result(pass)]);
    return (int64_t)probes < elements ? (int64_t)probes : elements;
}

int64_t bench_probe(const bench_case *c, tarn_pass pass, int64_t k)
{
    int64_t elements = count_elements(&c->view[bench_result(pass)]), probes = bench_probes(c, pass);
    return probes > 1 ? (int64_t)((double)(elements - 1) * (double)k / (double)(probes - 1)) : 0;
}

double bench_error(const bench_case *c, tarn_pass pass, bool threaded)
{
    const tarn_view *result = &c->view[bench_result(pass)];
    memset(result->data, 0xff, c->bytes[bench_result(pass)]); /* an older result must not pass */
    bench_run(c, pass, threaded, 1);
    double error = 0, greatest = 0;
    for (int64_t k = 0; k < bench_probes(c, pass); k++) {
        int64_t element = bench_probe(c, pass, k);
        position p = position_of(result, element);
        double expected = bench_reference(c, pass, element);
        double difference = fabs((double)element_at(result, &p) - expected);
        error = difference > error || difference != difference ? difference : error;
        greatest = fmax(greatest, fabs(expected));
    }
    return greatest > 0 ? error / greatest : error;
}
