/* tarn for a web page: one problem at a time, its tensors and what its windows read.
 *
 * The page writes a problem string into text(), calls open_problem(), fills tensors and runs
 * passes. Tensors lie here as the plan wants them, and are dense for the page: it counts elements
 * in row-major order, whatever the layout. Numbers that the page shows come out of here, none is
 * computed by it.
 */
#include "plan.h"
#include "scalar.h"
#include "tarn.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(#name)))

enum {
    TEXT = 4096,
    TENSORS = TARN_OPERANDS + 2,
    ONE_HOT = TARN_OPERANDS, /* a cotangent of one window alone */
    SHARES,                  /* and what it gives to each cell */
    FACTS = 32 + 3 * TARN_MAX_RANK,
    SPAN =
        6, /* numbers of an axis: entries, first and last that exist, coordinate, step, counted */
};

static char words[TEXT];
static tarn_pool pool;
static tarn_view views[TENSORS];
static tarn_plan *plan;
static void *dense[TENSORS], *laid_out[TENSORS];
static double *wide;
static double facts[FACTS], spans[TARN_MAX_SPATIAL][SPAN];

EXPORT(text) char *text(void)
{
    return words;
}

static int64_t count_of(const tarn_view *view)
{
    int64_t count = 1;
    for (int a = 0; a < view->rank; a++)
        count *= view->shape[a];
    return count;
}

static void close_problem(void)
{
    tarn_plan_destroy(plan);
    plan = NULL;
    for (int k = 0; k < TENSORS; k++) {
        free(dense[k]);
        free(laid_out[k]);
        dense[k] = laid_out[k] = NULL;
    }
    free(wide);
    wide = NULL;
}

/* The numbers of a problem string, for the page's controls: valid also where no plan is. */
static void tell_problem(const tarn_view *x)
{
    double *at = facts;
    const double head[] = {pool.op,
                           pool.window,
                           pool.spatial,
                           x->dtype,
                           x->rank,
                           pool.ceil_mode,
                           pool.flat,
                           pool.count_include_pad,
                           (double)pool.divisor,
                           pool.beta,
                           pool.power,
                           pool.ties};
    memset(facts, 0, sizeof facts);
    memcpy(at, head, sizeof head);
    at += 16;
    for (int a = 0; a < x->rank && a < TARN_MAX_RANK; a++)
        at[a] = (double)x->shape[a];
    at += TARN_MAX_RANK;
    for (int a = 0; a < pool.spatial && a < TARN_MAX_SPATIAL; a++) {
        const int64_t row[] = {pool.kernel[a], pool.stride[a],   pool.pad_lo[a],
                               pool.pad_hi[a], pool.dilation[a], pool.out[a]};
        for (int k = 0; k < 6; k++)
            at[a * 6 + k] = (double)row[k];
    }
}

/* Taps that all windows have together, by which the page judges how long a pass takes. */
static void tell_output(void)
{
    double *at = facts + 16 + 2 * TARN_MAX_RANK, work = (double)count_of(&views[TARN_Y]);
    for (int a = 0; a < plan->problem.spatial; a++)
        work *= (double)plan->problem.axis[a].kernel;
    facts[12] = views[TARN_Y].rank;
    facts[13] = work;
    facts[14] = views[TARN_X].strides[views[TARN_X].rank - 1] != 1;
    for (int a = 0; a < views[TARN_Y].rank; a++)
        at[a] = (double)views[TARN_Y].shape[a];
}

static tarn_status refuse(tarn_status status, const char *sentence)
{
    close_problem();
    if (sentence != words)
        snprintf(words, sizeof words, "%s", sentence);
    return status;
}

static bool too_large(const tarn_view *view, const char *name, double limit)
{
    double cells = 1;
    for (int a = 0; a < view->rank; a++)
        cells *= (double)view->shape[a];
    if (cells > limit)
        snprintf(words, sizeof words,
                 "%s would have %.0f cells; this page takes up to %.0f (the program tarn has no "
                 "such limit)",
                 name, cells, limit);
    return cells > limit;
}

/* Plans the problem in text(). On success text() is the problem as tarn writes it, otherwise the
 * sentence that says what is wrong. -1 for text that does not parse: then facts() are old. */
/* What the page has neither controls nor sentences for. */
static bool is_beyond_page(void)
{
    bool beyond = pool.op == TARN_MODE || pool.skip != TARN_SKIP_NOTHING;
    for (int a = 0; a < pool.spatial; a++)
        beyond |= pool.whole[a] != 0;
    return beyond;
}

EXPORT(open_problem) int open_problem(double limit)
{
    tarn_error error;
    tarn_view x;
    close_problem();
    words[TEXT - 1] = 0;
    if (tarn_problem_parse(words, &pool, &x, &error))
        return refuse(TARN_BAD_TEXT, error.message), -1;
    if (is_beyond_page())
        return refuse(TARN_UNSUPPORTED, "this page shows no modes, skipped taps or pieces"), -1;
    tell_problem(&x);
    if (tarn_plan_create(&plan, &pool, &x, NULL, &error))
        return (int)refuse(error.code, error.message);
    for (int k = 0; k < TARN_OPERANDS; k++)
        tarn_plan_layout(plan, (tarn_operand)k, &views[k], NULL);
    views[ONE_HOT] = views[TARN_GY];
    views[SHARES] = views[TARN_GX];
    if (too_large(&views[TARN_X], "the input", limit) ||
        too_large(&views[TARN_Y], "the output", limit))
        return (int)refuse(TARN_BAD_SHAPE, words);
    if (count_of(&views[TARN_Y]) == 0)
        return (int)refuse(TARN_BAD_SHAPE, "an empty tensor: there is nothing to show");
    tell_output();
    tarn_problem_format(&pool, &x, words, sizeof words);
    return TARN_OK;
}

EXPORT(facts) double *facts_of_problem(void)
{
    return facts;
}

static size_t size_of(int k)
{
    return tarn_dtype_size(views[k].dtype);
}

/* Elements of tensor k, dense, row-major; zero until written. NULL where there is no memory. */
EXPORT(tensor) void *tensor(int k)
{
    if (!dense[k])
        dense[k] = calloc((size_t)count_of(&views[k]) + 1, size_of(k));
    return dense[k];
}

EXPORT(elements) int32_t elements(int k)
{
    return (int32_t)count_of(&views[k]);
}

/* ---- Layouts -------------------------------------------------------------------------------- */

static bool is_dense(const tarn_view *view)
{
    int64_t step = 1;
    for (int a = view->rank - 1; a >= 0; a--) {
        if (view->shape[a] > 1 && view->strides[a] != step)
            return false;
        step *= view->shape[a];
    }
    return true;
}

/* Where the plan has tensor k: `dense` itself, or memory in the plan's order. */
static char *in_layout(int k)
{
    if (is_dense(&views[k]))
        return tensor(k);
    if (!laid_out[k])
        laid_out[k] = calloc(1, tarn_view_bytes(&views[k]) + 1);
    return laid_out[k];
}

static void copy(int k, bool to_plan)
{
    const tarn_view *view = &views[k];
    char *there = in_layout(k), *here = tensor(k);
    size_t size = size_of(k);
    if (there == here || !there || !here)
        return;
    int64_t at[TARN_MAX_RANK] = {0}, offset = 0;
    for (int64_t n = count_of(view), i = 0; i < n; i++) {
        memcpy(to_plan ? there + offset * (int64_t)size : here + i * (int64_t)size,
               to_plan ? here + i * (int64_t)size : there + offset * (int64_t)size, size);
        for (int a = view->rank - 1; a >= 0; a--) {
            offset += view->strides[a];
            if (++at[a] < view->shape[a])
                break;
            offset -= at[a] * view->strides[a];
            at[a] = 0;
        }
    }
}

static char *given(int k)
{
    copy(k, true);
    return in_layout(k);
}

static tarn_status taken(tarn_status status, int k)
{
    if (status == TARN_OK)
        copy(k, false);
    return status;
}

/* ---- Passes --------------------------------------------------------------------------------- */

/* A pass of the plan: y; y and indices; dy; gx. text() tells what is wrong if it fails. */
EXPORT(run) int run(int pass)
{
    tarn_error error;
    tarn_status status = TARN_BAD_ARGUMENT;
    if (!plan)
        return status;
    if (pass == TARN_FORWARD)
        status = taken(tarn_forward(plan, given(TARN_X), in_layout(TARN_Y), NULL, &error), TARN_Y);
    else if (pass == TARN_FORWARD_INDICES)
        status = taken(tarn_forward_indices(plan, given(TARN_X), NULL,
                                            (int64_t *)(void *)in_layout(TARN_INDICES), &error),
                       TARN_INDICES);
    else if (pass == TARN_JVP)
        status =
            taken(tarn_jvp(plan, given(TARN_X), given(TARN_DX), NULL, in_layout(TARN_DY), &error),
                  TARN_DY);
    else if (pass == TARN_VJP)
        status =
            taken(tarn_vjp(plan, given(TARN_X), NULL, given(TARN_GY), in_layout(TARN_GX), &error),
                  TARN_GX);
    if (status)
        refuse(status, error.message);
    return (int)status;
}

/* The VJP of window o alone, by a cotangent of 1, or by its own: tensor SHARES is what it gives. */
EXPORT(shares) int shares(int o, int own)
{
    if (!plan || tarn_dtype_size(views[TARN_X].dtype) == 0)
        return TARN_BAD_ARGUMENT;
    char *hot = tensor(ONE_HOT);
    size_t size = size_of(ONE_HOT);
    memset(hot, 0, (size_t)count_of(&views[ONE_HOT]) * size);
    if (own)
        memcpy(hot + (size_t)o * size, (char *)tensor(TARN_GY) + (size_t)o * size, size);
    else
        switch (views[TARN_X].dtype) {
        case TARN_F64:
            ((double *)(void *)hot)[o] = 1;
            break;
        case TARN_F32:
            ((float *)(void *)hot)[o] = 1;
            break;
        case TARN_F16:
            ((uint16_t *)(void *)hot)[o] = f16_narrow(1);
            break;
        default:
            ((uint16_t *)(void *)hot)[o] = bf16_narrow(1);
        }
    return (int)taken(tarn_vjp(plan, given(TARN_X), NULL, given(ONE_HOT), in_layout(SHARES), NULL),
                      SHARES);
}

/* ---- Windows -------------------------------------------------------------------------------- */

static double *tell_span(int a, tarn_span span, int64_t counted)
{
    const int64_t row[SPAN] = {span.n, span.lo, span.hi, span.first, span.step, counted};
    for (int k = 0; k < SPAN; k++)
        spans[a][k] = (double)row[k];
    return spans[0];
}

/* The taps of the window with coordinate o on axis a; those inside the padded extent are
 * counted. */
EXPORT(taps) double *taps(int a, int o)
{
    const tarn_axis *axis = &plan->problem.axis[a];
    return tell_span(a, window_taps(axis, o), padded_taps(axis, o));
}

/* The windows that read coordinate i of axis a. */
EXPORT(readers) double *readers(int a, int i)
{
    tarn_span span = cell_windows(&plan->problem.axis[a], i);
    return tell_span(a, span, 0);
}

/* The divisor of the window whose flat index among those of a plane is o [A2]. */
EXPORT(divisor) double divisor(int o)
{
    int64_t at[TARN_MAX_SPATIAL];
    for (int a = plan->problem.spatial - 1; a >= 0; a--) {
        at[a] = o % plan->problem.axis[a].out;
        o /= (int)plan->problem.axis[a].out;
    }
    return (double)window_divisor(&plan->problem, at);
}

/* Windows on an axis [W2, W3]; -1 if there are none. */
EXPORT(output_size)
double output_size(double size, double kernel, double stride, double dilation, double lo, double hi,
                   int ceil_mode)
{
    int64_t out;
    return tarn_output_size((int64_t)size, (int64_t)kernel, (int64_t)stride, (int64_t)dilation,
                            (int64_t)lo, (int64_t)hi, ceil_mode, &out, NULL)
               ? -1
               : (double)out;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static double widened(const char *at, tarn_dtype dtype)
{
    switch (dtype) {
#define WIDEN(DTYPE, type, expression)                                                             \
    case DTYPE: {                                                                                  \
        type v;                                                                                    \
        memcpy(&v, at, sizeof v);                                                                  \
        return expression;                                                                         \
    }
        WIDEN(TARN_F64, double, v)
        WIDEN(TARN_F32, float, (double)v)
        WIDEN(TARN_F16, uint16_t, f16_widen(v))
        WIDEN(TARN_BF16, uint16_t, bf16_widen(v))
        WIDEN(TARN_I8, int8_t, v)
        WIDEN(TARN_U8, uint8_t, v)
        WIDEN(TARN_I16, int16_t, v)
        WIDEN(TARN_U16, uint16_t, v)
        WIDEN(TARN_I32, int32_t, v)
        WIDEN(TARN_U32, uint32_t, v)
        WIDEN(TARN_I64, int64_t, (double)v)
        WIDEN(TARN_U64, uint64_t, (double)v)
#undef WIDEN
    default:
        return 0;
    }
}

/* Tensor k as binary64: exact, but for 64-bit integers, which the page reads from tensor(). */
EXPORT(doubles) double *doubles(int k)
{
    int64_t n = count_of(&views[k]);
    const char *at = tensor(k);
    free(wide);
    wide = malloc((size_t)n * sizeof *wide);
    for (int64_t i = 0; at && wide && i < n; i++)
        wide[i] = widened(at + (size_t)i * size_of(k), views[k].dtype);
    return wide;
}

/* Whole numbers: to nearest even, the greatest or least beyond the range, NaN as 0, as the program
 * has it. 2^52 + v has no room for a fraction: adding and taking it away rounds to nearest even. */
static double whole(double v, double least, double greatest)
{
    const double room = 0x1p52;
    if (v != v)
        return 0;
    v = v < least ? least : v > greatest ? greatest : v;
    if (v >= room || v <= -room)
        return v;
    volatile double sum = v < 0 ? v - room : v + room;
    return v < 0 ? sum + room : sum - room;
}

/* Element i of tensor k becomes v, rounded once. */
EXPORT(put) void put(int k, int i, double v)
{
    char *at = (char *)tensor(k) + (size_t)i * size_of(k);
    switch (views[k].dtype) {
#define PUT(DTYPE, type, expression)                                                               \
    case DTYPE: {                                                                                  \
        type stored = (type)(expression);                                                          \
        memcpy(at, &stored, sizeof stored);                                                        \
        break;                                                                                     \
    }
        PUT(TARN_F64, double, f64_narrow(v))
        PUT(TARN_F32, float, f32_narrow(v))
        PUT(TARN_F16, uint16_t, f16_narrow(v))
        PUT(TARN_BF16, uint16_t, bf16_narrow(v))
        PUT(TARN_I8, int8_t, whole(v, -128, 127))
        PUT(TARN_U8, uint8_t, whole(v, 0, 255))
        PUT(TARN_I16, int16_t, whole(v, -32768, 32767))
        PUT(TARN_U16, uint16_t, whole(v, 0, 65535))
        PUT(TARN_I32, int32_t, whole(v, -0x1p31, 0x1p31 - 1))
        PUT(TARN_U32, uint32_t, whole(v, 0, 0x1p32 - 1))
        /* 2^63 and 2^64 are no numbers of these types, and the greatest are no doubles */
        PUT(TARN_I64, int64_t, v >= 0x1p63 ? INT64_MAX : (int64_t)whole(v, -0x1p63, 0x1p62 * 2))
        PUT(TARN_U64, uint64_t, v >= 0x1p64 ? UINT64_MAX : (uint64_t)whole(v, 0, 0x1p63 * 2))
#undef PUT
    default:
        break;
    }
}

/* v as the type has it: how many digits tell it from its neighbours is then a matter of trying. */
EXPORT(rounded) double rounded(int dtype, double v)
{
    switch (dtype) {
    case TARN_F32:
        return f32_narrow(v);
    case TARN_F16:
        return f16_widen(f16_narrow(v));
    case TARN_BF16:
        return bf16_widen(bf16_narrow(v));
    default:
        return v;
    }
}

/* Whether cells i and j of x have the same rank: both NaN, or equal [M6]. */
EXPORT(same_rank) int same_rank(int i, int j)
{
    size_t size = size_of(TARN_X);
    const char *a = (char *)tensor(TARN_X) + (size_t)i * size;
    const char *b = (char *)tensor(TARN_X) + (size_t)j * size;
    double u = widened(a, views[TARN_X].dtype), v = widened(b, views[TARN_X].dtype);
    if (views[TARN_X].dtype >= TARN_I8)
        return memcmp(a, b, size) == 0;
    return u == v || (u != u && v != v);
}

EXPORT(version) const char *version(void)
{
    return tarn_version();
}
