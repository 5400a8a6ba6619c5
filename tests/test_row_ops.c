/* Row operations of every family that this CPU has, beside loops over single elements, between
 * guard pages. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "row_families.h"

#include <math.h>

/* ---- Folds: the elements of cores, one by one ---- */

enum { MOST_ROWS = 20, MOST_BYTES = 1 << 15, TURNED_ROWS = 64 };

/* A value of a core, whichever it is. */
typedef struct {
    int64_t whole;
    double real;
} number;

static number get(int core, const void *from, int64_t i)
{
    const char *p = (const char *)from + i * core_bytes((tarn_core)core);
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    switch (core) {
    case CORE_I8:
        memcpy(&i8, p, 1);
        return (number){i8, 0};
    case CORE_I16:
        memcpy(&i16, p, 2);
        return (number){i16, 0};
    case CORE_I32:
        memcpy(&i32, p, 4);
        return (number){i32, 0};
    case CORE_I64:
        memcpy(&i64, p, 8);
        return (number){i64, 0};
    case CORE_F32:
        memcpy(&f32, p, 4);
        return (number){0, f32};
    default:
        memcpy(&f64, p, 8);
        return (number){0, f64};
    }
}

static void put(int core, void *to, int64_t i, number x)
{
    char *p = (char *)to + i * core_bytes((tarn_core)core);
    int8_t i8 = (int8_t)x.whole;
    int16_t i16 = (int16_t)x.whole;
    int32_t i32 = (int32_t)x.whole;
    float f32 = (float)x.real;
    switch (core) {
    case CORE_I8:
        memcpy(p, &i8, 1);
        break;
    case CORE_I16:
        memcpy(p, &i16, 2);
        break;
    case CORE_I32:
        memcpy(p, &i32, 4);
        break;
    case CORE_I64:
        memcpy(p, &x.whole, 8);
        break;
    case CORE_F32:
        memcpy(p, &f32, 4);
        break;
    default:
        memcpy(p, &x.real, 8);
        break;
    }
}

static bool above(number a, number b)
{
    return a.whole > b.whole || a.real > b.real;
}

/* [S1] Sums of f32 are rounded after each addition; binary64 holds them before that closely
 * enough. */
static number sum_in_halves(int core, const number *terms, int64_t n)
{
    if (n == 1)
        return terms[0];
    int64_t half = 1;
    while (2 * half < n)
        half *= 2;
    number a = sum_in_halves(core, terms, half), b = sum_in_halves(core, terms + half, n - half);
    double real = a.real + b.real;
    return (number){a.whole + b.whole, core == CORE_F32 ? (double)(float)real : real};
}

/* Few different values make ties, many show an order of summation. */
static void fill(rng *r, int core, void *to, int64_t bytes, bool few)
{
    for (int64_t i = 0; i < bytes / core_bytes((tarn_core)core); i++) {
        number x = {rng_range(r, -3, 3), 0};
        if (!few)
            x.whole = (int64_t)rng_next(r) >> (core == CORE_I64 ? 8 : 0);
        x.real = few ? (double)x.whole : ldexp(rng_unit(r) - 0.5, (int)rng_range(r, -20, 20));
        if (core >= CORE_F32)
            x.whole = 0;
        put(core, to, i, x);
    }
}

/* ---- Folds: one case, drawn at random ---- */

typedef enum { BEST, CODES, SUM } fold_kind;
typedef enum { ROWS, STRIDE2, PIXELS } fold_form;

typedef struct {
    const family *family;
    fold_kind kind;
    fold_form form;
    int core;
    int64_t k, n, channels, tap_step, pixel_step, to_step, first, step;
    bool given, in_place, few; /* given: codes of the rows */
} fold_case;

static const char *text_of(const fold_case *c)
{
    static char text[200];
    snprintf(text, sizeof text,
             "%s kind %d form %d core %d k %d n %d channels %d tap_step %d pixel_step %d given %d "
             "in place %d",
             c->family->name, c->kind, c->form, c->core, (int)c->k, (int)c->n, (int)c->channels,
             (int)c->tap_step, (int)c->pixel_step, c->given, c->in_place);
    return text;
}

static fold_case draw(rng *r, const family *f)
{
    fold_case c = {.family = f, .channels = 1};
    c.kind = (fold_kind)rng_range(r, BEST, SUM);
    c.form = (fold_form)rng_range(r, ROWS, PIXELS);
    c.core = c.kind == SUM ? (int)rng_range(r, CORE_I64, CORE_F64)
                           : (int)rng_range(r, CORE_I8, CORE_F64);
    int64_t lanes = f->ops->vector_bytes / core_bytes((tarn_core)c.core);
    c.k = rng_range(r, 1, c.kind == SUM ? MOST_SUMMED : rng_range(r, 1, MOST_ROWS));
    c.n = rng_range(r, 1, 4 * lanes);
    c.tap_step = rng_range(r, 1, 3) == 1 ? rng_range(r, 2, 4) : 1;
    if (c.form == PIXELS) {
        c.n = rng_range(r, 1, 6);
        c.channels = rng_range(r, 0, 2) ? rng_range(r, 1, 3 * lanes) : lanes;
        c.tap_step *= c.channels;
        c.pixel_step = c.channels * rng_range(r, 1, 3);
        c.to_step = c.channels + rng_range(r, 0, 1) * rng_range(r, 0, 9);
    }
    c.given = c.form == STRIDE2 || rng_range(r, 0, 1);
    c.first = c.form != STRIDE2 ? rng_range(r, 0, 5) : 0;
    c.step = c.form != STRIDE2 ? rng_range(r, 1, 5) : 1;
    c.in_place = c.form == ROWS && c.kind != SUM && rng_range(r, 0, 2) == 0;
    c.few = c.kind != SUM || rng_range(r, 0, 1);
    return c;
}

/* Elements from the first that a tap of result i reads. */
static int64_t read_at(const fold_case *c, int64_t i)
{
    return c->form == ROWS      ? i
           : c->form == STRIDE2 ? 2 * i
                                : i / c->channels * c->pixel_step + i % c->channels;
}

/* Where it is written. */
static int64_t written_at(const fold_case *c, int64_t i)
{
    return c->form == PIXELS ? i / c->channels * c->to_step + i % c->channels : i;
}

/* What the case has to give for result i: the value, and the code as a number of taps. */
static number expected_of(const fold_case *c, const void *const *row, const void *const *codes,
                          int64_t i, int64_t *code)
{
    number tap[MOST_ROWS], best = {0};
    int width = core_width((tarn_core)c->core);
    int64_t zero = INT64_MIN >> (64 - 8 * core_bytes((tarn_core)width)); /* the least integer */
    int64_t at = read_at(c, i);
    for (int64_t j = 0; j < c->k; j++) {
        tap[j] = get(c->core, row[j], at);
        int64_t number_of_tap = c->first + j * c->step;
        number_of_tap += c->given ? get(width, codes[j], at).whole : zero;
        if (j == 0 || above(tap[j], best) || (!above(best, tap[j]) && number_of_tap < *code)) {
            best = tap[j];
            *code = number_of_tap;
        }
    }
    return c->kind == SUM ? sum_in_halves(c->core, tap, c->k) : best;
}

static void run(const fold_case *c, void *to, void *to_codes, const void *const *row,
                const void *const *codes)
{
    const tarn_row_ops *ops = c->family->ops;
    int core = c->core;
    int64_t k = c->k, n = c->n, tap_step = c->tap_step, step = c->pixel_step, to_step = c->to_step;
    switch (3 * (int)c->form + (int)c->kind) {
    case 3 * ROWS + BEST:
        ops->best[core](to, row, k, n);
        break;
    case 3 * ROWS + SUM:
        ops->sum[core](to, row, k, n);
        break;
    case 3 * ROWS + CODES:
        ops->best_codes[core](to, to_codes, row, c->given ? codes : NULL, c->first, c->step, k, n);
        break;
    case 3 * STRIDE2 + BEST:
        ops->best_stride2[core](to, row[0], k, tap_step, n);
        break;
    case 3 * STRIDE2 + SUM:
        ops->sum_stride2[core](to, row[0], k, tap_step, n);
        break;
    case 3 * STRIDE2 + CODES:
        ops->best_codes_stride2[core](to, to_codes, row[0], codes[0], k, tap_step, n);
        break;
    case 3 * PIXELS + BEST:
        ops->best_pixels[core](to, to_step, row[0], k, tap_step, step, c->channels, n);
        break;
    case 3 * PIXELS + SUM:
        ops->sum_pixels[core](to, to_step, row[0], k, tap_step, step, c->channels, n);
        break;
    default:
        ops->best_codes_pixels[core](to, to_codes, to_step, row[0], c->given ? codes[0] : NULL,
                                     c->first, c->step, k, tap_step, step, c->channels, n);
    }
}

typedef struct {
    guarded to, to_codes, row[MOST_ROWS], codes[MOST_ROWS];
} memory;

static memory make_memory(void)
{
    memory m = {.to = guarded_make(MOST_BYTES), .to_codes = guarded_make(MOST_BYTES)};
    for (int j = 0; j < MOST_ROWS; j++) {
        m.row[j] = guarded_make(MOST_BYTES);
        m.codes[j] = guarded_make(MOST_BYTES);
    }
    return m;
}

/* Rows are of their own, or begin at the taps of the first; that one holds what the last tap reads,
 * no more. */
static void place_rows(rng *r, const fold_case *c, const memory *m, const void **row,
                       const void **codes)
{
    int64_t bytes = core_bytes((tarn_core)c->core), results = c->n * c->channels;
    int64_t elements =
        read_at(c, results - 1) + 1 + (c->form == ROWS ? 0 : (c->k - 1) * c->tap_step);
    size_t size = (size_t)(elements * bytes + (c->form == STRIDE2 ? SCRATCH_SLACK : 0));
    for (int j = 0; j < c->k; j++) {
        bool at_end = rng_range(r, 0, 1);
        char *own = guarded_place(&m->row[j], size, at_end),
             *code = guarded_place(&m->codes[j], size, at_end);
        int64_t ahead = j * c->tap_step * bytes;
        row[j] = c->form == ROWS || j == 0 ? own : (const char *)row[0] + ahead;
        codes[j] = c->form == ROWS || j == 0 ? code : (const char *)codes[0] + ahead;
        if (c->form == ROWS || j == 0) {
            fill(r, c->core, own, (int64_t)size, c->few);
            fill(r, core_width((tarn_core)c->core), code, (int64_t)size, true);
        }
    }
}

/* All memory is compared, so that nothing else was written; but scratch may be, behind results. */
static void check_fold(rng *r, const fold_case *c, const memory *m)
{
    static char expected[2][MOST_BYTES];
    const void *row[MOST_ROWS], *codes[MOST_ROWS];
    place_rows(r, c, m, row, codes);
    int cores[2] = {c->core, core_width((tarn_core)c->core)};
    int64_t results = c->n * c->channels, bytes = core_bytes((tarn_core)c->core);
    size_t size = (size_t)((written_at(c, results - 1) + 1) * bytes);
    size_t room = size + (c->form == STRIDE2 ? SCRATCH_SLACK : 0);
    bool at_end = rng_range(r, 0, 1);
    const guarded *of[2] = {&m->to, &m->to_codes};
    char *to[2] = {guarded_place(of[0], room, at_end), guarded_place(of[1], room, at_end)};
    if (c->in_place) {
        of[0] = &m->row[0];
        to[0] = (char *)row[0];
        of[1] = c->given ? &m->codes[0] : of[1];
        to[1] = c->given ? (char *)codes[0] : to[1];
    }
    for (int part = 0; part < 2; part++)
        memcpy(expected[part], of[part]->begin, of[part]->capacity);
    for (int64_t i = 0; i < results; i++) {
        int64_t code = 0;
        put(cores[0], expected[0] + (to[0] - of[0]->begin), written_at(c, i),
            expected_of(c, row, codes, i, &code));
        put(cores[1], expected[1] + (to[1] - of[1]->begin), written_at(c, i), (number){code, 0});
    }
    run(c, to[0], to[1], row, codes);
    for (int part = 0; part < (c->kind == CODES ? 2 : 1); part++) {
        int64_t at = c->form == STRIDE2 ? to[part] - of[part]->begin : 0;
        size_t compared = c->form == STRIDE2 ? size : of[part]->capacity;
        CHECK(memcmp(of[part]->begin + at, expected[part] + at, compared) == 0, "%s part %d",
              text_of(c), part);
    }
}

/* ---- Rows to columns ---- */

static void check_turn(rng *r, const family *f, int width, int64_t n, const guarded *row_memory,
                       const guarded *columns)
{
    int64_t bytes = core_bytes((tarn_core)width), lanes = f->ops->vector_bytes / bytes;
    size_t row_bytes = (size_t)(n * bytes);
    void *row[TURNED_ROWS];
    for (int64_t j = 0; j < lanes; j++) {
        row[j] = guarded_place(&row_memory[j], row_bytes, rng_range(r, 0, 1));
        fill(r, width, row[j], n * bytes, false);
    }
    char *to = guarded_place(columns, (size_t)(n * f->ops->vector_bytes), rng_range(r, 0, 1));
    f->ops->turn[width](to, (const void *const *)row, n);
    bool turned = true;
    for (int64_t i = 0; i < n * lanes; i++)
        turned &= get(width, to, i).whole == get(width, row[i % lanes], i / lanes).whole;
    CHECK(turned, "%s turn width %d n %d", f->name, width, (int)n);
    for (int64_t j = 0; j < lanes; j++)
        memset(row[j], 0, row_bytes);
    f->ops->turn_back[width](row, to, n);
    turned = true;
    for (int64_t i = 0; i < n * lanes; i++)
        turned &= get(width, to, i).whole == get(width, row[i % lanes], i / lanes).whole;
    CHECK(turned, "%s turn_back width %d n %d", f->name, width, (int)n);
}

static void check_turns(rng *r, const family *f)
{
    static guarded row_memory[TURNED_ROWS], columns;
    if (!columns.begin) {
        columns = guarded_make(MOST_BYTES);
        for (int j = 0; j < TURNED_ROWS; j++)
            row_memory[j] = guarded_make(1024);
    }
    for (int width = 0; width < WIDTHS; width++)
        for (int64_t n = 1; n < 70; n++)
            check_turn(r, f, width, n, row_memory, &columns);
}

/* ---- Windows that walk cells ---- */

enum { MOST_LANE_ROWS = 4, MOST_LANE_TAPS = 9, MOST_LANE_OUTPUTS = 11 };

typedef struct {
    tarn_lane_row row;
    tarn_lane_step steps[MOST_LANE_ROWS * MOST_LANE_TAPS];
    int64_t row_at[MOST_LANE_ROWS], row_codes[MOST_LANE_ROWS];
    int64_t first_codes[8]; /* a vector */
    int64_t columns, stride, lo, hi;
} lane_case;

/* Windows of up to 4 rows of taps, of whose columns [lo,hi) exist. A single row may be a list of
 * its own. */
static void draw_lanes(rng *r, const family *f, int core, lane_case *c)
{
    int64_t bytes = core_bytes((tarn_core)core), vector = f->ops->vector_bytes / bytes,
            k = rng_range(r, 1, MOST_LANE_TAPS);
    memset(c, 0, sizeof *c);
    c->stride = rng_range(r, 1, 3);
    c->lo = rng_range(r, 0, 1) ? rng_range(r, 0, k - 1) : 0;
    c->hi = rng_range(r, 0, 1) ? rng_range(r, c->lo + 1, k) : k;
    int64_t least = f->ops->part_lanes ? 1 : vector;
    c->row = (tarn_lane_row){.lanes = least + rng_range(r, 0, rng_range(r, 0, 6) * vector),
                             .saves = rng_range(r, 0, 1),
                             .outputs = rng_range(r, 1, MOST_LANE_OUTPUTS),
                             .columns = c->hi - c->lo,
                             .first_column = c->lo,
                             .rows = rng_range(r, 1, MOST_LANE_ROWS),
                             .row_at = c->row_at,
                             .row_codes = c->row_codes,
                             .first_codes = c->first_codes,
                             .steps = c->steps};
    int64_t cell = c->row.lanes * bytes;
    c->columns = (c->row.outputs - 1) * c->stride + k;
    c->row.tap_step = c->row.to_step = cell;
    c->row.codes_step = c->row.saves ? c->row.lanes : cell;
    c->row.window_step = c->stride * cell;
    bool line = c->row.rows == 1 && rng_range(r, 0, 1);
    c->row.first_step = line ? cell : c->columns * cell;
    int64_t steps =
        list_steps(c->steps, line ? c->lo : 0, line ? c->hi : c->row.rows, c->row.first_step);
    if (!line)
        steps =
            repeat_steps(c->steps, c->steps, steps, c->steps[steps - 1].pops, c->lo, c->hi, cell);
    c->row.step_count = steps;
    for (int64_t j = 0; j < c->row.rows; j++) {
        c->row_at[j] = j * c->columns * cell;
        c->row_codes[j] = j * k;
    }
    for (int64_t i = 0; i < vector; i++)
        put(core_width((tarn_core)core), c->first_codes, i,
            (number){INT64_MIN >> (64 - 8 * bytes), 0});
}

static void check_lanes(rng *r, const family *f, int core, const guarded *from, const guarded *to,
                        const guarded *codes)
{
    lane_case c;
    draw_lanes(r, f, core, &c);
    tarn_lane_row *row = &c.row;
    int64_t bytes = core_bytes((tarn_core)core), size = row->rows * c.columns * row->tap_step;
    bool at_end = rng_range(r, 0, 1);
    char *x = guarded_place(from, (size_t)size, at_end);
    fill(r, core, x, size, rng_range(r, 0, 1));
    row->from = x + c.lo * row->tap_step;
    row->to = guarded_place(to, (size_t)(row->outputs * row->to_step), at_end);
    row->codes = guarded_place(codes, (size_t)(row->outputs * row->codes_step), at_end);
    bool odd = f->ops->best_lanes[core](row), good = true, coded = true;
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 1)
            odd |= f->ops->best_codes_lanes[core](row);
        else if (pass == 2 && core >= CORE_F32)
            f->ops->sum_lanes[core == CORE_F32 ? TARN_F32 : TARN_F64](row);
        for (int64_t i = 0; i < row->outputs * row->lanes && (pass < 2 || core >= CORE_F32); i++) {
            int64_t o = i / row->lanes, lane = i % row->lanes, code = 0;
            number best = {0, 0}, sums[MOST_LANE_TAPS] = {{0, 0}}, terms[MOST_LANE_ROWS];
            bool first = true;
            for (int64_t t = 0; t < row->rows * MOST_LANE_TAPS; t++) { /* row by row */
                int64_t j = t / MOST_LANE_TAPS, k = t % MOST_LANE_TAPS;
                if (k < c.lo || k >= c.hi)
                    continue;
                number x_t = get(core, x + c.row_at[j] + (o * c.stride + k) * row->tap_step, lane);
                if (first || above(x_t, best))
                    best = x_t, code = c.row_codes[j] + k;
                first = false;
            }
            for (int64_t k = c.lo; k < c.hi; k++) {
                for (int64_t j = 0; j < row->rows; j++)
                    terms[j] =
                        get(core, x + c.row_at[j] + (o * c.stride + k) * row->tap_step, lane);
                sums[k] = sum_in_halves(core, terms, row->rows);
            }
            number got = get(core, row->to, i), expected = best;
            if (pass ==
                2) /* what is missing at the end changes no cut, and at the beginning counts as 0 */
                expected = sum_in_halves(core, sums, c.hi);
            good &= got.whole == expected.whole && got.real == expected.real;
            if (!row->saves)
                code ^= INT64_MIN >> (64 - 8 * bytes);
            int width = row->saves ? CORE_I8 : core_width((tarn_core)core);
            coded &= pass != 1 || get(width, row->codes, i).whole == code;
        }
    }
    CHECK(good && coded && !odd, "%s: lanes of core %d, %d lanes, %d outputs, %d rows, %d columns",
          f->name, core, (int)row->lanes, (int)row->outputs, (int)row->rows, (int)row->columns);
    if (core < CORE_F32)
        return;
    int64_t o = rng_range(r, 0, row->outputs - 1); /* a NaN anywhere is told */
    put(core, x + (o * c.stride + c.lo) * row->tap_step, rng_range(r, 0, row->lanes - 1),
        (number){0, NAN});
    CHECK(f->ops->best_lanes[core](row) && f->ops->best_codes_lanes[core](row),
          "%s: NaN of core %d in lanes", f->name, core);
}

/* All runs of the length of a vector that begin at some element, one behind the other. */
static void check_runs(const family *f, tarn_core core, const char *x, int64_t n)
{
    const tarn_row_ops *ops = f->ops;
    int64_t bytes = core_bytes(core), length = ops->vector_bytes / bytes;
    int64_t count = min_i64(n - length + 1, 64);
    char best[64 * 8];
    bool good = true;
    if (count < 1)
        return;
    good &= ops->best_runs[core](best, x, bytes, 0, length, count) == 0;
    for (int64_t r = 0; r < count; r++) {
        number top = get(core, x, r), got = get(core, best, r);
        for (int64_t i = 1; i < length; i++)
            top = above(get(core, x, r + i), top) ? get(core, x, r + i) : top;
        good &= got.whole == top.whole && got.real == top.real;
    }
    CHECK(good, "%s: %d runs of core %d", f->name, (int)count, core);
}

/* One run in two pieces; the first of equals, one that is not there; NaN; the whole run's sum. */
static void check_run(rng *r, const family *f, int core, const guarded *from)
{
    const tarn_row_ops *ops = f->ops;
    int64_t bytes = core_bytes((tarn_core)core), n = rng_range(r, 1, rng_range(r, 1, 2000)),
            cut = rng_range(r, 1, n);
    char *x = guarded_place(from, (size_t)(n * bytes), rng_range(r, 0, 1)), best[8], sum[8];
    static number terms[2000];
    int64_t first = 0;
    fill(r, core, x, n * bytes, rng_range(r, 0, 1));
    for (int64_t i = 0; i < n; i++) {
        terms[i] = get(core, x, i);
        first = above(terms[i], terms[first]) ? i : first;
    }
    bool odd = ops->best_run[core](best, true, x, 0, cut);
    if (cut < n)
        odd |= ops->best_run[core](best, false, x + cut * bytes, 0, n - cut);
    number got = get(core, best, 0), top = terms[first];
    CHECK(!odd && got.whole == top.whole && got.real == top.real, "%s: run of core %d, %d of %d",
          f->name, core, (int)cut, (int)n);
    CHECK(ops->find_run[core](best, x, 0, n) == first, "%s: found in a run of core %d, %d", f->name,
          core, (int)n);
    if (first > 0)
        CHECK(ops->find_run[core](best, x, 0, first) == first, "%s: not in a run of core %d",
              f->name, core);
    check_runs(f, core, x, n);
    if (core < CORE_F32)
        return;
    ops->sum_run[core == CORE_F32 ? TARN_F32 : TARN_F64](sum, x, n);
    CHECK(get(core, sum, 0).real == sum_in_halves(core, terms, n).real,
          "%s: sum of a run of core %d, %d", f->name, core, (int)n);
    put(core, x, rng_range(r, 0, n - 1), (number){0, NAN});
    CHECK(ops->best_run[core](best, true, x, 0, n), "%s: NaN in a run of core %d, %d", f->name,
          core, (int)n);
}

/* Indices of taps of random windows; taps beyond them have any. */
static void check_indices(rng *r, const family *f)
{
    enum { MOST = 128 };
    int64_t to[MOST + 1], kernel[3], n = rng_range(r, 1, MOST), taps = 1;
    int64_t channels = rng_range(r, 0, 1) ? rng_range(r, 1, n) : 1, step = rng_range(r, 1, 9);
    int32_t tap[MOST];
    uint64_t place = (uint64_t)rng_range(r, -1000000, INT64_MAX / 2);
    tarn_index_rule rule = {.axes = (int)rng_range(r, 1, 3)};
    bool good = true;
    for (int a = 0; a < rule.axes; a++) {
        taps *= kernel[a] = rng_range(r, 1, a == 0 ? 40 : 7);
        rule.weight[a] = (uint32_t)rng_range(r, -1000, 10000);
        rule.inverse[a] = (uint32_t)((INDEX_ONE + kernel[a] - 1) / kernel[a]);
    }
    for (int64_t i = 0; i < n; i++)
        tap[i] = (int32_t)rng_range(r, 0, min_i64(taps, INDEX_ONE / 40) - 1);
    to[n] = 0x5a;
    f->ops->indices(to, tap, &rule, place, channels, (uint32_t)step, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = tap[i];
        uint32_t offset = (uint32_t)(i / channels * step);
        for (int a = 0; a < rule.axes; rest /= kernel[a++])
            offset += (uint32_t)rest * rule.weight[a];
        good &= (uint64_t)to[i] == place + offset;
    }
    CHECK(good && to[n] == 0x5a, "%s: %d indices, %d axes, %d channels", f->name, (int)n, rule.axes,
          (int)channels);
}

static void check_all_lanes(rng *r, const family *f)
{
    static guarded from, to, codes;
    if (!from.begin) {
        from = guarded_make(1 << 20);
        to = guarded_make(1 << 16);
        codes = guarded_make(1 << 16);
    }
    for (int n = 0; n < 3000; n++)
        check_lanes(r, f, n % CORES, &from, &to, &codes);
    for (int n = 0; n < 3000; n++)
        check_run(r, f, n % CORES, &from);
}

/* ---- Modes ---- */

static int64_t mode_of(const int64_t *tap, int k, const tarn_mode_rule *rule, int64_t skipped,
                       int64_t none)
{
    int64_t mode = none, flip = (int64_t)rule->flip;
    int most = 0, counted = 0;
    for (int j = 0; j < k; j++) {
        int count = 0;
        if (rule->skips && tap[j] == skipped)
            continue;
        for (int other = 0; other < k; other++)
            count += tap[other] == tap[j];
        if (count > most || (count == most && (tap[j] ^ flip) < (mode ^ flip)))
            mode = tap[j];
        most = count > most ? count : most;
        counted++;
    }
    return rule->skips && counted < rule->min_count ? none : mode;
}

/* Taps end where nothing may be read, or begin there; many share memory. */
static void check_modes(rng *r, const family *f, int width, const memory *m)
{
    static char expected[MOST_BYTES];
    int64_t bytes = core_bytes((tarn_core)width), n = rng_range(r, 1, 150),
            step = rng_range(r, 1, 2);
    int64_t skipped = rng_range(r, -3, 3), none = rng_range(r, -3, 3);
    int k = (int)rng_range(r, 0, rng_range(r, 0, 3) ? 16 : MOST_MODE_TAPS);
    bool pairs = rng_range(r, 0, 1); /* of taps that are neighbours, such as halving an axis has */
    if (rng_range(r, 0, 3) == 0)
        n = f->ops->vector_bytes / bytes;
    tarn_mode_rule rule = {.skips = rng_range(r, 0, 1),
                           .min_count = rng_range(r, 0, MOST_MODE_TAPS + 1)};
    rule.flip = rng_range(r, 0, 1) ? UINT64_MAX << (8 * bytes - 1)
                                   : 0; /* with its sign, as numbers are here */
    put(width, rule.skipped, 0, (number){skipped, 0});
    put(width, rule.none, 0, (number){none, 0});
    const void *row[MOST_MODE_TAPS];
    for (int j = 0; j < k; j++) {
        int64_t size = ((n - 1) * step + 1 + pairs) * bytes;
        if (pairs && j % 2) {
            row[j] = (const char *)row[j - 1] + bytes;
            continue;
        }
        size -= pairs && j + 1 == k ? bytes : 0;
        row[j] = guarded_place(&m->row[j % MOST_ROWS], (size_t)size, rng_range(r, 0, 1));
        fill(r, width, (void *)(uintptr_t)row[j], size, rng_range(r, 0, 7));
    }
    char *to = guarded_place(&m->to, (size_t)(n * bytes), rng_range(r, 0, 1));
    memcpy(expected, m->to.begin, m->to.capacity);
    for (int64_t i = 0; i < n; i++) {
        int64_t tap[MOST_MODE_TAPS];
        for (int j = 0; j < k; j++)
            tap[j] = get(width, row[j], i * step).whole;
        put(width, expected + (to - m->to.begin), i,
            (number){mode_of(tap, k, &rule, skipped, none), 0});
    }
    f->ops->modes[width](to, row, k, &rule, step, n);
    CHECK(memcmp(m->to.begin, expected, m->to.capacity) == 0, "%s modes width %d k %d step %d n %d",
          f->name, width, k, (int)step, (int)n);
}

/* Copies, past the caches and not. */
static void check_copies(rng *r, const family *f, const memory *m)
{
    static char expected[MOST_BYTES];
    for (int64_t bytes = 1; bytes < 300; bytes++) {
        const char *from = guarded_place(&m->row[0], (size_t)bytes, rng_range(r, 0, 1));
        char *to = guarded_place(&m->to, (size_t)bytes, rng_range(r, 0, 1));
        memcpy(expected, m->to.begin, m->to.capacity);
        memcpy(expected + (to - m->to.begin), from, (size_t)bytes);
        (bytes % 2 ? f->ops->copy_past : f->ops->copy)(to, from, bytes);
        CHECK(memcmp(m->to.begin, expected, m->to.capacity) == 0, "%s copies %d", f->name,
              (int)bytes);
    }
}

/* Two rows of n pixels that pick among PLACES, near each other or not; nothing else is written. */
static void check_pick(rng *r, const family *f, const memory *m, int64_t pixel, int64_t n,
                       int behind)
{
    enum { PLACES = 40, MOST_PICKS = 40 };
    static char expected[MOST_BYTES], few[2 * PLACES * 80 + SCRATCH_SLACK], many[sizeof few];
    int32_t picks[MOST_PICKS];
    for (size_t i = 0; i < sizeof few; i++) {
        few[i] = (char)rng_next(r);
        many[i] = (char)rng_next(r);
    }
    int64_t first = rng_range(r, 2, PLACES - 10), bytes = n * pixel,
            gap = rng_range(r, 0, 1) * pixel;
    for (int64_t i = 0; i < n; i++) {
        int64_t place = behind < 0 ? rng_range(r, 0, PLACES - 1) : first + rng_range(r, 0, 2);
        static const int32_t kinds[] = {0, 0, PICK_NONE, PICK_MANY};
        picks[i] = (int32_t)place | kinds[rng_range(r, 0, pixel == 2 ? 2 : 3)];
    }
    char *to = guarded_place(&m->to, (size_t)(2 * bytes + gap), rng_range(r, 0, 1));
    memcpy(expected, m->to.begin, m->to.capacity);
    for (int64_t i = 0; i < 2 * n; i++) {
        int32_t pick = picks[i % n];
        int64_t from = i / n * PLACES * pixel + (pick & PICK_PLACE) * pixel;
        char *cell = expected + (to - m->to.begin) + i / n * gap + i * pixel;
        memcpy(cell, (pick < 0 ? many : few) + from, (size_t)pixel);
        if (pick & PICK_NONE)
            memset(cell, 0, (size_t)pixel);
    }
    f->ops->pick(to, bytes + gap, few, pixel == 2 ? few : many, PLACES * pixel, picks, behind,
                 pixel, n, 2);
    CHECK(memcmp(m->to.begin, expected, m->to.capacity) == 0, "%s picks %d of %d bytes", f->name,
          (int)n, (int)pixel);
}

static void check_picks(rng *r, const family *f, const memory *m)
{
    static const int64_t pixels[] = {2, 4, 8, 12, 16, 28, 32, 36, 64, 72};
    for (size_t p = 0; p < sizeof pixels / sizeof pixels[0]; p++)
        for (int64_t n = 1; n <= 40; n++)
            for (int behind = -1; behind <= 2; behind += 3)
                check_pick(r, f, m, pixels[p], n, behind);
}

static void test_folds(const family *f)
{
    rng r = {7};
    static memory m;
    if (!m.to.begin)
        m = make_memory();
    for (int i = 0; i < 60000; i++) {
        fold_case c = draw(&r, f);
        check_fold(&r, &c, &m);
    }
    check_turns(&r, f);
    check_copies(&r, f, &m);
    check_picks(&r, f, &m);
    check_all_lanes(&r, f);
    for (int n = 0; n < 500 && f->ops->indices; n++)
        check_indices(&r, f);
    for (int i = 0; i < 8000; i++)
        check_modes(&r, f, i % WIDTHS, &m);
}

/* ---- From and to the dtypes ---- */

int main(void)
{
    family found[3];
    int families = find_families(found);
    for (int f = 0; f < families; f++)
        test_folds(&found[f]);
    return finish_checks();
}
