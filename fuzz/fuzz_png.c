#include "fuzz.h"

static bool decode(tarn_array *array, tarn_complaint *complaint)
{
    return tarn_png_decode(FUZZ_MEMORY, array, complaint);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return fuzz_decode(data, size, decode);
}
