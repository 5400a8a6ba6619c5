/* Copies elements from a file's view to memory: another dtype, byte order or layout. */
#ifndef TARN_CONVERT_H
#define TARN_CONVERT_H

#include "tarn.h"

#include <stdbool.h>

/* to = from, element by element; the shapes agree, `to` has no NULL data, and `from` need not be
 * aligned. Numbers are rounded once, to nearest even; what an integer type does not hold becomes
 * its least or greatest number, NaN becomes 0. Without a change of dtype bits stay as they are. */
void tarn_convert(const tarn_view *from, bool swapped, const tarn_view *to);

/* Whether a view in a file can be pooled where it lies. */
bool tarn_is_direct(const tarn_view *view, bool swapped, tarn_dtype dtype);

#endif
