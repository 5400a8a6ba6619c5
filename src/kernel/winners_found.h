/* Shared by winners_found.c and winners_huge.c. */
#ifndef TARN_WINNERS_FOUND_H
#define TARN_WINNERS_FOUND_H

#include "winners.h"

/* A box of cells and windows that read them, in some planes or lanes. */
typedef struct found_box {
    range cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL];
    range lanes;
    int64_t planes; /* one behind the other, if the box is a whole plane */
    char *winners;
    tarn_engine *engine; /* that finds them */
} found_box;

/* The windows that read some cells, and one at least. */
range tarn_windows_of_cells(const tarn_axis *axis, range cells);

/* The axis of some windows alone, with the cells that they read, from *cell on. */
tarn_axis tarn_axis_of_windows(const tarn_axis *axis, range windows, int64_t *cell);

/* Cells of boxes that have at most so many windows and cells, and lanes, of those there are; a
 * vector has `vector` lanes. Rows are to be `longer` than other axes. False if there is no such
 * box. */
bool tarn_cut_cells(const tarn_problem *p, int64_t windows, int64_t cells, int64_t vector,
                    double longer, int64_t *size, int64_t *lanes);

/* Finds the winners of a box of windows, which lie densely. */
void tarn_find_box(const tarn_problem *p, char *const *base, const found_box *b,
                   const tarn_row_ops *ops);

/* Winners of all windows of a problem that skips, by that engine where nothing is skipped. The
 * problem is the same in the end. skipping.c */
void tarn_find_counted(tarn_problem *p, const tarn_tensors *tensors, tarn_engine *engine,
                       const tarn_row_ops *ops);

/* The gradients of some cells of a slab; `room` is of FOUND_BYTES. At most MOST_CHAINS windows lie
 * between two that have cells in common. */
enum { FOUND_BYTES = 8 << 10, MOST_CHAINS = 32 };
void tarn_find_huge(const tarn_problem *p, const tarn_slab *slab, const range *all, char *room,
                    const tarn_row_ops *ops);

#endif
