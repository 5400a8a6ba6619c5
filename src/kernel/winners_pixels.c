/* Pixels that ask their windows: channels last, at least a vector of channels, windows and cells
 * where they lie. For each pixel its windows in the order of S5, each of which adds its gradient
 * to the channels that won it, and nothing to others.
 */
#include "winners.h"

enum { MOST_COLUMNS = 512, MOST_ASKED_PIXELS = MOST_ASKED_ROWS };

typedef struct pixel_lists {
    int32_t first[MOST_COLUMNS], count[MOST_COLUMNS], tap[MOST_COLUMNS], tap_step[MOST_COLUMNS];
} pixel_lists;

bool tarn_pixels_can_ask(const tarn_problem *p, const tarn_row_ops *ops)
{
    const tarn_axis *last = &p->axis[p->spatial - 1];
    int64_t windows = 1;
    for (int a = 0; a < p->spatial && windows <= MOST_ASKED_PIXELS; a++)
        windows *= min_i64(windows_behind(&p->axis[a]), MOST_ASKED_PIXELS) + 1;
    return p->lanes * (p->dtype == TARN_F64 ? 8 : 4) >= ops->vector_bytes &&
           p->element_bytes[OPERAND_SAVED] == 1 && p->spatial <= 3 && last->size <= INT32_MAX &&
           (last->adaptive ? last->windows <= last->whole : last->out <= INT32_MAX) &&
           windows <= MOST_ASKED_PIXELS;
}

/* The windows of n columns. Their taps go down by one step; of adaptive windows there are two. A
 * stride further they are the next, where none of either column is missing. */
static void find_columns(const tarn_axis *axis, pixel_lists *to, int64_t lo, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t alike = axis->adaptive ? -1 : k - axis->stride;
        if (alike >= 0 && to->first[alike] >= axis->window_step &&
            to->first[alike] + to->count[alike] * axis->window_step < axis->out) {
            to->first[k] = to->first[alike] + 1;
            to->count[k] = to->count[alike];
            to->tap[k] = to->tap[alike];
            to->tap_step[k] = to->tap_step[alike];
            continue;
        }
        tarn_span windows = cell_windows(axis, lo + k);
        int64_t first = span_at(&windows, windows.lo), count = windows.hi - windows.lo;
        int64_t tap = count > 0 ? tap_of(axis, first, lo + k) : 0;
        to->first[k] = count > 0 ? (int32_t)first : 0;
        to->count[k] = (int32_t)count;
        to->tap[k] = (int32_t)tap;
        to->tap_step[k] =
            count > 1 ? (int32_t)(tap - tap_of(axis, first + windows.step, lo + k)) : 0;
    }
}

/* Adds the rows of windows that read the row of cells at `cell`, from `axis` on. */
static void find_rows(const tarn_problem *p, tarn_asked_pixels *asked, const int64_t *cell,
                      int axis, const char *saved, const char *gy, int64_t tap)
{
    if (axis == p->spatial - 1) {
        asked->saved[asked->rows] = (const uint8_t *)saved;
        asked->gy[asked->rows] = gy;
        asked->row_tap[asked->rows] = (int)(tap * p->axis[axis].kernel);
        asked->ends[asked->rows++] = axis == 0;
        return;
    }
    tarn_span windows = cell_windows(&p->axis[axis], cell[axis]);
    for (int64_t entry = windows.lo; entry < windows.hi; entry++) {
        int64_t o = span_at(&windows, entry);
        find_rows(p, asked, cell, axis + 1, saved + o * p->stride[OPERAND_SAVED][axis],
                  gy + o * p->stride[TARN_GY][axis] * p->element_bytes[TARN_GY],
                  tap * p->axis[axis].kernel + tap_of(&p->axis[axis], o, cell[axis]));
    }
    if (axis == p->spatial - 2 && asked->rows > 0)
        asked->ends[asked->rows - 1] = true;
}

static void ask_slab(const tarn_problem *p, const tarn_slab *slab, const range *cells,
                     const tarn_row_ops *ops)
{
    int last = p->spatial - 1;
    int64_t cell[TARN_MAX_SPATIAL];
    pixel_lists lists;
    tarn_asked_pixels asked = {.first = lists.first,
                               .count = lists.count,
                               .tap = lists.tap,
                               .tap_step = lists.tap_step,
                               .window_step =
                                   p->axis[last].adaptive ? 1 : p->axis[last].window_step};
    if (p->axis[last].out > 1) {
        asked.saved_step = p->stride[OPERAND_SAVED][last];
        asked.gy_step = p->stride[TARN_GY][last];
    }
    for (int64_t lo = cells[last].lo, n; lo < cells[last].hi; lo += n) {
        n = min_i64(MOST_COLUMNS, cells[last].hi - lo);
        find_columns(&p->axis[last], &lists, lo, n);
        cell[last] = lo;
        int64_t at[TARN_MAX_SPATIAL] = {0};
        do {
            for (int a = 0; a < last; a++)
                cell[a] = cells[a].lo + at[a];
            asked.rows = 0;
            asked.saved[0] = (const uint8_t *)slab->base[OPERAND_SAVED];
            asked.gy[0] = slab->base[TARN_GY];
            find_rows(p, &asked, cell, 0, slab->base[OPERAND_SAVED], slab->base[TARN_GY], 0);
            asked.apart = asked.rows < 2 && windows_behind(&p->axis[last]) == 0;
            char *to =
                slab->base[TARN_GX] + offset_of(p, TARN_GX, cell) * p->element_bytes[TARN_GX];
            ops->ask_pixels[p->dtype](to, n > 1 ? p->stride[TARN_GX][last] : 0, &asked, p->lanes,
                                      n);
        } while (tarn_advance(at, cells, 0, last));
    }
}

void tarn_ask_pixels(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                     const range *box, const tarn_row_ops *ops)
{
    tarn_slab slab;
    range cells[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++)
        cells[a] = box ? box[a] : (range){0, p->axis[a].size};
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab)) {
        cells[0] = (range){slab.lo, slab.hi};
        ask_slab(p, &slab, cells, ops);
    }
}
