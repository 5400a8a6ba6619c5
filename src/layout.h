/* Strided views: checks, default layouts, extents. */
#ifndef TARN_LAYOUT_H
#define TARN_LAYOUT_H

#include "tarn.h"

#include <stdbool.h>

/* Bytes of memory a view may touch, relative to its data: [lo,hi). Both 0 for an empty view. */
typedef struct tarn_extent {
    int64_t lo, hi;
} tarn_extent;

/* Rank, dtype, sizes, and that no size or offset overflows. `name` is for the message. */
tarn_status tarn_check_view(const char *name, const tarn_view *view, tarn_extent *extent,
                            tarn_error *error);

/* That no two elements share memory: some order of the axes nests them. */
tarn_status tarn_check_no_overlap(const char *name, const tarn_view *view, tarn_error *error);

/* That `view` has the dtype, rank and shape of `expected`. */
tarn_status tarn_check_same_shape(const char *name, const tarn_view *view,
                                  const tarn_view *expected, tarn_error *error);

/* That data is there, aligned for its dtype, unless the view is empty. */
tarn_status tarn_check_data(const char *name, const void *data, tarn_dtype dtype, bool empty,
                            tarn_error *error);

/* Gives `view` dense strides, its axes in memory in the order that those of `like` have; `like`
 * may have more axes behind. */
void tarn_make_dense_like(tarn_view *view, const tarn_view *like);

/* The following two are part of every call, and so inline. */

/* Whether a view at `data` lies within the address space. */
static inline bool tarn_extent_fits(const void *data, tarn_extent extent)
{
    uintptr_t at = (uintptr_t)data;
    return (uint64_t)-extent.lo <= at && (uint64_t)extent.hi <= UINTPTR_MAX - at;
}

/* Whether two stretches of memory, from the first byte of each to the last, meet. */
static inline bool tarn_extents_meet(const void *a, tarn_extent a_extent, const void *b,
                                     tarn_extent b_extent)
{
    uintptr_t a_lo = (uintptr_t)a + (uintptr_t)a_extent.lo,
              a_hi = (uintptr_t)a + (uintptr_t)a_extent.hi;
    uintptr_t b_lo = (uintptr_t)b + (uintptr_t)b_extent.lo,
              b_hi = (uintptr_t)b + (uintptr_t)b_extent.hi;
    return a_lo < b_hi && b_lo < a_hi;
}

#endif
