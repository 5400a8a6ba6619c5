/* Row operations: all the vector code there is, but for weight_ops.h and tie_ops.h.
 *
 * The engines (forward.c, backward_mean.c, winners.c) walk windows in plain C,
 * compiled once, and leave every loop over elements to a row operation. A row is a run of n
 * elements in memory: n columns of a dense plane, or the channels of several columns with
 * channels last. There is one table of row operations for each instruction set
 * (row_ops_portable.c, row_ops_avx2.c, row_ops_avx512.c).
 *
 * Types fold into few. Max and min compare *keys*: signed integers of 8, 16, 32 or 64 bits
 * whose order is that of the values, or f32 and f64 themselves. Sums are taken in f32, f64 or
 * i64. A row of a dtype is turned into one of these when it is read, and back when a result is
 * written.
 *
 * Conventions, unless an operation says otherwise:
 *  - It reads and writes exactly the n elements of each row: whole vectors, then one that overlaps
 * the
 *    vector before it, or part of a vector if n is less than one.
 *  - Rows need no alignment. `to` shares no memory with what is read.
 *  - n >= 1, k >= 1.
 * "Scratch" rows are the engine's own: at least SCRATCH_SLACK bytes behind them may be read,
 * and written.
 */
#ifndef TARN_ROW_OPS_H
#define TARN_ROW_OPS_H

#include "../families.h"
#include "../problem.h"
#include "tap_limits.h"

enum { SCRATCH_SLACK = 128 };

/* What rows are computed in. */
typedef enum { CORE_I8, CORE_I16, CORE_I32, CORE_I64, CORE_F32, CORE_F64, CORES } tarn_core;

static inline int64_t core_bytes(tarn_core core)
{
    static const int8_t bytes[CORES] = {1, 2, 4, 8, 4, 8};
    return bytes[core];
}

/* The integers as wide as a core: those of its codes. Index of tables by width. */
static inline int core_width(tarn_core core)
{
    return core == CORE_F32 ? CORE_I32 : core == CORE_F64 ? CORE_I64 : (int)core;
}
enum { WIDTHS = 4 }; /* 1, 2, 4, 8 bytes: CORE_I8 ... CORE_I64 */

/* How a row of a dtype becomes a row of keys. `flip` is XORed to every key: for unsigned
 * integers the sign bit; for min, additionally all bits (floats: the sign bit), which reverses
 * the order. */
typedef enum {
    KEY_8, /* integers: key = x ^ flip */
    KEY_16,
    KEY_32,
    KEY_64,
    KEY_F32, /* f32 and f64, compared as they are: key = x ^ flip */
    KEY_F64,
    KEY_F16, /* to i16: key = x ^ (x < 0 ? 0x7fff : 0) ^ flip, x taken as an i16 */
    KEY_BF16,
    /* As if by the order of the contract alone: both zeros have the key of +0, every NaN the
     * greatest key. Such a key does not tell the value. To integers of the same width, `flip`
     * before NaN is put in. */
    KEY_ORDER_F32,
    KEY_ORDER_F64,
    KEY_ORDER_F16,
    KEY_ORDER_BF16,
    KEYS
} tarn_key;

/* How a dtype is compared. For min, the order is reversed. */
static inline tarn_key key_of(tarn_dtype dtype, bool by_order)
{
    static const int8_t keys[TARN_DTYPES] = {
        [TARN_F64] = KEY_F64, [TARN_F32] = KEY_F32, [TARN_F16] = KEY_F16, [TARN_BF16] = KEY_BF16,
        [TARN_I8] = KEY_8,    [TARN_U8] = KEY_8,    [TARN_I16] = KEY_16,  [TARN_U16] = KEY_16,
        [TARN_I32] = KEY_32,  [TARN_U32] = KEY_32,  [TARN_I64] = KEY_64,  [TARN_U64] = KEY_64};
    bool ordered = by_order && dtype <= TARN_BF16;
    return (tarn_key)(keys[dtype] + (ordered ? KEY_ORDER_F32 - KEY_F32 : 0));
}

static inline uint64_t flip_of(const tarn_problem *p, tarn_key key)
{
    tarn_dtype dtype = p->dtype;
    uint64_t sign = UINT64_C(1) << (8 * p->element_bytes[TARN_X] - 1);
    bool is_unsigned =
        dtype == TARN_U8 || dtype == TARN_U16 || dtype == TARN_U32 || dtype == TARN_U64;
    uint64_t reversed = key == KEY_F32 || key == KEY_F64 ? sign : ~UINT64_C(0);
    return (is_unsigned ? sign : 0) ^ (p->op == TARN_MIN ? reversed : 0);
}

/* Codes number the taps of a window. Tap t is stored as t with the top bit flipped, in an
 * integer of the core's width, so that signed comparison orders codes: CODE_ZERO is the least
 * integer. */

/* What a cell picks: a place, and one of these. */
enum { PICK_MANY = INT32_MIN, PICK_NONE = 1 << 30, PICK_PLACE = PICK_NONE - 1 };

/* The windows that may be won by a row of cells, channels last. They form rows; rows form planes,
 * each of which ends where `ends` says. Columns of cells have windows first, first + window_step,
 * ..., `count` of them, which read the cell by taps row_tap + tap, less tap_step for each window
 * on. Apart: no column has two, and there is one row at most, which has an address even if it does
 * not exist. */
enum { MOST_ASKED_ROWS = 32 };
typedef struct tarn_asked_pixels {
    int64_t rows;
    const uint8_t *saved[MOST_ASKED_ROWS];
    const char *gy[MOST_ASKED_ROWS];
    int row_tap[MOST_ASKED_ROWS];
    bool ends[MOST_ASKED_ROWS], apart;
    const int32_t *first, *count, *tap, *tap_step;
    int64_t saved_step, gy_step, window_step; /* elements from a window to the next */
} tarn_asked_pixels;

/* A tap by which cells ask windows, `offset` elements from where they would be; and how many of the
 * sums of S5 end with it: at most ASKED_SUMS, which the last one of a cell has. */
enum { ASKED_SUMS = 2 };
typedef struct tarn_asked_term {
    int64_t offset;
    int32_t tap, ends;
} tarn_asked_term;

/* What cells of a row with a stride pick, where a term above is of a row of windows: `columns` of
 * these. Vectors of cells, `count` of which repeat `step` elements of windows further, have one
 * place, lane numbers and taps for each. */
typedef struct tarn_asked_patterns {
    int64_t count, columns, step;
    const int64_t *base;
    const void *picks, *taps; /* integers as wide as sums */
} tarn_asked_patterns;

/* How winners become places. A tap's place, its key and its fields are sums over its number and
 * the quotients of that by the taps of the last axis, of the last two, and so on, each times a
 * factor. Of each window there is the key and the place of its first tap, and the least and the
 * greatest tap inside on each axis, in fields of bits; above every field is one of `signs`. */
typedef struct tarn_placed_axis {
    int32_t divisor, reciprocal; /* 2^16 / divisor, rounded up */
    int32_t place, key, field;
    float inverse; /* of divisor */
} tarn_placed_axis;

typedef struct tarn_placing {
    int axes;
    bool clipped; /* not all taps are inside */
    int32_t taps, all_key, all_place, all_least, all_most, signs;
    const int32_t *key, *place, *least, *most;
    tarn_placed_axis axis[TARN_MAX_SPATIAL]; /* the last one first */
} tarn_placing;

/* Windows whose winners have places, in scratch. Window i - lag is the one before i that has cells
 * in common with it. There are `lag` windows before the first, with keys that are less, and a
 * vector and `lag` behind the last, with keys that are even and greater. */
typedef struct tarn_runs {
    const int32_t *keys, *places;
    const void *gy, *sums; /* of each window; of its run but for `rounds` windows before it */
    int64_t lag, rounds;
    int32_t away;
} tarn_runs;

/* To scratch: n pixels of `channels` elements, steps apart. */
typedef void tarn_read_pixels(void *scratch, int64_t scratch_step, const void *pixels, int64_t step,
                              int64_t channels, int64_t n);

/* Windows that walk cells (lanes.c). A cell is the same number of elements everywhere, at least a
 * vector of them, one for each lane; a lane never meets another. Windows have the same taps, and
 * lie evenly apart. Where cells lie is told in bytes.
 *
 * A step of a sum: n taps, 1 to 5, in halves, from `at` on; the sum of them takes in as many of
 * those that wait as `pops` says, and waits itself then. */
typedef struct tarn_lane_step {
    int64_t at;
    int32_t n, pops;
} tarn_lane_step;

/* A list in halves is a binary tree over the numbers of its terms [S1]: a sum of 2^level terms from
 * j on takes in its left neighbours as long as it is a right half; the last one, all that wait.
 * What is missing, before term lo, does not. */
static inline int take_in(int64_t j, int level, int64_t lo, bool last, int *waiting)
{
    int pops = last ? *waiting : 0;
    for (; !last && j >> level & 1; level++)
        pops += j >> level << level > lo;
    *waiting += 1 - pops;
    return pops;
}

/* The steps of a sum over terms [lo,hi), so many bytes apart; returns how many there are. */
static inline int64_t list_steps(tarn_lane_step *steps, int64_t lo, int64_t hi, int64_t apart)
{
    int64_t count = 0;
    int waiting = 0;
    for (int64_t j = lo, n; j < hi; j += n) {
        int level = j % 4 == 0 && hi - j >= 3 ? 2 : j % 2 == 0 && hi - j >= 2;
        n = j % 8 == 0 && hi - j == 5 ? 5 : min_i64(1 << level, hi - j);
        steps[count++] = (tarn_lane_step){(j - lo) * apart, (int32_t)n,
                                          take_in(j, level, lo, j + n == hi, &waiting)};
    }
    return count;
}

/* ... where a term is the sum that `count` steps make, the last of which takes in `ends`. The first
 * term may be where they are. */
static inline int64_t repeat_steps(tarn_lane_step *to, const tarn_lane_step *steps, int64_t count,
                                   int32_t ends, int64_t lo, int64_t hi, int64_t apart)
{
    int waiting = 0;
    for (int64_t j = lo; j < hi; j++) {
        tarn_lane_step *term = to + (j - lo) * count;
        for (int64_t k = 0; k < count; k++) {
            term[k] = steps[k];
            term[k].at += (j - lo) * apart;
        }
        term[count - 1].pops = ends + take_in(j, 0, lo, j + 1 == hi, &waiting);
    }
    return count * (hi - lo);
}

enum { MOST_LANE_SUMS = 32 }; /* that wait: on each axis one for each halving, and one */

typedef struct tarn_lane_row {
    const char *from; /* the first tap of the first window */
    int64_t lanes, outputs, window_step;
    /* Extremes: rows of taps, in the order of the contract, and what number of tap they begin with;
     * of each, `columns` taps from first_column on. Keys are elements ^ flip. */
    int64_t columns, first_column, tap_step;
    int64_t rows;
    const int64_t *row_at, *row_codes;
    uint64_t flip;
    const void *first_codes; /* a vector: of each lane's first tap, less first_column; see below */
    /* Sums: the steps of a window, in which taps are first_step apart. */
    int64_t step_count, first_step;
    const tarn_lane_step *steps;
    /* ... or, of 2 or 3 taps on each of up to three axes, all of which exist, how many: `cube`; and
     * bytes from a tap to the next, the first axis first. Others have 0. */
    int cube, axes;
    int64_t cube_step[3];
    /* Of f32 and f64: means are stored, not sums; by a factor if it is exact. */
    bool divides, multiplies;
    double divisor;
    char *to, *codes; /* the results of the first window */
    int64_t to_step, codes_step;
    bool saves; /* codes are stored as winners of a byte [M7] */
} tarn_lane_row;

/* Indices of winners: tap t of a window lies t*weight[0] + t/k*weight[1] + ... behind tap 0, k
 * being the taps of the last axis, and so on; inverse is INDEX_ONE / k, rounded up, and t * k at
 * most INDEX_ONE. */
enum { INDEX_ONE = 1 << 16 };
typedef struct tarn_index_rule {
    int axes;
    uint32_t weight[TARN_MAX_SPATIAL], inverse[TARN_MAX_SPATIAL];
} tarn_index_rule;

/* What else modes depend on [F1, F2, K1-K3]. Windows in which fewer than min_count taps count have
 * the value `none`; keys are elements ^ flip. */
typedef struct tarn_mode_rule {
    bool skips;
    int64_t min_count; /* at most MOST_MODE_TAPS + 1 */
    uint64_t flip;
    char skipped[8], none[8]; /* elements */
} tarn_mode_rule;

typedef struct tarn_row_ops {
    int vector_bytes;
    bool part_lanes; /* the three for lanes take fewer than a vector; of sums, f32 and f64 */
    /* the same with shorter vectors, or NULL: for pixels of few channels */
    const struct tarn_row_ops *narrower;

    /* ---- Folds of k rows into one ---- */

    /* to[i] = the greatest of from[0..k)[i]. `to` may be from[0]. */
    void (*best[CORES])(void *to, const void *const *from, int64_t k, int64_t n);

    /* The same with codes. The code of row j is first + j*step, plus from_codes[j][i] if
     * from_codes is given (codes are added as numbers of taps: the flipped top bit is no part
     * of the number). Of equal values the lesser code wins; where from_codes is NULL, that is
     * the earlier row. `to` may be from[0] and to_codes from_codes[0]. */
    void (*best_codes[CORES])(void *to, void *to_codes, const void *const *from,
                              const void *const *from_codes, int64_t first, int64_t step, int64_t k,
                              int64_t n);

    /* to[i] = the sum of from[0..k)[i], in halves [S1]: of CORE_F32, CORE_F64 and CORE_I64
     * (others are NULL). k <= MOST_SUMMED. `to` may be from[0] only if n is a whole number of
     * vectors: the last one overlaps. Nothing is added to +0: a sum of -0 alone is -0. */
    void (*sum[CORES])(void *to, const void *const *from, int64_t k, int64_t n);

    /* ---- Windows along a dense row, stride 2: scratch to scratch ---- */

    /* to[i] = the greatest of from[2*i + j*dilation], j in [0,k). Reads and writes up to
     * SCRATCH_SLACK bytes more. */
    void (*best_stride2[CORES])(void *to, const void *from, int64_t k, int64_t dilation, int64_t n);
    void (*best_codes_stride2[CORES])(void *to, void *to_codes, const void *from,
                                      const void *from_codes, int64_t k, int64_t dilation,
                                      int64_t n); /* code: from_codes + j */
    void (*sum_stride2[CORES])(void *to, const void *from, int64_t k, int64_t dilation, int64_t n);

    /* ---- Windows along a row of pixels ---- */

    /* A pixel is `channels` elements. For each of n pixels o and each channel c, to[o*to_step +
     * c] = the fold of from[o*pixel_step + j*tap_step + c], j in [0,k); exactly these elements
     * are read and written. Steps are in elements. Pixels may be whole rows: then taps are
     * rows. Codes as in best_codes. */
    void (*best_pixels[CORES])(void *to, int64_t to_step, const void *from, int64_t k,
                               int64_t tap_step, int64_t pixel_step, int64_t channels, int64_t n);
    void (*best_codes_pixels[CORES])(void *to, void *to_codes, int64_t to_step, const void *from,
                                     const void *from_codes, int64_t first, int64_t step, int64_t k,
                                     int64_t tap_step, int64_t pixel_step, int64_t channels,
                                     int64_t n);
    void (*sum_pixels[CORES])(void *to, int64_t to_step, const void *from, int64_t k,
                              int64_t tap_step, int64_t pixel_step, int64_t channels,
                              int64_t n); /* k <= MOST_SUMMED */

    /* ---- Windows that walk cells ---- */

    /* The greatest taps, as values; true if a tap is what the keys cannot order (NaN; of f16 and
     * bf16
     * -0, too), in which case results may be anything. Where no tap is above the least there is, an
     * infinity of floats, the code is that of first_codes. KEY_ORDER_... have codes only, and no
     * values that tell. */
    bool (*best_lanes[KEYS])(const tarn_lane_row *row);
    bool (*best_codes_lanes[KEYS])(const tarn_lane_row *row);
    /* Sums in halves [S2]: f64 of f64, i32 and u32, f32 of others up to 32 bits. As `sum`;
     * false. */
    bool (*sum_lanes[TARN_DTYPES])(const tarn_lane_row *row);

    /* ---- Runs of n neighbours (long.c): one result ---- */

    /* The greatest key of *best, unless the run begins, and of the run; KEY_ORDER_... too. True if
     * the run holds what keys cannot order: NaN, and of f16 and bf16 -0. Of zeros of f32 and f64
     * either may be the greatest. */
    bool (*best_run[KEYS])(void *best, bool begins, const void *run, uint64_t flip, int64_t n);
    /* The same of up to 64 runs of at least a vector each, `step` bytes apart: best[r] is that of
     * run r, bit r of the result whether it is odd. Not for KEY_ORDER_.... */
    uint64_t (*best_runs[KEYS])(void *best, const void *runs, int64_t step, uint64_t flip,
                                int64_t n, int64_t count);
    /* The number of the first element whose key is *best; n if there is none. */
    int64_t (*find_run[KEYS])(const void *best, const void *run, uint64_t flip, int64_t n);
    /* The sum in halves [S1], as of sum_lanes. */
    void (*sum_run[TARN_DTYPES])(void *to, const void *run, int64_t n);

    /* ---- Between rows and columns, by width ---- */

    /* L = vector_bytes / width rows become n vectors: to[i*L + r] = rows[r][i]. turn_back is
     * the opposite. */
    void (*turn[WIDTHS])(void *to, const void *const *rows, int64_t n);
    void (*turn_back[WIDTHS])(void *const *rows, const void *from, int64_t n);

    /* ---- Modes of integers, by width ---- */

    /* to[i] = the most frequent of taps[0..k)[i*step], of equally frequent ones the least; step is
     * 1 or 2, k may be 0. */
    void (*modes[WIDTHS])(void *to, const void *const *taps, int k, const tarn_mode_rule *rule,
                          int64_t step, int64_t n);
    /* to[i] = from[i*step]. */
    void (*take[WIDTHS])(void *to, const void *from, int64_t step, int64_t n);

    /* ---- Means of integers, by width, up to 32 bits ---- */

    /* to[i] = the mean of from[0..k)[2i] and [2i + 1], half to even, k being 1, 2 or MOST_HALVED;
     * `rows` times, whose first elements are that many bytes apart. */
    void (*halves[WIDTHS])(char *to, int64_t to_step, const char *const *from, int64_t from_step,
                           int k, bool is_signed, int64_t n, int64_t rows);

    /* ---- From and to the dtypes ---- */

    /* A row of keys; true if the row holds a NaN or a -0 (always false for integers and
     * KEY_ORDER_...). */
    bool (*key[KEYS])(void *to, const void *from, uint64_t flip, int64_t n);
    /* Whether a row of f32 or f64 holds a NaN or a -0; other keys have none. */
    bool (*is_odd[KEYS])(const void *from, int64_t n);
    /* A row of values, from keys; not for KEY_ORDER_.... Returns false. */
    bool (*unkey[KEYS])(void *to, const void *from, uint64_t flip, int64_t n);
    /* Keys in wider integers, with their sign: from [width] to [width], to > from (others are
     * NULL). */
    void (*widen_key[WIDTHS][WIDTHS])(void *to, const void *from, int64_t n);
    /* Codes of a width as saved winners [M7] of 1, 4 or 8 bytes (index 0, 1, 2). Codes beyond a
     * byte are cut. */
    void (*save_codes[WIDTHS][3])(void *to, const void *codes, int64_t n);

    /* to[i] = place + i / channels * step + what tap[i] adds; n * channels at most INDEX_ONE. Or
     * NULL. */
    void (*indices)(int64_t *to, const int32_t *taps, const tarn_index_rule *rule, uint64_t place,
                    int64_t channels, uint32_t step, int64_t n);

    /* The terms of sums. */
    void (*terms_f32[TARN_DTYPES])(float *to, const void *from,
                                   int64_t n); /* not f64, 32 and 64-bit integers */
    void (*terms_f64[TARN_DTYPES])(double *to, const void *from,
                                   int64_t n); /* all but f32 f16 bf16 i64 u64 */

    /* Means: sums over divisors, rounded once to the dtype [A1, A4, S6]; a NaN becomes the one
     * quiet NaN, and -0/d is +0/d. divisors[i*step], with step 0 or 1; they are positive. */
    void (*means_f32[TARN_DTYPES])(void *to, const float *sums, const float *divisors, int64_t step,
                                   int64_t n);
    void (*means_f64[TARN_DTYPES])(void *to, const double *sums, const double *divisors,
                                   int64_t step, int64_t n);

    /* Stores a row past the caches (non-temporal) where the machine can; and what comes after the
     * last of them: a fence, which takes as long as a short row. */
    void (*copy_past)(void *to, const void *from, int64_t bytes);
    void (*finish_past)(void);

    /* ---- Gradients of means (row_backward_mean.inc): `rows` rows of n elements ---- */

    /* Sums are f64 for f64, and f32 otherwise. Steps lie between neighbouring rows, in elements
     * of what they step over. What is called scratch may be read SCRATCH_SLACK bytes beyond its
     * end. */

    /* Scratch to[i] = from[i] / divisors[i*divisor_step] + 0, with a divisor_step of 0 or 1; a NaN
     * as the one quiet NaN. */
    void (*shares[TARN_BF16 + 1])(void *to, int64_t to_step, const void *from, int64_t from_step,
                                  const void *divisors, int64_t divisor_step, int64_t n,
                                  int64_t rows);
    /* to[i] = the sum of scratch from[0..k)[i], in halves, rounded to the dtype, a NaN as the
     * one quiet NaN; k <= MOST_SHARES, and 0 if k is 0. Sums may replace one of their terms if
     * n is a whole number of vectors. */
    void (*share_sums[TARN_BF16 + 1])(void *to, int64_t to_step, const void *const *from,
                                      int64_t from_step, int64_t k, int64_t n, int64_t rows);
    /* Pixel to[i] = few[place], where picks[i] is a place; many[place] where it is PICK_MANY |
     * place, and 0 where it is PICK_NONE | place. Pixels and steps are in bytes; few and many are
     * scratch, and of 2 bytes there are only few. The places of eight neighbours are among eight,
     * of which the first one's is number `behind`; anywhere if that is negative. */
    void (*pick)(void *to, int64_t to_step, const void *few, const void *many, int64_t from_step,
                 const int32_t *picks, int behind, int64_t pixel, int64_t n, int64_t rows);

    /* n windows, of one pixel each in `from`: it is divided and stored to `cells` pixels; then come
     * `gap` pixels of zeros. Pixels are a vector of channels at least. Steps in elements. */
    void (*spread[TARN_BF16 + 1])(void *to, int64_t to_step, const void *from, int64_t from_step,
                                  int64_t divisor, int64_t channels, int64_t cells, int64_t gap,
                                  int64_t n);

    /* memcpy(), whose ways for thousands of bytes are slower on some machines. */
    void (*copy)(void *to, const void *from, int64_t bytes);

    /* ---- Gradients of max and min (winners.h, row_winners.inc) ---- */

    /* Pixels to scratch, or from it. Sums are f64 for f64, and f32 otherwise; they are rounded to
     * the dtype, a NaN as the one quiet NaN. Winners are of a byte, and become integers as wide as
     * sums of f32 or f64. */
    tarn_read_pixels *read_winners[2], *read_gradients[TARN_BF16 + 1];
    void (*write_gradients[TARN_BF16 + 1])(void *pixels, int64_t step, const void *scratch,
                                           int64_t scratch_step, int64_t channels, int64_t n);

    /* n pixels of cells, `step` elements apart, ask their windows; a vector of channels or more. */
    void (*ask_pixels[TARN_BF16 + 1])(void *to, int64_t step, const tarn_asked_pixels *asked,
                                      int64_t channels, int64_t n);

    /* Here and below in f32 and f64, scratch to scratch, up to a vector more. To each of n cells,
     * the gradients of the windows that its terms won. */
    void (*ask_windows[2])(void *to, const void *winners, const void *gradients,
                           const tarn_asked_term *terms, int64_t count, int64_t n);
    /* ... in rows with a stride; NULL where lanes cannot be picked. */
    void (*pick_windows[2])(void *to, const void *winners, const void *gradients,
                            const tarn_asked_patterns *patterns, const tarn_asked_term *terms,
                            int64_t count, int64_t n);
    /* to[i] += from[i], exactly n. */
    void (*add_sums[2])(void *to, const void *from, int64_t n);

    /* Winners of 1 and of 4 bytes: where n windows put their gradients, n being a vector at least.
     * Keys are twice the window's row and its winner's column, plus one if that is a tap inside. */
    void (*find_places[2])(int32_t *keys, int32_t *places, const void *codes,
                           const tarn_placing *by, int64_t n);
    /* Sums of the gradients of runs up to each window. */
    void (*sum_runs[2])(void *sums, const tarn_runs *of, int64_t n);
    /* Lists the places, plus `away`, and sums of the last windows of runs, up to a vector more;
     * returns how many, or -1 if a winner is before that of the window `lag` before it, or in
     * another place of its column. *wild becomes true if 2^60 such gradients might not add up to a
     * finite number. */
    int64_t (*list_runs[2])(int32_t *list, void *values, const tarn_runs *of, int64_t n,
                            bool *wild);
    /* Whether 2^60 gradients of f32, f64 add up to a finite number, wherever they begin. */
    bool (*are_tame[2])(const void *gradients, int64_t n);
} tarn_row_ops;

enum { MOST_SUMMED = 16, MOST_SHARES = 8 };

/* Shorter vectors for rows that do not fill one: parts of vectors cost more. */
static inline const tarn_row_ops *ops_for(const tarn_row_ops *ops, int64_t bytes)
{
    while (ops->narrower && bytes < ops->vector_bytes)
        ops = ops->narrower;
    return ops;
}

/* Those for rows that were turned back, piece by piece of 16 bytes: a machine forwards what was
 * just stored to loads that lie in one piece, and waits for others. */
static inline const tarn_row_ops *narrowest(const tarn_row_ops *ops)
{
    return ops_for(ops, 0);
}

extern const tarn_row_ops tarn_portable_row_ops;
#if HAVE_AVX2
extern const tarn_row_ops tarn_avx2_row_ops;
#endif
#if HAVE_AVX512
extern const tarn_row_ops tarn_avx512_row_ops;
#endif

/* The low `bytes` bytes of a number, as an integer of that width has them in memory. */
static inline void put_integer(void *to, uint64_t value, int64_t bytes)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value <<= 64 - 8 * bytes;
#endif
    memcpy(to, &value, (size_t)bytes);
}

#endif
