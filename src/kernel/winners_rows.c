/* Sums of rows. A row of windows adds its gradients, left to right, to rows of zeros, one for each
 * row of taps; these are then added to the sums of the axis before, and so on: the order of S5, as
 * it stands. A window costs a few instructions, and a cell a fraction of one for each row of
 * windows that reads it, as rows are added in vectors.
 *
 * A box of cells at a time. For the windows o0, ..., oa of the first axes, sums[a + 1] has a layer
 * for each of their taps, and in it all cells of the box on the further axes. Columns have
 * margins, so that every tap of a window that reads the box has its place.
 */
#include "winners.h"

enum { MOST_TAPS = 256 };

typedef struct rows_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last;
    int64_t sum_bytes;
    range cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL];
    int64_t margin;                   /* columns */
    int64_t layers[TARN_MAX_SPATIAL]; /* taps of the axes before: layers of sums */
    int64_t
        block[TARN_MAX_SPATIAL]; /* elements of a layer: cells on this axis and the further ones */
    char *sums[TARN_MAX_SPATIAL];
    char *gradients; /* of a row of windows */
    int32_t offset[MOST_TAPS];
} rows_job;

/* ---- What fits ------------------------------------------------------------------------------ */

/* A row of windows adds a row of sums for each row of taps, stride columns to a window; lanes take
 * about as long as five quarters of a vector of these. */
static bool rows_are_few(const tarn_problem *p, int64_t layers, int64_t lanes)
{
    return layers <= 5 * lanes / 4 / p->axis[p->spatial - 1].stride;
}

bool tarn_rows_fit(const tarn_problem *p, const tarn_row_ops *ops)
{
    enum { FEW_CELLS = 1 << 10 };
    int last = p->spatial - 1;
    int64_t margins = 2 * extent_of(&p->axis[last]) * p->lanes, layers = 1;
    int64_t lanes = ops->vector_bytes / (p->dtype == TARN_F64 ? 8 : 4);
    bool dense = p->axis[last].out == 1 || (p->stride[TARN_GY][last] == p->lanes &&
                                            p->stride[OPERAND_SAVED][last] == p->lanes);
    for (int a = 0; a <= last; a++)
        if (p->axis[a].adaptive || extent_of(&p->axis[a]) > FEW_CELLS)
            return false;
    for (int a = 0; a < last; a++)
        layers *= p->axis[a].kernel;
    return dense && p->element_bytes[OPERAND_SAVED] == 1 && p->lanes * 4 < ops->vector_bytes &&
           margins * (layers + 2) <= FEW_CELLS && rows_are_few(p, layers, lanes);
}

/* Elements of a row of so many columns, with both margins: whole vectors. */
static int64_t pitch_of(const tarn_problem *p, int64_t columns)
{
    int64_t n = (columns + 2 * extent_of(&p->axis[p->spatial - 1])) * p->lanes;
    return ceil_div(n, MOST_LANES) * MOST_LANES;
}

/* Elements of sums and of a row of windows, for boxes of that size. */
static int64_t room_of(const tarn_problem *p, const int64_t *size)
{
    enum { TOO_MUCH = 1 << 20 };
    int last = p->spatial - 1;
    int64_t pitch = pitch_of(p, size[last]), room = pitch, layers = 1;
    for (int a = 0; a <= last; a++) {
        int64_t block = pitch;
        for (int k = a; k < last; k++)
            block = min_i64(block * size[k], TOO_MUCH);
        room = min_i64(room + (layers + (a == last)) * block, TOO_MUCH);
        layers *= p->axis[a].kernel;
    }
    return room;
}

/* Halves what has most cells for those that its windows share; columns last. */
static void cut_cells(const tarn_problem *p, const range *box, int64_t sum_bytes, int64_t *size)
{
    int last = p->spatial - 1;
    for (int a = 0; a <= last; a++)
        size[a] = length(box[a]);
    while (room_of(p, size) * sum_bytes > SCRATCH_BYTES - (last + 3) * SCRATCH_SLACK) {
        enum { ROWS_BEFORE_COLUMNS = 8 };
        int best = last;
        double most = 0;
        for (int a = 0; a <= last; a++) {
            double times = (double)size[a] / (double)extent_of(&p->axis[a]);
            if (a == last)
                times /= ROWS_BEFORE_COLUMNS;
            if (size[a] > 1 && times > most) {
                most = times;
                best = a;
            }
        }
        size[best] = ceil_div(size[best], 2);
    }
}

/* ---- Sums ----------------------------------------------------------------------------------- */

#define ADD_WINDOWS(t)                                                                             \
    static inline __attribute__((always_inline)) void add_##t(                                     \
        t *restrict sums, const uint8_t *restrict saved, const t *restrict gy,                     \
        const int32_t *restrict offset, int64_t step, int64_t channels, int64_t n)                 \
    {                                                                                              \
        for (int64_t o = 0; o < n; o++, sums += step, saved += channels, gy += channels)           \
            for (int64_t c = 0; c < channels; c++)                                                 \
                sums[offset[saved[c]] + c] += gy[c];                                               \
    }                                                                                              \
    static void add_windows_##t(char *sums, const uint8_t *saved, const char *gy,                  \
                                const int32_t *offset, int64_t step, int64_t channels, int64_t n)  \
    {                                                                                              \
        t *to = (t *)(void *)sums;                                                                 \
        const t *from = (const t *)(const void *)gy;                                               \
        if (channels == 1)                                                                         \
            add_##t(to, saved, from, offset, step, 1, n);                                          \
        else                                                                                       \
            add_##t(to, saved, from, offset, step, channels, n);                                   \
    }
ADD_WINDOWS(float)
ADD_WINDOWS(double)
#undef ADD_WINDOWS

/* The row of windows `o`, to the sums of the last axis. */
static void add_row(const rows_job *j, const int64_t *o)
{
    const tarn_problem *p = j->p;
    const tarn_axis *axis = &p->axis[j->last];
    range columns = j->windows[j->last];
    int64_t n = length(columns), bytes = p->element_bytes[TARN_GY];
    const char *gy = j->slab->base[TARN_GY] + offset_of(p, TARN_GY, o) * bytes;
    const uint8_t *saved =
        (const uint8_t *)j->slab->base[OPERAND_SAVED] + offset_of(p, OPERAND_SAVED, o);
    int64_t first = window_start(axis, columns.lo) - j->cells[j->last].lo + j->margin;
    char *to = j->sums[j->last] + first * p->lanes * j->sum_bytes;
    if (bytes != j->sum_bytes) {
        j->ops->read_gradients[p->dtype](j->gradients, gy, n * p->lanes, n * p->lanes, 1);
        gy = j->gradients;
    }
    (p->dtype == TARN_F64 ? add_windows_double : add_windows_float)(
        to, saved, gy, j->offset, axis->stride * p->lanes, p->lanes, n);
}

/* Adds the sums of window o of an axis to those of its cells, and clears them. */
static void add_layers(const rows_job *j, int axis, int64_t o)
{
    const tarn_axis *along = &j->p->axis[axis];
    int64_t first = window_start(along, o) - j->cells[axis].lo, n = j->block[axis + 1];
    char *from = j->sums[axis + 1];
    for (int64_t layer = 0; layer < j->layers[axis]; layer++)
        for (int64_t tap = 0; tap < along->kernel; tap++, from += n * j->sum_bytes) {
            int64_t cell = first + tap * along->dilation;
            if (cell >= 0 && cell < length(j->cells[axis]))
                j->ops->move_sums[j->sum_bytes == 8](
                    j->sums[axis] + (layer * j->block[axis] + cell * n) * j->sum_bytes, from, n);
            else
                memset(from, 0, (size_t)(n * j->sum_bytes));
        }
}

static void sum_axes(const rows_job *j, int axis, int64_t *o)
{
    range windows = j->windows[axis];
    o[axis] = windows.lo;
    if (axis == j->last) {
        add_row(j, o);
        return;
    }
    for (; o[axis] < windows.hi; o[axis]++) {
        sum_axes(j, axis + 1, o);
        add_layers(j, axis, o[axis]);
    }
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* All sums are zero: those of the first axis from the beginning of a box on, others whenever they
 * have been added. What names no tap goes to a layer of its own, which nobody reads. */
static void place_sums(rows_job *j, char *scratch)
{
    const tarn_problem *p = j->p;
    const tarn_axis *last = &p->axis[j->last];
    int64_t layers = 1, pitch = pitch_of(p, length(j->cells[j->last]));
    bool same = pitch == j->block[j->last];
    for (int a = 0; a < j->last; a++)
        same &= j->block[a] == j->block[a + 1] * length(j->cells[a]);
    if (same) {
        memset(j->sums[0], 0, (size_t)(j->block[0] * j->sum_bytes));
        return;
    }
    j->margin = extent_of(last);
    for (int a = j->last; a >= 0; a--)
        j->block[a] = a == j->last ? pitch : j->block[a + 1] * length(j->cells[a]);
    for (int a = 0; a <= j->last; a++) {
        int64_t bytes = (layers + (a == j->last)) * j->block[a] * j->sum_bytes;
        j->layers[a] = layers;
        j->sums[a] = scratch;
        memset(scratch, 0, (size_t)bytes);
        scratch += bytes + SCRATCH_SLACK;
        layers *= p->axis[a].kernel;
    }
    j->gradients = scratch;
    for (int64_t tap = 0; tap < MOST_TAPS; tap++) {
        int64_t layer = min_i64(tap / last->kernel, j->layers[j->last]),
                column = tap % last->kernel;
        j->offset[tap] = (int32_t)(layer * pitch + column * last->dilation * p->lanes);
    }
}

static void store_box(const rows_job *j)
{
    const tarn_problem *p = j->p;
    range columns = j->cells[j->last];
    int64_t cell[TARN_MAX_SPATIAL];
    const char *sums = j->sums[0] + j->margin * p->lanes * j->sum_bytes;
    for (int a = 0; a <= j->last; a++)
        cell[a] = j->cells[a].lo;
    for (int a = 0; a >= 0; sums += j->block[j->last] * j->sum_bytes) {
        j->ops->write_gradients[p->dtype](
            j->slab->base[TARN_GX] + offset_of(p, TARN_GX, cell) * p->element_bytes[TARN_GX],
            length(columns) > 1 ? p->stride[TARN_GX][j->last] : p->lanes, sums, p->lanes,
            length(columns));
        for (a = j->last - 1; a >= 0; a--) {
            if (++cell[a] < j->cells[a].hi)
                break;
            cell[a] = j->cells[a].lo;
        }
    }
}

static void run_box(rows_job *j, char *scratch)
{
    const tarn_problem *p = j->p;
    int64_t o[TARN_MAX_SPATIAL];
    bool read = true;
    place_sums(j, scratch);
    for (int a = 0; a <= j->last; a++) {
        j->windows[a] = tarn_windows_reading(&p->axis[a], j->cells[a]);
        read &= length(j->windows[a]) > 0;
    }
    if (read)
        sum_axes(j, 0, o);
    store_box(j);
}

void tarn_sum_rows(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                   const range *box, const tarn_row_ops *ops)
{
    enum { ALIGNMENT = 64 };
    _Alignas(ALIGNMENT) char scratch[SCRATCH_BYTES];
    tarn_slab slab;
    rows_job j = {.p = p,
                  .ops = ops,
                  .slab = &slab,
                  .last = p->spatial - 1,
                  .sum_bytes = p->dtype == TARN_F64 ? 8 : 4};
    range all[TARN_MAX_SPATIAL];
    int64_t size[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++)
        all[a] = box ? box[a] : (range){0, p->axis[a].size};
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab)) {
        all[0] = (range){slab.lo, slab.hi};
        cut_cells(p, all, j.sum_bytes, size);
        tarn_first_box(j.cells, all, size, p->spatial);
        do
            run_box(&j, scratch);
        while (tarn_next_box(j.cells, all, size, p->spatial));
    }
}
