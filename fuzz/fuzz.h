/* A fuzz target is a function of some bytes. libFuzzer calls it with bytes of its own making (make
 * fuzz); fuzz_replay.c with the files of the corpus and small damages to them (make test). */
#ifndef TARN_FUZZ_H
#define TARN_FUZZ_H

#include "../src/io/array_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { FUZZ_MEMORY = 1 << 26 }; /* decoded data beyond this goes to a temporary file */

typedef bool fuzz_decoder(tarn_array *array, tarn_complaint *complaint);

/* Adds up every byte that a view reaches: reading outside the buffers would be noticed. */
static inline void fuzz_read_all(const tarn_view *view)
{
    volatile unsigned sum = 0;
    const unsigned char *bytes = view->data;
    for (size_t k = 0; k < tarn_view_bytes(view); k++)
        sum = sum + bytes[k];
}

/* Decodes a copy of exactly these bytes. A refusal must say why; a success must be readable. */
static inline int fuzz_decode(const unsigned char *data, size_t size, fuzz_decoder *decode)
{
    tarn_array array = {.file = {.data = malloc(size ? size : 1), .size = size}};
    tarn_complaint complaint = tarn_no_complaint();
    if (!array.file.data)
        return 0;
    memcpy(array.file.data, data, size);
    bool good = decode(&array, &complaint);
    if (good)
        fuzz_read_all(&array.view);
    if (good != (complaint.status == 0) || good != (complaint.message[0] == '\0'))
        abort();
    tarn_array_close(&array);
    return 0;
}

#endif
