/* Row operations in vectors of 16 bytes: SSE2, NEON, or whatever the compiler makes of them. */
#define ISA_BASELINE
#include "isa_begin.h"
#include "row_ops.inc"
#include "isa_end.h"
