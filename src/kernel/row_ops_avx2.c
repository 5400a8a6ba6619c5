/* Row operations for x86-64 with AVX2. */
#define ISA_AVX2
#include "isa_begin.h"
#ifdef PREFIX
#include "row_ops.inc"
#endif
#include "isa_end.h"
