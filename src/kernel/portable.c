/* Kernels in plain C, for the instructions that the compiler may use anyway: of f64 and f32. */
#define PREFIX tarn_portable_
#define WITHOUT_OTHERS
#include "all_dtypes.inc"
