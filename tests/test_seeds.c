/* The definitions tarn grew from, each by an example worked by hand from their text alone.
 * docs/seed-map.md says which example shows which definition. */
#include "fixture.h"

#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { MOST = 64 };

#define LN2 0.69314718055994530942
#define LN3 1.09861228866810969140
#define LN5 1.60943791243410037460

/* ---- One pass of one example ---------------------------------------------------------------- */

static void compare(const char *what, const double *got, const double *wanted, int64_t count,
                    double tolerance)
{
    for (int64_t k = 0; k < count; k++)
        CHECK(fabs(got[k] - wanted[k]) <= tolerance, "%s [%lld]: %.17g, not %.17g", what,
              (long long)k, got[k], wanted[k]);
}

/* Small whole numbers are exact in f64; logarithms are not. `given` is dx or gy. */
static void check_pass(const char *what, tarn_pass pass, const tarn_pool *pool, int rank,
                       const int64_t *shape, const double *x, const double *given,
                       const double *wanted)
{
    double result[MOST];
    tarn_error error = {.message = ""};
    tarn_view vx = tarn_view_dense((void *)x, TARN_F64, rank, shape), vy;
    tarn_status status = tarn_output_view(pool, &vx, &vy, &error);
    CHECK(status == TARN_OK, "%s: %s", what, error.message);
    if (status)
        return;
    tarn_view written = pass == TARN_VJP ? vx : vy, read = pass == TARN_VJP ? vy : vx;
    written.data = result;
    read.data = (void *)given;
    if (count_of(&written) > MOST)
        abort();
    for (int k = 0; k < MOST; k++)
        result[k] = (double)NAN;
    status = pass == TARN_FORWARD ? tarn_pool_forward(pool, &vx, &written, &error)
             : pass == TARN_JVP   ? tarn_pool_jvp(pool, &vx, &read, NULL, &written, &error)
                                  : tarn_pool_vjp(pool, &vx, &read, &written, &error);
    CHECK(status == TARN_OK, "%s: %s", what, error.message);
    compare(what, result, wanted, count_of(&written), pool->op == TARN_SMOOTH ? 1e-13 : 0);
}

/* An image of two channels, first as [2, size...], then each channel as an image of its own:
 * a multi-channel definition is the single-channel one for each channel. */
typedef struct {
    const char *name;
    int spatial;
    int64_t size[3], cells, outs;
    double x[2][16], dx[2][16], gy[2][16]; /* inputs */
    double y[2][16], dy[2][16], gx[2][16]; /* by hand */
} example;

static void stack(const double from[2][16], int64_t count, double *to)
{
    for (int64_t k = 0; k < 2 * count; k++)
        to[k] = from[k / count][k % count];
}

static void check_channels(const tarn_pool *pool, const example *e, tarn_pass pass)
{
    const double(*given)[16] = pass == TARN_VJP ? e->gy : e->dx;
    const double(*wanted)[16] = pass == TARN_VJP ? e->gx : pass == TARN_JVP ? e->dy : e->y;
    double x[MOST], g[MOST], w[MOST];
    int64_t shape[4] = {2, e->size[0], e->size[1], e->size[2]};
    stack(e->x, e->cells, x);
    stack(given, pass == TARN_VJP ? e->outs : e->cells, g);
    stack(wanted, pass == TARN_VJP ? e->cells : e->outs, w);
    check_pass(e->name, pass, pool, e->spatial + 1, shape, x, g, w);
    for (int c = 0; c < 2; c++)
        check_pass(e->name, pass, pool, e->spatial, e->size, e->x[c], given[c], wanted[c]);
}

static void check_example(tarn_pool pool, const example *e)
{
    check_channels(&pool, e, TARN_FORWARD);
    check_channels(&pool, e, TARN_JVP);
    check_channels(&pool, e, TARN_VJP);
    if (pool.op != TARN_AVG)
        return;
    example linear = *e; /* the JVP is the same map, applied to the tangent */
    memcpy(linear.x, e->dx, sizeof linear.x);
    memcpy(linear.y, e->dy, sizeof linear.y);
    check_channels(&pool, &linear, TARN_FORWARD);
}

/* ---- 2D Pooling ------------------------------------------------------------------------------ */

/* out = floor((in + 2 padding - k)/stride) + 1; channels are kept. */
static void test_shapes_2d(void)
{
    const int64_t shape[3] = {6, 7, 9};
    int64_t out[3] = {0};
    CHECK(tarn_pool2d_shape(2, shape + 1, 3, 2, 2, 0, out, NULL) == TARN_OK, "[H,W]");
    CHECK(out[0] == 3 && out[1] == 4, "[H,W]: %d %d", (int)out[0], (int)out[1]);
    CHECK(tarn_pool2d_shape(3, shape, 3, 2, 2, 0, out, NULL) == TARN_OK, "[C,H,W]");
    CHECK(out[0] == 6 && out[1] == 3 && out[2] == 4, "[C,H,W]");
    CHECK(tarn_pool2d_shape(2, shape + 1, 3, 2, 2, 1, out, NULL) == TARN_OK, "[H,W] padded");
    CHECK(out[0] == 4 && out[1] == 5, "[H,W] padded: %d %d", (int)out[0], (int)out[1]);
    CHECK(tarn_pool2d_shape(3, shape, 3, 2, 2, 1, out, NULL) == TARN_OK, "[C,H,W] padded");
    CHECK(out[0] == 6 && out[1] == 4 && out[2] == 5, "[C,H,W] padded");
}

/* One stride for both axes, a kernel of two sizes, no padding. */
static void test_configuration_2d(void)
{
    const tarn_pool pools[] = {tarn_max_pool2d(3, 2, 4), tarn_avg_pool2d(3, 2, 4),
                               tarn_smooth_pool2d(3, 2, 4, 1.5)};
    for (int k = 0; k < COUNT(pools); k++)
        CHECK(pools[k].spatial == 2 && pools[k].kernel[0] == 3 && pools[k].kernel[1] == 2 &&
                  pools[k].stride[0] == 4 && pools[k].stride[1] == 4 && pools[k].pad_lo[0] == 0 &&
                  pools[k].pad_hi[1] == 0,
              "pool %d", k);
    CHECK(pools[0].op == TARN_MAX && pools[1].op == TARN_AVG && pools[2].op == TARN_SMOOTH &&
              pools[2].beta == 1.5,
          "operators");
}

/* Channel 1 has ties: {4,4,4,1} is won by the first 4, {0,6,6,6} by the first 6. */
static void test_max_2d(void)
{
    const example e = {.name = "max 2x2, stride 2",
                       .spatial = 2,
                       .size = {2, 4},
                       .cells = 8,
                       .outs = 2,
                       .x = {{5, 9, 7, 1, 2, 3, 8, 4}, {4, 4, 0, 6, 4, 1, 6, 6}},
                       .dx = {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40, 50, 60, 70, 80}},
                       .gy = {{10, 20}, {3, 4}},
                       .y = {{9, 8}, {4, 6}},
                       .dy = {{2, 7}, {10, 40}},
                       .gx = {{0, 10, 0, 0, 0, 0, 20, 0}, {3, 0, 0, 4, 0, 0, 0, 0}}};
    check_example(tarn_max_pool2d(2, 2, 2), &e);
}

/* {5,9,7} is won by 9, {9,7,9} by its first 9, which is the same cell: gradients add up. */
static void test_winner_of_three(void)
{
    const example e = {.name = "max of 5 9 7",
                       .spatial = 2,
                       .size = {1, 4},
                       .cells = 4,
                       .outs = 2,
                       .x = {{5, 9, 7, 9}, {-5, -9, -7, -9}},
                       .dx = {{1, 2, 3, 4}, {1, 2, 3, 4}},
                       .gy = {{1, 10}, {1, 10}},
                       .y = {{9, 9}, {-5, -7}},
                       .dy = {{2, 2}, {1, 3}},
                       .gx = {{0, 11, 0, 0}, {1, 0, 10, 0}}};
    const int64_t kernel[1] = {3}, stride[1] = {1};
    check_example(tarn_max_pool2d(1, 3, 1), &e);
    example line = e;
    line.spatial = 1;
    line.size[0] = 4;
    check_example(tarn_max_pool_nd(1, kernel, stride, NULL), &line);
}

/* Sums over kH*kW = 4. */
static void test_avg_2d(void)
{
    const example e = {.name = "avg 2x2, stride 2",
                       .spatial = 2,
                       .size = {2, 4},
                       .cells = 8,
                       .outs = 2,
                       .x = {{5, 9, 7, 1, 2, 3, 8, 4}, {4, 4, 0, 6, 4, 1, 6, 6}},
                       .dx = {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40, 50, 60, 70, 80}},
                       .gy = {{4, 8}, {12, -4}},
                       .y = {{4.75, 5}, {3.25, 4.5}},
                       .dy = {{3.5, 5.5}, {35, 55}},
                       .gx = {{1, 1, 2, 2, 1, 1, 2, 2}, {3, 3, -1, -1, 3, 3, -1, -1}}};
    check_example(tarn_avg_pool2d(2, 2, 2), &e);
}

/* Overlapping windows: each gradient is shared evenly, and the shares of a cell add up. */
static void test_avg_overlap(void)
{
    const example e = {.name = "avg 1x2, stride 1",
                       .spatial = 2,
                       .size = {1, 3},
                       .cells = 3,
                       .outs = 2,
                       .x = {{1, 3, 8}, {0, 2, -2}},
                       .dx = {{2, 4, 6}, {8, 0, 4}},
                       .gy = {{2, 4}, {-6, 10}},
                       .y = {{2, 5.5}, {1, 0}},
                       .dy = {{3, 5}, {4, 2}},
                       .gx = {{1, 3, 2}, {-3, 2, 5}}};
    check_example(tarn_avg_pool2d(1, 2, 1), &e);
}

/* beta = 2 and logarithms over 2: exp(beta*x) is 1, 2, 3 or 5. The windows of channel 0 weigh
 * 1 1 1 1 and 2 1 2 1, those of channel 1 weigh 3 1 1 1 and 1 1 1 5. */
static void test_smooth_2d(void)
{
    const double two = LN2 / 2, three = LN3 / 2, five = LN5 / 2;
    const example e = {
        .name = "smooth 2x2, stride 2",
        .spatial = 2,
        .size = {2, 4},
        .cells = 8,
        .outs = 2,
        .x = {{0, 0, two, 0, 0, 0, two, 0}, {three, 0, 0, 0, 0, 0, 0, five}},
        .dx = {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40, 50, 60, 70, 80}},
        .gy = {{4, 6}, {6, 8}},
        .y = {{LN2, (LN2 + LN3) / 2}, {(LN2 + LN3) / 2, LN2 * 1.5}}, /* log 4, 6, 6, 8 over 2 */
        .dy = {{3.5, 16 / 3.0}, {80 / 3.0, 67.5}},
        .gx = {{1, 1, 2, 1, 1, 1, 2, 1}, {3, 1, 1, 1, 1, 1, 1, 5}}};
    check_example(tarn_smooth_pool2d(2, 2, 2, 2.0), &e);
}

/* max <= smooth <= max + log(n)/beta: the greater beta, the nearer the hard maximum. */
static void test_smooth_nears_max(void)
{
    const int64_t shape[2] = {1, 3}, one[2] = {1, 1};
    double x[3] = {9, 9, 9}, last = (double)INFINITY;
    for (double beta = 1; beta <= 1e6; beta *= 10) {
        double y = 0;
        tarn_pool pool = tarn_smooth_pool2d(1, 3, 1, beta);
        tarn_view vx = tarn_view_dense(x, TARN_F64, 2, shape);
        tarn_view vy = tarn_view_dense(&y, TARN_F64, 2, one);
        CHECK(tarn_pool_forward(&pool, &vx, &vy, NULL) == TARN_OK, "beta %g", beta);
        CHECK(y > 9 && y < last && fabs(y - 9 - LN3 / beta) < 1e-14, "beta %g: %.17g", beta, y);
        last = y;
    }
}

/* 5 cells in 3 windows: [0,2) [1,4) [3,5). */
static void test_adaptive_bins(void)
{
    static const int64_t starts[] = {0, 1, 3}, ends[] = {2, 4, 5};
    for (int64_t i = 0; i < 3; i++)
        CHECK(tarn_adaptive_start(i, 5, 3) == starts[i] && tarn_adaptive_end(i, 5, 3) == ends[i],
              "window %d", (int)i);
}

/* Rows as above, columns [0,2) [1,3). Cell (r,c) is 10r + c; in channel 1 it is -(10r + c) - 1, so
 * that a fold starting at 0 would return 0. */
static void test_adaptive_2d(void)
{
    static const double mean[2][6] = {{5.5, 6.5, 20.5, 21.5, 35.5, 36.5},
                                      {-6.5, -7.5, -21.5, -22.5, -36.5, -37.5}};
    static const double greatest[2][6] = {{11, 12, 31, 32, 41, 42}, {-1, -2, -11, -12, -31, -32}};
    const int64_t out[2] = {3, 2};
    example e = {
        .name = "adaptive 5x3 to 3x2", .spatial = 2, .size = {5, 3}, .cells = 15, .outs = 6};
    for (int k = 0; k < 15; k++) {
        e.x[0][k] = 10 * (k / 3) + k % 3;
        e.x[1][k] = -e.x[0][k] - 1;
    }
    tarn_pool avg = tarn_adaptive_avg_pool(2, out), max = tarn_adaptive_max_pool(2, out);
    for (int c = 0; c < 2; c++)
        memcpy(e.y[c], mean[c], sizeof mean[c]);
    check_channels(&avg, &e, TARN_FORWARD);
    for (int c = 0; c < 2; c++)
        memcpy(e.y[c], greatest[c], sizeof greatest[c]);
    check_channels(&max, &e, TARN_FORWARD);
}

/* ---- N-D Pooling ----------------------------------------------------------------------------- */

/* Numbers per axis, outermost first; the same padding on both sides. */
static void test_configuration_nd(void)
{
    const int64_t kernel[3] = {2, 3, 4}, stride[3] = {1, 2, 3}, padding[3] = {1, 0, 2};
    const tarn_pool pools[] = {tarn_max_pool_nd(3, kernel, stride, padding),
                               tarn_avg_pool_nd(3, kernel, stride, padding),
                               tarn_smooth_pool_nd(3, kernel, stride, padding, 0.5)};
    for (int k = 0; k < COUNT(pools); k++)
        CHECK(pools[k].spatial == 3 && memcmp(pools[k].kernel, kernel, sizeof kernel) == 0 &&
                  memcmp(pools[k].stride, stride, sizeof stride) == 0 &&
                  memcmp(pools[k].pad_lo, padding, sizeof padding) == 0 &&
                  memcmp(pools[k].pad_hi, padding, sizeof padding) == 0,
              "pool %d", k);
    CHECK(pools[1].op == TARN_AVG && pools[1].count_include_pad && pools[2].count_include_pad,
          "padding counts");
}

/* [C] ++ [2,2,4], kernel 2 2 2, stride 1 1 2, padding 1 0 0: [C] ++ [3,1,2]. */
static void test_shape_nd(void)
{
    const int64_t kernel[3] = {2, 2, 2}, stride[3] = {1, 1, 2}, padding[3] = {1, 0, 0};
    const int64_t shape[4] = {5, 2, 2, 4}, wanted[4] = {5, 3, 1, 2};
    tarn_pool pool = tarn_max_pool_nd(3, kernel, stride, padding);
    for (int leading = 0; leading < 2; leading++) {
        tarn_view y, x = tarn_view_dense(NULL, TARN_F64, 3 + leading, shape + 1 - leading);
        CHECK(tarn_output_view(&pool, &x, &y, NULL) == TARN_OK && y.rank == 3 + leading, "shape");
        CHECK(memcmp(y.shape, wanted + 1 - leading, sizeof(int64_t) * (size_t)y.rank) == 0,
              "%d leading axes", leading);
    }
}

/* The same geometry for all three operators. The first depth pads, the last depth pads, the middle
 * one reads both slices; windows lie side by side in the row. Channel 1 of max is all -1: a
 * padding of zeros would win, and every window is a tie. */
static tarn_pool three_axes(tarn_op op)
{
    const int64_t kernel[3] = {2, 2, 2}, stride[3] = {1, 1, 2}, padding[3] = {1, 0, 0};
    return op == TARN_MAX   ? tarn_max_pool_nd(3, kernel, stride, padding)
           : op == TARN_AVG ? tarn_avg_pool_nd(3, kernel, stride, padding)
                            : tarn_smooth_pool_nd(3, kernel, stride, padding, 1.0);
}

#define RAMP                                                                                       \
    {                                                                                              \
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16                                      \
    }

static void test_max_nd(void)
{
    const example e = {.name = "max, three axes",
                       .spatial = 3,
                       .size = {2, 2, 4},
                       .cells = 16,
                       .outs = 6,
                       .x = {{5, 9, 7, 1, 2, 3, 8, 4, -1, -2, -3, -4, 6, 0, -1, 10},
                             {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}},
                       .dx = {RAMP, RAMP},
                       .gy = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
                       .y = {{9, 8, 9, 10, 6, 10}, {-1, -1, -1, -1, -1, -1}},
                       .dy = {{2, 7, 2, 16, 13, 16}, {1, 3, 1, 3, 9, 11}},
                       .gx = {{0, 4, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 5, 0, 0, 10},
                              {4, 0, 6, 0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0, 0}}};
    check_example(three_axes(TARN_MAX), &e);
}

/* Every divisor is 8, of which the first and the last depth have only 4 real cells. */
static void test_avg_nd(void)
{
    const example e = {.name = "avg, three axes",
                       .spatial = 3,
                       .size = {2, 2, 4},
                       .cells = 16,
                       .outs = 6,
                       .x = {{5, 9, 7, 1, 2, 3, 8, 4, -1, -2, -3, -4, 6, 0, -1, 10},
                             {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}},
                       .dx = {RAMP, RAMP},
                       .gy = {{8, 16, 24, 32, 40, 48}, {8, 8, 8, 8, 8, 8}},
                       .y = {{19 / 8.0, 20 / 8.0, 22 / 8.0, 22 / 8.0, 3 / 8.0, 2 / 8.0},
                             {-.5, -.5, -1, -1, -.5, -.5}},
                       .dy = {{14 / 8.0, 22 / 8.0, 60 / 8.0, 76 / 8.0, 46 / 8.0, 54 / 8.0},
                              {14 / 8.0, 22 / 8.0, 60 / 8.0, 76 / 8.0, 46 / 8.0, 54 / 8.0}},
                       .gx = {{4, 4, 6, 6, 4, 4, 6, 6, 8, 8, 10, 10, 8, 8, 10, 10},
                              {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}};
    check_example(three_axes(TARN_AVG), &e);
}

/* Zeros weigh 1, padding too: channel 0 is the average of the tangents. In channel 1 the first cell
 * weighs 9 of the 16 of its two windows. */
static void test_smooth_nd(void)
{
    const example e = {.name = "smooth, three axes",
                       .spatial = 3,
                       .size = {2, 2, 4},
                       .cells = 16,
                       .outs = 6,
                       .x = {{0}, {2 * LN3}},
                       .dx = {RAMP, RAMP},
                       .gy = {{8, 16, 24, 32, 40, 48}, {16, 8, 16, 8, 8, 8}},
                       .y = {{3 * LN2, 3 * LN2, 3 * LN2, 3 * LN2, 3 * LN2, 3 * LN2},
                             {4 * LN2, 3 * LN2, 4 * LN2, 3 * LN2, 3 * LN2, 3 * LN2}},
                       .dy = {{14 / 8.0, 22 / 8.0, 60 / 8.0, 76 / 8.0, 46 / 8.0, 54 / 8.0},
                              {22 / 16.0, 22 / 8.0, 68 / 16.0, 76 / 8.0, 46 / 8.0, 54 / 8.0}},
                       .gx = {{4, 4, 6, 6, 4, 4, 6, 6, 8, 8, 10, 10, 8, 8, 10, 10},
                              {18, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}};
    check_example(three_axes(TARN_SMOOTH), &e);
}

/* What a window reads outside the input: a zero that counts, for average and smooth max. */
static void test_lookup_of_zeros(void)
{
    const int64_t shape[1] = {2}, padded[1] = {4}, one[1] = {1};
    const double x[2] = {5, -3}, wanted[4] = {0, 5, -3, 0};
    double y[4] = {-7, -7, -7, -7};
    tarn_pool avg = tarn_avg_pool_nd(1, one, one, one);
    check_pass("lookup, avg", TARN_FORWARD, &avg, 1, shape, x, NULL, wanted);
    tarn_pool smooth = tarn_smooth_pool_nd(1, one, one, one, 3.0);
    check_pass("lookup, smooth", TARN_FORWARD, &smooth, 1, shape, x, NULL, wanted);
    tarn_view vx = tarn_view_dense((void *)x, TARN_F64, 1, shape);
    tarn_view vy = tarn_view_dense(y, TARN_F64, 1, padded);
    CHECK(tarn_pad(&vx, 1, one, one, &vy, NULL) == TARN_OK, "pad");
    compare("pad", y, wanted, 4, 0);
}

/* ... and nothing at all, for max: index -1 is "none". */
static void test_lookup_of_none(void)
{
    const int64_t shape[1] = {2}, padded[1] = {4}, one[1] = {1};
    static const int64_t wanted[4] = {-1, 0, 1, -1};
    double x[2] = {-5, -3}, y[4] = {-7, -7, -7, -7};
    int64_t index[4] = {-7, -7, -7, -7};
    tarn_pool pool = tarn_max_pool_nd(1, one, one, one);
    tarn_view vx = tarn_view_dense(x, TARN_F64, 1, shape);
    tarn_view vy = tarn_view_dense(y, TARN_F64, 1, padded);
    tarn_view vi = tarn_view_dense(index, TARN_I64, 1, padded);
    CHECK(tarn_pool_indices(&pool, &vx, &vy, &vi, NULL) == TARN_OK, "indices");
    CHECK(memcmp(index, wanted, sizeof index) == 0, "indices");
    CHECK(y[0] == 0 && y[1] == -5 && y[2] == -3 && y[3] == 0, "values");
}

/* One window and nothing else: the kernel is the input. */
static void test_one_window(void)
{
    static const double none[3] = {5, 9, 7}, ties[3] = {9, 5, 9}, logs[3] = {LN2, 0, LN3};
    static const double dx[3] = {1, 2, 3};
    const int64_t shape[2] = {1, 3};
    tarn_pool max = tarn_max_pool_nd(2, shape, NULL, NULL);
    tarn_pool smooth = tarn_smooth_pool_nd(2, shape, NULL, NULL, 1.0);
    check_pass("max of 5 9 7", TARN_FORWARD, &max, 2, shape, none, NULL, (double[]){9});
    check_pass("max of 5 9 7, jvp", TARN_JVP, &max, 2, shape, none, dx, (double[]){2});
    check_pass("max of 9 5 9, jvp", TARN_JVP, &max, 2, shape, ties, dx, (double[]){1});
    check_pass("log 6", TARN_FORWARD, &smooth, 2, shape, logs, NULL, (double[]){LN2 + LN3});
    check_pass("smooth, jvp", TARN_JVP, &smooth, 2, shape, logs, dx, (double[]){13 / 6.0});
}

/* ---- Padded 2D Pooling ----------------------------------------------------------------------- */

/* 3x3 cells, kernel 3x3, stride 2, padding 1: each of the four windows has 2x2 real cells. All are
 * negative: padding must not win. Channel 1 is one great tie. */
static void test_max_padded(void)
{
    const example e = {
        .name = "max 3x3, stride 2, padding 1",
        .spatial = 2,
        .size = {3, 3},
        .cells = 9,
        .outs = 4,
        .x = {{-5, -9, -7, -1, -6, -2, -8, -3, -4}, {-1, -1, -1, -1, -1, -1, -1, -1, -1}},
        .dx = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 20, 30, 40, 50, 60, 70, 80, 90}},
        .gy = {{1, 2, 3, 4}, {1, 2, 3, 4}},
        .y = {{-1, -2, -1, -2}, {-1, -1, -1, -1}},
        .dy = {{4, 6, 4, 6}, {10, 20, 40, 50}},
        .gx = {{0, 0, 0, 4, 0, 6, 0, 0, 0}, {1, 2, 0, 3, 4, 0, 0, 0, 0}}};
    check_example(tarn_max_pool2d_padded(3, 3, 2, 1), &e);
}

/* 2x2 cells, kernel 2x2, stride 2, padding 2: eight of the nine windows have no real cell; their
 * value and tangent are 0 and their gradient goes nowhere. */
static void test_max_without_real_cells(void)
{
    const example e = {
        .name = "max 2x2, stride 2, padding 2",
        .spatial = 2,
        .size = {2, 2},
        .cells = 4,
        .outs = 9,
        .x = {{-5, -9, -7, -8}, {4, 4, 4, 4}},
        .dx = {{1, 2, 3, 4}, {5, 6, 7, 8}},
        .gy = {{100, 200, 300, 400, 11, 600, 700, 800, 900}, {9, 9, 9, 9, 12, 9, 9, 9, 9}},
        .y = {{0, 0, 0, 0, -5, 0, 0, 0, 0}, {0, 0, 0, 0, 4, 0, 0, 0, 0}},
        .dy = {{0, 0, 0, 0, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 5, 0, 0, 0, 0}},
        .gx = {{11, 0, 0, 0}, {12, 0, 0, 0}}};
    check_example(tarn_max_pool2d_padded(2, 2, 2, 2), &e);
}

/* The geometry of test_max_padded(); the divisor is 9 everywhere. */
static void test_avg_padded(void)
{
    const example e = {.name = "avg 3x3, stride 2, padding 1",
                       .spatial = 2,
                       .size = {3, 3},
                       .cells = 9,
                       .outs = 4,
                       .x = {{9, 18, 27, 36, 45, 54, 63, 72, 81}, {9, 9, 9, 9, 9, 9, 9, 9, 9}},
                       .dx = {{9, 0, 0, 0, 0, 0, 0, 0, 18}, {0, 0, 0, 0, 27, 0, 0, 0, 0}},
                       .gy = {{9, 18, 27, 36}, {9, 0, 0, 0}},
                       .y = {{12, 16, 24, 28}, {4, 4, 4, 4}},
                       .dy = {{1, 0, 0, 2}, {3, 3, 3, 3}},
                       .gx = {{1, 3, 2, 4, 10, 6, 3, 7, 4}, {1, 1, 0, 1, 1, 0, 0, 0, 0}}};
    check_example(tarn_avg_pool2d_padded(3, 3, 2, 1), &e);
}

/* [4,4] to [2,2], and [2,4,4] to [2,2,2]. */
static void test_unpad(void)
{
    static const double wanted[8] = {5, 6, 9, 10, 21, 22, 25, 26};
    const int64_t large[3] = {2, 4, 4}, small[3] = {2, 2, 2};
    double x[32], y[8];
    for (int k = 0; k < 32; k++)
        x[k] = k;
    for (int rank = 2; rank <= 3; rank++) {
        tarn_view vx = tarn_view_dense(x, TARN_F64, rank, large + 3 - rank);
        tarn_view vy = tarn_view_dense(y, TARN_F64, rank, small + 3 - rank);
        CHECK(tarn_unpad2d(&vx, 1, &vy, NULL) == TARN_OK, "rank %d", rank);
        compare("unpad", y, wanted, rank == 2 ? 4 : 8, 0);
    }
}

/* The backward pass of the padded average is that of the average on the padded image, unpadded:
 * bit by bit, with quotients that are rounded. */
static void test_backprop_then_unpad(void)
{
    const int64_t shape[3] = {2, 4, 5}, padded[3] = {2, 6, 7};
    tarn_pool with = tarn_avg_pool2d_padded(3, 2, 2, 1), without = tarn_avg_pool2d(3, 2, 2);
    rng r = {3};
    for (int rank = 2; rank <= 3; rank++) {
        tarn_view layout;
        tensor x = tensor_dense(TARN_F32, rank, shape + 3 - rank);
        tensor px = tensor_dense(TARN_F32, rank, padded + 3 - rank);
        tensor direct = tensor_like(&x.view), detour = tensor_like(&x.view);
        CHECK(tarn_output_view(&with, &x.view, &layout, NULL) == TARN_OK, "shape");
        tensor gy = tensor_like(&layout), gpx = tensor_like(&px.view);
        fill(&gy.view, &r, random_wide);
        CHECK(tarn_pool_vjp(&with, &x.view, &gy.view, &direct.view, NULL) == TARN_OK, "padded");
        CHECK(tarn_pool_vjp(&without, &px.view, &gy.view, &gpx.view, NULL) == TARN_OK, "backprop");
        CHECK(tarn_unpad2d(&gpx.view, 1, &detour.view, NULL) == TARN_OK, "then unpad");
        CHECK(same_elements(&direct.view, &detour.view), "rank %d", rank);
        tensor *all[] = {&x, &px, &direct, &detour, &gy, &gpx};
        for (int k = 0; k < COUNT(all); k++)
            tensor_free(all[k]);
    }
}

/* ---- Global pooling -------------------------------------------------------------------------- */

static void test_global_tags(void)
{
    tarn_pool avg = tarn_global_avg_pool(2, 0), max = tarn_global_max_pool(2, 1);
    CHECK(avg.op == TARN_AVG && avg.window == TARN_GLOBAL && avg.spatial == 2 && !avg.flat, "avg");
    CHECK(max.op == TARN_MAX && max.window == TARN_GLOBAL && max.spatial == 2 && max.flat, "max");
    CHECK(max.ties == TARN_TIES_ALL, "every maximum receives the gradient");
}

/* (C,H,W) to (C,1,1), or to (C). */
static void test_global_shapes(void)
{
    const int64_t shape[3] = {5, 2, 3};
    int64_t out[3] = {0};
    int rank = 0;
    CHECK(tarn_global_shape(3, shape, 2, 0, out, &rank, NULL) == TARN_OK, "kept");
    CHECK(rank == 3 && out[0] == 5 && out[1] == 1 && out[2] == 1, "kept: rank %d", rank);
    CHECK(tarn_global_shape(3, shape, 2, 1, out, &rank, NULL) == TARN_OK, "flat");
    CHECK(rank == 1 && out[0] == 5, "flat: rank %d", rank);
}

/* Kept and flat: the same numbers. */
static void check_global(tarn_pool pool, const example *e)
{
    for (pool.flat = 0; pool.flat < 2; pool.flat++) {
        check_channels(&pool, e, TARN_FORWARD);
        check_channels(&pool, e, TARN_JVP);
        check_channels(&pool, e, TARN_VJP);
    }
}

static void test_global_avg(void)
{
    const example e = {.name = "global avg",
                       .spatial = 2,
                       .size = {2, 3},
                       .cells = 6,
                       .outs = 1,
                       .x = {{1, 2, 3, 4, 5, 6}, {0, 0, 12, 0, 0, 0}},
                       .dx = {{6, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1}},
                       .gy = {{6}, {12}},
                       .y = {{3.5}, {2}},
                       .dy = {{1}, {1}},
                       .gx = {{1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2}}};
    check_global(tarn_global_avg_pool(2, 0), &e);
}

/* Three cells of channel 0 reach 7: the whole gradient to each, or a third. */
static void test_global_max(void)
{
    example e = {.name = "global max, all",
                 .spatial = 2,
                 .size = {2, 3},
                 .cells = 6,
                 .outs = 1,
                 .x = {{1, 7, 3, 7, 0, 7}, {-4, -2, -3, -9, -8, -5}},
                 .dx = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
                 .gy = {{6}, {5}},
                 .y = {{7}, {-2}},
                 .dy = {{12}, {2}},
                 .gx = {{0, 6, 0, 6, 0, 6}, {0, 5, 0, 0, 0, 0}}};
    tarn_pool pool = tarn_global_max_pool(2, 0);
    check_global(pool, &e);
    e.name = "global max, split";
    e.dy[0][0] = 4;
    e.gx[0][1] = e.gx[0][3] = e.gx[0][5] = 2;
    pool.ties = TARN_TIES_SPLIT;
    check_global(pool, &e);
}

/* The same frame around another reduction. */
static void test_global_min(void)
{
    const example e = {.name = "global min, all",
                       .spatial = 2,
                       .size = {2, 3},
                       .cells = 6,
                       .outs = 1,
                       .x = {{1, 7, 3, 1, 5, 7}, {-4, -2, -3, -9, -8, -5}},
                       .dx = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
                       .gy = {{6}, {5}},
                       .y = {{1}, {-9}},
                       .dy = {{5}, {4}},
                       .gx = {{6, 0, 0, 6, 0, 0}, {0, 0, 0, 5, 0, 0}}};
    tarn_pool pool = tarn_global_max_pool(2, 0);
    pool.op = TARN_MIN;
    check_global(pool, &e);
}

/* Horner's rule: the digits in the order in which they come. */
static void append_digit(void *context, void *accumulator, const void *element)
{
    *(double *)accumulator = *(double *)accumulator * *(double *)context + *(const double *)element;
}

/* One channel to a scalar, which is also a 1x1 image; all channels to (C,1,1) or to (C). */
static void test_global_fold(void)
{
    static const double wanted[2] = {123456, 654321};
    const int64_t shape[3] = {2, 2, 3}, kept[3] = {2, 1, 1}, one[2] = {1, 1};
    double x[12] = {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1}, y[2], base = 10;
    tarn_view channel = tarn_view_dense(x, TARN_F64, 2, shape + 1);
    tarn_view scalar = tarn_view_dense(y, TARN_F64, 0, NULL);
    tarn_view image = tarn_view_dense(y, TARN_F64, 2, one);
    const tarn_view *wrapped[2] = {&scalar, &image};
    for (int k = 0; k < 2; k++) {
        y[0] = 0;
        CHECK(tarn_global_fold(&channel, 2, append_digit, &base, wrapped[k], NULL) == TARN_OK,
              "one channel");
        compare("one channel", y, wanted, 1, 0);
    }
    tarn_view all = tarn_view_dense(x, TARN_F64, 3, shape);
    for (int flat = 0; flat < 2; flat++) {
        tarn_view out = tarn_view_dense(y, TARN_F64, flat ? 1 : 3, kept);
        y[0] = y[1] = 0;
        CHECK(tarn_global_fold(&all, 2, append_digit, &base, &out, NULL) == TARN_OK, "channels");
        compare(flat ? "flat" : "kept", y, wanted, 2, 0);
    }
}

/* A scalar is a 1x1 image: the flat result of one channel, seen through a view of shape [1,1], is
 * the kept one. */
static void test_wrapped_scalar(void)
{
    const int64_t shape[2] = {2, 2}, one[2] = {1, 1};
    double x[4] = {1, 4, 2, 3}, flat = -7, kept = -7;
    tarn_view vx = tarn_view_dense(x, TARN_F64, 2, shape);
    tarn_view scalar = tarn_view_dense(&flat, TARN_F64, 0, NULL);
    tarn_view wrapped = tarn_view_dense(&flat, TARN_F64, 2, one);
    tarn_view image = tarn_view_dense(&kept, TARN_F64, 2, one);
    tarn_pool to_scalar = tarn_global_max_pool(2, 1), to_image = tarn_global_max_pool(2, 0);
    CHECK(tarn_pool_forward(&to_scalar, &vx, &scalar, NULL) == TARN_OK, "scalar");
    CHECK(tarn_pool_forward(&to_image, &vx, &image, NULL) == TARN_OK, "image");
    CHECK(same_elements(&wrapped, &image) && kept == 4, "%g %g", flat, kept);
}

/* ---- Where tarn departs ---------------------------------------------------------------------- */

/* Natural numbers would make 2 - 3 = 0 and one window of it. */
static void test_no_phantom_window(void)
{
    const int64_t shape[2] = {2, 2};
    int64_t out[2] = {-7, -7};
    CHECK(tarn_pool2d_shape(2, shape, 3, 3, 1, 0, out, NULL) == TARN_DOES_NOT_FIT, "2 < 3");
    CHECK(out[0] == -7 && out[1] == -7, "nothing written");
    CHECK(tarn_pool2d_shape(2, shape, 3, 3, 1, 1, out, NULL) == TARN_OK && out[0] == 2, "4 >= 3");
}

/* max(x, x) moves by max(dx, dx'), which is what the directional derivative would be; the JVP takes
 * the first. */
static void test_jvp_chooses_a_branch(void)
{
    const int64_t shape[1] = {2};
    tarn_pool pool = tarn_max_pool_nd(1, shape, NULL, NULL);
    check_pass("falls", TARN_JVP, &pool, 1, shape, (double[]){3, 3}, (double[]){-1, 1},
               (double[]){-1});
    check_pass("rises", TARN_JVP, &pool, 1, shape, (double[]){3, 3}, (double[]){1, -1},
               (double[]){1});
}

int main(void)
{
    test_shapes_2d();
    test_configuration_2d();
    test_max_2d();
    test_winner_of_three();
    test_avg_2d();
    test_avg_overlap();
    test_smooth_2d();
    test_smooth_nears_max();
    test_adaptive_bins();
    test_adaptive_2d();
    test_configuration_nd();
    test_shape_nd();
    test_max_nd();
    test_avg_nd();
    test_smooth_nd();
    test_lookup_of_zeros();
    test_lookup_of_none();
    test_one_window();
    test_max_padded();
    test_max_without_real_cells();
    test_avg_padded();
    test_unpad();
    test_backprop_then_unpad();
    test_global_tags();
    test_global_shapes();
    test_global_avg();
    test_global_max();
    test_global_min();
    test_global_fold();
    test_wrapped_scalar();
    test_no_phantom_window();
    test_jvp_chooses_a_branch();
    return finish_checks();
}
