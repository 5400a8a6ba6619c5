/* Cells that ask their windows. A box of cells at a time, with all windows that read them in
 * scratch; for each cell, its windows in the order of S5, each of which adds its gradient or
 * nothing. A window's code is the number of its winning tap plus the place where the window
 * begins, so that all windows of a row have the same code for one cell.
 */
#include "winners.h"

typedef struct ask_box {
    const winners_job *j;
    range cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL];
    char *gy;
    int32_t *codes;
    char *sums;
    char *spare; /* rows of sums, one for each axis before the last two */
    int64_t row_windows, row_cells;
    tarn_asked asked;
    ask_lists *lists;
} ask_box;

/* ---- How cells are cut ---------------------------------------------------------------------- */

/* The windows that read a run of cells, at most. */
static int64_t most_windows(const winners_job *j, int axis, int64_t cells)
{
    const tarn_axis *a = &j->p->axis[axis];
    int64_t reading = a->adaptive ? muldiv_ceil(cells, a->out, a->size) + 1
                                  : (cells + extent_of(a) - 2) / a->stride + 2;
    return axis == 0 && j->bands ? reading : min_i64(a->out, reading);
}

static bool box_fits(const winners_job *j, const int64_t *size)
{
    const tarn_problem *p = j->p;
    int64_t most = SCRATCH_BYTES, windows = j->channels, cells = j->channels;
    for (int a = 0; a < p->spatial; a++) {
        windows *= min_i64(most_windows(j, a, size[a]), most);
        cells *= min_i64(size[a], most);
        if (windows > MOST_STARTS || cells > most)
            return false;
    }
    int64_t spare = max_i64(j->last - 1, 0) * size[j->last] * j->channels;
    int64_t held = windows * 2 * j->cell_bytes, sums = (cells + spare) * j->cell_bytes;
    if (!j->pixels) { /* each is where the other's rows are turned */
        held = max_i64(held, cells * j->cell_bytes);
        sums = max_i64(sums, windows * j->cell_bytes);
    }
    return size[j->last] * j->channels <= MOST_CELLS &&
           held + sums <= SCRATCH_BYTES - 2 * SCRATCH_SLACK;
}

/* Halves the outermost axis that has many cells for those that its windows share, so that rows stay
 * whole; or else the one that has most. */
static void cut_box(const winners_job *j, int64_t *size)
{
    enum { MANY = 4 };
    const tarn_problem *p = j->p;
    for (int a = 0; a < p->spatial; a++)
        size[a] = length(j->box[a]);
    while (!box_fits(j, size)) {
        int best = j->last;
        double most = 0;
        for (int a = 0; a < p->spatial && most < MANY; a++) {
            const tarn_axis *axis = &p->axis[a];
            int64_t shared = axis->adaptive ? 1 : max_i64(extent_of(axis) - axis->stride, 0);
            double times = (double)size[a] / (double)(shared + 1);
            if (size[a] > 1 && times > most) {
                most = times;
                best = a;
            }
        }
        size[best] = ceil_div(size[best], 2);
    }
}

/* ---- A box ---------------------------------------------------------------------------------- */

/* For each cell of a row, its windows, those with few of them first; for each window, where it
 * begins. */
static void find_columns(ask_box *b)
{
    const winners_job *j = b->j;
    const tarn_axis *axis = &j->p->axis[j->last];
    range cells = b->cells[j->last], windows = b->windows[j->last];
    int64_t channels = j->channels, n = length(windows) * channels;
    ask_lists *to = b->lists;
    if (to->columns.lo == cells.lo && to->columns.hi == cells.hi && to->bands == j->bands)
        return;
    to->columns = cells;
    to->bands = j->bands;
    for (int64_t x = 0; x < length(cells); x++) {
        tarn_span reading = tarn_windows_of_cell(j, j->last, cells.lo + x);
        to->starts[x] = (int32_t)(reading.hi - reading.lo);
    }
    int64_t k = 0;
    for (int64_t count = 0, begin = 0; k < b->row_cells; count++, begin = k) {
        for (int64_t x = 0; x < length(cells); x++)
            if (to->starts[x] == count) {
                tarn_span reading = tarn_windows_of_cell(j, j->last, cells.lo + x);
                int64_t first = span_at(&reading, reading.lo) - windows.lo;
                for (int64_t c = 0; c < channels; c++, k++) {
                    to->cell[k] = (int32_t)((x * channels + c) * j->cell_bytes);
                    to->first[k] = (int32_t)((first * channels + c) * j->cell_bytes);
                    to->count[k] = (int32_t)count;
                    to->column[k] = (int32_t)x;
                }
            }
        for (int64_t same = begin; same < k; same++)
            to->end[same] = (int32_t)k;
    }
    for (k = 0; k < n; k++)
        to->starts[k] = (int32_t)(window_start(axis, windows.lo + k / channels) - cells.lo);
}

/* Moves to the next place on the axes [0,axes) of a box; false at the end. */
static bool next_place(const range *box, int axes, int64_t *at)
{
    for (int a = axes - 1; a >= 0; a--) {
        if (++at[a] < box[a].hi)
            return true;
        at[a] = box[a].lo;
    }
    return false;
}

static void load_box(ask_box *b)
{
    const winners_job *j = b->j;
    const tarn_axis *axis = &j->p->axis[j->last];
    int64_t at[TARN_MAX_SPATIAL], loaded = 0;
    range rows = j->last > 0 ? b->windows[j->last - 1] : (range){0, 1};
    for (int a = 0; a < j->last; a++)
        at[a] = b->windows[a].lo;
    do {
        tarn_load_windows(j, at, rows, b->windows[j->last], b->gy + loaded * j->cell_bytes,
                          b->codes + loaded * j->code_lanes, b->sums);
        loaded += length(rows) * b->row_windows;
    } while (next_place(b->windows, j->last - 1, at));
    for (int64_t k = b->row_windows; k < loaded; k++)
        b->lists->starts[k] = b->lists->starts[k - b->row_windows];
    int64_t taps = 1;
    for (int a = 0; a <= j->last; a++)
        taps *= j->p->axis[a].kernel;
    j->ops->code_winners(b->codes, j->code_lanes, b->lists->starts, (uint32_t)taps,
                         axis->adaptive ? 1 : (uint32_t)axis->dilation, loaded);
}

/* The rows of windows that read the row of cells at `cell`, from the one numbered `row` on. */
static void list_rows(ask_box *b, const int64_t *cell, int64_t row, int64_t tap)
{
    const winners_job *j = b->j;
    const tarn_problem *p = j->p;
    int axis = j->last - 1;
    int64_t last_tap =
        p->axis[j->last].kernel * (p->axis[j->last].adaptive ? 1 : p->axis[j->last].dilation);
    tarn_span rows = {.n = 1, .hi = 1, .step = 1};
    int64_t first = 0;
    if (axis >= 0) {
        rows = tarn_windows_of_cell(j, axis, cell[axis]);
        first = b->windows[axis].lo;
    }
    tarn_asked *asked = &b->asked;
    asked->rows = 0;
    for (int64_t entry = rows.lo; entry < rows.hi; entry++) {
        int64_t o = span_at(&rows, entry), at = (row + o - first) * b->row_windows;
        int64_t row_tap =
            axis < 0 ? tap : tap * p->axis[axis].kernel + tap_of(&p->axis[axis], o, cell[axis]);
        asked->gy[asked->rows] = b->gy + at * j->cell_bytes;
        asked->codes[asked->rows] = (const char *)(b->codes + at * j->code_lanes);
        asked->code[asked->rows++] = (int32_t)(row_tap * last_tap);
    }
}

/* The sums of a row of cells over the windows of the axes from `axis` on. */
static void ask_axes(ask_box *b, const int64_t *cell, int axis, int64_t row, int64_t tap,
                     char *sums)
{
    const winners_job *j = b->j;
    if (axis >= j->last - 1) {
        list_rows(b, cell, row, tap);
        j->ops->ask[j->wide](sums, &b->asked, b->row_cells);
        return;
    }
    const tarn_axis *along = &j->p->axis[axis];
    tarn_span windows = tarn_windows_of_cell(j, axis, cell[axis]);
    char *more = b->spare + axis * b->row_cells * j->cell_bytes;
    if (windows.lo == windows.hi)
        memset(sums, 0, (size_t)(b->row_cells * j->cell_bytes));
    for (int64_t entry = windows.lo; entry < windows.hi; entry++) {
        int64_t o = span_at(&windows, entry);
        char *to = entry == windows.lo ? sums : more; /* zeros and sums are the sums */
        ask_axes(b, cell, axis + 1, (row + o - b->windows[axis].lo) * length(b->windows[axis + 1]),
                 tap * along->kernel + tap_of(along, o, cell[axis]), to);
        if (to == more)
            j->ops->add_sums[j->wide](sums, more, b->row_cells * j->lanes);
    }
}

static void ask_box_of_cells(ask_box *b)
{
    const winners_job *j = b->j;
    const tarn_problem *p = j->p;
    int64_t windows = j->channels, cells = j->channels, at[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++) {
        b->windows[a] = tarn_windows_of(j, a, b->cells[a].lo, b->cells[a].hi);
        windows *= max_i64(length(b->windows[a]), 0);
        cells *= length(b->cells[a]);
    }
    b->row_windows = length(b->windows[j->last]) * j->channels;
    b->row_cells = length(b->cells[j->last]) * j->channels;
    int64_t held = windows * 2 * j->cell_bytes;
    if (!j->pixels)
        held = max_i64(held, cells * j->cell_bytes);
    b->gy = j->scratch;
    b->codes = (int32_t *)(void *)(b->gy + windows * j->cell_bytes);
    b->sums = b->gy + held + SCRATCH_SLACK;
    b->spare = b->sums + cells * j->cell_bytes;
    range rows = j->last > 0 ? b->cells[j->last - 1] : (range){0, 1};
    for (int a = 0; a < j->last; a++)
        at[a] = b->cells[a].lo;
    if (windows == 0) {
        memset(b->sums, 0, (size_t)(cells * j->cell_bytes));
    } else {
        find_columns(b);
        load_box(b);
        char *sums = b->sums;
        do {
            ask_axes(b, at, 0, 0, 0, sums);
            sums += b->row_cells * j->cell_bytes;
        } while (next_place(b->cells, j->last, at));
    }
    char *sums = b->sums;
    do {
        tarn_store_cells(j, at, rows, b->cells[j->last], sums, b->gy, cells);
        sums += length(rows) * b->row_cells * j->cell_bytes;
    } while (next_place(b->cells, j->last - 1, at));
}

void tarn_ask_windows(const winners_job *j)
{
    const tarn_problem *p = j->p;
    const tarn_axis *last = &p->axis[j->last];
    const ask_lists *lists = j->lists;
    int64_t size[TARN_MAX_SPATIAL], step = last->adaptive ? 1 : last->window_step;
    ask_box b = {.j = j,
                 .lists = j->lists,
                 .asked = {.cell = lists->cell,
                           .first = lists->first,
                           .count = lists->count,
                           .end = lists->end,
                           .column = lists->column,
                           .window_step = step * j->channels * j->cell_bytes}};
    cut_box(j, size);
    tarn_first_box(b.cells, j->box, size, p->spatial);
    do
        ask_box_of_cells(&b);
    while (tarn_next_box(b.cells, j->box, size, p->spatial));
}
