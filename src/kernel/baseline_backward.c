/* The gradients of sliding windows, for what every machine of the architecture has. */
#define ISA_BASELINE
#include "isa_begin.h"
#ifdef PREFIX
#include "backward.inc"
#endif
#include "isa_end.h"
