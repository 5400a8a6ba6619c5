/* PNG, by libpng: grey, colour and alpha, 8 and 16 bits. Palettes become colours, 1, 2 and 4
 * bits 8, a transparent colour an alpha channel. */
#include "array_file.h"

#ifdef TARN_PNG
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const tarn_region *file;
    size_t at;
    tarn_complaint *complaint;
    png_structp png;
    png_infop info;
    int passes; /* over the picture: more than one if it is interlaced */
} reader;

static void on_error(png_structp png, png_const_charp message)
{
    reader *r = png_get_error_ptr(png);
    tarn_complain_at(r->complaint, (int64_t)r->at, "is not a good PNG: %s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void give_bytes(png_structp png, png_bytep data, size_t count)
{
    reader *r = png_get_io_ptr(png);
    if (count > r->file->size - r->at)
        png_error(png, "it is truncated");
    memcpy(data, r->file->data + r->at, count);
    r->at += count;
}

static bool is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

/* Bytes of a row of plain samples. libpng says it, too, but when it has made room for them. */
static uint64_t longest_row(const reader *r)
{
    bool palette = png_get_color_type(r->png, r->info) == PNG_COLOR_TYPE_PALETTE;
    uint64_t channels = palette ? 3 : png_get_channels(r->png, r->info);
    channels += png_get_valid(r->png, r->info, PNG_INFO_tRNS) != 0;
    return png_get_image_width(r->png, r->info) * channels *
           (png_get_bit_depth(r->png, r->info) == 16 ? 2 : 1);
}

/* libpng holds a row and the one before it, whatever --memory says. Rows of a megabyte are
 * nothing to it. */
static bool holds_rows(const reader *r, int64_t memory)
{
    enum { ALWAYS = 1 << 20 };
    uint64_t row = longest_row(r);
    return row <= ALWAYS || 2 * row <= (uint64_t)memory ||
           tarn_complain(r->complaint, FAILED_WORK,
                         "has rows of %llu bytes, of which two are held in memory: --memory "
                         "is %lld bytes",
                         (unsigned long long)row, (long long)memory);
}

/* Asks libpng for plain samples: whole bytes, in the machine's order, no palette. */
static void ask_for_plain_samples(reader *r)
{
    png_set_expand(r->png);
    if (is_little_endian())
        png_set_swap(r->png);
    r->passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

/* Deflate packs at most 1032 to 1: what a header claims beyond that is not there, and libpng
 * need not make room for a row of it. */
static bool is_plausible(const reader *r)
{
    double bytes = /* which 64 bits may not hold */
        (double)png_get_rowbytes(r->png, r->info) * png_get_image_height(r->png, r->info);
    return bytes / 1032 <= (double)r->file->size ||
           tarn_complain_at(r->complaint, (int64_t)r->file->size,
                            "is truncated: %u x %u pixels do not fit its %zu bytes",
                            png_get_image_width(r->png, r->info),
                            png_get_image_height(r->png, r->info), r->file->size);
}

static bool make_room(const reader *r, int64_t memory, tarn_array *array)
{
    bool wide = png_get_bit_depth(r->png, r->info) == 16;
    return tarn_picture_room(png_get_image_height(r->png, r->info),
                             png_get_image_width(r->png, r->info),
                             png_get_channels(r->png, r->info), wide ? UINT16_MAX : UINT8_MAX,
                             memory, array, r->complaint);
}

/* Row by row: pointers to all rows, which libpng would take, are more than the pixels of a
 * narrow picture. Pages that are written leave memory. */
static void read_rows(const reader *r, const tarn_region *pixels)
{
    enum { AT_ONCE = 1 << 22 };
    size_t row = png_get_rowbytes(r->png, r->info);
    for (int pass = 0; pass < r->passes; pass++)
        for (size_t at = 0, kept = 0; at < pixels->size; at += row) {
            png_read_row(r->png, pixels->data + at, NULL);
            if (at - kept >= AT_ONCE) {
                tarn_region_is_done(pixels, kept, at);
                kept = at;
            }
        }
}

/* Everything that libpng may jump out of. Texts, profiles and other extras are not unpacked: they
 * may take any time and memory. */
static bool decode(reader *r, int64_t memory, tarn_array *array)
{
    enum { EXTRAS = -1 }; /* libpng's number for all chunks but pixels, palette and tRNS */
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_read_fn(r->png, r, give_bytes);
    png_set_user_limits(r->png, 0x7fffffff, 0x7fffffff);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, EXTRAS);
    png_read_info(r->png, r->info);
    if (!is_plausible(r) || !holds_rows(r, memory))
        return false;
    ask_for_plain_samples(r);
    if (!make_room(r, memory, array))
        return false;
    read_rows(r, &array->decoded);
    png_read_end(r->png, NULL);
    return true;
}

bool tarn_png_decode(int64_t memory, tarn_array *array, tarn_complaint *complaint)
{
    reader r = {.file = &array->file, .complaint = complaint};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    bool good = r.info ? decode(&r, memory, array)
                       : tarn_complain(complaint, FAILED_WORK, "no memory to read a PNG");
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return good;
}
#else
bool tarn_png_decode(int64_t memory, tarn_array *array, tarn_complaint *complaint)
{
    (void)memory, (void)array;
    return tarn_complain(complaint, FAILED_WORK,
                         "is a PNG, and this tarn was built without libpng; use PNM or .npy");
}
#endif
