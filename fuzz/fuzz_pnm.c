#include "fuzz.h"

/* Through the door that looks at the first bytes: PNM is what it takes most easily. */
static bool decode(tarn_array *array, tarn_complaint *complaint)
{
    return tarn_array_decode(NULL, FUZZ_MEMORY, array, complaint);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return fuzz_decode(data, size, decode);
}
