/* Cells that ask their windows: sliding windows of few taps. Cells whose numbers differ by whole
 * strides, a *phase*, have the same taps in windows that differ alike. So a phase is a run of
 * vectors: for each of its taps, in the order of S5, the gradients of those windows whose winner
 * is that tap are added, and nothing of others. No cell is cleared or visited twice, and what won
 * makes no difference to the time it takes.
 *
 * Windows are loaded into a box in scratch, winners as wide as gradients, with those before it
 * that read the same cells. Windows that do not exist have a winner that is no tap. Rows of the box
 * follow each other, so that a run goes on over all of them, through margins that nobody reads.
 */
#include "winners.h"

enum {
    AXES = 3, /* missing ones have one cell and come first */
    LAST = AXES - 1,
    ROOM_BYTES = 24 << 10,
    ALIGNMENT = 64,
    MOST_TERMS = 128,
    MOST_PHASES = 64
};

typedef struct asked_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int wide; /* 1 if sums are f64 */
    int64_t sum_bytes, pixel, channel;
    tarn_axis axis[AXES];
    int64_t stride[OPERANDS][AXES];
    range all[AXES], cells[AXES];                      /* of the slab; of the box */
    int64_t back[AXES], most[AXES], pitch[AXES], size; /* windows before; of a box; elements */
    range loaded[AXES]; /* windows of the box that exist, from its first */
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

bool tarn_cells_can_ask(const tarn_problem *p)
{
    enum { MOST_BACK = 64 };
    int64_t taps = 1, phases = 1;
    if (p->spatial > AXES || p->element_bytes[OPERAND_SAVED] > 1)
        return false;
    for (int a = 0; a < p->spatial; a++) {
        const tarn_axis *axis = &p->axis[a];
        if (axis->adaptive || axis->kernel > MOST_TERMS || axis->stride > MOST_PHASES ||
            axis->dilation > MOST_BACK || windows_before(axis) > MOST_BACK)
            return false;
        taps *= axis->kernel;
        phases *= axis->stride;
    }
    return taps <= MOST_TERMS && phases <= MOST_PHASES;
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* Bytes for each window: its winner and its gradient, sums of a row of phases, and these as rows of
 * cells. */
static int64_t bytes_of_window(const asked_job *j)
{
    int64_t phases = j->axis[LAST].stride;
    return j->sum_bytes * (2 + (phases > 1 ? 2 * phases : 1));
}

static bool box_fits(asked_job *j)
{
    int64_t room = (ROOM_BYTES - 4 * (SCRATCH_SLACK + ALIGNMENT)) / bytes_of_window(j);
    j->size = j->pixel;
    for (int a = LAST; a >= 0; a--) {
        j->pitch[a] = j->size;
        if (j->most[a] > room)
            return false;
        j->size *= j->most[a] + j->back[a];
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

/* Many channels are cut first, then what has most windows for those before it. */
static void cut_box(asked_job *j, int64_t *cells)
{
    enum { MANY_CHANNELS = 16 };
    j->pixel = j->p->lanes;
    for (int a = 0; a < AXES; a++) {
        cells[a] = length(j->all[a]);
        j->most[a] = length(strides_of(&j->axis[a], j->all[a]));
    }
    while (!box_fits(j)) {
        int best = -1;
        double most = 0;
        for (int a = 0; a < AXES; a++) {
            double times = (double)j->most[a] / (double)(j->back[a] + 1);
            if (j->most[a] > 2 && times > most) {
                most = times;
                best = a;
            }
        }
        if (j->pixel > MANY_CHANNELS || best < 0) {
            j->pixel = ceil_div(j->pixel, 2);
        } else {
            j->most[best] = j->most[best] / 2 + 1;
            cells[best] = (j->most[best] - 1) * j->axis[best].stride;
        }
    }
}

/* The taps of each phase, so that windows are in increasing order, and where the sums of S5 end. */
static void list_terms(asked_job *j)
{
    const tarn_axis *axis = j->axis;
    int64_t row = axis[2].kernel, plane = axis[1].kernel * row, taps = axis[0].kernel * plane;
    int64_t phases = axis[0].stride * axis[1].stride * axis[2].stride;
    int64_t phase[MOST_TERMS], next[MOST_PHASES] = {0};
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t on[AXES] = {tap / plane, tap / row % axis[1].kernel, tap % row};
        phase[tap] = 0;
        for (int a = 0; a < AXES; a++)
            phase[tap] = phase[tap] * axis[a].stride + on[a] * axis[a].dilation % axis[a].stride;
        next[phase[tap]]++;
    }
    j->first_term[0] = 0;
    for (int64_t k = 0; k < phases; k++) {
        j->first_term[k + 1] = j->first_term[k] + next[k];
        next[k] = j->first_term[k];
    }
    for (int64_t tap = taps - 1; tap >= 0; tap--) {
        int64_t on[AXES] = {tap / plane, tap / row % axis[1].kernel, tap % row};
        tarn_asked_term *term = &j->terms[next[phase[tap]]++];
        *term = (tarn_asked_term){.tap = (int32_t)tap, .ends = 2};
        for (int a = 0; a < AXES; a++)
            term->offset -= on[a] * axis[a].dilation / axis[a].stride * j->pitch[a];
        if (next[phase[tap]] - 1 >
            j->first_term[phase[tap]]) /* how much of it the one before ends */
            term[-1].ends =
                (term[-1].tap / plane != tap / plane) + (term[-1].tap / row != tap / row);
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
    j->rows = j->sums + j->axis[LAST].stride * j->size * j->sum_bytes + SCRATCH_SLACK;
    memset(room, 0, (size_t)(2 * bytes));
    for (int a = 0; a < AXES; a++)
        j->loaded[a] = (range){0, -1};
}

/* ---- A box ---------------------------------------------------------------------------------- */

/* Loads the windows of the box that exist. Others are marked, if they are others than before. */
static bool load_windows(asked_job *j, const range *strides)
{
    const tarn_problem *p = j->p;
    range some[AXES];
    int64_t at = 0, from[2] = {j->channel, j->channel};
    bool same = true, any = true;
    const int64_t *steps[2] = {j->stride[OPERAND_SAVED], j->stride[TARN_GY]};
    for (int a = 0; a < AXES; a++) {
        range reading = tarn_windows_reading(&j->axis[a], j->cells[a]); /* there may be no others */
        int64_t first = strides[a].lo - j->back[a];
        some[a] = (range){reading.lo - first, reading.hi - first};
        any &= length(some[a]) > 0;
        same &= some[a].lo == j->loaded[a].lo && some[a].hi == j->loaded[a].hi;
        at += some[a].lo * j->pitch[a];
        for (int k = 0; k < 2; k++)
            from[k] += (first + some[a].lo) * steps[k][a];
    }
    if (!any)
        return false;
    if (!same)
        memset(j->winners, 0xff, (size_t)(j->size * j->sum_bytes));
    memcpy(j->loaded, some, sizeof some);
    int64_t planes = length(some[0]), rows = length(some[1]), columns = length(some[2]);
    for (int64_t plane = 0; plane < planes; plane++)
        for (int k = 0; k < 2; k++) {
            int operand = k == 0 ? OPERAND_SAVED : TARN_GY;
            const char *tensor =
                j->slab->base[operand] +
                (from[k] + (plane ? plane * steps[k][0] : 0)) * p->element_bytes[operand];
            char *to =
                (k == 0 ? j->winners : j->gradients) + (at + plane * j->pitch[0]) * j->sum_bytes;
            tarn_read_pixels *read =
                k == 0 ? j->ops->read_winners[j->wide] : j->ops->read_gradients[p->dtype];
            if (columns == 1 || steps[k][2] == j->pixel) {
                read(to, j->pitch[1], tensor, rows > 1 ? steps[k][1] : 0, columns * j->pixel, rows);
                continue;
            }
            for (int64_t row = 0; row < rows; row++)
                read(to + row * j->pitch[1] * j->sum_bytes, j->pixel,
                     tensor + (row ? row * steps[k][1] : 0) * p->element_bytes[operand],
                     steps[k][2], j->pixel, columns);
        }
    return true;
}

/* Sums of the phases along a row become rows of cells. */
static void join_phases(const asked_job *j, int64_t n)
{
    int64_t phases = j->axis[LAST].stride, bytes = j->pixel * j->sum_bytes;
    if (phases == 2 && j->pixel == 1) {
        j->ops->join_pairs[j->wide](j->rows, j->sums, j->sums + j->size * j->sum_bytes, n);
        return;
    }
    for (int64_t f = 0; f < phases; f++) {
        const char *from = j->sums + f * j->size * j->sum_bytes;
        char *to = j->rows + f * bytes;
        if (bytes == 4)
            for (int64_t k = 0; k < n; k++)
                memcpy(to + k * phases * 4, from + k * 4, 4);
        else if (bytes == 8) /* one f64, or two f32 */
            for (int64_t k = 0; k < n / j->pixel; k++)
                memcpy(to + k * phases * 8, from + k * 8, 8);
        else
            for (int64_t k = 0; k < n / j->pixel; k++)
                memcpy(to + k * phases * bytes, from + k * bytes, (size_t)bytes);
    }
}

/* The cells of a phase on the axes before the last: `sums` has theirs, from the first stride on. */
static void store_phase(const asked_job *j, const range *strides, const int64_t *phase,
                        const char *sums)
{
    const tarn_problem *p = j->p;
    const int64_t *step = j->stride[TARN_GX];
    int64_t bytes = p->element_bytes[TARN_GX], phases = j->axis[LAST].stride;
    range some[2]; /* strides in which the cell is in the box */
    for (int a = 0; a < LAST; a++) {
        int64_t first = phase[a] - j->axis[a].lo, by = j->axis[a].stride;
        some[a] = (range){ceil_div(j->cells[a].lo - first, by),
                          floor_div(j->cells[a].hi - 1 - first, by) + 1};
    }
    int64_t rows = length(some[1]), columns = length(j->cells[LAST]);
    int64_t skipped = j->cells[LAST].lo + j->axis[LAST].lo - strides[LAST].lo * phases;
    int64_t down = rows > 1 ? j->axis[1].stride * step[1] : 0, pitch = j->pitch[1] * phases;
    for (int64_t q = some[0].lo; q < some[0].hi && rows > 0; q++) {
        int64_t cell[AXES] = {q * j->axis[0].stride + phase[0] - j->axis[0].lo,
                              some[1].lo * j->axis[1].stride + phase[1] - j->axis[1].lo,
                              j->cells[LAST].lo};
        int64_t at =
            ((q - strides[0].lo) * j->pitch[0] + (some[1].lo - strides[1].lo) * j->pitch[1]) *
                phases +
            skipped * j->pixel;
        int64_t to = cell[0] * step[0] + cell[1] * step[1] + cell[2] * step[2] + j->channel;
        const char *from = sums + at * j->sum_bytes;
        char *gx = j->slab->base[TARN_GX] + to * bytes;
        if (columns == 1 || step[LAST] == j->pixel) {
            j->ops->write_gradients[p->dtype](gx, down, from, pitch, columns * j->pixel, rows);
            continue;
        }
        for (int64_t row = 0; row < rows; row++)
            j->ops->write_gradients[p->dtype](gx + row * down * bytes, step[LAST],
                                              from + row * pitch * j->sum_bytes, j->pixel, j->pixel,
                                              columns);
    }
}

static void run_box(asked_job *j)
{
    range strides[AXES];
    const tarn_axis *axis = j->axis;
    int64_t first = 0, n = j->pixel, phase[AXES] = {0}, number = 0;
    for (int a = 0; a < AXES; a++) {
        strides[a] = strides_of(&axis[a], j->cells[a]);
        first += j->back[a] * j->pitch[a];
        n += (length(strides[a]) - 1) * j->pitch[a];
    }
    bool asks = load_windows(j, strides);
    const char *sums = axis[LAST].stride > 1 ? j->rows : j->sums;
    for (phase[0] = 0; phase[0] < axis[0].stride; phase[0]++)
        for (phase[1] = 0; phase[1] < axis[1].stride; phase[1]++) {
            for (int64_t f = 0; f < axis[LAST].stride; f++, number++) {
                int64_t term = j->first_term[number];
                j->ops->ask_windows[j->wide](j->sums + f * j->size * j->sum_bytes,
                                             j->winners + first * j->sum_bytes,
                                             j->gradients + first * j->sum_bytes, j->terms + term,
                                             asks ? j->first_term[number + 1] - term : 0, n);
            }
            if (axis[LAST].stride > 1)
                join_phases(j, n);
            store_phase(j, strides, phase, sums);
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
                   .sum_bytes = p->dtype == TARN_F64 ? 8 : 4};
    int64_t cells[AXES] = {0};
    range units = {0, 0};
    set_axes(&j, box);
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab)) {
        j.all[AXES - p->spatial] = (range){slab.lo, slab.hi};
        if (units.lo != slab.lo || units.hi != slab.hi)
            start_boxes(&j, room, cells);
        units = (range){slab.lo, slab.hi};
        for (int64_t c = 0; c < p->lanes; c += j.pixel) {
            j.channel = min_i64(c, p->lanes - j.pixel); /* some twice */
            tarn_first_box(j.cells, j.all, cells, AXES);
            do
                run_box(&j);
            while (tarn_next_box(j.cells, j.all, cells, AXES));
        }
    }
}
