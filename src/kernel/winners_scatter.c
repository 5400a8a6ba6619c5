/* Scatter: any windows. Each window's gradient is added to the cell that won it, window by window,
 * and still in the order of S5, which wants a sum of its own for each axis: over the windows of a
 * row, of these sums over the rows of a plane, and so on. These are the *levels*: arrays of one
 * layout, so that a cell has one place in all of them. A row of windows is added to the last
 * level; where an axis ends, its level is *folded* into the one before and is zero again. That
 * takes place by place, by reading the winners once more, or all places that may have been
 * reached in vectors, whichever is less work. A place folded twice adds +0, which changes
 * nothing. Axes on which no cell has two windows need no level.
 *
 * The levels are a box of cells, as many as fit scratch. It slides along the first axis, so that
 * windows are read once; if it has not all cells of the other axes, some are read for two boxes.
 * Taps that a window has outside the box are told by comparing the numbers of a tap on all axes
 * at once, as fields of an integer; columns have margins instead.
 */
#include "winners.h"

enum {
    BOX_BYTES = 40 << 10,
    LITTLE_BOX_BYTES = 22 << 10, /* beside winners that were found */
    ALIGNMENT = 64,
    MOST_TAPS = 256, /* of tables: winners of one byte */
    MOST_KNOWN = 16, /* adaptive windows of an axis whose places are kept */
    MOST_ROWS = 16,
    MOST_WINDOWS = 384, /* in hand, each channel by itself */
    FIELD_BITS = 16,
    MOST_FIELDS = 64 / FIELD_BITS
};
#define FIELD_SIGNS UINT64_C(0x8000800080008000)

/* How places are found: by tables; the same for windows that may have taps outside; or by
 * division. */
typedef enum { BY_TABLE, BY_CHECKED_TABLE, BY_DIVISION } placing;

/* The windows in hand on the axes so far. */
typedef struct position {
    int64_t at;           /* place of their first taps */
    int64_t codes, gy;    /* elements from that of window 0, ..., 0 */
    uint64_t least, most; /* taps inside, by field */
    bool inside;          /* all of them */
} position;

/* A window on one axis: its taps [first,end] are in the box. */
typedef struct scatter_window {
    int64_t o, at, start, first, end;
    uint64_t least, most; /* first and end, in their field */
    bool inside, clipped; /* all taps of a window that has as many as any; not all */
} scatter_window;

/* Where a window begins, and its taps, on an axis. */
typedef struct extent {
    int64_t o, start, taps;
} extent;

typedef struct scatter_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last, levels, level_axis[TARN_MAX_SPATIAL];
    bool dense[TARN_MAX_SPATIAL]; /* the level is folded in vectors */
    bool divides, slides;
    bool flat; /* channels of a row of windows are windows of their own */
    int64_t room_bytes, sum_bytes, taps, planes; /* of the box on the first axis */
    tarn_axis axis[TARN_MAX_SPATIAL]; /* the problem's; of one, another of one cell before it */
    int64_t stride[OPERANDS][TARN_MAX_SPATIAL];
    range all[TARN_MAX_SPATIAL], cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL], channels;
    int64_t size[TARN_MAX_SPATIAL], pitch[TARN_MAX_SPATIAL], margin, pixel; /* columns; channels */
    char *sums[TARN_MAX_SPATIAL];
    scatter_window outer[TARN_MAX_SPATIAL], row[MOST_ROWS];
    range rows, rows_cells; /* those listed, and in what box */
    range columns;          /* whose tables are there */
    int64_t first_column;   /* the cell that the first one in hand begins with, to divide */
    int32_t column[MOST_WINDOWS], column_taps[MOST_WINDOWS];
    int32_t offset[MOST_TAPS];
    uint64_t fields[MOST_TAPS];
    extent known[MOST_FIELDS][MOST_KNOWN];
    int64_t nowhere; /* the place of those outside */
    int32_t place[MOST_WINDOWS];
    double gradients[MOST_WINDOWS];
} scatter_job;

static int64_t step_of_taps(const tarn_axis *axis)
{
    return axis->adaptive ? 1 : axis->dilation;
}

/* Places of adaptive windows take long divisions: they are kept. */
static extent extent_at(scatter_job *j, int axis, int64_t o)
{
    const tarn_axis *along = &j->axis[axis];
    if (!along->adaptive)
        return (extent){o, o * along->stride - along->lo, along->kernel};
    extent *known = &j->known[axis % MOST_FIELDS][o % MOST_KNOWN], found = *known;
    if (known->o != o || axis >= MOST_FIELDS) {
        found = (extent){o, adaptive_start(along, o), adaptive_end(along, o)};
        found.taps -= found.start;
        if (axis < MOST_FIELDS)
            *known = found;
    }
    return found;
}

/* ---- Places --------------------------------------------------------------------------------- */

static int field_of(const scatter_job *j, int axis)
{
    return FIELD_BITS * (j->last - axis);
}

/* By number of a tap: its fields, and how far it is from the first one. Numbers that name no tap
 * have fields that are outside of every window. */
static void fill_tables(scatter_job *j)
{
    int64_t at[TARN_MAX_SPATIAL] = {0};
    for (int64_t tap = 0; tap < j->taps; tap++) {
        int64_t offset = 0;
        uint64_t fields = 0;
        for (int a = 0; a <= j->last; a++) {
            offset += at[a] * step_of_taps(&j->axis[a]) * j->pitch[a];
            fields |= (uint64_t)at[a] << field_of(j, a);
        }
        j->offset[tap] = (int32_t)offset;
        j->fields[tap] = fields;
        for (int a = j->last; a >= 0 && ++at[a] == j->axis[a].kernel; a--)
            at[a] = 0;
    }
    for (int64_t tap = j->taps; tap < MOST_TAPS; tap++) {
        j->offset[tap] = 0;
        j->fields[tap] = ~FIELD_SIGNS;
    }
}

static inline bool are_inside(uint64_t fields, uint64_t least, uint64_t most)
{
    return ((((fields | FIELD_SIGNS) - least) & ((most | FIELD_SIGNS) - fields)) & FIELD_SIGNS) ==
           FIELD_SIGNS;
}

/* The place of a window's winner but for its channel, or -1: any winner, any window. */
static int64_t divided_place(const scatter_job *j, int64_t row, int64_t code, int64_t column)
{
    int64_t place = 0;
    if (code < 0 || code >= j->taps)
        return -1;
    uint32_t rest = (uint32_t)code;
    for (int a = j->last; a >= 0; a--) {
        uint32_t kernel = (uint32_t)j->axis[a].kernel, next = rest / kernel;
        const scatter_window *window = a == j->last - 1 ? &j->row[row] : &j->outer[a];
        int64_t tap = rest - next * kernel,
                cell = (a < j->last ? window->start : j->first_column + j->column[column]) +
                       tap * step_of_taps(&j->axis[a]);
        bool outside =
            a < j->last ? tap < window->first || tap > window->end
                        : cell < 0 || cell >= length(j->cells[a]) || tap >= j->column_taps[column];
        if (outside)
            return -1;
        place += cell * j->pitch[a];
        rest = next;
    }
    return place;
}

/* ---- Rows of windows ------------------------------------------------------------------------ */

/* Some rows, or a piece of one, that differ by j->row alone. */
typedef struct scatter_rows {
    const char *codes;
    int64_t code_step, code_down; /* elements */
    int64_t rows, n, channels;
    int64_t at; /* place of the first column */
    uint64_t least, most;
} scatter_rows;

/* The places of all winners; those that are no tap inside have the one behind the box. */
static inline __attribute__((always_inline)) void find_places(scatter_job *j, const scatter_rows *r,
                                                              placing how, int64_t channels)
{
    const int32_t *restrict column = j->column, *restrict offset = j->offset;
    int32_t *restrict place = j->place, nowhere = (int32_t)j->nowhere;
    const int taps = (int)j->taps;
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t code_at = row * r->code_down;
        const uint8_t *restrict codes = (const uint8_t *)r->codes + code_at;
        int32_t at = (int32_t)(r->at + j->row[row].at);
        uint64_t least = r->least | j->row[row].least, most = r->most | j->row[row].most;
        for (int64_t o = 0; o < r->n; o++)
            for (int64_t c = 0; c < channels; c++) {
                int64_t nth = o * r->code_step + c;
                if (how == BY_DIVISION) {
                    int64_t found =
                        divided_place(j, row, load_winner(j->p, r->codes, code_at + nth), o);
                    *place++ = found < 0 ? nowhere : (int32_t)(found + c);
                    continue;
                }
                int code = codes[nth];
                bool inside = how == BY_TABLE
                                  ? code < taps
                                  : are_inside(j->fields[code], least,
                                               most | (uint64_t)(j->column_taps[o] - 1));
                int32_t found = at + column[o] + offset[code] + (int32_t)c;
                *place++ = inside ? found : nowhere;
            }
    }
}

static void find_some_places(scatter_job *j, const scatter_rows *r, placing how)
{
    if (how == BY_DIVISION)
        find_places(j, r, BY_DIVISION, r->channels);
    else if (how == BY_CHECKED_TABLE && r->channels == 1)
        find_places(j, r, BY_CHECKED_TABLE, 1);
    else if (how == BY_CHECKED_TABLE)
        find_places(j, r, BY_CHECKED_TABLE, r->channels);
    else if (r->channels == 1)
        find_places(j, r, BY_TABLE, 1);
    else
        find_places(j, r, BY_TABLE, r->channels);
}

/* Adds gradients of rows of n windows to the last level, if there are any; then what that or
 * another level has to the one before, and clears it. */
#define ADD_WINDOWS(t)                                                                             \
    static void add_##t(const scatter_job *j, const void *gradients, int folds, int64_t rows,      \
                        int64_t n)                                                                 \
    {                                                                                              \
        t *restrict last = (t *)(void *)j->sums[j->levels - 1];                                    \
        const int32_t *restrict place = j->place;                                                  \
        const t *restrict gy = gradients;                                                          \
        for (int64_t row = 0; row < rows; row++, place += n) {                                     \
            for (int64_t o = 0; o < n && gy; o++)                                                  \
                last[place[o]] += gy[o];                                                           \
            gy = gy ? gy + n : NULL;                                                               \
            if (folds < 0)                                                                         \
                continue;                                                                          \
            t *restrict to = (t *)(void *)j->sums[folds];                                          \
            t *restrict from = (t *)(void *)j->sums[folds + 1];                                    \
            for (int64_t o = 0; o < n; o++) {                                                      \
                to[place[o]] += from[place[o]];                                                    \
                from[place[o]] = 0;                                                                \
            }                                                                                      \
        }                                                                                          \
    }
ADD_WINDOWS(float)
ADD_WINDOWS(double)
#undef ADD_WINDOWS

/* Where some columns of windows begin, counted from the first: as places, or as cells, to divide.
 * As a rule the same as in the row before. Returns the place of the first. */
static int64_t find_columns(scatter_job *j, range columns)
{
    bool adaptive = j->axis[j->last].adaptive;
    int64_t first = extent_at(j, j->last, columns.lo).start, channels = j->flat ? j->pixel : 1;
    int64_t known = adaptive && columns.lo != j->columns.lo ? 0 : length(j->columns);
    for (int64_t o = columns.lo + known, n = known * channels; o < columns.hi; o++) {
        extent window = extent_at(j, j->last, o);
        for (int64_t c = 0; c < channels; c++, n++) {
            j->column[n] = (int32_t)((window.start - first) * (j->divides ? 1 : j->pixel) + c);
            j->column_taps[n] = (int32_t)window.taps;
        }
    }
    if (length(columns) > known)
        j->columns = columns;
    first -= j->cells[j->last].lo;
    return j->divides ? first : (first + j->margin) * j->pixel;
}

/* The gradients of rows of windows, as sums are and one behind the other. */
static const void *read_rows(scatter_job *j, const char *gy, int64_t rows, int64_t n)
{
    const tarn_problem *p = j->p;
    int64_t bytes = p->element_bytes[TARN_GY], channels = j->pixel, run = n * channels;
    int64_t step = n > 1 ? j->stride[TARN_GY][j->last] : channels,
            down = rows > 1 ? j->stride[TARN_GY][j->last - 1] : run;
    bool one = step == channels;
    if (one && down == run && bytes == j->sum_bytes)
        return gy;
    for (int64_t row = 0; row < (one ? 1 : rows); row++)
        j->ops->read_gradients[p->dtype]((char *)j->gradients + row * run * j->sum_bytes,
                                         one ? run : channels, gy + row * down * bytes,
                                         one ? down : step, one ? run : channels, one ? rows : n);
    return j->gradients;
}

/* `rows` rows of j->row, some columns of each: adds them, folds a level, or both. */
static void visit_some(scatter_job *j, const position *at, int64_t rows, range columns, bool adds,
                       int folds)
{
    const tarn_problem *p = j->p;
    int last = j->last;
    const int64_t *steps = j->stride[OPERAND_SAVED], *gy_steps = j->stride[TARN_GY];
    int64_t n = length(columns), channels = j->pixel, row = j->row[0].o;
    int64_t codes = at->codes + row * steps[last - 1] + columns.lo * steps[last] + j->channels.lo,
            gy = at->gy + row * gy_steps[last - 1] + columns.lo * gy_steps[last] + j->channels.lo;
    j->first_column = find_columns(j, columns);
    scatter_rows r = {.codes =
                          j->slab->base[OPERAND_SAVED] + codes * p->element_bytes[OPERAND_SAVED],
                      .code_step = n > 1 ? steps[last] : channels,
                      .code_down = rows > 1 ? steps[last - 1] : 0,
                      .rows = rows,
                      .n = j->flat ? n * channels : n,
                      .channels = j->flat ? 1 : channels,
                      .at = at->at + j->first_column,
                      .least = at->least,
                      .most = at->most};
    if (j->flat)
        r.code_step = 1;
    bool checks = !at->inside || !j->row[0].inside || j->axis[last].adaptive;
    find_some_places(j, &r, j->divides ? BY_DIVISION : checks ? BY_CHECKED_TABLE : BY_TABLE);
    const char *from = j->slab->base[TARN_GY] + gy * p->element_bytes[TARN_GY];
    (j->sum_bytes == 8 ? add_double : add_float)(j, adds ? read_rows(j, from, rows, n) : NULL,
                                                 folds, rows, n * channels);
}

/* ---- All windows ---------------------------------------------------------------------------- */

/* Window o of an axis; false if it has no tap in the box. */
static bool find_window(scatter_job *j, int axis, int64_t o, scatter_window *found)
{
    const tarn_axis *along = &j->axis[axis];
    range cells = j->cells[axis];
    extent window = extent_at(j, axis, o);
    int64_t start = window.start, step = step_of_taps(along), first = 0, end = window.taps - 1;
    if (start < cells.lo)
        first = step == 1 ? cells.lo - start : ceil_div(cells.lo - start, step);
    if (start + end * step >= cells.hi)
        end = floor_div(cells.hi - 1 - start, step);
    *found = (scatter_window){.o = o,
                              .at = (start - cells.lo) * j->pitch[axis],
                              .start = start - cells.lo,
                              .first = first,
                              .end = end,
                              .inside = first == 0 && end == along->kernel - 1 && !along->adaptive,
                              .clipped = first > 0 || end < window.taps - 1};
    if (first > end)
        return false;
    if (!j->divides) {
        found->least = (uint64_t)first << field_of(j, axis);
        found->most = (uint64_t)end << field_of(j, axis);
    }
    return true;
}

static void step_to(scatter_job *j, int axis, const scatter_window *window, position *at)
{
    j->outer[axis] = *window;
    at->at += window->at;
    at->codes += window->o * j->stride[OPERAND_SAVED][axis];
    at->gy += window->o * j->stride[TARN_GY][axis];
    at->least |= window->least;
    at->most |= window->most;
    at->inside &= window->inside;
}

/* Adds a level to the one before, in vectors: all cells on its axis and the further ones, by the
 * taps of those before. */
static void fold_dense(const scatter_job *j, const position *at, int level)
{
    int axis = j->level_axis[level];
    int64_t n = j->pitch[axis - 1], further = 1;
    for (int a = axis; a <= j->last; a++)
        further *= j->axis[a].kernel;
    for (int64_t tap = 0; tap < j->taps; tap += further)
        if (are_inside(j->fields[tap], at->least, at->most)) {
            int64_t place = (at->at + j->offset[tap]) * j->sum_bytes;
            j->ops->move_sums[j->sum_bytes == 8](j->sums[level - 1] + place, j->sums[level] + place,
                                                 n);
        }
}

static void store_planes(scatter_job *j, int64_t end);

/* Moves the box along the first axis until it has window o. */
static void slide_to(scatter_job *j, int64_t o)
{
    extent window = extent_at(j, 0, o);
    int64_t end = window.start + (window.taps - 1) * step_of_taps(&j->axis[0]) + 1;
    while (end > j->cells[0].hi && j->cells[0].hi < j->all[0].hi)
        store_planes(j, min_i64(window.start, j->cells[0].hi));
}

/* Lists windows of rows from o on that are alike, as many as may be visited at once; returns how
 * many, none if the first has no tap in the box. As a rule they are those of the plane before. */
static int64_t list_rows(scatter_job *j, int64_t o, int64_t most)
{
    int axis = j->last - 1;
    int64_t n = 0;
    range cells = j->cells[axis], *same = &j->rows_cells;
    if (j->rows.lo == o && length(j->rows) > 0 && length(j->rows) <= most && axis > 0 &&
        cells.lo == same->lo && cells.hi == same->hi)
        return length(j->rows);
    for (; n < most; n++) {
        scatter_window *row = &j->row[n];
        if (!find_window(j, axis, o + n, row) || row->inside != j->row[0].inside)
            break;
        if (n > 0 && axis == 0 && j->slides && row->clipped)
            break; /* the box may have to slide */
    }
    j->rows = (range){o, o + n};
    *same = cells;
    return n;
}

/* The windows of the last two axes. Adds to the last level, and folds that of rows; or folds. */
static void visit_plane(scatter_job *j, const position *at, bool adds, int folds)
{
    range all = j->windows[j->last - 1], columns = j->windows[j->last], some;
    int64_t channels = j->pixel, n = length(columns) * channels, width = MOST_WINDOWS / channels;
    int top = j->levels - 1;
    bool of_rows = adds && top > 0 && j->level_axis[top] == j->last,
         pieces = length(columns) > width;
    bool dense = of_rows && j->dense[top], sparse = of_rows && !dense;
    int64_t together = pieces || dense ? 1 : min_i64(MOST_ROWS, max_i64(MOST_WINDOWS / n, 1));
    for (int64_t o = all.lo, rows; o < all.hi; o += max_i64(rows, 1)) {
        if (j->last == 1 && j->slides)
            slide_to(j, o);
        rows = list_rows(j, o, min_i64(together, all.hi - o));
        for (some.lo = columns.lo; some.lo < columns.hi && rows > 0; some.lo = some.hi) {
            some.hi = min_i64(some.lo + width, columns.hi);
            visit_some(j, at, rows, some, adds, sparse && !pieces ? top - 1 : folds);
        }
        for (some.lo = columns.lo; some.lo < columns.hi && rows > 0 && sparse && pieces;
             some.lo = some.hi) {
            some.hi = min_i64(some.lo + width, columns.hi);
            visit_some(j, at, rows, some, false, top - 1);
        }
        if (dense && rows > 0) {
            position row = *at;
            step_to(j, j->last - 1, &j->row[0], &row);
            fold_dense(j, &row, top);
        }
    }
}

/* The windows of the axes from `axis` on, as visit_plane(). */
static void visit_axes(scatter_job *j, int axis, const position *from, bool adds, int folds)
{
    if (axis == j->last - 1)
        visit_plane(j, from, adds, folds);
    for (int64_t o = j->windows[axis].lo; axis < j->last - 1 && o < j->windows[axis].hi; o++) {
        position at = *from;
        scatter_window window;
        if (axis == 0 && j->slides)
            slide_to(j, o);
        if (!find_window(j, axis, o, &window))
            continue;
        step_to(j, axis, &window, &at);
        visit_axes(j, axis + 1, &at, adds, folds);
    }
    for (int k = j->levels - 1; k > 0 && adds; k--) {
        if (j->level_axis[k] != axis)
            continue;
        if (j->dense[k])
            fold_dense(j, from, k);
        else
            visit_axes(j, axis, from, false, k - 1);
    }
}

/* ---- Cells ---------------------------------------------------------------------------------- */

/* Some rows of sums to gx, one below the other. */
static void store_rows(const scatter_job *j, const int64_t *cell, int64_t rows, const char *sums)
{
    const tarn_problem *p = j->p;
    const int64_t *stride = j->stride[TARN_GX];
    int64_t columns = length(j->cells[j->last]), channels = length(j->channels);
    int64_t bytes = p->element_bytes[TARN_GX], pitch = j->pitch[j->last - 1];
    int64_t down = rows > 1 ? stride[j->last - 1] : 0, at = j->channels.lo;
    for (int a = 0; a <= j->last; a++)
        at += cell[a] * stride[a];
    char *to = j->slab->base[TARN_GX] + at * bytes;
    if (columns == 1 || stride[j->last] == channels) {
        j->ops->write_gradients[p->dtype](to, down, sums, pitch, columns * channels, rows);
        return;
    }
    for (int64_t row = 0; row < rows; row++)
        j->ops->write_gradients[p->dtype](to + row * down * bytes, stride[j->last],
                                          sums + row * pitch * j->sum_bytes, channels, channels,
                                          columns);
}

/* Writes the cells up to `end` on the first axis, and moves the box behind them. */
static void store_planes(scatter_job *j, int64_t end)
{
    int rows = j->last - 1;
    range box[TARN_MAX_SPATIAL];
    int64_t cell[TARN_MAX_SPATIAL], n = end - j->cells[0].lo, kept = length(j->cells[0]) - n;
    int64_t plane = j->pitch[0] * j->sum_bytes;
    for (int a = 0; a <= j->last; a++) {
        box[a] = a == 0 ? (range){j->cells[0].lo, end} : j->cells[a];
        cell[a] = box[a].lo;
    }
    for (int a = 0; a >= 0;) {
        int64_t at = j->margin * j->pitch[j->last];
        for (int k = 0; k < rows; k++)
            at += (cell[k] - box[k].lo) * j->pitch[k];
        store_rows(j, cell, length(box[rows]), j->sums[0] + at * j->sum_bytes);
        for (a = rows - 1; a >= 0; a--) {
            if (++cell[a] < box[a].hi)
                break;
            cell[a] = box[a].lo;
        }
    }
    memmove(j->sums[0], j->sums[0] + n * plane, (size_t)(kept * plane));
    memset(j->sums[0] + kept * plane, 0, (size_t)(n * plane));
    j->cells[0] = (range){end, min_i64(end + j->planes, j->all[0].hi)};
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* What windows that read a box of so many columns reach beyond it, on either side. */
static int64_t margin_of(const scatter_job *j, int64_t columns)
{
    const tarn_axis *axis = &j->axis[j->last];
    if (columns < axis->size)
        return extent_of(axis);
    int64_t before = -window_start(axis, 0), behind = window_end(axis, axis->out - 1) - axis->size;
    return min_i64(max_i64(max_i64(before, behind), 0), extent_of(axis));
}

/* Pitches, and elements of a level. Rows share their margins with those below. */
static int64_t set_pitches(scatter_job *j)
{
    enum { TOO_MUCH = 1 << 24 };
    int64_t lanes = j->ops->vector_bytes / j->sum_bytes, columns = j->size[j->last];
    j->margin = j->divides ? 0 : margin_of(j, columns);
    int64_t pitch = min_i64(columns + j->margin, TOO_MUCH) * j->pixel;
    j->pitch[j->last] = j->pixel;
    pitch = ceil_div(pitch, lanes) * lanes;
    for (int a = j->last - 1; a >= 0; a--) {
        j->pitch[a] = pitch;
        pitch = min_i64(pitch, TOO_MUCH) * min_i64(a == 0 ? j->planes : j->size[a], TOO_MUCH);
    }
    j->nowhere = min_i64(pitch, TOO_MUCH) + j->margin * j->pixel;
    return ceil_div(j->nowhere + 1, lanes) * lanes;
}

/* About the nanoseconds that boxes of the present size take: windows that are read, some for
 * several boxes; cells, in runs that lie side by side; and boxes. The first axis is slid along if
 * a window fits. */
static double box_cost(const scatter_job *j)
{
    const double OF_WINDOW = 1.5, OF_CELL = 0.3, OF_RUN = 2, OF_BOX = 300;
    double windows = (double)j->p->lanes, cells = windows;
    double boxes = (double)ceil_div(j->p->lanes, j->pixel);
    for (int a = 0; a <= j->last; a++) {
        const tarn_axis *axis = &j->axis[a];
        int64_t all = length(j->all[a]), size = a == 0 ? j->planes : j->size[a];
        double whole = (double)axis->out * (double)all / (double)axis->size;
        double some = (double)(size + extent_of(axis) - 2) / (double)axis->size * (double)axis->out;
        bool cut = size < all && !(a == 0 && size >= extent_of(axis));
        double times = cut ? (double)ceil_div(all, size) : 1;
        windows *=
            cut ? times * (some + 1 < (double)axis->out ? some + 1 : (double)axis->out) : whole;
        cells *= (double)all;
        boxes *= times;
    }
    double run = (double)(j->pixel < j->p->lanes ? j->pixel : j->pixel * j->size[j->last]);
    return windows * OF_WINDOW * j->levels + cells * (OF_CELL + OF_RUN / run) + boxes * OF_BOX;
}

/* Halves what makes boxes cost least, until they fit. */
static void cut_box(scatter_job *j)
{
    for (int a = 0; a <= j->last; a++)
        j->size[a] = length(j->all[a]);
    j->pixel = j->p->lanes;
    j->planes = j->size[0];
    while (j->pixel > MOST_WINDOWS || set_pitches(j) * j->levels * j->sum_bytes > j->room_bytes) {
        int64_t *best = &j->pixel, half = 0;
        double least = 0;
        for (int a = -1; a <= j->last; a++) {
            int64_t *size = a < 0 ? &j->pixel : a == 0 ? &j->planes : &j->size[a], before = *size;
            if (before == 1)
                continue;
            *size = ceil_div(before, 2);
            if (a == 0 && before > extent_of(&j->axis[0]))
                *size = max_i64(*size, extent_of(&j->axis[0]));
            double cost = box_cost(j);
            if (half == 0 || cost < least) {
                least = cost;
                best = size;
                half = *size;
            }
            *size = before;
        }
        *best = half;
    }
    j->slides = j->planes >= min_i64(extent_of(&j->axis[0]), j->size[0]);
    if (!j->slides)
        j->size[0] = j->planes;
}

/* Whether a level is folded in vectors: which of the two is less work, in nanoseconds. */
static bool is_folded_dense(const scatter_job *j, int level)
{
    const double OF_RUN = 4, OF_VECTOR = 0.7, OF_WINDOW = 1;
    int axis = j->level_axis[level];
    double runs = 1, windows = (double)j->pixel;
    for (int a = 0; a < axis; a++)
        runs *= (double)j->axis[a].kernel;
    for (int a = axis; a <= j->last; a++)
        windows *= (double)j->axis[a].out * (double)j->size[a] / (double)j->axis[a].size;
    double vectors = (double)(j->pitch[axis - 1] * j->sum_bytes / j->ops->vector_bytes);
    return !j->divides && runs * (OF_RUN + vectors * OF_VECTOR) < windows * OF_WINDOW;
}

static void run_box(scatter_job *j)
{
    bool read = true;
    position at = {.inside = true};
    for (int a = 0; a <= j->last; a++) {
        j->windows[a] = tarn_windows_reading(&j->axis[a], j->cells[a]);
        read &= length(j->windows[a]) > 0;
    }
    j->all[0] = j->cells[0];
    j->cells[0].hi = min_i64(j->all[0].lo + j->planes, j->all[0].hi);
    if (read)
        visit_axes(j, 0, &at, true, -1);
    while (j->cells[0].lo < j->all[0].hi)
        store_planes(j, j->cells[0].hi);
}

/* Levels are those axes on which a cell may have two windows; one at least. */
static void set_axes(scatter_job *j, const range *box)
{
    const tarn_problem *p = j->p;
    int before = p->spatial == 1;
    j->last = p->spatial - 1 + before;
    j->axis[0] = (tarn_axis){.size = 1,
                             .out = 1,
                             .kernel = 1,
                             .stride = 1,
                             .dilation = 1,
                             .whole = 1,
                             .windows = 1,
                             .gcd = 1,
                             .tap_step = 1,
                             .window_step = 1};
    j->all[0] = (range){0, 1};
    j->taps = 1;
    for (int a = 0; a < p->spatial; a++) {
        j->axis[a + before] = p->axis[a];
        j->all[a + before] = box ? box[a] : (range){0, p->axis[a].size};
        for (int k = 0; k < OPERANDS; k++)
            j->stride[k][a + before] = p->stride[k][a];
        j->taps *= p->axis[a].kernel;
        if (tarn_windows_overlap(&p->axis[a]))
            j->level_axis[j->levels++] = a + before;
    }
    j->levels += j->levels == 0;
}

/* Tables are for winners of a byte, and for columns with small margins. */
static bool needs_division(const scatter_job *j)
{
    enum { MOST_MARGIN = 256, MOST_EXTENT = 1 << 15 };
    bool far = extent_of(&j->axis[j->last]) > MOST_MARGIN;
    for (int a = 0; a < j->last; a++)
        far |= extent_of(&j->axis[a]) > MOST_EXTENT;
    return far || j->p->element_bytes[OPERAND_SAVED] > 1 || j->taps >= MOST_TAPS ||
           j->last >= MOST_FIELDS;
}

/* Boxes of the slab in hand: sizes, tables, and sums that are zero. */
static void start_boxes(scatter_job *j, char *sums)
{
    enum { FEW_CHANNELS = 8 };
    const tarn_problem *p = j->p;
    int64_t one = p->lanes;
    cut_box(j);
    int64_t bytes = set_pitches(j) * j->sum_bytes;
    memset(sums, 0, (size_t)(j->levels * bytes));
    for (int k = 0; k < j->levels; k++) {
        j->sums[k] = sums + k * bytes;
        j->dense[k] = k > 0 && is_folded_dense(j, k);
    }
    j->flat = !j->divides && one > 1 && one < FEW_CHANNELS && j->pixel == one &&
              (j->axis[j->last].out == 1 ||
               (j->stride[TARN_GY][j->last] == one && j->stride[OPERAND_SAVED][j->last] == one));
    j->columns = j->rows = (range){0, 0};
    if (!j->divides)
        fill_tables(j);
}

static void run_slab(scatter_job *j)
{
    range all[TARN_MAX_SPATIAL];
    int64_t size[TARN_MAX_SPATIAL];
    memcpy(all, j->all, sizeof all);
    memcpy(size, j->size, sizeof size);
    for (int64_t c = 0; c < j->p->lanes; c += j->pixel) {
        j->channels.lo = min_i64(c, j->p->lanes - j->pixel); /* some twice */
        j->channels.hi = j->channels.lo + j->pixel;
        range box[TARN_MAX_SPATIAL];
        tarn_first_box(box, all, size, j->last + 1);
        do {
            memcpy(j->cells, box, sizeof box);
            run_box(j);
        } while (tarn_next_box(box, all, size, j->last + 1));
    }
}

static void scatter_in(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const range *box, const tarn_row_ops *ops, char *sums, int64_t room_bytes)
{
    tarn_slab slab;
    scatter_job j = {.p = p,
                     .ops = ops,
                     .slab = &slab,
                     .sum_bytes = p->dtype == TARN_F64 ? 8 : 4,
                     .room_bytes = room_bytes};
    int64_t cells = 0;
    set_axes(&j, box);
    for (int k = 0; k < MOST_FIELDS * MOST_KNOWN; k++)
        j.known[k / MOST_KNOWN][k % MOST_KNOWN].o = -1;
    int first = j.last + 1 - p->spatial;
    j.divides = needs_division(&j);
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab)) {
        j.all[0] = (range){0, 1};
        j.all[first] = (range){slab.lo, slab.hi};
        if (slab.hi - slab.lo != cells)
            start_boxes(&j, sums);
        cells = slab.hi - slab.lo;
        run_slab(&j);
    }
}

__attribute__((noinline)) static void scatter_in_little(const tarn_problem *p,
                                                        const tarn_tensors *t, int64_t begin,
                                                        int64_t end, const range *box,
                                                        const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char sums[LITTLE_BOX_BYTES];
    scatter_in(p, t, begin, end, box, ops, sums, LITTLE_BOX_BYTES);
}

__attribute__((noinline)) static void scatter_in_much(const tarn_problem *p, const tarn_tensors *t,
                                                      int64_t begin, int64_t end,
                                                      const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char sums[BOX_BYTES];
    scatter_in(p, t, begin, end, NULL, ops, sums, BOX_BYTES);
}

void tarn_scatter_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const range *box, const tarn_row_ops *ops)
{
    if (box)
        scatter_in_little(p, t, begin, end, box, ops);
    else
        scatter_in_much(p, t, begin, end, ops);
}
