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

/* Values, and winners of extremes; counts of taps are sums of f32. */
static bool skipping_accepts(const tarn_problem *problem, tarn_pass pass)
{
    if (!problem->skips || is_backward(pass) || shares_ties(problem, pass) ||
        taps_of(problem) > 1 << 23)
        return false;
    return (is_extreme(problem) && codes_fit(problem)) ||
           (problem->op == TARN_AVG && pass == TARN_FORWARD && means_are_exact(problem));
}

/* Every window reads a cell on the axis: none lies in the padding, and numbers are moderate. */
static bool windows_are_inside(const tarn_axis *axis)
{
    enum { MOST_STEP = 1 << 20, MOST_TAPS = 1 << 16 };
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
        int64_t extent =
            axis->adaptive ? axis->kernel + 2 : (axis->kernel - 1) * axis->dilation + 1;
        if (!windows_are_inside(axis))
            return false;
        cells *= min_i64(extent, axis->size);
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
    bool from_x = codes_fit(problem) && !problem->skips;
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

/* ---- Rows or lanes -------------------------------------------------------------------------- */

/* Cells of x that a box reads for each output, if its tile has `most` cells; 0 if none fits. */
static double cells_read(const tarn_problem *problem, int64_t most)
{
    double best = 0;
    for (int64_t n = 1; n <= most; n += (n + 1) / 2) {
        int64_t cells = 1;
        double share = 1;
        for (int a = 0; a < problem->spatial; a++) {
            const tarn_axis *axis = &problem->axis[a];
            int64_t windows = min_i64(n, axis->out), stride = axis->size / axis->out;
            int64_t extent = axis->kernel;
            if (!axis->adaptive) {
                stride = axis->stride;
                extent = (extent - 1) * axis->dilation + 1;
            }
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

/* How many times as many lanes the vectors of a pixel have as it has elements. */
static double idle_lanes(int64_t pixel, int64_t vector)
{
    int64_t piece = vector; /* shorter vectors where these do not fit */
    while (piece > 16 && piece > pixel)
        piece /= 2;
    return (double)((pixel + piece - 1) / piece * vector) / (double)pixel;
}

/* What lanes do for a vector of outputs: taps of a window, and turning what they read, or finding
 * it if it is a pixel of few vectors; windows of other lengths do not go with their neighbours
 * then. Lanes may be idle. */
static double lanes_steps(const tarn_problem *problem, bool codes, int64_t vector)
{
    enum { TILE_BYTES = 20 << 10, FIRST_TAP = 8 };
    const double BANDED = 1.7, FAR_BANDS = 5; /* those of a volume lie far apart */
    int64_t bytes = problem->element_bytes[TARN_X], pixel = problem->lanes * bytes;
    double taps = (double)taps_of(problem) * (codes ? 1.3 : 1);
    if (pixel >= 16)
        return taps * idle_lanes(pixel, vector) + (double)(FIRST_TAP * vector) / (double)pixel + 1;
    int64_t planes = problem->planes; /* bands fill lanes, if they may */
    bool converts = problem->lanes > 1 && problem->op == TARN_AVG && bytes < 4;
    double least = 0, sums = converts ? 4 / (double)bytes : 1;
    double apart = problem->spatial > 2 ? FAR_BANDS : bytes >= 4 ? BANDED : 1;
    for (int64_t v = vector; v >= 16; v /= 2) { /* shorter vectors have larger boxes */
        int64_t width = v / bytes, used = problem->axis[0].adaptive || planes >= width
                                              ? planes
                                              : planes * problem->axis[0].out;
        double turned = cells_read(problem, TILE_BYTES / (v * problem->lanes));
        double steps = (taps * sums + turned + 2) * (double)(vector / v) * (double)width /
                       (double)min_i64(width, used) * (used > planes ? apart : 1);
        if (turned > 0 && (least == 0 || steps < least))
            least = steps;
    }
    return least > 0 ? least : 1e30; /* it does not fit */
}

/* How rows fold windows along the last axis. */
typedef enum { CHANNELS, SLIDING_CHANNELS, SLIDING, EVERY_SECOND, PICKED, TURNED, WAYS } way;

static way way_across(const tarn_problem *problem)
{
    const tarn_axis *axis = &problem->axis[problem->spatial - 1];
    int64_t bytes = problem->element_bytes[TARN_X];
    int64_t term = problem->op == TARN_AVG ? 4 : 1; /* bytes that elements are converted to */
    /* One window to a row does not slide; but rows folded down, not converted, are short work. */
    bool lone = axis->out == 1 && (problem->spatial == 1 || bytes < 4);
    if (problem->lanes * max_i64(bytes, term) >= 16)
        return !axis->adaptive && axis->stride == 1 && axis->out > 1 ? SLIDING_CHANNELS : CHANNELS;
    if (axis->adaptive || lone || axis->stride > MOST_PICKED)
        return TURNED;
    if (axis->stride == 1 || axis->out == 1)
        return SLIDING;
    return axis->stride == 2 && problem->lanes == 1 ? EVERY_SECOND : PICKED;
}

/* What rows do along the last axis. Windows slide by one pixel, also those of other strides, of
 * which some are picked then; many taps are doubled. Pixels of a vector are folded one by one. */
static double across_steps(const tarn_problem *problem, way across, int64_t vector)
{
    enum { MOST_SHIFTED = 16 };
    const double PICK = 1.5;
    const tarn_axis *axis = &problem->axis[problem->spatial - 1];
    int64_t pixel = problem->lanes * problem->element_bytes[TARN_X];
    double taps = (double)axis->kernel;
    if (across == CHANNELS)
        return taps * idle_lanes(pixel, vector);
    if (axis->kernel > MOST_SHIFTED)
        for (taps = 0; (INT64_C(1) << (int)(taps / 2)) < axis->kernel;)
            taps += 2;
    return across == PICKED ? taps * (double)axis->stride + PICK * (double)vector / (double)pixel
                            : taps;
}

/* What rows do in all: one axis after the other, on each the taps of all cells that the next ones
 * read. Rows are kept for the windows below, but not for those of outer axes: there, taps multiply.
 * Short rows and dilated windows take more, adaptive ones are done row by row; numbers of taps that
 * are wider than values take twice as much. */
static double rows_steps(const tarn_problem *problem, bool codes, way across, int64_t vector)
{
    enum { ROW = 3, ROW_ALONE = 80 };
    int64_t core = problem->element_bytes[TARN_X], bits = 8 * core;
    int last = problem->spatial - 1;
    double taps = across_steps(problem, across, vector), cells = 1, outer = 0;
    double row = (double)(problem->lanes * core * problem->axis[last].out);
    bool even = true, alone = false;
    while (codes && bits < 32 && taps_of(problem) >> bits != 0)
        bits *= 2;
    for (int a = 0; a + 1 < last; a++)
        outer = (outer + 1) * (double)problem->axis[a].kernel;
    for (int a = last; a >= 0; a--) {
        const tarn_axis *axis = &problem->axis[a];
        if (a + 1 == last)
            taps += (double)axis->kernel * cells;
        if (a + 2 >= last)
            cells *= (double)axis->size / (double)axis->out;
        if (a + 2 == last)
            taps += outer * cells / ((double)axis->size / (double)axis->out);
        even &= axis->adaptive || axis->dilation == 1;
        alone |= axis->adaptive && axis->out > 1;
    }
    const tarn_axis *below = &problem->axis[max_i64(last - 1, 0)];
    double calls = 1 + outer * (double)below->size / (double)below->out;
    return (taps + cells + (alone ? ROW_ALONE : ROW) * calls * (double)vector / row) *
           (even ? 1 : 1.8) * (double)(bits / 8 / core);
}

/* How many steps of lanes take as long as one of rows: measured on random problems. */
static double worth_of_row_step(const tarn_problem *problem, bool codes, way across)
{
    static const float worth[WAYS][3] = {
        /* values, winners, sums */
        [CHANNELS] = {1.9f, 3.4f, 6},     [SLIDING_CHANNELS] = {1, 1.5f, 1.2f},
        [SLIDING] = {1.15f, 1.6f, 0.46f}, [EVERY_SECOND] = {1.1f, 1, 0.83f},
        [PICKED] = {0.55f, 0.62f, 0.42f}, [TURNED] = {1.9f, 2.6f, 1.35f}};
    bool sums = problem->op == TARN_AVG, converts = sums && problem->element_bytes[TARN_X] < 4;
    return (double)worth[across][sums ? 2 : codes] * (converts ? 1.5 : 1);
}

/* What long runs do for as many outputs, in steps of lanes: each run and each window takes some
 * steps, however short it is. Runs of extremes go on over axes that are read from end to end; sums
 * are folded down to one. */
static double long_steps(const tarn_problem *problem, bool codes, int64_t vector)
{
    enum { RUN = 13, WINDOW = 20, FIND = 25 };
    bool sums = problem->op == TARN_AVG;
    int64_t bytes = problem->element_bytes[TARN_X];
    double taps = (double)taps_of(problem), runs = 1;
    int last = problem->spatial - 1, a = last - 1;
    if (!sums)
        while (a >= 0 && problem->axis[a + 1].kernel == problem->axis[a + 1].size)
            a--;
    for (; a >= (sums ? 1 : 0); a--) /* the first axis is summed in one go */
        runs *= (double)problem->axis[a].kernel;
    double width = (double)vector / (double)(sums && bytes < 4 ? 4 : bytes);
    double along = sums && problem->spatial > 1 ? 2 * (double)problem->axis[last].kernel : 0;
    return taps * (codes ? 1.3 : 1) + along +
           width * (RUN * (sums ? 2 : 1) * runs + WINDOW + (codes ? FIND : 0));
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

static double cost_of_rows(const tarn_problem *problem, bool codes, int64_t vector)
{
    way across = way_across(problem);
    return worth_of_row_step(problem, codes, across) * rows_steps(problem, codes, across, vector);
}

static choice choose_forward(const tarn_problem *problem, tarn_pass pass, int64_t vector)
{
    bool codes = is_extreme(problem) && pass != TARN_FORWARD;
    bool has_lanes = lanes_accept(problem, pass); /* and so numbers that are moderate */
    if (long_accepts(problem, pass) && planes_are_short(problem, vector))
        return (choice){ENGINE_LONG, "whole planes, many at a time"};
    double least = cost_of_rows(problem, codes, vector),
           lanes = has_lanes ? lanes_steps(problem, codes, vector) : 0;
    has_lanes &= lanes < least;
    if (long_accepts(problem, pass) &&
        long_steps(problem, codes, vector) < (has_lanes ? lanes : least))
        return (choice){ENGINE_LONG, "window by window, as each is a few long runs"};
    if (has_lanes)
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
    if (problem->skips && pass != TARN_VJP_SAVED)
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

/* Where 64-byte vectors gain a tenth over 32-byte ones, as measured on random problems (Emerald
 * Rapids). Elsewhere they are as fast or slower: turned rows of short elements need more planes
 * than there are, and indices, tangents and winners are looked up one by one. */
static bool gains_by_avx512(const tarn_problem *problem, tarn_pass pass)
{
    int64_t bytes = problem->element_bytes[TARN_X];
    bool looks_up = is_extreme(problem) && (pass == TARN_FORWARD_INDICES || pass == TARN_JVP);
    bool wide = bytes >= 4;
    if (problem->lanes * bytes >= 64)
        return true;
    switch (choose_engine(problem, pass, 64).engine) {
    case ENGINE_LANES:
        return wide && !looks_up && problem->planes * bytes >= 64;
    case ENGINE_FORWARD:
        return way_across(problem) != TURNED;
    case ENGINE_BACKWARD_WINNERS:
        return wide && pass == TARN_VJP;
    default:
        return true;
    }
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
