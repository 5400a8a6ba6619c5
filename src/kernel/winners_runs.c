/* Runs of windows. In a row of windows, those that one cell won are neighbours: if windows left and
 * right of a window contain a cell, so does the window; and its winner, being in one of the two,
 * cannot beat that cell. (Dilated windows: in each of the chains that have cells in common.) By
 * the same argument the columns of winners grow along the row. So a run is summed in a register,
 * left to right, and added to its cell when it ends [S5]. A window costs the same whatever its
 * size.
 *
 * Sums are gathered in a tile of cells. With two axes or one it slides over the rows of cells, so
 * that every row of windows is visited once. With more, it is filled for each of the outer windows
 * that read it, with the winners among the taps that they share.
 *
 * Saved winners that max and min cannot have left may have other runs. Then their columns do not
 * grow, and the specification takes these cells.
 */
#include "winners.h"

enum {
    OPEN_BYTES = 2 << 10,  /* runs that go on in the next piece of a row */
    CHUNK_BYTES = 9 << 10, /* windows in hand, with the rows that are turned */
    TILE_BYTES = SCRATCH_BYTES - OPEN_BYTES - CHUNK_BYTES - 4 * SCRATCH_SLACK,
    MOST_CHUNK = CHUNK_BYTES / 48
};

typedef struct runs_tile {
    const winners_job *j;
    tarn_axis axis[2]; /* rows and columns; one row if there is but one axis */
    int outer;         /* axes before them */
    int64_t most_rows, most_columns, chunk;
    range rows, columns; /* cells */
    int64_t end;         /* where rows end, over which it slides */
    range windows[2];    /* that read the cells */
    char *sums;          /* of the tile; further ones are behind it */
    char *gy, *room, *open_sums;
    int32_t *codes, *open_codes;
    int64_t chains;
    bool grow; /* columns of winners, along the row */
    int32_t starts[MOST_CHUNK];
    uint32_t limits[MOST_CHUNK];
} runs_tile;

/* ---- Rows of windows ------------------------------------------------------------------------ */

static void find_chunk_columns(runs_tile *t, range columns)
{
    const tarn_axis *axis = &t->axis[1];
    int64_t channels = t->j->channels;
    for (int64_t k = 0; k < length(columns); k++) {
        int64_t o = columns.lo + k, end = t->columns.hi;
        if (axis->adaptive)
            end = min_i64(end, window_end(axis, o));
        for (int64_t c = 0; c < channels; c++) {
            t->starts[k * channels + c] =
                (int32_t)((window_start(axis, o) - t->columns.lo) * channels + c);
            t->limits[k * channels + c] = (uint32_t)(max_i64(end - t->columns.lo, 0) * channels);
        }
    }
}

/* Row `o` of windows, whose columns are in hand from window `at` on. */
static void add_row(runs_tile *t, int64_t o, range columns, int64_t at, int64_t first_tap)
{
    const winners_job *j = t->j;
    const tarn_axis *rows = &t->axis[0], *last = &t->axis[1];
    int64_t n = length(columns) * j->channels, end = t->rows.hi;
    if (rows->adaptive)
        end = min_i64(end, window_end(rows, o));
    tarn_cell_rows how = {
        .first_tap = (uint32_t)first_tap,
        .taps = (uint32_t)(rows->kernel * last->kernel),
        .columns = (uint32_t)(rows->kernel > 1 ? last->kernel : INT32_MAX),
        .row = (uint32_t)(window_start(rows, o) - t->rows.lo),
        .row_limit = (uint32_t)max_i64(end - t->rows.lo, 0),
        .start = t->starts,
        .limit = t->limits,
        .row_step = rows->adaptive ? 1 : (uint32_t)rows->dilation,
        .column_step = (uint32_t)(j->channels * (last->adaptive ? 1 : last->dilation)),
        .pitch = (uint32_t)(length(t->columns) * j->channels),
    };
    tarn_runs runs = {
        .gy = t->gy + at * j->cell_bytes,
        .codes = t->codes + at * j->code_lanes,
        .lanes = j->lanes,
        .code_lanes = j->code_lanes,
        .chains = t->chains,
        .n = n,
        .begins = columns.lo == t->windows[1].lo,
        .ends = columns.hi == t->windows[1].hi,
        .open_codes = t->open_codes,
        .open_sums = t->open_sums,
    };
    j->ops->winner_cells(t->codes + at * j->code_lanes, j->code_lanes, &how, n);
    t->grow &= j->ops->add_runs[j->wide](t->sums, &runs);
}

static int64_t row_bytes(const runs_tile *t)
{
    return length(t->columns) * t->j->channels * t->j->cell_bytes;
}

/* Lets go of the rows of cells before `row`. */
static void slide(runs_tile *t, int64_t row)
{
    int64_t pitch = row_bytes(t);
    for (row = min_i64(row, t->end); t->rows.lo < row;) {
        int64_t gone = min_i64(row, t->rows.hi) - t->rows.lo, kept = length(t->rows) - gone;
        tarn_store_cells(t->j, NULL, (range){t->rows.lo, t->rows.lo + gone}, t->columns, t->sums,
                         t->room, t->chunk);
        memmove(t->sums, t->sums + gone * pitch, (size_t)(kept * pitch));
        t->rows.lo += gone;
        t->rows.hi = min_i64(t->rows.lo + t->most_rows, t->end);
        memset(t->sums + kept * pitch, 0, (size_t)((length(t->rows) - kept) * pitch));
    }
}

static void make_room(runs_tile *t, int64_t o)
{
    if (min_i64(window_end(&t->axis[0], o), t->end) > t->rows.hi)
        slide(t, window_start(&t->axis[0], o));
}

/* The gradients of a plane of windows, as far as they were won by the cells of the tile. */
static void add_plane(runs_tile *t, const int64_t *at, int64_t first_tap)
{
    const winners_job *j = t->j;
    range rows = t->windows[0], columns = t->windows[1], some;
    int64_t n = length(columns) * j->channels;
    if (length(rows) <= 0 || n <= 0)
        return;
    if (n <= t->chunk) {
        find_chunk_columns(t, columns);
        for (some.lo = rows.lo; some.lo < rows.hi; some.lo = some.hi) {
            some.hi = min_i64(some.lo + t->chunk / n, rows.hi);
            tarn_load_windows(j, at, some, columns, t->gy, t->codes, t->room);
            for (int64_t o = some.lo; o < some.hi; o++) {
                make_room(t, o);
                add_row(t, o, columns, (o - some.lo) * n, first_tap);
            }
        }
        return;
    }
    int64_t open_bytes = t->chains * (j->code_lanes * (int64_t)sizeof(int32_t) + j->cell_bytes);
    if (open_bytes > OPEN_BYTES) {
        t->grow = false;
        return;
    }
    t->open_codes = (int32_t *)(void *)(t->open_sums + t->chains * j->cell_bytes);
    int64_t piece = t->chunk / (j->channels * t->chains) * t->chains;
    for (int64_t o = rows.lo; o < rows.hi; o++) {
        make_room(t, o);
        for (some.lo = columns.lo; some.lo < columns.hi; some.lo = some.hi) {
            some.hi = min_i64(some.lo + piece, columns.hi);
            find_chunk_columns(t, some);
            tarn_load_windows(j, at, (range){o, o + 1}, some, t->gy, t->codes, t->room);
            add_row(t, o, some, 0, first_tap);
        }
    }
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* The sums over the axes from `axis` on, with windows `at` on those before, are added to zeros. */
static void sum_axes(runs_tile *t, const int64_t *cell, int axis, int64_t *at, int64_t tap)
{
    const tarn_axis *along = &t->j->p->axis[axis];
    if (axis == t->outer) {
        add_plane(t, at, tap * t->axis[0].kernel * t->axis[1].kernel);
        return;
    }
    tarn_span windows = tarn_windows_of_cell(t->j, axis, cell[axis]);
    int64_t bytes = length(t->rows) * row_bytes(t);
    char *sums = t->sums, *more = sums + t->most_rows * row_bytes(t);
    for (int64_t entry = windows.lo; entry < windows.hi; entry++) {
        at[axis] = span_at(&windows, entry);
        if (entry > windows.lo) { /* zeros and the first sums are these sums */
            t->sums = more;
            memset(more, 0, (size_t)bytes);
        }
        sum_axes(t, cell, axis + 1, at, tap * along->kernel + tap_of(along, at[axis], cell[axis]));
        t->sums = sums;
        if (entry > windows.lo)
            t->j->ops->add_sums[t->j->wide](sums, more, bytes / t->j->cell_bytes * t->j->lanes);
    }
}

/* The rows [lo,hi) of the columns in hand, in the plane at `cell`. */
static void fill_tiles(runs_tile *t, const int64_t *cell, int64_t lo, int64_t hi)
{
    const winners_job *j = t->j;
    int64_t at[TARN_MAX_SPATIAL];
    bool slides = t->outer == 0 && extent_of(&t->axis[0]) <= t->most_rows;
    for (t->rows.hi = lo; t->rows.hi < hi;) {
        t->rows = (range){t->rows.hi, min_i64(t->rows.hi + t->most_rows, hi)};
        t->end = slides ? hi : t->rows.hi;
        t->windows[0] =
            j->last > 0 ? tarn_windows_of(j, j->last - 1, t->rows.lo, t->end) : (range){0, 1};
        memset(t->sums, 0, (size_t)(length(t->rows) * row_bytes(t)));
        sum_axes(t, cell, 0, at, 0);
        if (slides)
            slide(t, hi);
        else
            tarn_store_cells(j, cell, t->rows, t->columns, t->sums, t->room, t->chunk);
    }
}

/* As many columns as leave room for the rows of a window, and some more. */
static void size_tile(runs_tile *t, int64_t rows, int64_t columns)
{
    const winners_job *j = t->j;
    int64_t room = TILE_BYTES / j->cell_bytes / (t->outer + 1) / j->channels;
    int64_t extent = min_i64(extent_of(&t->axis[0]), room),
            wanted = min_i64(rows, extent + extent / 8 + 1);
    int64_t most = min_i64(columns, max_i64(room / wanted, min_i64(room, 32)));
    t->most_columns = ceil_div(columns, ceil_div(columns, most));
    t->most_rows = room / t->most_columns;
}

static runs_tile tile_of(const winners_job *j)
{
    const tarn_problem *p = j->p;
    runs_tile t = {.j = j, .outer = j->last > 1 ? j->last - 1 : 0, .grow = true};
    t.axis[0] = (tarn_axis){.size = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    if (j->last > 0)
        t.axis[0] = p->axis[j->last - 1];
    t.axis[1] = p->axis[j->last];
    t.chains =
        (t.axis[1].adaptive ? 1 : min_i64(t.axis[1].window_step, t.axis[1].out)) * j->channels;
    t.chunk = CHUNK_BYTES / (2 * j->cell_bytes + (j->pixels ? 0 : j->cell_bytes));
    t.gy = j->scratch;
    t.codes = (int32_t *)(void *)(t.gy + t.chunk * j->cell_bytes);
    t.room = t.gy + t.chunk * 2 * j->cell_bytes;
    t.open_sums = t.gy + CHUNK_BYTES + SCRATCH_SLACK;
    t.sums = t.open_sums + OPEN_BYTES + SCRATCH_SLACK;
    return t;
}

void tarn_add_runs(const winners_job *j)
{
    const tarn_problem *p = j->p;
    runs_tile t = tile_of(j);
    range rows = j->last > 0 ? j->box[j->last - 1] : (range){0, 1}, columns = j->box[j->last];
    int64_t cell[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++)
        cell[a] = j->box[a].lo;
    size_tile(&t, length(rows), length(columns));
    for (int a = 0; a >= 0;) {
        for (int64_t lo = columns.lo; lo < columns.hi; lo = t.columns.hi) {
            t.columns = (range){lo, min_i64(lo + t.most_columns, columns.hi)};
            t.windows[1] = tarn_windows_of(j, j->last, lo, t.columns.hi);
            fill_tiles(&t, cell, rows.lo, rows.hi);
        }
        for (a = t.outer - 1; a >= 0; a--) { /* the next plane */
            if (++cell[a] < j->box[a].hi)
                break;
            cell[a] = j->box[a].lo;
        }
    }
    for (int k = 0; k < j->used && !t.grow; k++) {
        int64_t lo = j->box[0].lo + j->lane[k].cells,
                hi = min_i64(j->box[0].hi + j->lane[k].cells, j->end);
        tarn_spec(p, j->tensors, j->lane[k].first_unit + lo, j->lane[k].first_unit + hi);
    }
}
