/* Pictures out: PNM here, PNG by libpng. */
#define _POSIX_C_SOURCE 200809L /* strcasecmp */
#include "array_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

tarn_file_kind tarn_file_kind_of(const char *path)
{
    static const char *const extensions[TARN_FILE_UNKNOWN] = {".npy", ".png", ".pbm", ".pgm",
                                                              ".ppm", ".pnm", ".pam", ".txt"};
    const char *dot = strrchr(path, '.');
    for (int k = 0; dot && k < TARN_FILE_UNKNOWN; k++)
        if (strcasecmp(dot, extensions[k]) == 0)
            return (tarn_file_kind)k;
    return tarn_output_is_stream(path) ? TARN_FILE_NPY : TARN_FILE_UNKNOWN;
}

static int channels_of(const tarn_view *picture)
{
    return picture->rank == 3 ? (int)picture->shape[2] : 1;
}

/* Which PNM a picture of so many channels becomes; 0 if the kind cannot hold it. */
static int pnm_number(tarn_file_kind kind, int channels, int64_t white)
{
    switch (kind) {
    case TARN_FILE_PBM:
        return channels == 1 && white == 1 ? 4 : 0;
    case TARN_FILE_PGM:
        return channels == 1 ? 5 : 0;
    case TARN_FILE_PPM:
        return channels == 3 ? 6 : 0;
    case TARN_FILE_PNM:
        return channels == 1 ? 5 : channels == 3 ? 6 : 0;
    default:
        return 7;
    }
}

bool tarn_picture_fits(tarn_file_kind kind, const tarn_view *picture, int64_t white,
                       tarn_complaint *complaint)
{
    int channels = channels_of(picture);
    if (kind == TARN_FILE_PNG)
        return (picture->shape[0] <= INT32_MAX && picture->shape[1] <= INT32_MAX) ||
               tarn_complain(complaint, BAD_USAGE,
                             "PNG has no pictures of %lld x %lld pixels: write .pam or .npy",
                             (long long)picture->shape[1], (long long)picture->shape[0]);
    return pnm_number(kind, channels, white) != 0 ||
           tarn_complain(complaint, BAD_USAGE,
                         "this kind of file does not hold %d channel%s up to %lld: write %s",
                         channels, channels == 1 ? "" : "s", (long long)white,
                         channels == 1   ? ".pgm or .png"
                         : channels == 3 ? ".ppm or .png"
                                         : ".pam or .png");
}

static int format_header(char *text, size_t room, int number, const tarn_view *p, int channels,
                         int64_t white)
{
    static const char *const types[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    long long columns = p->shape[1], rows = p->shape[0];
    if (number == 4)
        return snprintf(text, room, "P4\n%lld %lld\n", columns, rows);
    if (number < 7)
        return snprintf(text, room, "P%d\n%lld %lld\n%lld\n", number, columns, rows,
                        (long long)white);
    return snprintf(text, room,
                    "P7\nWIDTH %lld\nHEIGHT %lld\nDEPTH %d\nMAXVAL %lld\nTUPLTYPE %s\nENDHDR\n",
                    columns, rows, channels, (long long)white, types[channels]);
}

/* One row as PNM has it: u16 with the high byte first, bits with 1 for black. Returns its bytes. */
static size_t pack_row(const unsigned char *row, size_t samples, int number, bool wide,
                       unsigned char *packed)
{
    if (number == 4) {
        memset(packed, 0, (samples + 7) / 8);
        for (size_t k = 0; k < samples; k++)
            packed[k / 8] |= (unsigned char)((row[k] == 0) << (7 - k % 8));
        return (samples + 7) / 8;
    }
    for (size_t k = 0; k < samples && wide; k++) {
        uint16_t value;
        memcpy(&value, row + 2 * k, 2);
        packed[2 * k] = (unsigned char)(value >> 8);
        packed[2 * k + 1] = (unsigned char)(value & 255);
    }
    if (!wide)
        memcpy(packed, row, samples);
    return wide ? 2 * samples : samples;
}

static bool write_rows(tarn_output *output, const tarn_view *p, int number, size_t samples,
                       tarn_complaint *complaint)
{
    size_t width = tarn_dtype_size(p->dtype);
    unsigned char *packed = malloc(samples * width);
    bool good = packed || tarn_complain(complaint, FAILED_WORK, "no memory for a row of pixels");
    const unsigned char *row = p->data;
    for (int64_t y = 0; good && y < p->shape[0]; y++, row += samples * width)
        good = tarn_output_write(output, packed, pack_row(row, samples, number, width == 2, packed),
                                 complaint);
    free(packed);
    return good;
}

bool tarn_picture_write(tarn_output *output, tarn_file_kind kind, const tarn_view *picture,
                        int64_t white, tarn_complaint *complaint)
{
    char header[160];
    int channels = channels_of(picture), number = pnm_number(kind, channels, white);
    if (kind == TARN_FILE_PNG)
        return tarn_png_write(output, picture, complaint);
    int length = format_header(header, sizeof header, number, picture, channels, white);
    return tarn_output_write(output, header, (size_t)length, complaint) &&
           write_rows(output, picture, number, (size_t)(picture->shape[1] * channels), complaint);
}
