/* Packing blocks that live for some steps into one stretch of memory. */
#ifndef TARN_GRAPH_PACK_H
#define TARN_GRAPH_PACK_H

#include "graph.h"

typedef struct tarn_block {
    int64_t bytes, offset;
    int first, last; /* steps, both included */
} tarn_block;

/* Gives blocks, in the order of birth, whose lives meet offsets that do not; *top is the memory it
 * takes. All their bytes fit 63 bits. Errors: NO_MEMORY. */
tarn_status tarn_pack_blocks(tarn_block *blocks, int count, int steps,
                             const tarn_allocator *allocator, int64_t *top, tarn_error *error);

/* The most bytes alive at one step, which no packing can go below. */
tarn_status tarn_most_alive(const tarn_block *blocks, int count, int steps,
                            const tarn_allocator *allocator, int64_t *most, tarn_error *error);

#endif
