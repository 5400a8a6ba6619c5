/* Which word was probably meant: "unknown option --padding: did you mean --pad?" */
#ifndef TARN_SUGGEST_H
#define TARN_SUGGEST_H

#include <stddef.h>

/* A spelling, and the word it stands for: itself, or the word of tarn for one of other
 * libraries. */
typedef struct tarn_spelling {
    const char *written, *meant;
} tarn_spelling;

/* The dtypes, and what other libraries call them. */
#define TARN_DTYPE_SPELLINGS                                                                       \
    {"f64", "f64"}, {"f32", "f32"}, {"f16", "f16"}, {"bf16", "bf16"}, {"i16", "i16"},              \
        {"u16", "u16"}, {"i32", "i32"}, {"u32", "u32"}, {"i64", "i64"}, {"u64", "u64"},            \
        {"float64", "f64"}, {"double", "f64"}, {"float32", "f32"}, {"float", "f32"},               \
        {"single", "f32"}, {"float16", "f16"}, {"half", "f16"}, {"bfloat16", "bf16"},              \
        {"int8", "i8"}, {"uint8", "u8"}, {"byte", "u8"}, {"int16", "i16"}, {"uint16", "u16"},      \
        {"int32", "i32"}, {"uint32", "u32"}, {"int64", "i64"},                                     \
    {                                                                                              \
        "uint64", "u64"                                                                            \
    }

/* What the word nearest to `word` stands for; NULL if none of the `count` is near. */
const char *tarn_suggest(const char *word, size_t length, const tarn_spelling *list, int count);

#endif
