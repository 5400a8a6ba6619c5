/* The forward engine: max, min and avg of any window, with winners, indices and tangents on
 * request.
 *
 *     x -> down -> across -> write
 *
 * An output row is made in two steps. *Down* folds the rows of x that its windows read into one
 * row, element by element, axis by axis, the outermost first [S2]. *Across* folds windows along
 * that row. Both work on runs of elements, so rows may be those of a dense plane (one channel)
 * or of pixels (channels last).
 *
 * As many output rows as fit go as a *box*: what they read is converted once, and each axis is
 * folded for all of them, in runs over all axes behind it. Rows that share too little of that, or
 * hold what keys cannot order, go one by one; those of x that they read stay in a ring.
 *
 * Long rows are cut into tiles of columns, so that all buffers fit on the stack. Where rows of
 * windows do not suit vectors (stride above 2, adaptive windows), as many rows as a vector has
 * lanes are turned: then each lane is a row, and any window is a list of vectors. Windows too
 * wide for a tile are folded one by one, in pieces.
 *
 * Max and min compare keys (row_ops.h). A row that holds NaN or -0, which keys cannot order, is
 * done again with keys that can, but do not tell the value: that is then looked up where the
 * winner lies.
 */
#ifndef TARN_FORWARD_H
#define TARN_FORWARD_H

#include "places.h"
#include "row_ops.h"
#include "skipping.h"

enum {
    ARENA_BYTES = 30 << 10,       /* all scratch rows */
    LEAST_ARENA_BYTES = 18 << 10, /* ... beside another engine */
    MOST_LISTED = 16,             /* rows of one fold: MOST_SUMMED */
    MOST_RING_ROWS = 32,          /* rows that are kept for the windows below */
    MOST_JOBS = 64,               /* at least the lanes of a vector */
    MOST_ROWS = 128               /* of output that are made together */
};

/* What is written, apart from means. */
enum { WRITE_Y, WRITE_SAVED, WRITE_OTHER, WRITES };

/* How windows along a row are folded. */
typedef enum {
    ACROSS_SLIDE,   /* the row against itself, shifted; of other strides, pixels are picked then */
    ACROSS_STRIDE2, /* one channel: every second element */
    ACROSS_PIXELS,  /* pixels of at least a vector of channels */
    ACROSS_LISTS,   /* the same, each window a list of its own: adaptive, or of many taps */
    ACROSS_TURNED,  /* one channel: rows are turned to pixels, then folded as these */
    ACROSS_WIDE     /* window by window, in pieces */
} forward_across;

/* A row: values, and their codes or NULL. */
typedef struct forward_row {
    char *values, *codes;
} forward_row;

/* What is computed, and in what: the same for all tiles. */
typedef struct forward_plan {
    const tarn_problem *p;
    int64_t room; /* bytes of the arena */
    const tarn_row_ops *widest, *ops; /* those allowed, and those used */
    const tarn_row_ops *write_ops;    /* ... on results: see narrowest() */
    int in;                           /* operands: X; for tangents of averages DX */
    int written[WRITES];              /* Y, or DY of averages; SAVED; INDICES or DY */
    int64_t written_step[WRITES];     /* bytes from an output row to the next */
    bool sums;                        /* or extremes */
    bool codes;                       /* extremes with winners */
    bool look_up;                     /* values are taken from x, by their winners */
    bool direct;                      /* rows of x can be folded where they lie */
    bool strided;                     /* ... pixel by pixel, as they are but some of the channels */
    bool picks;                       /* ACROSS_SLIDE: windows begin `stride` pixels apart */
    bool lists;                       /* ACROSS_TURNED: each window is a list of its own */
    bool has_y;                       /* values are asked for */
    bool writes_y;                    /* across stores to y itself */
    bool one_divisor;                 /* of all sums */
    bool native;                      /* keys, or terms of sums, are the elements themselves */
    bool copies_y;                    /* rows of values are copied to y, all at once */
    bool gathers;                     /* some rows in memory are not contiguous */
    bool in_place;                    /* boxes read x where it lies */
    bool sums_in_x;                   /* ... and so do sums over the first axis, in any dtype */
    bool joins;       /* the rows of a box are written as those of one plane would be */
    bool has_missing; /* sums: windows may reach into the padding, on the axes before the last */
    bool has_empty;   /* windows may lie in the padding altogether, on the last axis */
    tarn_core core;
    tarn_dtype result;   /* of means */
    tarn_skip_rule skip; /* if taps are skipped */
    tarn_key key;
    uint64_t flip;
    int64_t bytes;            /* of an element of the core */
    int64_t group;            /* channels there are */
    int64_t channels;         /* of them that go together; 1 unless pixels are contiguous */
    int64_t lanes;            /* of a vector of the core */
    int64_t taps;             /* of a window */
    int64_t pad_code;         /* tap number of padding: beyond all taps */
    const tarn_axis *columns; /* the last axis */
    int row_axis;             /* the one before it, or -1 */
    forward_across across;
    int64_t most_outputs;        /* columns of a tile */
    int64_t most_columns;        /* that it reads, padding included */
    int64_t pitch, output_pitch; /* elements from a row folded down, or across, to the next */
    int64_t row_bytes;           /* of a single scratch row, with its slack */
    int64_t down_bytes, across_bytes, folded_bytes, gathered_bytes, divisor_bytes;
    int64_t source_bytes, part_bytes; /* of a box: rows of x, and what their axes are folded to */
    int ring_rows, batch_rows;
    int box_axis;        /* the first one of boxes; -1: rows go one by one */
    int64_t box_windows; /* of that axis, in a box */
    int64_t box_planes;  /* at most */
    int64_t source_rows; /* of x, converted or folded over outer axes */
    int listed;          /* rows of one fold down */
    bool ring_keeps;     /* a row stays in its slot for the windows below */
} forward_plan;

/* Output rows, or a tile of them, that wait for being folded across: neighbours that differ in
 * nothing but where they are. */
typedef struct forward_job {
    char *written[WRITES];    /* first element to be written, or NULL */
    const char *read[PLACES]; /* the plane of x; of dx, if tangents are asked for */
    uint64_t place[PLACES];   /* of tap 0 of the first row's windows, on all axes but the last */
    int64_t o, outputs;       /* columns of the output */
    int slot, rows;           /* their rows in s->down */
    bool empty;               /* no window of the row reads anything */
} forward_job;

/* Output rows that are folded down at once: windows [lo,hi) of the box's axis, all of those behind
 * it, and, of whole planes, several. */
typedef struct forward_box {
    int64_t lo, hi, planes;
    int64_t entry_rows; /* of x, to an entry of that axis */
} forward_box;

/* An axis of it that is folded: groups of rows of n elements, the first of them number `first` on
 * that axis; steps in elements. */
typedef struct forward_stage {
    int axis;
    forward_row from;
    int64_t groups, n, first, group_pitch, row_pitch, to_group, to_row;
} forward_stage;

typedef struct forward_state {
    forward_plan plan;
    char *base[OPERANDS];        /* of the plane, or of its block of channels */
    int64_t o[TARN_MAX_SPATIAL]; /* the output row */
    int64_t i[TARN_MAX_SPATIAL]; /* the row of x */
    int64_t run_rows; /* rows of x, from s->i on, that outer axes are folded for at once */
    bool odd;         /* a row of x was found to hold NaN or -0 */

    /* The tile reads `columns` columns from `first` on, of which [lo,hi) exist; the rest is
     * padding. */
    int64_t first, columns, lo, hi;

    char *arena;
    int64_t arena_used;
    forward_row ring[MOST_RING_ROWS];
    int64_t ring_tag[MOST_RING_ROWS];
    bool ring_odd[MOST_RING_ROWS];
    char *direct;             /* row of x for the first tap of axis 0, where it lies, */
    int64_t direct_step;      /* and bytes to the next row */
    forward_row source, part; /* of a box */
    forward_stage stage;      /* its last: the row axis */
    int64_t clean_from,
        clean;         /* rows [clean_from,clean) of x are known to hold neither NaN nor -0 */
    char *zeros;       /* a row, for what is missing of a sum */
    char *gathered[2]; /* rows of x that are not contiguous; keys that are widened */
    char *divisors;    /* of the rows that wait, or one for all */
    char divisor[sizeof(double)];         /* of a job */
    int64_t divisors_o, divisors_outputs; /* a tile, */
    int64_t divided[MOST_ROWS]; /* and for each row what counts on other axes; -1: there is none */
    int64_t counted[MOST_ROWS]; /* the same of the rows that wait [A2] */

    int jobs, rows; /* that wait */
    forward_job job[MOST_JOBS];
    forward_row down, across, turned, folded;
    int64_t margin_first, margin_rows; /* a tile, and the first rows that have its padding */
    tap_places places;
} forward_state;

/* forward_down.c */
void tarn_forward_down(forward_state *s, forward_row to);
bool tarn_forward_begin_box(forward_state *s, forward_box *box);
void tarn_forward_down_box(forward_state *s, int64_t group, int64_t groups, int64_t row,
                           int64_t rows, forward_row to);
bool tarn_forward_down_lines(forward_state *s, int64_t planes, forward_row to);
/* forward_across.c */
void tarn_forward_across(forward_state *s);
void tarn_forward_wide(forward_state *s, int64_t o, forward_row to);
/* forward_write.c */
void tarn_forward_write(forward_state *s);

static inline char *forward_take_bytes(forward_state *s, int64_t bytes)
{
    char *taken = s->arena + s->arena_used;
    s->arena_used += (bytes + 63) / 64 * 64;
    return taken;
}

static inline forward_row forward_take_row(forward_state *s, int64_t bytes, bool codes)
{
    forward_row row = {forward_take_bytes(s, bytes), NULL};
    if (codes)
        row.codes = forward_take_bytes(s, bytes);
    return row;
}

/* A row for what a fold keeps, or a run of them. */
static inline forward_row forward_take(forward_state *s)
{
    return forward_take_row(s, s->run_rows > 1 ? s->plan.source_bytes : s->plan.row_bytes,
                            s->plan.codes);
}

/* Rows of x are others now: another place on an outer axis, ... */
static inline void forward_forget_ring(forward_state *s)
{
    for (int slot = 0; slot < s->plan.ring_rows; slot++)
        s->ring_tag[slot] = -1;
}

/* ... plane or tile. */
static inline void forward_forget_rows(forward_state *s)
{
    forward_forget_ring(s);
    s->clean_from = s->clean = 0;
}

static inline forward_row row_at(forward_row row, int64_t byte)
{
    return (forward_row){row.values + byte, row.codes ? row.codes + byte : NULL};
}

static inline void forward_forget_margins(forward_state *s)
{
    s->margin_rows = 0;
}

/* n elements of `bytes` bytes, all the same: one, then twice as many each time. */
static inline void forward_fill(char *to, const void *element, int64_t bytes, int64_t n)
{
    memcpy(to, element, (size_t)bytes);
    for (int64_t done = bytes, all = n * bytes; done < all; done *= 2)
        memcpy(to + done, to, (size_t)min_i64(done, all - done));
}

/* Elements from a plane to the next, of those that go together. */
static inline int64_t plane_step(const forward_plan *plan, int operand)
{
    const tarn_problem *p = plan->p;
    return p->leading > 0 ? p->lead_stride[operand][p->leading - 1] : 0;
}

/* The step between `count` things; one alone is never stepped from, and its step may be huge. */
static inline int64_t step_between(int64_t count, int64_t step, int64_t elements)
{
    return count > 1 ? step * elements : 0;
}

/* Whether a sum may leave out what is missing of a window without a change of its tree: what is at
 * its end, or, of up to three terms, anything. */
static inline bool sum_may_be_clipped(const tarn_span *taps)
{
    return taps->lo == 0 || taps->n <= 3;
}

/* Row `slot` of those folded down. */
static inline forward_row down_row(const forward_state *s, int64_t slot)
{
    return row_at(s->down, slot * s->plan.pitch * s->plan.bytes);
}

static inline forward_row across_row(const forward_state *s, int64_t slot)
{
    return row_at(s->across, slot * s->plan.output_pitch * s->plan.bytes);
}

/* A tap's number as a code, in the low bytes, and back. */
static inline uint64_t code_of(const forward_plan *plan, int64_t tap)
{
    return (uint64_t)tap ^ UINT64_C(1) << (8 * plan->bytes - 1);
}

/* The fold of k taps for n pixels, as row operations have it. */
static inline void fold_taps(const forward_plan *plan, forward_row to, int64_t to_step,
                             forward_row from, int64_t first, int64_t step, int64_t k,
                             int64_t tap_step, int64_t pixel_step, int64_t channels, int64_t n)
{
    const tarn_row_ops *ops = ops_for(plan->ops, channels * plan->bytes);
    if (plan->sums)
        ops->sum_pixels[plan->core](to.values, to_step, from.values, k, tap_step, pixel_step,
                                    channels, n);
    else if (plan->codes)
        ops->best_codes_pixels[plan->core](to.values, to.codes, to_step, from.values, from.codes,
                                           first, step, k, tap_step, pixel_step, channels, n);
    else
        ops->best_pixels[plan->core](to.values, to_step, from.values, k, tap_step, pixel_step,
                                     channels, n);
}

/* The fold of k rows of n elements; row j of extremes adds first + j*step to its codes. */
static inline void fold_rows(const forward_plan *plan, forward_row to, const forward_row *rows,
                             int64_t first, int64_t step, int64_t k, int64_t n)
{
    const void *values[MOST_LISTED], *codes[MOST_LISTED];
    for (int64_t j = 0; j < k; j++) {
        values[j] = rows[j].values;
        codes[j] = rows[j].codes;
    }
    const tarn_row_ops *ops = ops_for(plan->ops, n * plan->bytes);
    if (plan->sums)
        ops->sum[plan->core](to.values, values, k, n);
    else if (plan->codes)
        ops->best_codes[plan->core](to.values, to.codes, values, rows[0].codes ? codes : NULL,
                                    first, step, k, n);
    else
        ops->best[plan->core](to.values, values, k, n);
}

#endif
