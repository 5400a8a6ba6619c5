/* Means of bytes by multiplication (short_integers.h): every divisor that is taken, and the sums on both sides of
 * each place where the mean changes. In between it cannot: products and roundings are monotonic. */
#include "check.h"

#define ISA_BASELINE
#include "kernel/isa_begin.h"
#ifdef PREFIX
#include "kernel/short_integers.h"

enum { MOST_TAPS = 1 << 12 };

static void check_mean(int64_t n, int64_t sum, int64_t lowest, int64_t highest)
{
    if (sum < lowest * n || sum > highest * n)
        return;
    v_i32 mean = scaled_mean(splat_f32((float)sum), splat_f32(1 / (float)n));
    int64_t expected = rounded_mean_i64(sum, n);
    CHECK((uint8_t)mean[0] == (uint8_t)expected, "%lld / %lld", (long long)sum, (long long)n);
}

static void check_divisor(int64_t n)
{
    for (int64_t mean = INT8_MIN - 1; mean <= UINT8_MAX; mean++) {
        int64_t halfway = floor_div((2 * mean + 1) * n, 2);
        for (int64_t sum = halfway - 1; sum <= halfway + 1; sum++) {
            check_mean(n, sum, INT8_MIN, INT8_MAX);
            check_mean(n, sum, 0, UINT8_MAX);
        }
    }
}

int main(void)
{
    for (int64_t n = 1; n <= MOST_TAPS; n++)
        if (can_be_scaled(n))
            check_divisor(n);
    return finish_checks();
}
#else
int main(void)
{
    CHECK(!HAVE_X86_VECTORS && !HAVE_NEON, "vectors are left out by accident");
    return finish_checks();
}
#endif
