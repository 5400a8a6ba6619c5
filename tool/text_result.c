/* Results as text, for eyes and for tools that read lines. */
#include "result.h"
#include "../src/io/convert.h"
#include "../src/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    tarn_output *output;
    tarn_complaint *complaint;
    size_t used;
    char text[4096];
} lines;

static bool flush(lines *l)
{
    bool good = tarn_output_write(l->output, l->text, l->used, l->complaint);
    l->used = 0;
    return good;
}

static bool put(lines *l, const char *text)
{
    size_t length = strlen(text);
    if (length > sizeof l->text - l->used && !flush(l))
        return false;
    if (length > sizeof l->text)
        return tarn_output_write(l->output, text, length, l->complaint);
    memcpy(l->text + l->used, text, length);
    l->used += length;
    return true;
}

static tarn_view one_element(const void *data, tarn_dtype dtype)
{
    const int64_t shape[1] = {1};
    return tarn_view_dense((void *)(uintptr_t)data, dtype, 1, shape);
}

/* The fewest digits that give the element back. */
static void format_real(const tarn_view *element, char *text, size_t room)
{
    double value = 0, read = 0;
    unsigned char again[8];
    tarn_view wide = one_element(&value, TARN_F64);
    tarn_view from = one_element(&read, TARN_F64), back = one_element(again, element->dtype);
    tarn_convert(element, false, &wide);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, room, "%.*g", digits, value);
        read = strtod(text, NULL);
        tarn_convert(&from, false, &back);
        if (memcmp(again, element->data, tarn_dtype_size(element->dtype)) == 0)
            break;
    }
    if (value != value)
        snprintf(text, room, "nan");
    else if (strchr(text, 'e') && fabs(value) >= 1 && fabs(value) < 1e16)
        snprintf(text, room, "%.0f", value); /* 1e+02 is 100 */
}

static void format_element(const tarn_view *element, char *text, size_t room)
{
    uint64_t bits = 0;
    tarn_view wide = one_element(&bits, element->dtype == TARN_U64 ? TARN_U64 : TARN_I64);
    if (is_floating(element->dtype)) {
        format_real(element, text, room);
        return;
    }
    tarn_convert(element, false, &wide);
    if (wide.dtype == TARN_U64)
        snprintf(text, room, "%llu", (unsigned long long)bits);
    else
        snprintf(text, room, "%lld", (long long)(int64_t)bits);
}

/* What follows element `k`: a space in a line, then the end of the line, of the plane. */
static const char *separator(const tarn_view *numbers, int64_t k, int64_t count)
{
    int64_t line = numbers->rank ? numbers->shape[numbers->rank - 1] : 1;
    int64_t plane = numbers->rank > 1 ? line * numbers->shape[numbers->rank - 2] : line;
    if ((k + 1) % line)
        return " ";
    return (k + 1) % plane || k + 1 == count || numbers->rank < 3 ? "\n" : "\n\n";
}

bool tool_text_write(tarn_output *output, const char *name, const tarn_view *numbers,
                     bool channels_last, tarn_complaint *complaint)
{
    lines l = {.output = output, .complaint = complaint};
    size_t size = tarn_dtype_size(numbers->dtype);
    int64_t count = (int64_t)(tarn_view_bytes(numbers) / size);
    char text[21 * TARN_MAX_RANK + 8];
    tool_format_shape(text, sizeof text, numbers->shape, numbers->rank);
    bool good = put(&l, "# ") && (!name || (put(&l, name) && put(&l, " "))) && put(&l, text) &&
                put(&l, " ") && put(&l, tarn_dtype_name(numbers->dtype)) &&
                put(&l, channels_last ? ", channels last\n" : "\n");
    for (int64_t k = 0; k < count && good; k++) {
        tarn_view element =
            one_element((const char *)numbers->data + (size_t)k * size, numbers->dtype);
        format_element(&element, text, sizeof text);
        good = put(&l, text) && put(&l, separator(numbers, k, count));
    }
    return good && flush(&l);
}
