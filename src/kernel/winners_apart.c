/* Windows that lie apart: each cell has one at most. Cells are cleared, and the winner of each
 * window gets its gradient: a few instructions for a window, and none for the other cells.
 */
#include "winners.h"

enum { MOST_OFFSETS = 256 }; /* taps of winners of one byte */

/* n windows whose taps are all inside, each of `lanes` lanes; steps are from window to window. */
typedef struct apart_job apart_job;
typedef void apart_put(const apart_job *j, char *gx, int64_t gx_step, const uint8_t *saved,
                       int64_t saved_step, const char *gy, int64_t gy_step, int64_t lanes,
                       int64_t n);

struct apart_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    apart_put *put;
    const tarn_slab *slab;
    range cells[TARN_MAX_SPATIAL]; /* of the slab */
    int64_t taps;
    int64_t offset[MOST_OFFSETS]; /* of a tap, from the first one, in elements of gx */
};

/* ---- Gradients ------------------------------------------------------------------------------ */

/* The bits of +0 plus a gradient [S5]: other zeros, and other NaNs, than that [S6]. */
static uint64_t canonical(tarn_dtype dtype, uint64_t bits)
{
    static const struct {
        uint64_t infinity, nan;
    } of[] = {[TARN_F64] = {UINT64_C(0x7ff) << 52, UINT64_C(0xfff) << 51},
              [TARN_F32] = {0x7f800000, 0x7fc00000},
              [TARN_F16] = {0x7c00, 0x7e00},
              [TARN_BF16] = {0x7f80, 0x7fc0}};
    int sign = dtype == TARN_F64 ? 63 : dtype == TARN_F32 ? 31 : 15;
    uint64_t magnitude = bits & ((UINT64_C(1) << sign) - 1);
    return magnitude == 0 ? 0 : magnitude > of[dtype].infinity ? of[dtype].nan : bits;
}

#define PUT_WINDOWS(dtype, integer)                                                                \
    static inline __attribute__((always_inline)) void put_##dtype(                                 \
        const apart_job *j, integer *restrict to, int64_t gx_step, const uint8_t *restrict saved,  \
        int64_t saved_step, const integer *restrict from, int64_t gy_step, int64_t lanes,          \
        int64_t n)                                                                                 \
    {                                                                                              \
        int64_t taps = j->taps;                                                                    \
        const int64_t *restrict offset = j->offset;                                                \
        for (int64_t o = 0; o < n; o++, to += gx_step, saved += saved_step, from += gy_step)       \
            for (int64_t c = 0; c < lanes; c++)                                                    \
                if (saved[c] < taps)                                                               \
                    to[offset[saved[c]] + c] = (integer)canonical(TARN_##dtype, from[c]);          \
    }                                                                                              \
    static void put_windows_##dtype(const apart_job *j, char *gx, int64_t gx_step,                 \
                                    const uint8_t *saved, int64_t saved_step, const char *gy,      \
                                    int64_t gy_step, int64_t lanes, int64_t n)                     \
    {                                                                                              \
        integer *to = (integer *)(void *)gx;                                                       \
        const integer *from = (const integer *)(const void *)gy;                                   \
        if (lanes == 1)                                                                            \
            put_##dtype(j, to, gx_step, saved, saved_step, from, gy_step, 1, n);                   \
        else                                                                                       \
            put_##dtype(j, to, gx_step, saved, saved_step, from, gy_step, lanes, n);               \
    }
PUT_WINDOWS(F64, uint64_t)
PUT_WINDOWS(F32, uint32_t)
PUT_WINDOWS(F16, uint16_t)
PUT_WINDOWS(BF16, uint16_t)
#undef PUT_WINDOWS

/* Any window: its winner may be outside, or of more than a byte. */
static void put_window(const apart_job *j, const int64_t *o)
{
    const tarn_problem *p = j->p;
    int64_t saved = offset_of(p, OPERAND_SAVED, o), gy = offset_of(p, TARN_GY, o);
    for (int64_t c = 0; c < p->lanes; c++) {
        int64_t tap = load_winner(p, j->slab->base[OPERAND_SAVED], saved + c), at = c;
        bool inside = tap >= 0 && tap < j->taps;
        for (int a = p->spatial - 1; a >= 0 && inside; a--) {
            const tarn_axis *axis = &p->axis[a];
            int64_t step = axis->adaptive ? 1 : axis->dilation,
                    cell = window_start(axis, o[a]) + tap % axis->kernel * step;
            tap /= axis->kernel;
            inside = cell >= j->cells[a].lo && cell < j->cells[a].hi;
            at += cell * p->stride[TARN_GX][a];
        }
        if (!inside)
            continue;
        apart_put *put = j->put;
        uint8_t first = 0;
        put(j, j->slab->base[TARN_GX] + at * p->element_bytes[TARN_GX], 0, &first, 0,
            j->slab->base[TARN_GY] + (gy + c) * p->element_bytes[TARN_GY], 0, 1, 1);
    }
}

/* ---- Rows of windows ------------------------------------------------------------------------ */

/* The windows of an axis whose taps are all among the cells. */
static range windows_inside(const tarn_axis *axis, range cells)
{
    if (axis->adaptive) /* a whole number of cells each */
        return (range){ceil_div(cells.lo, axis->kernel), cells.hi / axis->kernel};
    return (range){
        max_i64(ceil_div(cells.lo + axis->lo, axis->stride), 0),
        min_i64(floor_div(cells.hi + axis->lo - extent_of(axis), axis->stride) + 1, axis->out)};
}

/* The row of windows that begins with `o`, up to column `end`; those in `inside` are. Windows at a
 * border are put one by one. */
static void put_row(const apart_job *j, int64_t *o, int64_t end, range inside)
{
    const tarn_problem *p = j->p;
    int last = p->spatial - 1;
    const tarn_axis *axis = &p->axis[last];
    for (; o[last] < min_i64(inside.lo, end); o[last]++)
        put_window(j, o);
    int64_t n = min_i64(inside.hi, end) - o[last], first[TARN_MAX_SPATIAL];
    if (n > 0) {
        for (int a = 0; a <= last; a++)
            first[a] = window_start(&p->axis[a], o[a]);
        char *gx =
            j->slab->base[TARN_GX] + offset_of(p, TARN_GX, first) * p->element_bytes[TARN_GX];
        const char *gy =
            j->slab->base[TARN_GY] + offset_of(p, TARN_GY, o) * p->element_bytes[TARN_GY];
        const uint8_t *saved =
            (const uint8_t *)j->slab->base[OPERAND_SAVED] + offset_of(p, OPERAND_SAVED, o);
        int64_t step =
            (axis->adaptive ? axis->kernel : axis->stride) * (n > 1 ? p->stride[TARN_GX][last] : 0);
        j->put(j, gx, step, saved, p->stride[OPERAND_SAVED][last], gy, p->stride[TARN_GY][last],
               p->lanes, n);
        o[last] += n;
    }
    for (; o[last] < end; o[last]++)
        put_window(j, o);
}

/* Zeros, in runs as long as cells lie side by side. */
static void clear_cells(const apart_job *j)
{
    const tarn_problem *p = j->p;
    int64_t run = p->lanes, cell[TARN_MAX_SPATIAL];
    int axes = p->spatial; /* that are not part of a run */
    while (axes > 0 && (length(j->cells[axes - 1]) == 1 || p->stride[TARN_GX][axes - 1] == run)) {
        axes--;
        run *= length(j->cells[axes]);
        if (axes > 0 && length(j->cells[axes]) < p->axis[axes].size)
            break;
    }
    for (int a = 0; a < p->spatial; a++)
        cell[a] = j->cells[a].lo;
    for (int a = 0; a >= 0;) {
        memset(j->slab->base[TARN_GX] + offset_of(p, TARN_GX, cell) * p->element_bytes[TARN_GX], 0,
               (size_t)(run * p->element_bytes[TARN_GX]));
        for (a = axes - 1; a >= 0; a--) {
            if (++cell[a] < j->cells[a].hi)
                break;
            cell[a] = j->cells[a].lo;
        }
    }
}

static void put_slab(apart_job *j)
{
    const tarn_problem *p = j->p;
    int last = p->spatial - 1;
    range inside[TARN_MAX_SPATIAL], reading[TARN_MAX_SPATIAL];
    int64_t o[TARN_MAX_SPATIAL];
    clear_cells(j);
    for (int a = 0; a <= last; a++) {
        inside[a] = windows_inside(&p->axis[a], j->cells[a]);
        reading[a] = tarn_windows_reading(&p->axis[a], j->cells[a]);
        o[a] = reading[a].lo;
        if (length(reading[a]) <= 0)
            return;
    }
    for (int a = 0; a >= 0;) {
        bool all = p->element_bytes[OPERAND_SAVED] == 1;
        for (int k = 0; k < last; k++)
            all &= o[k] >= inside[k].lo && o[k] < inside[k].hi;
        o[last] = reading[last].lo;
        put_row(j, o, reading[last].hi, all ? inside[last] : (range){INT64_MAX, 0});
        for (a = last - 1; a >= 0; a--) {
            if (++o[a] < reading[a].hi)
                break;
            o[a] = reading[a].lo;
        }
    }
}

/* Where a band of cells ends that begins with `lo`: whole windows, and as many as are still in the
 * level-1 cache when gradients follow the zeros. */
static int64_t next_band(const tarn_problem *p, int64_t lo, int64_t end)
{
    enum { BAND_BYTES = 16 << 10 };
    const tarn_axis *axis = &p->axis[0];
    int64_t step = axis->adaptive ? axis->kernel : axis->stride,
            before = axis->adaptive ? 0 : axis->lo;
    int64_t windows = BAND_BYTES / p->element_bytes[TARN_GX] / p->lanes / step;
    for (int a = 1; a < p->spatial; a++)
        windows /= p->axis[a].size;
    windows = floor_div(lo + before, step) + max_i64(windows, 1);
    return windows < ceil_div(end + before, step) ? windows * step - before : end;
}

void tarn_put_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                        const range *box, const tarn_row_ops *ops)
{
    apart_job j = {.p = p, .ops = ops, .taps = 1};
    j.put = p->dtype == TARN_F64   ? put_windows_F64
            : p->dtype == TARN_F32 ? put_windows_F32
            : p->dtype == TARN_F16 ? put_windows_F16
                                   : put_windows_BF16;
    for (int a = 0; a < p->spatial; a++) {
        j.cells[a] = box ? box[a] : (range){0, p->axis[a].size};
        j.taps *= p->axis[a].kernel;
    }
    for (int64_t tap = 0; tap < j.taps && p->element_bytes[OPERAND_SAVED] == 1; tap++) {
        int64_t rest = tap;
        for (int a = p->spatial - 1; a >= 0; rest /= p->axis[a--].kernel)
            j.offset[tap] += rest % p->axis[a].kernel *
                             (p->axis[a].adaptive ? 1 : p->axis[a].dilation) *
                             p->stride[TARN_GX][a];
    }
    tarn_slab slab;
    j.slab = &slab;
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab))
        for (int64_t lo = slab.lo, hi; lo < slab.hi; lo = hi) {
            hi = next_band(p, lo, slab.hi);
            j.cells[0] = (range){lo, hi};
            put_slab(&j);
        }
}
