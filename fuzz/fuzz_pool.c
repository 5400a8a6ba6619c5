/* Calls of the library from bytes: descriptors and views of every kind, mostly sensible,
 * sometimes out of all range; the specification is the judge. */
#include "fuzz_run.h"

/* Mostly a small number; after a byte of 250 and more an extreme one. */
static int64_t take_number(fuzz_bytes *b, int64_t least, int64_t count)
{
    static const int64_t extremes[] = {0, -1, 1000, INT32_MAX, (int64_t)1 << 40, INT64_MAX};
    unsigned byte = fuzz_byte(b);
    return byte >= 250 ? extremes[byte - 250] : least + byte % count;
}

static double take_real(fuzz_bytes *b)
{
    static const double extremes[] = {0, -0.0, 1e-310, 1e300, -1, (double)(1ull << 41)};
    unsigned byte = fuzz_byte(b);
    return byte >= 250 ? extremes[byte - 250] : 1 + (byte - 20) / 16.0;
}

static tarn_pool take_pool(fuzz_bytes *b)
{
    tarn_pool pool = tarn_max_pool((int)take_number(b, 1, 4));
    pool.op = (tarn_op)(fuzz_byte(b) % (TARN_OPS + 1));
    pool.window = (tarn_window)(fuzz_byte(b) % (TARN_GLOBAL + 2));
    unsigned flags = fuzz_byte(b);
    pool.ceil_mode = flags & 1;
    pool.count_include_pad = flags >> 1 & 1;
    pool.flat = flags >> 2 & 1;
    pool.ties = (tarn_ties)(flags >> 3 & 3);
    pool.divisor = flags & 32 ? take_number(b, 1, 20) : 0;
    pool.beta = pool.power = pool.skip_real = take_real(b);
    if (flags & 64) {
        pool.skip = (tarn_skip)(fuzz_byte(b) % (TARN_SKIPS + 1));
        pool.skip_integer = take_number(b, 0, 4);
        pool.min_count = take_number(b, 0, 5);
    }
    for (int a = 0; a < TARN_MAX_SPATIAL && a < pool.spatial; a++) {
        pool.kernel[a] = take_number(b, 1, 6);
        pool.stride[a] = take_number(b, 1, 4);
        pool.dilation[a] = take_number(b, 1, 3);
        pool.pad_lo[a] = take_number(b, 0, 4);
        pool.pad_hi[a] = take_number(b, 0, 4);
        pool.out[a] = take_number(b, 1, 7);
    }
    return pool;
}

/* Dense, channels last, or strides that anything may come of: reversed, broadcast, with gaps. */
static tarn_view take_view(fuzz_bytes *b, const tarn_pool *pool)
{
    int64_t shape[TARN_MAX_RANK] = {0};
    unsigned kind = fuzz_byte(b);
    int spatial = pool->spatial > 0 && pool->spatial <= TARN_MAX_SPATIAL ? pool->spatial : 2;
    int rank = spatial + (int)(kind >> 2 & 3);
    tarn_dtype dtype = (tarn_dtype)(fuzz_byte(b) % (TARN_DTYPES + 1));
    for (int a = 0; a < rank; a++)
        shape[a] = take_number(b, a < rank - spatial ? 0 : 1, a < rank - spatial ? 20 : 40);
    tarn_view x = tarn_view_dense(NULL, dtype, rank, shape);
    if ((kind & 3) == 1)
        x = tarn_view_channels_last(NULL, dtype, rank, spatial, shape);
    for (int a = 0; (kind & 3) == 2 && a < rank; a++)
        x.strides[a] = take_number(b, -3, 90);
    return x;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    fuzz_bytes bytes = {data, size, 0};
    tarn_pool pool = take_pool(&bytes);
    tarn_view x = take_view(&bytes, &pool);
    fuzz_problem(&pool, &x, &bytes);
    return 0;
}
