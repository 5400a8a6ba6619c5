/* Cells that ask their windows: one or two axes, few taps, few channels. Cells whose numbers differ
 * by whole strides, a *phase*, have the same taps in windows that differ alike. So a phase is a run
 * of vectors: for each of its taps, in the order of S5, the gradients of those windows whose winner
 * is that tap are added. No cell is cleared, and what won makes no difference to the time it takes.
 *
 * Windows are loaded into a box in scratch, winners as wide as gradients, with those before it
 * that read the same cells. Windows that do not exist have a winner that is no tap. Rows of the box
 * follow each other, so that a run goes on over all of them, through margins that nobody reads.
 */
#include "winners.h"

enum {
    ROWS,
    COLUMNS,
    AXES, /* a line is a row of a plane */
    ROOM_BYTES = 24 << 10,
    ALIGNMENT = 64,
    BOX_BYTES = ROOM_BYTES - 4 * (SCRATCH_SLACK + ALIGNMENT),
    LEAST_WINDOWS = 2, /* of a box, on an axis */
    MOST_TERMS = 128,
    MOST_PHASES = 64,
    MOST_COLUMN_PHASES = 2, /* that vectors interleave, of one channel */
    MOST_CHANNELS = 16
};

typedef struct asked_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int wide; /* 1 if sums are f64 */
    int64_t sum_bytes, pixel;
    tarn_axis axis[AXES];
    int64_t stride[OPERANDS][AXES];
    range all[AXES], cells[AXES];   /* of the slab; of the box */
    int64_t back[AXES], most[AXES]; /* windows before a box; of it */
    int64_t pitch, size;            /* of a row of the box, and of all */
    range loaded[AXES];             /* windows of the box that exist, from its first */
    char *winners, *gradients, *sums, *rows;
    int64_t first_term[MOST_PHASES + 1];
    tarn_asked_term terms[MOST_TERMS];
} asked_job;

/* ---- What fits ------------------------------------------------------------------------------ */

static int64_t windows_before(const tarn_axis *axis)
{
    return axis->dilation * (axis->kernel - 1) / axis->stride;
}

static void set_axes(asked_job *j, const range *box)
{
    int missing = AXES - j->p->spatial;
    for (int a = 0; a < AXES; a++) {
        j->axis[a] = a < missing
                         ? (tarn_axis){.size = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1}
                         : j->p->axis[a - missing];
        j->all[a] = box && a >= missing ? box[a - missing] : (range){0, j->axis[a].size};
        for (int k = 0; k < OPERANDS; k++)
            j->stride[k][a] = a < missing ? 0 : j->p->stride[k][a - missing];
        j->back[a] = windows_before(&j->axis[a]);
    }
}

/* Of a window: its winner and gradient, sums of each phase of columns, and these as cells. */
static int64_t window_bytes(const tarn_problem *p)
{
    int64_t phases = p->axis[p->spatial - 1].stride;
    return (p->dtype == TARN_F64 ? 8 : 4) * (phases > 1 ? 2 + 2 * phases : 3);
}

/* Whether a row is one run of elements, or is one pixel. */
static bool rows_are_dense(const tarn_problem *p)
{
    int last = p->spatial - 1;
    return (p->axis[last].size == 1 || p->stride[TARN_GX][last] == p->lanes) &&
           (p->axis[last].out == 1 ||
            (p->stride[OPERAND_SAVED][last] == p->lanes && p->stride[TARN_GY][last] == p->lanes));
}

bool tarn_cells_can_ask(const tarn_problem *p)
{
    enum { MOST_BACK = 64 };
    int64_t taps = 1, phases = 1, least = p->lanes;
    if (p->spatial > AXES || !rows_are_dense(p) || p->lanes > MOST_CHANNELS ||
        p->element_bytes[OPERAND_SAVED] > 1 ||
        p->axis[p->spatial - 1].stride > (p->lanes > 1 ? 1 : MOST_COLUMN_PHASES))
        return false;
    for (int a = 0; a < p->spatial; a++) {
        const tarn_axis *axis = &p->axis[a];
        if (axis->adaptive || axis->kernel > MOST_TERMS || axis->stride > MOST_PHASES ||
            axis->dilation > MOST_BACK || windows_before(axis) > MOST_BACK)
            return false;
        taps *= axis->kernel;
        phases *= axis->stride;
        least *= LEAST_WINDOWS + windows_before(axis);
    }
    return taps <= MOST_TERMS && phases <= MOST_PHASES && least * window_bytes(p) <= BOX_BYTES;
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

static bool box_fits(asked_job *j)
{
    int64_t room = BOX_BYTES / window_bytes(j->p);
    if (j->most[ROWS] > room || j->most[COLUMNS] > room)
        return false;
    j->pitch = (j->most[COLUMNS] + j->back[COLUMNS]) * j->pixel;
    j->size = j->pitch * (j->most[ROWS] + j->back[ROWS]);
    return j->size <= room;
}

/* The windows whose strides cells [lo,hi) lie in. */
static range strides_of(const tarn_axis *axis, range cells)
{
    return (range){floor_div(cells.lo + axis->lo, axis->stride),
                   floor_div(cells.hi - 1 + axis->lo, axis->stride) + 1};
}

/* Halves what has most windows for those before it, rows rather than columns. */
static void cut_box(asked_job *j, int64_t *cells)
{
    for (int a = 0; a < AXES; a++) {
        cells[a] = length(j->all[a]);
        j->most[a] = length(strides_of(&j->axis[a], j->all[a]));
    }
    while (!box_fits(j)) {
        int64_t rows = j->most[ROWS] * (j->back[COLUMNS] + 1);
        bool wide = rows < j->most[COLUMNS] * (j->back[ROWS] + 1);
        int cut = j->most[wide ? COLUMNS : ROWS] > LEAST_WINDOWS ? wide : !wide;
        j->most[cut] = j->most[cut] / 2 + 1;
        cells[cut] = (j->most[cut] - 1) * j->axis[cut].stride;
    }
}

/* The taps of each phase, so that windows are in increasing order, and where the sums of S5 end. */
static void list_terms(asked_job *j)
{
    const tarn_axis *row = &j->axis[ROWS], *column = &j->axis[COLUMNS];
    tarn_asked_term *term = j->terms;
    int64_t phase = 0;
    for (int64_t y = 0; y < row->stride; y++)
        for (int64_t x = 0; x < column->stride; x++, phase++) {
            j->first_term[phase] = term - j->terms;
            for (int64_t tap = row->kernel * column->kernel - 1; tap >= 0; tap--) {
                int64_t down = tap / column->kernel * row->dilation;
                int64_t across = tap % column->kernel * column->dilation;
                if (down % row->stride != y || across % column->stride != x)
                    continue;
                int64_t offset = down / row->stride * j->pitch + across / column->stride * j->pixel;
                bool same_row = term - j->terms > j->first_term[phase] &&
                                term[-1].tap / column->kernel == tap / column->kernel;
                if (same_row)
                    term[-1].ends = false;
                *term++ = (tarn_asked_term){.offset = -offset, .tap = (int32_t)tap, .ends = true};
            }
        }
    j->first_term[phase] = term - j->terms;
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
    j->rows = j->sums + j->axis[COLUMNS].stride * j->size * j->sum_bytes + SCRATCH_SLACK;
    memset(room, 0, (size_t)(2 * bytes));
    for (int a = 0; a < AXES; a++)
        j->loaded[a] = (range){0, -1};
}

/* ---- A box ---------------------------------------------------------------------------------- */

/* Reads rows of windows, from the first that exists on, into the box. */
static void load_rows(const asked_job *j, int operand, const int64_t *first, char *box)
{
    const int64_t *step = j->stride[operand];
    int64_t at = j->loaded[ROWS].lo * j->pitch + j->loaded[COLUMNS].lo * j->pixel;
    int64_t rows = length(j->loaded[ROWS]), columns = length(j->loaded[COLUMNS]);
    int64_t from = (first[ROWS] + j->loaded[ROWS].lo) * step[ROWS] +
                   (first[COLUMNS] + j->loaded[COLUMNS].lo) * step[COLUMNS];
    tarn_read_pixels *read = operand == OPERAND_SAVED ? j->ops->read_winners[j->wide]
                                                      : j->ops->read_gradients[j->p->dtype];
    int64_t bytes = j->p->element_bytes[operand];
    const char *tensor = j->slab->base[operand] + from * bytes;
    char *to = box + at * j->sum_bytes;
    read(to, j->pitch, tensor, rows > 1 ? step[ROWS] : 0, columns * j->pixel, rows);
}

/* Loads the windows of the box that exist, if any. Others are marked, if they are others than
 * before. */
static bool load_windows(asked_job *j, const range *strides)
{
    int64_t first[AXES];
    bool same = true;
    for (int a = 0; a < AXES; a++) {
        range reading = tarn_windows_reading(&j->axis[a], j->cells[a]); /* there may be no others */
        if (length(reading) <= 0)
            return false;
        first[a] = strides[a].lo - j->back[a];
        range some = {reading.lo - first[a], reading.hi - first[a]};
        same &= some.lo == j->loaded[a].lo && some.hi == j->loaded[a].hi;
        j->loaded[a] = some;
    }
    if (!same)
        memset(j->winners, 0xff, (size_t)(j->size * j->sum_bytes));
    load_rows(j, OPERAND_SAVED, first, j->winners);
    load_rows(j, TARN_GY, first, j->gradients);
    return true;
}

/* The rows of cells of a phase: `sums` has theirs, from the first stride on. */
static void store_phase(const asked_job *j, const range *strides, int64_t phase, const char *sums)
{
    const int64_t *step = j->stride[TARN_GX];
    const tarn_axis *row = &j->axis[ROWS], *column = &j->axis[COLUMNS];
    range cells = j->cells[COLUMNS];
    int64_t bytes = j->p->element_bytes[TARN_GX], first = phase - row->lo;
    range some = {ceil_div(j->cells[ROWS].lo - first, row->stride), /* strides with such a cell */
                  floor_div(j->cells[ROWS].hi - 1 - first, row->stride) + 1};
    int64_t rows = length(some), columns = length(cells), pitch = j->pitch * column->stride;
    if (rows <= 0)
        return;
    int64_t skipped = cells.lo + column->lo - strides[COLUMNS].lo * column->stride;
    int64_t at = (some.lo - strides[ROWS].lo) * pitch + skipped * j->pixel;
    int64_t to = (some.lo * row->stride + first) * step[ROWS] + cells.lo * step[COLUMNS];
    int64_t down = rows > 1 ? row->stride * step[ROWS] : 0;
    const char *from = sums + at * j->sum_bytes;
    char *gx = j->slab->base[TARN_GX] + to * bytes;
    j->ops->write_gradients[j->p->dtype](gx, down, from, pitch, columns * j->pixel, rows);
}

static void run_box(asked_job *j)
{
    range strides[AXES];
    for (int a = 0; a < AXES; a++)
        strides[a] = strides_of(&j->axis[a], j->cells[a]);
    int64_t first = (j->back[ROWS] * j->pitch + j->back[COLUMNS] * j->pixel) * j->sum_bytes;
    int64_t n = (length(strides[ROWS]) - 1) * j->pitch + length(strides[COLUMNS]) * j->pixel;
    int64_t phases = j->axis[COLUMNS].stride, bytes = j->size * j->sum_bytes;
    bool asks = load_windows(j, strides);
    for (int64_t y = 0, number = 0; y < j->axis[ROWS].stride; y++) {
        for (int64_t x = 0; x < phases; x++, number++) {
            int64_t term = j->first_term[number];
            int64_t terms = asks ? j->first_term[number + 1] - term : 0;
            j->ops->ask_windows[j->wide](j->sums + x * bytes, j->winners + first,
                                         j->gradients + first, j->terms + term, terms, n);
        }
        if (phases > 1)
            j->ops->join_pairs[j->wide](j->rows, j->sums, j->sums + bytes, n);
        store_phase(j, strides, y, phases > 1 ? j->rows : j->sums);
    }
}

void tarn_ask_windows(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char room[ROOM_BYTES];
    tarn_slab slab;
    asked_job j = {.p = p,
                   .ops = ops,
                   .slab = &slab,
                   .wide = p->dtype == TARN_F64,
                   .pixel = p->lanes,
                   .sum_bytes = p->dtype == TARN_F64 ? 8 : 4};
    int64_t cells[AXES] = {0};
    range units = {0, 0};
    set_axes(&j, box);
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab)) {
        j.all[AXES - p->spatial] = (range){slab.lo, slab.hi};
        if (units.lo != slab.lo || units.hi != slab.hi)
            start_boxes(&j, room, cells);
        units = (range){slab.lo, slab.hi};
        tarn_first_box(j.cells, j.all, cells, AXES);
        do
            run_box(&j);
        while (tarn_next_box(j.cells, j.all, cells, AXES));
    }
}
