#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30 };
static const double patience = 1.0, pause_between = 0.1; /* seconds */

double tool_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void tool_progress_begin(tool_progress *progress, int64_t total, bool quiet)
{
    *progress = (tool_progress){.total = total, .begin = tool_seconds()};
    progress->wanted = !quiet && total > 0 && isatty(STDERR_FILENO);
}

static void draw(const tool_progress *p, double now)
{
    char bar[WIDTH + 1];
    double part = (double)p->done / (double)p->total, spent = now - p->begin;
    for (int k = 0; k < WIDTH; k++)
        bar[k] = k < (int)(part * WIDTH) ? '#' : '.';
    bar[WIDTH] = '\0';
    int left = part > 0 ? (int)(spent / part - spent + 0.5) : 0;
    fprintf(stderr, "\r[%s] %3d %%  %.1f MB/s  %d:%02d left \033[K", bar, (int)(part * 100),
            (double)p->done * 1e-6 / spent, left / 60, left % 60);
    fflush(stderr);
}

void tool_progress_add(tool_progress *progress, int64_t bytes)
{
    double now = tool_seconds();
    progress->done += bytes;
    if (!progress->wanted || now - progress->begin < patience ||
        now - progress->last < pause_between)
        return;
    progress->last = now;
    progress->shown = true;
    draw(progress, now);
}

void tool_progress_end(tool_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
