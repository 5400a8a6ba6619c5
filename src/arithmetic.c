/* Whether this library was compiled to compute what it says. Macros tell of -ffast-math as a whole
 * (scalar.h), but not of its parts: so a few results are computed here whose bits each part would
 * change, by code of the kind that kernels have. */
#include "dispatch.h"
#include "float_state.h"

#include <stdatomic.h>

enum { N = 32 };

/* Numbers that no compiler knows. */
static float fresh(float value)
{
    volatile float hidden = value;
    return hidden;
}

/* 1, 2^24, -2^24, 1, ...: taken in order, only the first 1 is lost, as 2^24 + 1 is 2^24. In lanes
 * none is. */
static bool keeps_order(void)
{
    float x[N], sum = 0;
    for (int i = 0; i < N; i++)
        x[i] = fresh(i % 4 == 1 ? 0x1p24f : i % 4 == 2 ? -0x1p24f : 1.0f);
    for (int i = 0; i < N; i++)
        sum += x[i];
    float large = fresh(0x1p24f), small = fresh(1.0f);
    return sum == N / 2 - 1 && (large + small) - large == 0;
}

/* Times the rounded reciprocal of 3, half of these are off in the last bit. */
static bool divides(void)
{
    static const int numerators[] = {1, 2, 5, 7, 10, 11, 13, 14};
    static const uint32_t expected[] = {0x3eaaaaab, 0x3f2aaaab, 0x3fd55555, 0x40155555,
                                        0x40555555, 0x406aaaab, 0x408aaaab, 0x40955555};
    float x[8], divisor = fresh(3.0f);
    bool good = true;
    for (int i = 0; i < 8; i++)
        x[i] = fresh((float)numerators[i]);
    for (int i = 0; i < 8; i++)
        x[i] /= divisor;
    for (int i = 0; i < 8; i++)
        good = good && bits_of_f32(x[i]) == expected[i];
    /* one by one: compilers divide once where they are to divide three times by the same number */
    float a = fresh(5.0f) / divisor, b = fresh(7.0f) / divisor, c = fresh(10.0f) / divisor;
    return good && bits_of_f32(a) == expected[2] && bits_of_f32(b) == expected[3] &&
           bits_of_f32(c) == expected[4];
}

static bool keeps_signs(void)
{
    float minus_zero = fresh(-0.0f);
    return bits_of_f32(minus_zero + 0.0f) == 0 && bits_of_f32(fresh(0.0f) - fresh(0.0f)) == 0 &&
           bits_of_f32(minus_zero * 1.0f) == UINT32_C(0x80000000);
}

/* The square of 1 + 2^-12 is halfway between two floats; a fused subtraction would see that. */
static bool rounds_products(void)
{
    float a = fresh(1 + 0x1p-12f), b = fresh(-(1 + 0x1p-11f));
    return a * a + b == 0;
}

/* The least numbers are not zero, also in loops that compilers turn into vectors. */
static bool keeps_subnormals(void)
{
    float x[N], top[4] = {0}, least = f32_of_bits(1);
    for (int i = 0; i < N; i++)
        x[i] = fresh(i % 8 == 3 ? least : 0.0f);
    for (int i = 0; i < N; i += 4)
        for (int k = 0; k < 4; k++)
            top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
    return top[3] == least && top[0] != least && fresh(least) * 0.75f == least;
}

static bool is_exact(void)
{
    uint64_t former = set_float_state();
    float nan = fresh(f32_of_bits(0x7fc00000u));
    bool good = keeps_order() && divides() && keeps_signs() && rounds_products() &&
                keeps_subnormals() && nan != nan;
    restore_float_state(former);
    return good;
}

bool tarn_arithmetic_is_exact(void)
{
    static _Atomic int cached; /* 0: not yet; every thread would compute the same */
    enum { EXACT = 1, OTHERWISE = 2 };
    int known = atomic_load_explicit(&cached, memory_order_relaxed);
    if (known == 0) {
        known = is_exact() ? EXACT : OTHERWISE;
        atomic_store_explicit(&cached, known, memory_order_relaxed);
    }
    return known == EXACT;
}
