/* Windows of few taps, for SSE2, or NEON: what every x86-64 and every AArch64 has. */
#define ISA_BASELINE
#include "isa_begin.h"
#ifdef PREFIX
#define KERNELS_OF_A_DTYPE "direct_kernels.inc"
#include "vector_dtypes.inc"
#endif
#include "isa_end.h"
