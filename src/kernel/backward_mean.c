/* The gradient of means [A5, S4]: gx[cell] = the sum of gy/divisor over the windows that read the
 * cell, innermost axis first, on each axis in halves.
 *
 * Cells are taken in tiles that fit on the stack. Of every axis but the last there is a block: for
 * each window that reads the tile, existing or not, the sums over all axes inside it, one for each
 * cell of the tile inside. A block of the last axis are the quotients themselves. Summing a block
 * over the windows of each cell makes one row of the block further out; that of the first axis
 * makes results. Along the first axis tiles slide: what the next one needs of the block is kept.
 *
 * On an axis, cells a stride apart are read by windows one apart: one call of a row operation
 * serves all of them. Those of adaptive windows go one by one.
 */
#include "engines.h"

enum {
    SCRATCH_BYTES = 40 << 10,
    MOST_AXES = TARN_MAX_SPATIAL + 1,
    MOST_CHANNELS = 1024, /* of a tile */
    FEW_CHANNELS = 16,    /* where cells go one by one */
    QUOTIENTS = 2048,   /* wanted at once */
    GROUP = 4           /* terms that longer lists share the sums of */
};

typedef struct mean_axis {
    const tarn_axis *axis;
    int64_t gx_step, gy_step; /* in elements */
    int64_t period;           /* cells so far apart have windows one apart; 0: no two are alike */
    bool picked;              /* each cell has a list, and picks a sum */
    int64_t fewest, most;     /* windows of a list with any, in the tile in hand, if picked */
    int64_t taps;             /* that count, of every window; 0: not the same of all */
    int64_t longest;          /* list of windows */
    int64_t gap;              /* between the windows of a list */
    int64_t lo, hi;           /* the cells that are asked for */
    int64_t stretch;          /* of windows that share no cell: from one to the next */
    int64_t tile, windows;    /* most cells of a tile, and windows of those */
    int64_t pitch;            /* elements of one window's row of the block */
    char *block;
    tarn_cell_list *lists;    /* of a tile's first period, or of all its cells, from `window` on */
    int64_t listed;           /* the cell that they begin with; -1: none */
    int64_t cell, cells;      /* the tile in hand */
    int64_t window, count;    /* its windows */
} mean_axis;

typedef struct mean_walk {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    char *gx, *gy; /* element [0,...,0] of the plane, and of the first channel in hand */
    tarn_dtype sum;
    int width;                /* core of the sums' width */
    int64_t size, gx_bytes;   /* of a sum, and of an element */
    int axes;                 /* at least two */
    mean_axis axis[MOST_AXES];
    int64_t at[MOST_AXES];    /* the window in hand on each axis but the last */
    int64_t most_channels, channels; /* of a tile, and of that in hand */
    bool past, direct;        /* results go past the caches; to the tensor without a detour */
    int64_t quotient_rows;
    char *few, *many, *sums, *tail, *result, *divisors;
    int64_t *taps;            /* that count, of each window of the last axis */
    int64_t divided_by;       /* taps on the outer axes that `divisors` are made for; 0: none */
    bool one_divisor;
    _Alignas(64) char scratch[SCRATCH_BYTES];
} mean_walk;

static const tarn_axis single = {.size = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1,
                                 .gcd = 1, .tap_step = 1, .window_step = 1};

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

/* How many lists of an axis are told apart. */
static int64_t list_count(const mean_axis *a)
{
    return a->period > 0 && !a->picked ? min_i64(a->period, a->tile) : a->cells;
}

/* Cells of the tile that are whole periods from its cell i, and that one. */
static int64_t cells_alike(const mean_axis *a, int64_t i)
{
    return (a->cells - i - 1) / list_count(a) + 1;
}

/* Cells without a period that have the same list as cell i, from it on. */
static int64_t same_lists(const mean_axis *a, int64_t i)
{
    int64_t n = 1;
    while (a->period == 0 && i + n < a->cells && a->lists[i + n].first == a->lists[i].first &&
           a->lists[i + n].n == a->lists[i].n)
        n++;
    return n;
}

/* The sums of a block, for the cells of its axis: rows `step` elements of the dtype apart. */
static void sum_block(mean_walk *w, int axis, tarn_dtype dtype, char *to, int64_t step)
{
    const mean_axis *a = &w->axis[axis], *inside = a + 1;
    int64_t lists = list_count(a), bytes = (int64_t)tarn_dtype_size(dtype);
    int64_t n = inside->cells * (axis + 2 == w->axes ? w->channels : inside->pitch);
    for (int64_t i = 0, same; i < lists && i < a->cells; i += same) {
        const char *from = a->block + a->lists[i].first * a->pitch * w->size;
        char *cell = to + i * step * bytes;
        int64_t k = a->lists[i].n, gap = a->gap * a->pitch;
        same = same_lists(a, i);
        if (a->period > 0)
            sum_list(w, dtype, cell, lists * step, from, gap, a->pitch, k, n, cells_alike(a, i));
        else
            sum_list(w, dtype, cell, step, from, gap, 0, k, n, same);
    }
}

/* ---- Quotients ------------------------------------------------------------------------------ */

static int64_t counted_taps(const tarn_problem *p, const tarn_axis *axis, int64_t o)
{
    tarn_span taps = window_taps(axis, o);
    return p->count_include_pad ? padded_taps(axis, o) : taps.hi - taps.lo;
}

/* [A2] The taps of a window on one axis, and on all but the last two: factors of the divisor. */
static int64_t taps_at(const mean_walk *w, int axis, int64_t o)
{
    const mean_axis *a = &w->axis[axis];
    return a->taps > 0 ? a->taps : counted_taps(w->p, a->axis, o);
}

static int64_t outer_taps(const mean_walk *w)
{
    int64_t taps = 1;
    for (int a = 0; a < w->axes - 2; a++)
        taps *= taps_at(w, a, w->at[a]);
    return taps;
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

static void set_divisors(mean_walk *w, int64_t outer)
{
    int64_t columns = column_count(last_axis(w));
    if (w->divided_by == outer)
        return;
    w->divided_by = outer;
    if (w->one_divisor)
        put_divisor(w, 0, w->p->divisor > 0 ? w->p->divisor : outer * last_axis(w)->taps);
    for (int64_t o = 0; o < columns && !w->one_divisor; o++)
        for (int64_t c = 0; c < w->channels; c++)
            put_divisor(w, o * w->channels + c, outer * w->taps[o]);
}

/* Quotients of a row of windows that are not side by side in memory, or whose channels are not
 * all here. */
static void divide_pixels(mean_walk *w, char *to, const char *from)
{
    const mean_axis *last = last_axis(w);
    int64_t columns = column_count(last), c = w->channels, step = last->gy_step;
    if (w->one_divisor)
        w->ops->shares[w->p->dtype](to, c, from, step, w->divisors, 0, c, columns);
    for (int64_t o = 0; o < columns && !w->one_divisor; o++)
        w->ops->shares[w->p->dtype](to + o * c * w->size, 0, from + o * step * w->gx_bytes, 0,
                                    w->divisors + o * c * w->size, 0, c, 1);
}

/* The quotients of the rows of windows [first,end), which all exist. */
static void divide_rows(mean_walk *w, int64_t first, int64_t end)
{
    const mean_axis *last = last_axis(w), *a = last - 1;
    int64_t columns = column_count(last), pitch = last->windows * w->channels;
    bool together = w->channels == w->p->lanes && (last->gy_step == w->p->lanes || columns == 1);
    if (columns == 0) /* no window is near */
        return;
    char *quotients = last->block + (first_column(last) - last->window) * w->channels * w->size;
    const char *gy = w->gy + first_column(last) * last->gy_step * w->gx_bytes;
    int64_t outer = outer_taps(w);
    for (int i = 0; i < w->axes - 2; i++)
        gy += w->at[i] * w->axis[i].gy_step * w->gx_bytes;
    for (int64_t row = first, rows; row < end; row += rows) {
        char *to = quotients + (row - first) * pitch * w->size;
        int64_t taps = taps_at(w, w->axes - 2, row);
        set_divisors(w, outer * taps);
        for (rows = 1; together && row + rows < end && taps_at(w, w->axes - 2, row + rows) == taps;)
            rows++;
        const char *from = gy + row * a->gy_step * w->gx_bytes;
        if (together)
            w->ops->shares[w->p->dtype](to, pitch, from, a->gy_step, w->divisors, !w->one_divisor,
                                        columns * w->channels, rows);
        else
            divide_pixels(w, to, from);
    }
}

/* ---- Across: the last axis ------------------------------------------------------------------ */

/* Lists of windows have one of two lengths, if any: the sums of as many windows from each on,
 * of which cells take one. */
static const char *sums_to_pick(mean_walk *w, char *to, int64_t k, int64_t rows)
{
    const mean_axis *a = last_axis(w);
    int64_t n = a->count - (k - 1) * a->gap;
    if (k <= 1)
        return a->block;
    sum_list(w, w->sum, to, a->windows, a->block, a->gap, a->windows, k, n, rows);
    return to;
}

static void pick_rows(mean_walk *w, char *to, int64_t to_step, int64_t rows)
{
    const mean_axis *a = last_axis(w);
    const char *few = sums_to_pick(w, w->few, a->fewest, rows), *many = NULL;
    if (a->most > a->fewest)
        many = sums_to_pick(w, w->many, a->most, rows);
    if (a->period == 2 && a->tile > 1 && a->lists[0].n > 0 && a->lists[1].n > 0) {
        const char *even = a->lists[0].n > a->fewest ? many : few;
        const char *odd = a->lists[1].n > a->fewest ? many : few;
        w->ops->weave[w->width](to, to_step, even + a->lists[0].first * w->size,
                                odd + a->lists[1].first * w->size, a->windows, a->cells, rows);
        return;
    }
    w->ops->pick[w->width](to, to_step, few, many, a->windows, a->lists, a->fewest, a->cells,
                           rows);
}

static void sum_pixels(mean_walk *w, char *to, int64_t to_step, int64_t rows)
{
    const mean_axis *a = last_axis(w);
    int64_t lists = list_count(a), c = w->channels, pitch = a->windows * c;
    for (int64_t i = 0; i < lists && i < a->cells; i++) {
        const char *from = a->block + a->lists[i].first * c * w->size;
        char *cell = to + i * c * w->size;
        int64_t k = a->lists[i].n, alike = cells_alike(a, i);
        if (alike == 1)
            sum_list(w, w->sum, cell, to_step, from, a->gap * c, pitch, k, c, rows);
        for (int64_t row = 0; row < rows && alike > 1; row++)
            sum_list(w, w->sum, cell + row * to_step * w->size, lists * c,
                     from + row * pitch * w->size, a->gap * c, c, k, c, alike);
    }
}

/* Rows of cells, from rows of windows that exist. */
static void sum_across(mean_walk *w, char *to, int64_t to_step, int64_t first, int64_t end)
{
    const mean_axis *a = last_axis(w);
    int64_t pitch = a->windows * w->channels;
    for (int64_t row = first, rows; row < end; row += rows, to += rows * to_step * w->size) {
        rows = min_i64(w->quotient_rows, end - row);
        divide_rows(w, row, row + rows);
        if (a->period == 1)
            sum_list(w, w->sum, to, to_step, a->block + a->lists[0].first * w->channels * w->size,
                     a->gap * w->channels, pitch, a->lists[0].n, a->cells * w->channels, rows);
        else if (a->picked)
            pick_rows(w, to, to_step, rows);
        else
            sum_pixels(w, to, to_step, rows);
    }
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* Fills the block of an axis, but for the first `kept` rows. */
static void fill_block(mean_walk *w, int axis, int64_t kept)
{
    mean_axis *a = &w->axis[axis];
    int64_t end = a->window + a->count, row = a->pitch * w->size;
    int64_t first = min_i64(max_i64(a->window + kept, 0), end);
    int64_t beyond = max_i64(min_i64(end, a->axis->out), first);
    memset(a->block + kept * row, 0, (size_t)((first - a->window - kept) * row));
    if (axis + 2 == w->axes)
        sum_across(w, a->block + (first - a->window) * row, a->pitch, first, beyond);
    for (int64_t o = first; o < beyond && axis + 2 < w->axes; o++) {
        w->at[axis] = o;
        fill_block(w, axis + 1, 0);
        sum_block(w, axis + 1, w->sum, a->block + (o - a->window) * row, a[1].pitch);
    }
    memset(a->block + (beyond - a->window) * row, 0, (size_t)((end - beyond) * row));
}

/* The windows that read the tile, if the output went on for ever. */
static void find_windows(mean_axis *a)
{
    const tarn_axis *axis = a->axis;
    int64_t end;
    if (axis->adaptive) {
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

/* The next cell with other windows than these, of adaptive ones. */
static int64_t next_list(const tarn_axis *axis, const tarn_span *windows)
{
    tarn_span first = window_taps(axis, windows->first);
    int64_t end = first.first + first.n, after = windows->first + windows->n;
    return after < axis->out ? min_i64(end, window_taps(axis, after).first) : end;
}

/* The lists of n cells from the first of the tile on. */
static void make_lists(mean_axis *a, int64_t n)
{
    a->fewest = a->most = 0;
    for (int64_t i = 0, next = 0; i < n; i++) {
        if (a->period > 0 && i >= a->period) {
            a->lists[i] = a->lists[i - a->period];
            a->lists[i].first++;
            continue;
        }
        if (i < next) { /* no window begins or ends here */
            a->lists[i] = a->lists[i - 1];
            continue;
        }
        tarn_span windows = cell_windows(a->axis, a->cell + i);
        int64_t near = i > 0 ? a->lists[i - 1].first : 0;
        int64_t first = windows.n > 0 ? windows.first - a->window : near;
        a->lists[i] = (tarn_cell_list){(int32_t)first, (int32_t)windows.n};
        if (windows.n > 0) {
            a->fewest = a->fewest == 0 ? windows.n : min_i64(a->fewest, windows.n);
            a->most = max_i64(a->most, windows.n);
        }
        if (a->axis->adaptive)
            next = next_list(a->axis, &windows) - a->cell;
    }
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
    make_lists(a, a->picked && a->period > 0 ? a->tile : list_count(a));
    return true;
}

/* Of the last axis: around the quotients there are zeros, which stay. */
static void set_last_tile(mean_walk *w, int64_t cell)
{
    mean_axis *last = last_axis(w);
    if (!set_tile(last, cell) && w->divided_by >= 0)
        return;
    memset(last->block, 0, (size_t)(w->quotient_rows * last->windows * w->channels * w->size));
    w->divided_by = 0;
    for (int64_t o = 0; o < column_count(last) && !w->one_divisor; o++)
        w->taps[o] = counted_taps(w->p, last->axis, first_column(last) + o);
}

/* ---- Results -------------------------------------------------------------------------------- */

static char *gx_of_tile(const mean_walk *w)
{
    char *gx = w->gx;
    for (int a = 0; a < w->axes; a++)
        gx += w->axis[a].cell * w->axis[a].gx_step * w->gx_bytes;
    return gx;
}

static void copy_run(const mean_walk *w, char *to, const char *from, int64_t bytes)
{
    if (w->past && bytes >= 1024)
        w->ops->copy_past(to, from, bytes);
    else
        memcpy(to, from, (size_t)bytes);
}

/* Writes the tile, from axis `axis` on; neighbours on it are `pitch` elements apart in the
 * result. */
static void copy_result(const mean_walk *w, int axis, char *to, const char *from)
{
    const mean_axis *a = &w->axis[axis];
    int64_t pitch = axis + 1 == w->axes ? w->channels : a->pitch, run = w->channels;
    bool together = true; /* in both memories, from here on */
    for (int inside = w->axes - 1; inside >= axis; inside--) {
        const mean_axis *b = &w->axis[inside];
        int64_t here = inside + 1 == w->axes ? w->channels : b->pitch;
        together &= b->cells == 1 || (b->gx_step == run && here == run);
        run *= b->cells;
    }
    if (together) {
        copy_run(w, to, from, run * w->gx_bytes);
        return;
    }
    for (int64_t i = 0; i < a->cells; i++) {
        char *cell = to + i * a->gx_step * w->gx_bytes;
        const char *result = from + i * pitch * w->gx_bytes;
        if (axis + 1 == w->axes)
            memcpy(cell, result, (size_t)(w->channels * w->gx_bytes));
        else
            copy_result(w, axis + 1, cell, result);
    }
}

/* One cell of the first axis: sums of k terms of its block, for the cells from axis `axis` on,
 * straight to the tensor. */
static void write_cell(mean_walk *w, int axis, char *to, const char *from, int64_t k)
{
    const mean_axis *first = &w->axis[0], *a = &w->axis[axis];
    if (axis + 2 == w->axes)
        sum_list(w, w->p->dtype, to, a->gx_step, from, first->gap * first->pitch, a->pitch, k,
                 a[1].cells * w->channels, a->cells);
    for (int64_t i = 0; i < a->cells && axis + 2 < w->axes; i++)
        write_cell(w, axis + 1, to + i * a->gx_step * w->gx_bytes, from + i * a->pitch * w->size,
                   k);
}

static void write_tile(mean_walk *w)
{
    const mean_axis *a = &w->axis[0];
    char *gx = gx_of_tile(w);
    int64_t lists = list_count(a);
    if (!w->direct) {
        sum_block(w, 0, w->p->dtype, w->result, a->pitch);
        copy_result(w, 0, gx, w->result);
    } else if (w->axes == 2) {
        sum_block(w, 0, w->p->dtype, gx, a->gx_step);
    } else {
        for (int64_t i = 0; i < a->cells; i++)
            write_cell(w, 1, gx + i * a->gx_step * w->gx_bytes,
                       a->block + (a->lists[i % lists].first + i / lists) * a->pitch * w->size,
                       a->lists[i % lists].n);
    }
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
        fill_block(w, 0, kept);
        done = a->window + a->count;
        write_tile(w);
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

/* ---- Lists too long for any block: cell by cell --------------------------------------------- */

static void sum_windows(mean_walk *w, int axis, char *to);

/* [S1] Entries [first,first+n) of a list, of which those that exist are in [list->lo,list->hi). */
static void sum_entries(mean_walk *w, int axis, const tarn_span *list, int64_t first, int64_t n,
                        char *to)
{
    while (n > 1) { /* down to the part that both halves exist of */
        int64_t half = split_point(n);
        if (first + half >= list->hi) {
            n = half;
        } else if (first + half <= list->lo) {
            first += half;
            n -= half;
        } else {
            char right[FEW_CHANNELS * sizeof(double) + SCRATCH_SLACK];
            const void *terms[2] = {to, right};
            sum_entries(w, axis, list, first, half, to);
            sum_entries(w, axis, list, first + half, n - half, right);
            char sum[sizeof right];
            w->ops->share_sums[w->sum](sum, 0, terms, 0, 2, w->channels, 1);
            memcpy(to, sum, (size_t)(w->channels * w->size));
            return;
        }
    }
    w->at[axis] = span_at(list, first);
    sum_windows(w, axis + 1, to);
}

/* The sum over the windows of the cell, on the axes from `axis` on. */
static void sum_windows(mean_walk *w, int axis, char *to)
{
    if (axis == w->axes) {
        int64_t offset = 0, divisor = 1;
        for (int a = 0; a < w->axes; a++) {
            offset += w->at[a] * w->axis[a].gy_step;
            divisor *= taps_at(w, a, w->at[a]);
        }
        put_divisor(w, 0, w->p->divisor > 0 ? w->p->divisor : divisor);
        w->ops->shares[w->p->dtype](to, 0, w->gy + offset * w->gx_bytes, 0, w->divisors, 0,
                                    w->channels, 1);
        return;
    }
    tarn_span list = cell_windows(w->axis[axis].axis, w->axis[axis].cell);
    if (list.lo < list.hi)
        sum_entries(w, axis, &list, 0, list.n, to);
    else
        memset(to, 0, (size_t)(w->channels * w->size));
}

static void for_cells(mean_walk *w, int axis)
{
    mean_axis *a = &w->axis[axis];
    if (axis == w->axes) {
        char sums[FEW_CHANNELS * sizeof(double) + SCRATCH_SLACK];
        const void *terms[1] = {sums};
        sum_windows(w, 0, sums);
        w->ops->share_sums[w->p->dtype](gx_of_tile(w), 0, terms, 0, 1, w->channels, 1);
        return;
    }
    for (a->cell = a->lo; a->cell < a->hi; a->cell++)
        for_cells(w, axis + 1);
}

/* ---- Sizes of tiles ------------------------------------------------------------------------- */

static char *take(mean_walk *w, int64_t *used, int64_t bytes)
{
    char *place = w->scratch + min_i64(*used, SCRATCH_BYTES);
    *used += rounded_up(bytes + SCRATCH_SLACK, 64);
    return place;
}

/* The windows of a tile at most; more than fit if there are so many. */
static int64_t windows_at_most(const mean_axis *a)
{
    const tarn_axis *axis = a->axis;
    int64_t reach = axis->dilation * (axis->kernel - 1);
    if (axis->adaptive)
        return muldiv_floor(a->tile, axis->out, axis->size) + 2;
    if (reach / axis->stride > SCRATCH_BYTES)
        return SCRATCH_BYTES;
    return (a->tile - 1 + reach) / axis->stride + 1;
}

/* Places the block of an axis in the scratch memory: so many at once, of rows of so many
 * elements. */
static void place_block(mean_walk *w, mean_axis *a, int64_t blocks, int64_t elements, int64_t *used)
{
    int64_t lists = a->period > 0 && !a->picked ? min_i64(a->period, a->tile) : a->tile;
    a->pitch = elements;
    a->block = take(w, used, blocks * a->windows * elements * w->size);
    a->lists = (tarn_cell_list *)(void *)take(w, used, lists * (int64_t)sizeof *a->lists);
}

static void place_last(mean_walk *w, int64_t *used)
{
    mean_axis *a = last_axis(w);
    int64_t c = w->most_channels, quotients = a->windows * c;
    w->quotient_rows = max_i64(1, min_i64(QUOTIENTS / quotients, a[-1].windows));
    w->divisors = take(w, used, w->one_divisor ? w->size : quotients * w->size);
    int64_t counts = w->one_divisor ? 0 : a->windows;
    w->taps = (int64_t *)(void *)take(w, used, counts * (int64_t)sizeof *w->taps);
    int64_t picks = a->picked && a->longest > 1 ? w->quotient_rows * quotients * w->size : 0;
    w->few = take(w, used, picks);
    w->many = take(w, used, picks);
    place_block(w, a, w->quotient_rows, c, used);
}

/* Divides the scratch memory for the tiles of now; false if it is too little. */
static bool fits(mean_walk *w)
{
    int64_t used = 0, elements = w->most_channels, sums = 0, tail = 0;
    for (int i = 0; i < w->axes; i++) {
        w->axis[i].windows = windows_at_most(&w->axis[i]);
        if (w->axis[i].windows >= SCRATCH_BYTES || w->axis[i].tile >= SCRATCH_BYTES)
            return false;
    }
    place_last(w, &used);
    for (int i = w->axes - 1; i >= 0; i--) {
        mean_axis *a = &w->axis[i];
        bool is_last = i + 1 == w->axes;
        if (!is_last)
            place_block(w, a, 1, elements, &used);
        int64_t block = (is_last ? w->quotient_rows : 1) * a->windows * elements * w->size;
        if (a->longest > MOST_SHARES) {
            sums = max_i64(sums, block);
            int64_t rows = (a->tile - 1) / max_i64(a->period, 1) + 1;
            tail = max_i64(tail, is_last ? block : rows * elements * w->size);
        }
        elements *= a->tile;
        if (used > SCRATCH_BYTES || elements > SCRATCH_BYTES)
            return false;
    }
    w->sums = take(w, &used, sums);
    w->tail = take(w, &used, tail);
    w->result = take(w, &used, w->direct ? 0 : elements * w->gx_bytes);
    return used <= SCRATCH_BYTES;
}

/* Halves what is longest by comparison with what its halves have to do twice; false if all is 1. */
static bool shrink(mean_walk *w)
{
    int64_t *longest = NULL, period = 1;
    double most = w->most_channels > 16 ? (double)w->most_channels / 64 : 0;
    if (most > 0)
        longest = &w->most_channels;
    for (int i = 0; i < w->axes; i++) {
        mean_axis *a = &w->axis[i];
        double twice = 1;
        if (!a->axis->adaptive)
            twice += (double)a->axis->dilation * (double)(a->axis->kernel - 1);
        twice = i == 0 ? twice / 4 + 1 : twice; /* the block slides */
        twice += i + 1 == w->axes ? 32 / (double)w->most_channels : 0; /* rows want to be long */
        if (a->tile > 1 && (double)a->tile / twice > most) {
            most = (double)a->tile / twice;
            longest = &a->tile;
            period = a->period;
        }
    }
    if (!longest)
        return false;
    int64_t half = (*longest + 1) / 2;
    *longest = period > 1 && rounded_up(half, period) < *longest ? rounded_up(half, period) : half;
    return true;
}

/* Counts are greatest inside, so that the first and the last window tell of all. */
static int64_t common_taps(const tarn_problem *p, const tarn_axis *axis)
{
    if (p->divisor > 0)
        return 1;
    bool all = counted_taps(p, axis, 0) == axis->kernel &&
               counted_taps(p, axis, axis->out - 1) == axis->kernel;
    if (axis->adaptive)
        all = axis->size % axis->out == 0;
    return all ? axis->kernel : 0;
}

static void set_axis(const tarn_problem *p, mean_axis *a, const tarn_axis *axis, bool pixels)
{
    a->axis = axis;
    a->taps = common_taps(p, axis);
    a->period = axis->adaptive ? 0 : axis->stride;
    a->picked = !pixels && a->period != 1;
    a->stretch = axis->adaptive ? axis->size / axis->out
                                : min_i64(max_i64(axis->stride, axis->kernel),
                                          axis->size + axis->lo); /* none is longer */
    a->gap = axis->adaptive ? 1 : axis->window_step;
    a->longest = axis->adaptive ? axis->out / axis->size + 2
                                : (axis->kernel - 1) / axis->tap_step + 1;
    a->tile = a->hi = axis->size;
    a->listed = -1;
}

static void set_axes(mean_walk *w)
{
    const tarn_problem *p = w->p;
    int added = p->spatial == 1; /* an axis of size 1, so that there are rows */
    w->axes = p->spatial + added;
    set_axis(p, &w->axis[0], &single, true);
    for (int a = 0; a < p->spatial; a++) {
        mean_axis *axis = &w->axis[a + added];
        set_axis(p, axis, &p->axis[a], a + 1 < p->spatial || p->lanes > 1);
        axis->gx_step = p->stride[TARN_GX][a];
        axis->gy_step = p->stride[TARN_GY][a];
    }
    w->one_divisor = last_axis(w)->taps > 0;
}

/* ---- Windows that share no cell ------------------------------------------------------------- */

/* Nothing is added: quotients go to their cells, in 1-D and with channels last. (Short dense
 * rows are faster in tiles, which take several at once.) On every axis cells form stretches,
 * one for each window, which reads the first cells of it. The first may be cut off, and the
 * last goes on. */
static bool shares_no_cell(const mean_walk *w)
{
    const tarn_problem *p = w->p;
    int last = p->spatial - 1;
    for (int a = 0; a <= last; a++) {
        const tarn_axis *axis = &p->axis[a];
        bool apart = axis->adaptive ? axis->size % axis->out == 0
                                    : axis->out == 1 || axis->kernel <= axis->stride;
        if (!apart || (!axis->adaptive && axis->dilation > 1) ||
            w->axis[a + (p->spatial == 1)].taps == 0)
            return false;
    }
    bool long_runs = p->lanes == 1 ? p->spatial == 1 : p->lanes >= FEW_CHANNELS;
    return !w->past && long_runs && p->lanes <= QUOTIENTS &&
           (p->stride[TARN_GX][last] == p->lanes || p->axis[last].size == 1) &&
           (p->stride[TARN_GY][last] == p->lanes || p->axis[last].out == 1);
}

static int element_width(const mean_walk *w)
{
    return w->gx_bytes == 2 ? CORE_I16 : w->gx_bytes == 4 ? CORE_I32 : CORE_I64;
}

/* Zeros in cells [first,end) of the last axis, in rows of the axis before. */
static void clear_cells(const mean_walk *w, char *gx, int64_t first, int64_t end)
{
    const mean_axis *rows = &w->axis[w->axes - 2];
    int64_t pixel = w->p->lanes * w->gx_bytes;
    for (int64_t i = 0; i < rows->cells && first < end; i++)
        memset(gx + i * rows->gx_step * w->gx_bytes + first * pixel, 0,
               (size_t)((end - first) * pixel));
}

/* The stretches of n windows from o on: a dense row. */
static void write_stretches(const mean_walk *w, char *gx, int64_t o, int64_t n)
{
    const mean_axis *a = &w->axis[w->axes - 1];
    int64_t step = a->stretch, kernel = a->axis->kernel, bytes = w->gx_bytes, some;
    for (int64_t i = 0; i < n; i += some) {
        int64_t begin = (o + i) * step - a->axis->lo, copies = kernel, length = step;
        some = 1;
        if (begin >= a->lo && begin + step <= a->hi) {
            some = min_i64(n - i, (a->hi - begin) / step);
        } else {
            int64_t end = min_i64(begin + kernel, a->hi), after = min_i64(begin + step, a->hi);
            begin = max_i64(begin, a->lo);
            clear_cells(w, gx, max_i64(begin, end), after);
            copies = length = end - begin;
        }
        if (length > 0)
            w->ops->repeat[element_width(w)](gx + begin * bytes, w->result + i * bytes, copies,
                                             length, some);
    }
}

/* The same of pixels: first the first cells of all stretches, and so on. */
static void write_pixels(const mean_walk *w, char *gx, int64_t o, int64_t n)
{
    const mean_axis *a = &w->axis[w->axes - 1], *rows = a - 1;
    int64_t step = a->stretch, lo = a->axis->lo, c = w->p->lanes;
    for (int64_t j = 0; j < min_i64(step, a->hi + lo); j++) {
        int64_t first = max_i64(ceil_div(a->lo + lo - j, step), o);
        int64_t end = min_i64(ceil_div(a->hi + lo - j, step), o + n);
        const void *terms[1] = {w->sums + (first - o) * c * w->size};
        char *cell = gx + (first * step - lo + j) * c * w->gx_bytes;
        for (int64_t i = 0; i < rows->cells && first < end; i++)
            w->ops->share_sums[w->p->dtype](cell + i * rows->gx_step * w->gx_bytes, step * c,
                                            terms, c, j < a->axis->kernel, c, end - first);
    }
}

/* Windows [o,o+n) of the last axis, or zeros if n is 0, to the cells in hand on all others. */
static void write_windows(const mean_walk *w, int axis, char *gx, int64_t o, int64_t n)
{
    const mean_axis *a = &w->axis[axis], *last = &w->axis[w->axes - 1];
    gx += a->cell * a->gx_step * w->gx_bytes;
    for (int64_t i = 0; i < a->cells && axis + 2 < w->axes; i++)
        write_windows(w, axis + 1, gx + i * a->gx_step * w->gx_bytes, o, n);
    if (axis + 2 < w->axes)
        return;
    int64_t done = last->axis->out * last->stretch - last->axis->lo;
    if (n == 0)
        clear_cells(w, gx, last->lo, last->hi);
    else if (w->p->lanes == 1)
        write_stretches(w, gx, o, n);
    else
        write_pixels(w, gx, o, n);
    if (n > 0 && o + n == last->axis->out)
        clear_cells(w, gx, max_i64(done, last->lo), last->hi);
}

/* From axis `axis` on; `read` tells whether the cells in hand on the axes before are. */
static void repeat_windows(mean_walk *w, int axis, const char *gy, bool read)
{
    mean_axis *a = &w->axis[axis];
    int64_t step = a->stretch, lo = a->axis->lo, out = a->axis->out, c = w->p->lanes;
    int64_t last = min_i64((a->hi - 1 + lo) / step, out - 1);
    const void *terms[1] = {w->sums};
    for (int64_t cell = a->lo; cell < a->hi && axis + 1 < w->axes; cell += a->cells) {
        int64_t o = min_i64((cell + lo) / step, out - 1), end = o * step - lo + a->axis->kernel;
        int64_t next = cell < end ? end : o + 1 < out ? (o + 1) * step - lo : a->hi;
        a->cell = cell;
        a->cells = min_i64(next, a->hi) - cell;
        repeat_windows(w, axis + 1, gy + o * a->gy_step * w->gx_bytes, read && cell < end);
    }
    if (axis + 1 < w->axes)
        return;
    if (!read)
        write_windows(w, 0, w->gx, 0, 0);
    int64_t first = min_i64((a->lo + lo) / step, out - 1), most = QUOTIENTS / c;
    for (int64_t o = first, n; o <= last && read; o += n) {
        n = min_i64(most, last + 1 - o);
        w->ops->shares[w->p->dtype](w->sums, 0, gy + o * c * w->gx_bytes, 0, w->divisors, 0,
                                    n * c, 1);
        if (c == 1)
            w->ops->share_sums[w->p->dtype](w->result, 0, terms, 0, 1, n, 1);
        write_windows(w, 0, w->gx, o, n);
    }
}

/* ---- One window over everything ------------------------------------------------------------- */

/* Whether there is one window, which reads every cell, and planes of gx without gaps. */
static bool is_filled(const tarn_problem *p)
{
    int64_t cells = 1;
    for (int a = p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &p->axis[a];
        if (axis->out > 1 || (axis->size > 1 && p->stride[TARN_GX][a] != cells))
            return false;
        if (!axis->adaptive && (axis->dilation > 1 || axis->kernel < axis->size + axis->lo))
            return false;
        cells *= axis->size;
    }
    return p->lanes == 1;
}

/* Each of n values in so many neighbouring cells. */
static void fill_cells(mean_walk *w, char *to, const char *values, int64_t copies, int64_t n)
{
    int width = element_width(w);
    int64_t bytes = w->gx_bytes, most = SCRATCH_BYTES / bytes / copies;
    if (!w->past || most == 0) {
        w->ops->repeat[width](to, values, copies, copies, n);
        return;
    }
    for (int64_t i = 0, some; i < n; i += some) {
        some = min_i64(most, n - i);
        w->ops->repeat[width](w->scratch, values + i * bytes, copies, copies, some);
        w->ops->copy_past(to + i * copies * bytes, w->scratch, some * copies * bytes);
    }
}

enum { PLANES = 256 }; /* at once */

/* The part of planes, in units, that is filled next: whole neighbours on the innermost leading
 * axis, or one. */
__attribute__((noinline)) /* its buffers are not for other paths */
static int64_t fill_planes(mean_walk *w, const tarn_tensors *tensors, int64_t begin, int64_t end)
{
    const tarn_problem *p = w->p;
    int64_t rows = p->axis[0].size, after = begin, inside = 1, bytes = w->gx_bytes;
    int inner = p->leading - 1;
    tarn_slab slab;
    if (!next_slab(p, tensors, rows, &after, end, &slab))
        return end;
    for (int a = 1; a < p->spatial; a++)
        inside *= p->axis[a].size;
    int64_t planes = 1, copies = (slab.hi - slab.lo) * inside, gx_step = 0, gy_step = 0;
    if (slab.lo == 0 && slab.hi == rows && inner >= 0) {
        int64_t size = p->lead_size[inner];
        planes = min_i64(PLANES, min_i64((end - begin) / rows, size - begin / rows % size));
        gx_step = p->lead_stride[TARN_GX][inner] * bytes;
        gy_step = p->lead_stride[TARN_GY][inner] * bytes;
    }
    char given[PLANES * sizeof(double)], results[PLANES * sizeof(double)];
    char quotients[PLANES * sizeof(double) + SCRATCH_SLACK];
    const char *gy = slab.base[TARN_GY];
    for (int64_t i = 0; i < planes && gy_step != bytes; i++)
        memcpy(given + i * bytes, gy + i * gy_step, (size_t)bytes);
    const void *terms[1] = {quotients};
    w->ops->shares[p->dtype](quotients, 0, gy_step == bytes ? gy : given, 0, w->divisors, 0,
                             planes, 1);
    w->ops->share_sums[p->dtype](results, 0, terms, 0, 1, planes, 1);
    char *gx = slab.base[TARN_GX] + slab.lo * inside * bytes;
    if (planes == 1 || gx_step == copies * bytes)
        fill_cells(w, gx, results, copies, planes);
    else
        for (int64_t i = 0; i < planes; i++)
            fill_cells(w, gx + i * gx_step, results + i * bytes, copies, 1);
    return begin + planes * (slab.hi - slab.lo);
}

/* ---- The engine ----------------------------------------------------------------------------- */

/* How the cells of a slab are reached. */
typedef enum { IN_STRETCHES, IN_TILES, CELL_BY_CELL } mean_way;

/* The planes of a slab, a few of the interleaved ones at a time. */
static void for_channels(mean_walk *w, const tarn_slab *slab, mean_way way)
{
    for (int64_t first = 0; first < w->p->lanes; first += w->most_channels) {
        int64_t channels = min_i64(w->most_channels, w->p->lanes - first);
        if (channels != w->channels)
            w->divided_by = -1;
        w->channels = channels;
        w->gx = slab->base[TARN_GX] + first * w->gx_bytes;
        w->gy = slab->base[TARN_GY] + first * w->gx_bytes;
        if (way == IN_STRETCHES)
            repeat_windows(w, 0, w->gy, true);
        else if (way == IN_TILES)
            for_tiles(w, 1);
        else
            for_cells(w, 0);
    }
}

/* False if no tile is small enough. */
static bool size_tiles(mean_walk *w)
{
    const mean_axis *last = last_axis(w);
    do {
        w->direct = (w->axes == 2 || w->axis[0].longest <= MOST_SHARES) && !w->past &&
                    w->most_channels == w->p->lanes &&
                    (last->gx_step == w->p->lanes || last->axis->size == 1);
        if (fits(w))
            return true;
    } while (shrink(w));
    w->most_channels = min_i64(w->p->lanes, FEW_CHANNELS);
    w->divisors = w->scratch;
    return false;
}

void tarn_engine_backward_mean(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                               int64_t end, const tarn_row_ops *ops)
{
    mean_walk w;
    memset(&w, 0, offsetof(mean_walk, scratch));
    w.p = p;
    w.ops = ops;
    w.sum = p->dtype == TARN_F64 ? TARN_F64 : TARN_F32;
    w.width = w.sum == TARN_F64 ? CORE_I64 : CORE_I32;
    w.size = (int64_t)tarn_dtype_size(w.sum);
    w.gx_bytes = p->element_bytes[TARN_GX];
    double cells = (double)p->planes * (double)p->lanes;
    for (int a = 0; a < p->spatial; a++)
        cells *= (double)p->axis[a].size;
    w.past = cells * (double)w.gx_bytes >= (double)p->cache_bytes;
    if (is_filled(p)) {
        double divisor;
        w.divisors = (char *)&divisor;
        put_divisor(&w, 0, window_divisor(p, (int64_t[TARN_MAX_SPATIAL]){0}));
        while (begin < end)
            begin = fill_planes(&w, tensors, begin, end);
        return;
    }
    set_axes(&w);
    w.most_channels = min_i64(p->lanes, MOST_CHANNELS);
    mean_way way = shares_no_cell(&w) ? IN_STRETCHES : IN_TILES;
    if (way == IN_STRETCHES) {
        int64_t used = 0;
        w.divisors = take(&w, &used, w.size);
        w.sums = take(&w, &used, QUOTIENTS * w.size);
        w.result = take(&w, &used, QUOTIENTS * w.size);
        w.most_channels = p->lanes;
        put_divisor(&w, 0, window_divisor(p, (int64_t[TARN_MAX_SPATIAL]){0}));
    } else {
        way = size_tiles(&w) ? IN_TILES : CELL_BY_CELL;
    }
    tarn_slab slab;
    mean_axis *first = &w.axis[p->spatial == 1];
    while (next_slab(p, tensors, p->axis[0].size, &begin, end, &slab)) {
        first->lo = slab.lo;
        first->hi = slab.hi;
        for_channels(&w, &slab, way);
    }
}
