/* Smooth max of small windows, for x86-64 with AVX-512. */
#define ISA_AVX512
#include "isa_begin.h"
#ifdef PREFIX
#include "weights.inc"
#endif
#include "isa_end.h"
