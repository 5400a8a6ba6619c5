/* Problem strings: docs/problem-strings.md. What is read, what is written, and what is refused. */
#include "check.h"

#include <limits.h>
#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#ifdef TARN_SHORT_TESTS
enum { ROUND_TRIPS = 20000, FUZZ_ROUNDS = 50000 };
#else
enum { ROUND_TRIPS = 200000, FUZZ_ROUNDS = 1000000 };
#endif

/* ---- Equality of what a string says --------------------------------------------------------- */

static bool same_values(const int64_t *a, const int64_t *b, int count)
{
    return memcmp(a, b, sizeof(int64_t) * (size_t)count) == 0;
}

static bool same_sliding(const tarn_pool *a, const tarn_pool *b)
{
    int n = a->spatial;
    return same_values(a->kernel, b->kernel, n) && same_values(a->stride, b->stride, n) &&
           same_values(a->dilation, b->dilation, n) && same_values(a->pad_lo, b->pad_lo, n) &&
           same_values(a->pad_hi, b->pad_hi, n) && !a->ceil_mode == !b->ceil_mode;
}

static bool same_real(double a, double b)
{
    return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

/* A real number without a fraction is written as an integer. */
static bool same_skip(const tarn_pool *a, const tarn_pool *b)
{
    if (a->skip == TARN_SKIP_NOTHING || b->skip == TARN_SKIP_NOTHING)
        return a->skip == b->skip;
    double numbers[2];
    const tarn_pool *pools[2] = {a, b};
    for (int k = 0; k < 2; k++)
        numbers[k] = pools[k]->skip == TARN_SKIP_NAN       ? (double)NAN
                     : pools[k]->skip == TARN_SKIP_INTEGER ? (double)pools[k]->skip_integer
                     : pools[k]->skip == TARN_SKIP_UNSIGNED
                         ? (double)(uint64_t)pools[k]->skip_integer
                         : pools[k]->skip_real;
    bool integers = a->skip == TARN_SKIP_INTEGER || a->skip == TARN_SKIP_UNSIGNED;
    return a->min_count == b->min_count &&
           (integers ? a->skip == b->skip && a->skip_integer == b->skip_integer
                     : numbers[0] == numbers[1] || (isnan(numbers[0]) && isnan(numbers[1])));
}

/* Members that the operator or the window rule does not use are not compared. */
static bool same_pool(const tarn_pool *a, const tarn_pool *b)
{
    if (a->op != b->op || a->window != b->window || a->spatial != b->spatial)
        return false;
    if (a->window == TARN_SLIDING && !same_sliding(a, b))
        return false;
    if (a->window == TARN_ADAPTIVE && !same_values(a->out, b->out, a->spatial))
        return false;
    if (a->window == TARN_GLOBAL && !a->flat != !b->flat)
        return false;
    bool cut = !same_values(a->whole, (const int64_t[TARN_MAX_SPATIAL]){0}, a->spatial);
    if (!same_values(a->whole, b->whole, a->spatial) ||
        (cut && !(same_values(a->origin, b->origin, a->spatial) &&
                  same_values(a->first, b->first, a->spatial) &&
                  same_values(a->count, b->count, a->spatial))))
        return false;
    if (!same_skip(a, b))
        return false;
    switch (a->op) {
    case TARN_AVG:
        return a->divisor == b->divisor && !a->count_include_pad == !b->count_include_pad;
    case TARN_SMOOTH:
        return same_real(a->beta, b->beta) && !a->count_include_pad == !b->count_include_pad;
    case TARN_LP:
        return same_real(a->power, b->power);
    case TARN_MODE:
        return true;
    default:
        return a->ties == b->ties;
    }
}

static bool same_view(const tarn_view *a, const tarn_view *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && same_values(a->shape, b->shape, a->rank) &&
           same_values(a->strides, b->strides, a->rank);
}

/* ---- Strings and what they mean ------------------------------------------------------------- */

static void check_meaning(const char *text, const tarn_pool *pool, const tarn_view *x)
{
    tarn_error error = {.axis = 99};
    tarn_pool got;
    tarn_view view = {.data = &got};
    tarn_status status = tarn_problem_parse(text, &got, &view, &error);
    CHECK(status == TARN_OK, "\"%s\": %s", text, error.message);
    if (status)
        return;
    CHECK(same_pool(pool, &got) && same_view(x, &view), "\"%s\" means something else", text);
    CHECK(view.data == NULL && error.code == TARN_OK && error.axis == -1, "\"%s\"", text);
    CHECK(tarn_problem_parse(text, &got, &view, NULL) == TARN_OK, "\"%s\" without error", text);
}

static void test_the_example(void)
{
    const int64_t shape[4] = {1, 64, 112, 112};
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 2, 1);
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 4, shape);
    check_meaning("max k3s2p1 f32 1x64x112x112", &pool, &x);
    check_meaning("  max   1x64x112x112 f32 k3p1s2  ", &pool, &x);
    check_meaning("max k3s2p1 d2 f32 1x64x112x112 ties=first", &pool, &x);
    check_meaning("max k3,3s2p1:1,1e1 f32 1x64x112x112", &pool, &x);
    x = tarn_view_channels_last(NULL, TARN_F32, 4, 2, shape);
    check_meaning("max last k3s2p1 f32 1x64x112x112", &pool, &x);
    pool.whole[1] = 300, pool.origin[1] = 50, pool.first[1] = 26, pool.count[1] = 55;
    check_meaning("max last k3s2p1 f32 1x64x112x112 piece=0:0:0:0,300:50:26:55", &pool, &x);
}

static void test_words(void)
{
    const int64_t shape[3] = {9, 8, 7}, line[1] = {30}, kernel[2] = {3, 5}, out[3] = {2, 3, 4};
    tarn_view cube = tarn_view_dense(NULL, TARN_BF16, 3, shape);
    tarn_view row = tarn_view_dense(NULL, TARN_I8, 1, line);
    tarn_pool pool = tarn_avg_pool_nd(2, kernel, NULL, NULL);
    check_meaning("avg k3,5 bf16 9x8x7", &pool, &cube);
    pool.stride[0] = 2;
    pool.stride[1] = 1;
    pool.pad_lo[0] = 1;
    pool.pad_hi[0] = 2;
    pool.pad_hi[1] = 1;
    pool.dilation[0] = pool.dilation[1] = 2;
    pool.ceil_mode = 1;
    pool.count_include_pad = 0;
    pool.divisor = 9;
    check_meaning("avg k3,5s2,1p1:2,0:1e2 bf16 9x8x7 ceil nopad div=9", &pool, &cube);
    pool = tarn_smooth_pool(1, -2.5);
    pool.kernel[0] = pool.stride[0] = 4;
    cube.dtype = TARN_F64;
    check_meaning("smooth beta=-2.5 k4 d1 f64 9x8x7", &pool, &cube);
    pool = tarn_lp_pool(1, 2.5);
    pool.kernel[0] = pool.stride[0] = 4;
    check_meaning("lp p=2.5 k4 d1 f64 9x8x7", &pool, &cube);
    pool = tarn_global_lp_pool(3, 0, 2.0);
    check_meaning("lp global d3 f64 9x8x7", &pool, &cube);
    pool = tarn_adaptive_max_pool(3, out);
    check_meaning("max a2,3,4 f64 9x8x7", &pool, &cube);
    pool = tarn_global_avg_pool(3, 1);
    check_meaning("avg flat d3 f64 9x8x7", &pool, &cube);
    pool = tarn_global_max_pool(1, 0);
    check_meaning("max global i8 30", &pool, &row);
    pool.ties = TARN_TIES_SPLIT;
    check_meaning("max global ties=split i8 30", &pool, &row);
    pool = tarn_min_pool(1);
    pool.ties = TARN_TIES_ALL;
    check_meaning("min k1 ties=all i8 30", &pool, &row);
    pool = tarn_sum_pool(1);
    pool.kernel[0] = pool.stride[0] = 2;
    check_meaning("sum k2 i8 30", &pool, &row);
    check_meaning("avg k2 div=1 i8 30", &pool, &row);
    pool.skip = TARN_SKIP_NAN;
    check_meaning("sum k2 skip=nan i8 30", &pool, &row);
    pool.skip = TARN_SKIP_REAL;
    pool.skip_real = -1.5e3;
    pool.min_count = 0;
    check_meaning("sum k2 skip=-1.5e3 min=0 i8 30", &pool, &row);
    pool.skip_real = (double)INFINITY;
    check_meaning("sum k2 min=0 skip=inf i8 30", &pool, &row);
    pool.skip_real = -(double)INFINITY;
    check_meaning("sum k2 min=0 skip=-inf i8 30", &pool, &row);
    pool.skip_real = -1e20; /* no integer of 64 bits */
    check_meaning("sum k2 min=0 skip=-100000000000000000000 i8 30", &pool, &row);
    pool.skip_real = 1e20;
    check_meaning("sum k2 min=0 skip=100000000000000000000 i8 30", &pool, &row);
    pool.skip_real = -0x1p63; /* which strtoull() would take for a number of 64 bits */
    check_meaning("sum k2 min=0 skip=-9223372036854775809 i8 30", &pool, &row);
    pool = tarn_mode_pool(1);
    pool.skip = TARN_SKIP_INTEGER;
    pool.skip_integer = -7;
    pool.min_count = 3;
    check_meaning("mode k1 skip=-7 min=3 i8 30", &pool, &row);
    pool.skip = TARN_SKIP_UNSIGNED;
    pool.skip_integer = -1;
    check_meaning("mode k1 skip=18446744073709551615 min=3 i8 30", &pool, &row);
}

/* Parsing reads, planning judges: numbers may be negative, wherever they stand. */
static void test_negative_numbers(void)
{
    const int64_t shape[2] = {-3, -4};
    tarn_pool pool = tarn_max_pool2d_padded(-1, -1, -2, -3);
    tarn_view x = tarn_view_dense(NULL, TARN_U8, 2, shape);
    check_meaning("max k-1s-2p-3 u8 -3x-4", &pool, &x);
    const int64_t extreme[2] = {INT64_MAX, 4};
    pool = tarn_max_pool2d_padded(INT64_MIN, INT64_MIN, INT64_MAX, 0);
    x = tarn_view_dense(NULL, TARN_U8, 2, extreme);
    check_meaning("max k-9223372036854775808s9223372036854775807 u8 9223372036854775807x4", &pool,
                  &x);
}

/* ---- Strings that are refused --------------------------------------------------------------- */

static const struct {
    const char *text;
    int column; /* 0: any */
} bad_texts[] = {
    {"", 1},
    {"   ", 4},
    {"maxi k3 f32 8x8", 1},
    {"MAX k3 f32 8x8", 1},
    {"k3 max f32 8x8", 1},
    {"max", 4},
    {"max q3 f32 8x8", 5},
    {"max k f32 8x8", 5},
    {"max k3z f32 8x8", 7},
    {"max k3s f32 8x8", 8},
    {"max k3,x f32 8x8", 8},
    {"max k3p1: f32 8x8", 10},
    {"max k3 f33 8x8", 8},
    {"max k3 f32 8x", 14},
    {"max k3 f32 8xx8", 14},
    {"max k3 f32 8x8y", 15},
    {"max k3 f32", 11},
    {"max f32 8x8", 12},
    {"max k3 8x8", 11},
    {"max k99999999999999999999 f32 8x8", 6},
    {"max k3 f32 8x9223372036854775808", 14},
    {"max k- f32 8x8", 6},
    {"max k3 f32 8x8 ties=last", 21},
    {"max k3 f32 8x8 ties=", 21},
    {"avg k3 f32 8x8 div=", 20},
    {"avg k3 f32 8x8 div=x", 20},
    {"smooth k3 f32 8x8 beta=", 24},
    {"smooth k3 f32 8x8 beta= 4", 24},
    {"smooth k3 f32 8x8 beta=4x", 25},
    {"avg k3 f32 8x8 skip=", 21},
    {"avg k3 f32 8x8 skip=zero", 21},
    {"avg k3 f32 8x8 skip=-nan", 21},
    {"avg k3 f32 8x8 skip=1,2", 21},
    {"mode k3 u8 8x8 skip=99999999999999999999999999999999999999999999999999999999999999999", 21},
    {"avg k3 f32 8x8 min=x", 20},
    {"sums k3 f32 8x8", 1},
    {"lp k3 f32 8x8 p=", 17},
    {"lp k3 f32 8x8 p=2x", 18},
    {"lp k3 f32 8x8 p2", 15},
    {"max k3 f32 8x8 d", 16},
    {"max k3 f32 8x8 d0", 0},
    {"max k3 f32 8x8 d9", 0},
    {"max k3 f32 8x8 dd", 16},
    {"max k1,2,3,4,5,6,7,8,9 f32 8x8", 22},
    {"max k1,2s1,2,3 f32 8x8", 0},
    {"max k1,2p1,2,3 f32 8x8", 0},
    {"max k1,2,3 d2 f32 8x8x8", 0},
    {"max a f32 8x8", 5},
    {"max k2 f33 8x8", 8},
    {"max k2 global f32 8x8", 14},
    {"max globall f32 8x8", 0},
    {"max k3\tf32 8x8", 7},
    {"max k3 f32 8x8\n", 15},
    {"max k3 f32 4x4 5", 0}, /* a second shape is not more axes of the first */
    {"max k3 f32 f64 4x4", 0},
    {"max k3 a2 f32 4x4", 0},
    {"max k1 f32 4 piece=9:0:0:4 piece=9:0:0:4", 0},
    {"max k1 f32 4 piece=9:0:0", 0},
    {"max k1 f32 4 piece=9:0:0:x", 0},
    {"max k1 f32 4 piece=9:0:0:4,9:0:0:4", 0},
    {"max k1 d1 f32 4 "
     "piece=1:0:0:1,1:0:0:1,1:0:0:1,1:0:0:1,1:0:0:1,1:0:0:1,1:0:0:1,1:0:0:1,1:0:0:1",
     0},
};

static void check_refused(const char *text, int column)
{
    tarn_error error = {.axis = 99};
    tarn_pool pool, pool_before;
    tarn_view x, x_before;
    char expected[24];
    memset(&pool, 0x5a, sizeof pool);
    memset(&x, 0x5a, sizeof x);
    memcpy(&pool_before, &pool, sizeof pool);
    memcpy(&x_before, &x, sizeof x);
    tarn_status status = tarn_problem_parse(text, &pool, &x, &error);
    CHECK(status == TARN_BAD_TEXT && error.code == TARN_BAD_TEXT && error.axis == -1, "\"%s\": %s",
          text, tarn_status_name(status));
    if (status == TARN_OK)
        return;
    snprintf(expected, sizeof expected, "column %d: ", column);
    CHECK(strncmp(error.message, expected, column ? strlen(expected) : 7) == 0, "\"%s\": %s", text,
          error.message);
    CHECK(memcmp(&pool, &pool_before, sizeof pool) == 0 && memcmp(&x, &x_before, sizeof x) == 0,
          "\"%s\": something was written", text);
    CHECK(tarn_problem_parse(text, &pool, &x, NULL) == TARN_BAD_TEXT, "\"%s\" without error", text);
}

static void test_refusals(void)
{
    for (int k = 0; k < COUNT(bad_texts); k++)
        check_refused(bad_texts[k].text, bad_texts[k].column);
    char axes[400] = "max k1 u8 1";
    for (int k = 1; k < TARN_MAX_RANK; k++)
        strcat(axes, "x1");
    tarn_pool pool;
    tarn_view x;
    CHECK(tarn_problem_parse(axes, &pool, &x, NULL) == TARN_OK && x.rank == 64, "64 axes");
    strcat(axes, "x1");
    check_refused(axes, 0);
}

static void test_null(void)
{
    tarn_error error;
    tarn_pool pool = tarn_max_pool(2);
    const int64_t shape[2] = {4, 4};
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 2, shape);
    char text[80];
    CHECK(tarn_problem_parse(NULL, &pool, &x, &error) == TARN_BAD_ARGUMENT, "text");
    CHECK(tarn_problem_parse("max", NULL, &x, &error) == TARN_BAD_ARGUMENT, "pool");
    CHECK(tarn_problem_parse("max", &pool, NULL, &error) == TARN_BAD_ARGUMENT, "x");
    CHECK(tarn_problem_parse(NULL, NULL, NULL, NULL) == TARN_BAD_ARGUMENT, "all");
    CHECK(tarn_problem_format(NULL, &x, text, sizeof text) < 0, "pool");
    CHECK(tarn_problem_format(&pool, NULL, text, sizeof text) < 0, "x");
    int length = tarn_problem_format(&pool, &x, text, sizeof text);
    CHECK(length == (int)strlen(text), "%s", text);
    CHECK(tarn_problem_format(&pool, &x, NULL, 0) == length &&
              tarn_problem_format(&pool, &x, NULL, 100) == length,
          "NULL text");
}

/* Whatever the size, the start of the text is written, closed, and nothing behind it. */
static void test_short_buffers(void)
{
    const int64_t shape[4] = {1, 64, 112, 112};
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 2, 1);
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 4, shape);
    char whole[80], text[80];
    int length = tarn_problem_format(&pool, &x, whole, sizeof whole);
    CHECK(strcmp(whole, "max k3s2p1 f32 1x64x112x112") == 0, "\"%s\"", whole);
    for (int size = 0; size <= length + 2; size++) {
        memset(text, '#', sizeof text);
        int kept = size == 0 ? 0 : size - 1 < length ? size - 1 : length;
        CHECK(tarn_problem_format(&pool, &x, text, (size_t)size) == length, "size %d", size);
        CHECK(memcmp(text, whole, (size_t)kept) == 0 && (size == 0 || text[kept] == '\0') &&
                  text[size > length ? length + 1 : size] == '#',
              "size %d", size);
    }
}

/* What cannot be written is refused or at least survives. */
static void test_bad_problems(void)
{
    const int64_t shape[2] = {4, 4};
    static const int numbers[] = {-1, 0, 9, 64, 65, INT_MAX, INT_MIN};
    char text[1000];
    for (int k = 0; k < COUNT(numbers); k++) {
        tarn_pool pool = tarn_max_pool(2);
        tarn_view x = tarn_view_dense(NULL, TARN_F32, 2, shape), odd = x;
        odd.rank = numbers[k];
        if (numbers[k] < 0 || numbers[k] > TARN_MAX_RANK)
            CHECK(tarn_problem_format(&pool, &odd, text, sizeof text) < 0, "rank %d", numbers[k]);
        odd = x;
        odd.dtype = (tarn_dtype)numbers[k];
        (void)tarn_problem_format(&pool, &odd, text, sizeof text);
        pool.spatial = numbers[k];
        (void)tarn_problem_format(&pool, &x, text, sizeof text);
        pool = tarn_max_pool(2);
        pool.ties = (tarn_ties)numbers[k];
        (void)tarn_problem_format(&pool, &x, text, sizeof text);
        pool.window = (tarn_window)numbers[k];
        (void)tarn_problem_format(&pool, &x, text, sizeof text);
        if (numbers[k] != 0) {
            pool.op = (tarn_op)numbers[k];
            CHECK(tarn_problem_format(&pool, &x, text, sizeof text) < 0, "op %d", numbers[k]);
        }
    }
}

/* ---- Round trips ---------------------------------------------------------------------------- */

/* Often small, sometimes negative or extreme. */
static int64_t random_number(rng *r)
{
    switch (rng_range(r, 0, 9)) {
    case 0:
        return (int64_t)rng_next(r);
    case 1:
        return -rng_range(r, 0, 9);
    case 2:
        return INT64_MAX - rng_range(r, 0, 1);
    case 3:
        return INT64_MIN + rng_range(r, 0, 1);
    default:
        return rng_range(r, 0, 4);
    }
}

static double random_real(rng *r)
{
    static const double special[] = {
        0.0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 5e-324, 0.1, 1e300};
    if (rng_range(r, 0, 1))
        return special[rng_range(r, 0, COUNT(special) - 1)];
    uint64_t bits = rng_next(r);
    double value;
    memcpy(&value, &bits, sizeof value);
    return isnan(value) ? 1.0 : value;
}

static tarn_pool random_pool(rng *r)
{
    tarn_pool pool = tarn_max_pool((int)rng_range(r, 1, TARN_MAX_SPATIAL));
    int64_t *const members[] = {pool.kernel, pool.stride, pool.dilation,
                                pool.pad_lo, pool.pad_hi, pool.out};
    pool.op = (tarn_op)rng_range(r, 0, TARN_OPS - 1);
    pool.window = (tarn_window)rng_range(r, 0, TARN_WINDOWS - 1);
    pool.ties = (tarn_ties)rng_range(r, 0, TARN_TIES - 1);
    pool.ceil_mode = (int)rng_range(r, 0, 1);
    pool.count_include_pad = (int)rng_range(r, 0, 1);
    pool.flat = (int)rng_range(r, 0, 1);
    pool.divisor = random_number(r);
    pool.beta = random_real(r);
    pool.power = random_real(r);
    pool.skip = rng_range(r, 0, 1) ? TARN_SKIP_NOTHING : (tarn_skip)rng_range(r, 0, TARN_SKIPS - 1);
    pool.skip_integer = random_number(r);
    if (pool.skip == TARN_SKIP_UNSIGNED)
        pool.skip_integer |= INT64_MIN;
    pool.skip_real = random_real(r);
    pool.min_count = rng_range(r, 0, 1) ? 1 : random_number(r);
    for (int m = 0; m < COUNT(members); m++) {
        int64_t common = random_number(r);
        bool alike = rng_range(r, 0, 1);
        for (int a = 0; a < TARN_MAX_SPATIAL; a++)
            members[m][a] = alike ? common : random_number(r);
    }
    bool piece = rng_range(r, 0, 1);
    for (int a = 0; a < pool.spatial && piece; a++) {
        pool.whole[a] = rng_range(r, 0, 3) ? random_number(r) : 1;
        pool.origin[a] = random_number(r);
        pool.first[a] = random_number(r);
        pool.count[a] = random_number(r);
    }
    return pool;
}

static tarn_view random_view(rng *r, int spatial)
{
    int64_t shape[TARN_MAX_RANK];
    int rank = (int)(rng_range(r, 0, 9) ? rng_range(r, 1, 6) : rng_range(r, 1, TARN_MAX_RANK));
    for (int a = 0; a < rank; a++)
        shape[a] = random_number(r);
    tarn_dtype dtype = (tarn_dtype)rng_range(r, 0, TARN_DTYPES - 1);
    return rng_range(r, 0, 1) ? tarn_view_dense(NULL, dtype, rank, shape)
                              : tarn_view_channels_last(NULL, dtype, rank, spatial, shape);
}

static void check_round_trip(const tarn_pool *pool, const tarn_view *x)
{
    char text[4000], again[4000];
    tarn_error error;
    tarn_pool pool_back;
    tarn_view x_back;
    int length = tarn_problem_format(pool, x, text, sizeof text);
    CHECK(length > 0 && length < (int)sizeof text && length == (int)strlen(text), "%d", length);
    tarn_status status = tarn_problem_parse(text, &pool_back, &x_back, &error);
    CHECK(status == TARN_OK, "\"%s\": %s", text, error.message);
    if (status)
        return;
    CHECK(same_pool(pool, &pool_back) && same_view(x, &x_back), "\"%s\" comes back changed", text);
    tarn_problem_format(&pool_back, &x_back, again, sizeof again);
    CHECK(strcmp(text, again) == 0, "\"%s\" comes back as \"%s\"", text, again);
}

static void test_round_trips(void)
{
    rng r = {20250101};
    for (int round = 0; round < ROUND_TRIPS; round++) {
        tarn_pool pool = random_pool(&r);
        tarn_view x = random_view(&r, pool.spatial);
        check_round_trip(&pool, &x);
    }
}

/* ---- Fuzzing -------------------------------------------------------------------------------- */

/* Nothing but TARN_OK and TARN_BAD_TEXT can come of text, and what is understood can be written. */
static void feed(const char *text)
{
    tarn_error error;
    tarn_pool pool;
    tarn_view x;
    tarn_status status = tarn_problem_parse(text, &pool, &x, &error);
    if (status == TARN_OK)
        check_round_trip(&pool, &x);
    else
        CHECK(status == TARN_BAD_TEXT && strncmp(error.message, "column ", 7) == 0, "\"%s\": %s",
              text, error.message);
}

/* In memory of the exact size, so that a sanitizer sees a read behind the end. */
static void feed_exactly(const char *bytes, size_t length)
{
    char *text = malloc(length + 1);
    if (!text)
        abort();
    memcpy(text, bytes, length);
    text[length] = '\0';
    feed(text);
    free(text);
}

static void fuzz_bytes(rng *r)
{
    char bytes[64];
    size_t length = (size_t)rng_range(r, 0, 63);
    for (size_t k = 0; k < length; k++)
        bytes[k] = (char)rng_range(r, 1, 255);
    feed_exactly(bytes, length);
}

/* Letters of the grammar in any order. */
static void fuzz_pieces(rng *r)
{
    static const char *const pieces[] = {
        "max", "min",    "avg",   "smooth", " ",     "k",
        "s",   "p",      "e",     "a",      "3",     "-",
        "1,2", ":",      ",",     "x",      "f32",   "bf16",
        "u8",  "global", "d2",    "d",      "flat",  "last",
        "0",   "ceil",   "nopad", "div=",   "beta=", "ties=all",
        "8x8", "1e9",    "nan",   "inf",    "0x",    "9223372036854775807",
        "  ",  ".",      "lp",    "p="};
    char text[512] = "";
    size_t length = 0;
    if (rng_range(r, 0, 3))
        length = (size_t)snprintf(text, sizeof text, "%s ", pieces[rng_range(r, 0, 3)]);
    for (int64_t k = rng_range(r, 0, 12); k > 0; k--) {
        const char *piece = pieces[rng_range(r, 0, COUNT(pieces) - 1)]; /* one draw a statement: */
        const char *behind = rng_range(r, 0, 1) ? " " : "";             /* the same everywhere */
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", piece, behind);
    }
    feed_exactly(text, length);
}

/* A good string with some bytes changed, removed or doubled. */
static void fuzz_mutation(rng *r)
{
    char text[200];
    snprintf(text, sizeof text, "%s",
             rng_range(r, 0, 1) ? "avg k3,5s2,1p1:2,0:1e2 bf16 9x8x7 ceil nopad div=9"
                                : "smooth a3,4 d2 f32 1x64x12x11 last beta=4 ties=all");
    for (int64_t changes = rng_range(r, 1, 3); changes > 0; changes--) {
        size_t length = strlen(text), at = (size_t)rng_range(r, 0, (int64_t)length - 1);
        switch (rng_range(r, 0, 3)) {
        case 0:
            text[at] = (char)rng_range(r, 32, 126);
            break;
        case 1:
            memmove(text + at, text + at + 1, length - at);
            break;
        case 2:
            memmove(text + at + 1, text + at, length - at + 1);
            break;
        default:
            text[at] = '\0';
        }
        if (text[0] == '\0')
            break;
    }
    feed_exactly(text, strlen(text));
}

static void test_fuzz(void)
{
    rng r = {424242};
    for (int round = 0; round < FUZZ_ROUNDS; round += 3) {
        fuzz_bytes(&r);
        fuzz_pieces(&r);
        fuzz_mutation(&r);
    }
}

/* `flat` says global, too; with or without that word, and in either order. */
static void test_flat(void)
{
    static const char *const texts[] = {"max flat f32 3x8x8", "max global flat f32 3x8x8",
                                        "max flat f32 3x8x8 global"};
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        tarn_pool pool;
        tarn_view x;
        CHECK(tarn_problem_parse(texts[k], &pool, &x, NULL) == TARN_OK &&
                  pool.window == TARN_GLOBAL && pool.flat == 1 && pool.ties == TARN_TIES_ALL,
              "%s", texts[k]);
    }
}

int main(void)
{
    test_the_example();
    test_words();
    test_negative_numbers();
    test_refusals();
    test_null();
    test_short_buffers();
    test_bad_problems();
    test_round_trips();
    test_fuzz();
    test_flat();
    return finish_checks();
}
