#include "array_write.h"

#ifdef TARN_PNG
#include <png.h>
#include <setjmp.h>

typedef struct {
    tarn_output *output;
    tarn_complaint *complaint;
} writer;

static void on_error(png_structp png, png_const_charp message)
{
    writer *w = png_get_error_ptr(png);
    if (w->complaint->status == 0) /* a failed write has said more already */
        tarn_complain(w->complaint, FAILED_WORK, "PNG: %s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void take_bytes(png_structp png, png_bytep data, size_t count)
{
    writer *w = png_get_io_ptr(png);
    if (!tarn_output_write(w->output, data, count, w->complaint))
        png_error(png, "cannot be written");
}

static void flush(png_structp png)
{
    (void)png;
}

/* Everything that libpng may jump out of. */
static bool encode(png_structp png, png_infop info, const tarn_view *p)
{
    static const int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    const uint16_t one = 1;
    int64_t channels = p->rank == 3 ? p->shape[2] : 1;
    size_t row = (size_t)(p->shape[1] * channels) * tarn_dtype_size(p->dtype);
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(png, info, (png_uint_32)p->shape[1], (png_uint_32)p->shape[0],
                 8 * (int)tarn_dtype_size(p->dtype), types[channels], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (*(const unsigned char *)&one == 1)
        png_set_swap(png);
    for (int64_t y = 0; y < p->shape[0]; y++)
        png_write_row(png, (png_const_bytep)p->data + (size_t)y * row);
    png_write_end(png, info);
    return true;
}

bool tarn_png_write(tarn_output *output, const tarn_view *picture, tarn_complaint *complaint)
{
    writer w = {output, complaint};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info)
        png_set_write_fn(png, &w, take_bytes, flush);
    bool good = info ? encode(png, info, picture)
                     : tarn_complain(complaint, FAILED_WORK, "no memory to write a PNG");
    png_destroy_write_struct(&png, &info);
    return good;
}
#else
bool tarn_png_write(tarn_output *output, const tarn_view *picture, tarn_complaint *complaint)
{
    (void)output, (void)picture;
    return tarn_complain(complaint, FAILED_WORK,
                         "this tarn was built without libpng; write .pgm, .ppm, .pam or .npy");
}
#endif
