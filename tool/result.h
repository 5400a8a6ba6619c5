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
    const char *name;   /* text: in its first line, if not NULL */
    bool channels_last; /* text: the order of the axes */
    tarn_region whole;  /* pictures and text: the bytes so far, as they are encoded at the end */
    size_t used;
    int64_t memory; /* what may be held of it; more lies in a file */
} tool_result;

/* Where a result goes, and how. */
typedef struct tool_target {
    tool_option_id option; /* that names it, for complaints */
    const char *path;
    const char *name;            /* of the result, if there are several, or NULL */
    bool text;                   /* as --text says: numbers in lines, whatever the name */
    bool converts;               /* the command takes --dtype */
    bool channels_last, fortran; /* order of the axes of the file */
    const tarn_array *like;      /* the picture whose type and colour a picture keeps, or NULL */
    int64_t memory;
} tool_target;

/* Opens the file that is to hold `view`, which is dense in C or Fortran order when its axes are
 * told as files tell them. A terminal gets small results as text and no others. */
bool tool_result_open(tool_result *result, const tool_target *target, const tarn_view *view,
                      int spatial, tarn_complaint *complaint);

/* A complaint, if that is a terminal: it is to get no binary. */
bool tool_refuse_terminal(tool_option_id option, const char *path, tarn_complaint *complaint);

/* Writes the numbers of a result as text: a line "# [name] shape dtype", then a line for each row
 * of the last axis, an empty one between planes. `numbers` is dense, its axes those of the file. */
bool tool_text_write(tarn_output *output, const char *name, const tarn_view *numbers,
                     bool channels_last, tarn_complaint *complaint);

/* The next bytes. */
bool tool_result_put(tool_result *result, const void *data, size_t size, tarn_complaint *complaint);

/* Everything is there: the file takes its name. */
bool tool_result_commit(tool_result *result, tarn_complaint *complaint);

/* Drops it, unless it was committed. */
void tool_result_close(tool_result *result);

#endif
