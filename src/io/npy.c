/* The .npy format: magic, version, header length, a Python dictionary, then the elements. */
#include "array_file.h"
#include "../checked.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    tarn_bytes bytes;
    size_t at, end; /* of the dictionary */
    tarn_complaint *complaint;
    bool descr_given, order_given, shape_given, fortran, big_endian, channels_last;
    tarn_dtype dtype;
    int rank;
    int64_t shape[TARN_MAX_RANK];
} parser;

static const struct {
    const char *descr;
    tarn_dtype dtype;
} types[] = {
    {"f8", TARN_F64}, {"f4", TARN_F32}, {"f2", TARN_F16}, {"V2", TARN_BF16}, {"i1", TARN_I8},
    {"u1", TARN_U8},  {"b1", TARN_U8},  {"i2", TARN_I16}, {"u2", TARN_U16},  {"i4", TARN_I32},
    {"u4", TARN_U32}, {"i8", TARN_I64}, {"u8", TARN_U64},
};

static bool expected(const parser *p, const char *what)
{
    return tarn_complain_at(p->complaint, p->bytes.at + (int64_t)p->at,
                            "the .npy header is malformed: expected %s", what);
}

static int peek(const parser *p)
{
    return p->at < p->end ? p->bytes.data[p->at] : '\0';
}

static void skip_spaces(parser *p)
{
    while (p->at < p->end && isspace(p->bytes.data[p->at]))
        p->at++;
}

static bool take(parser *p, int letter)
{
    skip_spaces(p);
    if (p->at >= p->end || p->bytes.data[p->at] != letter)
        return false;
    p->at++;
    return true;
}

static bool take_word(parser *p, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(p);
    if (p->end - p->at < length || memcmp(p->bytes.data + p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* A quoted string without escapes, shorter than `room`. */
static bool take_string(parser *p, char *text, size_t room)
{
    size_t length = 0;
    skip_spaces(p);
    int quote = peek(p);
    if (quote != '\'' && quote != '"')
        return false;
    for (p->at++; p->at < p->end && peek(p) != quote && length + 1 < room; p->at++)
        text[length++] = (char)peek(p);
    text[length] = '\0';
    return take(p, quote);
}

static bool take_size(parser *p, int64_t *size)
{
    skip_spaces(p);
    size_t begin = p->at;
    *size = 0;
    if (!isdigit(peek(p)))
        return expected(p, peek(p) == '-' ? "a size, which is not negative" : "a size");
    for (; isdigit(peek(p)); p->at++)
        if (!checked_mul(*size, 10, size) || !checked_add(*size, peek(p) - '0', size)) {
            p->at = begin;
            return expected(p, "a size of at most 63 bits");
        }
    if (peek(p) == 'L') /* how Python 2 wrote long integers */
        p->at++;
    return true;
}

/* (), (3,), (3, 4) */
static bool take_shape(parser *p)
{
    if (!take(p, '('))
        return expected(p, "a shape such as (3, 4)");
    for (p->rank = 0; !take(p, ')'); p->rank++) {
        if (p->rank == TARN_MAX_RANK)
            return expected(p, "at most 64 axes");
        if (!take_size(p, &p->shape[p->rank]))
            return false;
        skip_spaces(p);
        if (peek(p) != ')' && !take(p, ','))
            return expected(p, "a comma or ) behind a size");
    }
    return p->shape_given = true;
}

static bool take_descr(parser *p)
{
    char text[16];
    skip_spaces(p);
    size_t begin = p->at;
    if (peek(p) == '[')
        return expected(p,
                        "a plain dtype such as '<f4'; structured ones are not arrays of numbers");
    if (!take_string(p, text, sizeof text))
        return expected(p, "a dtype such as '<f4'");
    const char *type = text + (text[0] != '\0' && strchr("<>=|", text[0]) != NULL);
    p->big_endian = text[0] == '>';
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (strcmp(type, types[k].descr) == 0) {
            p->dtype = types[k].dtype;
            return p->descr_given = true;
        }
    return tarn_complain_at(p->complaint, p->bytes.at + (int64_t)begin,
                            "dtype '%s' is not supported; tarn reads f2 f4 f8, i1 to i8, u1 to u8, "
                            "b1 as u8 and V2 as bf16",
                            text);
}

static bool take_order(parser *p)
{
    p->fortran = take_word(p, "True");
    if (!p->fortran && !take_word(p, "False"))
        return expected(p, "True or False for fortran_order");
    return p->order_given = true;
}

static bool take_entry(parser *p)
{
    char key[32];
    skip_spaces(p);
    size_t begin = p->at;
    if (!take_string(p, key, sizeof key) || !take(p, ':'))
        return expected(p, "a key such as 'shape' and a colon");
    if (strcmp(key, "descr") == 0 && !p->descr_given)
        return take_descr(p);
    if (strcmp(key, "fortran_order") == 0 && !p->order_given)
        return take_order(p);
    if (strcmp(key, "shape") == 0 && !p->shape_given)
        return take_shape(p);
    p->at = begin;
    return expected(p, "'descr', 'fortran_order' and 'shape', once each");
}

static bool take_dictionary(parser *p)
{
    if (!take(p, '{'))
        return expected(p, "{");
    while (!take(p, '}')) {
        if (!take_entry(p))
            return false;
        skip_spaces(p);
        if (peek(p) != '}' && !take(p, ','))
            return expected(p, "a comma or } behind a value");
    }
    p->channels_last = take_word(p, NPY_CHANNELS_LAST);
    skip_spaces(p);
    if (p->at != p->end)
        return expected(p, "nothing behind }");
    if (p->descr_given && p->order_given && p->shape_given)
        return true;
    return expected(p, "'descr', 'fortran_order' and 'shape', once each");
}

/* Where the dictionary begins and ends. */
static bool find_header(parser *p)
{
    const unsigned char *data = p->bytes.data;
    size_t size = p->bytes.size, wide = size > 6 && data[6] >= 2 ? 4 : 2, length = 0;
    if (size < 6 || memcmp(data, "\x93NUMPY", 6) != 0)
        return tarn_complain_at(p->complaint, p->bytes.at, "is not .npy: wrong magic bytes");
    if (size < 8 + wide)
        return tarn_complain_at(p->complaint, p->bytes.at + (int64_t)size,
                                "ends inside the .npy header");
    if (data[6] < 1 || data[6] > 3 || data[7] != 0)
        return tarn_complain_at(p->complaint, p->bytes.at + 6,
                                ".npy version %d.%d is not known; tarn reads 1.0, 2.0 and 3.0",
                                data[6], data[7]);
    for (size_t k = wide; k-- > 0;)
        length = length << 8 | data[8 + k];
    p->at = 8 + wide;
    if (length > size - p->at)
        return tarn_complain_at(p->complaint, p->bytes.at + 8,
                                "the .npy header has %zu bytes, but the file ends after %zu",
                                length, size - p->at);
    p->end = p->at + length;
    return true;
}

static tarn_view fortran_view(void *data, tarn_dtype dtype, int rank, const int64_t *shape)
{
    tarn_view view = tarn_view_dense(data, dtype, rank, shape);
    int64_t stride = 1;
    for (int a = 0; a < rank; a++) {
        view.strides[a] = stride;
        stride *= max_i64(shape[a], 1); /* checked by tarn_count_bytes() */
    }
    return view;
}

static bool is_big_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

bool tarn_npy_decode(tarn_bytes bytes, tarn_array *array, tarn_complaint *complaint)
{
    parser p = {.bytes = bytes, .complaint = complaint};
    int64_t needed;
    if (!find_header(&p) || !take_dictionary(&p))
        return false;
    if (!tarn_count_bytes(p.rank, p.shape, p.dtype, &needed))
        return tarn_complain_at(complaint, bytes.at,
                                "the shape in the .npy header does not fit 63 "
                                "bits");
    if ((uint64_t)needed > bytes.size - p.end)
        return tarn_complain_at(
            complaint, bytes.at + (int64_t)bytes.size,
            "is truncated: the elements take %lld bytes, but only %lld are there",
            (long long)needed, (long long)(bytes.size - p.end));
    void *data = (void *)(uintptr_t)(bytes.data + p.end); /* a view is also what outputs are */
    array->view = p.fortran ? fortran_view(data, p.dtype, p.rank, p.shape)
                            : tarn_view_dense(data, p.dtype, p.rank, p.shape);
    array->fortran = p.fortran;
    array->channels_last = p.channels_last;
    array->swapped = p.big_endian != is_big_endian() && tarn_dtype_size(p.dtype) > 1;
    return true;
}
