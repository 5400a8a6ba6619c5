/* Sliding windows, for x86-64 with AVX-512. */
#define ISA_AVX512
#include "isa_begin.h"
#ifdef PREFIX
#define KERNELS_OF_A_DTYPE "sliding_kernels.inc"
#include "vector_dtypes.inc"
#endif
#include "isa_end.h"
