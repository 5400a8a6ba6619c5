/* Between tensors and scratch. */
#include "winners.h"

/* ---- Windows and cells of an axis ----------------------------------------------------------- */

range tarn_windows_of(const winners_job *j, int axis, int64_t lo, int64_t hi)
{
    const tarn_axis *a = &j->p->axis[axis];
    if (a->adaptive)
        return (range){first_adaptive(a, lo), end_adaptive(a, hi)};
    range all = axis == 0 ? j->windows : (range){0, a->out};
    range windows = {floor_div(lo + a->lo - extent_of(a), a->stride) + 1,
                     (hi - 1 + a->lo) / a->stride + 1};
    return (range){max_i64(windows.lo, all.lo), min_i64(windows.hi, all.hi)};
}

tarn_span tarn_windows_of_cell(const winners_job *j, int axis, int64_t cell)
{
    tarn_span windows = cell_windows(&j->p->axis[axis], cell);
    if (axis == 0 && j->bands) { /* what does not exist for one lane does for another */
        int64_t before = j->windows.lo, n = windows.n, step = windows.step;
        windows = span_clipped(n, windows.first - before, step, j->windows.hi - before);
        windows.first += before;
    }
    return windows;
}

/* ---- Rows as one ---------------------------------------------------------------------------- */

static int64_t step_of(const winners_job *j, int operand, int back)
{
    return j->last >= back ? j->p->stride[operand][j->last - back] : 0;
}

/* Whether so many columns of each row follow those of the row before, without a gap. */
static bool rows_touch(const winners_job *j, int operand, int64_t columns)
{
    return step_of(j, operand, 1) == columns * step_of(j, operand, 0);
}

static int64_t offset_at(const winners_job *j, int operand, const int64_t *at, int64_t row,
                         int64_t column)
{
    int64_t offset = row * step_of(j, operand, 1) + column * step_of(j, operand, 0);
    for (int a = 0; a < j->last - 1; a++)
        offset += at[a] * j->p->stride[operand][a];
    return offset * j->p->element_bytes[operand];
}

/* Some rows that are one: pixels, numbered on. */
typedef struct row_run {
    const int64_t *at;
    int64_t row, column, rows, columns;
} row_run;

/* The pixels whose places on the first axis, those of a lane `further` on, lie in [0,end). */
static range pixels_inside(const winners_job *j, const row_run *r, int64_t further, int64_t end)
{
    int64_t each = j->last == 0 ? 1 : j->last == 1 ? r->columns : r->rows * r->columns;
    int64_t first = (j->last == 0   ? r->column
                     : j->last == 1 ? r->row
                                    : r->at[0]) +
                    further,
            n = r->rows * r->columns / each;
    int64_t from = min_i64(max_i64(-first, 0), n), to = min_i64(max_i64(end - first, 0), n);
    return (range){from * each, max_i64(from, to) * each};
}

/* A plane may be elsewhere in its lane, by rows, columns or places on the first axis. */
static int64_t further_bytes(const winners_job *j, int operand, int64_t by)
{
    return by * j->p->stride[operand][0] * j->p->element_bytes[operand];
}

/* ---- Windows to scratch --------------------------------------------------------------------- */

static void turn_gradients(const winners_job *j, const row_run *r, char *gy, char *room)
{
    const tarn_problem *p = j->p;
    int64_t n = r->rows * r->columns, pitch = n * j->channels, bytes = p->element_bytes[TARN_GY];
    int64_t sum_bytes = j->cell_bytes / j->lanes, step = step_of(j, TARN_GY, 0),
            at = offset_at(j, TARN_GY, r->at, r->row, r->column);
    bool direct = bytes == sum_bytes && (step == j->channels || n == 1);
    const void *row[MOST_LANES];
    for (int k = 0; k < j->lanes; k++) {
        const winners_lane *lane = &j->lane[k];
        char *to = room + k * pitch * sum_bytes;
        range there = {0, n};
        if (k >= j->used) { /* whose windows have no winner */
            row[k] = row[0];
            continue;
        }
        if (j->bands)
            there = pixels_inside(j, r, lane->windows, p->axis[0].out);
        const char *from = lane->gy + at + further_bytes(j, TARN_GY, lane->windows);
        row[k] = to;
        if (direct && length(there) == n)
            row[k] = from;
        else if (length(there) > 0)
            j->ops->read_gradients[p->dtype](to + there.lo * j->channels * sum_bytes,
                                             from + there.lo * step * bytes, step, j->channels,
                                             length(there));
    }
    j->ops->turn[j->wide ? CORE_I64 : CORE_I32](gy, row, pitch);
}

static void turn_winners(const winners_job *j, const row_run *r, int32_t *codes, int32_t *room)
{
    const tarn_problem *p = j->p;
    int64_t n = r->rows * r->columns, pitch = n * j->channels,
            bytes = p->element_bytes[OPERAND_SAVED];
    int64_t step = step_of(j, OPERAND_SAVED, 0),
            at = offset_at(j, OPERAND_SAVED, r->at, r->row, r->column);
    const void *row[MOST_LANES];
    for (int k = 0; k < j->code_lanes; k++) {
        const winners_lane *lane = &j->lane[k];
        int32_t *to = room + k * pitch;
        range there = {0, k < j->used ? n : 0};
        if (j->bands && k < j->used)
            there = pixels_inside(j, r, lane->windows, p->axis[0].out);
        row[k] = to;
        if (k > j->used) { /* as the first without a plane */
            row[k] = row[j->used];
            continue;
        }
        if (length(there) > 0)
            j->ops->read_winners[bytes == 4](to + there.lo * j->channels, j->channels,
                                             lane->saved + at +
                                                 further_bytes(j, OPERAND_SAVED, lane->windows) +
                                                 there.lo * step * bytes,
                                             step, j->channels, length(there));
        if (length(there) < n) {
            memset(to, 0xff, (size_t)(there.lo * j->channels) * sizeof *to);
            memset(to + there.hi * j->channels, 0xff,
                   (size_t)((n - there.hi) * j->channels) * sizeof *to);
        }
    }
    j->ops->turn[CORE_I32](codes, row, pitch);
}

static void load_run(const winners_job *j, const row_run *r, char *gy, int32_t *codes, char *room)
{
    const tarn_problem *p = j->p;
    if (!j->pixels) {
        turn_gradients(j, r, gy, room);
        turn_winners(j, r, codes, (int32_t *)(void *)room);
        return;
    }
    int64_t n = r->rows * r->columns;
    j->ops->read_gradients[p->dtype](
        gy, j->lane[0].gy + offset_at(j, TARN_GY, r->at, r->row, r->column),
        n > 1 ? step_of(j, TARN_GY, 0) : j->lanes, j->lanes, n);
    j->ops->read_winners[p->element_bytes[OPERAND_SAVED] == 4](
        codes, j->code_lanes,
        j->lane[0].saved + offset_at(j, OPERAND_SAVED, r->at, r->row, r->column),
        n > 1 ? step_of(j, OPERAND_SAVED, 0) : j->lanes, j->lanes, n);
}

void tarn_load_windows(const winners_job *j, const int64_t *at, range rows, range columns, char *gy,
                       int32_t *codes, char *room)
{
    int64_t n = length(columns);
    bool as_one = rows_touch(j, TARN_GY, n) && rows_touch(j, OPERAND_SAVED, n);
    row_run r = {at, rows.lo, columns.lo, as_one ? length(rows) : 1, n};
    for (; r.row < rows.hi; r.row += r.rows) {
        load_run(j, &r, gy, codes, room);
        gy += r.rows * n * j->channels * j->cell_bytes;
        codes += r.rows * n * j->channels * j->code_lanes;
    }
}

/* ---- Cells to gx ---------------------------------------------------------------------------- */

/* Pixels of a run, as many as there is room to turn. */
static void store_pixels(const winners_job *j, const row_run *r, range some, const char *sums,
                         char *room)
{
    const tarn_problem *p = j->p;
    int64_t pitch = length(some) * j->channels, sum_bytes = j->cell_bytes / j->lanes;
    int64_t gx = offset_at(j, TARN_GX, r->at, r->row, r->column),
            step = r->rows * r->columns > 1 ? step_of(j, TARN_GX, 0) : j->channels;
    void *row[MOST_LANES];
    for (int k = 0; k < j->lanes; k++)
        row[k] = room + k * pitch * sum_bytes;
    j->ops->turn_back[j->wide ? CORE_I64 : CORE_I32](row, sums, pitch);
    for (int k = 0; k < j->used; k++) {
        const winners_lane *lane = &j->lane[k];
        int64_t end = some.hi;
        if (j->bands)
            end = min_i64(end, pixels_inside(j, r, lane->cells, j->end).hi);
        char *to = lane->gx + gx + further_bytes(j, TARN_GX, lane->cells) +
                   some.lo * step * p->element_bytes[TARN_GX];
        if (end > some.lo)
            j->ops->write_gradients[p->dtype](to, step, row[k], j->channels, end - some.lo);
    }
}

static void store_run(const winners_job *j, const row_run *r, const char *sums, char *room,
                      int64_t room_cells)
{
    int64_t n = r->rows * r->columns;
    if (j->pixels) {
        j->ops->write_gradients[j->p->dtype](
            j->lane[0].gx + offset_at(j, TARN_GX, r->at, r->row, r->column),
            n > 1 ? step_of(j, TARN_GX, 0) : j->lanes, sums, j->lanes, n);
        return;
    }
    range some = {0};
    for (; some.lo < n; some.lo = some.hi) {
        some.hi = min_i64(some.lo + room_cells / j->channels, n);
        store_pixels(j, r, some, sums + some.lo * j->channels * j->cell_bytes, room);
    }
}

void tarn_store_cells(const winners_job *j, const int64_t *at, range rows, range columns,
                      const char *sums, char *room, int64_t room_cells)
{
    int64_t n = length(columns);
    row_run r = {at, rows.lo, columns.lo, rows_touch(j, TARN_GX, n) ? length(rows) : 1, n};
    for (; r.row < rows.hi; r.row += r.rows) {
        store_run(j, &r, sums, room, room_cells);
        sums += r.rows * n * j->channels * j->cell_bytes;
    }
}
