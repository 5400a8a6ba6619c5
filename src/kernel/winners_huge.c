/* Without saved winners, where those of the windows of a single cell would not fit the stack: a
 * tile of cells at a time, for which the winners of all windows that read it are found, some at a
 * time. They are true, so that the windows of a row that one cell won are neighbours, in a chain of
 * windows that have cells in common.
 */
#include "winners.h"

/* The room has sums of a tile, then gradients and winners, of up to 8 bytes, of a chunk of
 * windows. */
enum {
    TILE_BYTES = 4 << 10,
    CHUNK = (FOUND_BYTES - TILE_BYTES - 2 * SCRATCH_SLACK) / 16 / 64 * 64,
    EDGE = 16
};

typedef struct huge_tile {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int outer; /* axes before rows and columns */
    int64_t sum_bytes, chains;
    found_box box; /* one lane; cells of the tile, windows in hand */
    char *sums;
    int64_t tile_bytes;
    char *gradients;
} huge_tile;

/* The cell of the tile that won a window by a tap of the last two axes; -1 if none did. */
static int64_t place_of(const huge_tile *t, const int64_t *o, int64_t tap)
{
    int64_t place = 0, pitch = 1;
    for (int a = t->p->spatial - 1; a >= t->outer; a--) {
        const tarn_axis *axis = &t->p->axis[a];
        range cells = t->box.cells[a];
        int64_t cell =
            window_start(axis, o[a]) + tap % axis->kernel * (axis->adaptive ? 1 : axis->dilation);
        if (cell < cells.lo || cell >= cells.hi)
            return -1;
        place += (cell - cells.lo) * pitch;
        pitch *= length(cells);
        tap /= axis->kernel;
    }
    return tap == 0 ? place : -1;
}

/* A run that may go on in the next windows of its chain. */
typedef struct open_run {
    int64_t place;
    double sum;
} open_run;

static void end_run(const huge_tile *t, open_run *run)
{
    if (run->place >= 0 && t->sum_bytes == 8)
        ((double *)(void *)t->sums)[run->place] += run->sum;
    else if (run->place >= 0)
        ((float *)(void *)t->sums)[run->place] += (float)run->sum;
    run->sum = 0;
}

/* The windows in hand, of one row. */
static void add_windows(const huge_tile *t, int64_t first_tap, open_run *runs)
{
    const tarn_problem *p = t->p;
    int last = p->spatial - 1;
    int64_t o[TARN_MAX_SPATIAL], n = length(t->box.windows[last]);
    for (int a = 0; a <= last; a++)
        o[a] = t->box.windows[a].lo;
    const char *gy = t->slab->base[TARN_GY] +
                     (offset_of(p, TARN_GY, o) + t->box.lanes.lo) * p->element_bytes[TARN_GY];
    t->ops->read_gradients[p->dtype](t->gradients, 1, gy, n > 1 ? p->stride[TARN_GY][last] : 1, 1,
                                     n);
    for (int64_t k = 0; k < n; k++, o[last]++) {
        int64_t winner = load_winner(p, t->box.winners, k),
                place = winner < first_tap ? -1 : place_of(t, o, winner - first_tap);
        if (place < 0)
            continue;
        open_run *run = &runs[o[last] % t->chains];
        if (place != run->place)
            end_run(t, run);
        run->place = place;
        if (t->sum_bytes == 8)
            run->sum += ((double *)(void *)t->gradients)[k];
        else
            run->sum = (float)run->sum + ((float *)(void *)t->gradients)[k];
    }
}

static void add_plane(huge_tile *t, int64_t first_tap)
{
    const tarn_problem *p = t->p;
    int last = p->spatial - 1;
    range rows = {0, 1}, *row = last > 0 ? &t->box.windows[last - 1] : NULL,
          *some = &t->box.windows[last];
    if (last > 0)
        rows = tarn_windows_of_cells(&p->axis[last - 1], t->box.cells[last - 1]);
    range columns = tarn_windows_of_cells(&p->axis[last], t->box.cells[last]);
    for (int64_t o = rows.lo; o < rows.hi; o++) {
        open_run runs[MOST_CHAINS];
        for (int64_t k = 0; k < t->chains; k++)
            runs[k] = (open_run){-1, 0};
        if (row)
            *row = (range){o, o + 1};
        for (some->lo = columns.lo; some->lo < columns.hi; some->lo = some->hi) {
            some->hi = min_i64(some->lo + CHUNK, columns.hi);
            tarn_find_box(p, t->slab->base, &t->box, t->ops);
            add_windows(t, first_tap, runs);
        }
        for (int64_t k = 0; k < t->chains; k++)
            end_run(t, &runs[k]);
    }
}

/* The sums of S5 over the windows of the axes before the last two, cell by cell. */
static void sum_axes(huge_tile *t, int axis, int64_t tap)
{
    const tarn_axis *along = &t->p->axis[axis];
    int64_t taps = 1, cell = t->box.cells[axis].lo;
    if (axis == t->outer) {
        for (int a = axis; a < t->p->spatial; a++)
            taps *= t->p->axis[a].kernel;
        add_plane(t, tap * taps);
        return;
    }
    tarn_span windows = cell_windows(along, cell);
    char *sums = t->sums, *more = sums + t->tile_bytes;
    for (int64_t entry = windows.lo; entry < windows.hi; entry++) {
        int64_t o = span_at(&windows, entry);
        t->box.windows[axis] = (range){o, o + 1};
        if (entry > windows.lo) {
            t->sums = more;
            memset(more, 0, (size_t)t->tile_bytes);
        }
        sum_axes(t, axis + 1, tap * along->kernel + tap_of(along, o, cell));
        t->sums = sums;
        if (entry > windows.lo)
            t->ops->add_sums[t->sum_bytes == 8](sums, more, t->tile_bytes / t->sum_bytes);
    }
}

static void fill_tile(huge_tile *t)
{
    const tarn_problem *p = t->p;
    int last = p->spatial - 1;
    int64_t cell[TARN_MAX_SPATIAL], columns = length(t->box.cells[last]);
    for (int a = 0; a <= last; a++)
        cell[a] = t->box.cells[a].lo;
    memset(t->sums, 0, (size_t)t->tile_bytes);
    sum_axes(t, 0, 0);
    const char *sums = t->sums;
    int64_t rows = last > 0 ? length(t->box.cells[last - 1]) : 1;
    for (int64_t r = 0; r < rows; r++, sums += columns * t->sum_bytes) {
        char *to = t->slab->base[TARN_GX] +
                   (offset_of(p, TARN_GX, cell) + t->box.lanes.lo) * p->element_bytes[TARN_GX];
        t->ops->write_gradients[p->dtype](to, columns > 1 ? p->stride[TARN_GX][last] : 1, sums, 1,
                                          1, columns);
        if (last > 0)
            cell[last - 1]++;
    }
}

void tarn_find_huge(const tarn_problem *p, const tarn_slab *slab, const range *all, char *room,
                    const tarn_row_ops *ops)
{
    int last = p->spatial - 1;
    huge_tile t = {.p = p,
                   .ops = ops,
                   .slab = slab,
                   .outer = last > 1 ? last - 1 : 0,
                   .sum_bytes = p->dtype == TARN_F64 ? 8 : 4,
                   .chains = p->axis[last].adaptive ? 1 : p->axis[last].window_step,
                   .box = {.planes = 1, .engine = tarn_engine_forward}};
    int64_t size[TARN_MAX_SPATIAL],
        cells = TILE_BYTES / t.sum_bytes / (t.outer + 1) / MOST_LANES * MOST_LANES;
    t.tile_bytes = cells * t.sum_bytes;
    t.sums = room;
    t.gradients = t.sums + TILE_BYTES;
    t.box.winners = t.gradients + CHUNK * sizeof(double) + SCRATCH_SLACK;
    for (int a = 0; a <= last; a++)
        size[a] = 1;
    size[last] = min_i64(length(all[last]), last > 0 ? EDGE : cells);
    if (last > 0)
        size[last - 1] = cells / size[last];
    for (; t.box.lanes.lo < p->lanes; t.box.lanes.lo++) {
        t.box.lanes.hi = t.box.lanes.lo + 1;
        tarn_first_box(t.box.cells, all, size, p->spatial);
        do
            fill_tile(&t);
        while (tarn_next_box(t.box.cells, all, size, p->spatial));
    }
}
