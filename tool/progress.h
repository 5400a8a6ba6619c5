/* The progress bar: on a terminal, when work lasts longer than a second. */
#ifndef TARN_PROGRESS_H
#define TARN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tool_progress {
    bool wanted, shown;
    int64_t total, done; /* bytes */
    double begin, last;  /* seconds */
} tool_progress;

/* Seconds of a clock that only goes forward. */
double tool_seconds(void);

void tool_progress_begin(tool_progress *progress, int64_t total, bool quiet);
void tool_progress_add(tool_progress *progress, int64_t bytes);
/* Wipes the bar. */
void tool_progress_end(tool_progress *progress);

#endif
