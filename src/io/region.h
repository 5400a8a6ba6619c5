/* Stretches of memory that a program larger than memory can afford: files mapped for reading, and
 * room for decoded data, which lies in an unlinked temporary file when it is large. */
#ifndef TARN_REGION_H
#define TARN_REGION_H

#include "complaint.h"

#include <stddef.h>

typedef struct tarn_region {
    unsigned char *data;
    size_t size;
    bool mapped; /* give back with munmap, not with free */
} tarn_region;

/* The bytes of a file, "-" for standard input. A regular file is mapped; anything else is read to
 * its end, into memory while that takes at most `memory` bytes. */
bool tarn_region_open(const char *path, int64_t memory, tarn_region *region,
                      tarn_complaint *complaint);

/* Zeroed room to write to: memory up to `memory` bytes, beyond that a temporary file whose blocks
 * are reserved, so that a full disk is noticed here and not by a signal later. */
bool tarn_region_create(size_t size, int64_t memory, tarn_region *region,
                        tarn_complaint *complaint);

/* Gives it back; an empty region is allowed, and is what is left. */
void tarn_region_close(tarn_region *region);

/* Tells the system that bytes [begin,end) are about to be read, or are not needed any more: clean
 * pages leave the resident set. Nothing for regions that are not mapped. */
void tarn_region_will_need(const tarn_region *region, size_t begin, size_t end);
void tarn_region_is_done(const tarn_region *region, size_t begin, size_t end);

/* Bytes of memory that the machine has; 0 if the system does not tell. */
int64_t tarn_region_machine_memory(void);

#endif
