/* Row operations from and to the dtypes: each, on every instruction set there is, equals the
 * scalar types of scalar.h bit for bit, and touches its rows only. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"
#include "kernel/row_ops.h"
#include "kernel/row_types.h"
#include "scalar.h"

/* Elements of a row: all 16-bit patterns; more than two vectors of bytes. */
enum { LONGEST = 1 << 16, USUAL = 150 };

static const tarn_row_ops *ops;
static const char *family;
static guarded from_memory, to_memory, divisor_memory;
static rng random_bits = {1};

static uint64_t element(const void *row, int64_t bytes, int64_t i)
{
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (bytes) {
    case 1:
        memcpy(&b, (const char *)row + i, 1);
        return b;
    case 2:
        memcpy(&h, (const char *)row + 2 * i, 2);
        return h;
    case 4:
        memcpy(&w, (const char *)row + 4 * i, 4);
        return w;
    default:
        memcpy(&d, (const char *)row + 8 * i, 8);
        return d;
    }
}

static void set_element(void *row, int64_t bytes, int64_t i, uint64_t value)
{
    uint8_t b = (uint8_t)value;
    uint16_t h = (uint16_t)value;
    uint32_t w = (uint32_t)value;
    switch (bytes) {
    case 1:
        memcpy((char *)row + i, &b, 1);
        break;
    case 2:
        memcpy((char *)row + 2 * i, &h, 2);
        break;
    case 4:
        memcpy((char *)row + 4 * i, &w, 4);
        break;
    default:
        memcpy((char *)row + 8 * i, &value, 8);
    }
}

static uint64_t cut(uint64_t value, int64_t bytes)
{
    return bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

static int64_t with_sign(uint64_t value, int64_t bytes)
{
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    return (int64_t)((cut(value, bytes) ^ top) - top);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

typedef struct {
    const char *name;
    int64_t bytes;
    uint64_t infinity; /* 0: integers */
} kind;

static const kind kinds[KEYS] = {
    [KEY_8] = {"8", 1, 0},
    [KEY_16] = {"16", 2, 0},
    [KEY_32] = {"32", 4, 0},
    [KEY_64] = {"64", 8, 0},
    [KEY_F32] = {"f32", 4, 0x7f800000},
    [KEY_F64] = {"f64", 8, 0x7ff0000000000000},
    [KEY_F16] = {"f16", 2, 0x7c00},
    [KEY_BF16] = {"bf16", 2, 0x7f80},
    [KEY_ORDER_F32] = {"order f32", 4, 0x7f800000},
    [KEY_ORDER_F64] = {"order f64", 8, 0x7ff0000000000000},
    [KEY_ORDER_F16] = {"order f16", 2, 0x7c00},
    [KEY_ORDER_BF16] = {"order bf16", 2, 0x7f80},
};

static bool element_is_odd(const kind *k, uint64_t x)
{
    uint64_t top = UINT64_C(1) << (8 * k->bytes - 1);
    return k->infinity && (x == top || (x & ~top) > k->infinity);
}

static uint64_t expected_key(int key, uint64_t x, uint64_t flip)
{
    const kind *k = &kinds[key];
    uint64_t top = UINT64_C(1) << (8 * k->bytes - 1), ordered = x & top ? x ^ (top - 1) : x;
    if (key <= KEY_F64)
        return cut(x ^ flip, k->bytes);
    if (key <= KEY_BF16)
        return cut(ordered ^ flip, k->bytes);
    if ((x & ~top & cut(~UINT64_C(0), k->bytes)) > k->infinity)
        return top - 1;
    return cut((x == top ? 0 : ordered) ^ flip, k->bytes);
}

/* Any bits; a NaN or a -0 only where wanted. Of floats, one in four is special. */
static uint64_t random_element(const kind *k, bool may_be_odd)
{
    uint64_t top = UINT64_C(1) << (8 * k->bytes - 1), x;
    do {
        uint64_t special[] = {0,
                              top,
                              k->infinity,
                              k->infinity + 1,
                              rng_next(&random_bits) % 1024,
                              k->infinity - 1,
                              top - 1};
        uint64_t sign = rng_next(&random_bits) & top;
        x = rng_next(&random_bits) % 4 ? rng_next(&random_bits)
                                       : special[rng_next(&random_bits) % 7] ^ sign;
        x = cut(x, k->bytes);
    } while (!may_be_odd && element_is_odd(k, x));
    return x;
}

/* The row in `from`, at either end of the guarded memory. */
static void check_key(int key, const char *from, int64_t n, uint64_t flip)
{
    const kind *k = &kinds[key];
    char *to = guarded_place(&to_memory, (size_t)(n * k->bytes), rng_next(&random_bits) & 1);
    bool odd = false, equal = true;
    bool said = ops->key[key](to, from, flip, n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = element(from, k->bytes, i);
        odd |= element_is_odd(k, x);
        equal &= element(to, k->bytes, i) == expected_key(key, x, flip);
    }
    CHECK(equal, "%s: key of %s, %lld elements", family, k->name, (long long)n);
    CHECK(said == (odd && key < KEY_ORDER_F32), "%s: what key of %s found, %lld elements", family,
          k->name, (long long)n);
    if (ops->is_odd[key])
        CHECK(ops->is_odd[key](from, n) == odd, "%s: is_odd of %s, %lld elements", family, k->name,
              (long long)n);
    CHECK(!ops->is_odd[key] == (key != KEY_F32 && key != KEY_F64), "%s: is_odd of %s", family,
          k->name);
    if (key >= KEY_ORDER_F32)
        return;
    static char keys[LONGEST * 8];
    memcpy(keys, to, (size_t)(n * k->bytes));
    char *placed = guarded_place(&to_memory, (size_t)(n * k->bytes), true);
    ops->unkey[key](placed, keys, flip, n);
    CHECK(!memcmp(placed, from, (size_t)(n * k->bytes)), "%s: unkey of %s, %lld elements", family,
          k->name, (long long)n);
}

static void check_keys(int key)
{
    const kind *k = &kinds[key];
    for (int64_t n = 1; n <= USUAL; n++)
        for (int round = 0; round < 8; round++) {
            char *from = guarded_place(&from_memory, (size_t)(n * k->bytes), round & 1);
            for (int64_t i = 0; i < n; i++)
                set_element(from, k->bytes, i, random_element(k, round >= 6));
            if (round >= 4 && round < 6) /* one odd element */
                set_element(from, k->bytes, rng_range(&random_bits, 0, n - 1),
                            random_element(k, true));
            uint64_t flips[] = {0, UINT64_C(1) << (8 * k->bytes - 1), ~UINT64_C(0),
                                cut(~UINT64_C(0), k->bytes)};
            check_key(key, from, n, flips[round % 4]);
        }
    if (k->bytes != 2)
        return;
    char *all = guarded_place(&from_memory, LONGEST * 2, true), one[2];
    for (int64_t i = 0; i < LONGEST; i++) {
        set_element(all, 2, i, (uint64_t)i);
        set_element(one, 2, 0, (uint64_t)i);
        check_key(key, one, 1, 0xffff);
    }
    check_key(key, all, LONGEST, 0);
    check_key(key, all, LONGEST, 0xffff);
}

/* ---- Integers of other widths ---------------------------------------------------------------- */

/* To the same bits with the sign, or from a code to its number, cut. */
static void check_conversion(void (*convert)(void *, const void *, int64_t), int64_t from_bytes,
                             int64_t to_bytes, bool is_code)
{
    for (int64_t n = 1; n <= USUAL; n++)
        for (int at_end = 0; at_end < 2; at_end++) {
            char *from = guarded_place(&from_memory, (size_t)(n * from_bytes), at_end);
            char *to = guarded_place(&to_memory, (size_t)(n * to_bytes), at_end);
            for (int64_t i = 0; i < n; i++)
                set_element(from, from_bytes, i, rng_next(&random_bits));
            convert(to, from, n);
            bool equal = true;
            for (int64_t i = 0; i < n; i++) {
                uint64_t x = element(from, from_bytes, i);
                uint64_t expected = is_code ? x ^ UINT64_C(1) << (8 * from_bytes - 1)
                                            : (uint64_t)with_sign(x, from_bytes);
                equal &= element(to, to_bytes, i) == cut(expected, to_bytes);
            }
            CHECK(equal, "%s: %s of %lld bytes to %lld, %lld elements", family,
                  is_code ? "codes" : "keys", (long long)from_bytes, (long long)to_bytes,
                  (long long)n);
        }
}

static void check_conversions(void)
{
    static const int64_t saved[] = {1, 4, 8};
    for (int from = 0; from < WIDTHS; from++) {
        for (int to = 0; to < WIDTHS; to++)
            if (to > from)
                check_conversion(ops->widen_key[from][to], 1 << from, 1 << to, false);
            else
                CHECK(!ops->widen_key[from][to], "%s: a key is made no wider", family);
        for (int to = 0; to < 3; to++)
            check_conversion(ops->save_codes[from][to], 1 << from, saved[to], true);
    }
}

/* ---- Terms ----------------------------------------------------------------------------------- */

static const tarn_key kind_of[TARN_DTYPES] = {
    [TARN_F64] = KEY_F64, [TARN_F32] = KEY_F32, [TARN_F16] = KEY_F16, [TARN_BF16] = KEY_BF16,
    [TARN_I8] = KEY_8,    [TARN_U8] = KEY_8,    [TARN_I16] = KEY_16,  [TARN_U16] = KEY_16,
    [TARN_I32] = KEY_32,  [TARN_U32] = KEY_32,  [TARN_I64] = KEY_64,  [TARN_U64] = KEY_64,
};

static bool is_integer(tarn_dtype dtype)
{
    return dtype > TARN_BF16;
}

static bool is_signed(tarn_dtype dtype)
{
    return dtype == TARN_I8 || dtype == TARN_I16 || dtype == TARN_I32 || dtype == TARN_I64;
}

static double expected_term(tarn_dtype dtype, uint64_t x)
{
    switch (dtype) {
    case TARN_F64:
        return f64_of_bits(x);
    case TARN_F32:
        return (double)f32_of_bits((uint32_t)x);
    case TARN_F16:
        return (double)f16_load((uint16_t)x);
    case TARN_BF16:
        return (double)bf16_load((uint16_t)x);
    default:
        return is_signed(dtype) ? (double)with_sign(x, (int64_t)tarn_dtype_size(dtype)) : (double)x;
    }
}

/* A NaN may become another: it ends as the one quiet NaN in any case. */
static bool is_same_number(double a, double b)
{
    return bits_of_f64(a) == bits_of_f64(b) || (a != a && b != b);
}

static void check_term_row(tarn_dtype dtype, bool wide, const char *from, int64_t n)
{
    int64_t bytes = (int64_t)tarn_dtype_size(dtype);
    char *to = guarded_place(&to_memory, (size_t)(n * (wide ? 8 : 4)), rng_next(&random_bits) & 1);
    if (wide)
        ops->terms_f64[dtype]((double *)(void *)to, from, n);
    else
        ops->terms_f32[dtype]((float *)(void *)to, from, n);
    bool equal = true;
    for (int64_t i = 0; i < n; i++) {
        double term = wide ? f64_of_bits(element(to, 8, i))
                           : (double)f32_of_bits((uint32_t)element(to, 4, i));
        equal &= is_same_number(term, expected_term(dtype, element(from, bytes, i)));
    }
    CHECK(equal, "%s: terms of %s in %s, %lld elements", family, tarn_dtype_name(dtype),
          wide ? "f64" : "f32", (long long)n);
}

/* 64-bit integers are small: from -2^51, or 0, to 2^51 - 1. */
static uint64_t random_term(tarn_dtype dtype)
{
    uint64_t x = random_element(&kinds[kind_of[dtype]], true);
    if (dtype == TARN_I64)
        return (uint64_t)((int64_t)x >> 12);
    return dtype == TARN_U64 ? x >> 13 : x;
}

static void check_terms(tarn_dtype dtype, bool wide)
{
    const kind *k = &kinds[kind_of[dtype]];
    for (int64_t n = 1; n <= USUAL; n++)
        for (int at_end = 0; at_end < 2; at_end++) {
            char *from = guarded_place(&from_memory, (size_t)(n * k->bytes), at_end);
            for (int64_t i = 0; i < n; i++)
                set_element(from, k->bytes, i, random_term(dtype));
            check_term_row(dtype, wide, from, n);
        }
    char *all = guarded_place(&from_memory, (size_t)(LONGEST * k->bytes), true);
    for (int64_t i = 0; i < LONGEST; i++)
        set_element(all, k->bytes, i, k->bytes <= 2 ? (uint64_t)i : random_term(dtype));
    check_term_row(dtype, wide, all, LONGEST);
}

/* ---- Means ----------------------------------------------------------------------------------- */

static uint64_t expected_mean(tarn_dtype dtype, double sum, int64_t divisor)
{
    float single = (float)sum + 0.0f;
    switch (dtype) {
    case TARN_F64:
        return bits_of_f64(f64_mean(sum + 0.0, divisor));
    case TARN_F32:
        return bits_of_f32(f32_mean(single, divisor));
    case TARN_F16:
        return f16_mean(single, divisor);
    case TARN_BF16:
        return bf16_mean(single, divisor);
    case TARN_I8:
        return (uint8_t)i8_mean(wide_of((int64_t)sum), divisor);
    case TARN_U8:
        return u8_mean(wide_of((int64_t)sum), divisor);
    case TARN_I16:
        return (uint16_t)i16_mean(wide_of((int64_t)sum), divisor);
    case TARN_U16:
        return u16_mean(wide_of((int64_t)sum), divisor);
    case TARN_I32:
        return (uint32_t)i32_mean(wide_of((int64_t)sum), divisor);
    case TARN_U32:
        return u32_mean(wide_of((int64_t)sum), divisor);
    case TARN_I64:
        return (uint64_t)i64_mean(wide_of((int64_t)sum), divisor);
    default:
        return u64_mean(wide_of((int64_t)sum), divisor);
    }
}

/* Of one to 62 bits, with small ones and powers of two among them more often. */
static int64_t random_divisor(void)
{
    switch (rng_next(&random_bits) % 4) {
    case 0:
        return rng_range(&random_bits, 1, 300);
    case 1:
        return INT64_C(1) << rng_range(&random_bits, 0, 40);
    default:
        return 1 + (int64_t)(rng_next(&random_bits) >> rng_range(&random_bits, 2, 63));
    }
}

/* A sum below the limit next to where the mean of an integer dtype changes; those of unsigned
 * ones are not negative. */
static double random_integer_sum(tarn_dtype dtype, int64_t limit, int64_t divisor)
{
    int bits = dtype >= TARN_I64 ? 52 : 8 * (int)tarn_dtype_size(dtype) + 1;
    int64_t mean = (int64_t)(rng_next(&random_bits) >> (64 - bits)) -
                   (is_signed(dtype) ? INT64_C(1) << (bits - 1) : 1);
    tarn_i128 sum = ((tarn_i128)(2 * mean + 1) * divisor) / 2 + rng_range(&random_bits, -1, 1);
    if (sum <= -limit || sum >= limit || rng_next(&random_bits) % 8 == 0)
        sum = rng_next(&random_bits) % 2 ? limit - 1 - rng_range(&random_bits, 0, 3)
                                         : (int64_t)(rng_next(&random_bits) % (uint64_t)limit);
    if (is_signed(dtype))
        return (double)(int64_t)(rng_next(&random_bits) % 2 ? sum : -sum);
    return (double)(int64_t)(sum < 0 ? -sum : sum);
}

/* Halfway between neighbours of f16 or bf16, or a little off, times the divisor; or any float. */
static double random_float_sum(tarn_dtype dtype, int64_t divisor)
{
    if (dtype == TARN_F64)
        return f64_of_bits(random_element(&kinds[KEY_F64], true));
    if (dtype == TARN_F32 || rng_next(&random_bits) % 4 == 0)
        return (double)f32_of_bits((uint32_t)random_element(&kinds[KEY_F32], true));
    uint32_t half = (uint32_t)(rng_next(&random_bits) & 0xffff);
    uint32_t bits =
        dtype == TARN_F16 ? bits_of_f32(f16_load((uint16_t)half)) | 0x1000 : half << 16 | 0x8000;
    return (double)(f32_of_bits(bits + (uint32_t)rng_range(&random_bits, -1, 1)) * (float)divisor);
}

static int64_t limit_of_sums(tarn_dtype dtype, bool wide)
{
    return INT64_C(1) << (dtype >= TARN_I64 ? 51 : wide ? 52 : 23);
}

static void check_mean_row(tarn_dtype dtype, bool wide, int64_t step, int64_t n)
{
    static int64_t divisors[LONGEST];
    int64_t bytes = (int64_t)tarn_dtype_size(dtype), sum_bytes = wide ? 8 : 4;
    bool at_end = rng_next(&random_bits) & 1;
    char *to = guarded_place(&to_memory, (size_t)(n * bytes), at_end);
    char *sums = guarded_place(&from_memory, (size_t)(n * sum_bytes), at_end);
    char *rounded = guarded_place(&divisor_memory, (size_t)((step ? n : 1) * sum_bytes), at_end);
    static double exact[LONGEST];
    for (int64_t i = 0; i < n; i++) {
        divisors[i] = i == 0 || step ? random_divisor() : divisors[0];
        exact[i] = is_integer(dtype)
                       ? random_integer_sum(dtype, limit_of_sums(dtype, wide), divisors[i])
                       : random_float_sum(dtype, divisors[i]);
        set_element(sums, sum_bytes, i,
                    wide ? bits_of_f64(exact[i]) : bits_of_f32((float)exact[i]));
        if (i == 0 || step)
            set_element(rounded, sum_bytes, i,
                        wide ? bits_of_f64((double)divisors[i]) : bits_of_f32((float)divisors[i]));
    }
    if (wide)
        ops->means_f64[dtype](to, (const double *)(void *)sums, (const double *)(void *)rounded,
                              step, n);
    else
        ops->means_f32[dtype](to, (const float *)(void *)sums, (const float *)(void *)rounded, step,
                              n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t expected = expected_mean(dtype, exact[i], divisors[i]),
                 got = element(to, bytes, i);
        CHECK(got == expected, "%s: mean as %s in %s, %a / %lld = %llx, not %llx", family,
              tarn_dtype_name(dtype), wide ? "f64" : "f32", exact[i], (long long)divisors[i],
              (unsigned long long)got, (unsigned long long)expected);
    }
}

static void check_means(tarn_dtype dtype, bool wide)
{
    for (int64_t n = 1; n <= USUAL; n++)
        for (int round = 0; round < 32; round++)
            check_mean_row(dtype, wide, round & 1, n);
    check_mean_row(dtype, wide, 1, LONGEST);
}

/* Every bound is the last for which no sum reaches 2^23 or 2^52. */
static void check_limits(void)
{
    static const struct {
        tarn_dtype dtype;
        int64_t f32, f64;
    } most[] = {{TARN_I8, 65535, (INT64_C(1) << 45) - 1},
                {TARN_U8, 32896, INT64_C(17661175009296)},
                {TARN_I16, 255, (INT64_C(1) << 37) - 1},
                {TARN_U16, 128, INT64_C(68720525328)},
                {TARN_I32, 0, (INT64_C(1) << 21) - 1},
                {TARN_U32, 0, INT64_C(1) << 20},
                {TARN_I64, 0, 0},
                {TARN_U64, 0, 0}};
    for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
        int64_t n = most[k].f32, wide = most[k].f64;
        const char *name = tarn_dtype_name(most[k].dtype);
        CHECK((n == 0 || means_fit_f32(most[k].dtype, n)) && !means_fit_f32(most[k].dtype, n + 1),
              "%s", name);
        CHECK((wide == 0 || means_fit_f64(most[k].dtype, wide)) &&
                  !means_fit_f64(most[k].dtype, wide + 1),
              "%s", name);
    }
    for (int dtype = TARN_F64; dtype <= TARN_BF16; dtype++)
        CHECK(means_fit_f32((tarn_dtype)dtype, 1) != means_fit_f64((tarn_dtype)dtype, 1),
              "float %d", dtype);
}

static void check_family(const char *name, const tarn_row_ops *table)
{
    family = name;
    ops = table;
    for (int key = 0; key < KEYS; key++)
        check_keys(key);
    check_conversions();
    for (int k = 0; k < TARN_DTYPES; k++) {
        tarn_dtype dtype = (tarn_dtype)k;
        bool narrow = means_fit_f32(dtype, 1), wide = dtype >= TARN_I64 || means_fit_f64(dtype, 1);
        CHECK(!ops->terms_f32[dtype] == !narrow && !ops->means_f32[dtype] == !narrow,
              "%s: %d in f32", name, k);
        CHECK(!ops->terms_f64[dtype] == !wide && !ops->means_f64[dtype] == !wide, "%s: %d in f64",
              name, k);
        if (narrow) {
            check_terms(dtype, false);
            check_means(dtype, false);
        }
        if (wide) {
            check_terms(dtype, true);
            check_means(dtype, true);
        }
    }
}

int main(void)
{
    from_memory = guarded_make(LONGEST * 8);
    to_memory = guarded_make(LONGEST * 8);
    divisor_memory = guarded_make(LONGEST * 8);
    check_limits();
    check_family("portable", &tarn_portable_row_ops);
#if HAVE_AVX2
    if (tarn_isa_available() & TARN_ISA_AVX2)
        check_family("avx2", &tarn_avx2_row_ops);
#endif
#if HAVE_AVX512
    if (tarn_isa_available() & TARN_ISA_AVX512)
        check_family("avx512", &tarn_avx512_row_ops);
#endif
    return finish_checks();
}
