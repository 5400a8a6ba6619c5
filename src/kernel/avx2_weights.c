/* Row operations of smooth max, Lp and ties, for x86-64 with AVX2. */
#define ISA_AVX2
#include "isa_begin.h"
#ifdef PREFIX
#include "weight_ops.inc"
#include "tie_ops.inc"
#endif
#include "isa_end.h"
