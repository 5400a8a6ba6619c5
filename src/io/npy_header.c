#include "array_file.h"
#include "array_write.h"

#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 64 }; /* of the elements, as NumPy has it */

static const char *const descr[TARN_DTYPES] = {"f8", "f4", "f2", "V2", "i1", "u1",
                                               "i2", "u2", "i4", "u4", "i8", "u8"};

static char byte_order(tarn_dtype dtype)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return tarn_dtype_size(dtype) == 1 ? '|' : first ? '<' : '>';
}

size_t tarn_npy_header(const tarn_view *view, bool fortran, bool channels_last, char *header)
{
    char *text = header + 10;
    size_t length =
        (size_t)sprintf(text, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                        byte_order(view->dtype), descr[view->dtype], fortran ? "True" : "False");
    for (int a = 0; a < view->rank; a++)
        length += (size_t)sprintf(text + length, a ? ", %lld" : "%lld", (long long)view->shape[a]);
    length += (size_t)sprintf(text + length, view->rank == 1 ? ",), }" : "), }");
    if (channels_last)
        length += (size_t)sprintf(text + length, " " NPY_CHANNELS_LAST);
    while ((length + 11) % ALIGNMENT) /* 10 bytes before, a newline behind */
        text[length++] = ' ';
    text[length++] = '\n';
    memcpy(header, "\x93NUMPY\1\0", 8);
    header[8] = (char)(length & 255);
    header[9] = (char)(length >> 8);
    return length + 10;
}
