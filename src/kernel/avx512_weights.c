/* Row operations of smooth max, Lp and ties, for x86-64 with AVX-512. */
#define ISA_AVX512
#include "isa_begin.h"
#ifdef PREFIX
#include "weight_ops.inc"
#include "tie_ops.inc"
#endif
#include "isa_end.h"
