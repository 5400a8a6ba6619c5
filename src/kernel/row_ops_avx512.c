/* Row operations for x86-64 with AVX-512. */
#define ISA_AVX512
#include "isa_begin.h"
#ifdef PREFIX
#include "row_ops.inc"
#endif
#include "isa_end.h"
