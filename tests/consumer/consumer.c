/* The smallest user of the library: the scripts in tests/ build it in every way a user would. */
#include <stdio.h>
#include <string.h>
#include <tarn.h>

int main(void)
{
    float x[16], y[4];
    const float expected[4] = {5, 7, 13, 15};
    const int64_t x_shape[2] = {4, 4}, y_shape[2] = {2, 2};
    char version[32];
    tarn_error error;
    int i;

    snprintf(version, sizeof version, "%d.%d.%d", TARN_VERSION_MAJOR, TARN_VERSION_MINOR,
             TARN_VERSION_PATCH);
    if (strcmp(version, tarn_version()) != 0) {
        fprintf(stderr, "header is %s, library is %s\n", version, tarn_version());
        return 1;
    }

    for (i = 0; i < 16; i++) {
        x[i] = (float)i;
    }
    tarn_pool pool = tarn_max_pool2d(2, 2, 2);
    tarn_view in = tarn_view_dense(x, TARN_F32, 2, x_shape);
    tarn_view out = tarn_view_dense(y, TARN_F32, 2, y_shape);
    if (tarn_pool_forward(&pool, &in, &out, &error) != TARN_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (i = 0; i < 4; i++) {
        if (y[i] != expected[i]) {
            fprintf(stderr, "y[%d] is %g, not %g\n", i, (double)y[i], (double)expected[i]);
            return 1;
        }
    }
    return 0;
}
