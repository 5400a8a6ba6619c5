/* Folds in boxes: see fold.h. Plain C; elements are added by row operations. */
#include "fold.h"

#include <math.h>

/* ---- Lists ---------------------------------------------------------------------------------- */

static tarn_span list_of(const fold_axis *a, int64_t result)
{
    return a->backward ? windows_of_cell(a->axis, a->axis->out <= 2, result)
                       : window_taps(a->axis, result);
}

/* Results so far apart have lists that are alike, */
static int64_t period_of(const fold_axis *a)
{
    return a->irregular ? a->count : a->backward ? min_i64(a->axis->stride, a->count) : 1;
}

/* but so many sources further on. A stride that no result takes may be too long to compute with. */
static int64_t stride_of(const fold_axis *a)
{
    return a->backward || period_of(a) == a->count ? 1 : a->axis->stride;
}

/* How many irregular results from number q of the box on have the list of that one: cells. */
static int64_t results_alike(const fold_axis *a, int64_t q, const tarn_span *list)
{
    const int64_t cell = a->from + q;
    if (!a->irregular || !a->backward)
        return 1;
    return min_i64(next_windows(a->axis, a->axis->out <= 2, cell, list) - cell, a->count - q);
}

/* Sets the block to the entries [entry,entry+entries) of every list; false if none of their
 * sources exists. */
static bool set_block(fold_axis *a, int64_t entry, int64_t entries)
{
    const int64_t period = period_of(a), stride = stride_of(a);
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (int64_t q = 0, alike; q < period; q += alike) {
        tarn_span list = list_of(a, a->from + q);
        int64_t last = min_i64(list.n, entry + entries) - 1;
        alike = results_alike(a, q, &list);
        if (last < entry)
            continue;
        start = min_i64(start, span_at(&list, entry));
        end = max_i64(end, span_at(&list, last) + (a->count - 1 - q) / period * stride + 1);
    }
    a->entry = entry;
    a->entries = entries;
    a->start = start;
    a->width = start < end ? end - start : 0;
    return start < end && start < a->sources && end > 0;
}

/* ---- Sums ----------------------------------------------------------------------------------- */

enum { TILE_BYTES = 128, RUN_BYTES = 1024, LEAST_CHANNELS = 4, MOST_SPARSE = 8, LONG_STRIDE = 32 };

/* More entries than an operation takes at once: first blocks of them, then their sums. */
static void fold_blocks(const fold_sum *sum, char *to, const char *from, int64_t k,
                        int64_t tap_step, int64_t channels)
{
    alignas(16) char tile[MOST_SUMMED * TILE_BYTES + SCRATCH_SLACK];
    const int64_t bytes = sum->bytes, most = TILE_BYTES / bytes, block = MOST_SUMMED * tap_step,
                  whole = k / MOST_SUMMED, rest = k % MOST_SUMMED;
    for (int64_t c = 0; c < channels; c += most, from += most * bytes) {
        const int64_t n = min_i64(most, channels - c);
        sum->pixels(tile, most, from, MOST_SUMMED, tap_step, block, n, whole);
        if (rest > 0)
            sum->pixels(tile + whole * TILE_BYTES, 0, from + whole * block * bytes, rest, tap_step,
                        0, n, 1);
        sum->pixels(to + c * bytes, 0, tile, whole + (rest > 0), most, 0, n, 1);
    }
}

/* As sum_pixels, of up to LONGEST_BLOCK entries. */
static void fold_pixels(const fold_sum *sum, char *to, int64_t to_step, const char *from, int64_t k,
                        int64_t tap_step, int64_t pixel_step, int64_t channels, int64_t n)
{
    const int64_t bytes = sum->bytes;
    const bool dense = channels == 1 && tap_step == 1 && sum->run;
    if (k <= MOST_SUMMED)
        sum->pixels(to, to_step, from, k, tap_step, pixel_step, channels, n);
    else
        for (int64_t o = 0; o < n; o++, to += to_step * bytes, from += pixel_step * bytes)
            if (dense)
                sum->run(to, from, k);
            else
                fold_blocks(sum, to, from, k, tap_step, channels);
}

/* Pixels of few elements, `from_step` apart, to where others are, `to_step` apart. */
static void copy_pixels(int64_t bytes, char *to, int64_t to_step, const char *from,
                        int64_t from_step, int64_t channels, int64_t n)
{
#define COPY(type)                                                                                 \
    for (int64_t c = 0; c < channels; c++)                                                         \
        for (int64_t o = 0; o < n; o++)                                                            \
            ((type *)(void *)to)[o * to_step + c] =                                                \
                ((const type *)(const void *)from)[o * from_step + c];
    typedef struct {
        double pair[2];
    } two;
    if (to_step == channels && from_step == channels) {
        memcpy(to, from, (size_t)(n * channels * bytes));
    } else if (bytes == sizeof(double)) {
        COPY(double)
    } else {
        COPY(two)
    }
#undef COPY
}

/* The same for pixels of any size. Few channels are summed for all columns, in vectors, and then
 * picked, unless too many would be left out. */
static void fold_phase(const fold_sum *sum, char *to, int64_t to_step, const char *from, int64_t k,
                       int64_t tap_step, int64_t pixel_step, int64_t channels, int64_t n)
{
    alignas(16) char run[RUN_BYTES + SCRATCH_SLACK];
    const int64_t bytes = sum->bytes, room = RUN_BYTES / bytes;
    if (channels >= LEAST_CHANNELS || n == 1 || pixel_step > MOST_SPARSE * channels) {
        fold_pixels(sum, to, to_step, from, k, tap_step, pixel_step, channels, n);
        return;
    }
    if (k == 1) {
        copy_pixels(bytes, to, to_step, from, pixel_step, channels, n);
        return;
    }
    const int64_t most = (room - channels) / pixel_step + 1;
    for (int64_t o = 0; o < n; o += most) {
        const int64_t some = min_i64(most, n - o);
        fold_pixels(sum, run, 0, from + o * pixel_step * bytes, k, tap_step, 0,
                    (some - 1) * pixel_step + channels, 1);
        copy_pixels(bytes, to + o * to_step * bytes, to_step, run, pixel_step, channels, some);
    }
}

/* Makes n of what is there once, by copies of copies. */
static void repeat(char *to, int64_t bytes, int64_t n)
{
    for (int64_t known = 1; known < n; known *= 2)
        memcpy(to + known * bytes, to, (size_t)(min_i64(known, n - known) * bytes));
}

/* Folds one axis: `before` rows of `width` sources become as many of `count` results, each of
 * `behind` elements. */
static void fold_along(fold *f, int depth, const char *sources, char *out)
{
    const fold_axis *a = axis_at(f, depth);
    const int64_t period = period_of(a), stride = stride_of(a), bytes = f->sum->bytes;
    int64_t before = 1, behind = f->lanes;
    for (int d = 0; d < f->axes; d++) {
        const fold_axis *other = axis_at(f, d);
        if (other != a)
            *(other < a ? &before : &behind) *= d < depth ? other->width : other->count;
    }
    const int64_t to_pitch = a->count * behind, pitch = a->width * behind;
    for (int64_t q = 0, alike; q < period; q += alike) {
        const tarn_span list = list_of(a, a->from + q);
        const int64_t n = min_i64(list.n - a->entry, a->entries),
                      results = (a->count - 1 - q) / period + 1;
        char *to = out + q * behind * bytes;
        alike = results_alike(a, q, &list);
        if (n <= 0) { /* of cells between windows, of a block beyond the end */
            for (int64_t b = 0; b < before; b++)
                for (int64_t k = 0; k < results; k++)
                    f->absent(f, 0, to + (b * to_pitch + k * period * behind) * bytes,
                              alike * behind);
            continue;
        }
        const int64_t tap_step = list.step * behind;
        const char *from = sources + (span_at(&list, a->entry) - a->start) * behind * bytes;
        if (results == 1 || (period == 1 && stride == 1))
            fold_pixels(f->sum, to, to_pitch, from, n, tap_step, pitch, results * behind, before);
        else
            for (int64_t b = 0; b < before; b++)
                fold_phase(f->sum, to + b * to_pitch * bytes, period * behind,
                           from + b * pitch * bytes, n, tap_step, stride * behind, behind, results);
        for (int64_t b = 0; b < before && alike > 1; b++)
            repeat(to + b * to_pitch * bytes, behind * bytes, alike);
    }
}

static void fold_halves(fold *f, int depth, int64_t entry, int64_t n, char *out);

/* The sources of a block, all axes below folded. */
static void fill_sources(fold *f, int depth, char *to)
{
    const fold_axis *a = axis_at(f, depth);
    if (a->start >= a->sources || a->start + a->width <= 0)
        f->absent(f, f->backward ? 0 : 1, to, array_size(f, depth));
    else if (depth + 1 == f->axes)
        f->load(f, to);
    else
        fold_halves(f, depth + 1, 0, axis_at(f, depth + 1)->longest, to);
}

/* Whether what is kept is of the box in hand but for the first axis, whose sources come later. */
static bool is_below(const fold *f, const kept_sources *kept)
{
    bool below = kept->valid && kept->of.from[0] <= f->axis[0].start;
    for (int k = 1; below && k < f->axes; k++) {
        const fold_axis *a = &f->axis[k];
        below = kept->of.from[k] == (f->backward ? a->from : a->start) &&
                kept->of.count[k] == (f->backward ? a->count : a->width);
    }
    return below;
}

static char *slide_sources(fold *f, int depth)
{
    fold_axis *a = &f->axis[0];
    kept_sources *kept = &f->kept[f->terms];
    const fold_axis whole = *a;
    const int64_t bytes = array_size(f, depth) / a->width * f->sum->bytes;
    const int64_t end = is_below(f, kept) ? kept->of.from[0] + kept->of.count[0] : INT64_MIN;
    int64_t first = a->start, known = 0;
    if (end >= first) {
        known = min_i64(end, a->start + a->width) - first;
        memmove(kept->array, kept->array + (first - kept->of.from[0]) * bytes,
                (size_t)(known * bytes));
    }
    a->width += a->start - (first + known);
    a->start = first + known;
    if (a->width > 0)
        fill_sources(f, depth, kept->array + known * bytes);
    *a = whole;
    kept->valid = true;
    for (int k = 0; k < f->axes; k++) {
        const fold_axis *other = &f->axis[k];
        kept->of.from[k] = f->backward && k > 0 ? other->from : other->start;
        kept->of.count[k] = f->backward && k > 0 ? other->count : other->width;
    }
    kept->of.from[0] = first;
    kept->of.count[0] = whole.start + whole.width - first;
    return kept->array + (whole.start - first) * bytes;
}

static char *sources_of(fold *f, int depth)
{
    if (f->slides && axis_at(f, depth) == &f->axis[0])
        return slide_sources(f, depth);
    char *array = take(f->room, array_size(f, depth), f->sum->bytes);
    fill_sources(f, depth, array);
    return array;
}

/* The entries [entry,entry+n) of an axis, all axes below it folded. */
static void fold_halves(fold *f, int depth, int64_t entry, int64_t n, char *out)
{
    fold_axis *a = axis_at(f, depth);
    const int64_t size = array_size(f, depth - 1), used = f->room->used;
    if (!set_block(a, entry, n)) {
        for (int d = depth + 1; d < f->axes; d++)
            n *= axis_at(f, d)->longest;
        f->absent(f, a->irregular ? 0 : n, out, size); /* irregular: beyond the end of all lists */
    } else if (n > a->block) {
        const int64_t half = split_point(n), bytes = f->sum->bytes;
        char *both = take(f->room, 2 * size, bytes);
        fold_halves(f, depth, entry, half, both);
        fold_halves(f, depth, entry + half, n - half, both + size * bytes);
        f->sum->pixels(out, 0, both, 2, size, 0, size, 1);
    } else {
        fold_along(f, depth, sources_of(f, depth), out);
    }
    f->room->used = used;
}

void *tarn_fold_sums(fold *f, int terms, const fold_sum *sum)
{
    f->terms = terms;
    f->sum = sum;
    char *out = take(f->room, array_size(f, -1), sum->bytes);
    fold_halves(f, 0, 0, axis_at(f, 0)->longest, out);
    return out;
}

/* ---- Planning ------------------------------------------------------------------------------- */

/* What a box, a row and a pixel of interleaved planes cost beside their sources, in sources. */
enum { COST_OF_A_BOX = 150, COST_OF_A_ROW = 40, COST_OF_A_PIXEL = 4 };

/* What is kept serves twice, so a fold had better slide, unless that costs as much more. */
#define SLIDES_WELL 1.3

static double levels_of(const fold_axis *a)
{
    double levels = 0;
    for (int64_t n = a->longest; n > a->block; n -= n / 2)
        levels++;
    return levels;
}

/* Elements of all arrays. */
static double room_of(fold *f, const fold_arrays *arrays)
{
    double size = (double)f->lanes, room = 0;
    for (int d = 0; d < f->axes; d++)
        size *= (double)axis_at(f, d)->most;
    room += size * arrays->results;
    for (int d = 0; d < f->axes; d++) {
        const fold_axis *a = axis_at(f, d);
        room += 2 * size * levels_of(a);
        size /= (double)a->most;
        if (f->slides && a == &f->axis[0])
            room += size * planned_width(a) * arrays->terms;
        size *= planned_width(a);
        room += f->slides && a == &f->axis[0] ? 0 : size;
    }
    return room;
}

void tarn_keep_sources(fold *f, int terms, int64_t bytes)
{
    int64_t size = f->lanes * (int64_t)planned_width(&f->axis[0]);
    for (int k = 1; k < f->axes; k++)
        size *= f->backward ? f->axis[k].most : (int64_t)planned_width(&f->axis[k]);
    for (int k = 0; k < MOST_TERMS && f->slides; k++)
        if (terms >> k & 1)
            f->kept[k].array = take(f->room, size, bytes);
    forget_sources(f);
}

/* The cells that are read for the sources of a box on an axis, be they windows. */
static double planned_reads(const fold_axis *a, bool slides)
{
    const tarn_axis *axis = a->axis;
    const double width = slides ? a->pace * (double)a->most : planned_width(a);
    if (!a->backward)
        return width;
    const double pace =
        axis->adaptive ? (double)axis->whole / (double)axis->windows : (double)axis->stride;
    const double extent =
        (double)(axis->kernel - 1) * (axis->adaptive ? 1 : (double)axis->dilation);
    const double reads = slides ? width * pace : (width - 1) * pace + extent + 1;
    return reads < (double)axis->size ? reads : (double)axis->size;
}

/* What is read for a result. */
static double planned_cost(fold *f)
{
    double rows = 1, results = (double)f->lanes, loads = 1, pixels = 1;
    for (int k = 0; k < f->axes; k++) {
        const fold_axis *a = &f->axis[k];
        const double reads = planned_reads(a, k == 0 && f->slides);
        loads *= (double)a->longest / (double)a->block;
        pixels *= reads;
        rows *= k < f->axes - 1 ? reads : 1;
        results *= (double)a->most;
    }
    const double pixel = (double)f->lanes + (f->lanes < f->planes ? COST_OF_A_PIXEL : 0);
    return loads * (pixels * pixel + rows * COST_OF_A_ROW + COST_OF_A_BOX) / results;
}

/* The ways to make a box smaller: on each axis three quarters of the results, in whole multiples of
 * `align`, or blocks of half as many entries; or half the lanes. False if that is not less. */
static bool cut(fold *f, int way, int64_t least_lanes)
{
    fold_axis *a = &f->axis[way / 2];
    const int64_t lanes = f->lanes, most = a->most, fewer = most - ceil_div(most, 4);
    if (way == 2 * f->axes) {
        f->lanes = max_i64((lanes + 1) / 2, least_lanes);
        return f->lanes < lanes;
    }
    if (way % 2 == 0) {
        a->most = most > a->align ? max_i64(fewer / a->align, 1) * a->align : 1;
        return a->most < most;
    }
    if (f->slides || a->block == 1)
        return false;
    a->block = split_point(a->block);
    return true;
}

/* The way to save room that costs the least time for it; -1 if there is none. */
static int cheapest_cut(fold *f, int64_t least_lanes, const fold_arrays *arrays, double *price)
{
    const double cost = planned_cost(f), room = room_of(f, arrays);
    const int64_t lanes = f->lanes;
    int cheapest = -1;
    *price = INFINITY;
    for (int way = 0; way <= 2 * f->axes; way++) {
        const int a = (int)min_i64(way / 2, f->axes - 1); /* the last way cuts lanes */
        const fold_axis now = f->axis[a];
        const double saved = cut(f, way, least_lanes) ? room - room_of(f, arrays) : 0;
        const double now_price = saved > 0 ? (planned_cost(f) - cost) / saved : INFINITY;
        if (now_price < *price) {
            *price = now_price;
            cheapest = way;
        }
        f->axis[a] = now;
        f->lanes = lanes;
    }
    return cheapest;
}

/* Cuts boxes of all results until they fit, and on as long as that makes results cheaper; returns
 * what one costs then, INFINITY if none fits. */
static double plan_boxes(fold *f, bool slides, int64_t least_lanes, double room,
                         const fold_arrays *arrays)
{
    f->lanes = max_i64(min_i64(f->planes, LANES_TOGETHER), least_lanes);
    f->slides = slides;
    for (int k = 0; k < f->axes; k++) {
        fold_axis *a = &f->axis[k];
        a->most = a->results;
        a->block = min_i64(a->longest, LONGEST_BLOCK);
        if (slides && a->block < a->longest)
            return INFINITY;
    }
    for (;;) {
        double price;
        const int way = cheapest_cut(f, least_lanes, arrays, &price);
        const bool fits = room_of(f, arrays) <= room;
        if (fits && !(price < 0))
            return planned_cost(f);
        if (way < 0)
            return INFINITY;
        cut(f, way, least_lanes);
    }
}

void tarn_plan_fold(fold *f, int64_t least_lanes, int64_t lanes, double room,
                    const fold_arrays *arrays)
{
    f->planes = lanes;
    fold slides = *f;
    const double cost = plan_boxes(f, false, least_lanes, room, arrays);
    if (plan_boxes(&slides, true, least_lanes, room, arrays) < SLIDES_WELL * cost)
        *f = slides;
}

void tarn_plan_folds(fold *cells, fold *windows, int64_t lanes, double room,
                     const fold_arrays *arrays)
{
    const double few = room * 3 / 8; /* for cells */
    for (windows->lanes = min_i64(lanes, LANES_TOGETHER);
         room_of(windows, arrays + 1) > room - few;)
        windows->lanes = (windows->lanes + 1) / 2;
    tarn_plan_fold(cells, 1, windows->lanes, few, arrays);
    for (int k = 0; k < cells->axes; k++) /* no more are asked for at once */
        windows->axis[k].results =
            min_i64(windows->axis[k].results, (int64_t)planned_width(&cells->axis[k]) + 1);
    tarn_plan_fold(windows, cells->lanes, cells->lanes, room - few, arrays + 1);
}

/* Whether many neighbours are read by the same windows: these are added up once for all of them. */
static bool has_long_runs(const tarn_axis *axis)
{
    return axis->dilation == 1 && axis->stride >= LONG_STRIDE;
}

void tarn_start_fold(fold *f, const tarn_problem *p, bool backward)
{
    f->axes = p->spatial;
    f->backward = backward;
    f->slides = false;
    for (int k = 0; k < p->spatial; k++) {
        const tarn_axis *axis = &p->axis[k];
        fold_axis *a = &f->axis[k];
        *a = (fold_axis){.axis = axis,
                         .backward = backward,
                         .results = axis->out,
                         .sources = axis->size,
                         .align = 1,
                         .most = 1,
                         .block = 1};
        a->irregular = axis->adaptive || (backward && (axis->out <= 2 || has_long_runs(axis)));
        if (backward && !a->irregular) {
            a->align = axis->stride;
            a->origin = -axis->lo;
        }
        a->longest = axis->kernel;
        a->step = axis->adaptive ? 1 : axis->dilation;
        a->pace =
            axis->adaptive ? (double)axis->whole / (double)axis->windows : (double)axis->stride;
        if (!backward)
            continue;
        a->results = axis->size;
        a->sources = axis->out;
        a->longest = axis->adaptive      ? ceil_div(axis->windows, axis->whole) + 1
                     : axis->stride == 1 ? axis->kernel
                                         : (axis->kernel - 1) / axis->tap_step + 1;
        a->step = axis->adaptive ? 1 : axis->stride == 1 ? axis->dilation : axis->window_step;
        a->pace = 1 / a->pace;
        if (axis->out <= 2) {
            a->longest = axis->out;
            a->step = 1;
            a->pace = (double)axis->out / (double)axis->size;
        }
    }
}
