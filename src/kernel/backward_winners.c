/* VJP of max and min, rule `first`: every window's gradient goes to the cell that won it [M6],
 * in the order of S5.
 *
 *     winners -> places of cells -> runs -> sums of cells -> gx
 *
 * Windows are taken row by row. The windows of a row that one cell won, a *run*, are summed
 * left to right, and each run is added to its cell once: so a cell receives rows of windows in
 * their order. A window costs the same whatever its size. Sums are gathered in gx itself where
 * that can hold them; otherwise in a tile of cells on the stack, for which all windows are
 * looked at that may read it, and those dropped that other cells won. With axes before the last
 * two, a tile is filled once for each of the outer windows that read it, with the taps that
 * they share; with three axes, every plane of windows is visited once, if gx can hold the sums
 * over planes (layered_slab).
 *
 * Two cases need no places: pixels of many channels ask their few windows (asked_slab), and
 * windows of two columns side by side give each cell one window (paired_slab).
 *
 * Without saved winners, the forward engine finds those of some windows, in a buffer that is
 * then used as if it were the saved ones: a small one on the stack, or the part of gx that is
 * not yet written (lending_slab).
 *
 * Stack: a chunk and a tile, 36 KiB; from x, winners and the forward engine, or winners, a
 * chunk and a tile.
 */
#include "engines.h"

enum {
    CHUNK_BYTES = 4 << 10,         /* of the gradients of windows in hand */
    CHUNK = CHUNK_BYTES / 4,       /* ... windows, times channels, at most */
    CHUNK_ROWS = 64,               /* ... of so many rows at most */
    MOST_LANES = 16,               /* of a vector of places */
    ROOM = CHUNK + 4 * MOST_LANES, /* ... with what vectors write behind them */
    TILE_BYTES = 14 << 10,         /* sums of a tile of cells */
    TILE_ALIGNMENT = 64,
    FOUND_BYTES = 10 << 10,     /* winners that are found from x */
    SMALL_TILE_BYTES = 6 << 10, /* ... less a tile, where it has to live as long as they do */
    MOST_COMPARED = 15,         /* windows to the left of one that are compared with it, at most */
    MOST_ASKED = 16,            /* windows that a cell asks */
    ASKED_COLUMNS = 512
};

/* ---- The problem, as rows and columns ------------------------------------------------------- */

typedef struct winners_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    tarn_axis axis[2]; /* rows and columns; one row if the problem has but one axis */
    int outer;         /* axes before these */
    int64_t step[OPERANDS][2];
    int wide; /* 1 if sums are f64, else 0 */
    int64_t sum_bytes;
    int64_t taps;          /* of the two axes */
    int64_t behind, apart; /* windows of a row with the same winner: see winner_runs */
    bool in_32_bits;
    tarn_places how;
    int64_t layers; /* taps on the axis before, if places can be computed of three axes; else 0 */
    uint32_t layer_inverse, layer_shift;
    char *tile, *winners; /* room */
    int64_t tile_bytes, winners_bytes;
} winners_job;

static int64_t extent_of(const tarn_axis *axis)
{
    return axis->dilation * (axis->kernel - 1) + 1;
}

/* The windows of a row that may have one winner, less one. */
static int64_t windows_behind(const tarn_axis *axis)
{
    int64_t most = axis->adaptive ? ceil_div(axis->out, axis->size) + 1
                                  : (axis->kernel - 1) / axis->tap_step + 1;
    return min_i64(most, axis->out) - 1;
}

/* The numbers that divide what is less than n by d in 32 bits: x / d is x * *inverse >> *shift.
 * False if there are none. */
static bool find_inverse(int64_t n, int64_t d, uint32_t *inverse, uint32_t *shift)
{
    int64_t bits = 0;
    if (n > UINT16_MAX)
        return false;
    while (n * d > INT64_C(1) << bits)
        bits++;
    *inverse = (uint32_t)(((INT64_C(1) << bits) + d - 1) / d);
    *shift = (uint32_t)bits;
    return (ceil_div(n, d) << bits) + n <= UINT32_MAX;
}

/* Whether places can be computed in 32 bits, also of three axes, and how. */
static void set_places(winners_job *j)
{
    enum { MOST = 1 << 30 };
    const tarn_axis *rows = &j->axis[0], *columns = &j->axis[1];
    tarn_places *how = &j->how;
    j->in_32_bits =
        j->p->element_bytes[OPERAND_SAVED] < 8 && extent_of(rows) <= MOST &&
        extent_of(columns) <= MOST && rows->size <= MOST && columns->size <= MOST &&
        (rows->kernel == 1 || find_inverse(j->taps, columns->kernel, &how->inverse, &how->shift));
    how->taps = (uint32_t)j->taps;
    how->columns = (uint32_t)columns->kernel;
    how->row_step = (uint32_t)rows->dilation;
    how->column_step = (uint32_t)columns->dilation;
    if (j->outer == 1 && j->in_32_bits && j->p->axis[0].kernel <= UINT16_MAX &&
        j->taps <= UINT16_MAX &&
        find_inverse(j->p->axis[0].kernel * j->taps, j->taps, &j->layer_inverse, &j->layer_shift))
        j->layers = j->p->axis[0].kernel;
}

static winners_job job_of(const tarn_problem *p, const tarn_row_ops *ops)
{
    winners_job j = {.p = p,
                     .ops = ops,
                     .wide = p->dtype == TARN_F64,
                     .outer = p->spatial > 2 ? p->spatial - 2 : 0};
    j.axis[0] = (tarn_axis){.size = 1,
                            .out = 1,
                            .kernel = 1,
                            .stride = 1,
                            .dilation = 1,
                            .gcd = 1,
                            .tap_step = 1,
                            .window_step = 1};
    for (int a = p->spatial == 1; a < 2; a++) {
        int from = p->spatial - 2 + a;
        j.axis[a] = p->axis[from];
        if (j.axis[a].adaptive) /* what adaptive windows have no use for */
            j.axis[a].dilation = j.axis[a].window_step = 1;
        for (int k = 0; k < OPERANDS; k++)
            j.step[k][a] = p->stride[k][from];
    }
    j.sum_bytes = j.wide ? 8 : 4;
    j.taps = j.axis[0].kernel * j.axis[1].kernel;
    j.apart = min_i64(j.axis[1].window_step, j.axis[1].out);
    j.behind = min_i64(windows_behind(&j.axis[1]), (j.axis[1].out - 1) / j.apart);
    set_places(&j);
    return j;
}

/* Where window o begins, and behind which cell it ends. */
static int64_t window_start(const tarn_axis *axis, int64_t o)
{
    return axis->adaptive ? muldiv_floor(o, axis->size, axis->out) : o * axis->stride - axis->lo;
}

static int64_t window_end(const tarn_axis *axis, int64_t o)
{
    return axis->adaptive ? muldiv_ceil(o + 1, axis->size, axis->out)
                          : window_start(axis, o) + extent_of(axis);
}

typedef struct range {
    int64_t lo, hi;
} range;

/* All windows that may read the cells [lo,hi): an empty range if none does. */
static range windows_of(const tarn_axis *axis, int64_t lo, int64_t hi)
{
    if (axis->adaptive)
        return (range){muldiv_floor(lo, axis->out, axis->size),
                       muldiv_ceil(hi, axis->out, axis->size)};
    int64_t first = ceil_div(lo + axis->lo - (extent_of(axis) - 1), axis->stride);
    return (range){max_i64(first, 0), min_i64((hi - 1 + axis->lo) / axis->stride + 1, axis->out)};
}

/* ---- Cells ---------------------------------------------------------------------------------- */

/* A box of cells, rows and columns, in some interleaved planes, and where its sums are; or several
 * such, in planes that lie one behind the other. */
typedef struct cell_box {
    char *sums; /* of the first cell */
    int64_t row_pitch, column_pitch;
    int64_t lo[2], hi[2];
    int64_t lane, lanes;
    int64_t planes, plane_pitch;
    bool in_place;          /* sums are in gx, and rows are opened as they are needed */
    int64_t opened, closed; /* rows before these have been cleared, and have been rounded */
    const struct cell_layers *layers; /* if the box slides over these */
} cell_box;

/* Cells that lie side by side: a pixel, a row, some rows. */
static int64_t cells_together(const cell_box *b, int64_t rows)
{
    int64_t row = (b->hi[1] - b->lo[1]) * b->lanes;
    if (b->column_pitch != b->lanes)
        return b->lanes;
    return b->row_pitch == row ? row * rows : row;
}

static void clear_sums(const winners_job *j, char *sums, int64_t n)
{
    memset(sums, 0, (size_t)(n * j->sum_bytes));
}

static void round_sums(const winners_job *j, char *sums, int64_t n)
{
    j->ops->round_sums[j->p->dtype](sums, sums, n);
}

/* For the sums in gx of some rows. */
static void for_rows(const winners_job *j, const cell_box *b, int64_t lo, int64_t hi,
                     void (*apply)(const winners_job *, char *, int64_t))
{
    int64_t columns = b->hi[1] - b->lo[1], n = cells_together(b, hi - lo);
    int64_t rows_step = n > columns * b->lanes ? hi - lo : 1,
            columns_step = n == b->lanes ? 1 : columns;
    for (int64_t r = lo; r < hi; r += rows_step)
        for (int64_t c = 0; c < columns; c += columns_step)
            apply(j, b->sums + ((r - b->lo[0]) * b->row_pitch + c * b->column_pitch) * j->sum_bytes,
                  n);
}

/* Rows up to `end` are cleared; or rounded, if they have been cleared. */
static void open_rows(const winners_job *j, cell_box *b, int64_t end)
{
    end = min_i64(end, b->hi[0]);
    if (b->opened < end) {
        for_rows(j, b, b->opened, end, clear_sums);
        b->opened = end;
    }
}

static void close_rows(const winners_job *j, cell_box *b, int64_t end)
{
    end = min_i64(end, b->opened);
    if (b->closed < end) {
        for_rows(j, b, b->closed, end, round_sums);
        b->closed = end;
    }
}

/* All rows of all planes. */
static void for_planes(const winners_job *j, const cell_box *b,
                       void (*apply)(const winners_job *, char *, int64_t))
{
    int64_t rows = b->hi[0] - b->lo[0], plane = rows * (b->hi[1] - b->lo[1]) * b->lanes;
    cell_box one = *b;
    if (b->plane_pitch == plane && cells_together(b, rows) == plane) {
        apply(j, b->sums, plane * b->planes);
        return;
    }
    for (int64_t k = 0; k < b->planes; k++, one.sums += b->plane_pitch * j->sum_bytes)
        for_rows(j, &one, b->lo[0], b->hi[0], apply);
}

/* A tile's sums to gx, whose first plane and row are given. */
static void store_tile(const winners_job *j, const cell_box *b, char *gx)
{
    int64_t bytes = j->p->element_bytes[TARN_GX],
            pitch = b->hi[1] - b->lo[1] > 1 ? j->step[TARN_GX][1] : b->lanes;
    int64_t columns = b->hi[1] - b->lo[1], pieces = pitch == b->lanes ? 1 : columns,
            n = columns / pieces * b->lanes;
    for (int64_t r = b->lo[0]; r < b->hi[0]; r++) {
        const char *sums = b->sums + (r - b->lo[0]) * b->row_pitch * j->sum_bytes;
        char *row =
            gx + (r * j->step[TARN_GX][0] + b->lo[1] * j->step[TARN_GX][1] + b->lane) * bytes;
        for (int64_t k = 0; k < pieces; k++)
            j->ops->round_sums[j->p->dtype](row + k * pitch * bytes,
                                            sums + k * b->column_pitch * j->sum_bytes, n);
    }
}

/* Three axes. A plane of windows has sums for the cells of each of its taps on the outer axis,
 * a *layer*, which are added to gx as soon as its further windows cannot reach them: then the
 * box slides on over the rows. */
typedef struct cell_layers {
    int64_t first, step; /* planes of cells: of the first layer, from layer to layer */
    range planes;        /* ... that take part */
    range cells;         /* rows over which the box slides */
    int64_t rows;        /* in the box, at most */
    bool add;            /* to gx, which has been cleared; or they are all that their cells get */
    char *gx;            /* cell 0,0,0 of lane 0 */
} cell_layers;

/* The first rows of the box to gx. */
static void flush_rows(const winners_job *j, const cell_box *b, int64_t rows)
{
    const cell_layers *layers = b->layers;
    const int64_t *step = j->p->stride[TARN_GX];
    int64_t bytes = j->p->element_bytes[TARN_GX], columns = b->hi[1] - b->lo[1];
    int64_t pieces = columns == 1 || step[2] == b->lanes ? 1 : columns,
            n = columns / pieces * b->lanes;
    for (int64_t layer = 0; layer < j->layers; layer++) {
        int64_t plane = layers->first + layer * layers->step;
        if (plane < layers->planes.lo || plane >= layers->planes.hi)
            continue;
        for (int64_t k = 0; k < rows * pieces; k++) {
            int64_t row = k / pieces, column = k % pieces;
            char *sums =
                b->sums + (layer * b->plane_pitch + row * b->row_pitch + column * b->column_pitch) *
                              j->sum_bytes;
            char *to = layers->gx + (plane * step[0] + (b->lo[0] + row) * step[1] +
                                     (b->lo[1] + column) * step[2] + b->lane) *
                                        bytes;
            if (layers->add)
                j->ops->add_sums[j->wide](to, sums, n);
            else
                j->ops->round_sums[j->p->dtype](to, sums, n);
        }
    }
}

/* The box lets go of the rows before `row`. */
static void slide(const winners_job *j, cell_box *b, int64_t row)
{
    int64_t to = min_i64(row, b->layers->cells.hi), gone = min_i64(to, b->hi[0]) - b->lo[0],
            kept = b->hi[0] - b->lo[0] - gone;
    if (to <= b->lo[0])
        return;
    flush_rows(j, b, gone);
    for (int64_t layer = 0; layer < j->layers && kept > 0; layer++) {
        char *sums = b->sums + layer * b->plane_pitch * j->sum_bytes;
        memmove(sums, sums + gone * b->row_pitch * j->sum_bytes,
                (size_t)(kept * b->row_pitch * j->sum_bytes));
    }
    b->lo[0] = to;
    b->hi[0] = max_i64(b->hi[0], to);
}

/* Rows before `end` are cleared, and are the box's. */
static void take_rows(const winners_job *j, cell_box *b, int64_t end)
{
    int64_t to = min_i64(end, b->layers->cells.hi), from = b->hi[0];
    if (to <= from)
        return;
    for (int64_t layer = 0; layer < j->layers; layer++)
        clear_sums(
            j, b->sums + (layer * b->plane_pitch + (from - b->lo[0]) * b->row_pitch) * j->sum_bytes,
            (to - from) * b->row_pitch);
    b->hi[0] = to;
}

/* Moves to the next row of cells of the slab; false at the end. */
static bool next_row_of_cells(const tarn_problem *p, const tarn_slab *slab, int64_t *cell)
{
    for (int a = p->spatial - 2; a >= 0; a--) {
        if (++cell[a] < (a == 0 ? slab->hi : p->axis[a].size))
            return true;
        cell[a] = a == 0 ? slab->lo : 0;
    }
    return false;
}

/* ---- Planes of windows ---------------------------------------------------------------------- */

/* One plane of windows, those that the box may have won, and how they are cut. */
typedef struct window_plane {
    const char *gy; /* window 0,0 */
    const char
        *saved; /* winners of the windows from held[0].lo, held[1].lo on, of lane held[2].lo */
    int64_t saved_step[2];
    range held[3];        /* rows and columns of windows, and lanes, whose winners are there */
    const char *x;        /* if they are not saved: the plane of x */
    const int64_t *outer; /* where the plane of windows lies on the outer axes */
    int64_t first_tap;    /* the number of its first tap */
    int64_t gy_plane, saved_plane; /* bytes to the next plane, if the box has several */
    range rows, columns;
    bool in_series;   /* runs are followed from window to window, as they may be long */
    int64_t lanes;    /* interleaved planes of a chunk */
    int64_t margin;   /* windows beside those of a row that are looked at */
    int64_t piece;    /* windows of a row in a chunk; 0 if a chunk cannot hold what it takes */
    int64_t together; /* rows in a chunk; more than one only if they are whole */
} window_plane;

/* Some windows in hand: rows, which count on from plane to plane; columns, lanes. */
typedef struct window_chunk {
    range rows, columns, lanes;
} window_chunk;

/* What is found out about them. Sums are of f32 or f64. */
typedef struct chunk_room {
    tarn_window_row rows[CHUNK_ROWS];
    int32_t places[ROOM], run_places[ROOM];
    double gradients[ROOM / 2 + MOST_LANES], run_sums[ROOM / 2 + MOST_LANES];
} chunk_room;

static int64_t length(range r)
{
    return r.hi - r.lo;
}

static void cut_plane(const winners_job *j, const cell_box *b, window_plane *w)
{
    int64_t n = length(w->columns), chunk = CHUNK_BYTES / j->sum_bytes;
    w->in_series =
        j->behind >
        (j->ops->vector_bytes / j->sum_bytes >= 8 ? MOST_COMPARED : 0); /* lanes that compare */
    w->margin = w->in_series ? 0 : j->behind * j->apart;
    int64_t useful = w->in_series ? n : min_i64(n, 32 + 4 * w->margin);
    w->lanes = max_i64(1, min_i64(b->lanes, chunk / min_i64(useful + 2 * w->margin, chunk)));
    if (w->lanes < b->lanes && w->lanes > MOST_LANES)
        w->lanes -= w->lanes % MOST_LANES; /* whole vectors */
    else if (w->lanes < b->lanes && w->lanes > MOST_LANES / 2 && !w->in_series)
        w->lanes = MOST_LANES;
    bool whole = n + 2 * w->margin <= chunk / w->lanes, one_chain = w->lanes * j->apart == 1;
    w->piece = whole                        ? n
               : w->in_series && !one_chain ? 0
                                            : max_i64(chunk / w->lanes - 2 * w->margin, 0);
    int64_t pitch = (n + w->margin) * w->lanes + MOST_LANES;
    w->together =
        whole ? max_i64(min_i64((chunk - w->margin * w->lanes) / pitch, CHUNK_ROWS), 1) : 1;
}

/* ---- Winners that are not saved ------------------------------------------------------------- */

/* The axis of some windows alone, with the cells that they read, from *cell on. Of adaptive
 * windows all or one. */
static tarn_axis axis_of_windows(const tarn_axis *axis, range windows, int64_t *cell)
{
    tarn_axis part = *axis;
    int64_t start = window_start(axis, windows.lo), end = window_end(axis, windows.hi - 1);
    *cell = min_i64(max_i64(start, 0), axis->size - 1);
    if (axis->adaptive && length(windows) == axis->out)
        return part;
    if (axis->adaptive) {
        part.adaptive = false;
        part.stride = part.dilation = part.gcd = part.tap_step = part.window_step = 1;
        part.inverse = 0;
        end = start + part.kernel;
    }
    part.lo = *cell - start;
    part.out = length(windows);
    part.size = max_i64(min_i64(window_end(axis, windows.hi - 1), axis->size) - *cell, 1);
    part.hi = max_i64(end - *cell - part.size, 0);
    return part;
}

/* Finds the winners of windows and lanes whose room is there; adaptive windows one by one, or all.
 */
static void find_some_winners(const winners_job *j, const window_plane *w, const range *windows)
{
    const tarn_problem *p = j->p;
    tarn_problem part = *p;
    int64_t cell, x = windows[2].lo, to = windows[2].lo - w->held[2].lo;
    part.leading = 0;
    part.planes = 1;
    part.lanes = length(windows[2]);
    for (int a = 0; a < p->spatial; a++) {
        int inner = a - (p->spatial - 2);
        range some = inner >= 0 ? windows[inner] : (range){w->outer[a], w->outer[a] + 1};
        part.axis[a] = axis_of_windows(&p->axis[a], some, &cell);
        x += cell * p->stride[TARN_X][a];
        if (inner >= 0) {
            part.stride[OPERAND_SAVED][a] = w->saved_step[inner];
            to += (some.lo - w->held[inner].lo) * w->saved_step[inner];
        } else {
            part.stride[OPERAND_SAVED][a] = 0;
        }
    }
    tarn_tensors t = {
        .base = {[TARN_X] = (char *)w->x + x * p->element_bytes[TARN_X],
                 [OPERAND_SAVED] = j->winners + to * p->element_bytes[OPERAND_SAVED]}};
    tarn_engine_forward(&part, &t, 0, part.axis[0].out, j->ops);
}

/* Finds the winners of a chunk that fits their room, unless they are at hand. */
static void need_winners(const winners_job *j, window_plane *w, const window_chunk *c)
{
    const range want[3] = {
        {w->rows.lo + c->rows.lo, w->rows.lo + c->rows.hi}, c->columns, c->lanes};
    bool held = !w->x;
    if (!held) {
        held = true;
        for (int k = 0; k < 3; k++)
            held &= want[k].lo >= w->held[k].lo && want[k].hi <= w->held[k].hi;
    }
    if (held)
        return;
    memcpy(w->held, want, sizeof want);
    w->saved = j->winners;
    w->saved_step[1] = length(c->lanes);
    w->saved_step[0] = length(c->lanes) * length(c->columns);
    int64_t step[2];
    for (int a = 0; a < 2; a++)
        step[a] = j->axis[a].adaptive && length(want[a]) < j->axis[a].out ? 1 : length(want[a]);
    range some[3] = {{0}, {0}, c->lanes};
    for (some[0].lo = want[0].lo; some[0].lo < want[0].hi; some[0].lo = some[0].hi)
        for (some[1].lo = want[1].lo; some[1].lo < want[1].hi; some[1].lo = some[1].hi) {
            some[0].hi = some[0].lo + step[0];
            some[1].hi = some[1].lo + step[1];
            find_some_winners(j, w, some);
        }
}

/* As many rows of windows, from the chunk's on, as there is room for. */
static void need_many_winners(const winners_job *j, window_plane *w, const cell_box *b, range rows)
{
    int64_t room =
        j->winners_bytes / j->p->element_bytes[OPERAND_SAVED] / b->lanes / length(w->columns);
    int64_t first = w->rows.lo + rows.lo, end = w->rows.lo + rows.hi;
    bool held = first >= w->held[0].lo && end <= w->held[0].hi;
    if (held || room < length(rows))
        return;
    window_chunk many = {{rows.lo, min_i64(rows.lo + room, length(w->rows))},
                         w->columns,
                         {b->lane, b->lane + b->lanes}};
    need_winners(j, w, &many);
}

static int64_t winner_index(const window_plane *w, int64_t row, int64_t column, int64_t lane)
{
    return (row - w->held[0].lo) * w->saved_step[0] + (column - w->held[1].lo) * w->saved_step[1] +
           lane - w->held[2].lo;
}

/* ---- Places --------------------------------------------------------------------------------- */

/* By the contract alone: for numbers of any size. Negative if no cell of the box is named. */
static int64_t place_of(const winners_job *j, const cell_box *b, const window_plane *w, int64_t row,
                        int64_t column, int64_t lane)
{
    int64_t winner = load_winner(j->p, w->saved, winner_index(w, row, column, lane)),
            kernel = j->axis[1].kernel;
    int64_t layers = b->layers ? j->layers : 1, layer = (winner - w->first_tap) / j->taps;
    if (winner < w->first_tap || layer >= layers)
        return -1;
    int64_t tap = winner - w->first_tap - layer * j->taps, cell[2] = {tap / kernel, tap % kernel},
            window[2] = {row, column};
    for (int a = 0; a < 2; a++) {
        cell[a] = window_start(&j->axis[a], window[a]) + cell[a] * j->axis[a].dilation;
        if (cell[a] < b->lo[a] || cell[a] >= b->hi[a] ||
            cell[a] >= window_end(&j->axis[a], window[a]))
            return -1;
    }
    int64_t place = (cell[0] - b->lo[0]) * b->row_pitch + (cell[1] - b->lo[1]) * b->column_pitch +
                    lane - b->lane;
    return layer * b->plane_pitch + place;
}

/* Where the windows' columns begin, and end, goes to the lists of runs, which are not made yet. */
static void find_columns(const winners_job *j, const cell_box *b, const window_chunk *c,
                         chunk_room *room)
{
    const tarn_axis *axis = &j->axis[1];
    uint32_t *limit = (uint32_t *)(void *)room->run_sums;
    for (int64_t k = 0; k < length(c->columns); k++) {
        int64_t end =
            axis->adaptive ? min_i64(window_end(axis, c->columns.lo + k), b->hi[1]) : b->hi[1];
        room->run_places[k] = (int32_t)(window_start(axis, c->columns.lo + k) - b->lo[1]);
        limit[k] = (uint32_t)max_i64(end - b->lo[1], 0);
    }
}

static void load_terms(const winners_job *j, void *to, const char *from, int64_t n)
{
    if (j->wide)
        j->ops->terms_f64[TARN_F64](to, from, n);
    else
        j->ops->terms_f32[j->p->dtype](to, from, n);
}

/* The gradients of a row of windows, where they are or in `room`. */
static const char *gradients_of(const winners_job *j, const window_chunk *c, const char *from,
                                char *room)
{
    int64_t bytes = j->p->element_bytes[TARN_GY], lanes = length(c->lanes),
            columns = length(c->columns);
    int64_t step = columns > 1 ? j->step[TARN_GY][1] : lanes;
    bool dense = step == lanes;
    if (dense && bytes == j->sum_bytes)
        return from;
    if (dense)
        load_terms(j, room, from, columns * lanes);
    else
        for (int64_t k = 0; k < columns; k++)
            load_terms(j, room + k * lanes * j->sum_bytes, from + k * step * bytes, lanes);
    return room;
}

/* Where the chunk's rows of windows are. */
static void find_rows(const winners_job *j, const cell_box *b, const window_plane *w,
                      const window_chunk *c, chunk_room *room)
{
    const tarn_axis *axis = &j->axis[0];
    int64_t n = length(c->columns) * length(c->lanes), in_plane = length(w->rows),
            plane = c->rows.lo / in_plane;
    int64_t row = w->rows.lo + c->rows.lo % in_plane, count = length(c->rows);
    for (int64_t k = 0; k < count; k++, row++) {
        if (row == w->rows.hi) {
            row = w->rows.lo;
            plane++;
        }
        int64_t end = axis->adaptive ? min_i64(window_end(axis, row), b->hi[0]) : b->hi[0];
        int64_t gy = row * j->step[TARN_GY][0] + c->columns.lo * j->step[TARN_GY][1] + c->lanes.lo;
        const char *from = w->gy + plane * w->gy_plane + gy * j->p->element_bytes[TARN_GY];
        room->rows[k] = (tarn_window_row){
            .saved = w->saved + plane * w->saved_plane +
                     winner_index(w, row, c->columns.lo, c->lanes.lo) *
                         j->p->element_bytes[OPERAND_SAVED],
            .gy = gradients_of(j, c, from, (char *)room->gradients + (1 + k * n) * j->sum_bytes),
            .row = (uint32_t)(window_start(axis, row) - b->lo[0]),
            .row_limit = (uint32_t)max_i64(end - b->lo[0], 0),
            .place = (uint32_t)(plane * b->plane_pitch + c->lanes.lo - b->lane),
            .index = row,
        };
    }
}

/* The places of the chunk's windows: rows are `pitch` apart. */
static void find_places(const winners_job *j, const cell_box *b, const window_plane *w,
                        const window_chunk *c, chunk_room *room, int32_t *to, int64_t pitch)
{
    find_rows(j, b, w, c, room);
    if (!j->in_32_bits) {
        for (int64_t k = 0; k < length(c->rows); k++, to += pitch) {
            int32_t *next = to;
            for (int64_t o = c->columns.lo; o < c->columns.hi; o++)
                for (int64_t lane = c->lanes.lo; lane < c->lanes.hi; lane++)
                    *next++ = (int32_t)place_of(j, b, w, room->rows[k].index, o, lane);
            memset(next, 0xff, (size_t)(to + pitch - next) * sizeof *next);
        }
        return;
    }
    find_columns(j, b, c, room);
    tarn_places how = j->how;
    how.first = (uint32_t)w->first_tap;
    how.column = room->run_places;
    how.column_limit = (const uint32_t *)(const void *)room->run_sums;
    how.row_pitch = (uint32_t)b->row_pitch;
    how.column_pitch = (uint32_t)b->column_pitch;
    how.channels = length(c->lanes);
    how.saved_step = length(c->columns) > 1 ? w->saved_step[1] : how.channels;
    if (b->layers) {
        how.taps *= (uint32_t)j->layers;
        how.layer_taps = (uint32_t)j->taps;
        how.layer_inverse = j->layer_inverse;
        how.layer_shift = j->layer_shift;
        how.layer_pitch = (uint32_t)b->plane_pitch;
    }
    j->ops->winner_places[j->p->element_bytes[OPERAND_SAVED] == 4](
        to, pitch, &how, room->rows, length(c->rows), length(c->columns));
}

/* ---- Runs ----------------------------------------------------------------------------------- */

/* Runs in series. True winners' runs are neighbours in a chain of windows that are `apart`, and
 * their cells' columns grow from run to run. Lists the runs [first,end) of a chain that have
 * places; false if their columns do not grow from *column on. */
static bool keep_runs(const winners_job *j, const cell_box *b, const tarn_chain *chain,
                      int64_t apart, range found, int64_t *column, chunk_room *room, int64_t *runs)
{
    int64_t n = *runs;
    for (int64_t k = found.lo * apart; k < found.hi * apart; k += apart) {
        int32_t place = chain->places[k];
        if (place < 0)
            continue;
        int64_t next = (uint32_t)place % (uint32_t)b->row_pitch;
        if (next <= *column)
            return false;
        *column = next;
        room->run_places[n] = place;
        if (j->wide)
            room->run_sums[n++] = ((double *)chain->sums)[k];
        else
            ((float *)(void *)room->run_sums)[n++] = ((float *)chain->sums)[k];
    }
    *runs = n;
    return true;
}

/* The chain that begins with window k of a row. Its runs replace places, and gradients that
 * were converted. */
static tarn_chain chain_of(const winners_job *j, chunk_room *room, int64_t row, int64_t pitch,
                           int64_t n, int64_t k)
{
    return (tarn_chain){.places = room->places + 1 + row * pitch + k,
                        .gy = room->rows[row].gy + k * j->sum_bytes,
                        .sums = (char *)room->gradients + (1 + row * n + k) * j->sum_bytes,
                        .place = -2};
}

/* Lists the runs of whole rows of n windows, times channels; false if their winners are not true.
 */
static bool list_runs_in_series(const winners_job *j, const cell_box *b, chunk_room *room,
                                int64_t rows, int64_t pitch, int64_t apart, int64_t n,
                                int64_t *runs)
{
    int64_t chains = min_i64(apart, n), total = rows * chains;
    for (int64_t k = 0, count; k < total; k += count) {
        tarn_chain some[MOST_CHAINS];
        int64_t windows = (n - 1 - k % chains) / apart + 1;
        for (count = 0; count < MOST_CHAINS && k + count < total; count++) {
            int64_t first = (k + count) % chains;
            if ((n - 1 - first) / apart + 1 !=
                windows) /* those that are followed together have as many */
                break;
            some[count] = chain_of(j, room, (k + count) / chains, pitch, n, first);
        }
        count = count < MOST_CHAINS ? 1 : count;
        j->ops->follow_chains[j->wide](some, count, apart, windows);
        for (int64_t c = 0; c < count; c++) {
            int64_t column = -1;
            if (!keep_runs(j, b, &some[c], apart, (range){0, some[c].runs}, &column, room, runs))
                return false;
        }
    }
    return true;
}

static void add_runs(const winners_job *j, const cell_box *b, const int32_t *places,
                     const void *run_sums, int64_t runs)
{
    if (j->wide) {
        double *cells = (double *)(void *)b->sums;
        const double *sums = run_sums;
        for (int64_t k = 0; k < runs; k++)
            cells[places[k]] += sums[k];
    } else {
        float *cells = (float *)(void *)b->sums;
        const float *sums = run_sums;
        for (int64_t k = 0; k < runs; k++)
            cells[places[k]] += sums[k];
    }
}

/* ---- Rows of windows whose winners max and min cannot have left, or whose runs no chunk can hold
 */

static int64_t place_found(const winners_job *j, const cell_box *b, window_plane *w, int64_t row,
                           int64_t o, int64_t lane)
{
    window_chunk c = {{row - w->rows.lo, row - w->rows.lo + 1}, {o, o + 1}, {lane, lane + 1}};
    need_winners(j, w, &c);
    return place_of(j, b, w, row, o, lane);
}

/* Each run is looked for by itself. Rows count on from plane to plane. */
static void add_row_by_search(const winners_job *j, const cell_box *b, window_plane *w,
                              int64_t index, int64_t lane)
{
    int64_t plane = index / length(w->rows), row = w->rows.lo + index % length(w->rows),
            reach = j->behind * j->apart;
    window_plane other = *w;
    other.gy += plane * w->gy_plane;
    other.saved += plane * w->saved_plane;
    char *sums = b->sums + plane * b->plane_pitch * j->sum_bytes;
    for (int64_t o = w->columns.lo; o < w->columns.hi; o++) {
        int64_t place = place_found(j, b, &other, row, o, lane);
        bool first = place >= 0;
        for (int64_t k = o - j->apart; first && k >= max_i64(o - reach, w->columns.lo);
             k -= j->apart)
            first = place_found(j, b, &other, row, k, lane) != place;
        if (!first)
            continue;
        double term, sum = 0; /* all bits zero: an f32 as well */
        const int32_t first_cell = 0;
        cell_box alone = {.sums = (char *)&sum};
        for (int64_t k = o; k <= min_i64(o + reach, w->columns.hi - 1); k += j->apart)
            if (place_found(j, b, &other, row, k, lane) == place) {
                int64_t at = row * j->step[TARN_GY][0] + k * j->step[TARN_GY][1] + lane;
                load_terms(j, &term, other.gy + at * j->p->element_bytes[TARN_GY], 1);
                add_runs(j, &alone, &first_cell, &term, 1);
            }
        alone.sums = sums + place * j->sum_bytes;
        add_runs(j, &alone, &first_cell, &sum, 1);
    }
    memset(w->held, 0, w->x ? sizeof w->held : 0); /* which may have changed */
}

/* ---- Chunks --------------------------------------------------------------------------------- */

/* Whole rows of windows. */
__attribute__((noinline)) static void add_whole_rows(const winners_job *j, const cell_box *b,
                                                     window_plane *w, const window_chunk *c)
{
    chunk_room room;
    int64_t lanes = length(c->lanes), n = length(c->columns) * lanes, runs = 0;
    int64_t margin = w->in_series ? 1 : w->margin * lanes,
            pitch = n + w->margin * lanes + MOST_LANES;
    memset(room.places, 0xff, (size_t)margin * sizeof *room.places);
    find_places(j, b, w, c, &room, room.places + margin, pitch);
    if (!w->in_series)
        runs = j->ops->winner_runs[j->wide](room.run_places, room.run_sums, room.places + margin,
                                            pitch, room.rows, length(c->rows), j->behind,
                                            j->apart * lanes, n);
    if (w->in_series &&
        !list_runs_in_series(j, b, &room, length(c->rows), pitch, j->apart * lanes, n, &runs)) {
        for (int64_t row = c->rows.lo; row < c->rows.hi; row++)
            for (int64_t lane = c->lanes.lo; lane < c->lanes.hi; lane++)
                add_row_by_search(j, b, w, row, lane);
        return;
    }
    add_runs(j, b, room.run_places, room.run_sums, runs);
}

/* A piece of a row, whose windows are compared with those beside them, also beyond it. */
__attribute__((noinline)) static void add_compared(const winners_job *j, const cell_box *b,
                                                   const window_plane *w, const window_chunk *c,
                                                   range piece)
{
    chunk_room room;
    int64_t lanes = length(c->lanes), margin = w->margin * lanes,
            left = (piece.lo - c->columns.lo) * lanes;
    int64_t n = length(piece) * lanes, pitch = length(c->columns) * lanes + margin + MOST_LANES;
    int32_t *places = room.places + margin - left;
    memset(room.places, 0xff, (size_t)margin * sizeof *places);
    find_places(j, b, w, c, &room, places, min_i64(pitch, ROOM - MOST_LANES - (margin - left)));
    room.rows[0].gy += left * j->sum_bytes;
    int64_t runs = j->ops->winner_runs[j->wide](room.run_places, room.run_sums, places + left, 0,
                                                room.rows, 1, j->behind, j->apart * lanes, n);
    add_runs(j, b, room.run_places, room.run_sums, runs);
}

static void add_row_compared(const winners_job *j, const cell_box *b, window_plane *w,
                             const window_chunk *row)
{
    window_chunk c = *row;
    range piece;
    for (piece.lo = w->columns.lo; piece.lo < w->columns.hi; piece.lo = piece.hi) {
        piece.hi = min_i64(piece.lo + w->piece, w->columns.hi);
        c.columns.lo = max_i64(piece.lo - w->margin, w->columns.lo);
        c.columns.hi = min_i64(piece.hi + w->margin, w->columns.hi);
        need_winners(j, w, &c);
        add_compared(j, b, w, &c, piece);
    }
}

/* What is known after a piece of a row that is one chain: the run that may go on, and the
 * greatest column of others. */
typedef struct open_run {
    int32_t place;
    double sum;
    int64_t column;
} open_run;

/* True if the piece's runs are as they should be; then, if `add`, they are added. */
__attribute__((noinline)) static bool follow_piece(const winners_job *j, const cell_box *b,
                                                   const window_plane *w, const window_chunk *c,
                                                   open_run *open, bool add)
{
    chunk_room room;
    int64_t runs = 0;
    find_places(j, b, w, c, &room, room.places + 1, length(c->columns));
    tarn_chain chain = chain_of(j, &room, 0, 0, 0, 0);
    chain.place = open->place;
    chain.sum = open->sum;
    j->ops->follow_chains[j->wide](&chain, 1, 1, length(c->columns));
    int64_t last = chain.runs - 1;
    if (!keep_runs(j, b, &chain, 1, (range){-1, last}, &open->column, &room, &runs))
        return false;
    open->place = chain.places[last];
    open->sum = j->wide ? ((double *)chain.sums)[last] : (double)((float *)chain.sums)[last];
    if (add)
        add_runs(j, b, room.run_places, room.run_sums, runs);
    return true;
}

static bool follow_row(const winners_job *j, const cell_box *b, window_plane *w,
                       const window_chunk *row, bool add)
{
    open_run open = {-1, 0, -1};
    window_chunk c = *row;
    for (c.columns.lo = w->columns.lo; c.columns.lo < w->columns.hi; c.columns.lo = c.columns.hi) {
        c.columns.hi = min_i64(c.columns.lo + w->piece, w->columns.hi);
        need_winners(j, w, &c);
        if (!follow_piece(j, b, w, &c, &open, add))
            return false;
    }
    if (open.place < 0)
        return true;
    float sum = (float)open.sum;
    if (add)
        add_runs(j, b, &open.place, j->wide ? (void *)&open.sum : (void *)&sum, 1);
    return open.place % b->row_pitch > open.column;
}

/* Some rows of windows, lanes after lanes. */
static void add_rows(const winners_job *j, const cell_box *b, window_plane *w, range rows)
{
    window_chunk c = {.rows = rows, .columns = w->columns};
    for (c.lanes.lo = b->lane; c.lanes.lo < b->lane + b->lanes; c.lanes.lo = c.lanes.hi) {
        c.lanes.hi = min_i64(c.lanes.lo + w->lanes, b->lane + b->lanes);
        if (w->piece == length(w->columns)) {
            need_winners(j, w, &c);
            add_whole_rows(j, b, w, &c);
        } else if (w->piece > 0 && !w->in_series) {
            add_row_compared(j, b, w, &c);
        } else if (w->piece > 0 &&
                   follow_row(j, b, w, &c, false)) { /* before any run is added, all are seen */
            follow_row(j, b, w, &c, true);
        } else {
            for (int64_t lane = c.lanes.lo; lane < c.lanes.hi; lane++)
                add_row_by_search(j, b, w, rows.lo, lane);
        }
    }
}

/* Rows of windows that are added together, from rows.lo on: those that cells have room for. */
static range rows_together(const winners_job *j, const cell_box *b, const window_plane *w,
                           int64_t lo)
{
    range rows = {lo, min_i64(lo + w->together, length(w->rows) * b->planes)};
    if (b->layers)
        while (length(rows) > 1 &&
               window_end(&j->axis[0], w->rows.lo + rows.hi - 1) - b->lo[0] > b->layers->rows)
            rows.hi--;
    return rows;
}

/* Adds the gradients of rows of windows, as far as the box's cells won them. */
static void add_window_rows(const winners_job *j, cell_box *b, window_plane *w)
{
    const tarn_axis *axis = &j->axis[0];
    range rows = {0};
    cut_plane(j, b, w);
    for (; rows.lo < length(w->rows) * b->planes; rows.lo = rows.hi) {
        if (b->layers)
            slide(j, b, window_start(axis, w->rows.lo + rows.lo));
        rows = rows_together(j, b, w, rows.lo);
        if (b->layers)
            take_rows(j, b, window_end(axis, w->rows.lo + rows.hi - 1));
        if (b->in_place)
            open_rows(j, b, window_end(axis, w->rows.lo + rows.hi - 1));
        if (w->x)
            need_many_winners(j, w, b, rows);
        add_rows(j, b, w, rows);
        if (b->in_place && rows.hi < length(w->rows))
            close_rows(j, b, window_start(axis, w->rows.lo + rows.hi));
    }
}

/* Adds the gradients of the box's windows in one plane, which lies at `outer` on the axes
 * before, or in several. */
static void add_plane(const winners_job *j, cell_box *b, char *const *base, const int64_t *outer,
                      int64_t first_tap)
{
    const tarn_problem *p = j->p;
    window_plane w = {.gy = base[TARN_GY],
                      .saved = base[OPERAND_SAVED],
                      .outer = outer,
                      .first_tap = first_tap,
                      .rows = windows_of(&j->axis[0], b->lo[0], b->hi[0]),
                      .columns = windows_of(&j->axis[1], b->lo[1], b->hi[1])};
    if (length(w.rows) <= 0 || length(w.columns) <= 0)
        return;
    for (int a = 0; a < j->outer; a++)
        w.gy += outer[a] * p->stride[TARN_GY][a] * p->element_bytes[TARN_GY];
    for (int a = 0; a < j->outer && w.saved; a++)
        w.saved += outer[a] * p->stride[OPERAND_SAVED][a] * p->element_bytes[OPERAND_SAVED];
    if (b->planes > 1) {
        w.gy_plane = p->lead_stride[TARN_GY][p->leading - 1] * p->element_bytes[TARN_GY];
        w.saved_plane =
            p->lead_stride[OPERAND_SAVED][p->leading - 1] * p->element_bytes[OPERAND_SAVED];
    }
    if (w.saved)
        memcpy(w.saved_step, j->step[OPERAND_SAVED], sizeof w.saved_step);
    else
        w.x = base[TARN_X];
    add_window_rows(j, b, &w);
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* The sums over the axes from `axis` on, with windows `outer` on those before, are added to zeros.
 * Room for further tiles is behind them. */
static void sum_axes(const winners_job *j, cell_box *b, char *const *base, const int64_t *cell,
                     int axis, int64_t *outer, int64_t tap)
{
    const tarn_axis *along = &j->p->axis[axis];
    if (axis == j->outer) {
        add_plane(j, b, base, outer, tap * j->taps);
        return;
    }
    tarn_span windows = cell_windows(along, cell[axis]);
    int64_t bytes = (b->hi[0] - b->lo[0]) * b->row_pitch * j->sum_bytes;
    char *sums = b->sums,
         *room = sums + (bytes + TILE_ALIGNMENT - 1) / TILE_ALIGNMENT * TILE_ALIGNMENT;
    for (int64_t entry = windows.lo; entry < windows.hi; entry++) {
        bool first = entry == windows.lo; /* zeros and its sums are its sums */
        outer[axis] = span_at(&windows, entry);
        if (!first) {
            b->sums = room;
            memset(room, 0, (size_t)bytes);
        }
        sum_axes(j, b, base, cell, axis + 1, outer,
                 tap * along->kernel + tap_of(along, outer[axis], cell[axis]));
        b->sums = sums;
        if (!first)
            j->ops->add_sums[j->wide](sums, room, bytes / j->sum_bytes);
    }
}

/* Cells of a tile: as many columns as leave room for the rows of a window or two. */
static void size_tile(const winners_job *j, const cell_box *all, int64_t *size, int64_t *lanes)
{
    int64_t room = (j->tile_bytes / (j->outer + 1) - TILE_ALIGNMENT) / j->sum_bytes;
    int64_t rows = all->hi[0] - all->lo[0], columns = all->hi[1] - all->lo[1];
    *lanes = min_i64(all->lanes, 16);
    room /= *lanes;
    int64_t wanted = min_i64(rows, 2 * min_i64(extent_of(&j->axis[0]), room));
    size[1] = min_i64(columns, max_i64(room / wanted, min_i64(room, 32)));
    size[0] = min_i64(rows, room / size[1]);
}

static void fill_tile(const winners_job *j, cell_box *tile, const tarn_slab *slab,
                      const int64_t *cell)
{
    int64_t outer[TARN_MAX_SPATIAL];
    char *gx = slab->base[TARN_GX];
    for (int a = 0; a < j->outer; a++)
        gx += cell[a] * j->p->stride[TARN_GX][a] * j->p->element_bytes[TARN_GX];
    tile->sums = j->tile;
    tile->column_pitch = tile->lanes;
    tile->row_pitch = (tile->hi[1] - tile->lo[1]) * tile->lanes;
    memset(tile->sums, 0, (size_t)((tile->hi[0] - tile->lo[0]) * tile->row_pitch * j->sum_bytes));
    sum_axes(j, tile, slab->base, cell, 0, outer, 0);
    store_tile(j, tile, gx);
}

/* Moves to the next coordinates on the axes before the last two; the first is the slab's. False
 * at the end. */
static bool next_outer_cell(const winners_job *j, const tarn_slab *slab, int64_t *cell)
{
    for (int a = j->outer - 1; a >= 0; a--) {
        if (++cell[a] < (a == 0 ? slab->hi : j->p->axis[a].size))
            return true;
        cell[a] = a == 0 ? slab->lo : 0;
    }
    return false;
}

static cell_box box_of_slab(const winners_job *j, const tarn_slab *slab)
{
    cell_box b = {.hi = {j->axis[0].size, j->axis[1].size}, .lanes = j->p->lanes, .planes = 1};
    if (j->outer == 0) {
        int first = j->p->spatial == 1;
        b.lo[first] = slab->lo;
        b.hi[first] = slab->hi;
    }
    return b;
}

static void tiled_slab(const winners_job *j, const tarn_slab *slab)
{
    int64_t cell[TARN_MAX_SPATIAL] = {slab->lo}, size[2], lanes;
    cell_box all = box_of_slab(j, slab), tile = {.planes = 1};
    size_tile(j, &all, size, &lanes);
    do
        for (tile.lane = 0; tile.lane < all.lanes; tile.lane += lanes)
            for (tile.lo[0] = all.lo[0]; tile.lo[0] < all.hi[0]; tile.lo[0] += size[0])
                for (tile.lo[1] = all.lo[1]; tile.lo[1] < all.hi[1]; tile.lo[1] += size[1]) {
                    tile.lanes = min_i64(lanes, all.lanes - tile.lane);
                    for (int a = 0; a < 2; a++)
                        tile.hi[a] = min_i64(tile.lo[a] + size[a], all.hi[a]);
                    fill_tile(j, &tile, slab, cell);
                }
    while (next_outer_cell(j, slab, cell));
}

/* ... with a tile that is there for as long only. */
__attribute__((noinline)) static void slab_by_tiles(const winners_job *j, const tarn_slab *slab)
{
    _Alignas(TILE_ALIGNMENT) char tile[TILE_BYTES + SCRATCH_SLACK];
    winners_job with = *j;
    with.tile = tile;
    with.tile_bytes = TILE_BYTES;
    tiled_slab(&with, slab);
}

/* ---- Sums in gx ----------------------------------------------------------------------------- */

/* Whether gx can hold sums, and lies as rows of cells do. */
static bool sums_fit_gx(const winners_job *j)
{
    const tarn_problem *p = j->p;
    int64_t columns = j->axis[1].size, rows = j->axis[0].size;
    int64_t column = columns > 1 ? j->step[TARN_GX][1] : p->lanes,
            row = rows > 1 ? j->step[TARN_GX][0] : INT32_MAX;
    return j->outer == 0 && p->element_bytes[TARN_GX] == j->sum_bytes && column >= p->lanes &&
           column <= INT32_MAX / columns && row >= column * (columns - 1) + p->lanes &&
           (rows == 1 || row <= INT32_MAX / rows);
}

static cell_box box_in_place(const winners_job *j, const tarn_slab *slab)
{
    cell_box b = box_of_slab(j, slab);
    b.column_pitch = j->axis[1].size > 1 ? j->step[TARN_GX][1] : b.lanes;
    b.row_pitch = j->axis[0].size > 1 ? j->step[TARN_GX][0] : INT32_MAX;
    b.sums = slab->base[TARN_GX] +
             (b.lo[0] * j->step[TARN_GX][0] + b.lo[1] * j->step[TARN_GX][1]) * j->sum_bytes;
    b.opened = b.closed = b.lo[0];
    return b;
}

static void slab_in_place(const winners_job *j, const tarn_slab *slab)
{
    cell_box all = box_in_place(j, slab);
    int64_t lanes = all.lanes;
    if (!slab->base[OPERAND_SAVED]) { /* as many as leave room for the winners of some rows */
        enum { SOME_ROWS = 2 };
        int64_t room =
            j->winners_bytes / j->p->element_bytes[OPERAND_SAVED] / SOME_ROWS / j->axis[1].out;
        lanes = min_i64(lanes, max_i64(room - room % MOST_LANES, MOST_LANES));
    }
    all.in_place = true;
    for (cell_box b = all; b.lane < all.lanes; b.lane += lanes) {
        b.lanes = min_i64(lanes, all.lanes - b.lane);
        b.sums = all.sums + b.lane * j->sum_bytes;
        b.opened = b.closed = b.lo[0];
        add_plane(j, &b, slab->base, NULL, 0);
        open_rows(j, &b, b.hi[0]);
        close_rows(j, &b, b.hi[0]);
    }
}

/* Small planes, several at a time. */
static void planes_in_place(const winners_job *j, const tarn_slab *slab, int64_t planes)
{
    cell_box b = box_in_place(j, slab);
    b.planes = planes;
    b.plane_pitch = j->p->lead_stride[TARN_GX][j->p->leading - 1];
    for_planes(j, &b, clear_sums);
    add_plane(j, &b, slab->base, NULL, 0);
    for_planes(j, &b, round_sums);
}

/* How many planes from the unit `begin` on go together: they are small, whole, and of one
 * leading axis. */
static int64_t planes_together(const winners_job *j, int64_t begin, int64_t end)
{
    enum { CELLS = 4096 };
    const tarn_problem *p = j->p;
    int64_t rows = p->axis[0].size,
            cells = min_i64(j->axis[0].size, CELLS) * min_i64(j->axis[1].size, CELLS) * p->lanes;
    if (p->leading == 0 || begin % rows != 0 || cells > CELLS / 2 || !j->in_32_bits)
        return 1;
    int64_t size = p->lead_size[p->leading - 1], pitch = p->lead_stride[TARN_GX][p->leading - 1];
    int64_t planes =
        min_i64(CELLS / cells, min_i64((end - begin) / rows, size - begin / rows % size));
    return pitch < 0 ? 1 : min_i64(planes, INT32_MAX / 2 / max_i64(pitch, 1));
}

static void run_in_place(const winners_job *j, const tarn_tensors *t, int64_t begin, int64_t end)
{
    tarn_slab slab;
    while (begin < end) {
        int64_t planes = t->base[OPERAND_SAVED] ? planes_together(j, begin, end) : 1;
        next_slab(j->p, t, j->p->axis[0].size, &begin, end, &slab);
        if (planes > 1)
            planes_in_place(j, &slab, planes);
        else
            slab_in_place(j, &slab);
        begin += (max_i64(planes, 1) - 1) * j->p->axis[0].size;
    }
}

/* Finds the winners of the windows of some axes and lanes, which lie densely; adaptive windows
 * all or one. */
__attribute__((noinline)) static void find_winners(const winners_job *j, const tarn_slab *slab,
                                                   const range *windows, range lanes)
{
    tarn_problem part = *j->p;
    int64_t at = lanes.lo, step = length(lanes), cell;
    part.leading = 0;
    part.planes = 1;
    part.lanes = step;
    for (int a = part.spatial - 1; a >= 0; a--) {
        part.axis[a] = axis_of_windows(&j->p->axis[a], windows[a], &cell);
        part.stride[OPERAND_SAVED][a] = step;
        step *= part.axis[a].out;
        at += cell * part.stride[TARN_X][a];
    }
    tarn_tensors t = {.base = {[TARN_X] = slab->base[TARN_X] + at * part.element_bytes[TARN_X],
                               [OPERAND_SAVED] = j->winners}};
    tarn_engine_forward(&part, &t, 0, part.axis[0].out, j->ops);
}

/* ---- Three axes: every plane of windows once ------------------------------------------------ */

/* Winners of some windows: ranges on the three axes, and lanes. */
typedef struct winner_block {
    const char *winners; /* of the first */
    int64_t step[3];
    range held[4];
} winner_block;

/* How the cells of a box are cut: so that the layers of some rows fit a tile. */
typedef struct layer_cut {
    int64_t lanes, columns, rows;
} layer_cut;

/* False if windows would be visited too often. */
static bool cut_layers(const winners_job *j, int64_t lanes, int64_t columns, layer_cut *cut)
{
    enum { FEW_LANES = 4 };
    const tarn_axis *rows = &j->axis[0];
    int64_t room = TILE_BYTES / j->sum_bytes / max_i64(j->layers, 1),
            least = min_i64(rows->size, extent_of(rows));
    cut->lanes = min_i64(lanes, MOST_LANES);
    for (;; cut->lanes /= 2) {
        cut->columns = min_i64(columns, room / cut->lanes / max_i64(least, 1));
        if (cut->columns == columns || cut->columns >= 2 * extent_of(&j->axis[1]))
            break;
        if (cut->lanes <= FEW_LANES)
            return false;
    }
    if (cut->columns < columns)
        cut->columns = ceil_div(columns, ceil_div(columns, cut->columns));
    cut->rows = room / cut->lanes / cut->columns;
    return true;
}

/* Whether the sums over planes of windows can be added up in gx, or each cell has windows of
 * one plane only. */
static bool layers_fit(const winners_job *j)
{
    const tarn_axis *outer = &j->p->axis[0];
    layer_cut cut;
    return j->layers > 0 &&
           (j->p->element_bytes[TARN_GX] == j->sum_bytes || windows_behind(outer) == 0) &&
           cut_layers(j, j->p->lanes, j->axis[1].size, &cut);
}

/* Zeros in the cells of a row that are to be added to. */
static void clear_cells(const winners_job *j, char *row, int64_t lanes)
{
    int64_t bytes = j->p->element_bytes[TARN_GX], columns = j->axis[1].size,
            step = j->step[TARN_GX][1];
    int64_t pieces = columns == 1 || step == lanes ? 1 : columns;
    for (int64_t k = 0; k < pieces; k++)
        memset(row + k * step * bytes, 0, (size_t)(columns / pieces * lanes * bytes));
}

static void clear_planes(const winners_job *j, const cell_box *all, char *gx, range planes)
{
    const int64_t *step = j->p->stride[TARN_GX];
    for (int64_t plane = planes.lo; plane < planes.hi; plane++)
        for (int64_t row = all->lo[0]; row < all->hi[0]; row++)
            clear_cells(j,
                        gx + (plane * step[0] + row * step[1] + all->lane) *
                                 j->p->element_bytes[TARN_GX],
                        all->lanes);
}

/* Adds the gradients of a plane of windows, as far as they were won by the cells of `all`. */
static void add_layers(const winners_job *j, const cell_box *all, const cell_layers *layers,
                       const winner_block *from, const char *gy, int64_t o, const layer_cut *cut,
                       char *tile)
{
    const tarn_problem *p = j->p;
    window_plane w = {.gy = gy + o * p->stride[TARN_GY][0] * p->element_bytes[TARN_GY],
                      .saved = from->winners + (o - from->held[0].lo) * from->step[0] *
                                                   p->element_bytes[OPERAND_SAVED],
                      .saved_step = {from->step[1], from->step[2]},
                      .held = {from->held[1], from->held[2], from->held[3]},
                      .rows = windows_of(&j->axis[0], all->lo[0], all->hi[0])};
    cell_box b = {.sums = tile, .planes = 1, .layers = layers};
    for (b.lane = all->lane; b.lane < all->lane + all->lanes; b.lane += cut->lanes)
        for (b.lo[1] = all->lo[1]; b.lo[1] < all->hi[1]; b.lo[1] = b.hi[1]) {
            b.lanes = min_i64(cut->lanes, all->lane + all->lanes - b.lane);
            b.hi[1] = min_i64(b.lo[1] + cut->columns, all->hi[1]);
            b.lo[0] = b.hi[0] = all->lo[0];
            b.column_pitch = b.lanes;
            b.row_pitch = (b.hi[1] - b.lo[1]) * b.lanes;
            b.plane_pitch = cut->rows * b.row_pitch;
            w.columns = windows_of(&j->axis[1], b.lo[1], b.hi[1]);
            if (length(w.columns) > 0)
                add_window_rows(j, &b, &w);
            slide(j, &b, all->hi[0]);
        }
}

/* The planes of windows `outer`, whose winners are there; planes of cells before *cleared have
 * been. */
__attribute__((noinline)) static void add_planes(const winners_job *j, const cell_box *all,
                                                 const tarn_slab *slab, const winner_block *from,
                                                 range outer, int64_t *cleared)
{
    _Alignas(TILE_ALIGNMENT) char tile[TILE_BYTES + SCRATCH_SLACK];
    const tarn_axis *axis = &j->p->axis[0];
    cell_layers layers = {.step = axis->adaptive ? 1 : axis->dilation,
                          .cells = {all->lo[0], all->hi[0]},
                          .add = windows_behind(axis) > 0,
                          .gx = slab->base[TARN_GX]};
    layer_cut cut;
    cut_layers(j, all->lanes, all->hi[1] - all->lo[1], &cut);
    layers.rows = cut.rows;
    for (int64_t o = outer.lo; o < outer.hi; o++) {
        range open = {*cleared, max_i64(*cleared, min_i64(window_end(axis, o), slab->hi))};
        clear_planes(j, all, slab->base[TARN_GX], open);
        *cleared = open.hi;
        layers.first = window_start(axis, o);
        layers.planes = (range){slab->lo, min_i64(slab->hi, window_end(axis, o))};
        add_layers(j, all, &layers, from, slab->base[TARN_GY], o, &cut, tile);
    }
}

static void layered_slab(const winners_job *j, const tarn_slab *slab)
{
    const int64_t *step = j->p->stride[OPERAND_SAVED];
    cell_box all = box_of_slab(j, slab);
    winner_block saved = {slab->base[OPERAND_SAVED], {step[0], step[1], step[2]}, {{0}}};
    int64_t cleared = slab->lo;
    add_planes(j, &all, slab, &saved, windows_of(&j->p->axis[0], slab->lo, slab->hi), &cleared);
    clear_planes(j, &all, slab->base[TARN_GX], (range){cleared, slab->hi});
}

/* The windows that read a run of cells, at most. */
static int64_t most_windows(const tarn_axis *axis, int64_t cells)
{
    return axis->adaptive ? axis->out
                          : min_i64(axis->out, (cells + extent_of(axis) - 2) / axis->stride + 2);
}

/* Winners that are found: of some planes of windows, as many lanes, and the windows of as many
 * rows of cells. */
typedef struct found_cut {
    int64_t planes, rows, lanes;
} found_cut;

/* False if many windows would have to be found twice. */
static bool cut_found(const winners_job *j, found_cut *cut)
{
    enum { FEW_LANES = 4 };
    const tarn_axis *rows = &j->axis[0], *outer = &j->p->axis[0];
    int64_t room = j->winners_bytes / j->p->element_bytes[OPERAND_SAVED] / j->axis[1].out;
    for (cut->lanes = j->p->lanes;; cut->lanes = ceil_div(cut->lanes, 2)) {
        int64_t fit = room / cut->lanes, times = cut->lanes > FEW_LANES ? 3 : 2;
        for (cut->rows = rows->size; cut->rows > 1 && most_windows(rows, cut->rows) > fit;)
            cut->rows = ceil_div(cut->rows, 2);
        int64_t windows = most_windows(rows, cut->rows);
        cut->planes = max_i64(fit / windows, 1);
        if (outer->adaptive && cut->planes < outer->out)
            cut->planes = 1;
        if (windows <= fit && (cut->rows == rows->size || cut->rows >= times * extent_of(rows)))
            return true;
        if (cut->lanes <= FEW_LANES)
            return false;
    }
}

/* As layered_slab, but the winners of some planes of windows are found before they are needed. */
static void find_layered_slab(const winners_job *j, const tarn_slab *slab)
{
    found_cut cut;
    cut_found(j, &cut);
    range outer = windows_of(&j->p->axis[0], slab->lo, slab->hi);
    cell_box all = box_of_slab(j, slab), b = all;
    for (; b.lane < all.lanes; b.lane += b.lanes)
        for (b.lo[0] = 0; b.lo[0] < all.hi[0]; b.lo[0] = b.hi[0]) {
            b.lanes = min_i64(cut.lanes, all.lanes - b.lane);
            b.hi[0] = min_i64(b.lo[0] + cut.rows, all.hi[0]);
            int64_t cleared = slab->lo;
            range windows[3] = {
                {0}, windows_of(&j->axis[0], b.lo[0], b.hi[0]), {0, j->axis[1].out}};
            range lanes = {b.lane, b.lane + b.lanes};
            int64_t columns = j->axis[1].out * b.lanes, rows = length(windows[1]);
            for (int64_t o = outer.lo; o < outer.hi && rows > 0; o = windows[0].hi) {
                windows[0] = (range){o, min_i64(o + cut.planes, outer.hi)};
                if (j->p->axis[0].adaptive && length(windows[0]) < j->p->axis[0].out)
                    windows[0].hi = o + 1;
                find_winners(j, slab, windows, lanes);
                winner_block found = {j->winners,
                                      {rows * columns, columns, b.lanes},
                                      {windows[0], windows[1], windows[2], lanes}};
                add_planes(j, &b, slab, &found, windows[0], &cleared);
            }
            clear_planes(j, &b, slab->base[TARN_GX], (range){cleared, slab->hi});
        }
}

/* ---- Pixels that ask their windows ---------------------------------------------------------- */

/* Whether pixels are at least a vector, and have few windows, the taps of which go down by the
 * same number. */
static bool pixels_can_ask(const winners_job *j)
{
    const tarn_problem *p = j->p;
    int64_t rows = 1;
    if (p->lanes < j->ops->vector_bytes / j->sum_bytes || p->element_bytes[OPERAND_SAVED] != 1 ||
        p->spatial > 3 || j->axis[1].adaptive || j->axis[1].size > INT32_MAX ||
        j->axis[1].out > INT32_MAX)
        return false;
    for (int a = 0; a < p->spatial - 1; a++)
        rows *= windows_behind(&p->axis[a]) + 1; /* of 255 taps, so many at most */
    return rows <= MOST_ASKED_ROWS && rows * (j->behind + 1) <= MOST_ASKED;
}

typedef struct asked_columns {
    int32_t first[ASKED_COLUMNS], count[ASKED_COLUMNS], tap[ASKED_COLUMNS];
} asked_columns;

static void find_asked_columns(const winners_job *j, tarn_asked *asked, asked_columns *c,
                               int64_t lo, int64_t n)
{
    const tarn_axis *axis = &j->axis[1];
    for (int64_t k = 0; k < n; k++) {
        tarn_span windows = cell_windows(axis, lo + k);
        int64_t first = span_at(&windows, windows.lo), count = windows.hi - windows.lo;
        c->count[k] = (int32_t)count;
        c->first[k] = count > 0 ? (int32_t)first : 0;
        c->tap[k] = count > 0 ? (int32_t)tap_of(axis, first, lo + k) : 0;
    }
    asked->first = c->first;
    asked->count = c->count;
    asked->tap = c->tap;
    asked->window_step = axis->window_step;
    asked->tap_step = (int)axis->tap_step;
}

/* Adds the rows of windows of a row of cells at `cell` on the axes before the last, from `axis` on.
 */
static void find_asked_rows(const winners_job *j, tarn_asked *asked, const int64_t *cell, int axis,
                            const char *saved, const char *gy, int64_t tap)
{
    const tarn_problem *p = j->p;
    if (axis == p->spatial - 1) {
        asked->saved[asked->rows] = (const uint8_t *)saved;
        asked->gy[asked->rows] = gy;
        asked->row_tap[asked->rows] = (int)(tap * p->axis[axis].kernel);
        asked->ends[asked->rows++] = false;
        return;
    }
    tarn_span windows = cell_windows(&p->axis[axis], cell[axis]);
    for (int64_t entry = windows.lo; entry < windows.hi; entry++) {
        int64_t o = span_at(&windows, entry);
        find_asked_rows(j, asked, cell, axis + 1, saved + o * p->stride[OPERAND_SAVED][axis],
                        gy + o * p->stride[TARN_GY][axis] * p->element_bytes[TARN_GY],
                        tap * p->axis[axis].kernel + tap_of(&p->axis[axis], o, cell[axis]));
    }
    if (axis == p->spatial - 2 && asked->rows > 0)
        asked->ends[asked->rows - 1] = true;
}

static void asked_slab(const winners_job *j, const tarn_slab *slab)
{
    const tarn_problem *p = j->p;
    int inner = p->spatial - 1;
    asked_columns columns;
    tarn_asked asked;
    cell_box all = box_of_slab(j, slab);
    asked.saved_step = j->axis[1].out > 1 ? j->step[OPERAND_SAVED][1] : 0;
    asked.gy_step = j->axis[1].out > 1 ? j->step[TARN_GY][1] : 0;
    for (int64_t lo = all.lo[1], n; lo < all.hi[1]; lo += n) {
        n = min_i64(ASKED_COLUMNS, all.hi[1] - lo);
        find_asked_columns(j, &asked, &columns, lo, n);
        int64_t cell[TARN_MAX_SPATIAL] = {inner > 0 ? slab->lo : lo};
        do {
            asked.rows = 0;
            cell[inner] = lo;
            find_asked_rows(j, &asked, cell, 0, slab->base[OPERAND_SAVED], slab->base[TARN_GY], 0);
            if (inner == 0)
                asked.ends[0] = true;
            char *to =
                slab->base[TARN_GX] + offset_of(p, TARN_GX, cell) * p->element_bytes[TARN_GX];
            j->ops->winner_pixels[p->dtype](to, n > 1 ? j->step[TARN_GX][1] : 0, &asked, p->lanes,
                                            n);
        } while (next_row_of_cells(p, slab, cell));
    }
}

/* ---- Windows of two columns side by side ---------------------------------------------------- */

static bool windows_are_pairs(const winners_job *j)
{
    const tarn_problem *p = j->p;
    const tarn_axis *columns = &j->axis[1];
    for (int a = 0; a < p->spatial; a++)
        if (p->axis[a].adaptive || p->axis[a].dilation > 1 || p->axis[a].kernel > p->axis[a].stride)
            return false;
    return p->lanes == 1 && p->spatial > 1 && p->element_bytes[OPERAND_SAVED] == 1 &&
           columns->kernel == 2 && columns->stride == 2 && columns->lo == 0 &&
           2 * columns->out <= columns->size && j->step[TARN_GX][1] == 1 &&
           (columns->out == 1 || (j->step[TARN_GY][1] == 1 && j->step[OPERAND_SAVED][1] == 1));
}

/* The window that reads a cell on an axis, if there is one, and by which tap. */
typedef struct reader {
    int64_t window, tap;
    bool exists;
} reader;

static reader reader_of(const tarn_axis *axis, int64_t cell)
{
    int64_t window = (cell + axis->lo) / axis->stride,
            tap = cell + axis->lo - window * axis->stride;
    return (reader){window, tap, window < axis->out && tap < axis->kernel};
}

/* The rows of cells [lo,hi) that lie at `cell` on the axes before. */
static void pair_rows(const winners_job *j, const tarn_slab *slab, const int64_t *cell, int64_t lo,
                      int64_t hi)
{
    const tarn_problem *p = j->p;
    const tarn_axis *rows = &j->axis[0], *columns = &j->axis[1];
    int64_t bytes = p->element_bytes[TARN_GX], at[OPERANDS] = {0}, tap = 0;
    bool read = true;
    for (int a = 0; a < j->outer; a++) {
        reader r = reader_of(&p->axis[a], cell[a]);
        at[TARN_GX] += cell[a] * p->stride[TARN_GX][a];
        at[TARN_GY] += r.window * p->stride[TARN_GY][a];
        at[OPERAND_SAVED] += r.window * p->stride[OPERAND_SAVED][a];
        tap = tap * p->axis[a].kernel + r.tap;
        read &= r.exists;
    }
    reader r = reader_of(rows, lo);
    for (int64_t row = lo; row < hi; row++) {
        char *to = slab->base[TARN_GX] + (at[TARN_GX] + row * j->step[TARN_GX][0]) * bytes;
        int64_t written = 0;
        if (read && r.window < rows->out && r.tap < rows->kernel) {
            int64_t gy = at[TARN_GY] + r.window * j->step[TARN_GY][0];
            int64_t saved = at[OPERAND_SAVED] + r.window * j->step[OPERAND_SAVED][0];
            j->ops->winner_pairs[p->dtype](to, (const uint8_t *)slab->base[OPERAND_SAVED] + saved,
                                           slab->base[TARN_GY] + gy * bytes,
                                           (int)(2 * (tap * rows->kernel + r.tap)), columns->out);
            written = 2 * columns->out;
        }
        if (written < columns->size)
            memset(to + written * bytes, 0, (size_t)((columns->size - written) * bytes));
        if (++r.tap == rows->stride)
            r = (reader){.window = r.window + 1};
    }
}

static void paired_slab(const winners_job *j, const tarn_slab *slab)
{
    int64_t cell[TARN_MAX_SPATIAL] = {slab->lo};
    bool planes = j->outer > 0;
    do
        pair_rows(j, slab, cell, planes ? 0 : slab->lo, planes ? j->axis[0].size : slab->hi);
    while (next_outer_cell(j, slab, cell));
}

/* ---- From saved winners --------------------------------------------------------------------- */

static void run_slabs(const winners_job *j, const tarn_tensors *t, int64_t begin, int64_t end,
                      void (*run)(const winners_job *, const tarn_slab *))
{
    tarn_slab slab;
    while (next_slab(j->p, t, j->p->axis[0].size, &begin, end, &slab))
        run(j, &slab);
}

static void run_saved(winners_job *j, const tarn_tensors *t, int64_t begin, int64_t end)
{
    if (windows_are_pairs(j))
        run_slabs(j, t, begin, end, paired_slab);
    else if (pixels_can_ask(j))
        run_slabs(j, t, begin, end, asked_slab);
    else if (sums_fit_gx(j))
        run_in_place(j, t, begin, end);
    else
        run_slabs(j, t, begin, end, layers_fit(j) ? layered_slab : slab_by_tiles);
}

/* ---- Boxes of cells and windows as problems of their own ------------------------------------ */

/* The windows that read some cells, and one at least, the first not behind the first cell. */
static range windows_of_box(const tarn_axis *axis, int64_t lo, int64_t hi)
{
    range windows = windows_of(axis, lo, hi);
    if (axis->adaptive)
        return windows;
    int64_t first = min_i64(min_i64(windows.lo, (lo + axis->lo) / axis->stride), axis->out - 1);
    return (range){first, max_i64(windows.hi, first + 1)};
}

/* The box of cells and windows as a problem of its own, with saved winners. */
__attribute__((noinline)) static void use_box_winners(const winners_job *j, const tarn_slab *slab,
                                                      const range *cells, const range *windows,
                                                      range lanes)
{
    tarn_problem part = *j->p;
    int64_t gy = lanes.lo, gx = lanes.lo, step = length(lanes);
    part.leading = 0;
    part.planes = 1;
    part.lanes = step;
    for (int a = part.spatial - 1; a >= 0; a--) {
        tarn_axis *axis = &part.axis[a];
        if (!axis->adaptive) {
            axis->lo += cells[a].lo - windows[a].lo * axis->stride;
            axis->size = length(cells[a]);
            axis->out = length(windows[a]);
        }
        part.stride[OPERAND_SAVED][a] = step;
        step *= length(windows[a]);
        gy += windows[a].lo * part.stride[TARN_GY][a];
        gx += cells[a].lo * part.stride[TARN_GX][a];
    }
    winners_job box = job_of(&part, j->ops);
    tarn_tensors t = {.base = {[TARN_GY] = slab->base[TARN_GY] + gy * part.element_bytes[TARN_GY],
                               [TARN_GX] = slab->base[TARN_GX] + gx * part.element_bytes[TARN_GX],
                               [OPERAND_SAVED] = j->winners}};
    run_saved(&box, &t, 0, part.axis[0].size);
}

/* ---- Boxes of cells, all of whose windows' winners are found first -------------------------- */

/* Cells on each axis, and lanes. */
typedef struct cell_cut {
    int64_t cells[TARN_MAX_SPATIAL], lanes;
} cell_cut;

static bool winners_fit(const winners_job *j, const cell_cut *cut)
{
    const tarn_problem *p = j->p;
    int64_t room = j->winners_bytes / p->element_bytes[OPERAND_SAVED] / cut->lanes, windows = 1;
    for (int a = 0; a < p->spatial && windows <= room; a++)
        windows *= min_i64(most_windows(&p->axis[a], cut->cells[a]), room + 1);
    return windows <= room;
}

/* Boxes whose winners fit their room; false if there are none, or if they would be so small
 * that windows are found again and again. What can be cut best is halved: an axis with cells
 * for many windows, or many lanes. */
static bool cut_cells(const winners_job *j, cell_cut *cut)
{
    enum { WINDOWS_OVER_EXTENT = 2, MANY_LANES = 64 };
    const tarn_problem *p = j->p;
    cut->lanes = p->lanes;
    for (int a = 0; a < p->spatial; a++)
        cut->cells[a] = p->axis[a].size;
    while (!winners_fit(j, cut)) {
        int best = -1;
        int64_t most = WINDOWS_OVER_EXTENT;
        for (int a = 0; a < p->spatial; a++) {
            int64_t times = cut->cells[a] / extent_of(&p->axis[a]);
            if (!p->axis[a].adaptive && times > most) {
                most = times;
                best = a;
            }
        }
        if (cut->lanes > MANY_LANES || (best < 0 && cut->lanes > MOST_LANES))
            cut->lanes = ceil_div(cut->lanes, 2);
        else if (best >= 0)
            cut->cells[best] = ceil_div(cut->cells[best], 2);
        else
            return false;
    }
    return true;
}

static void boxed_slab(const winners_job *j, const tarn_slab *slab)
{
    const tarn_problem *p = j->p;
    cell_cut cut;
    if (!cut_cells(j, &cut) || (p->axis[0].adaptive && slab->hi - slab->lo < p->axis[0].size)) {
        winners_job with = *j; /* the tile's sums have to last while winners are found */
        with.tile = j->winners;
        with.tile_bytes = SMALL_TILE_BYTES;
        with.winners += SMALL_TILE_BYTES + SCRATCH_SLACK;
        with.winners_bytes -= SMALL_TILE_BYTES + SCRATCH_SLACK;
        tiled_slab(&with, slab);
        return;
    }
    range cells[TARN_MAX_SPATIAL], lanes;
    for (lanes.lo = 0; lanes.lo < p->lanes; lanes.lo = lanes.hi) {
        lanes.hi = min_i64(lanes.lo + cut.lanes, p->lanes);
        for (int a = 0; a < p->spatial; a++) {
            int64_t end = a == 0 ? slab->hi : p->axis[a].size;
            cells[a].lo = a == 0 ? slab->lo : 0;
            cells[a].hi = min_i64(cells[a].lo + cut.cells[a], end);
        }
        for (int a = 0; a >= 0;) {
            range windows[TARN_MAX_SPATIAL];
            for (a = 0; a < p->spatial; a++)
                windows[a] = windows_of_box(&p->axis[a], cells[a].lo, cells[a].hi);
            find_winners(j, slab, windows, lanes);
            use_box_winners(j, slab, cells, windows, lanes);
            for (a = p->spatial - 1; a >= 0; a--) { /* the next box */
                int64_t end = a == 0 ? slab->hi : p->axis[a].size;
                bool more = cells[a].hi < end;
                cells[a].lo = more ? cells[a].hi : a == 0 ? slab->lo : 0;
                cells[a].hi = min_i64(cells[a].lo + cut.cells[a], end);
                if (more)
                    break;
            }
        }
    }
}

/* ---- Winners in gx -------------------------------------------------------------------------- */

/* The winners of the first rows of cells, or planes, are put into the memory of those behind
 * them, which come after. */

static bool is_dense(const tarn_problem *p, int operand)
{
    int64_t step = p->lanes;
    for (int a = p->spatial - 1; a >= 0; step *= p->axis[a--].size)
        if (p->axis[a].size > 1 && p->stride[operand][a] != step)
            return false;
    return true;
}

static bool can_find_layers(const winners_job *j)
{
    found_cut cut;
    return layers_fit(j) && !windows_are_pairs(j) && cut_found(j, &cut);
}

static bool gx_can_lend(const winners_job *j)
{
    return is_dense(j->p, TARN_GX) && !j->p->axis[0].adaptive && j->p->axis[0].size > 1;
}

/* How many cells on the first axis, from `lo` on, leave room for their winners before `hi`. */
static int64_t cells_before_winners(const winners_job *j, int64_t lo, int64_t hi)
{
    const tarn_problem *p = j->p;
    int64_t room =
        p->stride[TARN_GX][0] * p->element_bytes[TARN_GX]; /* of a cell, less what aligns winners */
    int64_t window = p->lanes * p->element_bytes[OPERAND_SAVED], least = 0, most = hi - lo - 1;
    for (int a = 1; a < p->spatial; a++) {
        if (window > INT64_MAX / p->axis[a].out)
            return 0;
        window *= p->axis[a].out;
    }
    while (least < most) {
        int64_t n = least + (most - least + 1) / 2, bytes = (hi - lo - n) * room - TILE_ALIGNMENT;
        if (length(windows_of_box(&p->axis[0], lo, lo + n)) <= bytes / window)
            least = n;
        else
            most = n - 1;
    }
    return least;
}

/* What is left at last, a few rows or planes, goes without. */
static void lending_slab(const winners_job *j, const tarn_slab *slab)
{
    const tarn_problem *p = j->p;
    winners_job with = *j;
    tarn_slab left = *slab;
    range cells[TARN_MAX_SPATIAL], windows[TARN_MAX_SPATIAL], lanes = {0, p->lanes};
    for (int a = 1; a < p->spatial; a++) {
        cells[a] = (range){0, p->axis[a].size};
        windows[a] = (range){0, p->axis[a].out};
    }
    for (;; left.lo = cells[0].hi) {
        int64_t n = cells_before_winners(j, left.lo, left.hi);
        if (2 * n < left.hi - left.lo || n == 0)
            break;
        cells[0] = (range){left.lo, left.lo + n};
        with.winners =
            slab->base[TARN_GX] + cells[0].hi * p->stride[TARN_GX][0] * p->element_bytes[TARN_GX];
        with.winners += -(uintptr_t)with.winners % TILE_ALIGNMENT;
        windows[0] = windows_of_box(&p->axis[0], cells[0].lo, cells[0].hi);
        find_winners(&with, slab, windows, lanes);
        use_box_winners(&with, slab, cells, windows, lanes);
    }
    (can_find_layers(j) ? find_layered_slab : boxed_slab)(j, &left);
}

/* ---- The engine ----------------------------------------------------------------------------- */

/* The forward engine needs most of the stack. */
__attribute__((noinline)) static void run_from_x(winners_job *j, const tarn_tensors *t,
                                                 int64_t begin, int64_t end)
{
    _Alignas(TILE_ALIGNMENT) char winners[FOUND_BYTES];
    j->winners = winners;
    j->winners_bytes = FOUND_BYTES;
    if (pixels_can_ask(j) ? !gx_can_lend(j) && can_find_layers(j) : can_find_layers(j))
        run_slabs(j, t, begin, end, find_layered_slab);
    else if (sums_fit_gx(j) && !pixels_can_ask(j))
        run_in_place(j, t, begin, end);
    else
        run_slabs(j, t, begin, end, gx_can_lend(j) ? lending_slab : boxed_slab);
}

void tarn_engine_backward_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                                  int64_t end, const tarn_row_ops *ops)
{
    winners_job j = job_of(p, ops);
    (t->base[OPERAND_SAVED] ? run_saved : run_from_x)(&j, t, begin, end);
}
