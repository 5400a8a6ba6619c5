/* Row operations of smooth max, Lp and ties, for what every machine has. */
#define ISA_BASELINE
#include "isa_begin.h"
#ifdef PREFIX
#include "weight_ops.inc"
#include "tie_ops.inc"
#endif
#include "isa_end.h"
