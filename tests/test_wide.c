/* The two words that stand for 128 bits where a compiler has none, against one that has. */
#include "check.h"

#define TARN_TWO_WORDS
#include "wide.h"

static tarn_i128 value_of(tarn_wide a)
{
    return (tarn_i128)a.high * 2 * ((tarn_i128)1 << 63) + a.low;
}

static tarn_wide words_of(tarn_i128 value)
{
    return (tarn_wide){(uint64_t)value, (int64_t)(value >> 64)};
}

/* Numbers of all lengths, those near a power of two more often. */
static tarn_i128 random_number(rng *r, int bits)
{
    int length = (int)rng_range(r, 0, bits - 1);
    tarn_i128 power = (tarn_i128)1 << length;
    tarn_i128 number =
        (((tarn_i128)(rng_next(r) >> 1) << 64) + (tarn_i128)rng_next(r)) & (power - 1);
    number = rng_next(r) % 3 ? power / 2 + number / 2 : power - rng_range(r, 0, 2);
    return rng_next(r) % 2 ? number : -number;
}

static void check_sums(rng *r)
{
    tarn_i128 a = random_number(r, 126), b = random_number(r, 126);
    tarn_wide x = words_of(a), y = words_of(b);
    CHECK(value_of(wide_add(x, y)) == a + b, "sum");
    CHECK(wide_less(x, y) == (a < b) && !wide_less(x, x), "order");
    CHECK(value_of(wide_negated(x)) == -a, "sign");
    CHECK(wide_low(x) == (uint64_t)a, "lower word");
}

static void check_products(rng *r)
{
    int64_t a = (int64_t)random_number(r, 63), b = (int64_t)random_number(r, 63);
    CHECK(value_of(wide_mul(a, b)) == (tarn_i128)a * b, "%lld * %lld", (long long)a, (long long)b);
    CHECK(value_of(wide_of(a)) == a && value_of(wide_of_unsigned((uint64_t)a)) == (uint64_t)a,
          "%lld", (long long)a);
}

static void check_quotients(rng *r)
{
    tarn_i128 a = random_number(r, 127);
    int64_t b = (int64_t)random_number(r, 63), rest;
    b = b < 0 ? -b : b == 0 ? 1 : b;
    tarn_i128 quotient = a / b - (a % b < 0);
    CHECK(value_of(wide_divide(words_of(a), b, &rest)) == quotient && rest == a - quotient * b,
          "a number over %lld", (long long)b);
}

int main(void)
{
    static const int64_t extremes[] = {
        0, 1, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_C(1) << 32};
    rng r = {1};
    for (int k = 0; k < 200000; k++) {
        check_sums(&r);
        check_products(&r);
        check_quotients(&r);
    }
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++)
        for (size_t j = 0; j < sizeof extremes / sizeof *extremes; j++)
            CHECK(value_of(wide_mul(extremes[i], extremes[j])) ==
                      (tarn_i128)extremes[i] * extremes[j],
                  "extremes %d %d", (int)i, (int)j);
    return finish_checks();
}
