/* Writing arrays: .npy and pictures. */
#ifndef TARN_ARRAY_WRITE_H
#define TARN_ARRAY_WRITE_H

#include "output.h"
#include "tarn.h"

/* What a file's name says it is. */
typedef enum tarn_file_kind {
    TARN_FILE_NPY,
    TARN_FILE_PNG,
    TARN_FILE_PBM,
    TARN_FILE_PGM,
    TARN_FILE_PPM,
    TARN_FILE_PNM, /* PGM or PPM, by the number of channels */
    TARN_FILE_PAM,
    TARN_FILE_TEXT, /* numbers in lines; written only */
    TARN_FILE_UNKNOWN
} tarn_file_kind;

/* By extension; standard output, pipes and devices without one are .npy. */
tarn_file_kind tarn_file_kind_of(const char *path);

enum { NPY_HEADER = 4096 }; /* room for every header: 64 sizes of 20 digits, and the rest */

/* The .npy header, as NumPy writes it, of elements that follow in C or in Fortran order; returns
 * its length. With `channels_last` it says so in a comment of Python's, for a tarn at the other end
 * of a pipe: NumPy skips it. */
size_t tarn_npy_header(const tarn_view *view, bool fortran, bool channels_last, char *header);

/* Whether a kind can hold a picture, rows x columns or rows x columns x 1 to 4 channels; asked
 * before the work begins. */
bool tarn_picture_fits(tarn_file_kind kind, const tarn_view *picture, int64_t white,
                       tarn_complaint *complaint);

/* Writes a dense picture that fits the kind, of u8, or of u16 above a white of 255. */
bool tarn_picture_write(tarn_output *output, tarn_file_kind kind, const tarn_view *picture,
                        int64_t white, tarn_complaint *complaint);

/* PNG only; white is 255 or 65535. */
bool tarn_png_write(tarn_output *output, const tarn_view *picture, tarn_complaint *complaint);

#endif
