/* Requests that broke other pooling code, each mapped to the nearest tarn call. The numbers are
 * those of the project's list of bad requests; each row names its CVE or issue. A request that tarn
 * refuses must be refused by every way to ask; one that is legal here must give the right answer.
 * Requests whose tensors would be huge are only asked about, never run. */
#include "fixture.h"

#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define POW2(n) (INT64_C(1) << (n))

/* ---- Problems: descriptor and shape of x ---------------------------------------------------- */

typedef struct {
    const char *name;
    tarn_op op;
    tarn_window window;
    tarn_dtype dtype;
    int rank;
    int64_t shape[6];
    int spatial;
    int64_t kernel[3], stride[3], dilation[3], lo[3], hi[3]; /* adaptive: kernel is `out` */
    int ceil_mode;
    int64_t divisor;
    tarn_status code;
    int axis;
    int64_t out[3]; /* expected where the code is TARN_OK */
} request;

#define ONES                                                                                       \
    {                                                                                              \
        1, 1, 1                                                                                    \
    }
#define NONE                                                                                       \
    {                                                                                              \
        0, 0, 0                                                                                    \
    }
#define SLIDE(op, dtype) TARN_##op, TARN_SLIDING, TARN_##dtype
#define ADAPT(op, dtype) TARN_##op, TARN_ADAPTIVE, TARN_##dtype

static const request requests[] = {
    {"1 CVE-2020-15202 2^31+ work items",
     SLIDE(MAX, U8),
     2,
     {POW2(32) + 1, 4},
     1,
     {2},
     {2},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {2}},
    {"11 CVE-2021-29585 stride 0",
     SLIDE(MAX, F32),
     4,
     {1, 1, 8, 8},
     2,
     {2, 2},
     {0, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"12 CVE-2021-29586 stride_w 0",
     SLIDE(AVG, F32),
     4,
     {1, 1, 8, 8},
     2,
     {2, 2},
     {1, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     1,
     NONE},
    {"14 CVE-2021-37674 [3,0,0,2] with explicit pads",
     SLIDE(MAX, F32),
     4,
     {3, 2, 0, 0},
     2,
     {16, 16},
     {16, 18},
     ONES,
     {14, 15},
     {3, 5},
     0,
     0,
     TARN_BAD_SHAPE,
     0,
     NONE},
    {"15 CVE-2021-37684 divisor 0 counts taps",
     SLIDE(AVG, F32),
     2,
     {4, 4},
     2,
     {2, 2},
     {2, 2},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {2, 2}},
    {"16 CVE-2021-41196 pool_size [2,2,0]",
     SLIDE(MAX, F32),
     5,
     {1, 1, 4, 4, 4},
     3,
     {2, 2, 0},
     {2, 2, 2},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     2,
     NONE},
    {"18 CVE-2022-21725 last stride 0",
     SLIDE(AVG, F32),
     4,
     {1, 1, 4, 4},
     2,
     {1, 1},
     {1, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     1,
     NONE},
    {"22 CVE-2022-35941 ksize 1e20, saturated",
     SLIDE(AVG, F32),
     4,
     {1, 1, 1, 1},
     2,
     {INT64_MAX, 1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     0,
     NONE},
    {"22 CVE-2022-35941 ksize 1e20, wrapped",
     SLIDE(AVG, F32),
     4,
     {1, 1, 1, 1},
     2,
     {7766279631452241920, 1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"23 CVE-2022-35959 shape -536870912 x5",
     SLIDE(AVG, F32),
     5,
     {-536870912, -536870912, -536870912, -536870912, -536870912},
     3,
     {1, 1, 1},
     {1, 1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_SHAPE,
     -1,
     NONE},
    {"24 CVE-2022-35963 shape -1879048192 x4",
     SLIDE(AVG, F32),
     4,
     {-1879048192, -1879048192, -1879048192, -1879048192},
     2,
     {1, 1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_SHAPE,
     -1,
     NONE},
    {"26 CVE-2022-35968 shape -536870912 x4",
     SLIDE(AVG, F32),
     4,
     {-536870912, -536870912, -536870912, -536870912},
     2,
     {1, 1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_SHAPE,
     -1,
     NONE},
    {"28 CVE-2022-35989 2x2 on 1x1",
     SLIDE(MAX, F32),
     4,
     {1, 1, 1, 1},
     2,
     {2, 2},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"30 CVE-2022-41900 out > in is legal",
     ADAPT(MAX, F32),
     2,
     {3, 3},
     2,
     {7, 5},
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {7, 5}},
    {"32 CVE-2023-25669 ksize 0, strides 0",
     SLIDE(AVG, F32),
     4,
     {1, 4, 4, 4},
     2,
     {0, 0},
     {0, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"33 CVE-2023-25801 batch is pooled as well: legal",
     SLIDE(MAX, F32),
     3,
     {4, 6, 2},
     3,
     {2, 3, 1},
     {2, 3, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {2, 2, 2}},
    {"34 tf#46834 ksize 0",
     SLIDE(AVG, F32),
     5,
     {1, 1, 4, 4, 4},
     3,
     {0, 0, 0},
     {1, 1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"35 tf#42205 strides 0",
     SLIDE(MAX, F32),
     3,
     {4, 4, 4},
     3,
     {1, 1, 1},
     {0, 0, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"39 tf#58272 channel stride 16: legal, pooled as an axis",
     SLIDE(MAX, F32),
     3,
     {4, 4, 20},
     3,
     {1, 1, 1},
     {1, 1, 16},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {4, 4, 2}},
    {"42 tf#76722 ksize -1",
     SLIDE(MAX, F32),
     2,
     {4, 4},
     2,
     {-1, -1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"42 tf#76722 ksize sys.maxsize",
     SLIDE(MAX, F32),
     2,
     {4, 4},
     2,
     {1, INT64_MAX},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     1,
     NONE},
    {"50 CVE-2025-2953 stride 0",
     SLIDE(MAX, F32),
     4,
     {2, 64, 32, 32},
     2,
     {3, 3},
     {0, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"52 pytorch#41767 avg stride 0",
     SLIDE(AVG, F32),
     2,
     {4, 4},
     2,
     {2, 2},
     {0, 0},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"53 pytorch#145065 kernel INT64_MAX, stride -1",
     SLIDE(AVG, F32),
     2,
     {0, 1},
     1,
     {INT64_MAX},
     {-1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"54 pytorch#145077 kernel 2^31",
     SLIDE(AVG, F32),
     2,
     {4, 4},
     2,
     {POW2(31), 1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"54 pytorch#145077 stride 2^32: legal",
     SLIDE(AVG, F32),
     2,
     {4, 4},
     2,
     {1, 1},
     {POW2(32), POW2(32) + 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {1, 1}},
    {"54 pytorch#145077 padding 2^31: legal",
     SLIDE(MAX, U8),
     1,
     {4},
     1,
     {1},
     {1},
     ONES,
     {POW2(31)},
     {POW2(31)},
     0,
     0,
     TARN_OK,
     -1,
     {POW2(32) + 4}},
    {"54 pytorch#145077 padding -1",
     SLIDE(AVG, F32),
     2,
     {4, 4},
     2,
     {1, 1},
     {1, 1},
     ONES,
     {0, -1},
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     1,
     NONE},
    {"55 pytorch#4986 kernel 2 on size 1",
     SLIDE(MAX, F32),
     3,
     {1, 1, 1},
     1,
     {2},
     {2},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"57 pytorch#73190 k = s = d = 2147483697",
     SLIDE(MAX, F32),
     3,
     {1, 1, 20},
     1,
     {2147483697},
     {2147483697},
     {2147483697, 1, 1},
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"58 pytorch#136719 k = s = INT64_MAX",
     SLIDE(MAX, F32),
     3,
     {1, 1, 20},
     1,
     {INT64_MAX},
     {INT64_MAX},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     0,
     NONE},
    {"59 pytorch#142454 k=8608480567731124087, p=d=1250999896764",
     SLIDE(MAX, F32),
     3,
     {1, 1, 20},
     1,
     {INT64_C(8608480567731124087)},
     {1},
     {INT64_C(1250999896764), 1, 1},
     {INT64_C(1250999896764)},
     {INT64_C(1250999896764)},
     0,
     0,
     TARN_OVERFLOW,
     0,
     NONE},
    {"60 pytorch#73191 k = 536870912 x3",
     SLIDE(MAX, F32),
     5,
     {1, 1, 4, 4, 4},
     3,
     {536870912, 536870912, 536870912},
     {1, 1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"60 pytorch#73192 dilation 1879048192 x3",
     SLIDE(MAX, F32),
     5,
     {1, 1, 4, 4, 4},
     3,
     {2, 2, 2},
     {1, 1, 1},
     {1879048192, 1879048192, 1879048192},
     NONE,
     NONE,
     0,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
    {"61 pytorch#189664 dilation INT32_MAX, k 1, ceil: legal",
     SLIDE(MAX, F32),
     4,
     {5, 10, 24, 24},
     2,
     {1, 1},
     {1, 1},
     {INT32_MAX, INT32_MAX, 1},
     NONE,
     NONE,
     1,
     0,
     TARN_OK,
     -1,
     {24, 24}},
    {"62 pytorch#122019 dilation (-3,1,1)",
     SLIDE(MAX, I8),
     4,
     {1, 4, 4, 4},
     3,
     {1, 1, 1},
     {1, 1, 1},
     {-3, 1, 1},
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"63 pytorch#94696 a zero hides an overflow",
     SLIDE(AVG, F32),
     6,
     {12, 2, 2, 2, 0, INT64_C(4634247419717959497)},
     1,
     {1},
     {1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     -1,
     NONE},
    {"63 pytorch#94698 zeros hide an overflow",
     SLIDE(MAX, F32),
     6,
     {9, 15, 0, INT64_C(2772747373535906632), 0, 14},
     1,
     {1},
     {1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     -1,
     NONE},
    {"64 pytorch#42582 out 9132760301568586890",
     ADAPT(AVG, F32),
     2,
     {4, 4},
     1,
     {INT64_C(9132760301568586890)},
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     -1,
     NONE},
    {"64 pytorch#50960 out 4799942556533499770",
     ADAPT(MAX, F32),
     2,
     {4, 4},
     1,
     {INT64_C(4799942556533499770)},
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     -1,
     NONE},
    {"64 pytorch#73183 out 1879048192 x3",
     ADAPT(MAX, F32),
     4,
     {2, 4, 4, 4},
     3,
     {1879048192, 1879048192, 1879048192},
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_OVERFLOW,
     2,
     NONE},
    {"64 pytorch#91552 out 125091515651: legal",
     ADAPT(AVG, F32),
     1,
     {4},
     1,
     {INT64_C(125091515651)},
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {INT64_C(125091515651)}},
    {"65 pytorch#42509 output_size ()",
     ADAPT(AVG, F32),
     3,
     {1, 4, 4},
     0,
     NONE,
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_RANK,
     -1,
     NONE},
    {"65 pytorch#116323 kernel_size []",
     SLIDE(MAX, I8),
     3,
     {1, 4, 4},
     0,
     NONE,
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_RANK,
     -1,
     NONE},
    {"43 tf#95761 scalar input",
     SLIDE(MAX, I8),
     0,
     {0},
     2,
     {1, 1},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_RANK,
     -1,
     NONE},
    {"66 pytorch#92777 output (0,0,0)",
     ADAPT(MAX, F32),
     4,
     {1, 4, 4, 4},
     3,
     NONE,
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     0,
     NONE},
    {"67 pytorch#70232 output -1",
     ADAPT(AVG, F32),
     3,
     {1, 4, 4},
     2,
     {2, -1},
     NONE,
     NONE,
     NONE,
     NONE,
     0,
     0,
     TARN_BAD_WINDOW,
     1,
     NONE},
    {"80 pytorch#52822 (70,32,100,100,100) f16",
     SLIDE(MAX, F16),
     5,
     {70, 32, 100, 100, 100},
     3,
     {2, 2, 2},
     {2, 2, 2},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {50, 50, 50}},
    {"80 pytorch#68418 (190,64,64,2933)",
     SLIDE(AVG, F32),
     4,
     {190, 64, 64, 2933},
     2,
     {2, 2},
     {1, 1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {63, 2932}},
    {"80 pytorch#84018 (1024,64,228,228)",
     SLIDE(MAX, F32),
     4,
     {1024, 64, 228, 228},
     2,
     {3, 3},
     {2, 2},
     ONES,
     {1, 1},
     {1, 1},
     0,
     0,
     TARN_OK,
     -1,
     {114, 114}},
    {"80 pytorch PR30771 2^31-1",
     SLIDE(AVG, U8),
     1,
     {POW2(31) - 1},
     1,
     {2},
     {1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {POW2(31) - 2}},
    {"80 torch-xpu-ops#3940 2^31+1",
     SLIDE(AVG, U8),
     1,
     {POW2(31) + 1},
     1,
     {2},
     {1},
     ONES,
     NONE,
     NONE,
     0,
     0,
     TARN_OK,
     -1,
     {POW2(31)}},
    {"84 pytorch#185247 divisor_override -1",
     SLIDE(AVG, F32),
     4,
     {1, 4, 4, 4},
     3,
     {2, 2, 2},
     {1, 1, 1},
     ONES,
     NONE,
     NONE,
     0,
     -1,
     TARN_BAD_VALUE,
     -1,
     NONE},
    {"85 pytorch#77511 AvgPool1d(32, ceil) on 16",
     SLIDE(AVG, I8),
     2,
     {1, 16},
     1,
     {32},
     {32},
     ONES,
     NONE,
     NONE,
     1,
     0,
     TARN_DOES_NOT_FIT,
     0,
     NONE},
};

static tarn_pool pool_of(const request *r)
{
    tarn_pool pool = tarn_max_pool(r->spatial);
    pool.op = r->op;
    pool.window = r->window;
    pool.ceil_mode = r->ceil_mode;
    pool.divisor = r->divisor;
    for (int a = 0; a < 3; a++) {
        pool.kernel[a] = pool.out[a] = r->kernel[a];
        pool.stride[a] = r->stride[a];
        pool.dilation[a] = r->dilation[a];
        pool.pad_lo[a] = r->lo[a];
        pool.pad_hi[a] = r->hi[a];
    }
    return pool;
}

/* Where it is the output that cannot exist, a pass is refused for the output it was given. */
static bool output_cannot_exist(const request *r)
{
    return r->code == TARN_OVERFLOW && r->window == TARN_ADAPTIVE && r->axis < 0;
}

static void check_error(const request *r, const char *way, tarn_status status,
                        const tarn_error *error)
{
    if (output_cannot_exist(r) && (status == TARN_BAD_RANK || status == TARN_BAD_SHAPE))
        return;
    CHECK(status == r->code && error->code == r->code && error->axis == r->axis,
          "%s, %s: %s, axis %d: %s", r->name, way, tarn_status_name(status), error->axis,
          error->message);
}

/* The passes look at the descriptor and x before they look at anything else, so one dummy serves as
 * every other tensor; it must stay untouched. */
static void refuse_in_passes(const request *r, const tarn_pool *pool, const tarn_view *x)
{
    const int64_t one[1] = {1};
    tensor dummy = tensor_dense(x->dtype, 1, one), indices = tensor_dense(TARN_I64, 1, one);
    tarn_error error;
    tarn_view given = *x; /* data, so that nothing but the request is wrong */
    given.data = dummy.memory;
    check_error(r, "forward", tarn_pool_forward(pool, &given, &dummy.view, &error), &error);
    check_error(r, "indices", tarn_pool_indices(pool, &given, NULL, &indices.view, &error), &error);
    check_error(r, "jvp", tarn_pool_jvp(pool, &given, &dummy.view, NULL, &dummy.view, &error),
                &error);
    check_error(r, "vjp", tarn_pool_vjp(pool, &given, &dummy.view, &dummy.view, &error), &error);
    CHECK(is_poison(dummy.memory, dummy.bytes) && is_poison(indices.memory, indices.bytes),
          "%s: written", r->name);
    tensor_free(&dummy);
    tensor_free(&indices);
}

static void check_request(const request *r)
{
    tarn_error error;
    tarn_plan *plan;
    tarn_view y = {.rank = -7}, x = tarn_view_dense(NULL, r->dtype, r->rank, r->shape);
    tarn_pool pool = pool_of(r);
    check_error(r, "output_view", tarn_output_view(&pool, &x, &y, &error), &error);
    check_error(r, "plan", tarn_plan_create(&plan, &pool, &x, NULL, &error), &error);
    CHECK((plan != NULL) == (r->code == TARN_OK), "%s: plan", r->name);
    if (r->code != TARN_OK)
        refuse_in_passes(r, &pool, &x);
    for (int a = 0; r->code == TARN_OK && a < r->spatial; a++)
        CHECK(y.shape[r->rank - r->spatial + a] == r->out[a], "%s: size %lld on axis %d", r->name,
              (long long)y.shape[r->rank - r->spatial + a], a);
    tarn_plan_destroy(plan);
}

/* ---- Gradients and indices whose shape is not that of the output ---------------------------- */

typedef struct {
    const char *name;
    tarn_op op;
    tarn_window window;
    int rank;
    int64_t x[5];
    int spatial;
    int64_t kernel[3], stride[3];
    int other_rank; /* of the gradient or the indices */
    int64_t other[5];
    tarn_status code;
} mismatch;

static const mismatch gradients[] = {
    {"3 CVE-2021-29570 grad [1,4,1,1]",
     TARN_MAX,
     TARN_SLIDING,
     4,
     {1, 1, 1, 3},
     2,
     {1, 1},
     {1, 1},
     4,
     {1, 4, 1, 1},
     TARN_BAD_SHAPE},
    {"5 CVE-2021-29574 grad [0,0,0,0,0]",
     TARN_MAX,
     TARN_SLIDING,
     5,
     {1, 1, 1, 1, 1},
     3,
     {1, 1, 1},
     {1, 1, 1},
     5,
     {0, 0, 0, 0, 0},
     TARN_BAD_SHAPE},
    {"6 CVE-2021-29576 batch 11 against 1",
     TARN_MAX,
     TARN_SLIDING,
     5,
     {11, 1, 1, 1, 1},
     3,
     {1, 1, 1},
     {1, 1, 1},
     5,
     {1, 1, 1, 1, 1},
     TARN_BAD_SHAPE},
    {"7 CVE-2021-29577 grad [3,1,1,1,1]",
     TARN_AVG,
     TARN_SLIDING,
     5,
     {10, 7, 6, 3, 7},
     3,
     {1, 1, 1},
     {1, 1, 1},
     5,
     {3, 1, 1, 1, 1},
     TARN_BAD_SHAPE},
    {"9 CVE-2021-29579 grad [0,0,0,0]",
     TARN_MAX,
     TARN_SLIDING,
     4,
     {1, 1, 1, 1},
     2,
     {1, 1},
     {1, 1},
     4,
     {0, 0, 0, 0},
     TARN_BAD_SHAPE},
    {"31 CVE-2023-25664 grad [16,16,16,16]",
     TARN_AVG,
     TARN_SLIDING,
     4,
     {11, 9, 78, 9},
     2,
     {9, 9},
     {128, 128},
     4,
     {16, 16, 16, 16},
     TARN_BAD_SHAPE},
    {"69 pytorch#145070 grad (1,3,8,3), self (1,48)",
     TARN_AVG,
     TARN_ADAPTIVE,
     2,
     {1, 48},
     2,
     {1, 48},
     {1, 1},
     4,
     {1, 3, 8, 3},
     TARN_BAD_RANK},
    {"70 pytorch#194803 grad (1,2,1,1), self (1,1,1,1)",
     TARN_AVG,
     TARN_ADAPTIVE,
     4,
     {1, 1, 1, 1},
     2,
     {1, 1},
     {1, 1},
     4,
     {1, 2, 1, 1},
     TARN_BAD_SHAPE},
    {"71 pytorch#141099 grad (1,4,4,4) for output (1,4,3,1)",
     TARN_MAX,
     TARN_ADAPTIVE,
     4,
     {1, 4, 9, 9},
     2,
     {3, 1},
     {1, 1},
     4,
     {1, 4, 4, 4},
     TARN_BAD_SHAPE},
    {"73 pytorch#140923 grad (9,7,9,9), self (5,7,9,9)",
     TARN_MAX,
     TARN_SLIDING,
     4,
     {5, 7, 9, 9},
     2,
     {1, 1},
     {1, 1},
     4,
     {9, 7, 9, 9},
     TARN_BAD_SHAPE},
    {"75 pytorch#141102 grad of rank 5",
     TARN_MAX,
     TARN_SLIDING,
     3,
     {2, 4, 4},
     2,
     {1, 1},
     {1, 1},
     5,
     {1, 1, 2, 4, 4},
     TARN_BAD_RANK},
};

static const mismatch index_shapes[] = {
    {"3 CVE-2021-29570 argmax of one element",
     TARN_MAX,
     TARN_SLIDING,
     4,
     {1, 1, 1, 3},
     2,
     {1, 1},
     {1, 1},
     1,
     {1},
     TARN_BAD_RANK},
    {"4 CVE-2021-29573 argmax [0]",
     TARN_MAX,
     TARN_SLIDING,
     4,
     {1, 1, 2, 2},
     2,
     {1, 1},
     {1, 1},
     1,
     {0},
     TARN_BAD_RANK},
    {"72 pytorch#141100 indices (5,4,1,3) for (5,4,5,1,3)",
     TARN_MAX,
     TARN_SLIDING,
     5,
     {5, 4, 5, 1, 3},
     3,
     {1, 1, 1},
     {1, 1, 1},
     4,
     {5, 4, 1, 3},
     TARN_BAD_RANK},
    {"74 pytorch#142459 indices (0,2,1,3,2)",
     TARN_MAX,
     TARN_SLIDING,
     5,
     {1, 2, 1, 3, 2},
     3,
     {1, 1, 1},
     {1, 1, 1},
     5,
     {0, 2, 1, 3, 2},
     TARN_BAD_SHAPE},
    {"76 pytorch#142838 indices with zeros",
     TARN_MAX,
     TARN_SLIDING,
     3,
     {1, 2, 2},
     2,
     {1, 1},
     {1, 1},
     3,
     {1, 0, 2},
     TARN_BAD_SHAPE},
};

static tarn_pool pool_of_mismatch(const mismatch *m)
{
    tarn_pool pool = tarn_max_pool(m->spatial);
    pool.op = m->op;
    pool.window = m->window;
    for (int a = 0; a < m->spatial; a++) {
        pool.kernel[a] = pool.out[a] = m->kernel[a];
        pool.stride[a] = m->stride[a];
    }
    return pool;
}

static void check_gradient(const mismatch *m)
{
    tarn_error error;
    tarn_pool pool = pool_of_mismatch(m);
    tarn_plan *plan;
    tensor x = tensor_dense(TARN_F32, m->rank, m->x), gx = tensor_dense(TARN_F32, m->rank, m->x);
    tensor gy = tensor_dense(TARN_F32, m->other_rank, m->other);
    tarn_status status = tarn_pool_vjp(&pool, &x.view, &gy.view, &gx.view, &error);
    CHECK(status == m->code, "%s: %s: %s", m->name, tarn_status_name(status), error.message);
    status = tarn_pool_jvp(&pool, &x.view, &x.view, NULL, &gy.view, &error);
    CHECK(status == m->code, "%s, jvp: %s", m->name, error.message);
    status = tarn_pool_forward(&pool, &x.view, &gy.view, &error);
    CHECK(status == m->code, "%s, forward: %s", m->name, error.message);
    tarn_options options = tarn_options_default();
    options.layout[TARN_GY] = &gy.view;
    status = tarn_plan_create(&plan, &pool, &x.view, &options, &error);
    CHECK(status == m->code && !plan, "%s, plan: %s", m->name, error.message);
    CHECK(is_poison(gx.memory, gx.bytes) && is_poison(gy.memory, gy.bytes), "%s: written", m->name);
    tensor_free(&x);
    tensor_free(&gx);
    tensor_free(&gy);
}

/* tarn hands out indices and takes them back in unpool: both must have the shape of the output. */
static void check_index_shape(const mismatch *m)
{
    tarn_error error;
    tarn_pool pool = pool_of_mismatch(m);
    tensor x = tensor_dense(TARN_F32, m->rank, m->x), y = tensor_dense(TARN_F32, m->rank, m->x);
    tensor indices = tensor_dense(TARN_I64, m->other_rank, m->other);
    tarn_status status = tarn_pool_indices(&pool, &x.view, NULL, &indices.view, &error);
    CHECK(status == m->code, "%s: %s: %s", m->name, tarn_status_name(status), error.message);
    status = tarn_unpool(&x.view, &indices.view, m->spatial, &y.view, &error);
    CHECK(status == m->code, "%s, unpool: %s: %s", m->name, tarn_status_name(status),
          error.message);
    CHECK(is_poison(y.memory, y.bytes) && is_poison(indices.memory, indices.bytes), "%s: written",
          m->name);
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&indices);
}

/* ---- Indices of the caller: unpool is where they come in ------------------------------------ */

/* x and indices [2,2,2] over planes of 3x3. */
static const struct {
    const char *name;
    int64_t index;
    tarn_status code;
} bad_indices[] = {
    {"36 IvySyn argmax 13 of 9 cells", 13, TARN_BAD_INDEX},
    {"36 argmax 9 of 9 cells", 9, TARN_BAD_INDEX},
    {"37 tf#66764 argmax 1250999896764", INT64_C(1250999896764), TARN_BAD_INDEX},
    {"38 tf#59083 argmax -256", -256, TARN_BAD_INDEX},
    {"38 tf#61653 argmax 256", 256, TARN_BAD_INDEX},
    {"40 tf#94382 argmax 25288767438848", INT64_C(25288767438848), TARN_BAD_INDEX},
    {"40 tf#94382 argmax -1099511627776", -INT64_C(1099511627776), TARN_BAD_INDEX},
    {"40 tf#94382 argmax 4294967295", INT64_C(4294967295), TARN_BAD_INDEX},
    {"40 tf#94382 argmax -1: no winner, legal", -1, TARN_OK},
    {"41 tf#103997 argmax -1e12", -INT64_C(1000000000000), TARN_BAD_INDEX},
    {"45 tf PR#120484, mediapipe PR#6317", 10, TARN_BAD_INDEX},
    {"78 pytorch#88032 index -2", -2, TARN_BAD_INDEX},
    {"78 pytorch#91555 index -24", -24, TARN_BAD_INDEX},
    {"78 pytorch#152913 index 23", 23, TARN_BAD_INDEX},
    {"79 pytorch#197409 index 2^32+3 narrowed to 3", POW2(32) + 3, TARN_BAD_INDEX},
    {"79 index 2^32+3 of the other sign", -POW2(32) + 3, TARN_BAD_INDEX},
    {"36 the last cell is legal", 8, TARN_OK},
};

static void test_bad_indices(void)
{
    const int64_t small[3] = {2, 2, 2}, large[3] = {2, 3, 3};
    for (int c = 0; c < COUNT(bad_indices); c++)
        for (int place = 0; place < 8; place++) {
            tarn_error error;
            tensor x = tensor_dense(TARN_F32, 3, small), y = tensor_dense(TARN_F32, 3, large);
            tensor indices = tensor_dense(TARN_I64, 3, small);
            memset(indices.memory, 0, indices.bytes);
            ((int64_t *)(void *)indices.memory)[place] = bad_indices[c].index;
            tarn_status status = tarn_unpool(&x.view, &indices.view, 2, &y.view, &error);
            CHECK(status == bad_indices[c].code, "%s at %d: %s", bad_indices[c].name, place,
                  error.message);
            CHECK((status == TARN_OK) != is_poison(y.memory, y.bytes), "%s at %d: written",
                  bad_indices[c].name, place);
            tensor_free(&x);
            tensor_free(&y);
            tensor_free(&indices);
        }
}

/* ---- Legal here: the right answer ----------------------------------------------------------- */

static void forward_f32(const tarn_pool *pool, int rank, const int64_t *shape, float *x, float *y,
                        int64_t *indices, const char *name)
{
    tarn_plan *plan;
    tarn_view view = tarn_view_dense(x, TARN_F32, rank, shape);
    tarn_error error;
    CHECK(tarn_plan_create(&plan, pool, &view, NULL, &error) == TARN_OK, "%s: %s", name,
          error.message);
    if (plan && indices)
        CHECK(tarn_forward_indices(plan, x, y, indices, &error) == TARN_OK, "%s: %s", name,
              error.message);
    else if (plan)
        CHECK(tarn_forward(plan, x, y, NULL, &error) == TARN_OK, "%s: %s", name, error.message);
    tarn_plan_destroy(plan);
}

/* 4, 5, 9, 14, 21, 25: an empty batch is an empty answer, not a division by it. */
static void test_empty_batch(void)
{
    const int64_t shape[4] = {0, 3, 4, 4};
    tarn_pool pool = tarn_max_pool2d(2, 2, 2);
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 4, shape), y, indices;
    CHECK(tarn_output_view(&pool, &x, &y, NULL) == TARN_OK && y.shape[0] == 0, "4 CVE-2021-29573");
    indices = y;
    indices.dtype = TARN_I64;
    CHECK(tarn_pool_forward(&pool, &x, &y, NULL) == TARN_OK, "4 CVE-2021-29573 forward");
    CHECK(tarn_pool_indices(&pool, &x, &y, &indices, NULL) == TARN_OK, "4 CVE-2021-29573 indices");
    CHECK(tarn_pool_jvp(&pool, &x, &x, NULL, &y, NULL) == TARN_OK, "5 CVE-2021-29574 jvp");
    CHECK(tarn_pool_vjp(&pool, &x, &y, &x, NULL) == TARN_OK, "9 CVE-2021-29579 vjp");
    CHECK(tarn_unpool(&y, &indices, 2, &x, NULL) == TARN_OK, "4 CVE-2021-29573 unpool");
    CHECK(tarn_global_fold(&x, 2, NULL, NULL, &y, NULL) == TARN_BAD_ARGUMENT, "NULL fold, empty x");
    tarn_pool smooth = tarn_smooth_pool2d(2, 2, 2, 1.0);
    CHECK(tarn_pool_forward(&smooth, &x, &y, NULL) == TARN_OK, "25 CVE-2022-35966 smooth");
}

/* 46, 82: a window of NaN, or of minus infinity, has that value and no sentinel; 81: and an
 * index. */
static void test_nan_and_infinity(void)
{
    const int64_t shape[1] = {4}, kernel[1] = {2};
    tarn_pool pool = tarn_max_pool_nd(1, kernel, NULL, NULL);
    float x[4] = {NAN, NAN, -INFINITY, -INFINITY}, y[2];
    int64_t indices[2] = {-9, -9};
    forward_f32(&pool, 1, shape, x, y, indices, "46 tf#2501");
    CHECK(isnan(y[0]) && isinf(y[1]) && y[1] < 0, "46 tf#2501, 82 pytorch#7645: %g %g",
          (double)y[0], (double)y[1]);
    CHECK(indices[0] == 0 && indices[1] == 2, "81 pytorch PR#1465: %lld %lld",
          (long long)indices[0], (long long)indices[1]);
    pool.op = TARN_MIN;
    x[2] = x[3] = INFINITY;
    forward_f32(&pool, 1, shape, x, y, indices, "46 min");
    CHECK(isnan(y[0]) && isinf(y[1]) && y[1] > 0, "46, 82 min: %g %g", (double)y[0], (double)y[1]);
}

/* 47: three channels, the same NaN in each. */
static void test_nan_in_every_channel(void)
{
    const int64_t shape[3] = {3, 2, 2};
    float x[12] = {1, NAN, 2, 3, 1, NAN, 2, 3, 1, NAN, 2, 3}, y[3];
    for (int layout = 0; layout < 2; layout++) {
        tarn_pool pool = tarn_max_pool2d(2, 2, 2);
        tarn_view view = layout ? tarn_view_channels_last(x, TARN_F32, 3, 2, shape)
                                : tarn_view_dense(x, TARN_F32, 3, shape);
        if (layout) /* NaN in one pixel of every channel */
            for (int k = 0; k < 12; k++)
                x[k] = k / 3 == 1 ? NAN : (float)k;
        tarn_view out;
        tarn_output_view(&pool, &view, &out, NULL);
        out.data = y;
        CHECK(tarn_pool_forward(&pool, &view, &out, NULL) == TARN_OK, "47 tf#125965");
        CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[2]), "47 tf#125965: %g %g %g", (double)y[0],
              (double)y[1], (double)y[2]);
    }
}

/* 48: max is max. */
static void test_max_is_not_min(void)
{
    const int64_t shape[2] = {2, 3};
    float x[6] = {3, -1, 2, 9, 4, -7}, y[1];
    tarn_pool pool = tarn_global_max_pool(2, 0);
    forward_f32(&pool, 2, shape, x, y, NULL, "48 tflite#31271");
    CHECK(y[0] == 9.0f, "48 tflite#31271: %g", (double)y[0]);
}

/* 49: sums of integers that leave the type, and 32 bits. */
static void test_integer_sums(void)
{
    static const struct {
        const char *name;
        tarn_dtype dtype;
        int64_t side;
        uint64_t value;
    } cases[] = {{"49 TVM PR#20298 int16 17x17 of 32767", TARN_I16, 17, 32767},
                 {"49 CMSIS-NN PR#897 int8", TARN_I8, 32, 127},
                 {"49 CMSIS-NN PR#897 uint8", TARN_U8, 32, 255},
                 {"49 int8 -128", TARN_I8, 32, (uint64_t)-128},
                 {"49 uint16", TARN_U16, 300, 65535},
                 {"49 int32", TARN_I32, 9, INT32_MAX},
                 {"49 int64 least", TARN_I64, 7, (uint64_t)1 << 63},
                 {"49 uint64 greatest", TARN_U64, 7, UINT64_MAX}};
    for (int c = 0; c < COUNT(cases); c++) {
        const int64_t shape[2] = {cases[c].side, cases[c].side};
        size_t width = tarn_dtype_size(cases[c].dtype);
        uint64_t got = 0, expected = 0;
        tensor x = tensor_dense(cases[c].dtype, 2, shape);
        for (size_t k = 0; k < x.bytes; k += width) /* little-endian, or one repeated byte */
            memcpy(x.memory + k, &cases[c].value, width);
        memcpy(&expected, x.memory, width);
        tarn_pool pool = tarn_global_avg_pool(2, 1);
        tarn_view y = tarn_view_dense(&got, cases[c].dtype, 0, NULL);
        CHECK(tarn_pool_forward(&pool, &x.view, &y, NULL) == TARN_OK, "%s", cases[c].name);
        CHECK(got == expected, "%s: %llx", cases[c].name, (unsigned long long)got);
        tensor_free(&x);
    }
}

/* 51: one answer, whoever asks: with a plan, without, and with winners. */
static void test_one_answer(void)
{
    const int64_t shape[3] = {2, 9, 9};
    rng r = {51};
    tensor x = tensor_dense(TARN_F32, 3, shape);
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 2, 1);
    tarn_view layout;
    tarn_plan *plan;
    fill(&x.view, &r, random_small);
    tarn_output_view(&pool, &x.view, &layout, NULL);
    tensor a = tensor_like(&layout), b = tensor_like(&layout), c = tensor_like(&layout);
    unsigned char saved[2 * 5 * 5];
    tarn_plan_create(&plan, &pool, &x.view, NULL, NULL);
    tarn_forward(plan, x.memory, a.memory, NULL, NULL);
    tarn_forward(plan, x.memory, b.memory, saved, NULL);
    tarn_pool_forward(&pool, &x.view, &c.view, NULL);
    CHECK(same_elements(&a.view, &b.view) && same_elements(&a.view, &c.view), "51 CVE-2025-46150");
    tarn_plan_destroy(plan);
    tensor_free(&x);
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&c);
}

/* 56: max_pool1d of a permuted tensor, kernel 1: a copy of the permuted values. */
static void test_permuted_input(void)
{
    enum { N = 25, C = 10, L = 4 }; /* memory order [N,C,L], logical order [L,C,N] */
    const int64_t shape[3] = {L, C, N};
    float *x = malloc(sizeof(float) * N * C * L), *y = malloc(sizeof(float) * N * C * L);
    if (!x || !y)
        abort();
    for (int k = 0; k < N * C * L; k++)
        x[k] = (float)k;
    tarn_view view = {
        .data = x, .dtype = TARN_F32, .rank = 3, .shape = {L, C, N}, .strides = {1, L, C * L}};
    tarn_view out = tarn_view_dense(y, TARN_F32, 3, shape);
    tarn_pool pool = tarn_max_pool(1);
    CHECK(tarn_pool_forward(&pool, &view, &out, NULL) == TARN_OK, "56 pytorch#47054");
    CHECK(same_elements(&view, &out), "56 pytorch#47054");
    free(x);
    free(y);
}

/* 61: a dilation without meaning, as the kernel is 1. */
static void test_idle_dilation(void)
{
    const int64_t shape[2] = {3, 3};
    float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9] = {0};
    tarn_pool pool = tarn_max_pool(2);
    pool.dilation[0] = pool.dilation[1] = INT32_MAX;
    pool.ceil_mode = 1;
    forward_f32(&pool, 2, shape, x, y, NULL, "61 pytorch#189664");
    CHECK(memcmp(x, y, sizeof x) == 0, "61 pytorch#189664");
}

/* 68: 5877x3697 to 2855x1: window ends by integers. The axis alone, and its mean. */
static void test_adaptive_ends_are_exact(void)
{
    enum { IN = 5877, OUT = 2855 };
    const int64_t shape[1] = {IN}, out[1] = {OUT};
    double *x = malloc(sizeof(double) * IN), y[OUT];
    if (!x)
        abort();
    for (int k = 0; k < IN; k++)
        x[k] = k;
    tarn_pool pool = tarn_adaptive_avg_pool(1, out);
    tarn_view view = tarn_view_dense(x, TARN_F64, 1, shape);
    tarn_view result = tarn_view_dense(y, TARN_F64, 1, out);
    CHECK(tarn_pool_forward(&pool, &view, &result, NULL) == TARN_OK, "68 pytorch#81409");
    for (int64_t i = 0; i < OUT; i++) {
        int64_t start = i * IN / OUT, end = ((i + 1) * IN + OUT - 1) / OUT;
        CHECK(y[i] == (double)(start + end - 1) / 2.0, "68 pytorch#81409, window %lld",
              (long long)i);
    }
    free(x);
}

/* 83: a last window that hangs over the edge has a mean and no NaN; 85 padded, so that it fits; 86
 * an adaptive mean of bytes. */
static void test_averages_at_the_edge(void)
{
    const int64_t shape[1] = {5}, kernel[1] = {2}, stride[1] = {3}, padding[1] = {1};
    float x[5] = {1, 2, 3, 4, 5}, y[3] = {-1, -1, -1};
    tarn_pool pool = tarn_avg_pool_nd(1, kernel, stride, padding);
    pool.ceil_mode = 1;
    forward_f32(&pool, 1, shape, x, y, NULL,
                "83 pytorch#36977"); /* [_,1] [3,4], then [_] is dropped */
    CHECK(y[0] == 0.5f && y[1] == 3.5f && y[2] == -1, "83 pytorch#36977: %g %g %g", (double)y[0],
          (double)y[1], (double)y[2]);
    pool.pad_lo[0] = 0;
    pool.kernel[0] = 3; /* [1,2,3] [4,5,_]: the padding counts */
    forward_f32(&pool, 1, shape, x, y, NULL, "83 pytorch#36977");
    CHECK(y[0] == 2.0f && y[1] == 3.0f, "83 pytorch#36977: %g %g", (double)y[0], (double)y[1]);
    int8_t bytes[16], mean[1];
    const int64_t length[1] = {16}, one[1] = {1};
    memset(bytes, 7, sizeof bytes);
    tarn_view view = tarn_view_dense(bytes, TARN_I8, 1, length);
    tarn_view out = tarn_view_dense(mean, TARN_I8, 1, one);
    tarn_pool wide = tarn_avg_pool(1);
    wide.kernel[0] = wide.stride[0] = 32;
    wide.pad_lo[0] = wide.pad_hi[0] = 8;
    wide.count_include_pad = 0;
    CHECK(tarn_pool_forward(&wide, &view, &out, NULL) == TARN_OK && mean[0] == 7,
          "85 pytorch#77511");
    tarn_pool adaptive = tarn_adaptive_avg_pool(1, one);
    CHECK(tarn_pool_forward(&adaptive, &view, &out, NULL) == TARN_OK && mean[0] == 7,
          "86 pytorch#194023");
}

/* 65: a list of kernel sizes that is too short or too long cannot be said in C; the count can. */
static void test_counts_of_axes(void)
{
    const int64_t none[1] = {0}, shape[2] = {4, 4};
    tarn_view y, x = tarn_view_dense(NULL, TARN_F32, 2, shape);
    static const int counts[] = {0, -1, 3, 9, INT32_MAX, INT32_MIN};
    for (int c = 0; c < COUNT(counts); c++) {
        tarn_pool pool = tarn_adaptive_avg_pool(counts[c] < 1 ? counts[c] : 0, none);
        pool.spatial = counts[c];
        CHECK(tarn_output_view(&pool, &x, &y, NULL) == TARN_BAD_RANK, "65 pytorch#42509: %d axes",
              counts[c]);
    }
}

/* 15: an average without a real tap and without counted padding is 0 and no division. */
static void test_zero_divisor(void)
{
    const int64_t shape[1] = {1};
    float x[1] = {8}, y[5];
    tarn_pool pool = tarn_avg_pool(1);
    pool.pad_lo[0] = pool.pad_hi[0] = 2;
    pool.count_include_pad = 0;
    forward_f32(&pool, 1, shape, x, y, NULL, "15 CVE-2021-37684");
    for (int k = 0; k < 5; k++)
        CHECK(y[k] == (k == 2 ? 8.0f : 0.0f), "15 CVE-2021-37684: %g", (double)y[k]);
}

int main(void)
{
    for (int k = 0; k < COUNT(requests); k++)
        check_request(&requests[k]);
    for (int k = 0; k < COUNT(gradients); k++)
        check_gradient(&gradients[k]);
    for (int k = 0; k < COUNT(index_shapes); k++)
        check_index_shape(&index_shapes[k]);
    test_bad_indices();
    test_empty_batch();
    test_nan_and_infinity();
    test_nan_in_every_channel();
    test_max_is_not_min();
    test_integer_sums();
    test_one_answer();
    test_permuted_input();
    test_idle_dilation();
    test_adaptive_ends_are_exact();
    test_averages_at_the_edge();
    test_counts_of_axes();
    test_zero_divisor();
    return finish_checks();
}

/* Numbers without a row:
 *   2, 8, 10, 13, 19, 20, 27, 29, 44, 77  fractional pooling (ratios, row and column sequences,
 *       random samples): tarn has none; what they share with tarn, zero and negative sizes and
 *       lists of wrong length, is tested by 11, 23, 65 and 66. 30, 33 and 51 are fractional too,
 *       but the request behind them (out > in, a pooled batch, one answer) has a meaning here.
 *   17  no reproducer is published.
 *   21, 25, 43 (strides = [1])  quantisation ranges and lists of wrong length: C has neither; an
 *       empty batch and a scalar input stand in.
 *   62, 85, 86  are quantized pooling: tarn pools the integers themselves.
 * Advisories that only name convolution, and the two on array sizes, have no request of their own.
 */
