#include "graph_words.h"

#include "../float_state.h"
#include "../scalar.h"
#include "../shape.h"

#include <errno.h>
#include <stdlib.h>

/* ---- Words --------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool tarn_at_line_end(tarn_reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
    return r->at == r->end || *r->at == '\n' || *r->at == '#';
}

bool tarn_next_word(tarn_reader *r, tarn_word *w)
{
    bool none = tarn_at_line_end(r);
    w->at = r->at;
    w->text[0] = '\0';
    if (none)
        return false;
    while (r->at < r->end && !is_blank(*r->at) && *r->at != '\n' && *r->at != '#')
        r->at++;
    size_t length = (size_t)(r->at - w->at);
    if (length >= WORD_BYTES || memchr(w->at, '\0', length))
        return true;
    memcpy(w->text, w->at, length);
    w->text[length] = '\0';
    return true;
}

bool tarn_next_line(tarn_reader *r)
{
    while (r->at < r->end && *r->at != '\n')
        r->at++;
    if (r->at == r->end)
        return false;
    r->line = ++r->at;
    r->line_number++;
    return true;
}

bool tarn_word_is(const tarn_word *w, const char *text)
{
    return strcmp(w->text, text) == 0;
}

const char *tarn_word_value(const tarn_word *w, const char *key)
{
    size_t length = strlen(key);
    return strncmp(w->text, key, length) == 0 && w->text[length] == '=' ? w->text + length + 1
                                                                        : NULL;
}

/* ---- Numbers ------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes an integer off the text. */
static bool take_integer(const char **at, int64_t *number)
{
    char *end;
    if (!is_digit(**at) && **at != '-')
        return false;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (end == *at || errno == ERANGE)
        return false;
    *number = value;
    *at = end;
    return true;
}

bool tarn_read_integer(const char *text, int64_t low, int64_t high, int64_t *number)
{
    return text && take_integer(&text, number) && *text == '\0' && *number >= low &&
           *number <= high;
}

bool tarn_read_axes(const char *text, int64_t *lo, int64_t *hi, int *count)
{
    int found = 0;
    if (!text)
        return false;
    do {
        if (found == TARN_MAX_SPATIAL || !take_integer(&text, &lo[found]))
            return false;
        if (hi)
            hi[found] = lo[found];
        if (hi && *text == ':' && (text++, !take_integer(&text, &hi[found])))
            return false;
        found++;
    } while (*text++ == ',');
    if (text[-1] != '\0' || (found > 1 && *count > 1 && found != *count))
        return false;
    for (int a = found; a < TARN_MAX_SPATIAL; a++) {
        lo[a] = lo[0];
        if (hi)
            hi[a] = hi[0];
    }
    *count = found > *count ? found : *count;
    return true;
}

bool tarn_read_shape(const char *text, int *rank, int64_t *shape)
{
    *rank = 0;
    if (strcmp(text, "scalar") == 0)
        return true;
    do {
        if (*rank == TARN_MAX_RANK || !take_integer(&text, &shape[(*rank)++]))
            return false;
    } while (*text++ == 'x');
    return text[-1] == '\0';
}

bool tarn_read_dtype(const char *text, tarn_dtype *dtype)
{
    for (int k = 0; k < TARN_DTYPES; k++)
        if (strcmp(text, tarn_dtype_name((tarn_dtype)k)) == 0) {
            *dtype = (tarn_dtype)k;
            return true;
        }
    return false;
}

/* ---- Elements ------------------------------------------------------------------------------ */

static bool is_unsigned(tarn_dtype dtype)
{
    return dtype == TARN_U8 || dtype == TARN_U16 || dtype == TARN_U32 || dtype == TARN_U64;
}

static void store_bits(uint64_t bits, size_t size, void *to)
{
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    const void *const from[] = {[1] = &one, [2] = &two, [4] = &four, [8] = &bits};
    memcpy(to, from[size], size);
}

static bool read_unsigned(const char *text, unsigned base, size_t size, uint64_t *bits)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t most = UINT64_MAX >> (64 - 8 * size);
    *bits = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        const char *digit = memchr(digits, *text, base);
        uint64_t value = digit ? (uint64_t)(digit - digits) : 0;
        if (!digit || *bits > (most - value) / base)
            return false;
        *bits = base * *bits + value;
    }
    return true;
}

static bool read_signed(const char *text, size_t size, uint64_t *bits)
{
    int64_t value, high = size == 8 ? INT64_MAX : ((int64_t)1 << (8 * size - 1)) - 1;
    if (!tarn_read_integer(text, -high - 1, high, &value))
        return false;
    *bits = (uint64_t)value;
    return true;
}

/* Rounds as the floating-point state says: see set_float_state() for why it is not inlined. */
static __attribute__((noinline)) bool read_float(const char *text, tarn_dtype dtype, uint64_t *bits)
{
    double number;
    if (!tarn_read_decimal(text, &number))
        return false;
    *bits = dtype == TARN_F64   ? bits_of_f64(number)
            : dtype == TARN_F32 ? bits_of_f32(f32_narrow(number))
            : dtype == TARN_F16 ? f16_narrow(number)
                                : bf16_narrow(number);
    uint64_t infinity = dtype == TARN_F64   ? UINT64_C(0x7ff0000000000000)
                        : dtype == TARN_F32 ? 0x7f800000u
                        : dtype == TARN_F16 ? 0x7c00u
                                            : 0x7f80u;
    return (*bits & infinity) != infinity;
}

bool tarn_read_element(const char *text, tarn_dtype dtype, void *to)
{
    size_t size = tarn_dtype_size(dtype);
    uint64_t bits, former = set_float_state();
    bool good = text[0] == '0' && text[1] == 'x' ? read_unsigned(text + 2, 16, size, &bits)
                : is_floating(dtype)             ? read_float(text, dtype, &bits)
                : is_unsigned(dtype)             ? read_unsigned(text, 10, size, &bits)
                                                 : read_signed(text, size, &bits);
    restore_float_state(former);
    if (good)
        store_bits(bits, size, to);
    return good;
}
