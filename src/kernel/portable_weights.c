/* Smooth max of small windows, for what every machine has. */
#define ISA_BASELINE
#include "isa_begin.h"
#ifdef PREFIX
#include "weights.inc"
#endif
#include "isa_end.h"
