/* Results of a block: values, saved winners, indices, tangents. See dense.h. */
#include "dense.h"

/* Writes `rows` rows of results, from `slot` of the block on, one behind the other. The first of
 * them is `row` of the place `at`. */
typedef void write_rows(dense *d, const dense_place *at, int64_t row, int64_t slot, int64_t rows,
                        char *to);

static void correct_codes(dense *d);
static write_rows write_values, write_means, write_saved, look_up_values, look_up_others;
static void write_all(dense *d, int written, write_rows *write, bool one_by_one);
static void write_empty(dense *d);

void tarn_dense_write(dense *d)
{
    if (d->codes && (d->lo > 0 || (d->level_taps && d->rows.lo > 0)))
        correct_codes(d);
    bool is_there = d->to_y || winners_go_to_y(d);
    if (d->at.base[d->written[WRITE_Y]] && !is_there) {
        if (d->sums)
            write_all(d, WRITE_Y, write_means, !d->one_divisor);
        else
            write_all(d, WRITE_Y, d->look_up ? look_up_values : write_values, d->look_up);
    }
    if (!d->sums && d->at.base[OPERAND_SAVED])
        write_all(d, WRITE_SAVED, write_saved, false);
    if (!d->sums && d->at.base[d->written[WRITE_OTHER]])
        write_all(d, WRITE_OTHER, look_up_others, true);
    if (d->has_empty && !d->sums)
        write_empty(d);
}

/* ---- Where results go ----------------------------------------------------------------------- */

static int64_t row_step(const dense *d, int written)
{
    return d->row_axis < 0 ? 0 : d->p->stride[d->written[written]][d->row_axis];
}

static int64_t bytes_of(const dense *d, int written)
{
    return d->p->element_bytes[d->written[written]];
}

char *tarn_dense_output(const dense *d, const dense_place *at, int written, int64_t row)
{
    int operand = d->written[written];
    const int64_t *stride = d->p->stride[operand];
    int64_t offset = d->o * stride[d->p->spatial - 1] + row * row_step(d, written);
    for (int a = 0; a < d->row_axis; a++)
        offset += at->o[a] * stride[a];
    return at->base[operand] + offset * d->p->element_bytes[operand];
}

/* A row whose pixels do not follow each other, or that goes past the caches. */
static void write_apart(dense *d, int written, const dense_place *at, int64_t row, int64_t slot,
                        char *to, write_rows *write)
{
    int64_t stride = d->p->stride[d->written[written]][d->p->spatial - 1];
    int64_t bytes = bytes_of(d, written), pixel = d->channels * bytes;
    write(d, at, row, slot, 1, d->gathered);
    if (stride == d->channels)
        d->ops->copy_past(to, d->gathered, d->outputs * pixel);
    else
        for (int64_t o = 0; o < d->outputs; o++)
            memcpy(to + o * stride * bytes, d->gathered + o * pixel, (size_t)pixel);
}

/* All rows of the block, as many at once as follow each other in memory. */
static void write_all(dense *d, int written, write_rows *write, bool one_by_one)
{
    int64_t n = d->outputs * d->channels, bytes = n * bytes_of(d, written), rows = d->block_rows;
    bool apart =
        (d->past_caches && written == WRITE_Y) ||
        (d->p->stride[d->written[written]][d->p->spatial - 1] != d->channels && d->outputs > 1);
    bool together = !one_by_one && !apart && (rows == 1 || row_step(d, written) == n);
    int64_t some = together ? rows : 1, first = 0, run = 0;
    dense_place at = d->at;
    char *run_to = NULL;
    for (int64_t item = 0; item < d->items; item++) {
        for (int64_t r = 0; r < rows; r += some) {
            char *to = tarn_dense_output(d, &at, written, d->row + r);
            int64_t slot = item * rows + r;
            if (apart)
                write_apart(d, written, &at, d->row + r, slot, to, write);
            else if (!together)
                write(d, &at, d->row + r, slot, 1, to);
            else if (run > 0 && to == run_to + run * bytes)
                run += some;
            else {
                if (run > 0)
                    write(d, &at, d->row, first, run, run_to);
                run_to = to;
                first = slot;
                run = some;
            }
        }
        tarn_dense_next(d, &at);
    }
    if (run > 0)
        write(d, &at, d->row, first, run, run_to);
}

static const char *result_values(const dense *d, int64_t slot)
{
    return d->result.values + slot * d->outputs * d->channels * d->bytes;
}

static const char *result_codes(const dense *d, int64_t slot)
{
    return d->result.codes + slot * d->outputs * d->channels * d->bytes;
}

/* ---- Values --------------------------------------------------------------------------------- */

static void write_values(dense *d, const dense_place *at, int64_t row, int64_t slot, int64_t rows,
                         char *to)
{
    (void)at, (void)row;
    int64_t n = rows * d->outputs * d->channels;
    if (d->native)
        memcpy(to, result_values(d, slot), (size_t)(n * d->bytes));
    else
        d->ops->unkey[d->key](to, result_values(d, slot), d->flip, n);
}

/* [A2] Taps of a window that count, on one axis. A window that has none is divided by 1: its sum
 * is 0 [A3]. */
static int64_t counted_taps(const dense *d, const tarn_axis *axis, int64_t o)
{
    tarn_span taps = window_taps(axis, o);
    return d->p->count_include_pad ? padded_taps(axis, o) : taps.hi - taps.lo;
}

static void set_divisor(const dense *d, int64_t k, int64_t divisor)
{
    float single = (float)max_i64(divisor, 1);
    double wide = (double)max_i64(divisor, 1);
    memcpy(d->divisors + k * d->bytes, d->core == CORE_F32 ? (void *)&single : (void *)&wide,
           (size_t)d->bytes);
}

/* Of the outputs of a row, or of all. */
static void set_divisors(dense *d, const dense_place *at, int64_t row)
{
    int64_t counted = counted_taps(d, &d->rows, row);
    for (int a = 0; a < d->row_axis; a++)
        counted *= counted_taps(d, &d->p->axis[a], at->o[a]);
    if (d->divisors_o == d->o && (d->one_divisor || d->divisors_counted == counted))
        return;
    d->divisors_o = d->o;
    d->divisors_counted = counted;
    if (d->one_divisor) {
        set_divisor(d, 0, d->p->divisor > 0 ? d->p->divisor : d->taps);
        return;
    }
    for (int64_t o = 0; o < d->outputs; o++)
        for (int64_t c = 0; c < d->channels; c++)
            set_divisor(d, o * d->channels + c, counted * counted_taps(d, d->columns, d->o + o));
}

static void write_means(dense *d, const dense_place *at, int64_t row, int64_t slot, int64_t rows,
                        char *to)
{
    int64_t n = rows * d->outputs * d->channels;
    const void *sums = result_values(d, slot);
    set_divisors(d, at, row);
    if (d->core == CORE_F32)
        d->ops->means_f32[d->p->dtype](to, sums, (const float *)(const void *)d->divisors,
                                       !d->one_divisor, n);
    else
        d->ops->means_f64[d->p->dtype](to, sums, (const double *)(const void *)d->divisors,
                                       !d->one_divisor, n);
}

/* ---- Winners -------------------------------------------------------------------------------- */

static void write_saved(dense *d, const dense_place *at, int64_t row, int64_t slot, int64_t rows,
                        char *to)
{
    static const int8_t kind[] = {[1] = 0, [4] = 1, [8] = 2};
    (void)at, (void)row;
    d->ops->save_codes[core_width(d->core)][kind[bytes_of(d, WRITE_SAVED)]](
        to, result_codes(d, slot), rows * d->outputs * d->channels);
}

static inline __attribute__((always_inline)) uint64_t tap_of_code(const char *code, int64_t bytes)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t number;
    switch (bytes) {
    case 1:
        memcpy(&one, code, 1), number = one;
        break;
    case 2:
        memcpy(&two, code, 2), number = two;
        break;
    case 4:
        memcpy(&four, code, 4), number = four;
        break;
    default:
        memcpy(&number, code, 8);
        break;
    }
    return number ^ UINT64_C(1) << (8 * bytes - 1);
}

/* Padding is the least key, too, and may come before taps that are. A window whose value is that
 * is won by its first tap. */
static void correct_codes(dense *d)
{
    int64_t n = d->outputs * d->channels, outer = 0, bytes = d->bytes;
    for (int a = 0; a < d->row_axis; a++) /* of several items, the same */
        outer = outer * d->p->axis[a].kernel + window_taps(&d->p->axis[a], d->at.o[a]).lo;
    for (int64_t r = 0; r < d->block_rows; r++) {
        int64_t above = window_taps(&d->rows, d->row + r).lo, before;
        uint64_t row = (uint64_t)((outer * d->rows.kernel + above) * d->columns->kernel) ^
                       UINT64_C(1) << (8 * bytes - 1);
        for (int64_t o = 0; o < d->outputs; o++) {
            before = window_taps(d->columns, d->o + o).lo;
            if (before == 0 && !(d->level_taps && above > 0))
                break;
            uint64_t tap = row + (uint64_t)before;
            for (int64_t item = 0; item < d->items; item++)
                for (int64_t c = o * d->channels; c < (o + 1) * d->channels; c++) {
                    int64_t at = ((item * d->block_rows + r) * n + c) * bytes;
                    if (!memcmp(d->result.values + at, d->pad, (size_t)bytes))
                        memcpy(d->result.codes + at, &tap, (size_t)bytes);
                }
        }
    }
}

/* ---- Places of winners ---------------------------------------------------------------------- */

static bool is_empty(const tarn_axis *axis, int64_t o)
{
    tarn_span taps = window_taps(axis, o);
    return taps.lo >= taps.hi;
}

/* From tap 0 of a window to another, as a place. */
static uint64_t place_of_tap(const dense *d, int which, int64_t tap)
{
    uint64_t place = 0;
    for (int a = d->p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &d->p->axis[a];
        place += (uint64_t)(tap % axis->kernel * axis->dilation) * d->place_step[which][a];
        tap /= axis->kernel;
    }
    return place;
}

void tarn_dense_set_places(dense *d)
{
    for (int which = 0; which < PLACES && d->taps <= MOST_PLACES; which++)
        for (int64_t tap = 0; tap < d->taps; tap++)
            d->places[which][tap] = place_of_tap(d, which, tap);
}

/* For each output of a row what lies at the winner's place, an element of x or dx; or the place
 * itself, where there is no `from`. Windows without a tap are write_empty()'s. */
static inline __attribute__((always_inline)) void look_up_row(const dense *d, const char *codes,
                                                              int64_t code_bytes, int which,
                                                              uint64_t place, const char *from,
                                                              char *to, int64_t bytes)
{
    const uint64_t *table = d->taps <= MOST_PLACES ? d->places[which] : NULL;
    const uint64_t step = (uint64_t)d->columns->stride * d->place_step[which][d->p->spatial - 1];
    const int64_t n = d->outputs, channels = d->channels;
    if (table && channels == 1 && !d->has_empty) {
        for (int64_t o = 0; o < n; o++) {
            uint64_t at =
                place + (uint64_t)o * step + table[tap_of_code(codes + o * code_bytes, code_bytes)];
            if (from)
                memcpy(to + o * bytes, from + (int64_t)at, (size_t)bytes);
            else
                memcpy(to + o * bytes, &at, sizeof at);
        }
        return;
    }
    for (int64_t k = 0; k < n * channels; k++) {
        int64_t o = k / channels, c = k % channels;
        uint64_t tap = tap_of_code(codes + k * code_bytes, code_bytes);
        if (d->has_empty && is_empty(d->columns, d->o + o))
            continue;
        uint64_t at = place + (uint64_t)o * step +
                      (table ? table[tap] : place_of_tap(d, which, (int64_t)tap));
        if (from)
            memcpy(to + k * bytes, from + (int64_t)at + c * bytes, (size_t)bytes);
        else
            memcpy(to + k * bytes, &at, sizeof at);
    }
}

#define LOOK_UP(size)                                                                              \
    case size:                                                                                     \
        switch (d->bytes) {                                                                        \
        case 1:                                                                                    \
            look_up_row(d, codes, 1, which, place, from, to, size);                                \
            break;                                                                                 \
        case 2:                                                                                    \
            look_up_row(d, codes, 2, which, place, from, to, size);                                \
            break;                                                                                 \
        case 4:                                                                                    \
            look_up_row(d, codes, 4, which, place, from, to, size);                                \
            break;                                                                                 \
        default:                                                                                   \
            look_up_row(d, codes, 8, which, place, from, to, size);                                \
            break;                                                                                 \
        }                                                                                          \
        break;

static void look_up(const dense *d, const dense_place *at, int64_t row, int64_t slot, char *to,
                    int written, int which, const char *from)
{
    const char *codes = result_codes(d, slot);
    uint64_t place = 0;
    for (int a = 0; a < d->p->spatial; a++) {
        int64_t o = a < d->row_axis ? at->o[a] : a == d->row_axis ? row : d->o;
        place += (uint64_t)window_taps(&d->p->axis[a], o).first * d->place_step[which][a];
        if (a < d->p->spatial - 1 && is_empty(&d->p->axis[a], o))
            return;
    }
    switch (bytes_of(d, written)) {
        LOOK_UP(1)
        LOOK_UP(2)
        LOOK_UP(4)
        LOOK_UP(8)
    }
}

static void look_up_values(dense *d, const dense_place *at, int64_t row, int64_t slot, int64_t rows,
                           char *to)
{
    (void)rows;
    look_up(d, at, row, slot, to, WRITE_Y, PLACE_IN_X, at->base[TARN_X]);
}

static void look_up_others(dense *d, const dense_place *at, int64_t row, int64_t slot, int64_t rows,
                           char *to)
{
    (void)rows;
    look_up(d, at, row, slot, to, WRITE_OTHER, PLACE_OTHER,
            d->written[WRITE_OTHER] == TARN_DY ? at->base[TARN_DX] : NULL);
}

/* ---- Windows without a tap ------------------------------------------------------------------ */

/* [M4] Value and tangent 0; no winner, index -1: all bits set. */
static void clear_output(const dense *d, const dense_place *at, int64_t row, int64_t o)
{
    for (int k = 0; k < WRITES; k++) {
        int operand = d->written[k], value = operand == TARN_Y || operand == TARN_DY ? 0 : 0xff;
        int64_t bytes = bytes_of(d, k), stride = d->p->stride[operand][d->p->spatial - 1];
        if (at->base[operand])
            memset(tarn_dense_output(d, at, k, row) + o * stride * bytes, value,
                   (size_t)(d->channels * bytes));
    }
}

static void write_empty(dense *d)
{
    dense_place at = d->at;
    for (int64_t item = 0; item < d->items; item++) {
        bool none = false;
        for (int a = 0; a < d->row_axis; a++)
            none |= is_empty(&d->p->axis[a], at.o[a]);
        for (int64_t r = d->row; r < d->row + d->block_rows; r++)
            for (int64_t o = 0; o < d->outputs; o++)
                if (none || is_empty(&d->rows, r) || is_empty(d->columns, d->o + o))
                    clear_output(d, &at, r, o);
        tarn_dense_next(d, &at);
    }
}
