/* Windows of few taps, for x86-64 with AVX2. */
#define ISA_AVX2
#include "isa_begin.h"
#ifdef PREFIX
#define KERNELS_OF_A_DTYPE "direct_kernels.inc"
#include "vector_dtypes.inc"
#endif
#include "isa_end.h"
