/* The one way to say what is wrong. */
#ifndef TARN_ERROR_H
#define TARN_ERROR_H

#include "tarn.h"

#define NO_AXIS (-1)

/* Fills *error, if there is one, and returns `code`. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
tarn_status
tarn_fail(tarn_error *error, tarn_status code, int axis, const char *format, ...);

/* Clears *error, if there is one, and returns TARN_OK. */
tarn_status tarn_succeed(tarn_error *error);

#endif
