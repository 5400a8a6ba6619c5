/* Row operations of the gradients of max and min, of every family that this CPU has, beside loops
 * over single elements, between guard pages. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "row_families.h"
#include "scalar.h"

#include <math.h>

enum { ROOM = 1 << 16, POISON = 0x5a };

static guarded memory[4];

/* Sums are f64 for f64, and f32 otherwise. */
static bool is_double(int dtype)
{
    return dtype == TARN_F64;
}

static double get_sum(bool wide, const void *from, int64_t i)
{
    float single;
    double number;
    memcpy(&single, (const char *)from + i * 4, 4);
    if (!wide)
        return (double)single;
    memcpy(&number, (const char *)from + i * 8, 8);
    return number;
}

static void put_sum(bool wide, void *to, int64_t i, double value)
{
    float single = (float)value;
    if (wide)
        memcpy((char *)to + i * 8, &value, 8);
    else
        memcpy((char *)to + i * 4, &single, 4);
}

static double get_element(int dtype, const void *from, int64_t i)
{
    uint16_t bits;
    if (dtype <= TARN_F32)
        return get_sum(is_double(dtype), from, i);
    memcpy(&bits, (const char *)from + i * 2, 2);
    return dtype == TARN_F16 ? f16_widen(bits) : bf16_widen(bits);
}

static void put_element(int dtype, void *to, int64_t i, double value)
{
    uint16_t bits = dtype == TARN_F16 ? f16_narrow(value) : bf16_narrow(value);
    if (dtype <= TARN_F32)
        put_sum(is_double(dtype), to, i,
                is_double(dtype) ? f64_narrow(value) : (double)f32_narrow(value));
    else
        memcpy((char *)to + i * 2, &bits, 2);
}

/* Whole numbers, whose sums are exact in no order but the right one if `harsh`. */
static double random_number(rng *r, bool harsh)
{
    double value = (double)rng_range(r, -999, 999) * (rng_next(r) % 8 ? 1 : -0.0);
    return harsh ? ldexp(value, (int)rng_range(r, -30, 30)) : value;
}

/* One step as the operations do it: in f32 each sum is rounded. */
static double add(bool wide, double a, double b)
{
    return wide ? a + b : (double)((float)a + (float)b);
}

/* Memory of so many bytes, flush with a guard; all of it is poison. */
static char *poisoned(rng *r, int k, int64_t bytes)
{
    memset(memory[k].begin, POISON, memory[k].capacity);
    return guarded_place(&memory[k], (size_t)bytes, rng_next(r) % 2);
}

static bool same_bits(bool wide, double a, double b)
{
    float x = (float)a, y = (float)b;
    return wide ? memcmp(&a, &b, 8) == 0 : memcmp(&x, &y, 4) == 0;
}

static int64_t lanes_of(const family *f, bool wide)
{
    return f->ops->vector_bytes / (wide ? 8 : 4);
}

/* ---- Pixels to scratch and back ---- */

static void check_pixels(rng *r, const family *f, int dtype)
{
    bool wide = is_double(dtype);
    int64_t channels = rng_range(r, 1, 40), n = rng_range(r, 1, 9), size = wide ? 8 : 4;
    int64_t bytes = (int64_t)tarn_dtype_size((tarn_dtype)dtype);
    int64_t step = channels + rng_range(r, 0, 2), scratch_step = channels + rng_range(r, 0, 2);
    int64_t last = (n - 1) * scratch_step + channels, cells = (n - 1) * step + channels;
    char *pixels = poisoned(r, 0, cells * bytes),
         *scratch = poisoned(r, 1, last * size + SCRATCH_SLACK);
    for (int64_t i = 0; i < cells; i++)
        put_element(dtype, pixels, i, random_number(r, true));
    f->ops->read_gradients[dtype](scratch, scratch_step, pixels, step, channels, n);
    bool good = true;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < channels; c++)
            good &= same_bits(wide, get_sum(wide, scratch, i * scratch_step + c),
                              get_element(dtype, pixels, i * step + c));
    CHECK(good, "%s reads %d pixels of %d, dtype %d", f->name, (int)n, (int)channels, dtype);

    static const double odd[] = {NAN, -NAN, INFINITY, 1e30, 65519, 65520, 3e-5, -1e-8, 1e-40, -0.0};
    for (int64_t i = 0; i < last; i++)
        put_sum(wide, scratch, i, rng_next(r) % 4 ? random_number(r, true) : odd[rng_next(r) % 10]);
    static char expected[ROOM];
    pixels = poisoned(r, 0, cells * bytes);
    char *copy = expected + (pixels - memory[0].begin);
    memset(expected, POISON, sizeof expected);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < channels; c++)
            put_element(dtype, copy, i * step + c, get_sum(wide, scratch, i * scratch_step + c));
    f->ops->write_gradients[dtype](pixels, step, scratch, scratch_step, channels, n);
    CHECK(memcmp(expected, memory[0].begin, memory[0].capacity) == 0,
          "%s writes %d pixels of %d, dtype %d", f->name, (int)n, (int)channels, dtype);
}

static void check_winners(rng *r, const family *f, bool wide)
{
    int64_t channels = rng_range(r, 1, 40), n = rng_range(r, 1, 9), size = wide ? 8 : 4;
    int64_t step = channels + rng_range(r, 0, 2), cells = (n - 1) * step + channels;
    char *pixels = poisoned(r, 0, cells);
    char *scratch = poisoned(r, 1, n * channels * size + SCRATCH_SLACK);
    for (int64_t i = 0; i < cells; i++)
        pixels[i] = (char)rng_next(r);
    f->ops->read_winners[wide](scratch, channels, pixels, step, channels, n);
    bool good = true;
    for (int64_t i = 0; i < n * channels; i++) {
        int64_t wanted = (unsigned char)pixels[i / channels * step + i % channels], found = 0;
        int32_t narrow;
        memcpy(&narrow, scratch + i * 4, 4);
        if (wide)
            memcpy(&found, scratch + i * 8, 8);
        good &= wanted == (wide ? found : narrow);
    }
    CHECK(good, "%s reads winners of %d pixels of %d", f->name, (int)n, (int)channels);
}

/* ---- Cells that ask ---- */

static void check_ask_pixels(rng *r, const family *f, int dtype)
{
    enum { COLUMNS = 6, WINDOWS = 12 };
    bool wide = is_double(dtype);
    int64_t channels = lanes_of(f, wide) + rng_range(r, 0, 90), rows = rng_range(r, 0, 5),
            n = rng_range(r, 1, COLUMNS);
    int64_t bytes = (int64_t)tarn_dtype_size((tarn_dtype)dtype), windows = WINDOWS * channels;
    int32_t first[COLUMNS], count[COLUMNS], tap[COLUMNS], tap_step[COLUMNS];
    tarn_asked_pixels asked = {.rows = rows,
                               .first = first,
                               .count = count,
                               .tap = tap,
                               .tap_step = tap_step,
                               .saved_step = channels,
                               .gy_step = channels,
                               .window_step = rng_range(r, 1, 3)};
    char *saved = poisoned(r, 0, rows * windows), *gy = poisoned(r, 1, rows * windows * bytes);
    for (int64_t i = 0; i < rows * windows; i++) {
        saved[i] = (char)rng_range(r, 0, 8);
        put_element(dtype, gy, i, random_number(r, false));
    }
    for (int64_t row = 0; row < rows; row++) {
        asked.saved[row] = (const uint8_t *)saved + row * windows;
        asked.gy[row] = gy + row * windows * bytes;
        asked.row_tap[row] = (int)rng_range(r, 0, 3);
        asked.ends[row] = row + 1 == rows || rng_next(r) % 2;
    }
    for (int64_t c = 0; c < n; c++) {
        first[c] = (int32_t)rng_range(r, 0, 3);
        count[c] = (int32_t)rng_range(r, 0, 3);
        tap[c] = (int32_t)rng_range(r, 0, 5);
        tap_step[c] = (int32_t)rng_range(r, 0, 2);
    }
    int64_t step = channels + rng_range(r, 0, 2), cells = (n - 1) * step + channels;
    static char expected[ROOM];
    char *to = poisoned(r, 2, cells * bytes), *copy = expected + (to - memory[2].begin);
    memset(expected, POISON, sizeof expected);
    for (int64_t i = 0; i < n * channels; i++) {
        int64_t column = i / channels, c = i % channels;
        double total = 0, plane = 0;
        for (int64_t row = 0; row < rows; row++) {
            double sum = 0;
            for (int64_t k = 0; k < count[column]; k++) {
                int64_t at = (first[column] + k * asked.window_step) * channels + c;
                int number = asked.row_tap[row] + tap[column] - (int)k * tap_step[column];
                if (asked.saved[row][at] == (uint8_t)number)
                    sum = add(wide, sum, get_element(dtype, asked.gy[row], at));
            }
            plane = add(wide, plane, sum);
            if (asked.ends[row])
                total = add(wide, total, plane), plane = 0;
        }
        put_element(dtype, copy, column * step + c, total);
    }
    f->ops->ask_pixels[dtype](to, step, &asked, channels, n);
    CHECK(memcmp(expected, memory[2].begin, memory[2].capacity) == 0,
          "%s asks for %d pixels of %d, dtype %d", f->name, (int)n, (int)channels, dtype);
}

enum { TERMS = 9, APART = 20 };

/* Winners and gradients of so many windows. */
static void draw_windows(rng *r, bool wide, int64_t windows, char **winners, char **gy)
{
    int64_t size = wide ? 8 : 4;
    *winners = poisoned(r, 0, windows * size + SCRATCH_SLACK);
    *gy = poisoned(r, 1, windows * size + SCRATCH_SLACK);
    for (int64_t i = 0; i < windows; i++) {
        put_integer(*winners + i * size, (uint64_t)rng_range(r, 0, 3), size);
        put_sum(wide, *gy, i, random_number(r, true));
    }
}

/* The gradient of a window, if a tap won it. */
static double won(bool wide, const char *winners, const char *gy, int64_t at, int64_t tap)
{
    int64_t size = wide ? 8 : 4;
    char wanted[8];
    put_integer(wanted, (uint64_t)tap, size);
    return memcmp(winners + at * size, wanted, (size_t)size) == 0 ? get_sum(wide, gy, at) : 0.0;
}

static void check_ask_windows(rng *r, const family *f, bool wide)
{
    int64_t n = rng_range(r, 1, 100), size = wide ? 8 : 4, count = rng_range(r, 0, TERMS);
    tarn_asked_term terms[TERMS];
    char *winners, *gy, *to = poisoned(r, 2, (n + lanes_of(f, wide)) * size);
    draw_windows(r, wide, n + APART, &winners, &gy);
    for (int64_t k = 0; k < count; k++)
        terms[k] =
            (tarn_asked_term){rng_range(r, 0, APART), (int32_t)rng_range(r, 0, 3),
                              k + 1 == count ? ASKED_SUMS : (int32_t)rng_range(r, 0, ASKED_SUMS)};
    f->ops->ask_windows[wide](to, winners, gy, terms, count, n);
    bool good = true;
    for (int64_t i = 0; i < n; i++) {
        double total = 0, plane = 0, sum = 0;
        for (int64_t k = 0; k < count; k++) {
            sum = add(wide, sum, won(wide, winners, gy, i + terms[k].offset, terms[k].tap));
            if (terms[k].ends > 0)
                plane = add(wide, plane, sum), sum = 0;
            if (terms[k].ends > 1)
                total = add(wide, total, plane), plane = 0;
        }
        good &= same_bits(wide, total, get_sum(wide, to, i));
    }
    CHECK(good, "%s asks %d windows for %d cells of %d bytes", f->name, (int)count, (int)n,
          (int)size);
}

/* Cells that pick their windows out of vectors of them. */
static void check_pick_windows(rng *r, const family *f, bool wide)
{
    enum { PATTERNS = 3, COLUMNS = 3, LANES = 16, MOST = PATTERNS * COLUMNS * LANES };
    int64_t n = rng_range(r, 1, 100), size = wide ? 8 : 4, lanes = lanes_of(f, wide);
    int64_t count = rng_range(r, 1, 4), base[PATTERNS * COLUMNS], pick[MOST], tap[MOST];
    char picks[MOST * 8], taps[MOST * 8];
    tarn_asked_term terms[TERMS];
    tarn_asked_patterns by = {.count = rng_range(r, 1, PATTERNS),
                              .columns = rng_range(r, 1, COLUMNS),
                              .step = rng_range(r, 0, 9),
                              .base = base,
                              .picks = picks,
                              .taps = taps};
    char *winners, *gy, *to = poisoned(r, 2, (n + lanes) * size);
    draw_windows(r, wide, 10 * 25 + 2 * APART + LANES, &winners, &gy);
    for (int64_t m = 0; m < by.count * by.columns; m++)
        base[m] = rng_range(r, 0, APART);
    for (int64_t m = 0; m < by.count * by.columns * lanes; m++) {
        pick[m] = rng_range(r, 0, lanes - 1);
        tap[m] = rng_range(r, 0, 2);
        put_integer(picks + m * size, (uint64_t)pick[m], size);
        put_integer(taps + m * size, (uint64_t)tap[m], size);
    }
    for (int64_t k = 0; k < count; k++)
        terms[k] = (tarn_asked_term){rng_range(r, 0, APART), (int32_t)rng_range(r, 0, 1),
                                     k + 1 == count || rng_next(r) % 2 ? ASKED_SUMS : 0};
    f->ops->pick_windows[wide](to, winners, gy, &by, terms, count, n);
    bool good = true;
    for (int64_t i = 0; i < n; i++) {
        double total = 0, plane = 0;
        int64_t vector = i / lanes % by.count, ahead = i / lanes / by.count * by.step;
        for (int64_t k = 0; k < count; k++) {
            double sum = 0;
            for (int64_t m = vector * by.columns; m < (vector + 1) * by.columns; m++) {
                int64_t lane = m * lanes + i % lanes;
                int64_t at = base[m] + ahead + terms[k].offset + pick[lane];
                sum = add(wide, sum, won(wide, winners, gy, at, tap[lane] + terms[k].tap));
            }
            plane = add(wide, plane, sum);
            if (terms[k].ends > 0)
                total = add(wide, total, plane), plane = 0;
        }
        good &= same_bits(wide, total, get_sum(wide, to, i));
    }
    CHECK(good, "%s picks windows for %d cells of %d bytes, %d columns, %d rows", f->name, (int)n,
          (int)size, (int)by.columns, (int)count);
}

/* ---- Sums ---- */

static void check_sums(rng *r, const family *f, bool wide)
{
    int64_t n = rng_range(r, 1, 70), size = wide ? 8 : 4;
    static char expected[ROOM];
    char *to = poisoned(r, 0, n * size), *more = poisoned(r, 1, n * size);
    for (int64_t i = 0; i < n; i++) {
        put_sum(wide, to, i, random_number(r, true));
        put_sum(wide, more, i, random_number(r, true));
    }
    memcpy(expected, memory[0].begin, memory[0].capacity);
    for (int64_t i = 0; i < n; i++)
        put_sum(wide, expected + (to - memory[0].begin), i,
                add(wide, get_sum(wide, to, i), get_sum(wide, more, i)));
    f->ops->add_sums[wide](to, more, n);
    CHECK(memcmp(expected, memory[0].begin, memory[0].capacity) == 0, "%s adds %d sums", f->name,
          (int)n);
}

static void check_tame(rng *r, const family *f, bool wide)
{
    const double most = wide ? 0x1p900 : 0x1p60;
    const double wild[] = {most, -most, INFINITY, -INFINITY, NAN};
    int64_t n = rng_range(r, 1, 70);
    char *gy = poisoned(r, 0, n * (wide ? 8 : 4));
    for (int64_t i = 0; i < n; i++)
        put_sum(wide, gy, i,
                rng_next(r) % 2 ? random_number(r, true)
                                : nextafterf(1, 0) * most * (i % 2 ? 1 : -1));
    CHECK(f->ops->are_tame[wide](gy, n), "%s: %d tame ones", f->name, (int)n);
    put_sum(wide, gy, rng_range(r, 0, n - 1), wild[rng_next(r) % 5]);
    CHECK(!f->ops->are_tame[wide](gy, n), "%s: a wild one of %d", f->name, (int)n);
}

/* ---- Places ---- */

/* Taps of up to four axes, the last one first. */
typedef struct {
    int axes;
    int64_t kernel[4], least[4], most[4];
} geometry;

static int64_t coordinate(const geometry *g, int64_t tap, int a)
{
    for (int k = 0; k < a; k++)
        tap /= g->kernel[k];
    return tap % g->kernel[a];
}

static bool is_inside(const geometry *g, int64_t tap)
{
    for (int a = 0; a < g->axes; a++) {
        int64_t c = coordinate(g, tap, a);
        if (c < g->least[a] || c > g->most[a])
            return false;
    }
    return true;
}

/* Fields of 7 bits for kernels up to 64: six, and the one of `signs`. */
static tarn_placing placing_of(rng *r, geometry *g, bool wide)
{
    int64_t quotient = 1, most = wide ? 12 : g->axes == 2 ? 15 : g->axes == 3 ? 6 : 3;
    tarn_placing by = {.axes = g->axes, .clipped = g->axes > 3 || rng_next(r) % 2};
    by.all_key = 2 * (int32_t)rng_range(r, -9, 9);
    by.all_place = (int32_t)rng_range(r, -99, 99);
    for (int a = 0; a < g->axes; quotient *= g->kernel[a++]) {
        g->kernel[a] = rng_range(r, 1, most);
        g->least[a] = by.clipped ? rng_range(r, 0, g->kernel[a] - 1) : 0;
        g->most[a] = by.clipped ? rng_range(r, g->least[a], g->kernel[a] - 1) : g->kernel[a] - 1;
        tarn_placed_axis *axis = &by.axis[a];
        int64_t below = a > 0 ? g->kernel[a - 1] << 7 * (a - 1) : 0;
        *axis = (tarn_placed_axis){.divisor = (int32_t)quotient,
                                   .reciprocal = (int32_t)((65536 + quotient - 1) / quotient),
                                   .place = (int32_t)rng_range(r, -50, 50),
                                   .key = a < 2 ? 2 * (int32_t)rng_range(r, -5, 5) : 0,
                                   .field = (int32_t)((1 << 7 * a) - below),
                                   .inverse = 1 / (float)quotient};
        by.signs |= 1 << (7 * a + 6);
        by.all_least |= a > 0 ? (int32_t)g->least[a] << 7 * a : 0;
        by.all_most |= a > 0 ? (int32_t)g->most[a] << 7 * a : 0;
    }
    by.taps = (int32_t)quotient;
    return by;
}

static void check_places(rng *r, const family *f, bool wide)
{
    geometry g = {.axes = (int)rng_range(r, 2, 4)};
    tarn_placing by = placing_of(r, &g, wide);
    int64_t n = f->ops->vector_bytes / 4 + rng_range(r, 0, 60);
    int32_t key[128], place[128], least[128], most[128];
    by.key = key, by.place = place, by.least = least, by.most = most;
    char *codes = poisoned(r, 0, n * (wide ? 4 : 1));
    char *keys = poisoned(r, 1, n * 4), *places = poisoned(r, 2, n * 4);
    for (int64_t i = 0; i < n; i++) {
        int64_t code = rng_next(r) % 8 ? rng_range(r, 0, by.taps - 1)
                       : wide          ? rng_range(r, -3, 2 * by.taps)
                                       : rng_range(r, 0, 255);
        put_integer(codes + i * (wide ? 4 : 1), (uint64_t)code, wide ? 4 : 1);
        key[i] = 2 * (int32_t)rng_range(r, -99, 99);
        place[i] = (int32_t)rng_range(r, -999, 999);
        least[i] = (int32_t)g.least[0];
        most[i] = (int32_t)g.most[0];
    }
    f->ops->find_places[wide]((int32_t *)(void *)keys, (int32_t *)(void *)places, codes, &by, n);
    for (int64_t i = 0; i < n; i++) {
        int32_t tap = 0, found_key, found_place, quotient = 0, at = place[i] + by.all_place;
        memcpy(&tap, codes + i * (wide ? 4 : 1), wide ? 4 : 1);
        memcpy(&found_key, keys + i * 4, 4);
        memcpy(&found_place, places + i * 4, 4);
        bool valid = tap >= 0 && tap < by.taps, inside = valid && is_inside(&g, tap);
        int32_t wanted = key[i] + by.all_key + inside;
        for (int a = 0; a < g.axes && valid; a++) {
            quotient = tap / by.axis[a].divisor;
            at += quotient * by.axis[a].place;
            wanted += quotient * by.axis[a].key;
        }
        CHECK(found_key == wanted && found_place == at, "%s places tap %d of %d, axes %d%s",
              f->name, (int)tap, (int)by.taps, g.axes, by.clipped ? ", clipped" : "");
    }
}

/* ---- Runs ---- */

enum { MOST_RUN_WINDOWS = 90, MOST_LAG = 20, FAR = 64, AROUND = FAR + MOST_LAG };

typedef struct {
    int64_t n, lag, rounds;
    bool wide, falls, splits, wild; /* what must be told: a key that falls, a key of two places */
    int32_t keys[MOST_RUN_WINDOWS + 2 * AROUND], places[MOST_RUN_WINDOWS + 2 * AROUND];
    double gy[MOST_RUN_WINDOWS];
} run_case;

/* Keys rise along each chain; a run has at most rounds + 1 windows where that counts. */
static void draw_runs(rng *r, const family *f, run_case *c)
{
    c->n = rng_range(r, 1, MOST_RUN_WINDOWS);
    c->lag = rng_range(r, 1, MOST_LAG);
    c->rounds = rng_next(r) % 2 ? 0 : rng_range(r, 1, min_i64(12, FAR / c->lag));
    int64_t behind = c->lag + f->ops->vector_bytes / 4;
    for (int64_t i = -AROUND; i < c->n + behind; i++) {
        int32_t *key = &c->keys[AROUND + i], before = i < 0 ? -8 : key[-c->lag];
        int64_t same = 1;
        while (i - same * c->lag >= 0 && key[-same * c->lag] == before)
            same++;
        bool stays =
            i >= c->lag && i < c->n && rng_next(r) % 3 && (c->rounds == 0 || same <= c->rounds);
        *key = i < 0       ? -8
               : i >= c->n ? 1000
               : stays     ? before
                           : before + 1 + (int32_t)rng_range(r, 0, 3);
        c->places[AROUND + i] = *key * 3 + 7;
    }
    c->wild = c->falls = c->splits = false;
    for (int64_t i = 0; i < c->n; i++)
        c->gy[i] = random_number(r, true);
}

static void spoil_runs(rng *r, run_case *c)
{
    static const double wild[] = {INFINITY, NAN};
    int64_t at = rng_range(r, 0, c->n - 1);
    int32_t *key = &c->keys[AROUND + at];
    switch (rng_range(r, 0, 5)) {
    case 0:
        c->gy[at] = wild[rng_next(r) % 2];
        c->wild = true;
        break;
    case 1: /* a key below the one before it */
        c->falls = at >= c->lag && at + c->lag < c->n;
        *key = c->falls ? key[-c->lag] - 2 : *key;
        break;
    case 2:
        c->splits = at >= c->lag && *key == key[-c->lag];
        c->places[AROUND + at] += c->splits;
        break;
    default:
        break;
    }
}

/* The sum of the run up to window i, in its order. */
static double run_sum(const run_case *c, int64_t i)
{
    bool follows = i >= c->lag && c->keys[AROUND + i] == c->keys[AROUND + i - c->lag];
    return add(c->wide, follows ? run_sum(c, i - c->lag) : 0, c->gy[i]);
}

static void check_runs(rng *r, const family *f, bool wide)
{
    run_case c = {.wide = wide};
    draw_runs(r, f, &c);
    spoil_runs(r, &c);
    int64_t size = wide ? 8 : 4, more = f->ops->vector_bytes / size, behind = more + c.lag;
    char *gy = poisoned(r, 0, (c.lag * c.rounds + c.lag + c.n + behind) * size) +
               (c.lag * c.rounds + c.lag) * size;
    char *sums = poisoned(r, 1, (c.lag + c.n + behind) * size) + c.lag * size;
    memset(sums - c.lag * size, 0, (size_t)((c.lag + c.n + behind) * size));
    for (int64_t i = 0; i < c.n; i++)
        put_sum(wide, gy, i, c.gy[i]);
    tarn_runs of = {.keys = c.keys + AROUND,
                    .places = c.places + AROUND,
                    .gy = gy,
                    .sums = c.rounds ? gy : sums,
                    .lag = c.lag,
                    .rounds = c.rounds,
                    .away = (int32_t)rng_range(r, -9, 9)};
    bool good = true, told = false, wrong = c.falls || c.splits;
    f->ops->sum_runs[wide](sums, &of, c.n);
    for (int64_t i = 0; i < c.n && !c.wild && !wrong; i++)
        good &= same_bits(wide, get_sum(wide, sums, i), run_sum(&c, i));
    CHECK(good, "%s sums runs of %d windows, lag %d", f->name, (int)c.n, (int)c.lag);

    char *list = poisoned(r, 2, (c.n + more) * 4), *values = poisoned(r, 3, (c.n + more) * size);
    int64_t count = f->ops->list_runs[wide]((int32_t *)(void *)list, values, &of, c.n, &told),
            wanted = 0;
    CHECK(wrong == (count < 0) && told == c.wild, "%s: %d runs, lag %d, wrong %d, wild %d", f->name,
          (int)count, (int)c.lag, wrong, c.wild);
    for (int64_t i = 0; i < c.n && !wrong && !c.wild; i++) {
        int32_t key = c.keys[AROUND + i], place;
        if (key % 2 == 0 || key == c.keys[AROUND + i + c.lag])
            continue;
        memcpy(&place, list + wanted * 4, 4);
        good &= wanted < count && place == c.places[AROUND + i] + of.away &&
                same_bits(wide, get_sum(wide, values, wanted), run_sum(&c, i));
        wanted++;
    }
    CHECK(good && (wrong || c.wild || wanted == count), "%s lists %d of %d runs, lag %d, rounds %d",
          f->name, (int)count, (int)wanted, (int)c.lag, (int)c.rounds);
}

/* ---- Elements a step apart ---- */

static void check_take(rng *r, const family *f, int width)
{
    int64_t bytes = INT64_C(1) << width, n = rng_range(r, 1, 90), step = rng_range(r, 1, 5);
    static char expected[ROOM];
    char *from = poisoned(r, 0, ((n - 1) * step + 1) * bytes), *to = poisoned(r, 1, n * bytes);
    for (int64_t i = 0; i < ((n - 1) * step + 1) * bytes; i++)
        from[i] = (char)rng_next(r);
    memcpy(expected, memory[1].begin, memory[1].capacity);
    for (int64_t i = 0; i < n; i++)
        memcpy(expected + (to - memory[1].begin) + i * bytes, from + i * step * bytes,
               (size_t)bytes);
    f->ops->take[width](to, from, step, n);
    CHECK(memcmp(expected, memory[1].begin, memory[1].capacity) == 0,
          "%s takes %d of %d bytes, step %d", f->name, (int)n, (int)bytes, (int)step);
}

static void test_family(const family *f)
{
    rng r = {11};
    for (int k = 0; k < 4000; k++) {
        bool wide = k % 2;
        check_pixels(&r, f, k % (TARN_BF16 + 1));
        check_winners(&r, f, wide);
        check_ask_pixels(&r, f, k % (TARN_BF16 + 1));
        check_ask_windows(&r, f, wide);
        if (f->ops->pick_windows[wide])
            check_pick_windows(&r, f, wide);
        check_sums(&r, f, wide);
        check_tame(&r, f, wide);
        check_places(&r, f, wide);
        check_runs(&r, f, wide);
        check_take(&r, f, k % WIDTHS);
    }
}

int main(void)
{
    family found[3];
    int families = find_families(found);
    for (int k = 0; k < 4; k++)
        memory[k] = guarded_make(ROOM);
    for (int n = 0; n < families; n++)
        test_family(&found[n]);
    return finish_checks();
}
