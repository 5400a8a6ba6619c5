/* PBM, PGM, PPM (P1 to P6) and PAM (P7). Bits are read as 0 black and 1 white. */
#include "array_file.h"
#include "../checked.h"

#include <ctype.h>
#include <string.h>

enum { MOST_CHANNELS = 4 };

typedef struct {
    const unsigned char *data;
    size_t size, at;
    tarn_complaint *complaint;
    int kind; /* 1..7 */
    int64_t columns, rows, channels, white;
} reader;

static bool expected(const reader *r, const char *what)
{
    return tarn_complain_at(r->complaint, (int64_t)r->at,
                            "the PNM header is malformed: expected %s", what);
}

static int peek(const reader *r)
{
    return r->at < r->size ? r->data[r->at] : -1;
}

/* White space, and comments from # to the end of the line. */
static void skip_blanks(reader *r)
{
    for (bool comment = false; r->at < r->size; r->at++) {
        comment = r->data[r->at] == '#' || (comment && r->data[r->at] != '\n');
        if (!comment && !isspace(r->data[r->at]))
            return;
    }
}

static bool take_number(reader *r, int64_t *number, const char *what)
{
    skip_blanks(r);
    if (r->at >= r->size || !isdigit(r->data[r->at]))
        return expected(r, what);
    for (*number = 0; r->at < r->size && isdigit(r->data[r->at]); r->at++)
        if (!checked_mul(*number, 10, number) ||
            !checked_add(*number, r->data[r->at] - '0', number))
            return expected(r, "a number of at most 63 bits");
    return true;
}

static bool check_header(const reader *r)
{
    if (r->white < 1 || r->white > UINT16_MAX)
        return expected(r, "a greatest value from 1 to 65535");
    if (r->channels < 1 || r->channels > MOST_CHANNELS)
        return expected(r, "1 to 4 channels");
    return true;
}

static bool take_header(reader *r)
{
    r->channels = r->kind == 3 || r->kind == 6 ? 3 : 1;
    r->white = 1;
    if (!take_number(r, &r->columns, "the width") || !take_number(r, &r->rows, "the height"))
        return false;
    if (r->kind != 1 && r->kind != 4 && !take_number(r, &r->white, "the greatest value"))
        return false;
    if (!isspace(peek(r)))
        return expected(r, "one white space behind the header");
    r->at++;
    return check_header(r);
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    if (r->size - r->at < length || memcmp(r->data + r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

static void skip_line(reader *r)
{
    while (r->at < r->size && r->data[r->at++] != '\n')
        continue;
}

/* Lines of a PAM header, in any order, up to ENDHDR. */
static bool take_pam_header(reader *r)
{
    for (skip_line(r);; skip_line(r)) {
        skip_blanks(r);
        if (r->at >= r->size)
            return expected(r, "ENDHDR");
        bool good = take_word(r, "WIDTH")    ? take_number(r, &r->columns, "the width")
                    : take_word(r, "HEIGHT") ? take_number(r, &r->rows, "the height")
                    : take_word(r, "DEPTH")  ? take_number(r, &r->channels, "the depth")
                    : take_word(r, "MAXVAL") ? take_number(r, &r->white, "the greatest value")
                                             : true;
        if (!good)
            return false;
        if (take_word(r, "ENDHDR"))
            return skip_line(r), check_header(r);
    }
}

static bool truncated(const reader *r, int64_t needed)
{
    return tarn_complain_at(r->complaint, (int64_t)r->size,
                            "is truncated: the pixels take %lld bytes, but only %lld are there",
                            (long long)needed, (long long)(r->size - r->at));
}

static bool take_binary(reader *r, tarn_array *array)
{
    size_t bytes = array->decoded.size;
    if (r->size - r->at < bytes)
        return truncated(r, (int64_t)bytes);
    const unsigned char *pixels = r->data + r->at;
    if (r->white <= UINT8_MAX) {
        memcpy(array->decoded.data, pixels, bytes);
        return true;
    }
    for (size_t k = 0; k < bytes; k += 2) { /* most significant byte first */
        uint16_t value = (uint16_t)(pixels[k] << 8 | pixels[k + 1]);
        memcpy(array->decoded.data + k, &value, 2);
    }
    return true;
}

static bool take_bits(reader *r, tarn_array *array)
{
    int64_t row_bytes = ceil_div(r->columns, 8);
    if ((int64_t)(r->size - r->at) / row_bytes < r->rows)
        return truncated(r, row_bytes * r->rows);
    const unsigned char *row = r->data + r->at;
    for (int64_t y = 0; y < r->rows; y++, row += row_bytes)
        for (int64_t x = 0; x < r->columns; x++)
            array->decoded.data[y * r->columns + x] = !(row[x / 8] >> (7 - x % 8) & 1);
    return true;
}

/* Digits of a plain bitmap need no space between them. */
static bool take_plain_value(reader *r, int64_t *value)
{
    if (r->kind != 1)
        return take_number(r, value, "a pixel");
    skip_blanks(r);
    if (peek(r) != '0' && peek(r) != '1')
        return expected(r, "a pixel, 0 or 1");
    *value = r->data[r->at++] == '0';
    return true;
}

static bool take_plain(reader *r, tarn_array *array)
{
    size_t width = tarn_dtype_size(array->view.dtype);
    for (size_t at = 0; at < array->decoded.size; at += width) {
        int64_t value;
        if (!take_plain_value(r, &value))
            return false;
        if (value > r->white)
            return expected(r, "pixels up to the greatest value");
        uint16_t wide = (uint16_t)value;
        unsigned char narrow = (unsigned char)value;
        memcpy(array->decoded.data + at, width == 2 ? (void *)&wide : (void *)&narrow, width);
    }
    return true;
}

/* A file cannot hold more pixels than bits: checked before room is made for what a header
 * claims. */
static bool is_plausible(const reader *r)
{
    int64_t pixels;
    if (checked_mul(r->columns, r->rows, &pixels) && pixels / 8 <= (int64_t)(r->size - r->at))
        return true;
    return tarn_complain_at(r->complaint, (int64_t)r->size,
                            "is truncated: %lld x %lld pixels do not fit its %zu bytes",
                            (long long)r->columns, (long long)r->rows, r->size);
}

bool tarn_pnm_decode(int64_t memory, tarn_array *array, tarn_complaint *complaint)
{
    const tarn_region *file = &array->file;
    reader r = {.data = file->data, .size = file->size, .at = 2, .complaint = complaint};
    r.kind = file->data[1] - '0';
    bool good = r.kind == 7 ? take_pam_header(&r) : take_header(&r);
    if (!good || !is_plausible(&r) ||
        !tarn_picture_room(r.rows, r.columns, (int)r.channels, r.white, memory, array, complaint))
        return false;
    return r.kind == 4   ? take_bits(&r, array)
           : r.kind <= 3 ? take_plain(&r, array)
                         : take_binary(&r, array);
}
