#include "result.h"
#include "../src/checked.h"
#include "../src/io/convert.h"

#include <string.h>

/* ---- Pictures ------------------------------------------------------------------------------ */

/* A picture is one plane, or one for each channel; leading axes of size 1 do not count. */
static bool check_picture_shape(const tool_result *r, tool_option_id option,
                                tarn_complaint *complaint)
{
    int64_t planes = 1;
    int axes = 0;
    for (int a = 0; a < r->view.rank - 2; a++) {
        planes *= r->view.shape[a];
        axes += r->view.shape[a] > 1;
    }
    return (r->spatial == 2 && axes <= 1 && planes >= 1 && planes <= 4) ||
           tool_complain_option(complaint, option,
                                "a picture has two spatial axes and 1 to 4 channels; this result "
                                "does not: write .npy");
}

/* The channel axis goes last, as pictures have it. */
static tarn_view picture_view(const tool_result *r)
{
    const tarn_view *v = &r->view;
    tarn_view plane = {.data = r->whole.data, .dtype = v->dtype, .rank = 2};
    for (int a = 0; a < 2; a++) {
        plane.shape[a] = v->shape[v->rank - 2 + a];
        plane.strides[a] = v->strides[v->rank - 2 + a];
    }
    for (int a = 0; a < v->rank - 2; a++)
        if (v->shape[a] > 1) {
            plane.rank = 3;
            plane.shape[2] = v->shape[a];
            plane.strides[2] = v->strides[a];
        }
    return plane;
}

/* Pictures hold u8 and u16; other numbers go back to the type of the picture they came from. */
static bool choose_samples(tool_result *r, const tool_target *target, tarn_complaint *complaint)
{
    const tarn_array *like = target->like;
    bool fits = r->view.dtype == TARN_U8 || r->view.dtype == TARN_U16;
    if (!fits && !like)
        return tool_complain_option(
            complaint, target->option, "pictures hold u8 and u16, not %s: write .npy%s",
            tarn_dtype_name(r->view.dtype), target->converts ? ", or say --dtype u8" : "");
    r->samples = like && !fits ? like->view.dtype : r->view.dtype;
    r->white = like && like->view.dtype == r->samples ? like->white
               : r->samples == TARN_U8                ? UINT8_MAX
                                                      : UINT16_MAX;
    tarn_view picture = picture_view(r);
    return tarn_picture_fits(r->kind, &picture, r->white, complaint);
}

/* Values above white do not exist in pictures; PNG knows only white of all bits set. */
static void fit_to_white(const tool_result *r, const tarn_view *picture, size_t count)
{
    unsigned char *bytes = picture->data;
    uint16_t *words = picture->data;
    uint32_t white = (uint32_t)r->white, full = r->samples == TARN_U8 ? UINT8_MAX : UINT16_MAX;
    uint32_t target = r->kind == TARN_FILE_PNG ? full : white;
    for (size_t k = 0; k < count && white < full; k++) {
        uint32_t sample = r->samples == TARN_U8 ? bytes[k] : words[k];
        sample = sample > white ? white : sample;
        sample = (uint32_t)(((uint64_t)sample * target + white / 2) / white);
        if (r->samples == TARN_U8)
            bytes[k] = (unsigned char)sample;
        else
            words[k] = (uint16_t)sample;
    }
}

static bool encode_picture(tool_result *r, tarn_complaint *complaint)
{
    tarn_view from = picture_view(r);
    tarn_view picture = tarn_view_dense(NULL, r->samples, from.rank, from.shape);
    size_t bytes = tarn_view_bytes(&picture);
    tarn_region samples = {0};
    if (!tarn_region_create(bytes, r->memory, &samples, complaint))
        return false;
    picture.data = samples.data;
    tarn_convert(&from, false, &picture);
    fit_to_white(r, &picture, bytes / tarn_dtype_size(r->samples));
    bool good = tarn_picture_write(&r->output, r->kind, &picture, r->white, complaint);
    tarn_region_close(&samples);
    return good;
}

/* ---- Text ---------------------------------------------------------------------------------- */

enum { SMALL = 1000 }; /* numbers that a terminal gets without being asked, as NumPy has it */

static bool encode_text(tool_result *r, tarn_complaint *complaint)
{
    tarn_view from = r->view;
    from.data = r->whole.data;
    from = tool_file_view(&from, r->spatial, r->channels_last);
    tarn_view numbers = tarn_view_dense(NULL, from.dtype, from.rank, from.shape);
    tarn_region region = {0};
    if (!tarn_region_create(tarn_view_bytes(&numbers), r->memory, &region, complaint))
        return false;
    numbers.data = region.data;
    tarn_convert(&from, false, &numbers);
    bool good = tool_text_write(&r->output, r->name, &numbers, r->channels_last, complaint);
    tarn_region_close(&region);
    return good;
}

bool tool_refuse_terminal(tool_option_id option, const char *path, tarn_complaint *complaint)
{
    return !tarn_output_is_terminal(path) ||
           tool_complain_option(complaint, option,
                                "binary is not written to a terminal: name a file, or use a pipe");
}

/* ---- All kinds ----------------------------------------------------------------------------- */

static bool choose_kind(const tool_target *target, int64_t elements, tarn_file_kind *kind,
                        tarn_complaint *complaint)
{
    bool named = strchr(target->path, '.') && !tarn_output_is_stream(target->path);
    *kind = tarn_file_kind_of(target->path);
    if (target->text && named && *kind != TARN_FILE_TEXT && *kind != TARN_FILE_UNKNOWN)
        return tool_complain_option(complaint, target->option,
                                    "'%.200s' would not hold text: say FILE.txt, or no --text",
                                    target->path);
    if (target->text)
        *kind = TARN_FILE_TEXT;
    if (*kind == TARN_FILE_UNKNOWN)
        return tool_complain_option(
            complaint, target->option,
            "'%.200s' has no extension that tarn writes: .npy .png .pbm .pgm "
            ".ppm .pnm .pam .txt",
            target->path);
    if (*kind == TARN_FILE_TEXT || !tarn_output_is_terminal(target->path))
        return true;
    *kind = TARN_FILE_TEXT;
    return elements <= SMALL ||
           tool_complain_option(complaint, target->option,
                                "%lld numbers are too many for a terminal: say -o FILE, or --text",
                                (long long)elements);
}

static bool open_npy(tool_result *r, const tool_target *target, int64_t bytes,
                     tarn_complaint *complaint)
{
    char header[NPY_HEADER];
    tarn_view file = tool_file_view(&r->view, r->spatial, target->channels_last);
    bool said = r->channels_last && tarn_output_is_stream(target->path);
    size_t length = tarn_npy_header(&file, target->fortran, said, header);
    if (!checked_add(bytes, (int64_t)length, &bytes))
        bytes = INT64_MAX;
    return tarn_output_open(target->path, bytes, &r->output, complaint) &&
           tarn_output_write(&r->output, header, length, complaint);
}

bool tool_result_open(tool_result *result, const tool_target *target, const tarn_view *view,
                      int spatial, tarn_complaint *complaint)
{
    int64_t bytes;
    *result = (tool_result){.view = *view, .spatial = spatial, .memory = target->memory};
    result->name = target->name;
    result->channels_last = target->channels_last && spatial > 0 && view->rank > spatial;
    tarn_output_none(&result->output);
    if (!tarn_count_bytes(view->rank, view->shape, view->dtype, &bytes))
        return tarn_complain(complaint, BAD_USAGE, "the result does not fit 63 bits");
    if (!choose_kind(target, bytes / (int64_t)tarn_dtype_size(view->dtype), &result->kind,
                     complaint))
        return false;
    if (result->kind == TARN_FILE_NPY)
        return open_npy(result, target, bytes, complaint);
    bool text = result->kind == TARN_FILE_TEXT;
    return (text || (check_picture_shape(result, target->option, complaint) &&
                     choose_samples(result, target, complaint))) &&
           tarn_output_open(target->path, 0, &result->output, complaint) &&
           tarn_region_create((size_t)bytes, target->memory, &result->whole, complaint);
}

bool tool_result_put(tool_result *result, const void *data, size_t size, tarn_complaint *complaint)
{
    if (result->kind == TARN_FILE_NPY)
        return tarn_output_write(&result->output, data, size, complaint);
    if (size > result->whole.size - result->used)
        return tarn_complain(complaint, FAILED_WORK, "more bytes came than the result has");
    memcpy(result->whole.data + result->used, data, size);
    result->used += size;
    return true;
}

bool tool_result_commit(tool_result *result, tarn_complaint *complaint)
{
    bool (*encode)(tool_result *, tarn_complaint *) =
        result->kind == TARN_FILE_TEXT ? encode_text : encode_picture;
    return (result->kind == TARN_FILE_NPY || encode(result, complaint)) &&
           tarn_output_commit(&result->output, complaint);
}

void tool_result_close(tool_result *result)
{
    tarn_output_abandon(&result->output);
    tarn_region_close(&result->whole);
}
