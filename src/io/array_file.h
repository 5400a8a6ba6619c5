/* Arrays in files: .npy, members of .npz, PNG, PNM. Whatever the bytes are, reading them ends in an
 * array or in a complaint that says what is wrong, and at which byte. */
#ifndef TARN_ARRAY_FILE_H
#define TARN_ARRAY_FILE_H

#include "region.h"
#include "tarn.h"

/* An array as it lies in its file. */
typedef struct tarn_array {
    tarn_view view;      /* axes in the order of the file; data may not be aligned to its element */
    bool swapped;        /* the bytes of an element come in the other order */
    bool fortran;        /* the first axis is the innermost one */
    bool channels_last;  /* .npy: the header says so (see tarn_npy_header()) */
    int64_t white;       /* pictures: the value of white, 1..65535; other arrays: 0 */
    tarn_region file;    /* the bytes of the file */
    tarn_region decoded; /* what was made of them; empty if `view` lies in the file itself */
} tarn_array;

/* Pictures are rows x columns, or rows x columns x channels: u8, or u16 above a white of 255. */
static inline bool tarn_array_is_picture(const tarn_array *array)
{
    return array->white > 0;
}

/* Opens a file, "-" for standard input, "file.npz:name" for a member. `memory` bounds what is held
 * in memory; more goes to temporary files. Close it with tarn_array_close(). */
bool tarn_array_open(const char *path, int64_t memory, tarn_array *array,
                     tarn_complaint *complaint);

/* Decodes array->file by its first bytes. `member` is the member of an .npz file to take, NULL for
 * its only one. */
bool tarn_array_decode(const char *member, int64_t memory, tarn_array *array,
                       tarn_complaint *complaint);

void tarn_array_close(tarn_array *array);

/* What the header of a .npy file with channels last has behind the dictionary. */
#define NPY_CHANNELS_LAST "# channels last"

/* The decoders. `bytes` are those of the file, or of the member, and `at` is where they begin in
 * the file. */
typedef struct tarn_bytes {
    const unsigned char *data;
    size_t size;
    int64_t at;
} tarn_bytes;

bool tarn_npy_decode(tarn_bytes bytes, tarn_array *array, tarn_complaint *complaint);
bool tarn_npz_decode(const char *member, int64_t memory, tarn_array *array,
                     tarn_complaint *complaint);
bool tarn_png_decode(int64_t memory, tarn_array *array, tarn_complaint *complaint);
bool tarn_pnm_decode(int64_t memory, tarn_array *array, tarn_complaint *complaint);

/* Room for a picture, and the view of it; channels 1 gives rows x columns. False with a complaint
 * if a side is 0 or the bytes do not fit. */
bool tarn_picture_room(int64_t rows, int64_t columns, int channels, int64_t white, int64_t memory,
                       tarn_array *array, tarn_complaint *complaint);

/* Product of the sizes; false if it, with element bytes, does not fit 63 bits, also where a size of
 * 0 would hide it. */
bool tarn_count_bytes(int rank, const int64_t *shape, tarn_dtype dtype, int64_t *bytes);

#endif
