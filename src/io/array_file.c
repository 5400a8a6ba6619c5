#include "array_file.h"
#include "../checked.h"

#include <string.h>

bool tarn_count_bytes(int rank, const int64_t *shape, tarn_dtype dtype, int64_t *bytes)
{
    bool empty = false;
    *bytes = (int64_t)tarn_dtype_size(dtype);
    for (int a = 0; a < rank; a++) {
        empty = empty || shape[a] == 0;
        if (!checked_mul(*bytes, max_i64(shape[a], 1), bytes))
            return false;
    }
    *bytes = empty ? 0 : *bytes;
    return true;
}

bool tarn_picture_room(int64_t rows, int64_t columns, int channels, int64_t white, int64_t memory,
                       tarn_array *array, tarn_complaint *complaint)
{
    const int64_t shape[3] = {rows, columns, channels};
    tarn_dtype dtype = white > UINT8_MAX ? TARN_U16 : TARN_U8;
    int64_t bytes;
    if (rows < 1 || columns < 1)
        return tarn_complain(complaint, FAILED_WORK, "a picture of %lld x %lld pixels has no pixel",
                             (long long)columns, (long long)rows);
    if (!tarn_count_bytes(3, shape, dtype, &bytes))
        return tarn_complain(complaint, FAILED_WORK,
                             "a picture of %lld x %lld pixels does not fit 63 bits",
                             (long long)columns, (long long)rows);
    if (!tarn_region_create((size_t)bytes, memory, &array->decoded, complaint))
        return false;
    array->view = tarn_view_dense(array->decoded.data, dtype, channels > 1 ? 3 : 2, shape);
    array->white = white;
    return true;
}

static bool begins(const tarn_region *file, const char *magic, size_t length)
{
    return file->size >= length && memcmp(file->data, magic, length) == 0;
}

/* Files that users have and tarn does not read, by their first bytes. */
static const struct {
    const char *bytes, *name, *instead;
} strangers[] = {{"\xff\xd8\xff", "JPEG", "PNG"},
                 {"GIF8", "GIF", "PNG"},
                 {"II*", "TIFF", "PNG, or .npy by numpy.save"},
                 {"\x89HDF", "HDF5 file", ".npy by numpy.save"},
                 {"%PDF", "PDF", "PNG"}};

bool tarn_array_decode(const char *member, int64_t memory, tarn_array *array,
                       tarn_complaint *complaint)
{
    const tarn_region *file = &array->file;
    const tarn_bytes whole = {file->data, file->size, 0};
    bool zip = begins(file, "PK\3\4", 4) || begins(file, "PK\5\6", 4);
    if (zip)
        return tarn_npz_decode(member, memory, array, complaint);
    if (member)
        return tarn_complain_at(complaint, 0, "has no member '%s': it is not an .npz file", member);
    if (begins(file, "\x93NUMPY", 6))
        return tarn_npy_decode(whole, array, complaint);
    if (begins(file, "\x89PNG", 4))
        return tarn_png_decode(memory, array, complaint);
    if (file->size >= 2 && file->data[0] == 'P' && file->data[1] >= '1' && file->data[1] <= '7')
        return tarn_pnm_decode(memory, array, complaint);
    for (size_t k = 0; k < sizeof strangers / sizeof *strangers; k++)
        if (begins(file, strangers[k].bytes, strlen(strangers[k].bytes)))
            return tarn_complain_at(complaint, 0, "is a %s, which tarn does not read: make it a %s",
                                    strangers[k].name, strangers[k].instead);
    return file->size == 0
               ? tarn_complain_at(complaint, 0, "is empty; expected .npy, .npz, PNG or PNM")
               : tarn_complain_at(complaint, 0, "is not .npy, .npz, PNG or PNM (first byte 0x%02x)",
                                  file->data[0]);
}

/* "file.npz:name": the length of the file's name; all of it if there is no member. */
static size_t file_name_length(const char *path)
{
    const char *found = NULL;
    for (const char *at = strstr(path, ".npz:"); at; at = strstr(at + 1, ".npz:"))
        found = at;
    return found ? (size_t)(found - path) + 4 : strlen(path);
}

bool tarn_array_open(const char *path, int64_t memory, tarn_array *array, tarn_complaint *complaint)
{
    char name[4096];
    size_t length = file_name_length(path);
    *array = (tarn_array){0};
    if (length >= sizeof name) {
        tarn_complaint_file(complaint, path);
        return tarn_complain(complaint, FAILED_WORK, "the name has more than %zu bytes",
                             sizeof name - 1);
    }
    memcpy(name, path, length);
    name[length] = '\0';
    const char *member = path[length] == ':' ? path + length + 1 : NULL;
    if (tarn_region_open(name, memory, &array->file, complaint) &&
        tarn_array_decode(member, memory, array, complaint))
        return true;
    tarn_array_close(array);
    return false;
}

void tarn_array_close(tarn_array *array)
{
    tarn_region_close(&array->decoded);
    tarn_region_close(&array->file);
    *array = (tarn_array){0};
}
