/* Output sizes, output views and the window lists, each against counting by brute force. */
#include "fixture.h"
#include "shape.h"

#ifdef TARN_SHORT_TESTS
enum { MAX_SIZE = 8, MAX_PAD = 2, RANDOM_ROUNDS = 500 };
#else
enum { MAX_SIZE = 12, MAX_PAD = 3, RANDOM_ROUNDS = 20000 };
#endif

static const int64_t TWO62 = INT64_C(1) << 62;

/* ---- Sliding windows, counted one by one ---------------------------------------------------- */

typedef struct {
    int64_t size, kernel, stride, dilation, lo, hi;
    int ceil_mode;
} geometry;

#define GEOMETRY "size %lld k%lld s%lld d%lld lo %lld hi %lld ceil %d"
#define GEOMETRY_OF(g)                                                                             \
    (long long)(g)->size, (long long)(g)->kernel, (long long)(g)->stride,                          \
        (long long)(g)->dilation, (long long)(g)->lo, (long long)(g)->hi, (g)->ceil_mode

static int64_t tap_coordinate(const geometry *g, int64_t o, int64_t j)
{
    return o * g->stride - g->lo + g->dilation * j;
}

/* Whether window o exists before anything is dropped. Floor: its last tap lies inside the padded
 * input. Ceil: the window before it leaves something behind its last tap uncovered. No division,
 * unlike the library. */
static bool window_exists(const geometry *g, int64_t o)
{
    int64_t end = g->size + g->hi;
    if (tap_coordinate(g, o, g->kernel - 1) < end)
        return true;
    return g->ceil_mode && o > 0 && tap_coordinate(g, o - 1, g->kernel - 1) < end - 1;
}

static int64_t count_windows(const geometry *g)
{
    int64_t count = 0;
    while (window_exists(g, count))
        count++;
    /* PyTorch drops one window that starts behind the input, never two. */
    return count - (g->ceil_mode && count > 0 && tap_coordinate(g, count - 1, 0) >= g->size);
}

static tarn_pool pool_of(const geometry *g)
{
    tarn_pool pool = tarn_max_pool(1);
    pool.kernel[0] = g->kernel;
    pool.stride[0] = g->stride;
    pool.dilation[0] = g->dilation;
    pool.pad_lo[0] = g->lo;
    pool.pad_hi[0] = g->hi;
    pool.ceil_mode = g->ceil_mode;
    return pool;
}

static bool axis_of(const tarn_pool *pool, int64_t size, tarn_axis *axis)
{
    tarn_problem problem;
    tarn_view x = tarn_view_dense(NULL, TARN_U8, 1, &size);
    if (tarn_check_pool(pool, &x, &problem, NULL))
        return false;
    *axis = problem.axis[0];
    return true;
}

/* ---- Window lists --------------------------------------------------------------------------- */

static void check_taps(const geometry *g, const tarn_axis *axis, int64_t o)
{
    tarn_span taps = window_taps(axis, o);
    int64_t real = 0, inside = 0;
    CHECK(taps.n == g->kernel && taps.lo <= taps.hi, GEOMETRY " o %lld", GEOMETRY_OF(g),
          (long long)o);
    for (int64_t j = 0; j < g->kernel; j++) {
        int64_t i = tap_coordinate(g, o, j);
        bool is_real = i >= 0 && i < g->size;
        real += is_real;
        inside += i >= -g->lo && i < g->size + g->hi;
        CHECK(is_real == (j >= taps.lo && j < taps.hi), GEOMETRY " o %lld j %lld", GEOMETRY_OF(g),
              (long long)o, (long long)j);
        CHECK(span_at(&taps, j) == i, GEOMETRY " o %lld j %lld", GEOMETRY_OF(g), (long long)o,
              (long long)j);
        if (is_real)
            CHECK(tap_of(axis, o, i) == j, GEOMETRY " o %lld i %lld", GEOMETRY_OF(g), (long long)o,
                  (long long)i);
    }
    CHECK(taps.hi - taps.lo == real, GEOMETRY " o %lld", GEOMETRY_OF(g), (long long)o);
    CHECK(padded_taps(axis, o) == inside, GEOMETRY " o %lld", GEOMETRY_OF(g), (long long)o);
}

/* Every window, existing or not, that has a tap on cell i: tap j reads it from window
 * (i+lo-e*j)/s, if that is whole. The greatest j is the least window. The steps are the axis's own:
 * one that is never taken (a single window, a single tap) has become 1. */
static void check_cell(const geometry *g, const tarn_axis *axis, int64_t i)
{
    tarn_span windows = cell_windows(axis, i);
    int64_t entry = 0, existing = 0, last = INT64_MIN;
    CHECK(axis->stride == (axis->out > 1 ? g->stride : 1), GEOMETRY, GEOMETRY_OF(g));
    CHECK(axis->dilation == (g->kernel > 1 ? g->dilation : 1), GEOMETRY, GEOMETRY_OF(g));
    for (int64_t j = g->kernel - 1; j >= 0; j--) {
        int64_t position = i + g->lo - axis->dilation * j;
        if (position % axis->stride != 0)
            continue;
        int64_t o = position / axis->stride;
        bool exists = o >= 0 && o < axis->out;
        existing += exists;
        CHECK(entry < windows.n && span_at(&windows, entry) == o && o > last,
              GEOMETRY " i %lld o %lld", GEOMETRY_OF(g), (long long)i, (long long)o);
        CHECK(exists == (entry >= windows.lo && entry < windows.hi), GEOMETRY " i %lld o %lld",
              GEOMETRY_OF(g), (long long)i, (long long)o);
        last = o;
        entry++;
    }
    CHECK(windows.n == entry && windows.hi - windows.lo == existing, GEOMETRY " i %lld",
          GEOMETRY_OF(g), (long long)i);
}

static void check_geometry(const geometry *g)
{
    tarn_error error;
    tarn_axis axis = {.size = 0};
    int64_t out = -7, expected = count_windows(g);
    tarn_status status = tarn_output_size(g->size, g->kernel, g->stride, g->dilation, g->lo, g->hi,
                                          g->ceil_mode, &out, &error);
    CHECK(status == (expected ? TARN_OK : TARN_DOES_NOT_FIT), GEOMETRY ": %s", GEOMETRY_OF(g),
          tarn_status_name(status));
    CHECK(out == (expected ? expected : -7), GEOMETRY ": %lld", GEOMETRY_OF(g), (long long)out);
    tarn_pool pool = pool_of(g);
    bool fits = axis_of(&pool, g->size, &axis);
    CHECK(fits == (expected > 0), GEOMETRY, GEOMETRY_OF(g));
    if (!fits)
        return;
    CHECK(axis.out == expected, GEOMETRY, GEOMETRY_OF(g));
    for (int64_t o = 0; o < axis.out; o++)
        check_taps(g, &axis, o);
    for (int64_t i = 0; i < g->size; i++)
        check_cell(g, &axis, i);
}

static void test_small_geometries(void)
{
    geometry g;
    for (g.size = 1; g.size <= MAX_SIZE; g.size++)
        for (g.kernel = 1; g.kernel <= 6; g.kernel++)
            for (g.stride = 1; g.stride <= 4; g.stride++)
                for (g.dilation = 1; g.dilation <= 3; g.dilation++)
                    for (g.lo = 0; g.lo <= MAX_PAD; g.lo++)
                        for (g.hi = 0; g.hi <= MAX_PAD; g.hi++)
                            for (g.ceil_mode = 0; g.ceil_mode <= 1; g.ceil_mode++)
                                check_geometry(&g);
}

/* Cases worked by hand from PyTorch's documentation and sources: an oracle of its own, should
 * brute force and library share a mistake. */
static void test_known_sizes(void)
{
    static const struct {
        geometry g;
        int64_t out;
    } cases[] =
        {
            {{112, 3, 2, 1, 1, 1, 0}, 56}, {{224, 2, 2, 1, 0, 0, 0}, 112},
            {{5, 2, 2, 1, 0, 0, 0}, 2},    {{5, 2, 2, 1, 0, 0, 1}, 3},
            {{4, 2, 3, 1, 1, 1, 1}, 2}, /* ceil gives 3; the third would start at 5 >= 4 + 1 */
            {{3, 1, 2, 1, 0, 2, 1}, 2}, /* floor gives 3, but the third starts in the padding */
            {{3, 1, 2, 1, 0, 2, 0}, 3},    {{1, 1, 1, 1, 0, 0, 0}, 1},
            {{10, 3, 1, 4, 0, 0, 0}, 2},   {{9, 3, 1, 4, 0, 0, 0}, 1},
            {{16, 32, 32, 1, 8, 8, 1}, 1}, {{1, 2, 2, 1, 1, 1, 0}, 1},
        };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const geometry *g = &cases[k].g;
        int64_t out = 0;
        tarn_output_size(g->size, g->kernel, g->stride, g->dilation, g->lo, g->hi, g->ceil_mode,
                         &out, NULL);
        CHECK(out == cases[k].out, GEOMETRY ": %lld", GEOMETRY_OF(g), (long long)out);
    }
}

/* ---- Huge strides, dilations and kernels ---------------------------------------------------- */

/* Few taps and few windows, far apart: brute force is over them, not over the cells. */
static geometry random_sparse(rng *r)
{
    geometry g = {.kernel = rng_range(r, 1, 6), .ceil_mode = (int)rng_range(r, 0, 1)};
    int bits = (int)rng_range(r, 3, 57);
    int64_t unit = rng_range(r, 1, 5); /* a common factor of stride and dilation */
    g.stride = unit * rng_range(r, 1, INT64_C(1) << rng_range(r, 1, bits));
    g.dilation = unit * rng_range(r, 1, INT64_C(1) << rng_range(r, 1, bits));
    if (g.stride < g.dilation / 8) /* else there would be more windows than we care to list */
        g.stride = g.dilation / 8 + 1;
    int64_t padded = g.dilation * (g.kernel - 1) + 1 + rng_range(r, 0, 6 * g.stride - 1);
    g.lo = rng_range(r, 0, 1) ? rng_range(r, 0, padded - 1) : 0;
    g.hi = rng_range(r, 0, 1) ? rng_range(r, 0, padded - 1 - g.lo) : 0;
    g.size = padded - g.lo - g.hi;
    return g;
}

static void check_sparse(const geometry *g)
{
    tarn_axis axis = {.size = 0};
    tarn_pool pool = pool_of(g);
    if (!axis_of(&pool, g->size, &axis)) {
        CHECK(false, GEOMETRY " refused", GEOMETRY_OF(g));
        return;
    }
    CHECK(axis.out == count_windows(g), GEOMETRY, GEOMETRY_OF(g));
    for (int64_t o = 0; o < axis.out; o++) {
        check_taps(g, &axis, o);
        for (int64_t j = 0; j < g->kernel; j++)
            for (int64_t beside = -1; beside <= 1; beside++) {
                int64_t i = tap_coordinate(g, o, j) + beside;
                if (i >= 0 && i < g->size)
                    check_cell(g, &axis, i);
            }
    }
    check_cell(g, &axis, 0);
    check_cell(g, &axis, g->size - 1);
}

static void test_sparse_geometries(void)
{
    rng r = {20240601};
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        geometry g = random_sparse(&r);
        check_sparse(&g);
    }
}

/* Kernels too long to walk: the ends of the lists are checked, and that the two lists agree. */
static void check_long(const geometry *g, const tarn_axis *axis, int64_t o, rng *r)
{
    tarn_span taps = window_taps(axis, o);
    CHECK(taps.n == g->kernel, GEOMETRY, GEOMETRY_OF(g));
    CHECK(taps.lo == 0 || span_at(&taps, taps.lo - 1) < 0, GEOMETRY, GEOMETRY_OF(g));
    CHECK(taps.hi == taps.n || span_at(&taps, taps.hi) >= g->size, GEOMETRY, GEOMETRY_OF(g));
    if (taps.lo == taps.hi)
        return;
    int64_t j = rng_range(r, taps.lo, taps.hi - 1), i = span_at(&taps, j);
    CHECK(i >= 0 && i < g->size && tap_of(axis, o, i) == j, GEOMETRY, GEOMETRY_OF(g));
    tarn_span windows = cell_windows(axis, i);
    int64_t entry = (o - windows.first) / windows.step;
    CHECK(span_at(&windows, entry) == o && entry >= windows.lo && entry < windows.hi,
          GEOMETRY " o %lld i %lld", GEOMETRY_OF(g), (long long)o, (long long)i);
    CHECK(windows.lo == 0 || span_at(&windows, windows.lo - 1) < 0, GEOMETRY, GEOMETRY_OF(g));
    CHECK(windows.hi == windows.n || span_at(&windows, windows.hi) >= axis->out, GEOMETRY,
          GEOMETRY_OF(g));
}

static void test_long_kernels(void)
{
    rng r = {77};
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        int bits = (int)rng_range(&r, 2, 28);
        geometry g = {.stride = rng_range(&r, 1, INT64_C(1) << bits),
                      .dilation = rng_range(&r, 1, INT64_C(1) << bits),
                      .kernel = rng_range(&r, 1, INT64_C(1) << bits)};
        int64_t extent = g.dilation * (g.kernel - 1) + 1;
        g.size = extent + rng_range(&r, 0, INT64_C(1) << bits);
        g.lo = rng_range(&r, 0, extent);
        g.hi = rng_range(&r, 0, extent);
        tarn_axis axis = {.size = 0};
        tarn_pool pool = pool_of(&g);
        CHECK(axis_of(&pool, g.size, &axis), GEOMETRY " refused", GEOMETRY_OF(&g));
        for (int sample = 0; sample < 4; sample++)
            check_long(&g, &axis, rng_range(&r, 0, axis.out - 1), &r);
    }
}

/* ---- Adaptive windows ----------------------------------------------------------------------- */

/* start*out <= i*in < (start+1)*out, and (end-1)*out < (i+1)*in <= end*out, by exact products. */
static void check_adaptive_ends(int64_t i, int64_t in, int64_t out)
{
    tarn_i128 start = tarn_adaptive_start(i, in, out), end = tarn_adaptive_end(i, in, out);
    CHECK(start >= 0 && start * out <= (tarn_i128)i * in && (tarn_i128)i * in < (start + 1) * out,
          "start %lld %lld %lld", (long long)i, (long long)in, (long long)out);
    tarn_i128 reach = ((tarn_i128)i + 1) * in;
    CHECK(end <= in && (end - 1) * out < reach && reach <= end * out, "end %lld %lld %lld",
          (long long)i, (long long)in, (long long)out);
}

static void test_adaptive_ends(void)
{
    rng r = {5};
    const int64_t large[] = {1,         2,     3,         INT64_C(1) << 31, (INT64_C(1) << 32) + 1,
                             TWO62 - 1, TWO62, TWO62 + 1, INT64_MAX - 1,    INT64_MAX};
    const int count = (int)(sizeof large / sizeof large[0]);
    for (int64_t in = 1; in <= 20; in++)
        for (int64_t out = 1; out <= 30; out++)
            for (int64_t i = 0; i < out; i++)
                check_adaptive_ends(i, in, out);
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            check_adaptive_ends(0, large[a], large[b]);
            check_adaptive_ends(large[b] - 1, large[a], large[b]);
            for (int sample = 0; sample < 20; sample++)
                check_adaptive_ends(rng_range(&r, 0, large[b] - 1), large[a], large[b]);
        }
    CHECK(tarn_adaptive_end(0, 0, 3) == 0 && tarn_adaptive_start(2, 0, 3) == 0, "empty axis");
}

static void test_adaptive_refusals(void)
{
    static const int64_t bad[][3] = {
        {-1, 4, 2},        {2, 4, 2},         {0, -1, 2},
        {0, 4, 0},         {0, 4, -1},        {INT64_MIN, 4, 2},
        {0, INT64_MIN, 2}, {0, 4, INT64_MIN}, {INT64_MAX, 4, INT64_MAX}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        CHECK(tarn_adaptive_start(bad[k][0], bad[k][1], bad[k][2]) == -1, "row %d", (int)k);
        CHECK(tarn_adaptive_end(bad[k][0], bad[k][1], bad[k][2]) == -1, "row %d", (int)k);
    }
}

static bool listed(const tarn_span *span, int64_t coordinate)
{
    return coordinate >= span_at(span, span->lo) && coordinate < span_at(span, span->hi);
}

static void check_adaptive_lists(int64_t size, int64_t out)
{
    tarn_axis axis = {.size = 0};
    tarn_pool pool = tarn_adaptive_max_pool(1, &out);
    int64_t longest = 0;
    CHECK(axis_of(&pool, size, &axis) && axis.out == out, "%lld -> %lld", (long long)size,
          (long long)out);
    for (int64_t o = 0; o < out; o++) {
        tarn_span taps = window_taps(&axis, o);
        int64_t start = tarn_adaptive_start(o, size, out), end = tarn_adaptive_end(o, size, out);
        CHECK(taps.first == start && taps.step == 1 && taps.lo == 0 && taps.hi == taps.n &&
                  taps.n == end - start && padded_taps(&axis, o) == taps.n,
              "%lld -> %lld, window %lld", (long long)size, (long long)out, (long long)o);
        longest = taps.n > longest ? taps.n : longest;
        for (int64_t i = 0; i < size; i++) {
            tarn_span windows = cell_windows(&axis, i);
            CHECK(windows.step == 1 && windows.lo == 0 && windows.hi == windows.n &&
                      listed(&windows, o) == (i >= start && i < end),
                  "%lld -> %lld, o %lld i %lld", (long long)size, (long long)out, (long long)o,
                  (long long)i);
            if (i >= start && i < end)
                CHECK(tap_of(&axis, o, i) == i - start, "tap_of %lld %lld", (long long)o,
                      (long long)i);
        }
    }
    /* window.h: `kernel` is that of the longest window. The width of saved winners hangs on it. */
    CHECK(axis.kernel == longest, "%lld -> %lld: kernel %lld, but the longest window has %lld taps",
          (long long)size, (long long)out, (long long)axis.kernel, (long long)longest);
}

static void test_adaptive_lists(void)
{
    for (int64_t size = 1; size <= 2 * MAX_SIZE; size++)
        for (int64_t out = 1; out <= 3 * MAX_SIZE; out++)
            check_adaptive_lists(size, out);
}

/* ---- Shapes of tensors ---------------------------------------------------------------------- */

/* The memory order of the axes, outermost first, from the strides of a dense view. */
static void check_dense_in_order(const tarn_view *y, const int *order, const char *what)
{
    int64_t stride = 1;
    for (int k = y->rank - 1; k >= 0; k--) {
        CHECK(y->strides[order[k]] == stride || y->shape[order[k]] == 1,
              "%s: stride %lld of axis %d, expected %lld", what, (long long)y->strides[order[k]],
              order[k], (long long)stride);
        stride *= y->shape[order[k]];
    }
}

static void test_output_view(void)
{
    static const int orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 3, 0, 2}};
    const int64_t shape[4] = {3, 5, 8, 6}, expected[4] = {3, 5, 4, 3};
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 2, 1);
    for (int sign = -1; sign <= 1; sign += 2)
        for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
            tarn_view y, x = {.dtype = TARN_F16, .rank = 4, .data = &y};
            int64_t stride = 7; /* not dense: gaps everywhere */
            for (int a = 3; a >= 0; a--) {
                x.shape[orders[k][a]] = shape[orders[k][a]];
                x.strides[orders[k][a]] = sign * stride;
                stride *= shape[orders[k][a]] + 1;
            }
            CHECK(tarn_output_view(&pool, &x, &y, NULL) == TARN_OK, "order %d", (int)k);
            CHECK(y.data == NULL && y.dtype == TARN_F16 && y.rank == 4, "order %d", (int)k);
            CHECK(memcmp(y.shape, expected, sizeof expected) == 0, "order %d", (int)k);
            check_dense_in_order(&y, orders[k], "output view");
        }
}

static void test_view_constructors(void)
{
    static const int last[4] = {0, 2, 3, 1}, dense[4] = {0, 1, 2, 3};
    const int64_t shape[4] = {2, 3, 4, 5};
    tarn_view view = tarn_view_channels_last(NULL, TARN_I8, 4, 2, shape);
    check_dense_in_order(&view, last, "channels last");
    view = tarn_view_channels_last(NULL, TARN_I8, 4, 4, shape);
    check_dense_in_order(&view, dense, "channels last without channel");
    view = tarn_view_channels_last(NULL, TARN_I8, 4, -1, shape);
    check_dense_in_order(&view, dense, "channels last, negative spatial");
    view = tarn_view_dense(NULL, TARN_I8, 4, shape);
    check_dense_in_order(&view, dense, "dense");
    CHECK(tarn_view_dense(NULL, TARN_I8, -3, NULL).rank == -3, "rank is kept");
}

static void test_pool2d_shape(void)
{
    for (int rank = 2; rank <= 6; rank++)
        for (int64_t kernel = 1; kernel <= 4; kernel++)
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int64_t padding = 0; padding <= 2; padding++) {
                    int64_t shape[6] = {2, 0, 3, 1, 7, 9}, out[6], h = 0, w = 0;
                    const int64_t *sizes = shape + 6 - rank;
                    tarn_status status = tarn_pool2d_shape(rank, sizes, kernel, kernel + 1, stride,
                                                           padding, out, NULL);
                    tarn_output_size(7, kernel, stride, 1, padding, padding, 0, &h, NULL);
                    tarn_output_size(9, kernel + 1, stride, 1, padding, padding, 0, &w, NULL);
                    CHECK(status == TARN_OK && out[rank - 2] == h && out[rank - 1] == w,
                          "rank %d k%lld s%lld p%lld", rank, (long long)kernel, (long long)stride,
                          (long long)padding);
                    CHECK(memcmp(out, sizes, sizeof(int64_t) * (size_t)(rank - 2)) == 0,
                          "leading axes, rank %d", rank);
                }
}

static void check_global_shape(int rank, int spatial, int flat)
{
    int64_t shape[TARN_MAX_RANK], out[TARN_MAX_RANK];
    int out_rank = -1;
    for (int a = 0; a < rank; a++) {
        shape[a] = a % 5 == 0 ? 2 : 1; /* the product stays small */
        out[a] = -9;
    }
    tarn_status status = tarn_global_shape(rank, shape, spatial, flat, out, &out_rank, NULL);
    bool legal = spatial >= 1 && spatial <= TARN_MAX_SPATIAL && spatial <= rank;
    CHECK(status == (legal ? TARN_OK : TARN_BAD_RANK), "rank %d spatial %d", rank, spatial);
    if (!legal) {
        CHECK(out_rank == -1 && (rank == 0 || out[0] == -9), "written on error");
        return;
    }
    CHECK(out_rank == (flat ? rank - spatial : rank), "rank %d spatial %d", rank, spatial);
    for (int a = 0; a < rank; a++) {
        int64_t expected = a < rank - spatial ? shape[a] : flat ? -9 : 1;
        CHECK(out[a] == expected, "rank %d spatial %d axis %d", rank, spatial, a);
    }
}

static void test_global_shape(void)
{
    for (int rank = 0; rank <= TARN_MAX_RANK; rank++)
        for (int spatial = 0; spatial <= 10; spatial++)
            for (int flat = 0; flat <= 1; flat++)
                check_global_shape(rank, spatial, flat);
}

/* What a caller has to allocate for a layout. */
static void test_view_bytes(void)
{
    const int64_t shape[3] = {2, 3, 4}, empty[3] = {2, 0, 4}, wrong[3] = {2, -3, 4};
    tarn_view view = tarn_view_dense(NULL, TARN_F32, 3, shape);
    CHECK(tarn_view_bytes(&view) == 96, "dense");
    view.strides[0] = 20; /* 20 + 2*4 + 3 + 1 elements */
    CHECK(tarn_view_bytes(&view) == 128, "gaps");
    view.strides[0] = -12;
    CHECK(tarn_view_bytes(&view) == 96, "reversed");
    view.strides[0] = 0;
    CHECK(tarn_view_bytes(&view) == 48, "broadcast");
    view = tarn_view_dense(NULL, TARN_F32, 3, empty);
    CHECK(tarn_view_bytes(&view) == 0, "empty");
    view = tarn_view_dense(NULL, TARN_F32, 3, wrong);
    CHECK(tarn_view_bytes(&view) == 0 && tarn_view_bytes(NULL) == 0, "not a view");
}

int main(void)
{
    test_small_geometries();
    test_known_sizes();
    test_sparse_geometries();
    test_long_kernels();
    test_adaptive_ends();
    test_adaptive_refusals();
    test_output_view();
    test_view_constructors();
    test_pool2d_shape();
    test_global_shape();
    test_adaptive_lists();
    test_view_bytes();
    return finish_checks();
}
