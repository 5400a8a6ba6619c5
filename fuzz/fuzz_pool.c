/* Calls of the library from bytes: descriptors and views of every kind, mostly sensible,
 * sometimes out of all range; the specification is the judge. */
#include "fuzz_run.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    fuzz_bytes bytes = {data, size, 0};
    tarn_pool pool = fuzz_take_pool(&bytes);
    tarn_view x = fuzz_take_view(&bytes, &pool);
    fuzz_problem(&pool, &x, &bytes);
    return 0;
}
