/* Sums, products and copies between pools. */
#include "graph_program.h"

#include "../scalar.h"

/* Sums go block by block, so that the wide accumulators stay in the first cache. A block is read
 * from every operand before it is written, so y may be one of them. */
enum { BLOCK = 256 };

#define DEFINE_SUM(name)                                                                           \
    static void sum_##name(const tarn_program *p, const tarn_ref *y, const tarn_ref *x,            \
                           int operands, int64_t count)                                            \
    {                                                                                              \
        name##_s *to = (name##_s *)(void *)program_at(p, y);                                       \
        name##_a sum[BLOCK];                                                                       \
        for (int64_t begin = 0; begin < count; begin += BLOCK) {                                   \
            int64_t n = min_i64(BLOCK, count - begin);                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                sum[i] = name##_zero;                                                              \
            for (int k = 0; k < operands; k++) {                                                   \
                const name##_s *from = (const name##_s *)(void *)program_at(p, &x[k]) + begin;     \
                for (int64_t i = 0; i < n; i++)                                                    \
                    sum[i] = name##_add(sum[i], name##_load(from[i]));                             \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[begin + i] = name##_store(sum[i]);                                              \
        }                                                                                          \
    }

#define DEFINE_SCALE(name)                                                                         \
    static void scale_##name(const char *x, char *y, double factor, int64_t count)                 \
    {                                                                                              \
        const name##_s *from = (const name##_s *)(const void *)x;                                  \
        name##_s *to = (name##_s *)(void *)y;                                                      \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = name##_narrow(factor * name##_widen(from[i]));                                 \
    }

#define FLOATS(F) F(f64) F(f32) F(f16) F(bf16)
#define INTEGERS(F) F(i8) F(u8) F(i16) F(u16) F(i32) F(u32) F(i64) F(u64)
FLOATS(DEFINE_SUM)
INTEGERS(DEFINE_SUM)
FLOATS(DEFINE_SCALE)

#define FLOAT_ROW(name)                                                                            \
    {                                                                                              \
        sizeof(name##_s), sum_##name, scale_##name                                                 \
    }
#define INTEGER_ROW(name)                                                                          \
    {                                                                                              \
        sizeof(name##_s), sum_##name, NULL                                                         \
    }

const tarn_arithmetic *tarn_arithmetic_of(tarn_dtype dtype)
{
    static const tarn_arithmetic rows[TARN_DTYPES] = {
        [TARN_F64] = FLOAT_ROW(f64),   [TARN_F32] = FLOAT_ROW(f32),
        [TARN_F16] = FLOAT_ROW(f16),   [TARN_BF16] = FLOAT_ROW(bf16),
        [TARN_I8] = INTEGER_ROW(i8),   [TARN_U8] = INTEGER_ROW(u8),
        [TARN_I16] = INTEGER_ROW(i16), [TARN_U16] = INTEGER_ROW(u16),
        [TARN_I32] = INTEGER_ROW(i32), [TARN_U32] = INTEGER_ROW(u32),
        [TARN_I64] = INTEGER_ROW(i64), [TARN_U64] = INTEGER_ROW(u64)};
    return &rows[dtype];
}

void tarn_copy_box(const tarn_inset *box, char *large, char *small, bool into)
{
    int64_t at[TARN_MAX_SPATIAL + 1] = {0};
    large += box->offset;
    for (;;) {
        memcpy(into ? large : small, into ? small : large, (size_t)box->run);
        small += box->run;
        int a = box->axes - 1;
        for (; a >= 0 && ++at[a] == box->size[a]; a--) {
            large -= (box->size[a] - 1) * box->stride[a];
            at[a] = 0;
        }
        if (a < 0)
            return;
        large += box->stride[a];
    }
}
