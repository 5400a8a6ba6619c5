/* Global and adaptive pooling, for what every machine has. */
#define ISA_BASELINE
#include "isa_begin.h"
#ifdef PREFIX
#include "whole_dtypes.inc"
#endif
#include "isa_end.h"
