/* Which kernel runs: what each engine can do, and the one function that chooses. */
#include "dispatch.h"

#include "kernel/row_types.h"
#include "kernel/tap_limits.h"
#include "shape.h"

/* ---- What engines accept -------------------------------------------------------------------- */

static bool is_backward(tarn_pass pass)
{
    return pass == TARN_VJP || pass == TARN_VJP_SAVED;
}

static bool is_extreme(const tarn_problem *problem)
{
    return problem->op == TARN_MAX || problem->op == TARN_MIN;
}

/* Derivatives of max and min that several taps share. */
static bool shares_ties(const tarn_problem *problem, tarn_pass pass)
{
    bool derivative = pass == TARN_JVP || is_backward(pass);
    return is_extreme(problem) && derivative && problem->ties != TARN_TIES_FIRST;
}

static bool ties_accept(const tarn_problem *problem, tarn_pass pass)
{
    return shares_ties(problem, pass) && !problem->skips;
}

static bool spec_accepts(const tarn_problem *problem, tarn_pass pass)
{
    (void)problem, (void)pass;
    return true;
}

/* Whether sums of integers are exact in f64. */
static bool means_are_exact(const tarn_problem *problem)
{
    return is_floating(problem->dtype) || means_fit_f64(problem->dtype, taps_of(problem));
}

static bool forward_accepts(const tarn_problem *problem, tarn_pass pass)
{
    if (is_backward(pass) || shares_ties(problem, pass) || problem->skips)
        return false;
    return (is_extreme(problem) && codes_fit(problem)) ||
           (problem->op == TARN_AVG && means_are_exact(problem));
}

/* Of 64-bit integers, where sums may be exact in f64: that depends on x. */
static bool wide_means_accept(const tarn_problem *problem, tarn_pass pass)
{
    enum { MOST_TAPS = 1 << 30 };
    return problem->op == TARN_AVG && problem->dtype >= TARN_I64 && pass == TARN_FORWARD &&
           !problem->skips && taps_of(problem) <= MOST_TAPS;
}

/* Of integers of 32 bits or less, in windows of two neighbours side by side, and one row, 2 or 4;
 * none reaches out of x. */
static bool halves_accept(const tarn_problem *problem, tarn_pass pass)
{
    const int last = problem->spatial - 1;
    const tarn_axis *columns = &problem->axis[last];
    const int64_t taps = taps_of(problem);
    if (problem->op != TARN_AVG || pass != TARN_FORWARD || is_floating(problem->dtype) ||
        problem->dtype >= TARN_I64 || problem->skips || last == 0 || problem->lanes > 1 ||
        taps > 2 * MOST_HALVED || (problem->divisor > 0 && problem->divisor != taps) ||
        columns->kernel != 2 || columns->stride != 2 || columns->dilation != 1 ||
        problem->stride[TARN_X][last] != 1 || problem->stride[TARN_Y][last] != 1)
        return false;
    for (int a = 0; a <= last; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || axis->kernel > 2 || axis->lo > 0 ||
            axis->size <= (axis->out - 1) * axis->stride + (axis->kernel - 1) * axis->dilation)
            return false;
    }
    return true;
}

/* Counts of taps are sums of f32, and so few that codes fit; the engine runs others, which take
 * more of the stack for each axis. */
static bool skipping_accepts(const tarn_problem *problem, tarn_pass pass)
{
    if (!problem->skips || shares_ties(problem, pass) || taps_of(problem) > 1 << 23 ||
        problem->spatial > 4)
        return false;
    return (is_extreme(problem) && !is_backward(pass)) ||
           (problem->op == TARN_AVG && means_are_exact(problem));
}

/* Every window reads a cell on the axis: none lies in the padding, and numbers are moderate. */
static bool windows_are_inside(const tarn_axis *axis)
{
    enum { MOST_STEP = 1 << 20, MOST_TAPS = 1 << 26 };
    if (axis->adaptive)
        return true;
    return axis->kernel <= MOST_TAPS && axis->stride <= MOST_STEP && axis->dilation <= axis->size &&
           axis->dilation <= MOST_TAPS && axis->lo <= (axis->kernel - 1) * axis->dilation &&
           (axis->out - 1) * axis->stride - axis->lo < axis->size;
}

/* Whether rows are contiguous, so that they can be turned. */
static bool rows_are_contiguous(const tarn_problem *problem, tarn_pass pass)
{
    int last = problem->spatial - 1;
    bool reads = problem->stride[TARN_X][last] == problem->lanes || problem->axis[last].size == 1;
    bool writes = problem->stride[TARN_Y][last] == problem->lanes || problem->axis[last].out == 1;
    if (pass == TARN_JVP) {
        reads &= problem->stride[TARN_DX][last] == problem->lanes || problem->axis[last].size == 1;
        writes &= problem->stride[TARN_DY][last] == problem->lanes || problem->axis[last].out == 1;
    }
    return reads && writes;
}

/* Sums that are taken in f32, or in f64 of 32-bit types, and in steps from a table. */
static bool sums_fit_steps(const tarn_problem *problem, int64_t tap_rows)
{
    enum { MOST_STEPS = 128 };
    int64_t first = problem->spatial > 1 ? problem->axis[0].kernel : 1;
    return tap_rows / first * (first / 4 + 2) <= MOST_STEPS &&
           (tarn_dtype_size(problem->dtype) >= 4 ||
            means_fit_f32(problem->dtype, taps_of(problem)));
}

/* Windows whose taps fit the tables, and whose cells fit a tile of the shortest vectors. */
static bool lanes_accept(const tarn_problem *problem, tarn_pass pass)
{
    enum { MOST_TILE_BYTES = 20 << 10, MOST_TAP_ROWS = 256 };
    int64_t bytes = (int64_t)tarn_dtype_size(problem->dtype), cells = 1, tap_rows = 1;
    bool sums = problem->op == TARN_AVG;
    if (!forward_accepts(problem, pass))
        return false;
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (!windows_are_inside(axis))
            return false;
        cells *= cells_of(axis, 1);
        tap_rows *= a + 1 < problem->spatial ? axis->kernel : 1;
        if (cells > INT32_MAX || (!sums && tap_rows > MOST_TAP_ROWS))
            return false;
    }
    if (sums ? !sums_fit_steps(problem, tap_rows)
             : bytes < 4 && taps_of(problem) > 1 << (8 * bytes))
        return false;
    return problem->lanes * bytes >= 16 ||
           (cells * problem->lanes * 16 <= MOST_TILE_BYTES && rows_are_contiguous(problem, pass));
}

/* Windows of rows that are runs of elements. */
static bool long_accepts(const tarn_problem *problem, tarn_pass pass)
{
    const tarn_axis *last = &problem->axis[problem->spatial - 1];
    if (!forward_accepts(problem, pass) || problem->lanes > 1 ||
        !rows_are_contiguous(problem, pass) || (!last->adaptive && last->dilation > 1))
        return false;
    for (int a = 0; a < problem->spatial; a++)
        if (!windows_are_inside(&problem->axis[a]))
            return false;
    return problem->op != TARN_AVG ||
           sums_fit_steps(problem, problem->spatial > 1 ? problem->axis[0].kernel : 1);
}

static bool backward_mean_accepts(const tarn_problem *problem, tarn_pass pass)
{
    return is_linear(problem) && is_backward(pass);
}

static bool backward_winners_accepts(const tarn_problem *problem, tarn_pass pass)
{
    bool from_x =
        problem->skips ? skipping_accepts(problem, TARN_FORWARD_SAVED) : codes_fit(problem);
    return is_extreme(problem) && (pass == TARN_VJP_SAVED || from_x) && is_backward(pass) &&
           !shares_ties(problem, pass);
}

static bool weights_accept(const tarn_problem *problem, tarn_pass pass)
{
    (void)pass;
    return problem->op == TARN_SMOOTH || problem->op == TARN_LP;
}

static bool mode_accepts(const tarn_problem *problem, tarn_pass pass)
{
    return problem->op == TARN_MODE && pass == TARN_FORWARD && taps_of(problem) <= MOST_MODE_TAPS;
}

/* One plane of few taps, without padding or dilation. */
static bool has_few_taps(const tarn_problem *problem)
{
    int64_t taps = 1;
    if (problem->spatial != 2 || problem->planes != 1 || problem->lanes != 1)
        return false;
    for (int a = 0; a < 2; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || axis->dilation != 1 || axis->lo > 0 ||
            axis->kernel > MOST_SMALL_TAPS || axis->out > MOST_SMALL_TAPS ||
            axis->stride > INT32_MAX || axis->size - axis->kernel < (axis->out - 1) * axis->stride)
            return false;
        taps *= axis->kernel * axis->out;
    }
    return taps <= MOST_SMALL_TAPS;
}

/* ... of few cells, each read by one window at most. */
static bool has_few_cells(const tarn_problem *problem)
{
    const tarn_axis *axis = problem->axis;
    for (int a = 0; a < 2; a++)
        if (axis[a].out > 1 && axis[a].stride < axis[a].kernel)
            return false;
    return axis[0].size <= MOST_SMALL_TAPS && axis[1].size <= MOST_SMALL_TAPS / axis[0].size;
}

static bool small_accepts(const tarn_problem *problem, tarn_pass pass)
{
    const tarn_axis *axis = problem->axis;
    bool avg = problem->op == TARN_AVG, has_dtype = problem->dtype <= TARN_F32; /* or f64 */
    if (!has_dtype || problem->skips || !(avg || is_extreme(problem)) ||
        shares_ties(problem, pass) || !has_few_taps(problem))
        return false;
    if (is_backward(pass))
        return has_few_cells(problem);
    return !avg || (axis[0].kernel <= MOST_SMALL_SIDE && axis[1].kernel <= MOST_SMALL_SIDE);
}

/* ---- The table ------------------------------------------------------------------------------ */

enum { TARN_ISA_PLAIN = TARN_ISA_PORTABLE | TARN_ISA_AVX2 | TARN_ISA_AVX512 };

const tarn_kernel_row tarn_kernel_rows[] = {
#define KERNEL(isa, engine, accepts, function)                                                     \
    {TARN_ISA_##isa, ENGINE_##engine, accepts, function, #function},
#include "kernels.def"
};

const int tarn_kernel_row_count = (int)(sizeof tarn_kernel_rows / sizeof tarn_kernel_rows[0]);

/* ---- What engines cost ---------------------------------------------------------------------- */

enum { VALUES, CODES, SUMS, KINDS };

/* A problem in numbers: bytes of vectors, elements and what they are folded in; taps of a window,
 * windows of all planes, their rows, and elements of a row. */
typedef struct {
    const tarn_problem *problem;
    int kind;
    int64_t vector, element, core;
    double taps, windows, rows, row;
} load;

static load load_of(const tarn_problem *problem, tarn_pass pass, int64_t vector)
{
    load l = {.problem = problem, .vector = vector, .element = problem->element_bytes[TARN_X]};
    const tarn_axis *last = &problem->axis[problem->spatial - 1];
    l.kind = problem->op == TARN_AVG ? SUMS : pass == TARN_FORWARD ? VALUES : CODES;
    l.core = l.element;
    if (l.kind == SUMS && l.element < 8)
        l.core = problem->dtype == TARN_I32 || problem->dtype == TARN_U32 ? 8 : 4;
    while (l.kind == CODES && l.core < 4 && taps_of(problem) >> (8 * l.core) != 0)
        l.core *= 2;
    l.taps = (double)taps_of(problem);
    l.rows = (double)problem->planes;
    for (int a = 0; a + 1 < problem->spatial; a++)
        l.rows *= (double)problem->axis[a].out;
    l.row = (double)(last->out * problem->lanes);
    l.windows = l.rows * (double)last->out;
    return l;
}

/* Vectors that n elements take, part of one included. */
static double vectors_of(const load *l, double n)
{
    return n * (double)l->core / (double)l->vector + 1;
}

/* Vectors of a pixel: shorter ones where these do not fit, unless masks let a part go as one. */
static double vectors_of_pixel(const load *l, bool masked)
{
    int64_t pixel = l->problem->lanes * l->core, piece = l->vector;
    while (piece > 16 && piece > pixel && !(masked && l->vector == 64 && (pixel & (pixel - 1))))
        piece /= 2;
    return (double)((pixel + piece - 1) / piece);
}

/* What it takes to turn a vector, in pieces of 16 bytes: each is loaded and stored, and shuffled
 * once for each binary digit of its number of elements. */
static double turns_of(const load *l, int64_t vector)
{
    double digits = 1;
    for (int64_t bytes = l->element; bytes < 16; bytes *= 2)
        digits++;
    return digits * (double)vector / 16;
}

/* What an engine does, and how often: of this, prices[] has the cost. */
enum { MOST_WORK = 11 };
typedef struct {
    double times[MOST_WORK];
} work;

/* How rows fold windows along the last axis: see docs/engines.md. */
typedef enum { SLIDING, CHANNELS, TURNED } way;

static way way_across(const load *l)
{
    const tarn_axis *axis = &l->problem->axis[l->problem->spatial - 1];
    bool slides = !axis->adaptive && axis->out > 1;
    if (slides && axis->stride == 1)
        return SLIDING;
    if (l->problem->lanes * l->core >= 16)
        return CHANNELS;
    return slides && axis->stride <= MOST_PICKED ? SLIDING : TURNED;
}

/* Folds of a row against itself, shifted; many are doubled, two for each bit. */
static double shifts_of(int64_t kernel)
{
    enum { MOST_SHIFTED = 16 };
    int bits = 0;
    while (kernel > MOST_SHIFTED && (kernel - 1) >> bits != 0)
        bits++;
    return kernel > MOST_SHIFTED ? 2 * (double)bits : (double)kernel;
}

/* Parts in which the channels of a row are folded, as few windows of all do not fit: by the numbers
 * of block_bytes() in forward.c. */
static int64_t channel_parts(const load *l, bool converts)
{
    enum { ARENA = 30 << 10, LEAST_WINDOWS = 4, LEAST = 128, MOST = 512 };
    const tarn_axis *axis = &l->problem->axis[l->problem->spatial - 1];
    const int64_t windows = max_i64(min_i64(axis->kernel, axis->out), LEAST_WINDOWS);
    const int64_t columns =
        axis->adaptive ? axis->size : min_i64(cells_of(axis, windows), axis->size);
    const int64_t room = ARENA / (l->kind == CODES ? 4 : 2) / columns,
                  pixel = l->problem->lanes * l->core;
    const int64_t most = max_i64(min_i64(room / 4, MOST), LEAST);
    return !converts && pixel <= room ? 1 : (pixel + most - 1) / most;
}

/* Taps of an axis that are folded: sums of more than a list go in pieces, row by row. */
static double folded_taps(const load *l, const tarn_axis *axis)
{
    enum { MOST_SUMMED = 16, SLOWER = 4 };
    const bool slow = l->kind == SUMS && axis->kernel > MOST_SUMMED;
    return (double)axis->kernel * (slow ? SLOWER : 1);
}

/* Rows: one axis after the other, on each the taps of all cells that the next ones read. */
static work work_of_rows(const load *l)
{
    enum { CALL, ROW, DOWN, OUTER, SLIDE, PIXEL, TURN, WRITE, CONVERT, PICK, GATHER };
    const tarn_problem *p = l->problem;
    const int last = p->spatial - 1;
    const tarn_axis *columns = &p->axis[last];
    const double read = vectors_of(l, (double)(columns->size * p->lanes));
    double rows = (double)p->planes; /* of which some axes are folded */
    const bool converts = l->core != l->element || p->dtype > TARN_F32 || p->op == TARN_MIN;
    const int64_t parts = channel_parts(l, converts);
    work w = {
        {[CALL] = 1, [ROW] = l->rows * (double)parts, [WRITE] = l->rows * vectors_of(l, l->row)}};
    double gathered = rows; /* for each window of the outer axes */
    for (int a = 0; a < last; a++) {
        const tarn_axis *axis = &p->axis[a];
        rows *= (double)axis->size;
        gathered *= (double)(a + 1 < last ? axis->out * axis->kernel : axis->size);
    }
    w.times[CONVERT] = converts ? rows * read : 0;
    w.times[GATHER] = parts > 1 ? gathered * read : 0;
    for (int a = 0; a < last; a++) {
        rows *= (double)p->axis[a].out / (double)p->axis[a].size;
        w.times[a + 1 < last ? OUTER : DOWN] += rows * folded_taps(l, &p->axis[a]) * read;
    }
    if (way_across(l) == CHANNELS)
        w.times[PIXEL] = l->windows * vectors_of_pixel(l, false) * folded_taps(l, columns);
    else if (way_across(l) == TURNED) {
        w.times[PIXEL] = l->windows * folded_taps(l, columns) * (double)l->core / (double)l->vector;
        w.times[TURN] = l->rows * read * turns_of(l, l->vector);
    } else {
        bool picked = columns->stride > (p->lanes > 1 ? 1 : 2);
        const double shifts = shifts_of(columns->kernel);
        double from = picked || shifts < (double)columns->kernel
                          ? (double)(columns->size * p->lanes)
                          : l->row;
        w.times[PICK] = picked ? l->windows : 0;
        /* dense rows go in one run */
        w.times[SLIDE] = l->rows * shifts * (vectors_of(l, from) - (p->lanes == 1));
    }
    return w;
}

/* Cells of x that a box reads for each output, if its tile has `most` cells, and at most `first`
 * windows on the first axis; 0 if none fits. */
static double cells_read(const tarn_problem *problem, int64_t most, int64_t first)
{
    double best = 0;
    for (int64_t n = 1; n <= most; n += (n + 1) / 2) {
        int64_t cells = 1;
        double share = 1;
        for (int a = 0; a < problem->spatial; a++) {
            const tarn_axis *axis = &problem->axis[a];
            int64_t windows = min_i64(n, a == 0 ? first : axis->out);
            int64_t stride = axis->adaptive ? axis->size / axis->out : axis->stride;
            int64_t extent = (axis->kernel - 1) * (axis->adaptive ? 1 : axis->dilation) + 1;
            int64_t on_axis = min_i64((windows - 1) * stride + extent, axis->size);
            cells *= on_axis;
            share *= (double)on_axis / (double)windows;
        }
        if (cells > most)
            break;
        best = share;
    }
    return best;
}

/* Lanes: taps of all windows, and, where pixels do not fill vectors, turning what they read; bands
 * of a line, a plane or a volume, each at its price. */
static work work_of_lanes(const load *l)
{
    enum { CALL, ROW, TAP, PLAN, TURNED_VECTOR, TURNED_TAP, TURN, LINE, FAR = LINE + 3 };
    enum { TILE_BYTES = 20 << 10, NEAR_BYTES = 24 << 10 };
    const tarn_problem *p = l->problem;
    work w = {{0}};
    double least = 0;
    if (p->lanes * l->element >= 16) {
        w = (work){{[CALL] = 1, [ROW] = l->rows}};
        w.times[l->taps * (double)(p->lanes * l->element) > NEAR_BYTES ? FAR : TAP] =
            l->windows * vectors_of_pixel(l, true) * l->taps;
        return w;
    }
    for (int64_t v = l->vector; v >= 16; v /= 2) { /* shorter vectors have larger boxes */
        const int64_t width = v / l->element;
        const bool banded = !p->axis[0].adaptive && p->planes < width && p->axis[0].out > 1;
        const double lanes = (double)p->planes * (banded ? (double)p->axis[0].out : 1);
        const double full = lanes / (double)width, batches = full > 1 ? full : 1;
        const double windows =
            l->windows / lanes * (banded ? batches : (double)((p->planes - 1) / width + 1));
        const int64_t first = banded ? (int64_t)full + 1 : p->axis[0].out;
        const double cells = cells_read(p, TILE_BYTES / (v * p->lanes), first) * (double)p->lanes;
        const double taps = l->taps * (double)(p->lanes * l->core) / (double)l->element;
        if (cells == 0 || (least > 0 && windows * (taps + 2 * cells) >= least))
            continue;
        least = windows * (taps + 2 * cells);
        const double turns = turns_of(l, v);
        w = (work){{[PLAN] = 1, [TURNED_VECTOR] = windows * (double)p->lanes * turns}};
        w.times[ROW] = p->spatial > 1 ? windows / (double)p->axis[p->spatial - 1].out : 0;
        w.times[TURNED_TAP] = windows * taps;
        w.times[banded ? LINE + min_i64(p->spatial - 1, 2) : TURN] = windows * cells * turns;
    }
    return w;
}

/* Long runs: each run and each window takes some time, however short it is. Runs of extremes go on
 * over axes that are read from end to end; sums are folded down to one. */
static work work_of_runs(const load *l)
{
    enum { CALL, WINDOW, RUN, TAP };
    const tarn_problem *p = l->problem;
    int a = p->spatial - 2;
    double runs = 1;
    while (l->kind != SUMS && a >= 0 && p->axis[a + 1].kernel == p->axis[a + 1].size)
        a--;
    for (; a >= (l->kind == SUMS ? 1 : 0); a--) /* the first axis is summed in one go */
        runs *= (double)p->axis[a].kernel;
    return (work){{[CALL] = 1,
                   [WINDOW] = l->windows,
                   [RUN] = l->windows * runs,
                   [TAP] = l->windows * l->taps * (double)l->core / (double)l->vector}};
}

/* Nanoseconds, fitted to the times of 607 random problems with vectors of 32 and 64 bytes (Zen 5),
 * of rows, lanes and runs, as each names its work; of values, codes and sums. Last, rows of dense
 * planes. */
static const float prices[][KINDS][MOST_WORK] = {
    {{140, 7.4f, 0.75f, 1.1f, 0.75f, 1.9f, 2.4f, 0.32f, 0.64f, 0.52f, 2.8f},
     {400, 7.1f, 0.96f, 2, 1.2f, 3.6f, 4, 0.39f, 0.84f, 0.65f, 1.9f},
     {340, 4.2f, 0.73f, 1.1f, 0.78f, 0.87f, 3.1f, 0.84f, 0.3f, 0.48f, 3.5f}},
    {{27, 54, 0.53f, 2600, 0.23f, 0.36f, 0.15f, 0.24f, 0.48f, 0.32f, 0.59f},
     {23, 71, 0.84f, 1800, 0.57f, 0.47f, 0.19f, 0.31f, 0.42f, 1.2f, 0.63f},
     {160, 50, 0.63f, 2000, 0.33f, 0.39f, 0.17f, 0.8f, 0.82f, 0.35f, 0.78f}},
    {{0, 17, 15, 0.39f}, {0, 30, 15, 0.45f}, {0, 27, 28, 1.2f}},
    {{440, 1.1f, 0.56f, 0.53f, 0.56f, 1.7f, 1.8f, 0.69f, 0.46f, 0.32f},
     {510, 2.3f, 0.67f, 1.2f, 1.2f, 2.8f, 2.5f, 0.63f, 0.43f, 0.55f},
     {340, 2.9f, 0.3f, 0.58f, 0.41f, 0.61f, 0.69f, 1.2f, 0.37f, 0.53f}},
};

static double cost_of(const load *l, int engine, work w)
{
    double cost = 0;
    for (int k = 0; k < MOST_WORK; k++)
        cost += w.times[k] * (double)prices[engine][l->kind][k];
    return cost;
}

/* Whole dense planes, short ones: long runs take many of them at a time. */
static bool planes_are_short(const tarn_problem *problem, int64_t vector)
{
    enum { MOST_RUN_BYTES = 8 << 10, MOST_ROW = 128 };
    int64_t bytes = problem->element_bytes[TARN_X], cells = 1;
    for (int a = 0; a < problem->spatial; a++) {
        if (!is_global(&problem->axis[a]))
            return false;
        cells *= problem->axis[a].size;
    }
    if (problem->op == TARN_AVG) {
        int64_t row = problem->axis[problem->spatial - 1].size;
        return problem->spatial > 1 && row * max_i64(bytes, 4) >= 16 && row <= MOST_ROW;
    }
    return cells * bytes >= vector && cells * bytes <= MOST_RUN_BYTES;
}

/* ---- The choice ----------------------------------------------------------------------------- */

typedef struct {
    tarn_engine_id engine;
    const char *why;
} choice;

static choice choose_forward(const tarn_problem *problem, tarn_pass pass, int64_t vector)
{
    if (long_accepts(problem, pass) && planes_are_short(problem, vector))
        return (choice){ENGINE_LONG, "whole planes, many at a time"};
    const load l = load_of(problem, pass, vector);
    const double rows = cost_of(&l, problem->lanes > 1 ? 0 : 3, work_of_rows(&l));
    const double lanes = lanes_accept(problem, pass) ? cost_of(&l, 1, work_of_lanes(&l)) : rows;
    if (long_accepts(problem, pass) &&
        cost_of(&l, 2, work_of_runs(&l)) < (lanes < rows ? lanes : rows))
        return (choice){ENGINE_LONG, "window by window, as each is a few long runs"};
    if (lanes < rows)
        return (choice){ENGINE_LANES, "a plane in each lane, as windows share little"};
    return (choice){ENGINE_FORWARD, "rows of a window first, then along the row"};
}

tarn_engine_id tarn_engine_of_winners(const tarn_problem *problem, int64_t vector)
{
    return choose_forward(problem, TARN_FORWARD_SAVED, vector).engine;
}

/* `vector` is the number of bytes of a vector. */
static choice choose_engine(const tarn_problem *problem, tarn_pass pass, int64_t vector)
{
    if (small_accepts(problem, pass))
        return (choice){ENGINE_SMALL, "without any preparation, as one plane has few taps"};
    if (mode_accepts(problem, pass))
        return (choice){ENGINE_MODE, "taps side by side, each compared with all"};
    if (problem->op == TARN_MODE)
        return (choice){ENGINE_SPEC, "window by window, as windows have many taps"};
    if (skipping_accepts(problem, pass))
        return (choice){ENGINE_SKIPPING, "skipped taps replaced as rows are read, then counted"};
    if (problem->skips && !backward_winners_accepts(problem, pass))
        return (choice){ENGINE_SPEC, "window by window, as taps are skipped"};
    switch (problem->op) {
    case TARN_MAX:
    case TARN_MIN:
        if (shares_ties(problem, pass))
            return (choice){ENGINE_TIES, "by tops of windows, as equal taps share"};
        if (pass != TARN_VJP_SAVED && !codes_fit(problem))
            return (choice){ENGINE_SPEC,
                            "window by window, as taps are beyond counting in 32 bits"};
        if (pass == TARN_VJP)
            return (choice){ENGINE_BACKWARD_WINNERS, "to winners found again in x"};
        if (pass == TARN_VJP_SAVED)
            return (choice){ENGINE_BACKWARD_WINNERS, "to winners that were saved"};
        return choose_forward(problem, pass, vector);
    case TARN_AVG:
        if (halves_accept(problem, pass))
            return (choice){ENGINE_HALVES, "pairs of neighbours, added in integers"};
        if (wide_means_accept(problem, pass))
            return (choice){ENGINE_WIDE_MEANS, "rows of small numbers, windows of large ones"};
        if (!means_are_exact(problem))
            return (choice){ENGINE_SPEC, "window by window, as sums need more than 52 bits"};
        if (is_backward(pass))
            return (choice){ENGINE_BACKWARD_MEAN, "along the row first, then down"};
        return choose_forward(problem, pass, vector);
    default:
        return (choice){ENGINE_WEIGHTS, "each weight once, sums in boxes of windows"};
    }
}

bool tarn_is_compiled(tarn_op op, tarn_dtype dtype)
{
    return !(OMITTED_OPERATORS >> op & 1) && !(OMITTED_DTYPES >> dtype & 1);
}

static int64_t vector_bytes(uint32_t isa)
{
    return isa & TARN_ISA_AVX512 && HAVE_AVX512 ? 64 : isa & TARN_ISA_AVX2 && HAVE_AVX2 ? 32 : 16;
}

/* The last, widest row of an engine that the mask allows. */
static const tarn_kernel_row *widest_row(tarn_engine_id engine, uint32_t isa)
{
    const tarn_kernel_row *widest = NULL;
    for (int n = 0; n < tarn_kernel_row_count; n++)
        if (tarn_kernel_rows[n].engine == engine && (tarn_kernel_rows[n].isa & isa))
            widest = &tarn_kernel_rows[n];
    return widest;
}

/* Where 64-byte vectors gain over 32-byte ones, as measured (Cascade Lake, Emerald Rapids, Zen 4
 * and 5): what is left out, lanes of turned planes and values and sums of dense rows of 4 bytes and
 * more, gains 3 % at most. */
static bool gains_by_avx512(const tarn_problem *problem, tarn_pass pass)
{
    if (pass == TARN_VJP && choose_engine(problem, pass, 64).engine == ENGINE_BACKWARD_WINNERS)
        pass = TARN_FORWARD_SAVED; /* most of what it does */
    const load l = load_of(problem, pass, 64);
    const tarn_engine_id engine = choose_engine(problem, pass, 64).engine;
    const bool rows = engine == ENGINE_FORWARD && way_across(&l) != TURNED;
    if (rows && problem->lanes == 1 && l.element < 4)
        return true;
    if (engine != choose_engine(problem, pass, 32).engine)
        return false;
    if (problem->lanes * l.element >= 16)
        return true;
    if (engine == ENGINE_LANES)
        return l.kind == SUMS;
    return engine != ENGINE_FORWARD || (rows && l.kind != SUMS && (l.core < 4 || l.kind == CODES));
}

/* The widest row that the mask allows of the engine that is best with such vectors. */
const tarn_kernel_row *tarn_choose_kernel(const tarn_problem *problem, tarn_pass pass, uint32_t isa)
{
    if (vector_bytes(isa) == 64 && (isa & TARN_ISA_AVX2) && !gains_by_avx512(problem, pass))
        isa &= ~(uint32_t)TARN_ISA_AVX512;
    const tarn_kernel_row *row =
        widest_row(choose_engine(problem, pass, vector_bytes(isa)).engine, isa);
    return row ? row : widest_row(ENGINE_SPEC, TARN_ISA_SPEC);
}

const char *tarn_why_kernel(const tarn_problem *problem, tarn_pass pass, const tarn_kernel_row *row)
{
    choice chosen = choose_engine(problem, pass, vector_bytes(row->isa));
    return row->engine == chosen.engine ? chosen.why
                                        : "window by window, as no other family is allowed";
}
