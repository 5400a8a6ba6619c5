/* Winners that are recomputed for a box of cells at a time, instead of saved. */
#ifndef TARN_RECOMPUTED_H
#define TARN_RECOMPUTED_H

#include "backward_limits.h"

enum {
    RECOMPUTED_BYTES = 24 << 10, /* winners of a box, on the stack, beside what the forward kernel has there */
    /* Interleaved planes that go together: several vectors; less where large windows need large boxes. */
    BOX_LANES = 32,
    BOX_LANES_OF_LARGE_WINDOWS = 8
};

/* Cells on each axis, the most windows that read them, and interleaved planes. */
typedef struct tarn_box {
    int64_t cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL], lanes;
} tarn_box;

/* As many windows as never fit stand for more. */
static inline void set_cells(const tarn_problem *problem, tarn_box *box, int a, int64_t cells)
{
    const tarn_axis *axis = &problem->axis[a];
    int64_t windows = min_i64((cells - 1) / axis->stride + 1 + most_readers(axis), axis->out);
    box->cells[a] = cells;
    box->windows[a] = min_i64(windows, RECOMPUTED_BYTES + 1);
}

/* Products that stop before they overflow; a plan asks this often, so there are no divisions for each axis. */
static inline bool box_fits(const tarn_problem *problem, const tarn_box *box)
{
    int64_t room = RECOMPUTED_BYTES / problem->element_bytes[OPERAND_SAVED] / box->lanes, windows = 1;
    for (int a = 0; a < problem->spatial && windows <= room; a++)
        windows *= box->windows[a];
    return windows <= room;
}

/* Doubles a box on one axis, if it then fits. */
static inline bool grow_box(const tarn_problem *problem, tarn_box *box, int axis)
{
    int64_t size = problem->axis[axis].size, cells = box->cells[axis], windows = box->windows[axis];
    if (cells == size)
        return false;
    set_cells(problem, box, axis, cells > size / 2 ? size : 2 * cells);
    if (box_fits(problem, box))
        return true;
    box->cells[axis] = cells;
    box->windows[axis] = windows;
    return false;
}

/* Windows that are computed for the sake of the box alone, relative to its cells on an axis. */
static inline double overlap_of_box(const tarn_problem *problem, const tarn_box *box, int a)
{
    return (double)box->windows[a] * (double)problem->axis[a].stride / (double)box->cells[a];
}

/* Grows a box on the axis on which it is worst and can grow; false if there is none. */
static inline bool grow_worst_axis(const tarn_problem *problem, tarn_box *box)
{
    bool tried[TARN_MAX_SPATIAL] = {false};
    for (int left = problem->spatial; left > 0; left--) {
        int worst = -1;
        for (int a = problem->spatial - 1; a >= 0; a--)
            if (!tried[a] && (worst < 0 || overlap_of_box(problem, box, a) > overlap_of_box(problem, box, worst)))
                worst = a;
        if (grow_box(problem, box, worst))
            return true;
        tried[worst] = true;
    }
    return false;
}

/* A box of whole planes. */
static inline tarn_box whole_box(const tarn_problem *problem, int64_t lanes)
{
    tarn_box box = {.lanes = lanes};
    for (int a = 0; a < problem->spatial; a++)
        set_cells(problem, &box, a, problem->axis[a].size);
    return box;
}

/* Grows a box until it does not fit on any axis. */
static inline void grow_box_fully(const tarn_problem *problem, tarn_box *box)
{
    tarn_box whole = whole_box(problem, box->lanes);
    if (box_fits(problem, &whole)) { /* which it usually does, so no plan need wait for the steps */
        *box = whole;
        return;
    }
    while (grow_worst_axis(problem, box)) {
    }
}

/* A box whose winners fit the buffer; one without lanes if there is none. */
static inline tarn_box box_of(const tarn_problem *problem)
{
    bool large = windows_of_cell(problem) > MOST_LANE_WINDOWS;
    tarn_box box = {.lanes = min_i64(problem->lanes, large ? BOX_LANES_OF_LARGE_WINDOWS : BOX_LANES)};
    for (int a = 0; a < problem->spatial; a++)
        set_cells(problem, &box, a, min_i64(problem->axis[a].stride, problem->axis[a].size));
    while (box.lanes > 0 && !box_fits(problem, &box))
        box.lanes /= 2;
    if (box.lanes == 0)
        return box;
    grow_box_fully(problem, &box);
    for (tarn_box wider = box; wider.lanes < problem->lanes; box = wider) {
        wider.lanes = min_i64(2 * box.lanes, problem->lanes);
        if (!box_fits(problem, &wider))
            break;
    }
    return box;
}

/* The box's lanes of one plane as a problem; its winners lie densely. */
static inline void set_box_lanes(tarn_problem *part, int64_t lanes)
{
    int64_t stride = lanes;
    part->leading = 0;
    part->planes = 1;
    part->lanes = lanes;
    for (int a = part->spatial - 1; a >= 0; a--) {
        part->stride[OPERAND_SAVED][a] = stride;
        stride *= part->axis[a].out;
    }
}

/* Windows [*first,*end) read the cells [lo,hi); one at least is named. */
static inline void windows_of_run(const tarn_axis *axis, int64_t lo, int64_t hi, int64_t *first, int64_t *end)
{
    *first = min_i64(max_i64(readers_of(axis, lo).last - (most_readers(axis) - 1), 0), axis->out - 1);
    *end = max_i64(min_i64(readers_of(axis, hi - 1).last + 1, axis->out), *first + 1);
}

/* The axis whose cells are [lo,hi) alone: what windows read beside them is padding. Its first window is *first. */
static inline tarn_axis axis_of_gradients(const tarn_axis *axis, int64_t lo, int64_t hi, int64_t *first)
{
    int64_t end;
    tarn_axis part = *axis;
    windows_of_run(axis, lo, hi, first, &end);
    part.size = hi - lo;
    part.out = end - *first;
    part.lo = lo + axis->lo - *first * axis->stride;
    return part;
}

/* The axis whose windows are those of axis_of_gradients(), and all that they read; *cell is its first cell. */
static inline tarn_axis axis_of_winners(const tarn_axis *axis, int64_t lo, int64_t hi, int64_t *cell)
{
    int64_t first, end;
    tarn_axis part = *axis;
    windows_of_run(axis, lo, hi, &first, &end);
    int64_t start = first * axis->stride - axis->lo;
    *cell = max_i64(start, 0);
    part.size = min_i64((end - 1) * axis->stride - axis->lo + axis->kernel, axis->size) - *cell;
    part.out = end - first;
    part.lo = *cell - start;
    return part;
}

#endif
