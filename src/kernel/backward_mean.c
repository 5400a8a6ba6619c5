/* The gradient of means [A5, S4]: gx[cell] = the sum of gy/divisor over the windows that read the
 * cell, innermost axis first, on each axis in halves.
 *
 * The last axis makes rows. With many channels last the channels are the rows, and the spatial
 * axes are all outside; otherwise a row is the pixels along the last spatial axis, and small dense
 * planes are turned first, so that a lane is a plane. Rows of windows become rows of quotients,
 * and these rows of cells.
 *
 * Outside of rows, cells are taken in tiles that fit on the stack. Neighbours on an axis that are
 * read by the same windows are a run: they are computed once. Each of these axes has a block: for
 * each window that reads the tile, existing or not, the sums over all axes inside it, one for each
 * run. Summing a block over the windows of each run makes one row of the block further out; that
 * of the first axis makes results. Along the first axis tiles slide: what the next one needs of
 * the block is kept.
 *
 * On an axis, cells a stride apart are read by windows one apart: one call of a row operation
 * serves all of them. Those of adaptive windows go one by one.
 */
#include "../dispatch.h"
#include "boxes.h"
#include "engines.h"
#include "mean_apart.h"

enum {
    SCRATCH_BYTES = 40 << 10, /* of a stack of 64 KiB, most of it in a first cache of 32 */
    MOST_AXES = TARN_MAX_SPATIAL + 2,
    FEW_CHANNELS = 32,      /* that make rows of pixels; more are rows */
    LONG_RUN = 512,         /* cells to a window, on average, that are not picked one by one */
    QUOTIENTS = 512,        /* wanted at once */
    ROWS_AT_ONCE = 8,       /* of results that pick */
    COPIED_BYTES = 8 << 10, /* of copies, at once: they stay near */
    LEAST_PAST = 1024,      /* bytes that go past the caches */
    NEIGHBOURS = 8,         /* cells that a vector picks together */
    GROUP = 4,              /* terms that longer lists share the sums of */
    MOST_LANES = 32         /* planes that are turned together */
};

/* Neighbouring cells that the same windows read: n of them from `first` on. */
typedef struct mean_run {
    int32_t start, cells, first, n;
} mean_run;

typedef struct mean_axis {
    const tarn_axis *axis;
    tarn_axis own;            /* where that is none of the problem's */
    int64_t gx_step, gy_step; /* in elements */
    int64_t to_step;          /* from cell to cell of what is written: gx, or the result */
    int64_t period;           /* cells so far apart have windows one apart; 0: no two are alike */
    bool clipped;             /* lists have only windows that exist, two at most */
    int64_t taps;             /* that count, of every window; 0: not the same of all */
    int64_t longest;          /* list of windows */
    int64_t gap;              /* between the windows of a list */
    int64_t lo, hi;           /* the cells that are asked for */
    int64_t tile, windows;    /* most cells of a tile, and windows of those */
    int64_t pitch;            /* elements of one window's row of the block */
    char *block;
    mean_run *runs;        /* of the tile's first period, or of all of it */
    int64_t kinds, listed; /* how many, and the cell that they begin with; -1: none */
    int64_t cell, cells;   /* the tile in hand */
    int64_t window, count; /* its windows */
} mean_axis;

typedef struct mean_walk {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    char *gx, *gy; /* element [0,...,0] of the plane */
    tarn_dtype sum;
    int64_t size, gx_bytes; /* of a sum, and of an element */
    int axes;               /* at least two */
    mean_axis room[MOST_AXES], *axis;
    int64_t at[MOST_AXES]; /* the window in hand on each axis but the last */
    int64_t channels;      /* of a pixel of a row */
    bool plain;            /* rows of cells are rows of quotients */
    bool picked;           /* each cell of a row has a list, and picks a sum */
    bool late;             /* ... of one window, when results are written */
    int32_t *picks;        /* these, for the row operation */
    int behind;            /* how far, at most, eight neighbours go back; -1: too far */
    int64_t fewest, most;  /* windows of such a list, if any */
    bool past, direct;     /* results go past the caches; to the tensor without a detour */
    int64_t quotient_rows;
    char *few, *many, *sums, *tail, *whole, *result;
    char *divisors;     /* of each element of a row of windows */
    int64_t *taps;      /* of each window of a row, on the last axis */
    int64_t divided_by; /* taps on the outer axes that `divisors` are made for; -1: none */
    int first;          /* axis of the problem: 1 behind planes */
    int64_t turned_windows, turned_row; /* of a plane, and elements of a row of cells */
    int64_t turned_rows, turned_first;  /* that are in scratch at a time, and the first of them */
    int64_t reserved;                   /* scratch bytes for turned planes */
    tarn_problem turned;                /* planes in scratch, as lanes */
    char *scratch;
    int64_t scratch_bytes; /* SCRATCH_BYTES at most */
} mean_walk;

static mean_axis *last_axis(mean_walk *w)
{
    return &w->axis[w->axes - 1];
}

static int64_t rounded_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- Sums of lists -------------------------------------------------------------------------- */

/* Rows of n sums of k terms, which are `gap` elements apart.
 *
 * A list in halves is one in halves of the sums of groups of four, whatever is left being the
 * last of these. Sums of four neighbours serve many cells, so long lists take additions as the
 * logarithm of their length.
 */
static void sum_list(mean_walk *w, tarn_dtype dtype, char *to, int64_t to_step, const char *from,
                     int64_t gap, int64_t from_step, int64_t k, int64_t n, int64_t rows)
{
    const void *terms[MOST_SHARES];
    const char *tail = NULL;
    int64_t length = (rows - 1) * from_step + n, vector = w->ops->vector_bytes / w->size;
    for (; k > MOST_SHARES; k = (k + GROUP - 1) / GROUP, gap *= GROUP) {
        int64_t whole = (k - 1) / GROUP, left = k - whole * GROUP;
        for (int64_t j = 0; j < left; j++)
            terms[j] = from + (whole * GROUP + j) * gap * w->size;
        if (tail)
            terms[left - 1] = tail;
        w->ops->share_sums[w->sum](w->tail, 0, terms, 0, left, rounded_up(length, vector), 1);
        for (int64_t j = 0; j < GROUP; j++)
            terms[j] = from + j * gap * w->size;
        w->ops->share_sums[w->sum](w->sums, 0, terms, 0, GROUP,
                                   rounded_up(length + (whole - 1) * GROUP * gap, vector), 1);
        from = w->sums;
        tail = w->tail;
    }
    for (int64_t j = 0; j < k; j++)
        terms[j] = from + j * gap * w->size;
    if (tail)
        terms[k - 1] = tail;
    w->ops->share_sums[dtype](to, to_step, terms, from_step, k, n, rows);
}

/* The runs of the tile that are whole periods from run r, and that one. */
static int64_t runs_alike(const mean_axis *a, int64_t r)
{
    return a->period > 0 ? (a->cells - a->runs[r].start - 1) / a->period + 1 : 1;
}

/* The kinds of runs that the tile has, which may end before its first period does. */
static int64_t kinds_here(const mean_axis *a)
{
    int64_t kinds = a->kinds;
    while (a->runs[kinds - 1].start >= a->cells)
        kinds--;
    return kinds;
}

static int64_t run_count(const mean_axis *a)
{
    int64_t runs = 0;
    for (int64_t r = 0; r < kinds_here(a); r++)
        runs = max_i64(runs, (runs_alike(a, r) - 1) * a->kinds + r + 1);
    return runs;
}

/* ---- Quotients ------------------------------------------------------------------------------ */

/* [A2] The taps of a window on one axis: a factor of the divisor. */
static int64_t taps_at(const mean_walk *w, int axis, int64_t o)
{
    const mean_axis *a = &w->axis[axis];
    return a->taps > 0 ? a->taps : counted_taps(w->p, a->axis, o);
}

static void put_divisor(const mean_walk *w, int64_t at, int64_t divisor)
{
    if (w->sum == TARN_F64)
        ((double *)(void *)w->divisors)[at] = (double)divisor;
    else
        ((float *)(void *)w->divisors)[at] = (float)divisor;
}

/* Existing windows of the last axis that the tile needs. */
static int64_t first_column(const mean_axis *last)
{
    return max_i64(last->window, 0);
}

static int64_t column_count(const mean_axis *last)
{
    return max_i64(min_i64(last->window + last->count, last->axis->out) - first_column(last), 0);
}

/* Elements of a row of the blocks in hand. */
static int64_t row_length(const mean_walk *w)
{
    const mean_axis *last = &w->axis[w->axes - 1];
    return (w->late ? last->count : last->cells) * w->channels;
}

/* The divisors of a row, given the taps on other axes. */
static void set_divisors(mean_walk *w, int64_t outer)
{
    const mean_axis *last = last_axis(w);
    if (w->divided_by == outer)
        return;
    w->divided_by = outer;
    if (last->taps > 0)
        put_divisor(w, 0, w->p->divisor > 0 ? w->p->divisor : outer * last->taps);
    for (int64_t o = 0; o < column_count(last) && last->taps == 0; o++)
        for (int64_t c = 0; c < w->channels; c++)
            put_divisor(w, o * w->channels + c, outer * w->taps[o]);
}

/* Quotients of a row of windows that are not side by side in memory. */
static void divide_pixels(mean_walk *w, char *to, const char *from)
{
    const mean_axis *last = last_axis(w);
    int64_t c = w->channels, step = last->taps == 0;
    for (int64_t o = 0; o < column_count(last); o++)
        w->ops->shares[w->p->dtype](to + o * c * w->size, 0, from + o * last->gy_step * w->gx_bytes,
                                    0, w->divisors + o * step * c * w->size, step, c, 1);
}

/* The quotients of the rows of windows [first,end), which all exist. */
static void divide_rows(mean_walk *w, char *to, int64_t pitch, int64_t first, int64_t end)
{
    const mean_axis *last = last_axis(w), *a = last - 1;
    int64_t columns = column_count(last), outer = 1;
    bool together = last->gy_step == w->channels || columns == 1;
    if (columns == 0) /* no window is near */
        return;
    const char *gy = w->gy + first_column(last) * last->gy_step * w->gx_bytes;
    for (int i = 0; i < w->axes - 2; i++) {
        gy += w->at[i] * w->axis[i].gy_step * w->gx_bytes;
        outer *= taps_at(w, i, w->at[i]);
    }
    to += (first_column(last) - last->window) * w->channels * w->size;
    for (int64_t row = first, rows; row < end; row += rows, to += rows * pitch * w->size) {
        int64_t taps = taps_at(w, w->axes - 2, row);
        set_divisors(w, outer * taps);
        rows = together && a->taps > 0 ? end - row : 1;
        while (together && row + rows < end && taps_at(w, w->axes - 2, row + rows) == taps)
            rows++;
        const char *from = gy + row * a->gy_step * w->gx_bytes;
        if (together)
            w->ops->shares[w->p->dtype](to, pitch, from, a->gy_step, w->divisors, last->taps == 0,
                                        columns * w->channels, rows);
        else
            divide_pixels(w, to, from);
    }
}

/* ---- Rows of cells -------------------------------------------------------------------------- */

/* Lists of windows have one of two lengths, if any: the sums of as many windows from each on,
 * of which cells take one. */
static const char *sums_to_pick(mean_walk *w, char *to, int64_t k, int64_t rows)
{
    const mean_axis *a = last_axis(w);
    int64_t c = w->channels, pitch = a->windows * c, n = (a->count - (k - 1) * a->gap) * c;
    if (k <= 1)
        return a->block;
    sum_list(w, w->sum, to, pitch, a->block, a->gap * c, pitch, k, n, rows);
    return to;
}

static void pick_rows(mean_walk *w, char *to, int64_t to_step, int64_t rows)
{
    const mean_axis *a = last_axis(w);
    const char *few = sums_to_pick(w, w->few, w->fewest, rows), *many = few;
    if (w->most > w->fewest)
        many = sums_to_pick(w, w->many, w->most, rows);
    w->ops->pick(to, to_step * w->size, few, many, a->windows * w->channels * w->size, w->picks,
                 w->behind, w->channels * w->size, a->cells, rows);
}

/* Rows of cells, from the rows of windows [first,end), which all exist: sums, or results. */
static void make_rows(mean_walk *w, tarn_dtype dtype, char *to, int64_t to_step, int64_t first,
                      int64_t end)
{
    const mean_axis *a = last_axis(w);
    int64_t c = w->channels, pitch = a->windows * c;
    int64_t bytes = dtype == w->sum ? w->size : w->gx_bytes;
    if (w->plain || w->late) {
        if (column_count(a) < a->count) /* zeros around the quotients */
            memset(to, 0, (size_t)((end - first) * to_step * w->size));
        divide_rows(w, to, to_step, first, end);
        return;
    }
    for (int64_t row = first, rows; row < end; row += rows, to += rows * to_step * bytes) {
        rows = min_i64(w->quotient_rows, end - row);
        divide_rows(w, a->block, pitch, row, row + rows);
        if (w->picked)
            pick_rows(w, to, to_step, rows);
        else
            sum_list(w, dtype, to, to_step, a->block + a->runs[0].first * c * w->size, a->gap * c,
                     pitch, a->runs[0].n, a->cells * c, rows);
    }
}

/* The sums of the block of an axis, one for each run. */
static void sum_block(mean_walk *w, int axis, char *to)
{
    const mean_axis *a = &w->axis[axis];
    int64_t kinds = kinds_here(a), pitch = a->pitch;
    int64_t n = axis + 2 == w->axes ? row_length(w) : run_count(a + 1) * a[1].pitch;
    for (int64_t r = 0; r < kinds; r++)
        sum_list(w, w->sum, to + r * pitch * w->size, a->kinds * pitch,
                 a->block + a->runs[r].first * pitch * w->size, a->gap * pitch, pitch, a->runs[r].n,
                 n, runs_alike(a, r));
}

/* Fills the block of an axis, but for the first `kept` rows. */
static void fill_block(mean_walk *w, int axis, int64_t kept)
{
    mean_axis *a = &w->axis[axis];
    int64_t end = a->window + a->count, row = a->pitch * w->size;
    int64_t first = min_i64(max_i64(a->window + kept, 0), end);
    int64_t beyond = max_i64(min_i64(end, a->axis->out), first);
    memset(a->block + kept * row, 0, (size_t)((first - a->window - kept) * row));
    if (axis + 2 == w->axes)
        make_rows(w, w->sum, a->block + (first - a->window) * row, a->pitch, first, beyond);
    for (int64_t o = first; o < beyond && axis + 2 < w->axes; o++) {
        w->at[axis] = o;
        fill_block(w, axis + 1, 0);
        sum_block(w, axis + 1, a->block + (o - a->window) * row);
    }
    memset(a->block + (beyond - a->window) * row, 0, (size_t)((end - beyond) * row));
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* The windows that read the tile, if the output went on for ever. */
static void find_windows(mean_axis *a)
{
    const tarn_axis *axis = a->axis;
    int64_t end;
    if (a->clipped) {
        a->window = 0;
        end = axis->out;
    } else if (axis->adaptive) {
        tarn_span last = cell_windows(axis, a->cell + a->cells - 1);
        a->window = cell_windows(axis, a->cell).first;
        end = last.first + last.n;
    } else {
        int64_t position = a->cell + axis->lo;
        a->window = ceil_div(position - axis->dilation * (axis->kernel - 1), axis->stride);
        end = (position + a->cells - 1) / axis->stride + 1;
    }
    a->count = max_i64(end - a->window, 0);
}

/* The runs of n cells from the first of the tile on. */
static void make_runs(mean_axis *a, int64_t n)
{
    mean_run *run = a->runs - 1;
    for (int64_t i = 0, next; i < n; i = next) {
        const int64_t cell = a->cell + i;
        const tarn_span windows = windows_of_cell(a->axis, a->clipped, cell);
        next = min_i64(next_windows(a->axis, a->clipped, cell, &windows) - a->cell, n);
        /* of no windows, the first is near those of the cell before */
        int64_t near = run >= a->runs ? run->first : 0;
        int64_t first = windows.n > 0 ? windows.first - a->window : near;
        if (run < a->runs || run->n != windows.n || run->first != first)
            *++run = (mean_run){(int32_t)i, 0, (int32_t)first, (int32_t)windows.n};
        run->cells += (int32_t)(next - i);
    }
    a->kinds = run + 1 - a->runs;
}

/* Goes to the tile that begins with `cell`; false if it is there. */
static bool set_tile(mean_axis *a, int64_t cell)
{
    int64_t cells = min_i64(a->tile, a->hi - cell);
    if (cell == a->cell && cells == a->cells && a->listed >= 0)
        return false;
    a->cell = cell;
    a->cells = cells;
    find_windows(a);
    if (a->listed >= 0 && a->period > 0 && (cell - a->listed) % a->period == 0)
        return true;
    a->listed = cell;
    make_runs(a, a->period > 0 ? min_i64(a->period, a->tile) : cells);
    return true;
}

/* What each cell of a row picks. */
static void make_picks(mean_walk *w)
{
    const mean_axis *a = last_axis(w);
    int64_t i = 0;
    w->fewest = w->most = 0;
    for (const mean_run *run = a->runs; run < a->runs + a->kinds; run++)
        if (run->n > 0) {
            w->fewest = w->fewest == 0 ? run->n : min_i64(w->fewest, run->n);
            w->most = max_i64(w->most, run->n);
        }
    for (const mean_run *run = a->runs; run < a->runs + a->kinds; run++) {
        int32_t pick = run->first | (run->n == 0 ? PICK_NONE : run->n > w->fewest ? PICK_MANY : 0);
        for (int64_t end = i + run->cells; i < end; i++)
            w->picks[i] = pick;
    }
    for (; i < a->tile && a->period > 0; i++)
        w->picks[i] = w->picks[i - a->period] + 1;
    int32_t before = 0, after = 0; /* at most, of what eight neighbours pick; periods are alike */
    for (int64_t k = 0; k < (a->period > 0 ? min_i64(a->period, i) : i); k++)
        for (int64_t next = k + 1; next < min_i64(k + NEIGHBOURS, i); next++) {
            int32_t distance = (w->picks[next] & PICK_PLACE) - (w->picks[k] & PICK_PLACE);
            after = distance > after ? distance : after;
            before = -distance > before ? -distance : before;
        }
    w->behind = before + after < NEIGHBOURS ? before : -1;
}

/* Of the last axis: around the quotients there are zeros, which stay. */
static void set_last_tile(mean_walk *w, int64_t cell)
{
    mean_axis *last = last_axis(w);
    int64_t listed = last->period > 0 ? last->listed : -1;
    if (!set_tile(last, cell))
        return;
    w->divided_by = -1;
    if (w->picked && last->listed != listed)
        make_picks(w);
    if (!w->plain && !w->late)
        memset(last->block, 0, (size_t)(w->quotient_rows * last->windows * w->channels * w->size));
    for (int64_t o = 0; o < column_count(last) && last->taps == 0; o++)
        w->taps[o] = counted_taps(w->p, last->axis, first_column(last) + o);
}

/* ---- Results -------------------------------------------------------------------------------- */

static char *gx_of_tile(const mean_walk *w)
{
    char *gx = w->gx;
    for (int a = 0; a < w->axes; a++)
        gx += (w->axis[a].cell - (a == 0 ? w->turned_first : 0)) * w->axis[a].gx_step * w->gx_bytes;
    return gx;
}

/* Elements of the cells in hand on the axes from `axis` on, if they follow each other both where
 * results are written and in the tensor; 0 if not. */
static int64_t solid_length(const mean_walk *w, int axis)
{
    int64_t length = w->channels;
    for (int i = w->axes - 1; i >= axis && length > 0; i--) {
        const mean_axis *a = &w->axis[i];
        bool solid = a->cells == 1 || (a->to_step == length && a->gx_step == length);
        length = solid ? length * a->cells : 0;
    }
    return length;
}

/* Copies the results of the tile, on the axes from `axis` on: to another cell of an outer axis, or
 * to the tensor. */
static void copy_cells(const mean_walk *w, int axis, char *to, const char *from, bool to_tensor)
{
    const mean_axis *a = &w->axis[axis];
    int64_t bytes = solid_length(w, axis) * w->gx_bytes, step = a->to_step * w->gx_bytes;
    int64_t to_step = to_tensor ? a->gx_step * w->gx_bytes : step;
    if (bytes >= LEAST_PAST && w->past && to_tensor)
        w->ops->copy_past(to, from, bytes);
    else if (bytes > 0)
        w->ops->copy(to, from, bytes);
    else if (axis + 1 == w->axes)
        for (int64_t i = 0; i < a->cells; i++)
            memcpy(to + i * to_step, from + i * step, (size_t)(w->channels * w->gx_bytes));
    else
        for (int64_t i = 0; i < a->cells; i++)
            copy_cells(w, axis + 1, to + i * to_step, from + i * step, to_tensor);
}

/* The first cell of a run is what all of its cells are. Where these follow each other, copies are
 * copied. */
static void repeat_cell(const mean_walk *w, int axis, char *run, int64_t cells)
{
    int64_t cell = w->axis[axis].to_step * w->gx_bytes, done = 1;
    if (solid_length(w, axis + 1) == w->axis[axis].to_step) {
        for (int64_t more; done < cells; done += more) {
            more = min_i64(min_i64(done, COPIED_BYTES / cell + 1), cells - done);
            w->ops->copy(run + done * cell, run, more * cell);
        }
    }
    for (; done < cells; done++)
        copy_cells(w, axis + 1, run + done * cell, run, false);
}

/* Rows of results, which are sums of k terms; windows may still have to be picked. */
static void write_rows(mean_walk *w, char *to, int64_t to_step, const char *from, int64_t from_step,
                       int64_t k, int64_t rows)
{
    const mean_axis *first = &w->axis[0];
    int64_t n = row_length(w), gap = first->gap * first->pitch, pixel = w->channels * w->gx_bytes;
    if (!w->late) {
        sum_list(w, w->p->dtype, to, to_step, from, gap, from_step, k, n, rows);
        return;
    }
    bool ready = k == 1 && w->size == w->gx_bytes; /* quotients are results */
    for (int64_t row = 0, some; row < rows; row += some) {
        const char *sums = from + row * from_step * w->size, *results = ready ? sums : w->few;
        some = min_i64(rows - row, ROWS_AT_ONCE);
        if (n > 0 && !ready) /* windows near */
            sum_list(w, w->p->dtype, w->few, n, sums, gap, from_step, k, n, some);
        w->ops->pick(to + row * to_step * w->gx_bytes, to_step * w->gx_bytes, results, results,
                     (ready ? from_step : n) * w->gx_bytes, w->picks, w->behind, pixel,
                     last_axis(w)->cells, some);
    }
}

/* The results of the cells, on the axes from `axis` on: sums of k terms of the block of the first
 * axis. (Of the first axis itself, runs tell the terms.) */
static void write_cells(mean_walk *w, int axis, char *to, const char *from, int64_t k)
{
    const mean_axis *a = &w->axis[axis];
    int64_t kinds = kinds_here(a), cell = a->to_step * w->gx_bytes;
    int64_t apart = a->period < a->cells ? a->period : 0, period = apart * cell; /* or none is */
    int64_t next = axis == 0 ? a->pitch : a->kinds * a->pitch;
    for (int64_t r = 0; r < kinds; r++) {
        const mean_run *run = &a->runs[r];
        const char *terms = from + r * a->pitch * w->size;
        char *cells = to + run->start * cell;
        int64_t alike = runs_alike(a, r);
        if (axis == 0) {
            terms = a->block + run->first * a->pitch * w->size;
            k = run->n;
        }
        if (axis + 2 == w->axes)
            write_rows(w, cells, apart * a->to_step, terms, next, k, alike);
        for (int64_t i = 0; i < alike && axis + 2 < w->axes; i++) {
            const char *here = terms + i * next * w->size;
            bool is_long = k > MOST_SHARES; /* then once for all that is inside */
            if (is_long)
                sum_list(w, w->sum, w->whole, 0, here, a->gap * a->pitch, 0, k,
                         run_count(a + 1) * a[1].pitch, 1);
            write_cells(w, axis + 1, cells + i * period, is_long ? w->whole : here,
                        is_long ? 1 : k);
        }
        for (int64_t i = 0; i < alike && run->cells > 1; i++)
            repeat_cell(w, axis, cells + i * period,
                        min_i64(run->cells, a->cells - run->start - i * a->period));
    }
}

static void write_tile(mean_walk *w, int64_t kept)
{
    const mean_axis *a = &w->axis[0];
    char *gx = gx_of_tile(w), *to = w->direct ? gx : w->result;
    if (w->first > 0 && (!w->picked || w->size == w->gx_bytes)) { /* planes are not added up */
        make_rows(w, w->p->dtype, to, a->to_step, a->cell, a->cell + a->cells);
    } else {
        fill_block(w, 0, kept);
        write_cells(w, 0, to, NULL, 0);
    }
    if (!w->direct)
        copy_cells(w, 0, gx, w->result, true);
}

/* All tiles along the first axis. */
static void slide(mean_walk *w)
{
    mean_axis *a = &w->axis[0];
    int64_t done = -1, row = a->pitch * w->size; /* windows before it are in the block */
    for (int64_t cell = a->lo; cell < a->hi; cell += a->tile) {
        int64_t before = a->window, kept = 0;
        set_tile(a, cell);
        if (cell > a->lo && done > a->window) {
            kept = done - a->window;
            memmove(a->block, a->block + (a->window - before) * row, (size_t)(kept * row));
        }
        done = a->window + a->count;
        write_tile(w, kept);
    }
}

static void for_tiles(mean_walk *w, int axis)
{
    mean_axis *a = &w->axis[axis];
    if (axis == w->axes) {
        slide(w);
        return;
    }
    for (int64_t cell = a->lo; cell < a->hi; cell += a->tile) {
        if (axis + 1 == w->axes)
            set_last_tile(w, cell);
        else
            set_tile(a, cell);
        for_tiles(w, axis + 1);
    }
}

/* ---- Sizes of tiles ------------------------------------------------------------------------- */

static char *take(mean_walk *w, int64_t *used, int64_t bytes)
{
    char *place = w->scratch + min_i64(*used, w->scratch_bytes);
    *used += rounded_up(bytes + SCRATCH_SLACK, 64);
    return place;
}

/* The windows of a tile at most; more than fit if there are so many. */
static int64_t windows_at_most(const mean_axis *a)
{
    const tarn_axis *axis = a->axis;
    int64_t reach = axis->dilation * (axis->kernel - 1);
    if (a->clipped)
        return axis->out;
    if (axis->adaptive)
        return muldiv_floor(a->tile, axis->windows, axis->whole) + 2;
    if (reach / axis->stride > SCRATCH_BYTES)
        return SCRATCH_BYTES;
    return (a->tile - 1 + reach) / axis->stride + 1;
}

/* The kinds of runs of a tile at most. Without dilation, they end where a window begins or ends,
 * and where a period does. */
static int64_t kinds_at_most(const mean_axis *a)
{
    const tarn_axis *axis = a->axis;
    if (a->period == 0)
        return axis->dilation > 1 ? a->tile : min_i64(a->tile, 2 * a->windows + 1);
    int64_t kinds = axis->dilation > 1 ? a->period : axis->kernel % axis->stride == 0 ? 2 : 3;
    return min_i64(kinds, min_i64(a->period, a->tile));
}

/* What the row in hand takes, but for its block. */
static void place_row(mean_walk *w, int64_t *used)
{
    const mean_axis *a = last_axis(w);
    int64_t quotients = a->windows * w->channels;
    int64_t wanted = a->longest > 1 ? QUOTIENTS : 4 * QUOTIENTS; /* sums take room beside them */
    w->quotient_rows = max_i64(1, min_i64(wanted / quotients, a[-1].windows));
    w->divisors = take(w, used, a->taps > 0 ? w->size : quotients * w->size);
    int64_t counts = a->taps > 0 ? 0 : a->windows;
    w->taps = (int64_t *)(void *)take(w, used, counts * (int64_t)sizeof *w->taps);
    int64_t sums = w->quotient_rows * quotients * w->size;
    bool few = w->picked && a->longest > 2, many = w->picked && a->longest > 1;
    w->few = take(w, used, w->late ? ROWS_AT_ONCE * quotients * w->gx_bytes : few * sums);
    w->many = take(w, used, many * sums);
    int64_t picks = w->picked ? a->tile : 0;
    w->picks = (int32_t *)(void *)take(w, used, picks * (int64_t)sizeof *w->picks);
}

/* Divides the scratch memory for the tiles of now; false if it is too little. */
static bool fits(mean_walk *w)
{
    int64_t used = w->reserved, elements = w->channels, cells = w->channels;
    int64_t sums = 0, tail = 0, whole = 0;
    for (int i = 0; i < w->axes; i++) {
        w->axis[i].windows = windows_at_most(&w->axis[i]);
        if (w->axis[i].windows >= SCRATCH_BYTES || w->axis[i].tile >= SCRATCH_BYTES)
            return false;
    }
    place_row(w, &used);
    for (int i = w->axes - 1; i >= 0; i--) {
        mean_axis *a = &w->axis[i];
        bool is_last = i + 1 == w->axes;
        int64_t rows = !is_last ? 1 : w->plain || w->late ? 0 : w->quotient_rows;
        int64_t block = rows * a->windows * elements * w->size, kinds = kinds_at_most(a);
        a->pitch = elements;
        a->to_step = w->direct ? a->gx_step : cells;
        a->block = take(w, &used, block);
        int64_t runs = a->period > 0 ? ((a->tile - 1) / a->period + 1) * kinds : kinds;
        a->runs = (mean_run *)(void *)take(w, &used, kinds * (int64_t)sizeof *a->runs);
        if (a->longest > MOST_SHARES) {
            int64_t alike = (a->tile - 1) / max_i64(a->period, 1) + 1;
            sums = max_i64(sums, block);
            tail = max_i64(tail, is_last ? block : alike * elements * w->size);
            whole = i == 0 && w->axes > 2 ? elements * w->size : 0;
        }
        elements *= !is_last ? runs : w->late ? a->windows : a->tile;
        cells *= a->tile;
        if (used > w->scratch_bytes || elements > SCRATCH_BYTES || cells > SCRATCH_BYTES)
            return false;
    }
    w->sums = take(w, &used, sums);
    w->tail = take(w, &used, tail);
    w->whole = take(w, &used, whole);
    w->result = take(w, &used, w->direct ? 0 : cells * w->gx_bytes);
    return used <= w->scratch_bytes;
}

/* Halves what is longest by comparison with what its halves have to do twice; false if all is 1. */
static bool shrink(mean_walk *w)
{
    mean_axis *longest = NULL;
    double most = 0;
    for (int i = 0; i < w->axes; i++) {
        mean_axis *a = &w->axis[i];
        double twice = 1;
        if (!a->axis->adaptive && !a->clipped)
            twice += (double)a->axis->dilation * (double)(a->axis->kernel - 1);
        twice = i == 0 ? twice / 4 + 1 : twice; /* the block slides */
        if (i + 1 == w->axes)                   /* rows want to be long */
            twice += w->plain ? 128 : 32 / (double)w->channels;
        if (a->tile > 1 && (double)a->tile / twice > most) {
            most = (double)a->tile / twice;
            longest = a;
        }
    }
    if (!longest)
        return false;
    int64_t half = (longest->tile + 1) / 2, period = max_i64(longest->period, 1);
    if (w->plain && longest == last_axis(w))
        period = w->ops->vector_bytes / w->size;
    longest->tile = rounded_up(half, period) < longest->tile ? rounded_up(half, period) : half;
    return true;
}

/* False if no tile is small enough. */
static bool takes_tiles(mean_walk *w)
{
    const mean_axis *last = last_axis(w);
    w->direct =
        (!w->past || w->reserved > 0) && (last->gx_step == w->channels || last->axis->size == 1);
    while (!fits(w))
        if (!shrink(w))
            return false;
    return true;
}

/* Whether tiles follow each other along the first axis only. */
static bool has_one_tile_inside(const mean_walk *w)
{
    bool one = true;
    for (int a = 1; a < w->axes; a++)
        one &= w->axis[a].tile == w->axis[a].axis->size;
    return one;
}

/* ---- Axes ----------------------------------------------------------------------------------- */

/* Counts are greatest inside, so that the first and the last window tell of all. */
static int64_t common_taps(const tarn_problem *p, const tarn_axis *axis)
{
    if (p->divisor > 0)
        return 1;
    if (axis->out == 1)
        return counted_taps(p, axis, 0);
    bool all = counted_taps(p, axis, 0) == axis->kernel &&
               counted_taps(p, axis, axis->out - 1) == axis->kernel;
    if (axis->adaptive)
        all = axis->whole % axis->windows == 0;
    return all ? axis->kernel : 0;
}

static void set_axis(mean_axis *a, const tarn_axis *axis, int64_t taps)
{
    a->axis = axis;
    a->taps = taps;
    a->clipped = axis->out <= 2 && axis->kernel > 1;
    a->period = axis->adaptive || a->clipped ? 0 : axis->stride;
    a->gap = axis->adaptive || a->clipped ? 1 : axis->window_step;
    a->longest = axis->adaptive ? axis->windows / axis->whole + 2
                                : (axis->kernel - 1) / axis->tap_step + 1;
    if (a->clipped)
        a->longest = min_i64(a->longest, axis->out);
    a->tile = a->hi = axis->size;
    a->listed = -1;
}

static void add_axis(mean_walk *w, const tarn_axis *axis, int64_t gx_step, int64_t gy_step)
{
    mean_axis *a = &w->axis[w->axes++];
    *a = (mean_axis){.gx_step = gx_step, .gy_step = gy_step};
    set_axis(a, axis, common_taps(w->p, axis));
}

/* An axis of n places without windows of its own. */
static void add_places(mean_walk *w, int64_t n, int64_t gx_step, int64_t gy_step)
{
    mean_axis *a = &w->axis[w->axes++];
    *a = (mean_axis){.gx_step = gx_step, .gy_step = gy_step};
    a->own = (tarn_axis){.size = n,
                         .out = n,
                         .kernel = 1,
                         .stride = 1,
                         .dilation = 1,
                         .gcd = 1,
                         .tap_step = 1,
                         .window_step = 1};
    set_axis(a, &a->own, 1);
}

/* Rows are channels if there are many. Otherwise rows are the last axis, and planes an axis outside
 * of them if there is no other. */
static void set_axes(mean_walk *w, bool plain)
{
    const tarn_problem *p = w->p;
    int inner = p->leading - 1;
    w->axis = w->room + 1;
    w->axes = 0;
    w->plain = plain;
    w->channels = plain ? 1 : p->lanes;
    for (int a = 0; a < p->spatial; a++)
        add_axis(w, &p->axis[a], p->stride[TARN_GX][a], p->stride[TARN_GY][a]);
    if (plain)
        add_places(w, p->lanes, 1, 1);
    w->first = w->axes == 1;
    if (w->first) {
        w->axis--;
        w->axes = 0;
        if (inner >= 0)
            add_places(w, p->lead_size[inner], p->lead_stride[TARN_GX][inner],
                       p->lead_stride[TARN_GY][inner]);
        else
            add_places(w, 1, 0, 0);
        w->axes = 2;
    }
    w->picked = !plain && last_axis(w)->period != 1;
    /* Rows of two axes are picked once, and then written several times. */
    w->late = w->picked && last_axis(w)->longest == 1 &&
              (w->first ? w->size != w->gx_bytes : w->axes > 2);
}

/* ---- Small planes --------------------------------------------------------------------------- */

/* Strides of planes that are dense, but for lanes; their elements, or 0 if they are not. */
static int64_t turn_strides(tarn_problem *turned, int operand, int64_t lanes)
{
    int64_t elements = 1;
    for (int a = turned->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &turned->axis[a];
        int64_t n = operand == TARN_GX ? axis->size : axis->out;
        if (n > 1 && turned->stride[operand][a] != elements)
            return 0;
        turned->stride[operand][a] = elements * lanes;
        elements *= n;
    }
    return elements;
}

/* Rows of cells of turned planes that fit beside their windows; 0 if there are too few. Where rows
 * have a vector of windows, only whole planes pay. */
static int64_t rows_that_fit(const mean_walk *w, double row, double windows)
{
    const tarn_axis *first = w->axis[0].axis, *last = w->axis[w->axes - 1].axis;
    const int vector = w->ops->vector_bytes;
    const double room = (double)(w->scratch_bytes * 7 / 10 / vector) - windows;
    const double extent = (double)first->kernel;
    if (row * (double)first->size <= room)
        return first->size;
    const bool some = last->out * w->size < vector && row * 2 * extent <= room;
    return some ? (int64_t)(room / row) : 0;
}

/* Whether planes are taken a vector at a time, a lane being a plane: where they are small, and
 * enough, unless the windows of a row slide by 1 and fill two vectors. Makes the problem of these
 * lanes. */
static bool turns_planes(mean_walk *w, const tarn_problem *p)
{
    const mean_axis *last = last_axis(w);
    int64_t vector = w->ops->vector_bytes, lanes = vector / w->gx_bytes;
    if (last->period == 1 && last->axis->size * w->size >= 2 * vector)
        return false;
    double row = 1, windows = (double)p->axis[0].out;
    for (int a = 1; a < p->spatial; a++) {
        row *= (double)p->axis[a].size;
        windows *= (double)p->axis[a].out;
    }
    w->turned_rows = rows_that_fit(w, row, windows);
    if (p->lanes > 1 || p->leading == 0 || p->lead_size[p->leading - 1] < lanes / 2 ||
        w->turned_rows == 0)
        return false;
    memcpy(&w->turned, p, offsetof(tarn_problem, lead_size));
    w->turned_row = turn_strides(&w->turned, TARN_GX, lanes) / p->axis[0].size;
    w->turned_windows = turn_strides(&w->turned, TARN_GY, lanes);
    if (w->turned_row == 0 || w->turned_windows == 0)
        return false;
    w->turned.leading = 0;
    w->turned.lanes = lanes;
    w->p = &w->turned;
    w->gx = take(w, &w->reserved, w->turned_rows * w->turned_row * vector);
    w->gy = take(w, &w->reserved, w->turned_windows * vector);
    return true;
}

/* Whether turned planes fit, with what is computed of them. */
static bool takes_turned(mean_walk *w, const tarn_problem *p)
{
    w->p = p;
    w->reserved = 0;
    set_axes(w, false);
    if (w->first > 0 || !turns_planes(w, p))
        return false;
    set_axes(w, false);
    return takes_tiles(w) && has_one_tile_inside(w);
}

/* The turned planes whose gradients begin at gx, some rows of cells at a time. */
static void turn_rows_back(mean_walk *w, const tarn_slab *slab, char *const *gx, tarn_core width)
{
    void *rows[MOST_LANES];
    for (int64_t lo = slab->lo; lo < slab->hi; lo += w->turned_rows) {
        const int64_t hi = min_i64(lo + w->turned_rows, slab->hi);
        w->axis[0].lo = w->turned_first = lo;
        w->axis[0].hi = hi;
        for_tiles(w, 1);
        for (int64_t lane = 0; lane < w->turned.lanes; lane++)
            rows[lane] = gx[lane] + lo * w->turned_row * w->gx_bytes;
        w->ops->turn_back[width](rows, w->gx, (hi - lo) * w->turned_row);
    }
}

/* Planes, `planes` of them, whose cells of the slab are asked for. Lanes without a plane repeat
 * the last. */
static void run_turned(mean_walk *w, const tarn_slab *slab, int64_t planes, int64_t gx_step,
                       int64_t gy_step)
{
    const void *gy[MOST_LANES];
    char *gx[MOST_LANES];
    const tarn_core width = w->gx_bytes == 2 ? CORE_I16 : w->gx_bytes == 4 ? CORE_I32 : CORE_I64;
    for (int64_t first = 0; first < planes; first += w->turned.lanes) {
        for (int64_t lane = 0; lane < w->turned.lanes; lane++) {
            int64_t plane = min_i64(first + lane, planes - 1);
            gy[lane] = slab->base[TARN_GY] + plane * gy_step * w->gx_bytes;
            gx[lane] = slab->base[TARN_GX] + plane * gx_step * w->gx_bytes;
        }
        w->ops->turn[width](w->gy, gy, w->turned_windows);
        turn_rows_back(w, slab, gx, width);
    }
}

/* ---- The engine ----------------------------------------------------------------------------- */

static void run_planes(mean_walk *w, const tarn_problem *p, const tarn_slab *slab, int64_t planes)
{
    int inner = p->leading - 1;
    int64_t gx_step = inner < 0 ? 0 : p->lead_stride[TARN_GX][inner];
    int64_t gy_step = inner < 0 ? 0 : p->lead_stride[TARN_GY][inner];
    w->axis[w->first].lo = slab->lo;
    w->axis[w->first].hi = slab->hi;
    if (w->p != p) {
        run_turned(w, slab, planes, gx_step, gy_step);
        return;
    }
    int64_t together = w->first > 0 ? planes : 1;
    if (w->first > 0)
        w->axis[0].hi = planes;
    for (int64_t i = 0; i < planes; i += together) {
        w->gx = slab->base[TARN_GX] + i * gx_step * w->gx_bytes;
        w->gy = slab->base[TARN_GY] + i * gy_step * w->gx_bytes;
        for_tiles(w, 1);
    }
}

/* Rows of pixels, turned planes, or rows of channels; false if no way fits. More planes fit that
 * are turned to fewer lanes, and fewer fill these. */
static bool take_way(mean_walk *w, const tarn_problem *p, const tarn_row_ops *ops)
{
    w->p = p;
    set_axes(w, false);
    const mean_axis *last = last_axis(w);
    bool plain = p->lanes >= (last->period > 0 ? FEW_CHANNELS : 4 * FEW_CHANNELS) ||
                 last->axis->size / last->axis->out >= LONG_RUN;
    for (w->ops = ops; w->ops && !plain; w->ops = w->ops->narrower)
        if (takes_turned(w, p))
            return true;
    w->p = p;
    w->ops = ops;
    w->reserved = 0;
    set_axes(w, plain);
    return takes_tiles(w);
}

void tarn_engine_backward_mean(const tarn_problem *problem, const tarn_tensors *tensors,
                               int64_t begin, int64_t end, const tarn_row_ops *ops)
{
    _Alignas(64) char scratch[SCRATCH_BYTES];
    tarn_backward_mean_in(scratch, SCRATCH_BYTES, problem, tensors, begin, end, ops);
}

void tarn_backward_mean_in(char *scratch, int64_t bytes, const tarn_problem *problem,
                           const tarn_tensors *tensors, int64_t begin, int64_t end,
                           const tarn_row_ops *ops)
{
    mean_walk w;
    tarn_problem merged = *problem, *p = &merged;
    int64_t units = merge_global_axes(p), planes; /* of what was merged, in a unit */
    tarn_slab slab;
    memset(&w, 0, offsetof(mean_walk, turned));
    w.scratch = scratch;
    w.scratch_bytes = bytes;
    w.sum = p->dtype == TARN_F64 ? TARN_F64 : TARN_F32;
    w.size = (int64_t)tarn_dtype_size(w.sum);
    w.gx_bytes = p->element_bytes[TARN_GX];
    double cells = (double)p->planes * (double)p->lanes;
    for (int a = 0; a < p->spatial; a++)
        cells *= (double)p->axis[a].size;
    w.past = cells * (double)w.gx_bytes >= (double)p->cache_bytes;
    if (tarn_means_are_apart(p)) {
        tarn_spread_means(p, tensors, begin * units, end * units, ops);
        return;
    }
    if (!take_way(&w, p, ops)) {
        tarn_spec(problem, tensors, begin, end);
        return;
    }
    begin *= units;
    end *= units;
    while ((planes = next_planes(p, tensors, p->axis[0].size, &begin, end, INT64_MAX, &slab)) > 0)
        run_planes(&w, p, &slab, planes);
    if (w.past)
        ops->finish_past();
}
