/* Smooth max of small windows, for x86-64 with AVX2. */
#define ISA_AVX2
#include "isa_begin.h"
#ifdef PREFIX
#include "weights.inc"
#endif
#include "isa_end.h"
