/* Kernels in plain C, for the instructions that the compiler may use anyway. */
#define PREFIX tarn_portable_
#include "all_dtypes.inc"
