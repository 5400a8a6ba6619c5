/* Looks winners up: indices, tangents and values, from the numbers of taps. */
#include "places.h"

enum { SOME = 128 }; /* winners at a time */

static void look_up_run(const tap_places *places, const place_look_up *l, const int64_t *taps,
                        int64_t n, uint64_t place, uint64_t step, char *to);

void tarn_look_up(const tap_places *places, const place_look_up *l)
{
    enum { FEW = 8 };
    const int last = places->p->spatial - 1;
    const tarn_axis *axis = &places->p->axis[last];
    const int64_t code = INT64_C(1) << l->width, row = min_i64(l->channels, SOME);
    const uint64_t column = places->step[l->which][last];
    const bool vectors = l->ops->indices && !l->from && places->rule.axes > 0 &&
                         axis->stride < INT32_MAX / SOME && (!axis->adaptive || l->channels >= FEW);
    const bool whole = !axis->adaptive && (vectors || l->channels == 1); /* windows in one run */
    const int64_t windows = vectors && axis->adaptive ? 1 : SOME / row;
    const uint64_t channel = l->from ? (uint64_t)l->bytes : 0,
                   step = whole ? (uint64_t)axis->stride * column : channel;
    union {
        int64_t wide[SOME];
        int32_t narrow[SOME];
    } taps;
    for (int64_t o = 0; o < l->windows; o += windows)
        for (int64_t c = 0; c < l->channels; c += row) {
            const int64_t some = min_i64(windows, l->windows - o);
            const int64_t each = min_i64(row, l->channels - c);
            const int64_t first = o * l->channels + c, n = some * each, run = whole ? n : each;
            l->code_ops->save_codes[l->width][vectors ? 1 : 2](&taps, l->codes + first * code, n);
            for (int64_t k = 0; k < n; k += run) {
                const uint64_t place =
                    l->place + (uint64_t)window_taps(axis, l->o + o + k / run).first * column;
                char *to = l->to + (first + k) * l->bytes;
                if (vectors)
                    l->ops->indices((int64_t *)(void *)to, taps.narrow, &places->rule, place, row,
                                    (uint32_t)step, n);
                else
                    look_up_run(places, l, taps.wide + k, run, place + (uint64_t)c * channel, step,
                                to);
            }
        }
}

/* Places move by `step`. Of windows without a tap nothing is written. */
static void look_up_run(const tap_places *places, const place_look_up *l, const int64_t *taps,
                        int64_t n, uint64_t place, uint64_t step, char *to)
{
    const uint64_t *table = places->of_tap[l->which], all = (uint64_t)places->taps;
    const char *from = l->from;
#define EACH_TAP(size, offset, COPY)                                                               \
    for (int64_t k = 0; k < n; k++, place += step)                                                 \
        if ((uint64_t)taps[k] < all) {                                                             \
            const uint64_t at = place + (offset);                                                  \
            memcpy(to + k * (size), COPY, (size_t)(size));                                         \
        }
    if (!places->listed) {
        EACH_TAP(l->bytes, place_of_tap(places, l->which, taps[k]),
                 from ? from + (int64_t)at : (const char *)&at)
    } else if (!from) {
        EACH_TAP(8, table[taps[k]], &at)
    } else if (l->bytes == 1) {
        EACH_TAP(1, table[taps[k]], from + (int64_t)at)
    } else if (l->bytes == 2) {
        EACH_TAP(2, table[taps[k]], from + (int64_t)at)
    } else if (l->bytes == 4) {
        EACH_TAP(4, table[taps[k]], from + (int64_t)at)
    } else {
        EACH_TAP(8, table[taps[k]], from + (int64_t)at)
    }
#undef EACH_TAP
}

/* An index is tap 0's and, on each axis, a multiple of the tap's number there: of the number of the
 * tap, of its quotient by the taps of the last axis, ..., all of which fit 32 bits. */
static void set_rule(tap_places *places)
{
    const tarn_problem *p = places->p;
    uint64_t before = 0;
    double reach = 0; /* of a window */
    places->rule.axes = 0;
    for (int a = p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &p->axis[a];
        const int axes = p->spatial - 1 - a;
        const uint64_t cells =
            places->step[PLACE_OTHER][a] * (uint64_t)(axis->adaptive ? 1 : axis->dilation);
        reach += (double)axis->kernel * (axis->adaptive ? 1 : (double)axis->dilation) *
                 (double)places->step[PLACE_OTHER][a];
        if (reach > INT32_MAX || axis->kernel > INDEX_ONE / places->taps)
            return;
        places->rule.weight[axes] = (uint32_t)(cells - before);
        places->rule.inverse[axes] = (uint32_t)((INDEX_ONE + axis->kernel - 1) / axis->kernel);
        before = cells * (uint64_t)axis->kernel;
    }
    places->rule.axes = p->spatial;
}

void tarn_list_places(tap_places *places, bool indices)
{
    places->taps = 1;
    for (int a = 0; a < places->p->spatial; a++)
        places->taps *= places->p->axis[a].kernel;
    places->listed = false;
    places->rule.axes = 0;
    if (indices)
        set_rule(places);
    for (int which = 0; which < PLACES && places->taps <= MOST_PLACED_TAPS; which++)
        for (int64_t tap = 0; tap < places->taps; tap++)
            places->of_tap[which][tap] = place_of_tap(places, which, tap);
    places->listed = places->taps <= MOST_PLACED_TAPS;
}
