/* Random problems as text, and hostile values for them: the same on every machine, so no expression
 * draws twice: compilers choose the order. */
#ifndef TARN_RANDOM_PROBLEM_H
#define TARN_RANDOM_PROBLEM_H

#include "check.h"

/* The lower bytes of `bits`, as a number of that size. */
static void set_element(void *data, size_t size, size_t k, uint64_t bits)
{
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    const void *from[] = {&one, &two, &four, &bits};
    memcpy((char *)data + k * size, from[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3], size);
}

/* Few distinct values, so that there are ties; then bits of all kinds: NaN with payloads,
 * infinities, zeros of both signs, subnormals. */
static void fill(rng *r, void *data, tarn_dtype dtype, size_t count)
{
    size_t size = tarn_dtype_size(dtype);
    uint32_t word;
    int kind = (int)rng_range(r, 0, 3);
    for (size_t k = 0; k < count; k++) {
        uint64_t bits = rng_next(r);
        double number = (double)rng_range(r, -4, 4);
        float single = (float)number;
        if (kind == 1 || (kind == 2 && bits % 8))
            bits = bits % 5 == 0 ? 0 : bits % 5 == 1 ? UINT64_C(1) << (8 * size - 1) : bits;
        if (dtype == TARN_F64 && kind != 3)
            memcpy(&bits, &number, 8);
        if (dtype == TARN_F32 && kind != 3) {
            memcpy(&word, &single, 4);
            bits = word;
        }
        if (dtype > TARN_BF16 && kind != 3)
            bits = (uint64_t)(int64_t)number;
        if ((kind == 1 || kind == 2) && rng_range(r, 0, 7) == 0)
            bits = rng_next(r);
        if (kind > 0 && rng_range(r, 0, 15) == 0)
            bits |= UINT64_C(0x7ff07ff07f807f80);
        set_element(data, size, k, bits);
    }
}

static int random_axis(rng *r, char *text, tarn_window window, int part)
{
    static const char *const prefix[] = {"k", "s", "p", "e"};
    if (window == TARN_ADAPTIVE)
        return sprintf(text, "a%d", (int)rng_range(r, 1, 6));
    int lo = (int)rng_range(r, part == 2 ? 0 : 1, part == 0 ? 5 : 3);
    if (part == 2)
        return sprintf(text, "p%d:%d", lo, (int)rng_range(r, 0, 3));
    return sprintf(text, "%s%d", prefix[part], lo);
}

static void random_problem(rng *r, char *text)
{
    static const char *const ops[] = {"max", "min", "avg", "smooth", "lp"};
    static const char *const ties[] = {"first", "all", "split"};
    int op = (int)rng_range(r, 0, 4), spatial = (int)rng_range(r, 1, 3);
    int window = (int)rng_range(r, 0, 5); /* sliding more often than not */
    text += sprintf(text, "%s ", ops[op]);
    if (window == 5)
        text += sprintf(text, "global%s", rng_range(r, 0, 1) ? " flat" : "");
    else if (window == 4)
        text += random_axis(r, text, TARN_ADAPTIVE, 0);
    else
        for (int part = 0; part < 4; part++)
            text += random_axis(r, text, TARN_SLIDING, part);
    tarn_dtype dtype = (tarn_dtype)rng_range(r, 0, op > 2 ? 3 : 11);
    text += sprintf(text, " %s d%d %d", tarn_dtype_name(dtype), spatial, (int)rng_range(r, 1, 2));
    text += sprintf(text, "x%d", (int)rng_range(r, 1, 3));
    for (int a = 0; a < spatial; a++)
        text += sprintf(text, "x%d", (int)rng_range(r, 1, spatial == 3 ? 7 : 14));
    text += sprintf(text, "%s", rng_range(r, 0, 3) ? "" : " last");
    text += sprintf(text, "%s", window < 4 && rng_range(r, 0, 1) ? " ceil" : "");
    text += sprintf(text, "%s", (op == 2 || op == 3) && rng_range(r, 0, 1) ? " nopad" : "");
    if (op < 2)
        sprintf(text, " ties=%s", ties[rng_range(r, 0, 2)]);
    if (op == 2 && window < 4 && rng_range(r, 0, 2) == 0)
        sprintf(text, " div=%d", (int)rng_range(r, 1, 9));
    if (op == 3)
        sprintf(text, " beta=%.4f", (rng_unit(r) - 0.5) * 40);
    if (op == 4)
        sprintf(text, " p=%.4f",
                rng_range(r, 0, 1) ? (double)rng_range(r, 1, 4) : 1 + 9 * rng_unit(r));
}

#endif
