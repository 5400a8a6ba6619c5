#include "fuzz.h"

static bool decode(tarn_array *array, tarn_complaint *complaint)
{
    tarn_bytes bytes = {array->file.data, array->file.size, 0};
    return tarn_npy_decode(bytes, array, complaint);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return fuzz_decode(data, size, decode);
}
