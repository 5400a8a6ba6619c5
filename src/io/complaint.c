#include "complaint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tarn_complaint tarn_no_complaint(void)
{
    return (tarn_complaint){.axis = -1, .offset = -1};
}

static bool fill(tarn_complaint *complaint, int status, const char *format, va_list arguments)
{
    complaint->status = status;
    vsnprintf(complaint->message, sizeof complaint->message, format, arguments);
    return false;
}

bool tarn_complain(tarn_complaint *complaint, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(complaint, status, format, arguments);
    va_end(arguments);
    return false;
}

bool tarn_complain_at(tarn_complaint *complaint, int64_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(complaint, FAILED_WORK, format, arguments);
    va_end(arguments);
    complaint->offset = offset;
    return false;
}

bool tarn_complain_option(tarn_complaint *complaint, const char *option, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(complaint, BAD_USAGE, format, arguments);
    va_end(arguments);
    snprintf(complaint->option, sizeof complaint->option, "%s", option);
    return false;
}

bool tarn_complain_errno(tarn_complaint *complaint, const char *file, const char *what)
{
    const char *why = strerror(errno);
    tarn_complaint_file(complaint, file);
    return tarn_complain(complaint, FAILED_WORK, "%s: %s", what, why);
}

void tarn_complaint_file(tarn_complaint *complaint, const char *file)
{
    size_t length = strlen(file), room = sizeof complaint->file - 1;
    snprintf(complaint->file, sizeof complaint->file, "%s",
             length > room ? file + (length - room) : file);
}
