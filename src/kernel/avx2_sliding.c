/* Sliding windows, for x86-64 with AVX2. */
#define ISA_AVX2
#include "isa_begin.h"
#ifdef PREFIX
#include "vector_dtypes.inc"
#endif
#include "isa_end.h"
