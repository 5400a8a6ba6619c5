#include "error.h"

#include <stdarg.h>
#include <stdio.h>

tarn_status tarn_fail(tarn_error *error, tarn_status code, int axis, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
        error->code = code;
        error->axis = axis;
    }
    return code;
}

tarn_status tarn_succeed(tarn_error *error)
{
    if (error) {
        error->code = TARN_OK;
        error->axis = NO_AXIS;
        error->message[0] = '\0';
    }
    return TARN_OK;
}

const char *tarn_status_name(tarn_status status)
{
    switch (status) {
    case TARN_OK:
        return "TARN_OK";
    case TARN_BAD_ARGUMENT:
        return "TARN_BAD_ARGUMENT";
    case TARN_BAD_RANK:
        return "TARN_BAD_RANK";
    case TARN_BAD_SHAPE:
        return "TARN_BAD_SHAPE";
    case TARN_BAD_WINDOW:
        return "TARN_BAD_WINDOW";
    case TARN_DOES_NOT_FIT:
        return "TARN_DOES_NOT_FIT";
    case TARN_BAD_VALUE:
        return "TARN_BAD_VALUE";
    case TARN_BAD_DTYPE:
        return "TARN_BAD_DTYPE";
    case TARN_BAD_LAYOUT:
        return "TARN_BAD_LAYOUT";
    case TARN_OVERFLOW:
        return "TARN_OVERFLOW";
    case TARN_ALIAS:
        return "TARN_ALIAS";
    case TARN_BAD_INDEX:
        return "TARN_BAD_INDEX";
    case TARN_NO_MEMORY:
        return "TARN_NO_MEMORY";
    case TARN_UNSUPPORTED:
        return "TARN_UNSUPPORTED";
    case TARN_BAD_TEXT:
        return "TARN_BAD_TEXT";
    }
    return "unknown";
}
