/* Kernels in plain C, for the instructions that the compiler may use anyway: of all types but f64 and f32. */
#define PREFIX tarn_portable_
#define WITHOUT_F64_F32
#include "all_dtypes.inc"
