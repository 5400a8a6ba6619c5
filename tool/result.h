/* A result on its way to a file: bytes in memory order, then a name. */
#ifndef TARN_RESULT_H
#define TARN_RESULT_H

#include "../src/io/array_write.h"
#include "tool.h"

typedef struct tool_result {
    tarn_file_kind kind;
    tarn_output output;
    tarn_view view; /* logical: leading axes, then spatial ones; strides are those of the bytes */
    int spatial;    /* axes of it that are */
    int64_t white;  /* pictures: the value of white */
    tarn_dtype samples; /* pictures: their dtype */
    tarn_region whole;  /* pictures: the bytes so far, as they are encoded at the end */
    size_t used;
} tool_result;

/* Opens the file that is to hold `view`, which is dense in C or Fortran order when its axes are told as
 * files tell them. `like` is the picture whose type and colour a picture keeps, or NULL. */
bool tool_result_open(tool_result *result, const char *path, const tarn_view *view, int spatial,
                      bool channels_last, bool fortran, const tarn_array *like, int64_t memory,
                      tarn_complaint *complaint);

/* The next bytes. */
bool tool_result_put(tool_result *result, const void *data, size_t size, tarn_complaint *complaint);

/* Everything is there: the file takes its name. */
bool tool_result_commit(tool_result *result, tarn_complaint *complaint);

/* Drops it, unless it was committed. */
void tool_result_close(tool_result *result);

#endif
