/* Every kernel of the table against the specification, by memcmp: small geometries exhaustively,
 * larger ones at random, over dtypes, passes, tie rules, layouts, special values and ways to split
 * the work, between guard pages; and the stack that they take. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "plan.h"
#include "scalar.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#ifndef PTHREAD_STACK_MIN
#define PTHREAD_STACK_MIN 16384 /* Windows has none */
#endif

#ifdef TARN_SHORT_TESTS
enum { THOROUGH = 0 };
#else
enum { THOROUGH = 1 };
#endif

enum { ARENA_BYTES = 1 << 25, SLACK = 64, POISON = 0xa5 };

static guarded arenas[2][OPERANDS]; /* of the specification's run, and of the kernel's */
static rng random_state;

/* A kernel may take 64 KiB of stack, counted from the frame that calls it down to the last byte it
 * wrote. A thread has PTHREAD_STACK_MIN beside that, for what the C library puts there itself. */
enum { STACK_BYTES = 64 << 10, LARGE_STACK = 4 * STACK_BYTES, PAINT = 0x5c };
static guarded stack; /* while the stack is measured, instead of results */
static int64_t deepest_stack;

/* ---- Values -------------------------------------------------------------------------------- */

typedef enum {
    PLAIN,
    FEW,
    SPECIAL,
    EQUAL,
    WILD,
    ZEROS,
    LOWEST,
    HIGHEST,
    LONE_NAN,
    LONE_ZERO,
    AROUND_ZERO,
    HOLES,
    PATTERNS
} pattern;
static const char *const pattern_names[] = {"plain",    "few",     "special",  "equal",
                                            "wild",     "zeros",   "lowest",   "highest",
                                            "lone NaN", "lone -0", "around 0", "holes"};

static double special_value(rng *r)
{
    static const double values[] = {NAN,     INFINITY, -INFINITY, 0.0,     -0.0,     1.0,
                                    -1.0,    0x1p-149, -0x1p-149, 0x1p-24, 0x1p-133, 0x1p-1074,
                                    65504.0, 3.4e38,   -3.4e38,   2.0,     0.5};
    return values[rng_next(r) % (sizeof values / sizeof values[0])];
}

static double float_value(rng *r, pattern kind)
{
    switch (kind) {
    case LOWEST: /* nearly all are as what pads a maximum, or a minimum */
    case HIGHEST:
        return rng_next(r) % 64 == 0 ? rng_unit(r) : kind == LOWEST ? -INFINITY : INFINITY;
    case FEW:
        return (double)rng_range(r, -2, 2) * (rng_next(r) & 1 ? 1.0 : -1.0);
    case SPECIAL:
        return rng_next(r) % 4 ? rng_unit(r) - 0.5 : special_value(r);
    case EQUAL:
        return -3.5;
    case ZEROS: /* of both signs, nearly all negative: sums of them are +0 */
        return rng_next(r) % 8 ? -0.0 : 0.0;
    case LONE_ZERO: /* seldom -0 among +0: who takes +0 for all zeros is mostly right */
        return rng_next(r) % 64 ? 0.0 : -0.0;
    case AROUND_ZERO: /* also where zeros of both signs are the greatest, or the least */
        return (double)rng_range(r, -1, 1) * (rng_next(r) & 1 ? 1.0 : -1.0);
    case HOLES: /* half of the numbers are missing */
        return rng_next(r) & 1 ? (double)NAN : (double)rng_range(r, -2, 2);
    case WILD:
        return ldexp(rng_unit(r) - 0.5, (int)rng_range(r, -140, 120));
    default:
        return 4 * rng_unit(r) - 2;
    }
}

static void put_float(tarn_dtype dtype, char *at, double value)
{
    float single = (float)value;
    uint16_t half = dtype == TARN_F16 ? f16_narrow(value) : bf16_narrow(value);
    if (dtype == TARN_F64)
        memcpy(at, &value, 8);
    else if (dtype == TARN_F32)
        memcpy(at, &single, 4);
    else
        memcpy(at, &half, 2);
}

/* Plain integers of 64 bits lose `shift` of them: their sums fit a double, or do not. */
static void put_value(tarn_dtype dtype, char *at, rng *r, pattern kind, int shift)
{
    if (dtype <= TARN_BF16) {
        put_float(dtype, at, float_value(r, kind));
        if (kind == SPECIAL && rng_next(r) % 16 == 0) { /* NaN with a payload, or any bits */
            uint64_t bits = rng_next(r) | UINT64_C(0x7ff07ff07f807c01);
            memcpy(at, &bits, tarn_dtype_size(dtype));
        }
        return;
    }
    uint64_t bits = kind == FEW     ? (uint64_t)rng_range(r, -2, 2)
                    : kind == EQUAL ? dtype == TARN_U8 ? UINT8_MAX : UINT64_C(0x8080808080808080)
                                    : rng_next(r);
    if (kind == SPECIAL && rng_next(r) % 2)
        memset(&bits, rng_next(r) % 2 ? 0xff : 0, sizeof bits);
    if ((kind == LOWEST || kind == HIGHEST) && rng_next(r) % 64) /* of unsigned integers */
        memset(&bits, kind == LOWEST ? 0 : 0xff, sizeof bits);
    if (kind == PLAIN && dtype == TARN_U64)
        bits >>= shift;
    if (kind == PLAIN && dtype == TARN_I64)
        bits = (uint64_t)((int64_t)bits >> shift);
    memcpy(at, &bits, tarn_dtype_size(dtype));
}

/* ---- Layouts ------------------------------------------------------------------------------- */

typedef enum { DENSE, LAST, GAPS, REVERSED, PERMUTED, BROADCAST, CROPPED, LAYOUTS } layout;
static const char *const layout_names[] = {"dense",    "last", "gaps",   "reversed",
                                           "permuted", "zero", "cropped"};

static void dense_in_order(tarn_view *view, const int *order, int64_t gap)
{
    int64_t stride = gap;
    for (int k = view->rank - 1; k >= 0; k--) {
        view->strides[order[k]] = stride;
        stride *= view->shape[order[k]] > 0 ? view->shape[order[k]] : 1;
        stride += gap > 1;
    }
}

static void lay_out(tarn_view *view, layout kind, int spatial, bool input, rng *r)
{
    int order[TARN_MAX_RANK];
    for (int a = 0; a < view->rank; a++)
        order[a] = a;
    if (kind == LAST && view->rank > spatial) {
        int64_t shape[TARN_MAX_RANK];
        memcpy(shape, view->shape, sizeof shape);
        if (rng_next(r) % 4 == 0) /* some channels of more */
            shape[view->rank - spatial - 1] += 3;
        tarn_view all = tarn_view_channels_last(NULL, view->dtype, view->rank, spatial, shape);
        memcpy(view->strides, all.strides, sizeof all.strides);
        for (int a = view->rank - spatial; a < view->rank; a++)
            if (rng_next(r) % 4 == 0)
                view->strides[a] = -view->strides[a];
        return;
    }
    if (kind == PERMUTED)
        for (int a = view->rank - 1; a > 0; a--) {
            int other = (int)rng_range(r, 0, a), keep = order[a];
            order[a] = order[other];
            order[other] = keep;
        }
    dense_in_order(view, order, kind == GAPS ? 3 : 1);
    int64_t step =
        view->rank > 0 ? view->shape[view->rank - 1] + 3 : 0; /* rows of a longer tensor */
    for (int a = view->rank - 2; kind == CROPPED && a >= 0; a--, step *= view->shape[a + 1])
        view->strides[a] = step;
    for (int a = 0; a < view->rank; a++)
        if (kind == REVERSED && rng_next(r) % 2)
            view->strides[a] = -view->strides[a];
    if (kind == BROADCAST && input && view->rank > 0)
        view->strides[rng_range(r, 0, view->rank - 1)] = 0;
    for (int a = 0; a < view->rank; a++) /* where nothing follows, a stride may be any number */
        if (view->shape[a] == 1 && kind != DENSE && rng_next(r) % 4 == 0)
            view->strides[a] = rng_next(r) % 2 ? INT64_MAX : -INT64_MAX;
}

/* ---- One case ------------------------------------------------------------------------------ */

/* Saved winners that no forward pass leaves [M7]. */
typedef enum {
    TRUE_WINNERS,
    SOME_BYTES, /* a quarter of the bytes of true winners is any byte */
    FEW_TAPS,   /* few winners are another number: nearly as good as true */
    ANY_BYTES,  /* every byte is */
    ANY_TAPS,   /* taps of their windows, in the padding or not */
    REAL_TAPS,  /* taps inside, in no order along a row */
    CROWDED,    /* of these, cells that many windows share */
    PADDED,     /* taps that some axis has in the padding, or beyond an adaptive window */
    ONE_TAP,    /* the same number for all windows */
    LIMITS,     /* the first and last numbers that are a tap, that are none, that fit */
    MISSING,    /* true ones, half of which are not there: all bits set */
    PATCHED,    /* another kind for every few windows, true ones among them */
    FALSEHOODS
} falsehood;
static const char *const falsehood_names[] = {"true",     "some bytes", "few taps", "any bytes",
                                              "any taps", "real taps",  "crowded",  "padded",
                                              "one tap",  "limits",     "missing",  "patched"};

typedef struct {
    tarn_pool pool;
    tarn_view x;
    layout in_layout, out_layout;
    pattern values;
    uint64_t seed;
    bool only_saved;   /* of all passes the gradient from saved winners alone */
    falsehood winners; /* that it starts with; the seed decides if they are said to be true */
} test_case;

static const char *describe(const test_case *c)
{
    static char text[600];
    int length = tarn_problem_format(&c->pool, &c->x, text, sizeof text);
    if (length >= 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length,
                 " [%s to %s, %s, winners %s, seed %llu]", layout_names[c->in_layout],
                 layout_names[c->out_layout], pattern_names[c->values], falsehood_names[c->winners],
                 (unsigned long long)c->seed);
    return text;
}

static const int pass_operands[TARN_PASSES][5] = {
    [TARN_FORWARD] = {TARN_X, TARN_Y, -1},
    [TARN_FORWARD_SAVED] = {TARN_X, TARN_Y, OPERAND_SAVED, -1},
    [TARN_FORWARD_INDICES] = {TARN_X, TARN_Y, TARN_INDICES, -1},
    [TARN_JVP] = {TARN_X, TARN_DX, TARN_Y, TARN_DY, -1},
    [TARN_VJP] = {TARN_X, TARN_GY, TARN_GX, -1},
    [TARN_VJP_SAVED] = {OPERAND_SAVED, TARN_GY, TARN_GX, -1},
};

static bool pass_writes(tarn_pass pass, int operand)
{
    if (operand == OPERAND_SAVED)
        return pass == TARN_FORWARD_SAVED;
    return operand == TARN_Y || operand == TARN_DY || operand == TARN_GX || operand == TARN_INDICES;
}

static size_t extent_bytes(const tarn_plan *plan, int operand)
{
    if (operand == OPERAND_SAVED)
        return tarn_plan_saved_bytes(plan);
    return (size_t)(plan->extent[operand].hi - plan->extent[operand].lo);
}

/* The tensors of a pass, in guarded memory. */
typedef struct {
    tarn_tensors tensors;
    char *whole[OPERANDS]; /* with poison in the slack before or behind them */
    size_t size[OPERANDS];
} operands;

static void place(const tarn_plan *plan, int operand, int run, bool at_end, operands *o)
{
    size_t bytes = extent_bytes(plan, operand);
    o->size[operand] = bytes + SLACK;
    o->whole[operand] = guarded_place(&arenas[run][operand], bytes + SLACK, at_end);
    memset(o->whole[operand], POISON, bytes + SLACK);
    /* Stores past the caches need aligned addresses: these are so from the beginning, soon, or
     * never. */
    static const size_t elements_before[] = {0, 1, 2, 4};
    size_t element = (size_t)plan->problem.element_bytes[operand];
    size_t shift =
        plan->problem.cache_bytes == 0 ? element * elements_before[bytes / element % 4] : 0;
    char *first = o->whole[operand] + (at_end ? SLACK : shift);
    o->tensors.base[operand] = operand == OPERAND_SAVED ? first : first - plan->extent[operand].lo;
}

static operands place_all(const tarn_plan *plan, tarn_pass pass, int run, bool at_end)
{
    operands o = {.size = {0}};
    for (const int *k = pass_operands[pass]; *k >= 0; k++)
        place(plan, *k, run, at_end, &o);
    return o;
}

/* One NaN, with a payload, at some place; often it is on the border. */
static void put_lone_nan(const tarn_view *view, char *base, rng *r)
{
    int64_t offset = 0;
    for (int a = 0; a < view->rank; a++) {
        int64_t place[] = {0, view->shape[a] - 1, rng_range(r, 0, view->shape[a] - 1)};
        offset += place[rng_next(r) % 3] * view->strides[a];
    }
    uint64_t bits = rng_next(r) | UINT64_C(0x7ff07ff07f807c01);
    memcpy(base + offset * (int64_t)tarn_dtype_size(view->dtype), &bits,
           tarn_dtype_size(view->dtype));
}

static void fill(const tarn_plan *plan, int operand, char *base, pattern kind, rng *r)
{
    const tarn_view *view = &plan->view[operand];
    int64_t at[TARN_MAX_RANK] = {0};
    const int shift = view->dtype >= TARN_I64 ? (int)rng_range(r, 0, 40) : 0;
    for (int a = 0; a < view->rank; a++)
        if (view->shape[a] == 0)
            return;
    for (int a = 0; a >= 0;) {
        int64_t offset = 0;
        for (int k = 0; k < view->rank; k++)
            offset += at[k] * view->strides[k];
        put_value(view->dtype, base + offset * (int64_t)tarn_dtype_size(view->dtype), r, kind,
                  shift);
        for (a = view->rank - 1; a >= 0 && ++at[a] >= view->shape[a]; a--)
            at[a] = 0;
    }
    if (kind == LONE_NAN && view->dtype <= TARN_BF16)
        put_lone_nan(view, base, r);
}

/* Runs part `only` of `parts`, or all of them if it is ALL_PARTS. */
enum { ALL_PARTS = -1 };

static void run_kernel(const tarn_plan *plan, const tarn_kernel_row *row, tarn_pass pass,
                       const tarn_tensors *tensors, int parts, int only)
{
    const tarn_axis *first = &plan->problem.axis[0];
    bool backward = pass == TARN_VJP || pass == TARN_VJP_SAVED;
    int64_t units = plan->problem.planes * (backward ? first->size : first->out);
    for (int part = 0; part < parts; part++)
        if (only == ALL_PARTS || only == part)
            row->run(&plan->problem, tensors, muldiv_floor(units, part, parts),
                     muldiv_floor(units, part + 1, parts));
}

/* The winners that a VJP from saved ones starts with: the specification's. */
static void save_winners(const test_case *c, const tarn_plan *plan, bool at_end, operands *o,
                         rng *r)
{
    place(plan, TARN_X, 0, at_end, o);
    fill(plan, TARN_X, o->tensors.base[TARN_X], c->values, r);
    tarn_tensors forward = {
        .base = {
            [TARN_X] = o->tensors.base[TARN_X], [OPERAND_SAVED] = o->tensors.base[OPERAND_SAVED]}};
    const tarn_kernel_row *spec =
        tarn_choose_kernel(&plan->problem, TARN_FORWARD_SAVED, TARN_ISA_SPEC);
    run_kernel(plan, spec, TARN_FORWARD_SAVED, &forward, 1, ALL_PARTS);
    o->tensors.base[TARN_X] = NULL;
}

/* A number of a tap of the window whose winner lies at `at`. Saved winners are packed, so its
 * coordinates are quotients. */
static int64_t draw_tap(const tarn_problem *p, int64_t at, falsehood kind, rng *r)
{
    int64_t tap = 0;
    int odd_axis = (int)rng_range(r, 0, p->spatial - 1);
    for (int a = 0; a < p->spatial; a++) {
        int64_t step = p->stride[OPERAND_SAVED][a], kernel = p->axis[a].kernel;
        tarn_span taps = window_taps(&p->axis[a], step > 0 ? at / step % p->axis[a].out : 0);
        int64_t j = rng_range(r, 0, kernel - 1);
        if (taps.lo < taps.hi && (kind == REAL_TAPS || kind == CROWDED))
            j = rng_range(r, taps.lo, taps.hi - 1);
        for (int n = 0; n < 4 && kind == CROWDED && span_at(&taps, j) % 4 && j + 1 < taps.hi; n++)
            j++;
        if (kind == PADDED && a == odd_axis && taps.hi < kernel &&
            (taps.lo == 0 || rng_next(r) % 2))
            j = rng_range(r, taps.hi, kernel - 1);
        else if (kind == PADDED && a == odd_axis && taps.lo > 0)
            j = rng_range(r, 0, taps.lo - 1);
        tap = tap * kernel + j;
    }
    return tap;
}

static int64_t all_taps(const tarn_problem *p)
{
    int64_t taps = 1;
    for (int a = 0; a < p->spatial; a++)
        taps *= p->axis[a].kernel;
    return taps;
}

static int64_t limit_of_taps(const tarn_problem *p, rng *r)
{
    int64_t taps = all_taps(p), inner = p->axis[p->spatial - 1].kernel;
    const int64_t limits[] = {0,         taps - 1, taps,         taps + 1,  -1,        -2,
                              127,       128,      254,          INT32_MAX, INT32_MIN, INT64_MAX,
                              inner - 1, inner,    taps - inner, INT64_MIN};
    return limits[rng_next(r) % (sizeof limits / sizeof limits[0])];
}

static int64_t any_number(const tarn_problem *p, rng *r)
{
    int64_t taps = all_taps(p);
    return rng_range(r, -1, taps > INT64_MAX / 2 ? taps : taps + taps / 4);
}

/* Of one to three winners, the last a row's first or last one, which no other restrains. */
static void corrupt_few(const tarn_problem *p, char *saved, int64_t winners, rng *r)
{
    int inner = p->spatial - 1;
    int64_t step = p->stride[OPERAND_SAVED][inner], out = p->axis[inner].out;
    for (int64_t n = winners > 0 ? max_i64(rng_range(r, -2, 3), 1) : 0; n > 0; n--) {
        int64_t at = rng_range(r, 0, winners - 1), end = rng_next(r) % 2 ? out - 1 : 0;
        if (n == 1 && step > 0)
            at += (end - at / step % out) * step;
        store_winner(p, saved, at, any_number(p, r));
    }
}

static void corrupt_one(const tarn_problem *p, char *saved, int64_t at, falsehood kind, rng *r)
{
    int64_t bytes = p->element_bytes[OPERAND_SAVED];
    bool some = kind == SOME_BYTES;
    if (kind == ANY_BYTES || some)
        for (int64_t k = at * bytes; k < (at + 1) * bytes; k++)
            saved[k] = some && rng_next(r) % 4 ? saved[k] : (char)rng_next(r);
    else if (kind == LIMITS)
        store_winner(p, saved, at, limit_of_taps(p, r));
    else if (kind >= ANY_TAPS && kind <= PADDED)
        store_winner(p, saved, at, draw_tap(p, at, kind, r));
    else if (kind == MISSING && rng_next(r) % 2)
        store_winner(p, saved, at, NO_WINNER);
}

static void corrupt_winners(const tarn_plan *plan, char *saved, falsehood kind, rng *r)
{
    const tarn_problem *p = &plan->problem;
    int64_t winners = (int64_t)tarn_plan_saved_bytes(plan) / p->element_bytes[OPERAND_SAVED];
    int64_t one = any_number(p, r), patch = rng_range(r, 1, 70);
    falsehood now = kind;
    if (kind == FEW_TAPS)
        corrupt_few(p, saved, winners, r);
    for (int64_t at = 0; at < winners; at++) {
        if (kind == PATCHED && at % patch == 0) {
            now = (falsehood)rng_range(r, TRUE_WINNERS, MISSING);
            one = any_number(p, r);
        }
        if (now == ONE_TAP)
            store_winner(p, saved, at, one);
        else
            corrupt_one(p, saved, at, now, r);
    }
}

static void fill_inputs(const test_case *c, const tarn_plan *plan, tarn_pass pass, operands *o)
{
    rng r = {c->seed};
    for (const int *k = pass_operands[pass]; *k >= 0; k++)
        if (!pass_writes(pass, *k) && *k != OPERAND_SAVED)
            fill(plan, *k, o->tensors.base[*k], c->values, &r);
    if (pass != TARN_VJP_SAVED)
        return;
    if (stack.begin) { /* where the specification would take too long */
        memset(o->tensors.base[OPERAND_SAVED], 0, extent_bytes(plan, OPERAND_SAVED));
        return;
    }
    save_winners(c, plan, c->seed % 2, o, &r);
    falsehood kind = c->winners;
    if (!kind && c->seed % 4 == 0)
        kind = (falsehood)(c->seed / 8 % FALSEHOODS);
    corrupt_winners(plan, o->tensors.base[OPERAND_SAVED], kind, &r);
}

/* Runs a row on the same inputs; leaves its tensors, and what surrounds them, for comparison. */
static operands run_row(const test_case *c, const tarn_plan *plan, const tarn_kernel_row *row,
                        tarn_pass pass, const operands *inputs, int parts, int only)
{
    operands o = place_all(plan, pass, 1, c->seed % 2);
    if (!inputs->tensors.base[TARN_Y])
        o.tensors.base[TARN_Y] = NULL;
    for (const int *k = pass_operands[pass]; *k >= 0; k++)
        if (!pass_writes(pass, *k))
            memcpy(o.whole[*k], inputs->whole[*k], o.size[*k]);
    run_kernel(plan, row, pass, &o.tensors, parts, only);
    return o;
}

static void compare_row(const test_case *c, const tarn_plan *plan, const tarn_kernel_row *row,
                        tarn_pass pass, const operands *expected)
{
    int parts = (int)(c->seed / 2 % 5) + 1;
    operands actual = run_row(c, plan, row, pass, expected, parts, ALL_PARTS);
    for (const int *k = pass_operands[pass]; *k >= 0; k++)
        CHECK(memcmp(expected->whole[*k], actual.whole[*k], actual.size[*k]) == 0,
              "%s: %s of %s in %d parts", row->name, tarn_operand_name(*k), describe(c), parts);
}

/* That no two parts write the same byte: each is run alone, on poisoned memory. */
static void compare_parts(const test_case *c, const tarn_plan *plan, const tarn_kernel_row *row,
                          tarn_pass pass, const operands *inputs, int parts)
{
    enum { MOST_BYTES = 1 << 14 };
    static unsigned char writers[OPERANDS][MOST_BYTES];
    bool apart = true;
    memset(writers, 0, sizeof writers);
    for (int part = 0; part < parts; part++) {
        operands o = run_row(c, plan, row, pass, inputs, parts, part);
        for (const int *k = pass_operands[pass]; *k >= 0; k++)
            for (size_t byte = 0; pass_writes(pass, *k) && byte < o.size[*k] && byte < MOST_BYTES;
                 byte++)
                if ((unsigned char)o.whole[*k][byte] != POISON)
                    apart &= ++writers[*k][byte] == 1;
    }
    CHECK(apart, "%s: parts overlap: %s in %d parts", row->name, describe(c), parts);
}

/* ---- Stack --------------------------------------------------------------------------------- */

typedef struct {
    const tarn_plan *plan;
    const tarn_kernel_row *row;
    tarn_pass pass;
    const tarn_tensors *tensors;
    int64_t bytes;
} measurement;

static void *run_in_thread(void *argument)
{
    measurement *m = argument;
    run_kernel(m->plan, m->row, m->pass, m->tensors, 1, ALL_PARTS);
    return NULL;
}

/* Counts from this frame down to the last byte that was written. */
static void *measure_in_thread(void *argument)
{
    enum { CALL = 128 }; /* bytes that memset() may take */
    measurement *m = argument;
    char *here = __builtin_frame_address(0), *byte = stack.begin;
    memset(stack.begin, PAINT, (size_t)(here - CALL - stack.begin));
    run_in_thread(m);
    while (byte < here && *byte == PAINT)
        byte++;
    m->bytes = here - byte;
    return NULL;
}

/* How much a kernel takes is measured on a large stack; those that took most so far run again, on
 * one that has no more than a kernel may take. */
static void measure_stack(const test_case *c, const tarn_plan *plan, const tarn_kernel_row *row,
                          tarn_pass pass, const operands *o)
{
    measurement m = {plan, row, pass, &o->tensors, 0};
    pthread_t thread;
    pthread_attr_t large, small;
    pthread_attr_init(&large);
    pthread_attr_init(&small);
    bool runs = !pthread_attr_setstack(&large, stack.begin, stack.capacity) &&
                !pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN + STACK_BYTES) &&
                !pthread_create(&thread, &large, measure_in_thread, &m) &&
                !pthread_join(thread, NULL);
    CHECK(runs, "no thread for %s", describe(c));
    CHECK(m.bytes <= STACK_BYTES, "%s: %lld bytes of stack: %s", row->name, (long long)m.bytes,
          describe(c));
    bool deepest = m.bytes >= deepest_stack;
    deepest_stack = max_i64(deepest_stack, m.bytes);
    if (deepest && m.bytes <= STACK_BYTES)
        CHECK(!pthread_create(&thread, &small, run_in_thread, &m) && !pthread_join(thread, NULL),
              "no thread");
    pthread_attr_destroy(&large);
    pthread_attr_destroy(&small);
}

/* ---- All passes of a case ------------------------------------------------------------------ */

/* Steps of the specification from tap to tap; `each_cell`: it folds for each cell all windows that
 * read it, as it does for gradients, except of averages. */
static double spec_steps(const tarn_problem *p, bool each_cell)
{
    double steps = (double)(p->planes * p->lanes) *
                   (p->op >= TARN_SMOOTH ? 8 : 1); /* exponentials, powers, pairs of taps */
    for (int a = 0; a < p->spatial; a++) {
        double taps = (double)min_i64(p->axis[a].kernel, p->axis[a].size);
        double windows = (double)min_i64(p->axis[a].kernel, p->axis[a].out);
        steps *= taps * (each_cell ? (double)p->axis[a].size * windows : (double)p->axis[a].out);
    }
    return steps;
}

static bool is_affordable(double steps)
{
    return steps < (THOROUGH ? 2e6 : 2e5);
}

/* Whether a gradient from x is that from the winners which forward saves [M7]. */
static bool has_winners(const tarn_problem *p)
{
    return p->op <= TARN_MIN && p->ties == TARN_TIES_FIRST;
}

/* Whether the specification, or a kernel whose stack is measured, can afford a pass. Cases with
 * fewer cells do the same to all kernels. */
static bool can_afford(const tarn_problem *p, tarn_pass pass)
{
    bool each_cell = pass == TARN_VJP && !is_linear(p);
    return is_affordable(spec_steps(p, each_cell)) ||
           (each_cell && has_winners(p) && !stack.begin && is_affordable(spec_steps(p, false)));
}

static void run_one_spec(const tarn_plan *plan, tarn_pass pass, const tarn_tensors *t)
{
    run_kernel(plan, tarn_choose_kernel(&plan->problem, pass, TARN_ISA_SPEC), pass, t, 1,
               ALL_PARTS);
}

/* What the specification says. A gradient from x that it cannot afford is that from the winners
 * which it saves. */
static void run_spec(const tarn_plan *plan, tarn_pass pass, operands *o)
{
    if (pass != TARN_VJP || !has_winners(&plan->problem) ||
        is_affordable(spec_steps(&plan->problem, true))) {
        run_one_spec(plan, pass, &o->tensors);
        return;
    }
    operands saved = {.size = {0}};
    place(plan, OPERAND_SAVED, 0, false, &saved);
    tarn_tensors t = o->tensors;
    t.base[OPERAND_SAVED] = saved.tensors.base[OPERAND_SAVED];
    t.base[TARN_GY] = t.base[TARN_GX] = NULL;
    run_one_spec(plan, TARN_FORWARD_SAVED, &t);
    t.base[TARN_GY] = o->tensors.base[TARN_GY];
    t.base[TARN_GX] = o->tensors.base[TARN_GX];
    run_one_spec(plan, TARN_VJP_SAVED, &t);
}

/* Every row of the table that takes the problem and can run here, but for the specification. */
static void run_pass(const test_case *c, const tarn_plan *plan, tarn_pass pass)
{
    const uint32_t families = tarn_isa_available() & ~(uint32_t)TARN_ISA_SPEC;
    operands expected = place_all(plan, pass, 0, c->seed % 2);
    if (pass == TARN_JVP && c->seed % 3 == 0) /* tangents alone */
        expected.tensors.base[TARN_Y] = NULL;
    fill_inputs(c, plan, pass, &expected);
    if (!stack.begin)
        run_spec(plan, pass, &expected);
    for (int k = 0; k < tarn_kernel_row_count; k++) {
        const tarn_kernel_row *row = &tarn_kernel_rows[k];
        if (!(row->isa & families) || !row->accepts(&plan->problem, pass))
            continue;
        if (stack.begin) {
            measure_stack(c, plan, row, pass, &expected);
            continue;
        }
        compare_row(c, plan, row, pass, &expected);
        if (c->seed % 8 == 0)
            compare_parts(c, plan, row, pass, &expected, 3);
    }
}

/* The bytes of a winner, if only gradients from these are asked for and they were affordable. */
static int run_case(const test_case *c)
{
    tarn_plan plan;
    tarn_error error;
    tarn_view views[TARN_OPERANDS];
    tarn_options options = tarn_options_default();
    rng r = {c->seed ^ 0x5bd1e995};
    options.isa = TARN_ISA_SPEC;
    tarn_status status = tarn_plan_init(&plan, &c->pool, &c->x, &options, &error);
    CHECK(status == TARN_OK, "%s: %s", describe(c), error.message);
    if (status)
        return 0;
    for (int k = 0; k < TARN_OPERANDS; k++) {
        bool input = k == TARN_X || k == TARN_DX || k == TARN_GY;
        views[k] = plan.view[k];
        lay_out(&views[k], input ? c->in_layout : c->out_layout, c->pool.spatial, input, &r);
        options.layout[k] = &views[k];
    }
    status = tarn_plan_init(&plan, &c->pool, &views[TARN_X], &options, &error);
    CHECK(status == TARN_OK, "%s: %s", describe(c), error.message);
    if (status)
        return 0;
    if (rng_next(&r) % 4 == 0)
        plan.problem.cache_bytes = 0; /* results go past the caches, as large ones do */
    int saved = 0;
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (plan.kernel[pass] && can_afford(&plan.problem, (tarn_pass)pass) &&
            (!c->only_saved || pass == TARN_VJP_SAVED)) {
            run_pass(c, &plan, (tarn_pass)pass);
            saved = pass == TARN_VJP_SAVED ? (int)plan.problem.element_bytes[OPERAND_SAVED] : 0;
        }
    return saved;
}

/* ---- Sweeps -------------------------------------------------------------------------------- */

/* The case with every operator, divisor and tie rule that its dtype allows; in any layout, or in
 * the one it has. */
static void run_each_operator(test_case c, bool any_layout)
{
    static const double betas[] = {1, -1, 4, 0.1, -30, 1000, 1e-3, -0.5};
    static const double powers[] = {1, 2, 3, 1, 2, 1.5, 1e3, 1.0009765625, 7.3, 0x1p60};
    bool floating = c.x.dtype <= TARN_BF16;
    for (int op = 0; op < TARN_OPS; op++) {
        int variants = op == TARN_AVG      ? 3
                       : op == TARN_MODE   ? 1
                       : op >= TARN_SMOOTH ? 2
                       : floating          ? 3
                                           : 1;
        if ((op >= TARN_SMOOTH && floating == (op == TARN_MODE)) ||
            (c.pool.skip && (op == TARN_SMOOTH || op == TARN_LP)))
            continue;
        for (int variant = 0; variant < variants; variant++) {
            c.pool.op = (tarn_op)op;
            c.pool.ties = op <= TARN_MIN ? (tarn_ties)variant : TARN_TIES_FIRST;
            c.pool.count_include_pad = variant != 1;
            c.pool.divisor = op == TARN_AVG && variant == 2 ? rng_range(&random_state, 1, 9) : 0;
            c.pool.beta = betas[rng_next(&random_state) % 8];
            c.pool.power = powers[rng_next(&random_state) % 10];
            c.seed = rng_next(&random_state);
            c.values = (pattern)(rng_next(&random_state) % PATTERNS);
            if (any_layout) {
                c.in_layout = (layout)(rng_next(&random_state) % LAYOUTS);
                c.out_layout = (layout)(rng_next(&random_state) % BROADCAST);
                if (rng_next(&random_state) % 3 == 0)
                    c.in_layout = c.out_layout = rng_next(&random_state) % 2 ? DENSE : LAST;
            }
            run_case(&c);
        }
    }
}

static void run_operators(test_case c)
{
    run_each_operator(c, true);
}

static test_case shaped_case(tarn_window window, tarn_dtype dtype, int leading, int spatial,
                             const int64_t *shape)
{
    test_case c = {.pool = tarn_max_pool(spatial),
                   .x = tarn_view_dense(NULL, dtype, leading + spatial, shape)};
    c.pool.window = window;
    return c;
}

static bool window_fits(int64_t size, int64_t kernel, int64_t dilation, int64_t lo, int64_t hi)
{
    return size + lo + hi >= dilation * (kernel - 1) + 1;
}

/* Every geometry of one axis, in every dtype. */
static void sweep_1d(void)
{
    long long geometries = 0;
    for (int64_t size = 1; size <= 6; size++)
        for (int64_t kernel = 1; kernel <= 4; kernel++)
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int64_t dilation = 1; dilation <= 2; dilation++)
                    for (int64_t pads = 0; pads < 9; pads++)
                        for (int ceil = 0; ceil < 2; ceil++) {
                            int64_t lo = pads / 3, hi = pads % 3;
                            if (!window_fits(size, kernel, dilation, lo, hi))
                                continue;
                            geometries++;
                            if (!THOROUGH && geometries % 16)
                                continue;
                            int64_t shape[2] = {rng_range(&random_state, 1, 3), size};
                            for (int dtype = 0; dtype < TARN_DTYPES; dtype++) {
                                test_case c =
                                    shaped_case(TARN_SLIDING, (tarn_dtype)dtype, 1, 1, shape);
                                c.pool.kernel[0] = kernel;
                                c.pool.stride[0] = stride;
                                c.pool.dilation[0] = dilation;
                                c.pool.pad_lo[0] = lo;
                                c.pool.pad_hi[0] = hi;
                                c.pool.ceil_mode = ceil;
                                run_operators(c);
                            }
                        }
    printf("1-D: %lld geometries\n", geometries);
}

/* A random sliding window that fits the shape. */
static void random_window(test_case *c, int64_t most_kernel)
{
    int leading = c->x.rank - c->pool.spatial;
    c->pool.ceil_mode = rng_next(&random_state) % 2;
    for (int a = 0; a < c->pool.spatial; a++) {
        int64_t size = c->x.shape[leading + a];
        do {
            c->pool.kernel[a] = rng_range(&random_state, 1, most_kernel);
            c->pool.stride[a] = rng_range(&random_state, 1, rng_next(&random_state) % 3 ? 2 : 5);
            c->pool.dilation[a] = rng_next(&random_state) % 3 ? 1 : rng_range(&random_state, 2, 3);
            c->pool.pad_lo[a] = rng_next(&random_state) % 2 ? 0 : rng_range(&random_state, 0, 3);
            c->pool.pad_hi[a] = rng_next(&random_state) % 2 ? 0 : rng_range(&random_state, 0, 3);
        } while (!window_fits(size, c->pool.kernel[a], c->pool.dilation[a], c->pool.pad_lo[a],
                              c->pool.pad_hi[a]));
    }
}

static void random_rule(test_case *c, int64_t most_kernel, int64_t most_out)
{
    c->pool.window =
        (tarn_window)(rng_next(&random_state) % 8 < 6 ? 0 : rng_range(&random_state, 1, 2));
    c->pool.flat = rng_next(&random_state) % 2;
    if (c->pool.window == TARN_SLIDING)
        random_window(c, most_kernel);
    for (int a = 0; a < c->pool.spatial; a++)
        c->pool.out[a] = rng_range(&random_state, 1, most_out);
}

static void sweep_random(const char *name, int cases, int spatial_lo, int spatial_hi,
                         int64_t most_size, int64_t most_kernel, int64_t most_channels)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        int64_t shape[TARN_MAX_RANK];
        int spatial = (int)rng_range(&random_state, spatial_lo, spatial_hi);
        int leading = (int)rng_range(&random_state, 0, 2);
        for (int a = 0; a < leading + spatial; a++)
            shape[a] = a < leading
                           ? rng_range(&random_state, 1, a == leading - 1 ? most_channels : 2)
                           : rng_range(&random_state, 1, most_size);
        tarn_dtype dtype = (tarn_dtype)(rng_next(&random_state) % TARN_DTYPES);
        test_case c = shaped_case(TARN_SLIDING, dtype, leading, spatial, shape);
        random_rule(&c, most_kernel, most_size + 3);
        run_operators(c);
    }
    printf("%s: %d cases\n", name, cases);
}

/* Single problems that random ones would not meet: rows longer than any buffer, windows wider than
 * any buffer, many lanes, huge padding, strides and dilations. */
static void sweep_named(void)
{
    static const char *const problems[] = {
        "max k3s1p1 d1 f32 1x1500",
        "max k3s2 d1 f32 2x3x1300",
        "avg k5s1p2 d1 f32 1x700",
        "max k3s9p2 f32 2x5x5",
        "max k5s9p4 u8 2x6x70",
        "avg k3s9p1 f32 2x4x4",
        "max k3,3s7,1p1 f32 1x40x70",
        "max k2s1e64 f32 1x70x80", /* the windows of a cell are far apart, on one axis, or both */
        "max k1,2s1e1,64 f32 1x3x3000",
        "max k3s1p1e40,1 f64 7x90x9 last",
        "max k3s1p1 f32 1x3x40x60 last", /* of few channels, cells ask */
        "max k2,5s3,1 f16 2x15x30x50 last",
        "max k64,6s1p63,5 f64 1x9x100",
        "avg global f32 1x257x3x2 last",
        "avg a3 f64 1x65x9x9 last",
        "avg global f32 1x9x3x2 last",
        "max k17s1p8 u8 20x40",
        "min k16s1 i8 19x40",
        "avg k2s2 u8 2x6x75",
        "avg k2s2 i8 2x6x150",
        "avg k2s2 d3 u8 1x4x4x70",
        "avg k2s2 d3 i8 1x4x4x140",
        "avg k2s2 d3 f32 2x4x4x70",
        "max k2s2 d3 f32 2x4x4x37",
        "min k2s2 d3 f64 1x2x6x21",
        "max k700s100 d1 f32 1x1500",
        "avg k700s100p20 d1 f32 1x1500",
        "avg k300s60p20 d1 f32 2x1500",
        "max k15s1p7 f32 9x20",
        "avg k15s1p7 f32 9x20",
        "avg k13s1p6 f16 14x18",
        "avg k4,5s1p1,2 f64 191x300", /* blocks of rows, and of columns */
        "max k9s1p4 bf16 2x9x17",
        "avg global f32 1x2x40x25",
        "max global f32 1x2x40x25",
        "avg global d1 f32 2x1100",
        "max global d1 i16 3x1200",
        "avg global u8 1x600x3",
        "avg a7,7 f32 3x37x41",
        "max a7,7 f32 3x37x41",
        "avg a300 d1 f32 2x7",
        "max a600 d1 f32 2x7",
        "avg a3,900 f32 5x2",
        "max k2s2 f32 1x600x4x6 last",
        "avg k3s2p1 f32 1x600x5x6 last",
        "max k3s1p1 u8 1x1100x4x5 last",
        "max k3s2p1 f32 1x37x7x8 last",
        "avg k2,2,2s2 f32 2x4x6x8",
        "max k2,3,2s1 f32 2x4x6x8",
        "max k3s300 d1 f32 1x900",
        "max k2s1p9000000000:0e9000000000 d1 f32 1x9", /* steps of indices beyond 32 bits */
        "avg k3s2e200 d1 f32 1x900",
        "avg k1000s1p999 d1 f32 1x4",
        "max k1000000000s1000000001p999999999 d1 f32 1x9",
        "avg k4000000000s4000000000p4000000000 d1 f32 1x3",
        "avg k2000000000s2000000000p2000000000 f32 2x3x4",
        "avg k7s7 f32 33x7x7",
        "max k7s7 f32 33x7x7",
        "avg k16s16 f32 1x32x48",
        "avg k2s2 u8 3x40x40",
        "avg k2s2 i64 3x10x10",
        "max d1 k1024s256 f32 1x2x3000 last", /* few channels, many taps: folded in halves */
        "min d1 k333s100 f64 1x3x2000 last",
        "max a2,2 f32 1x2x60x75 last",
        "max a2,3 bf16 1x4x50x170 last",
        "max k40,37s30 i16 1x3x90x130 last",
        "min k3,2,7s4,1,7p0,1,0e1,1,3 i8 1x11x4x29x23 last", /* one window, and nearly the axis */
        "avg k3s2p1 i32 3x10x10",
        "avg global f32 17x16x15",
        "avg global f32 1x3x270",
        "avg global f64 1x140x3",
        "max global f32 9x7x7",
        "max global f32 1x270x2x2 last",
        "max global f32 1x1100x2x2 last",
        "avg global f32 1x270x3x2 last",
        "max a3,5 f32 1x70x9x11 last",
        "avg a3,5 f32 1x70x5x7 last",
        "max a3 f32 2x50x50",
        "max a3,4 f32 1x20x50x50 last",
        "max a140,3 f32 2x150x5",
        "avg a140,3 f32 2x150x5",
        "max a20,60 f32 2x23x128",
        "max a2,3 f32 19x3x5",
        "max a3,5 f64 1x37x9x11 last",
        "max a3,5 bf16 1x37x9x11 last",
        "avg global f32 40x1x2",
        "avg global f32 19x8x9",
        "avg global f32 19x9x8",
        "avg global f32 35x8x8",
        "avg global f32 1x2100x2x2 last",
        "max global f32 20x1x3",
        "max global f32 19x2x4",
        "max global f32 19x3x3",
        "max global f16 35x7x7",
        "avg a9,7 f32 2x5x4",
        "max a9,7 f32 2x5x4",
        "lp k2s2 f32 1x600x4x6 last",
        "max k64s1 u8 70x80",
        "max k1,1s9,64 u8 12x1000",
        "avg a3 f32 5x5",
        "avg a3,5 f64 7x9x8",
        "avg a3 bf16 2x5x5",
        "max k31s1p15 f32 3x40",
        "avg k31s1p15 f32 3x90",
        "avg k17,9s1 f64 19x40",
        "avg k31s1p15 f32 1x3x3x34 last",
        "max k31,5s1,2p15,2 f32 1x5x4x21 last",
        "max k9,21s1p4,10 f64 4x30",
        "max k21,3s1p10,1 f32 4x100",
        "max k5s1p2 f32 40x24",
        "max k3s1p1 f32 3x20x20",
        "max k3s2p1 f32 2x70x150",
        "max k3s1 f32 2x12x400",
        "max k5s1p2 bf16 2x20x20",
        "avg k3s1p1 f32 2x35x35",
        "max k2s2 f32 2x9x33",
        "avg k2s2 f16 2x8x70",
        "max k2,2,2s2 bf16 2x5x6x35",
        "avg k1,3,2s1,4,2 f32 3x7x35",
        "max k3s2 d1 f32 2x5000",
        "max k2s2 f32 1x17x8x9 last",
        "avg k3s3p1 f32 1x33x10x11 last",
        "max k2,2,2s2 f32 1x33x7x9x10 last",
        "avg k2,2,2s2 f32 1x18x6x8x9 last",
        "max k3,3,3s2p1 f32 1x20x5x6x7 last",
        "max k3s1p1 f32 1x40x26x26 last",
        "max k7s2p3 f32 1x11x20x24 last",
        "max k5,3s1p2,1 f32 90x280",
        "max k3,5s1p1,2 f32 3x1025",
        "max k3,5s1p1,2 f32 3x2048",
        "max k3,5s1p1,2 f64 3x2049",
        "max k17s1p8 f32 3x20x40",
        "max k5s1p2 f32 1x21x40x30 last",
        "min k17,16s1p8 f64 1x17x18x20 last",
    };
    for (size_t k = 0; k < sizeof problems / sizeof problems[0]; k++) {
        test_case c = {.seed = 0};
        tarn_error error;
        tarn_status status = tarn_problem_parse(problems[k], &c.pool, &c.x, &error);
        CHECK(status == TARN_OK, "%s: %s", problems[k], error.message);
        if (!status)
            run_operators(c);
    }
}

/* Single planes of few windows inside them, every combination of tap and window numbers that
 * small.inc takes. */
static void sweep_small(void)
{
    int cases = 0;
    for (int64_t rows = 1; rows <= 5; rows++)
        for (int64_t columns = 1; columns <= 5; columns++)
            for (int64_t windows = 0; windows < 9; windows++) {
                int64_t kernel[2] = {rows, columns}, shape[2];
                test_case c = {.pool = tarn_max_pool(2)};
                for (int a = 0; a < 2; a++) {
                    int64_t out = 1 + (a ? windows % 3 : windows / 3);
                    c.pool.kernel[a] = kernel[a];
                    c.pool.stride[a] =
                        rng_next(&random_state) % 2 ? kernel[a] : rng_range(&random_state, 1, 6);
                    shape[a] =
                        kernel[a] + (out - 1) * c.pool.stride[a] + rng_range(&random_state, 0, 2);
                }
                if (cases++ % 4 && !THOROUGH)
                    continue;
                c.x = tarn_view_dense(NULL, rng_next(&random_state) % 2 ? TARN_F32 : TARN_F64, 2,
                                      shape);
                run_operators(c);
                c.values = AROUND_ZERO;
                for (int again = 0; rows == 2 && columns == 2 && again < 60; again++) {
                    c.pool.op = again % 2 ? TARN_MIN : TARN_MAX;
                    c.seed = rng_next(&random_state);
                    run_case(&c);
                }
            }
    printf("small: %d cases\n", cases);
}

/* A window on axis a, with any padding; more of it where the window would not fit. */
static void set_axis(test_case *c, int a, int64_t kernel, int64_t stride, int64_t dilation)
{
    int64_t size = c->x.shape[c->x.rank - c->pool.spatial + a], *lo = &c->pool.pad_lo[a],
            *hi = &c->pool.pad_hi[a];
    c->pool.kernel[a] = kernel;
    c->pool.stride[a] = stride;
    c->pool.dilation[a] = dilation;
    *lo = rng_next(&random_state) % 2 ? 0 : rng_range(&random_state, 0, kernel - 1);
    *hi = rng_next(&random_state) % 2 ? 0 : rng_range(&random_state, 0, kernel - 1);
    if (!window_fits(size, kernel, dilation, *lo, *hi))
        *lo = dilation * (kernel - 1);
}

/* What is neither shape nor window; dense tensors or channels last, now and then rows of a longer
 * tensor. */
static void set_details(test_case *c, bool last)
{
    c->pool.ceil_mode = rng_next(&random_state) % 2;
    c->pool.count_include_pad = rng_next(&random_state) % 2;
    c->pool.divisor = rng_next(&random_state) % 4 ? 0 : rng_range(&random_state, 1, 99);
    c->seed = rng_next(&random_state);
    c->values = (pattern)(rng_next(&random_state) % PATTERNS);
    c->in_layout = last ? LAST : rng_next(&random_state) % 8 ? DENSE : CROPPED;
    c->out_layout = last ? LAST : rng_next(&random_state) % 8 ? DENSE : CROPPED;
}

/* Max, min and avg. */
static void run_three(test_case c)
{
    for (int op = TARN_MAX; op <= TARN_AVG; op++) {
        c.pool.op = (tarn_op)op;
        c.pool.divisor = op == TARN_AVG ? c.pool.divisor : 0;
        run_case(&c);
    }
}

/* Windows of few taps, with every stride, on lines, planes and volumes: rows from one element to
 * three of the longest vectors and one, channels from few to several vectors, and now and then a
 * plane that no buffer holds. */
static void sweep_near(int cases)
{
    static const int64_t kernels[] = {1, 2, 2, 3, 3, 3, 4, 5};
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        bool large = n % 16 == 0, last = n % 4 == 1, many = n % 32 == 5;
        int spatial = n % 8 == 6 ? 1 : n % 8 == 7 ? 3 : 2;
        int64_t kernel = kernels[rng_next(&random_state) % 8],
                strides[] = {kernel, 1, 2, rng_range(&random_state, 1, 6)};
        int64_t stride = strides[rng_next(&random_state) % 4], shape[4];
        shape[0] =
            many ? rng_range(&random_state, 500, 1200) : rng_range(&random_state, 1, last ? 70 : 3);
        for (int a = 1; a <= spatial; a++)
            shape[a] = rng_range(&random_state, 1,
                                 large                  ? 60
                                 : spatial == 3 || many ? 5
                                 : last                 ? 9
                                                        : 12);
        if (!many)
            shape[spatial] = rng_range(&random_state, 1,
                                       large   ? 600
                                       : last  ? 20
                                       : n % 2 ? 40
                                               : 194);
        test_case c = shaped_case(TARN_SLIDING, (tarn_dtype)(rng_next(&random_state) % TARN_DTYPES),
                                  1, spatial, shape);
        for (int a = 0; a < spatial; a++)
            set_axis(&c, a, kernel, stride, n % 5 ? 1 : rng_range(&random_state, 2, 3));
        set_details(&c, last);
        run_three(c);
    }
    printf("near: %d cases\n", cases);
}

/* Gradients: windows that meet and that do not, from winners that are true, nearly true and
 * corrupt; rows and planes of every count around the lengths of vectors. */
static void sweep_gradients(int cases)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        bool last = n % 2, wide = n % 8 < 2;
        int64_t shape[3] = {
            rng_range(&random_state, 1, last ? 41 : 4), rng_range(&random_state, 1, wide ? 5 : 20),
            wide ? rng_range(&random_state, 60, 140) : rng_range(&random_state, 1, last ? 20 : 50)};
        test_case c = shaped_case(
            TARN_SLIDING, (tarn_dtype)(n % 3 ? TARN_F32 : rng_range(&random_state, 0, TARN_BF16)),
            1, 2, shape);
        int64_t most = n % 16 == 5 ? 31 : 7;
        for (int a = 0; a < 2; a++)
            set_axis(&c, a, rng_range(&random_state, 1, most),
                     n % 3 ? rng_range(&random_state, 1, 2) : rng_range(&random_state, 1, 5), 1);
        set_details(&c, last);
        c.only_saved = n % 8 != 3;
        if (rng_next(&random_state) % 3 == 0) /* nearly true, see fill_inputs() */
            c.seed = c.seed / 8 * 8 + 4;
        for (int op = TARN_MAX; op <= TARN_MIN; op++) {
            c.pool.op = (tarn_op)op;
            c.pool.divisor = 0;
            run_case(&c);
        }
        c.pool.op = TARN_AVG;
        c.only_saved = false;
        run_case(&c);
    }
    for (
        int n = 0; n < 80;
        n++) { /* winners outside the plane, where rows of windows are longer than those of cells */
        int64_t shape[3] = {1, rng_range(&random_state, 4, 16), rng_range(&random_state, 16, 24)};
        test_case c = shaped_case(TARN_SLIDING, TARN_F32, 1, 2, shape);
        for (int a = 0; a < 2; a++) {
            c.pool.kernel[a] = 5;
            c.pool.pad_lo[a] = c.pool.pad_hi[a] = 4;
        }
        c.only_saved = true;
        c.winners = FEW_TAPS;
        c.seed = rng_next(&random_state);
        c.values = EQUAL;
        run_case(&c);
    }
    printf("gradients: %d cases\n", cases);
}

/* Windows of so many taps that their numbers take `bytes`, if a byte is not enough: long ones over
 * much padding. Few windows, which begin anywhere in it. */
static void set_long_axis(test_case *c, int a, int bytes)
{
    static const int64_t kernels[2][4] = {{260, 17, 7, 4}, {INT64_C(1) << 33, 70000, 1700, 300}};
    int64_t size = c->x.shape[c->x.rank - c->pool.spatial + a],
            least = kernels[bytes == 8][c->pool.spatial - 1];
    int64_t kernel = rng_range(&random_state, least, least + least / 8), stride = 1, dilation = 1;
    if (rng_next(&random_state) % 2)
        stride = rng_range(&random_state, 2, 3), dilation = rng_range(&random_state, 1, 2);
    int64_t extent = dilation * (kernel - 1) + 1,
            pads = max_i64(extent - size, 0) + rng_range(&random_state, 0, 3 * stride);
    set_axis(c, a, kernel, stride, dilation);
    c->pool.pad_lo[a] = rng_range(&random_state, 0, pads);
    if (bytes == 8 && rng_next(&random_state) % 2) /* most windows meet the cells */
        c->pool.pad_lo[a] = max_i64(pads - rng_range(&random_state, 0, size + 3), 0);
    c->pool.pad_hi[a] = pads - c->pool.pad_lo[a];
}

/* As windows are: of few taps, side by side, overlapping or apart; now and then of many. */
static void set_usual_axis(test_case *c, int a, bool large)
{
    int64_t size = c->x.shape[c->x.rank - c->pool.spatial + a];
    int64_t kernel = rng_range(&random_state, 1, min_i64(size, large ? 20 : 5));
    const int64_t strides[] = {1, 1, 2, 3, kernel, kernel + 1, rng_range(&random_state, 4, 9)};
    set_axis(c, a, kernel, strides[rng_next(&random_state) % 7],
             rng_next(&random_state) % 5 ? 1 : rng_range(&random_state, 2, 3));
}

static test_case false_case(int n, bool network)
{
    int spatial = n % 4 + 1, leading = (int)rng_range(&random_state, 0, 2);
    int bytes = n / 4 % 5 == 3 ? 4 : n / 4 % 5 == 4 ? 8 : 1;
    static const int64_t most[3][4] = {
        {1500, 60, 17, 7}, {60, 12, 7, 4}, {6000, 112, 28, 10}}; /* sides of planes */
    int64_t shape[6], side = most[network ? 2 : bytes > 1][spatial - 1];
    bool channels = rng_next(&random_state) % 3 == 0; /* from few to several vectors of them */
    for (int a = 0; a < leading; a++)
        shape[a] = rng_range(&random_state, 1, a + 1 < leading || !channels ? 3 : 80);
    for (int a = 0; a < spatial; a++)
        shape[leading + a] = rng_range(&random_state, rng_next(&random_state) % 5 ? 2 : 1, side);
    bool adaptive = bytes == 1 && rng_next(&random_state) % 5 == 0,
         large = rng_next(&random_state) % 6 == 0;
    test_case c = shaped_case(adaptive ? TARN_ADAPTIVE : TARN_SLIDING,
                              (tarn_dtype)(rng_next(&random_state) % 4), leading, spatial, shape);
    for (int a = 0; a < spatial; a++)
        if (adaptive)
            c.pool.out[a] =
                rng_range(&random_state, 1, shape[leading + a] + shape[leading + a] / 4);
        else if (bytes > 1)
            set_long_axis(&c, a, bytes);
        else
            set_usual_axis(&c, a, large);
    return c;
}

/* Gradients from winners that are false in every way, which must be what the specification makes of
 * them: ranks 1 to 4, winners of 1, 4 and 8 bytes, all floating dtypes and layouts, gradients with
 * NaN, infinities and -0. */
static void sweep_false_winners(int cases)
{
    int bytes[9] = {0};
    for (int n = 0; n < cases; n++) {
        test_case c = false_case(n, n % 16 == 5);
        set_details(&c, rng_next(&random_state) % 3 == 0);
        if (rng_next(&random_state) % 3 == 0) {
            c.in_layout = (layout)(rng_next(&random_state) % LAYOUTS);
            c.out_layout = (layout)(rng_next(&random_state) % BROADCAST);
        }
        if (rng_next(&random_state) % 2) /* the last bits tell orders of sums apart */
            c.values = rng_next(&random_state) % 2 ? WILD : SPECIAL;
        c.pool.op = n % 3 ? TARN_MAX : TARN_MIN;
        c.pool.divisor = 0;
        c.only_saved = true;
        c.winners = (falsehood)rng_range(&random_state, SOME_BYTES, FALSEHOODS - 1);
        bytes[run_case(&c)]++;
    }
    printf("false winners: %d cases with 1 byte, %d with 4, %d with 8\n", bytes[1], bytes[4],
           bytes[8]);
    CHECK(bytes[1] > cases / 3 && bytes[4] > cases / 12 && bytes[8] > cases / 12,
          "too few cases were run");
}

/* Large windows, most of stride 1, over planes that are wide, tall or channels last; often full of
 * the same value, which makes the greatest sums. */
static void sweep_large(int cases)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        bool last = n % 3 == 1, tall = n % 8 == 5;
        int64_t shape[3] = {rng_range(&random_state, 1, last ? 40 : 3),
                            tall ? 70 : rng_range(&random_state, 1, last ? 9 : 20),
                            last ? rng_range(&random_state, 1, 20)
                                 : rng_range(&random_state, 20, n % 16 ? 160 : 3000)};
        test_case c = shaped_case(TARN_SLIDING, (tarn_dtype)(rng_next(&random_state) % TARN_DTYPES),
                                  1, 2, shape);
        for (int a = 0; a < 2; a++)
            set_axis(&c, a, rng_range(&random_state, 4, a == n % 2 ? last ? 24 : 64 : 9),
                     rng_next(&random_state) % 3 ? 1 : rng_range(&random_state, 1, 4),
                     n % 7 ? 1 : 2);
        set_details(&c, last);
        if (rng_next(&random_state) % 3 == 0)
            c.values = EQUAL;
        run_three(c);
    }
    printf("large windows: %d cases\n", cases);
}

/* One NaN, or -0, where kernels look for such before they choose their way: windows of all kinds,
 * in lines and planes. */
static void sweep_nan(int cases)
{
    static const int64_t kernels[] = {2, 3, 3, 5, 6, 9};
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        bool last = n % 3 == 1;
        int spatial = n % 4 ? 2 : 1;
        int64_t kernel = kernels[rng_next(&random_state) % 6],
                width = rng_range(&random_state, 9, last ? 15 : 90);
        int64_t shape[3] = {last ? rng_range(&random_state, 8, 40) : 2,
                            rng_range(&random_state, 9, 15), width};
        if (spatial == 1)
            shape[1] = width;
        tarn_dtype dtype = (tarn_dtype)(n % 2 ? TARN_F32 : rng_range(&random_state, 0, TARN_BF16));
        test_case c = shaped_case(TARN_SLIDING, dtype, 1, spatial, shape);
        for (int a = 0; a < spatial; a++)
            set_axis(&c, a, kernel, rng_range(&random_state, 1, 3), 1);
        set_details(&c, last);
        c.values = n % 4 < 3 ? LONE_NAN : LONE_ZERO;
        c.pool.divisor = 0;
        for (int op = TARN_MAX; op <= TARN_MIN; op++) {
            c.pool.op = (tarn_op)op;
            run_case(&c);
        }
    }
    printf("lone NaN and -0: %d cases\n", cases);
}

static int64_t any_power(int most)
{
    return (INT64_C(1) << rng_range(&random_state, 0, most)) + rng_range(&random_state, -1, 1);
}

/* Kernels, strides, dilations and paddings up to 2^62, with lanes and gaps: what the checker
 * accepts must run without an overflow, as far as its output fits. */
static void sweep_huge(void)
{
    int accepted = 0;
    for (int n = 0; n < (THOROUGH ? 40000 : 5000); n++) {
        int spatial = (int)rng_range(&random_state, 1, 2),
            leading = (int)rng_range(&random_state, 0, 1);
        int64_t shape[3], outputs = 1;
        for (int a = 0; a < leading + spatial; a++)
            shape[a] = rng_range(&random_state, 1, 5);
        test_case c = shaped_case(TARN_SLIDING, (tarn_dtype)(rng_next(&random_state) % TARN_DTYPES),
                                  leading, spatial, shape);
        for (int a = 0; a < spatial; a++) {
            int most = rng_next(&random_state) % 2 ? 62 : 3;
            c.pool.kernel[a] = rng_next(&random_state) % 2 ? 1 : any_power(most);
            c.pool.stride[a] = any_power(62);
            c.pool.dilation[a] = any_power(most);
            c.pool.pad_lo[a] = rng_next(&random_state) % 2 ? 0 : any_power(most) - 1;
            c.pool.pad_hi[a] = rng_next(&random_state) % 2 ? 0 : any_power(most) - 1;
        }
        tarn_view y;
        if (tarn_output_view(&c.pool, &c.x, &y, NULL))
            continue;
        for (int a = 0; a < y.rank; a++)
            outputs = outputs > 1000 ? outputs : outputs * (y.shape[a] < 1000 ? y.shape[a] : 1000);
        if (outputs <= 500) {
            run_operators(c);
            accepted++;
        }
    }
    printf("huge parameters: %d cases\n", accepted);
}

/* A shape whose VJP the specification can still compute: it looks at every tap for every cell. */
static void random_planes(int spatial, int64_t *shape)
{
    int64_t cells = 1, kind = rng_next(&random_state) % 8;
    for (int a = 1; a <= spatial; a++) {
        shape[a] = rng_range(&random_state, 1, kind == 2 ? 3 : kind == 3 ? 9 : kind ? 11 : 40);
        cells *= shape[a];
    }
    shape[0] = rng_range(&random_state, 1, 20000 / (cells * cells) + 2);
    if (kind == 2) /* channels that a kernel takes in several runs */
        shape[0] = rng_range(&random_state, 500, 1300);
    else if (kind == 3) /* small planes, as many as vectors have lanes, and more */
        shape[0] = rng_range(&random_state, 4, 40);
    else if (shape[0] > (kind == 1 ? 300 : 35))
        shape[0] = rng_range(&random_state, 1, 35);
}

/* Global and adaptive windows: planes of every count around the lengths of vectors, channels last,
 * rows that do not fill a vector. */
static void sweep_whole(int cases)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        int64_t shape[3];
        int spatial = (int)rng_range(&random_state, 1, 2);
        random_planes(spatial, shape);
        test_case c =
            shaped_case(TARN_GLOBAL, (tarn_dtype)(rng_next(&random_state) % 4), 1, spatial, shape);
        if (rng_next(&random_state) % 2) {
            c.pool.window = TARN_ADAPTIVE;
            for (int a = 0; a < spatial; a++)
                c.pool.out[a] = rng_range(&random_state, 1, shape[a + 1] + 1);
        }
        run_operators(c);
    }
    for (int64_t cells = 1; cells <= (THOROUGH ? 70 : 10);
         cells++) { /* a NaN in the last vector, or in any other */
        int64_t shape[2] = {rng_range(&random_state, 8, 40), cells};
        test_case c = shaped_case(TARN_GLOBAL, TARN_F32, 1, 1, shape);
        c.values = LONE_NAN;
        for (int n = 0; n < 8; n++) {
            c.pool.op = n % 2 ? TARN_MAX : TARN_MIN;
            c.seed = rng_next(&random_state);
            run_case(&c);
        }
    }
    for (int n = 0; n < 4; n++) { /* more channels than are in hand at once */
        int64_t shape[3] = {rng_range(&random_state, 2050, 2400), 2, 3};
        test_case c = shaped_case(TARN_GLOBAL, n % 2 ? TARN_F32 : TARN_F64, 1, 2, shape);
        c.in_layout = c.out_layout = LAST;
        c.pool.op = n < 2 ? TARN_MAX : TARN_MIN;
        c.seed = rng_next(&random_state);
        run_case(&c);
    }
    printf("whole planes: %d cases\n", cases);
}

/* Adaptive windows that share rows and columns: a cell wins up to four. Numbers of few values, and
 * any. */
static void sweep_adaptive(int cases)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        bool last = n % 2;
        int64_t shape[3] = {rng_range(&random_state, 1, 40), rng_range(&random_state, 4, 20),
                            rng_range(&random_state, 4, 20)};
        test_case c = shaped_case(TARN_ADAPTIVE, n % 3 ? TARN_F32 : TARN_F64, 1, 2, shape);
        for (int a = 0; a < 2; a++)
            c.pool.out[a] = rng_range(&random_state, 2, shape[a + 1]);
        c.pool.op = n % 8 < 6 ? TARN_MAX : TARN_MIN;
        c.seed = rng_next(&random_state);
        c.values = n % 5 == 0 ? FEW : PLAIN;
        c.in_layout = last ? LAST : n % 8 == 2 ? CROPPED : DENSE;
        c.out_layout = last ? LAST : n % 8 == 4 ? CROPPED : DENSE;
        run_case(&c);
    }
    printf("adaptive: %d cases\n", cases);
}

/* [P1] Pieces of problems: paddings that lie far away or cut windows, windows that end before the
 * cells do, adaptive windows of a longer axis. */
static void sweep_pieces(int cases)
{
    static const tarn_pass passes[] = {TARN_FORWARD, TARN_VJP, TARN_VJP_SAVED};
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        int64_t shape[TARN_MAX_RANK];
        int spatial = (int)rng_range(&random_state, 1, 3), leading = n % 3 > 0;
        for (int a = 0; a < leading + spatial; a++)
            shape[a] = rng_range(&random_state, 1, spatial == 3 ? 9 : a < leading ? 5 : 24);
        test_case c = shaped_case(TARN_SLIDING, (tarn_dtype)(n % 4), leading, spatial, shape);
        random_rule(&c, 6, 28);
        if (n % 2)
            c.pool.window = TARN_ADAPTIVE;
        c.pool.flat = 0;
        tarn_box written, x_box, y_box;
        tarn_pass pass = passes[rng_next(&random_state) % 3];
        tarn_view y, *whole = pass == TARN_FORWARD ? &y : &c.x;
        CHECK(!tarn_output_view(&c.pool, &c.x, &y, NULL), "%s", describe(&c));
        for (int a = 0; a < c.x.rank; a++) {
            written.lo[a] = rng_range(&random_state, 0, whole->shape[a] - 1);
            written.hi[a] = rng_range(&random_state, written.lo[a] + 1, whole->shape[a]);
        }
        CHECK(!tarn_piece(&c.pool, &c.x, pass, &written, &c.pool, &x_box, &y_box, NULL), "%s",
              describe(&c));
        for (int a = 0; a < c.x.rank; a++)
            shape[a] = x_box.hi[a] - x_box.lo[a];
        c.x = tarn_view_dense(NULL, c.x.dtype, c.x.rank, shape);
        run_operators(c);
    }
    printf("pieces: %d cases\n", cases);
}

/* Smooth max of small windows: long rows, bands of rows, blocks of planes, numbers near and far
 * apart. */
static void sweep_weights(int cases)
{
    static const double betas[] = {1, -1, 0.3, 30, -200};
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        bool wide = n % 4 == 0, many = n % 4 == 1;
        int64_t shape[3] = {many ? rng_range(&random_state, 10, 40)
                                 : rng_range(&random_state, 1, 3),
                            rng_range(&random_state, 4, wide || many ? 6 : 80),
                            wide ? rng_range(&random_state, 200, 700)
                                 : rng_range(&random_state, 8, many ? 50 : 20)};
        test_case c =
            shaped_case(TARN_SLIDING, (tarn_dtype)(rng_next(&random_state) % 4), 1, 2, shape);
        random_window(&c, 4);
        c.pool.dilation[0] = c.pool.dilation[1] = 1;
        c.pool.op = TARN_SMOOTH;
        c.pool.beta = betas[rng_next(&random_state) % 5];
        c.pool.count_include_pad = rng_next(&random_state) % 2;
        c.seed = rng_next(&random_state);
        c.values =
            rng_next(&random_state) % 2 ? PLAIN : (pattern)(rng_next(&random_state) % PATTERNS);
        c.in_layout = c.out_layout = rng_next(&random_state) % 2 ? DENSE : LAST;
        run_case(&c);
    }
    printf("weights: %d cases\n", cases);
}

/* Taps that are skipped: often none of a window, often all. */
static void sweep_skip(int cases)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        tarn_dtype dtype = (tarn_dtype)(rng_next(&random_state) % TARN_DTYPES);
        int spatial = (int)rng_range(&random_state, 1, n % 4 ? 2 : 3);
        bool wide = n % 5 == 0;
        int64_t shape[4], most = spatial == 3 ? 7 : spatial == 2 ? 14 : 40;
        for (int a = 0; a <= spatial; a++)
            shape[a] = rng_range(&random_state, a ? 2 : 1, a ? most : n % 3 ? 3 : 40);
        if (wide)
            shape[spatial] = rng_range(&random_state, 100, 700);
        bool many = n % 20 == 7; /* windows, or channels: more than the engine takes at once */
        if (many)
            shape[spatial] =
                rng_range(&random_state, 1500, 3000) / (n % 40 == 7 ? shape[0] : 1) / shape[1];
        if (many && n % 40 == 7)
            shape[0] = rng_range(&random_state, 60, 140);
        test_case c = shaped_case(TARN_SLIDING, dtype, 1, spatial, shape);
        random_rule(&c, n % 3 ? 3 : 5, 4);
        if (c.pool.window == TARN_SLIDING && n % 2)
            for (int a = 0; a < spatial; a++)
                c.pool.dilation[a] = 1;
        do
            c.pool.op = (tarn_op)(rng_next(&random_state) % TARN_OPS);
        while (c.pool.op == TARN_SMOOTH || c.pool.op == TARN_LP ||
               (c.pool.op == TARN_MODE && dtype <= TARN_BF16));
        c.pool.ties = (tarn_ties)(rng_next(&random_state) % TARN_TIES);
        c.pool.count_include_pad = rng_next(&random_state) % 2;
        c.pool.divisor = rng_next(&random_state) % 4 ? 0 : rng_range(&random_state, 1, 9);
        c.pool.skip =
            dtype <= TARN_BF16 && rng_next(&random_state) % 2 ? TARN_SKIP_NAN : TARN_SKIP_INTEGER;
        c.pool.skip_integer = rng_range(&random_state, 0, 2);
        c.pool.min_count = rng_next(&random_state) % 2 ? 1 : rng_range(&random_state, 0, 5);
        c.seed = rng_next(&random_state);
        c.values = n % 4 == 0                     ? (pattern)(rng_next(&random_state) % PATTERNS)
                   : c.pool.skip == TARN_SKIP_NAN ? HOLES
                                                  : FEW;
        c.in_layout = n % 2 ? DENSE : (layout)(rng_next(&random_state) % LAYOUTS);
        c.out_layout = n % 2 ? DENSE : (layout)(rng_next(&random_state) % BROADCAST);
        if (n % 6 == 2)
            c.in_layout = c.out_layout = LAST;
        run_case(&c);
    }
    printf("skip: %d cases\n", cases);
}

/* Modes of few taps, in rows of all lengths, and of many. */
static void sweep_mode(int cases)
{
    if (!THOROUGH)
        cases = cases / 16 + 1;
    for (int n = 0; n < cases; n++) {
        tarn_dtype dtype = (tarn_dtype)rng_range(&random_state, TARN_I8, TARN_U64);
        int spatial = (int)rng_range(&random_state, 1, 3);
        int64_t shape[4] = {rng_range(&random_state, 1, n % 3 ? 2 : 70)};
        for (int a = 0; a < spatial; a++)
            shape[a + 1] = rng_range(&random_state, 2, a + 1 < spatial ? 8 : n % 4 ? 30 : 300);
        test_case c = shaped_case(TARN_SLIDING, dtype, 1, spatial, shape);
        if (n % 8 == 7)
            random_rule(&c, 6, 4);
        else
            random_window(&c, n % 5 ? 2 : 5);
        for (int a = 0; a < spatial && n % 3; a++)
            c.pool.dilation[a] = 1;
        c.pool.op = TARN_MODE;
        c.pool.skip = n % 2 ? TARN_SKIP_INTEGER : TARN_SKIP_NOTHING;
        c.pool.skip_integer = rng_range(&random_state, 0, 2);
        c.pool.min_count = rng_next(&random_state) % 2 ? 1 : rng_range(&random_state, 0, 9);
        c.seed = rng_next(&random_state);
        c.values = n % 5 ? FEW : (pattern)(rng_next(&random_state) % PATTERNS);
        c.in_layout = n % 4 ? DENSE : (layout)(rng_next(&random_state) % LAYOUTS);
        c.out_layout = n % 4 ? DENSE : (layout)(rng_next(&random_state) % BROADCAST);
        if (n % 7 == 3)
            c.in_layout = c.out_layout = LAST;
        run_case(&c);
    }
    printf("mode: %d cases\n", cases);
}

/* What fills the buffers of kernels: long rows, many channels, large windows, many planes and
 * axes. */
static void sweep_stack(void)
{
    static const char *const problems[] = {
        "max k3s1p1 f32 1x9x5000",
        "max k3s2p1 f32 2x4x56x56",
        "max k64,5s1p32,2 f32 1x70x300",
        "max k3000s1 d1 f32 1x6000",
        "max k7s7 f32 1x70x700",
        "max k3s1p1 f32 1x3000x4x5 last",
        "max k5s1p2 f32 1x64x9x9 last",
        "max k31s1p15 f32 1x17x16x16 last",
        "max k3s3 f32 1x4x50x50",
        "max k3s1p2e2 f32 2x20x300",
        "max k3,3,3s1p1 f32 1x2x5x9x200",
        "max k2,2,2s2 f32 1x33x7x9x10 last",
        "max k7,7,7s1p3 f32 1x2x9x16x16",
        "max global f32 1x20x30x30",
        "max global f32 1x600x9x9 last",
        "max a7,7 f32 3x57x61",
        "max a3,5 f32 1x100x19x21 last",
        "max a3 d1 f32 1x10000",
        "max a90,90 f32 1x40x40",
        "max k2,2,2,2s1 f32 6x7x8x90",
        "max k8,8s1p4 f32 1x64x12x12 last",
        "max k3s1p1 skip=1 min=3 f32 2x4x56x56",
        "max k2,2,2s2 skip=1 f32 1x33x7x9x10 last",
        "max k7,7s1p3 skip=1 f32 1x70x300",
        "max k2,2,2,2s1 skip=1 f32 6x7x8x90",
    };
    static const tarn_dtype dtypes[] = {TARN_F64, TARN_F32, TARN_BF16, TARN_U8, TARN_I32, TARN_I64};
#if defined(TARN_SANITIZED) || !defined(__OPTIMIZE__) || defined(__LLVM_INSTR_PROFILE_GENERATE)
    printf("stack: not in this build, whose frames are larger\n");
    return;
#endif
    stack = guarded_make(LARGE_STACK);
    for (size_t k = 0; k < sizeof problems / sizeof problems[0]; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            test_case c = {.seed = 0};
            tarn_error error;
            tarn_status status = tarn_problem_parse(problems[k], &c.pool, &c.x, &error);
            CHECK(status == TARN_OK, "%s: %s", problems[k], error.message);
            c.x.dtype = dtypes[d];
            c.in_layout = c.out_layout = strstr(problems[k], "last") ? LAST : DENSE;
            run_each_operator(c, false);
        }
    stack.begin = NULL;
    printf("stack: at most %lld of %d bytes\n", (long long)deepest_stack, STACK_BYTES);
}

/* Problems that once went wrong, with all kinds of values: rows that only dilation skips, windows
 * in the padding between others, adaptive windows beside a single one, few channels that are done
 * again; windows apart, behind others that lie in the padding. */
static void sweep_found(void)
{
    enum { DEAR = 6 }; /* the first ones take long: some runs only */
    static const char *const problems[] = {
        "max k17s1p8 bf16 2x56x56", /* winners that the next plane has no room for */
        "max d8 global ties=all f64 3x3x3x3x3x3x3x3",
        "max k7s1p3 f32 6x1700",         /* winners that find no room for the last two rows */
        "max k2400,5s1p2399,0 f32 40x5", /* many windows of a cell: in one column; in many chains */
        "max k2400s1p79167e33 d1 f32 1x40",
        "max d3 k5s1p2e3 f32 1x8x20x20x12 last", /* channels that boxes must not cut */
        "max k3,3s2,2p6:2,0e3,2 i8 3x2x30",
        "max k3,3s2,2p6:2,0e3,2 f32 3x2x30",
        "max k2,2s1,2p3,0e2,3 f64 2x2x5x9",
        "max k3,3s1,1p2:0,0e2,3 f64 2x5x156",
        "max a3,900 f32 5x2",
        "min a20,60 f32 2x23x128",
        "max k16,1s1 i16 1x900x16x1 last",
        "avg k3,2s1,2p1:0 f64 2x4x8x5 nopad last", /* pixels apart, of several planes */
        "avg k5,3,10s2,3,2p2,0,5 nopad f32 1x28x15x3x23 last", /* a row fits, a part does not */
        "max k3s1p1 f16 1x5x7x9 last",
        "avg d1 k2s5p3 f32 2x8x40 last",
        "avg d2 k2s5p3 nopad f64 1x5x13x22 last",
        "avg d1 k3s3p1 f16 3x20x31 last",
        "avg d3 k2s2 ceil bf16 2x6x5x7x9 last",
        "max d1 k3s2 f32 1x2x5000 last",
        "min d2 k3s2p1 f16 1x2x40x90 last",
        "max d1 k2s2p1e3 f32 1x3x40 last", /* windows of neighbours that lie apart */
        "min d2 k3s2p2e3 f64 1x3x9x41 last",
        /* cells of so many windows that no buffer holds their winners */
        "max k2400s1p2399 d1 f32 2x40",
        "max k2400s1p4798e2 d1 f64 1x40",
        "max k50,50s1p49 f32 1x4x5",
        "min k50,50s1p49 bf16 2x4x5 last",
        "max k14,14,14s1p13 f32 2x3x3",
        "max k7,7,7,7s1p6 f16 2x2x2x2",
        "max a90000 d1 f32 1x7",
        "max k3s1p1 f32 2x4200", /* winners that move on in gx, by rows and then along the last */
        "max k70000,70000s1p35000,35000 f32 2x2",  /* more taps than 32 bits count */
        "avg global d2 skip=1 f32 4x500x3x3 last", /* more channels than are divided at once */
        "max k3s1p1 skip=1 min=2 bf16 2x40x50",    /* winners in gx, and cells at the end */
        "min k2s2 skip=2 f64 3x5x6x7 last",
        "avg k3s2p1 skip=1 nopad f32 2x70x90",
        "avg k3s1p1e2 skip=1 min=4 f64 2x33x40 last",
        "avg k2s3 skip=1 f16 5x11x13",      /* gaps between windows */
        "avg a7,5 skip=1 bf16 2x40x33",     /* adaptive windows that overlap */
        "avg k40,40s1p39 skip=1 f32 1x4x5", /* cells of more windows than fit */
        "max k50,50s1p49 skip=1 f32 1x4x5",
        "avg k2s2 u8 2x6x9x300", /* halves: rows longer and shorter than a vector */
        "avg k2s2 ceil i8 3x8x38",
        "avg d3 k2s2 u16 4x6x8x70",
        "avg d3 k2s2 i16 2x4x6x18",
        "avg d3 k1,2,2s1,2,2 i32 2x3x8x50",
        "avg d3 k2,1,2s3,1,2 u32 5x3x12",
        "avg d2 k1,2s1,2 i8 5x7x262",
    };
    int cases = 0;
    for (size_t n = 0; n < sizeof problems / sizeof problems[0]; n++)
        for (int run = 0; run < 4 * PATTERNS; run += n < DEAR ? 7 : 1) {
            test_case c = {.seed = (uint64_t)(run * 7919 + 1)};
            tarn_error error;
            CHECK(tarn_problem_parse(problems[n], &c.pool, &c.x, &error) == TARN_OK, "%s",
                  error.message);
            c.values = (pattern)(run % PATTERNS);
            c.in_layout = c.out_layout = run / PATTERNS % 2 ? CROPPED : DENSE;
            if (strstr(problems[n], "last"))
                c.in_layout = c.out_layout = LAST;
            run_case(&c);
            cases++;
        }
    printf("found: %d cases\n", cases);
}

/* Sizes that networks have: planes and windows of many cells, any number of channels, dense or
 * last. One operator each, as the specification looks at every tap. */
static int64_t realistic_axis(test_case *c, int a, int64_t size)
{
    static const int64_t kernels[] = {2, 2, 3, 3, 3, 5, 4, 7, 10, 12};
    int64_t kernel = kernels[rng_next(&random_state) % 10];
    const int64_t steps[] = {kernel, kernel + 1, 1, 1, 2, 3};
    int64_t dilation = rng_next(&random_state) % 6 ? 1 : rng_range(&random_state, 2, 3);
    while ((kernel - 1) * dilation >= size)
        dilation = 1, kernel = min_i64(kernel - 1, size);
    set_axis(c, a, kernel, steps[rng_next(&random_state) % 6], dilation);
    int64_t most = rng_next(&random_state) % 2 ? kernel / 2 : 0;
    c->pool.pad_lo[a] = c->pool.pad_hi[a] = most;
    return kernel;
}

static void sweep_realistic(int cases)
{
    enum { MOST_TAPS = 400000, MOST_ELEMENTS = 30000 };
    int done = 0;
    for (int n = 0; n < (THOROUGH ? cases : cases / 16 + 1); n++) {
        int spatial = (int)rng_range(&random_state, 1, 3);
        int64_t side = (int64_t[]){3000, 150, 30}[spatial - 1], elements = 1, taps = 1;
        int64_t shape[4] = {rng_range(&random_state, 1, rng_next(&random_state) % 3 ? 40 : 300)};
        for (int a = 1; a <= spatial; a++)
            elements *= shape[a] =
                rng_range(&random_state, 1, rng_next(&random_state) % 2 ? 20 : side);
        shape[0] = max_i64(1, min_i64(shape[0], MOST_ELEMENTS / elements));
        uint64_t kind = rng_next(&random_state) % 8;
        tarn_window window = kind == 0 ? TARN_GLOBAL : kind == 1 ? TARN_ADAPTIVE : TARN_SLIDING;
        test_case c = shaped_case(window,
                                  (tarn_dtype)(rng_next(&random_state) % 2
                                                   ? TARN_F32
                                                   : rng_next(&random_state) % TARN_DTYPES),
                                  1, spatial, shape);
        for (int a = 0; a < spatial; a++)
            if (kind == 1)
                c.pool.out[a] = rng_range(&random_state, 1, min_i64(shape[a + 1], 30));
            else if (kind > 1)
                taps *= realistic_axis(&c, a, shape[a + 1]);
        if (elements * shape[0] > 4 * MOST_ELEMENTS || taps * elements * shape[0] > 40 * MOST_TAPS)
            continue;
        c.pool.op = (tarn_op)(rng_next(&random_state) % 3);
        c.pool.count_include_pad = rng_next(&random_state) % 2;
        c.seed = rng_next(&random_state);
        c.values = PLAIN;
        if (rng_next(&random_state) % 4 == 0)
            c.values = (pattern)(rng_next(&random_state) % PATTERNS);
        c.in_layout = c.out_layout = rng_next(&random_state) % 3 ? LAST : DENSE;
        run_case(&c);
        done++;
    }
    printf("realistic: %d cases\n", done);
}

int main(int argc, char **argv)
{
    random_state.state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    for (int run = 0; run < 2; run++)
        for (int k = 0; k < OPERANDS; k++)
            arenas[run][k] = guarded_make(ARENA_BYTES);
    const char *only = argc > 2 ? argv[2] : NULL; /* a sweep by its name */
#define SWEEP(name, call)                                                                          \
    if (!only || !strcmp(only, name))                                                              \
    call
    SWEEP("1-D", sweep_1d());
    SWEEP("named", sweep_named());
    SWEEP("small", sweep_small());
    SWEEP("near", sweep_near(700));
    SWEEP("gradients", sweep_gradients(700));
    SWEEP("large", sweep_large(120));
    SWEEP("nan", sweep_nan(300));
    SWEEP("huge", sweep_huge());
    SWEEP("whole", sweep_whole(250));
    SWEEP("false", sweep_false_winners(THOROUGH ? 3000 : 500));
    SWEEP("adaptive", sweep_adaptive(300));
    SWEEP("pieces", sweep_pieces(600));
    SWEEP("weights", sweep_weights(300));
    SWEEP("2-D", sweep_random("2-D", 2000, 2, 2, 9, 5, 4));
    SWEEP("3-D", sweep_random("3-D", 800, 3, 3, 6, 4, 3));
    SWEEP("rank", sweep_random("rank to 8", 80, 4, 8, 3, 2, 2));
    SWEEP("long", sweep_random("long rows", 300, 1, 1, 60, 18, 20));
    SWEEP("13x13", sweep_random("windows to 8x8", 150, 2, 2, 13, 8, 3));
    SWEEP("skip", sweep_skip(2000));
    SWEEP("mode", sweep_mode(1500));
    SWEEP("stack", sweep_stack());
    SWEEP("found", sweep_found());
    SWEEP("realistic", sweep_realistic(1500));
#undef SWEEP
    return finish_checks();
}
