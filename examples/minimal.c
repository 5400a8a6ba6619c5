/* The smallest program: the maxima of the four quarters of a 4x4 matrix. */
#include "tarn.h"

#include <stdio.h>

int main(void)
{
    float x[4][4] = {{1, 2, 5, 0}, {4, 3, 1, 6}, {7, 0, 2, 2}, {1, 8, 9, 3}};
    float y[2][2];

    /* The library owns no memory: a view says where the numbers are and how they lie. */
    tarn_view input = tarn_view_dense(x, TARN_F32, 2, (int64_t[]){4, 4});
    tarn_view output = tarn_view_dense(y, TARN_F32, 2, (int64_t[]){2, 2});

    tarn_pool pool = tarn_max_pool2d(2, 2, 2); /* windows of 2x2, stride 2 */
    tarn_error error;
    if (tarn_pool_forward(&pool, &input, &output, &error)) {
        fprintf(stderr, "%s: %s\n", tarn_status_name(error.code), error.message);
        return 1;
    }
    printf("%g %g\n%g %g\n", y[0][0], y[0][1], y[1][0], y[1][1]); /* 4 6, 8 9 */
    return 0;
}
