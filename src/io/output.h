/* Output files that are there whole or not at all: bytes go to a temporary file in the same folder,
 * which takes the name when everything is written. Where the system allows it the temporary has no
 * name until then, so not even a killed process leaves it behind. */
#ifndef TARN_OUTPUT_H
#define TARN_OUTPUT_H

#include "complaint.h"

#include <stddef.h>

enum { OUTPUT_PATH = 4096 };

typedef struct tarn_output {
    int file;
    bool direct;                      /* a pipe, a device, standard output: written in place */
    char path[OUTPUT_PATH];           /* links followed; as given for direct ones */
    char temporary[OUTPUT_PATH + 32]; /* empty while the file has no name */
} tarn_output;

/* Whether it is standard output: "-" or /dev/stdout, which may lead to a file that must not be
 * replaced. */
bool tarn_output_is_standard(const char *path);

/* Whether bytes go there directly: standard output, a pipe, a device. */
bool tarn_output_is_stream(const char *path);

/* Whether it is a terminal, which shows text and nothing else. */
bool tarn_output_is_terminal(const char *path);

/* Opens "path", "-" for standard output. `bytes`, if not 0, is how many will come: a disk without
 * room for them is noticed here. */
bool tarn_output_open(const char *path, int64_t bytes, tarn_output *output,
                      tarn_complaint *complaint);

/* The next bytes. After a failure only tarn_output_abandon() is left to call. */
bool tarn_output_write(tarn_output *output, const void *data, size_t size,
                       tarn_complaint *complaint);

/* Everything is written: the file takes its name. Closes the output, also on failure. */
bool tarn_output_commit(tarn_output *output, tarn_complaint *complaint);

/* Drops what was written. Nothing for an output that is not open. */
void tarn_output_abandon(tarn_output *output);

/* No output: abandoning it does nothing. */
static inline void tarn_output_none(tarn_output *output)
{
    output->file = -1;
}

/* Whether two outputs would end in the same file, whatever their names; one of them would be
 * lost. */
bool tarn_output_same(const char *path, const char *other);

/* From now on the signals that end a program remove temporary files first, and a mapped file that
 * shrinks ends it with status FAILED_WORK and a sentence. */
void tarn_output_guard_signals(void);

#endif
