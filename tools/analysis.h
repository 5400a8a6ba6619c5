/* For static analysers, which look at one file at a time: what the functions that tell an error
 * return. */
#include "../src/error.h"
#include "../src/io/complaint.h"

#define tarn_fail(error, code, ...) (tarn_fail(error, code, __VA_ARGS__), (tarn_status)(code))
#define tarn_complain(...) (tarn_complain(__VA_ARGS__), false)
#define tarn_complain_at(...) (tarn_complain_at(__VA_ARGS__), false)
#define tarn_complain_errno(...) (tarn_complain_errno(__VA_ARGS__), false)
