/* Cells that ask their windows: sliding windows, few taps to a cell, few channels. Cells whose
 * numbers differ by whole strides on the outer axes, a *phase*, have the same taps in windows that
 * differ alike. So a phase is a run of vectors: for each of its taps, in the order of S5, the
 * gradients of those windows whose winner is that tap are added. No cell is cleared, and what won
 * makes no difference to the time it takes.
 *
 * Windows are loaded into a box in scratch, winners as wide as gradients, with those before it
 * that read the same cells. Windows that do not exist have a winner that is no tap. Rows of the box
 * follow each other, so that a run goes on over all of them, through margins that nobody reads.
 *
 * Along a row of stride 1 a vector of cells asks the vector of windows that lies so many taps
 * before it. Of longer strides neighbouring cells have the same window: its winner and gradient are
 * picked for each of them, by *patterns*, which repeat.
 */
#include "winners.h"

enum {
    AXES = TARN_MAX_SPATIAL + 1, /* planes, and then space */
    ROOM_BYTES = 24 << 10,
    ALIGNMENT = 64,
    BOX_BYTES = ROOM_BYTES - 4 * (SCRATCH_SLACK + ALIGNMENT),
    LEAST_WINDOWS = 2, /* of a box, on an axis */
    MOST_TERMS = 128,
    MOST_PHASES = 64,
    MOST_PATTERNS = 16,
    PATTERN_BYTES = 64,
    NO_TAP = -1000
};

typedef struct asked_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last;
    int wide; /* 1 if sums are f64 */
    int64_t sum_bytes;
    tarn_axis axis[AXES];
    int64_t stride[OPERANDS][AXES];
    range all[AXES], cells[AXES];   /* of the slab; of the box */
    int64_t back[AXES], most[AXES]; /* windows before a box; of it */
    int64_t pitch[AXES], size;      /* elements of the box from a window to the next, and of all */
    range loaded[AXES];             /* windows of the box that exist, from its first */
    char *winners, *gradients, *sums;
    int64_t first_term[MOST_PHASES + 1];
    tarn_asked_term terms[MOST_TERMS];
    tarn_asked_patterns patterns;
    int64_t base[MOST_PATTERNS];
    _Alignas(ALIGNMENT) char picks[MOST_PATTERNS * PATTERN_BYTES];
    _Alignas(ALIGNMENT) char taps[MOST_PATTERNS * PATTERN_BYTES];
} asked_job;

/* ---- What fits ------------------------------------------------------------------------------ */

static int64_t windows_before(const tarn_axis *axis)
{
    return axis->dilation * (axis->kernel - 1) / axis->stride;
}

/* Of a window: its winner and gradient, and the sums of its stride. */
static int64_t window_bytes(const tarn_problem *p)
{
    return (p->dtype == TARN_F64 ? 8 : 4) * (2 + p->axis[p->spatial - 1].stride);
}

/* Whether a row is one run of elements, or is one pixel. */
static bool rows_are_dense(const tarn_problem *p)
{
    int last = p->spatial - 1;
    return (p->axis[last].size == 1 || p->stride[TARN_GX][last] == p->lanes) &&
           (p->axis[last].out == 1 ||
            (p->stride[OPERAND_SAVED][last] == p->lanes && p->stride[TARN_GY][last] == p->lanes));
}

/* Windows of a row that a cell has at most. */
static int64_t columns_of(const tarn_axis *axis)
{
    return (axis->kernel - 1) / axis->tap_step + 1;
}

/* Vectors of cells after which patterns repeat. */
static int64_t patterns_of(const tarn_problem *p, int64_t lanes)
{
    int64_t run = p->axis[p->spatial - 1].stride * p->lanes, period = run;
    while (period % lanes != 0)
        period += run;
    return period / lanes;
}

static bool can_ask(const tarn_problem *p, const tarn_row_ops *ops)
{
    enum { MOST_BACK = 64 };
    const tarn_axis *last = &p->axis[p->spatial - 1];
    int64_t lanes = ops->vector_bytes / (p->dtype == TARN_F64 ? 8 : 4);
    int64_t terms = last->stride > 1 ? 1 : last->kernel, phases = 1, least = p->lanes;
    int summed = 0;
    if (!rows_are_dense(p) || p->lanes > lanes || p->element_bytes[OPERAND_SAVED] > 1)
        return false;
    for (int a = 0; a < p->spatial; a++) {
        const tarn_axis *axis = &p->axis[a];
        if (axis->adaptive || axis->kernel > MOST_TERMS || axis->stride > MOST_PHASES ||
            axis->dilation > MOST_BACK || windows_before(axis) > MOST_BACK)
            return false;
        least *= LEAST_WINDOWS + windows_before(axis);
        if (axis == last)
            break;
        summed += columns_of(axis) > 1;
        terms *= axis->kernel;
        phases *= axis->stride;
    }
    return summed <= ASKED_SUMS && terms <= MOST_TERMS && phases <= MOST_PHASES &&
           least * window_bytes(p) <= BOX_BYTES &&
           (last->stride == 1 ||
            (ops->pick_windows[0] && (last->dilation == 1 || last->tap_step == 1) && /* are near */
             patterns_of(p, lanes) * columns_of(last) <= MOST_PATTERNS));
}

/* Boxes grow alike on all axes, more or less. */
double tarn_windows_asked(const tarn_problem *p, const tarn_row_ops *ops)
{
    for (int64_t n = BOX_BYTES; n > 0 && can_ask(p, ops); n /= 2) {
        double bytes = (double)(p->lanes * window_bytes(p)), share = 1;
        for (int a = 0; a < p->spatial; a++) {
            double some = (double)min_i64(n, p->axis[a].out);
            double all = some + (double)windows_before(&p->axis[a]);
            bytes *= all;
            share *= all / some;
        }
        if (bytes <= BOX_BYTES)
            return share;
    }
    return 0;
}

/* ---- Terms ---------------------------------------------------------------------------------- */

/* Which of the taps of an axis a number names, the last axis first; then what is left of it. */
static int64_t next_tap(const tarn_axis *axis, int64_t *rest)
{
    int64_t tap = *rest % axis->kernel;
    *rest /= axis->kernel;
    return tap;
}

/* The sums that end between two taps: those of the axes behind the last one that they differ on but
 * for itself, if windows overlap there. */
static int ending_sums(const asked_job *j, int axes, int64_t tap, int64_t next)
{
    int ends = 0;
    for (int a = axes - 1; a >= 0; a--) {
        tap /= j->axis[a].kernel;
        next /= j->axis[a].kernel;
        ends += tap != next && columns_of(&j->axis[a]) > 1;
    }
    return ends;
}

/* The taps of each phase on the first axes, so that windows are in increasing order. */
static void list_terms(asked_job *j)
{
    bool picks = j->axis[j->last].stride > 1;
    int axes = picks ? j->last : j->last + 1;
    int64_t phases = 1, taps = 1, n = 0;
    for (int a = 0; a < axes; a++) {
        phases *= j->axis[a].stride;
        taps *= j->axis[a].kernel;
    }
    for (int64_t phase = 0; phase < phases; phase++) {
        tarn_asked_term *before = NULL;
        int64_t number = 0;
        j->first_term[phase] = n;
        for (int64_t tap = taps - 1; tap >= 0; tap--) {
            int64_t rest = tap, of = phase, offset = 0;
            bool belongs = true;
            for (int a = axes - 1; a >= 0; a--) {
                const tarn_axis *axis = &j->axis[a];
                int64_t away = next_tap(axis, &rest) * axis->dilation;
                belongs &= away % axis->stride == of % axis->stride;
                offset += away / axis->stride * j->pitch[a];
                of /= axis->stride;
            }
            if (!belongs)
                continue;
            if (before)
                before->ends = ending_sums(j, axes, number, tap);
            before = &j->terms[n++];
            *before =
                (tarn_asked_term){.offset = -offset,
                                  .tap = (int32_t)(picks ? tap * j->axis[j->last].kernel : tap),
                                  .ends = ASKED_SUMS};
            number = tap;
        }
    }
    j->first_term[phases] = n;
}

static void put_lane(const asked_job *j, char *vectors, int64_t vector, int64_t lane, int64_t value)
{
    put_integer(vectors + vector * j->ops->vector_bytes + lane * j->sum_bytes, (uint64_t)value,
                j->sum_bytes);
}

/* What a vector of cells picks in a row: of term m, the m-th of the windows that a cell may have,
 * in increasing order. */
static void list_pattern(asked_job *j, int64_t pattern, int64_t m)
{
    const tarn_axis *axis = &j->axis[j->last];
    int64_t lanes = j->ops->vector_bytes / j->sum_bytes, pixel = j->p->lanes;
    int64_t vector = pattern * j->patterns.columns + m, at[ALIGNMENT], tap[ALIGNMENT];
    int64_t cell = pattern * lanes / pixel, channel = pattern * lanes % pixel;
    int64_t least = INT64_MAX;
    for (int64_t k = 0, end; k < lanes; k = end, cell++, channel = 0) {
        int64_t phase = cell % axis->stride, first = 0;
        while (first < axis->tap_step && first * axis->dilation % axis->stride != phase)
            first++;
        int64_t its_tap = first + (j->patterns.columns - 1 - m) * axis->tap_step;
        bool none = first == axis->tap_step || its_tap >= axis->kernel;
        int64_t window = (cell - its_tap * axis->dilation) / axis->stride * pixel + channel;
        end = min_i64(k + pixel - channel, lanes);
        least = none ? least : min_i64(least, window);
        for (int64_t i = k; i < end; i++) {
            tap[i] = none ? NO_TAP : its_tap;
            at[i] = window + i - k;
        }
    }
    j->base[vector] = least == INT64_MAX ? 0 : least;
    for (int64_t k = 0; k < lanes; k++) {
        put_lane(j, j->picks, vector, k, tap[k] == NO_TAP ? 0 : at[k] - least);
        put_lane(j, j->taps, vector, k, tap[k]);
    }
}

static void list_patterns(asked_job *j)
{
    int64_t lanes = j->ops->vector_bytes / j->sum_bytes;
    j->patterns = (tarn_asked_patterns){.count = patterns_of(j->p, lanes),
                                        .columns = columns_of(&j->axis[j->last]),
                                        .base = j->base,
                                        .picks = j->picks,
                                        .taps = j->taps};
    j->patterns.step = j->patterns.count * lanes / j->axis[j->last].stride;
    for (int64_t pattern = 0; pattern < j->patterns.count; pattern++)
        for (int64_t m = 0; m < j->patterns.columns; m++)
            list_pattern(j, pattern, m);
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

static bool box_fits(asked_job *j)
{
    int64_t room = BOX_BYTES / window_bytes(j->p);
    j->size = j->p->lanes;
    for (int a = j->last; a >= 0; a--) {
        j->pitch[a] = j->size;
        j->size *= min_i64(j->most[a] + j->back[a], room + 1);
        if (j->size > room)
            return false;
    }
    return true;
}

/* The windows whose strides cells [lo,hi) lie in. */
static range strides_of(const tarn_axis *axis, range cells)
{
    return (range){floor_div(cells.lo + axis->lo, axis->stride),
                   floor_div(cells.hi - 1 + axis->lo, axis->stride) + 1};
}

/* Cuts outer axes rather than inner ones, whose cells lie together, but not so short that windows
 * before the box are most of it; then what has most windows for those before it. */
static void cut_box(asked_job *j, int64_t *cells)
{
    enum { MUCH = 4 };
    for (int a = 0; a <= j->last; a++)
        j->most[a] = length(strides_of(&j->axis[a], j->all[a]));
    for (int a = 0; a <= j->last; a++)
        while (!box_fits(j) && j->most[a] > max_i64(MUCH * j->back[a], 1))
            j->most[a] -= ceil_div(j->most[a], 4);
    while (!box_fits(j)) {
        int cut = j->last;
        for (int a = 1; a < j->last; a++)
            if (j->most[a] > LEAST_WINDOWS &&
                j->most[a] * (j->back[cut] + 1) >= j->most[cut] * (j->back[a] + 1))
                cut = a;
        j->most[cut] = j->most[cut] / 2 + 1;
    }
    for (int a = 0; a <= j->last; a++) {
        const tarn_axis *axis = &j->axis[a];
        bool whole = j->most[a] == length(strides_of(axis, j->all[a]));
        int64_t some = (j->most[a] - (axis->stride > 1)) * axis->stride; /* wherever they begin */
        cells[a] = whole ? length(j->all[a]) : max_i64(some, 1);
    }
}

/* Boxes of the slab in hand, and the number of cells of each. */
static void start_boxes(asked_job *j, char *room, int64_t *cells)
{
    cut_box(j, cells);
    list_terms(j);
    int64_t bytes = ceil_div(j->size * j->sum_bytes + SCRATCH_SLACK, ALIGNMENT) * ALIGNMENT;
    j->winners = room;
    j->gradients = j->winners + bytes;
    j->sums = j->gradients + bytes;
    memset(room, 0, (size_t)(2 * bytes));
    j->loaded[0] = (range){0, -1};
}

/* ---- A box ---------------------------------------------------------------------------------- */

/* The next of the places [0,n) on the first axes, the last one first; false at the end. */
static bool advance(int64_t *at, const range *n, int axes)
{
    for (int a = axes - 1; a >= 0; a--) {
        if (++at[a] < length(n[a]))
            return true;
        at[a] = 0;
    }
    return false;
}

/* Reads rows of windows, from the first that exists on, into the box. */
static void load_rows(const asked_job *j, int operand, const int64_t *first, char *box)
{
    const int64_t *step = j->stride[operand];
    int64_t bytes = j->p->element_bytes[operand], at[AXES] = {0};
    int64_t n = length(j->loaded[j->last]) * j->p->lanes, rows = length(j->loaded[j->last - 1]);
    tarn_read_pixels *read = operand == OPERAND_SAVED ? j->ops->read_winners[j->wide]
                                                      : j->ops->read_gradients[j->p->dtype];
    do {
        int64_t from = 0, to = 0;
        for (int a = 0; a <= j->last; a++) {
            from += (first[a] + j->loaded[a].lo + at[a]) * step[a];
            to += (j->loaded[a].lo + at[a]) * j->pitch[a];
        }
        read(box + to * j->sum_bytes, j->pitch[j->last - 1], j->slab->base[operand] + from * bytes,
             rows > 1 ? step[j->last - 1] : 0, n, rows);
    } while (advance(at, j->loaded, j->last - 1));
}

/* Loads the windows that read the box, if any. Others are marked, unless they are as before. */
static bool load_windows(asked_job *j, const range *strides)
{
    int64_t first[AXES];
    range read[AXES];
    for (int a = 0; a <= j->last; a++) {
        first[a] = strides[a].lo - j->back[a];
        range windows = tarn_windows_reading(&j->axis[a], j->cells[a]);
        read[a] = (range){windows.lo - first[a], windows.hi - first[a]};
        if (length(read[a]) <= 0)
            return false;
    }
    size_t bytes = (size_t)(j->last + 1) * sizeof read[0];
    if (memcmp(j->loaded, read, bytes) != 0)
        memset(j->winners, 0xff, (size_t)(j->size * j->sum_bytes));
    memcpy(j->loaded, read, bytes);
    load_rows(j, OPERAND_SAVED, first, j->winners);
    load_rows(j, TARN_GY, first, j->gradients);
    return true;
}

/* The rows of cells of a phase: `sums` has theirs, from the first stride on; or zeros. */
static void store_phase(const asked_job *j, const range *strides, int64_t phase, bool zero)
{
    const int64_t *step = j->stride[TARN_GX];
    int64_t bytes = j->p->element_bytes[TARN_GX], across = j->axis[j->last].stride;
    range cells = j->cells[j->last], some[AXES]; /* strides with such a cell */
    int64_t first[AXES], at[AXES] = {0}, n = length(cells) * j->p->lanes;
    for (int a = j->last - 1; a >= 0; phase /= j->axis[a--].stride) {
        const tarn_axis *axis = &j->axis[a];
        first[a] = phase % axis->stride - axis->lo;
        some[a] = (range){ceil_div(j->cells[a].lo - first[a], axis->stride),
                          floor_div(j->cells[a].hi - 1 - first[a], axis->stride) + 1};
        if (length(some[a]) <= 0)
            return;
    }
    int row = j->last - 1;
    int64_t rows = length(some[row]), down = rows > 1 ? j->axis[row].stride * step[row] : 0;
    int64_t skipped = cells.lo + j->axis[j->last].lo - strides[j->last].lo * across;
    do {
        int64_t from = skipped * j->p->lanes, to = cells.lo * step[j->last];
        for (int a = 0; a < j->last; a++) {
            int64_t o = some[a].lo + at[a];
            from += (o - strides[a].lo) * j->pitch[a] * across;
            to += (o * j->axis[a].stride + first[a]) * step[a];
        }
        char *gx = j->slab->base[TARN_GX] + to * bytes;
        for (int64_t k = 0; k < rows && zero; k++)
            memset(gx + k * down * bytes, 0, (size_t)(n * bytes));
        if (!zero)
            j->ops->write_gradients[j->p->dtype](gx, down, j->sums + from * j->sum_bytes,
                                                 j->pitch[row] * across, n, rows);
    } while (advance(at, some, row));
}

static void run_box(asked_job *j)
{
    range strides[AXES];
    int64_t first = 0, n = j->p->lanes, phases = 1;
    for (int a = 0; a <= j->last; a++) {
        strides[a] = strides_of(&j->axis[a], j->cells[a]);
        first += j->back[a] * j->pitch[a] * j->sum_bytes;
        n += (length(strides[a]) - 1) * j->pitch[a];
        phases *= a < j->last ? j->axis[a].stride : 1;
    }
    bool asks = load_windows(j, strides);
    for (int64_t phase = 0; phase < phases; phase++) {
        const tarn_asked_term *term = j->terms + j->first_term[phase];
        int64_t terms = asks ? j->first_term[phase + 1] - j->first_term[phase] : 0;
        if (terms > 0 && j->axis[j->last].stride > 1)
            j->ops->pick_windows[j->wide](j->sums, j->winners + first, j->gradients + first,
                                          &j->patterns, term, terms, n * j->axis[j->last].stride);
        else if (terms > 0)
            j->ops->ask_windows[j->wide](j->sums, j->winners + first, j->gradients + first, term,
                                         terms, n);
        store_phase(j, strides, phase, terms == 0);
    }
}

/* ---- The job -------------------------------------------------------------------------------- */

static void set_axes(asked_job *j, const range *box)
{
    const tarn_problem *p = j->p;
    j->last = p->spatial;
    j->axis[0] = (tarn_axis){.kernel = 1, .stride = 1, .dilation = 1, .tap_step = 1};
    for (int k = 0; k < OPERANDS && p->leading > 0; k++)
        j->stride[k][0] = p->lead_stride[k][p->leading - 1];
    for (int a = 1; a <= j->last; a++) {
        j->axis[a] = p->axis[a - 1];
        j->all[a] = box ? box[a - 1] : (range){0, j->axis[a].size};
        for (int k = 0; k < OPERANDS; k++)
            j->stride[k][a] = p->stride[k][a - 1];
        j->back[a] = windows_before(&j->axis[a]);
    }
    if (j->axis[j->last].stride > 1)
        list_patterns(j);
}

void tarn_ask_windows(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char room[ROOM_BYTES];
    tarn_slab slab;
    asked_job j;
    memset(&j, 0, offsetof(asked_job, first_term));
    j.p = p;
    j.ops = ops;
    j.slab = &slab;
    j.wide = p->dtype == TARN_F64;
    j.sum_bytes = j.wide ? 8 : 4;
    int64_t cells[AXES] = {0};
    range units = {0, 0};
    set_axes(&j, box);
    while (begin < end) {
        int64_t size = p->axis[0].size, planes = max_i64(tarn_whole_planes(p, begin, end), 1);
        next_slab(p, t, size, &begin, end, &slab);
        begin += (planes - 1) * size;
        bool alike = units.lo == slab.lo && units.hi == slab.hi && planes == j.axis[0].size;
        units = (range){slab.lo, slab.hi};
        j.axis[0].size = j.axis[0].out = planes;
        j.all[0] = (range){0, planes};
        j.all[1] = units;
        if (!alike)
            start_boxes(&j, room, cells);
        tarn_first_box(j.cells, j.all, cells, j.last + 1);
        do
            run_box(&j);
        while (tarn_next_box(j.cells, j.all, cells, j.last + 1));
    }
}
