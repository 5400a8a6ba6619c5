/* Constructors of descriptors. They check nothing: the plan's checker does. */
#include "tarn.h"

static tarn_pool sliding(tarn_op op, int spatial)
{
    tarn_pool pool = {.op = op,
                      .window = TARN_SLIDING,
                      .spatial = spatial,
                      .count_include_pad = 1,
                      .beta = 1.0,
                      .power = 2.0,
                      .ties = TARN_TIES_FIRST,
                      .min_count = 1};
    for (int a = 0; a < TARN_MAX_SPATIAL; a++)
        pool.kernel[a] = pool.stride[a] = pool.dilation[a] = pool.out[a] = 1;
    return pool;
}

tarn_pool tarn_max_pool(int spatial)
{
    return sliding(TARN_MAX, spatial);
}

tarn_pool tarn_min_pool(int spatial)
{
    return sliding(TARN_MIN, spatial);
}

tarn_pool tarn_avg_pool(int spatial)
{
    return sliding(TARN_AVG, spatial);
}

tarn_pool tarn_smooth_pool(int spatial, double beta)
{
    tarn_pool pool = sliding(TARN_SMOOTH, spatial);
    pool.beta = beta;
    return pool;
}

tarn_pool tarn_lp_pool(int spatial, double power)
{
    tarn_pool pool = sliding(TARN_LP, spatial);
    pool.power = power;
    return pool;
}

tarn_pool tarn_mode_pool(int spatial)
{
    return sliding(TARN_MODE, spatial);
}

tarn_pool tarn_sum_pool(int spatial)
{
    tarn_pool pool = sliding(TARN_AVG, spatial);
    pool.divisor = 1;
    return pool;
}

static tarn_pool sliding_nd(tarn_op op, int spatial, const int64_t *kernel, const int64_t *stride,
                            const int64_t *padding)
{
    tarn_pool pool = sliding(op, spatial);
    for (int a = 0; a < spatial && a < TARN_MAX_SPATIAL; a++) {
        pool.kernel[a] = kernel ? kernel[a] : 0;
        pool.stride[a] = stride ? stride[a] : pool.kernel[a];
        pool.pad_lo[a] = pool.pad_hi[a] = padding ? padding[a] : 0;
    }
    return pool;
}

tarn_pool tarn_max_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                           const int64_t *padding)
{
    return sliding_nd(TARN_MAX, spatial, kernel, stride, padding);
}

tarn_pool tarn_avg_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                           const int64_t *padding)
{
    return sliding_nd(TARN_AVG, spatial, kernel, stride, padding);
}

tarn_pool tarn_smooth_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                              const int64_t *padding, double beta)
{
    tarn_pool pool = sliding_nd(TARN_SMOOTH, spatial, kernel, stride, padding);
    pool.beta = beta;
    return pool;
}

tarn_pool tarn_lp_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                          const int64_t *padding, double power)
{
    tarn_pool pool = sliding_nd(TARN_LP, spatial, kernel, stride, padding);
    pool.power = power;
    return pool;
}

tarn_pool tarn_mode_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                            const int64_t *padding)
{
    return sliding_nd(TARN_MODE, spatial, kernel, stride, padding);
}

static tarn_pool sliding_2d(tarn_op op, int64_t kernel_h, int64_t kernel_w, int64_t stride,
                            int64_t padding)
{
    const int64_t kernel[2] = {kernel_h, kernel_w}, strides[2] = {stride, stride};
    const int64_t paddings[2] = {padding, padding};
    return sliding_nd(op, 2, kernel, strides, paddings);
}

tarn_pool tarn_max_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride)
{
    return sliding_2d(TARN_MAX, kernel_h, kernel_w, stride, 0);
}

tarn_pool tarn_max_pool2d_padded(int64_t kernel_h, int64_t kernel_w, int64_t stride,
                                 int64_t padding)
{
    return sliding_2d(TARN_MAX, kernel_h, kernel_w, stride, padding);
}

tarn_pool tarn_avg_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride)
{
    return sliding_2d(TARN_AVG, kernel_h, kernel_w, stride, 0);
}

tarn_pool tarn_avg_pool2d_padded(int64_t kernel_h, int64_t kernel_w, int64_t stride,
                                 int64_t padding)
{
    return sliding_2d(TARN_AVG, kernel_h, kernel_w, stride, padding);
}

tarn_pool tarn_smooth_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride, double beta)
{
    tarn_pool pool = sliding_2d(TARN_SMOOTH, kernel_h, kernel_w, stride, 0);
    pool.beta = beta;
    return pool;
}

tarn_pool tarn_lp_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride, double power)
{
    tarn_pool pool = sliding_2d(TARN_LP, kernel_h, kernel_w, stride, 0);
    pool.power = power;
    return pool;
}

static tarn_pool adaptive(tarn_op op, int spatial, const int64_t *out)
{
    tarn_pool pool = sliding(op, spatial);
    pool.window = TARN_ADAPTIVE;
    for (int a = 0; a < spatial && a < TARN_MAX_SPATIAL; a++)
        pool.out[a] = out ? out[a] : 0;
    return pool;
}

tarn_pool tarn_adaptive_max_pool(int spatial, const int64_t *out)
{
    return adaptive(TARN_MAX, spatial, out);
}

tarn_pool tarn_adaptive_avg_pool(int spatial, const int64_t *out)
{
    return adaptive(TARN_AVG, spatial, out);
}

static tarn_pool global(tarn_op op, int spatial, int flat)
{
    tarn_pool pool = sliding(op, spatial);
    pool.window = TARN_GLOBAL;
    pool.flat = flat;
    pool.ties = TARN_TIES_ALL;
    return pool;
}

tarn_pool tarn_global_max_pool(int spatial, int flat)
{
    return global(TARN_MAX, spatial, flat);
}

tarn_pool tarn_global_avg_pool(int spatial, int flat)
{
    return global(TARN_AVG, spatial, flat);
}

tarn_pool tarn_global_lp_pool(int spatial, int flat, double power)
{
    tarn_pool pool = global(TARN_LP, spatial, flat);
    pool.power = power;
    return pool;
}

const char *tarn_version(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return TEXT(TARN_VERSION_MAJOR) "." TEXT(TARN_VERSION_MINOR) "." TEXT(TARN_VERSION_PATCH);
}
