/* Scatter: any windows. Each window's gradient is added to the cell that won it, window by window,
 * and still in the order of S5, which wants a sum of its own for each axis: over the windows of a
 * row, of these sums over the rows of a plane, and so on. A cell has them all, its *levels*, and
 * remembers the row of windows that last reached it. A window from another row first makes the cell
 * add the level of the row to the one before; one from another plane the next level, too; what is
 * left at the end is added up then. Axes on which no cell has two windows need no level.
 *
 * A box of cells at a time, as many as fit scratch, and all windows that read it, some rows of them
 * at a time: winners become places in the box, or the place behind it if they are not there. A
 * window
 * costs the same whatever its size and the way it slides, a cell a few vector operations in all.
 */
#include "winners.h"

enum {
    CHUNK = 256, /* windows in hand, each of its channels by itself */
    ALIGNMENT = 64,
    SLACK = SCRATCH_SLACK / sizeof(int32_t),
    BOX_BYTES = 30 << 10
};

/* Windows of an axis: where they begin and end in the box. */
typedef struct extents {
    range cells, found; /* of the box; windows that were found */
    int64_t channels;
    uint32_t start[CHUNK + SLACK], end[CHUNK + SLACK];
} extents;

typedef struct scatter_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last;
    int64_t sum_bytes;
    int levels, level_axis[TARN_MAX_SPATIAL];
    range cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL], channels;
    int64_t cell_count; /* each channel by itself */
    char *sums[TARN_MAX_SPATIAL];
    int32_t *reached;                /* by which row of windows a cell was, the last time */
    int32_t row;                     /* in hand; rows are numbered from 1 on */
    int32_t first[TARN_MAX_SPATIAL]; /* row with the same windows on the axes up to this */
    extents *extents;                /* of columns and rows */
    int32_t *winners, *place;
    char *gy;
    tarn_places how;
} scatter_job;

/* ---- Windows -------------------------------------------------------------------------------- */

/* Levels from the last to the first: what was summed on one for other windows goes to the one
 * before. */
#define SCATTER(t, bits)                                                                           \
    static inline __attribute__((always_inline)) void scatter_levels_##t(                          \
        scatter_job *j, const char *gradients, int64_t rows, int64_t n, bool new_row, int levels)  \
    {                                                                                              \
        const t *restrict gy = (const t *)(const void *)gradients;                                 \
        const int32_t *restrict place = j->place;                                                  \
        int32_t *restrict reached = j->reached, row = j->row, first[TARN_MAX_SPATIAL] = {0};       \
        t *restrict sums[TARN_MAX_SPATIAL];                                                        \
        for (int k = 0; k < levels; k++) {                                                         \
            sums[k] = (t *)(void *)j->sums[k];                                                     \
            first[k] = k > 0 ? j->first[j->level_axis[k - 1]] : 0;                                 \
        }                                                                                          \
        bool by_row = levels > 1 && j->level_axis[levels - 2] == j->last - 1;                      \
        for (; rows > 0; rows--) {                                                                 \
            row += new_row;                                                                        \
            first[levels - 1] = by_row ? row : first[levels - 1];                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                int64_t at = place[i];                                                             \
                int32_t before = reached[at];                                                      \
                t sum = gy[i];                                                                     \
                for (int k = levels - 1; k > 0; k--) {                                             \
                    bits kept, given, same = -(bits)(before >= first[k]);                          \
                    t level = sums[k][at] + (k < levels - 1 ? sum : 0);                            \
                    memcpy(&kept, &level, sizeof kept);                                            \
                    given = kept & ~same;                                                          \
                    kept &= same;                                                                  \
                    memcpy(&level, &kept, sizeof kept);                                            \
                    sums[k][at] = k < levels - 1 ? level : level + sum;                            \
                    memcpy(&sum, &given, sizeof given);                                            \
                }                                                                                  \
                sums[0][at] += sum;                                                                \
                if (levels > 1)                                                                    \
                    reached[at] = row;                                                             \
            }                                                                                      \
            place += n;                                                                            \
            gy += n;                                                                               \
        }                                                                                          \
        j->row = row;                                                                              \
    }                                                                                              \
    static void scatter_##t(scatter_job *j, const char *gy, int64_t rows, int64_t n, bool new_row) \
    {                                                                                              \
        if (j->levels == 1)                                                                        \
            scatter_levels_##t(j, gy, 1, rows *n, new_row, 1);                                     \
        else if (j->levels == 2)                                                                   \
            scatter_levels_##t(j, gy, rows, n, new_row, 2);                                        \
        else if (j->levels == 3)                                                                   \
            scatter_levels_##t(j, gy, rows, n, new_row, 3);                                        \
        else                                                                                       \
            scatter_levels_##t(j, gy, rows, n, new_row, j->levels);                                \
    }
SCATTER(float, uint32_t)
SCATTER(double, uint64_t)
#undef SCATTER

/* Where windows of an axis begin and end in the box, each `times` in a row: of several channels,
 * that
 * lie side by side on the last axis. */
static void find_extents(const scatter_job *j, int a, range windows, int64_t times, uint32_t *start,
                         uint32_t *end)
{
    const tarn_axis *axis = &j->p->axis[a];
    range cells = j->cells[a];
    int64_t n = 0;
    for (int64_t o = windows.lo; o < windows.hi; o++) {
        int64_t hi = cells.hi;
        if (axis->adaptive)
            hi = min_i64(hi, window_end(axis, o));
        for (int64_t c = 0; c < times; c++, n++) {
            start[n] = (uint32_t)((window_start(axis, o) - cells.lo) * times + c);
            end[n] = (uint32_t)(max_i64(hi - cells.lo, 0) * times);
        }
    }
}

/* Those of some rows and columns of windows, as a rule the same as in the plane before. */
static void find_chunk(scatter_job *j, range rows, range columns)
{
    extents *rows_at = &j->extents[1], *columns_at = &j->extents[0];
    if (columns.lo != columns_at->found.lo || columns.hi != columns_at->found.hi)
        find_extents(j, j->last, columns, length(j->channels), columns_at->start, columns_at->end);
    columns_at->found = columns;
    if (j->last == 0)
        return;
    range all = j->windows[j->last - 1],
          some = length(all) <= CHUNK ? all : (range){rows.lo, min_i64(rows.lo + CHUNK, all.hi)};
    if (rows.lo < rows_at->found.lo || rows.hi > rows_at->found.hi) {
        find_extents(j, j->last - 1, some, 1, rows_at->start, rows_at->end);
        rows_at->found = some;
    }
    j->how.row_starts = rows_at->start + rows.lo - rows_at->found.lo;
    j->how.row_ends = rows_at->end + rows.lo - rows_at->found.lo;
}

/* The winners of some rows of windows, as places; returns their gradients as sums are. `o` has the
 * windows on the axes before. */
static const char *load_chunk(scatter_job *j, int64_t *o, range rows, range columns)
{
    const tarn_problem *p = j->p;
    int last = j->last;
    int64_t channels = length(j->channels), n = length(columns), down = length(rows),
            bytes[2] = {p->element_bytes[TARN_GY], p->element_bytes[OPERAND_SAVED]};
    const int64_t *steps[2] = {p->stride[TARN_GY], p->stride[OPERAND_SAVED]};
    const char *from[2];
    o[last] = columns.lo;
    if (last > 0)
        o[last - 1] = rows.lo;
    from[0] = j->slab->base[TARN_GY] + (offset_of(p, TARN_GY, o) + j->channels.lo) * bytes[0];
    from[1] =
        j->slab->base[OPERAND_SAVED] + (offset_of(p, OPERAND_SAVED, o) + j->channels.lo) * bytes[1];
    int64_t times[2], each[2], step[2];
    for (int k = 0; k < 2; k++) { /* rows that touch are one */
        step[k] = n > 1 ? steps[k][last] : channels;
        bool one = down == 1 || steps[k][last - 1] == n * step[k];
        each[k] = one ? down * n : n;
        times[k] = one ? 1 : down;
    }
    for (int64_t k = 0; k < times[1]; k++)
        j->ops->read_winners[bytes[1] == 4](j->winners + k * n * channels, channels,
                                            from[1] + (k ? k * steps[1][last - 1] * bytes[1] : 0),
                                            step[1], channels, each[1]);
    find_chunk(j, rows, columns);
    j->ops->winner_places(j->place, j->winners, &j->how, n * channels, down);
    if (bytes[0] == j->sum_bytes && times[0] == 1 && step[0] == channels)
        return from[0];
    for (int64_t k = 0; k < times[0]; k++)
        j->ops->read_gradients[p->dtype](j->gy + k * n * channels * j->sum_bytes,
                                         from[0] + (k ? k * steps[0][last - 1] * bytes[0] : 0),
                                         step[0], channels, each[0]);
    return j->gy;
}

static void add_chunk(scatter_job *j, int64_t *o, range rows, range columns)
{
    const char *gy = load_chunk(j, o, rows, columns);
    (j->sum_bytes == 8 ? scatter_double : scatter_float)(j, gy, length(rows),
                                                         length(columns) * length(j->channels),
                                                         columns.lo == j->windows[j->last].lo);
}

/* The windows on the last two axes. */
static void add_plane(scatter_job *j, int64_t *o)
{
    range all = j->last > 0 ? j->windows[j->last - 1] : (range){0, 1},
          columns = j->windows[j->last], rows, some;
    int64_t channels = length(j->channels), n = length(columns) * channels;
    int64_t height = max_i64(CHUNK / n, 1), width = n <= CHUNK ? length(columns) : CHUNK / channels;
    for (rows.lo = all.lo; rows.lo < all.hi; rows.lo = rows.hi) {
        rows.hi = min_i64(rows.lo + height, all.hi);
        for (some.lo = columns.lo; some.lo < columns.hi; some.lo = some.hi) {
            some.hi = min_i64(some.lo + width, columns.hi);
            add_chunk(j, o, rows, some);
        }
    }
}

/* All windows that read the box. */
static void add_windows(scatter_job *j)
{
    int64_t o[TARN_MAX_SPATIAL];
    for (int a = 0; a <= j->last; a++) {
        o[a] = j->windows[a].lo;
        j->first[a] = 1;
    }
    j->row = 0;
    for (int a = 0; a >= 0;) {
        for (int k = 0; k < j->last - 1; k++)
            find_extents(j, k, (range){o[k], o[k] + 1}, 1, &j->how.axis[j->last - k].start,
                         &j->how.axis[j->last - k].end);
        add_plane(j, o);
        for (a = j->last - 2; a >= 0; a--) {
            if (++o[a] < j->windows[a].hi)
                break;
            o[a] = j->windows[a].lo;
        }
        for (int k = a; a >= 0 && k <= j->last; k++)
            j->first[k] = j->row + 1;
    }
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* Elements of each level of a box: with the place of those outside. */
static int64_t level_elements(int64_t cells)
{
    return cells / MOST_LANES * MOST_LANES + MOST_LANES;
}

static bool box_fits(const scatter_job *j, const int64_t *size, int64_t channels)
{
    int64_t each = j->levels * j->sum_bytes + (int64_t)sizeof(int32_t);
    int64_t room = BOX_BYTES / each - MOST_LANES, cells = channels;
    for (int a = 0; a <= j->last && cells <= room; a++)
        cells *= min_i64(size[a], room + 1);
    return cells <= room;
}

/* Halves what has most cells for those that its windows share, columns last; or channels, of which
 * windows read no others, as long as they are many, or windows would be read too often. */
static int64_t cut_box(const scatter_job *j, const range *all, int64_t *size)
{
    enum { ROWS_BEFORE_COLUMNS = 16, MANY_CHANNELS = 16, FEW_CHANNELS = 4 };
    const tarn_problem *p = j->p;
    int64_t channels = p->lanes;
    for (int a = 0; a <= j->last; a++)
        size[a] = length(all[a]);
    while (channels > CHUNK || !box_fits(j, size, channels)) {
        int best = j->last;
        double most = 0, read = 1; /* windows to a cell */
        for (int a = 0; a <= j->last; a++) {
            double extent = (double)extent_of(&p->axis[a]), times = (double)size[a] / extent;
            read *= (double)p->axis[a].out / (double)p->axis[a].size;
            if (size[a] < length(all[a]))
                read *= 1 + (extent - 1) / (double)size[a];
            if (a == j->last)
                times /= ROWS_BEFORE_COLUMNS;
            if (size[a] > 1 && times > most) {
                most = times;
                best = a;
            }
        }
        if (channels > MANY_CHANNELS || most == 0 || (channels > FEW_CHANNELS && read > 1))
            channels = ceil_div(channels, 2);
        else
            size[best] = ceil_div(size[best], 2);
    }
    return channels;
}

/* Places all sums and sets them to zero. */
static void place_box(scatter_job *j, char *to)
{
    const tarn_problem *p = j->p;
    int64_t pitch = 1, channels = length(j->channels);
    for (int k = 0; k <= j->last; k++) {
        int a = j->last - k;
        const tarn_axis *axis = &p->axis[a];
        int64_t step = axis->adaptive ? 1 : axis->dilation;
        j->how.axis[k].kernel = (uint32_t)axis->kernel;
        j->how.axis[k].step = (uint32_t)(k == 0 ? step * channels : step);
        j->how.axis[k].pitch = (uint32_t)pitch;
        pitch *= length(j->cells[a]) * (k == 0 ? channels : 1);
    }
    j->cell_count = pitch;
    j->how.outside = (uint32_t)pitch;
    int64_t bytes = level_elements(pitch) * j->sum_bytes;
    for (int k = 0; k < j->levels; k++, to += bytes)
        j->sums[k] = to;
    j->reached = (int32_t *)(void *)to;
    to += level_elements(pitch) * (int64_t)sizeof(int32_t);
    memset(j->sums[0], 0, (size_t)(to - j->sums[0]));
}

/* Rows that touch in gx are one. */
static void store_box(const scatter_job *j)
{
    const tarn_problem *p = j->p;
    int64_t cell[TARN_MAX_SPATIAL], channels = length(j->channels), n = length(j->cells[j->last]);
    int64_t step = n > 1 ? p->stride[TARN_GX][j->last] : channels;
    int axes = j->last;
    for (int k = j->levels - 1; k > 0; k--)
        j->ops->add_sums[j->sum_bytes == 8](j->sums[k - 1], j->sums[k], j->cell_count);
    for (;
         axes > 0 && (length(j->cells[axes - 1]) == 1 || p->stride[TARN_GX][axes - 1] == n * step);
         axes--)
        n *= length(j->cells[axes - 1]);
    const char *sums = j->sums[0];
    for (int a = 0; a <= j->last; a++)
        cell[a] = j->cells[a].lo;
    for (int a = 0; a >= 0; sums += n * channels * j->sum_bytes) {
        int64_t at = offset_of(p, TARN_GX, cell) + j->channels.lo;
        j->ops->write_gradients[p->dtype](j->slab->base[TARN_GX] + at * p->element_bytes[TARN_GX],
                                          step, sums, channels, n);
        for (a = axes - 1; a >= 0; a--) {
            if (++cell[a] < j->cells[a].hi)
                break;
            cell[a] = j->cells[a].lo;
        }
    }
}

static void run_box(scatter_job *j, char *scratch)
{
    bool read = true;
    for (int k = 0; k < 2 && k <= j->last; k++) {
        range cells = j->cells[j->last - k], *same = &j->extents[k].cells;
        if (cells.lo != same->lo || cells.hi != same->hi ||
            j->extents[k].channels != length(j->channels))
            j->extents[k].found = (range){0, 0};
        *same = cells;
        j->extents[k].channels = length(j->channels);
    }
    for (int a = 0; a <= j->last; a++) {
        j->windows[a] = tarn_windows_reading(&j->p->axis[a], j->cells[a]);
        read &= length(j->windows[a]) > 0;
    }
    place_box(j, scratch);
    if (read)
        add_windows(j);
    store_box(j);
}

/* Levels are those axes on which a cell may have two windows; one at least. */
static void find_levels(scatter_job *j)
{
    for (int a = 0; a <= j->last; a++)
        if (tarn_windows_overlap(&j->p->axis[a]))
            j->level_axis[j->levels++] = a;
    j->levels += j->levels == 0;
}

void tarn_scatter_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const range *box, const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char boxes[BOX_BYTES];
    _Alignas(ALIGNMENT) double gy[CHUNK + SLACK];
    int32_t winners[CHUNK + SLACK], place[CHUNK + SLACK];
    extents along[2];
    tarn_slab slab;
    scatter_job j = {
        .p = p,
        .ops = ops,
        .slab = &slab,
        .last = p->spatial - 1,
        .sum_bytes = p->dtype == TARN_F64 ? 8 : 4,
        .extents = along,
        .winners = winners,
        .place = place,
        .gy = (char *)gy,
        .how = {.axes = p->spatial, .taps = 1, .starts = along[0].start, .ends = along[0].end}};
    range all[TARN_MAX_SPATIAL];
    int64_t size[TARN_MAX_SPATIAL];
    find_levels(&j);
    along[0].cells = along[1].cells = (range){0, 0};
    for (int a = 0; a < p->spatial; a++) {
        all[a] = box ? box[a] : (range){0, p->axis[a].size};
        j.how.taps *= (uint32_t)p->axis[a].kernel;
    }
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab)) {
        all[0] = (range){slab.lo, slab.hi};
        int64_t channels = cut_box(&j, all, size);
        for (j.channels.lo = 0; j.channels.lo < p->lanes; j.channels.lo = j.channels.hi) {
            j.channels.hi = min_i64(j.channels.lo + channels, p->lanes);
            tarn_first_box(j.cells, all, size, p->spatial);
            do
                run_box(&j, boxes);
            while (tarn_next_box(j.cells, all, size, p->spatial));
        }
    }
}
