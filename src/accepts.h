/* Predicates of the kernel table: which problems a kernel takes. */
#ifndef TARN_ACCEPTS_H
#define TARN_ACCEPTS_H

#include "problem.h"
#include "kernel/backward_limits.h"
#include "kernel/recomputed.h"
#include "kernel/tap_limits.h"

static inline bool any(const tarn_problem *problem)
{
    (void)problem;
    return true;
}

static inline bool windows_are_disjoint(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        bool apart = axis->adaptive ? axis->size % axis->out == 0
                                    : axis->stride > (axis->kernel - 1) * axis->dilation;
        if (!apart && axis->out > 1)
            return false;
    }
    return true;
}

/* Whether every window of an axis has a real tap. Taps no further apart than the axis is long cannot step over it. */
static inline bool every_window_reads(const tarn_axis *axis)
{
    return (axis->kernel == 1 || axis->dilation <= axis->size) && axis->lo <= (axis->kernel - 1) * axis->dilation &&
           (axis->out - 1) * axis->stride - axis->lo < axis->size;
}

/* Whether the elements of a row lie side by side, as lanes do, in all tensors. */
static inline bool rows_are_dense(const tarn_problem *problem)
{
    for (int k = 0; k < OPERANDS && problem->lanes == 1; k++)
        if (problem->stride[k][problem->spatial - 1] != 1)
            return false;
    return true;
}

/* What tiles of sliding.h take: windows of moderate size, each with a real tap. */
static inline bool windows_slide(const tarn_problem *problem)
{
    int64_t outer_taps = 1;
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        bool inner = a >= problem->spatial - 2, last = a == problem->spatial - 1;
        if (axis->adaptive || !every_window_reads(axis) || (axis->dilation > 1 && inner))
            return false;
        if (inner && (axis->kernel > LONGEST_KERNEL || axis->stride > 64 ||
                      axis->kernel + (last ? 1 : 7) * axis->stride > 72))
            return false;
        if (!inner && (axis->kernel > LONGEST_KERNEL || axis->dilation > 1 << 20 ||
                       (outer_taps *= axis->kernel) > 64))
            return false;
    }
    return rows_are_dense(problem);
}

/* Winners are counted in integers as wide as the values: a byte holds 255 taps. */
static inline bool winners_slide(const tarn_problem *problem)
{
    int64_t most = tarn_dtype_size(problem->dtype) == 1 ? 255 : 65535;
    return windows_slide(problem) && taps_of(problem) <= most;
}

/* ... and of those taps the cells are listed. */
static inline bool indices_slide(const tarn_problem *problem)
{
    int64_t cells = 1;
    for (int a = 0; a < problem->spatial; a++)
        if (!checked_mul(cells, problem->axis[a].size, &cells) || cells > INT32_MAX)
            return false;
    return winners_slide(problem) && taps_of(problem) <= MOST_INDEXED_TAPS;
}

static inline bool sums_slide(const tarn_problem *problem)
{
    return windows_slide(problem) && problem->spatial <= 3;
}

/* Whether means of integers can be computed in f32, see short_integers.h. */
static inline bool means_fit_f32(const tarn_problem *problem)
{
    int64_t most = tarn_dtype_size(problem->dtype) == 1 ? 32767 : 255;
    return taps_of(problem) <= most && problem->divisor <= most;
}

static inline bool short_sums_slide(const tarn_problem *problem)
{
    return sums_slide(problem) && means_fit_f32(problem);
}

/* Bytes of a number that is computed with. */
static inline int64_t computed_bytes(const tarn_problem *problem)
{
    bool halves = problem->dtype == TARN_F16 || problem->dtype == TARN_BF16;
    return halves ? 4 : (int64_t)tarn_dtype_size(problem->dtype);
}

/* Large windows, one apart, over planes that are wide enough for rows to pay, see streams.h. */
static inline bool windows_stream(const tarn_problem *problem, int64_t least_kernel)
{
    enum { LEAST_COLUMNS = 64, LEAST_ROWS = 8 };
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    return problem->spatial == 2 && windows_slide(problem) && down->stride == 1 && across->stride == 1 &&
           down->kernel >= least_kernel && across->kernel >= least_kernel && down->out >= LEAST_ROWS &&
           across->out * problem->lanes >= LEAST_COLUMNS;
}

static inline bool planes_stream(const tarn_problem *problem, int64_t least_kernel)
{
    return problem->lanes == 1 && windows_stream(problem, least_kernel);
}

/* Of interleaved planes, a window's columns are to be few beside those that are in hand. */
static inline bool extremes_stream(const tarn_problem *problem)
{
    enum { MOST_BYTES = 4096 };
    int64_t lanes = problem->lanes;
    bool dense = problem->stride[TARN_X][1] == lanes && problem->stride[TARN_Y][1] == lanes;
    return windows_stream(problem, 5) &&
           (lanes == 1 || (dense && lanes <= MOST_BYTES / computed_bytes(problem) / problem->axis[1].kernel));
}

/* Windows of planes, one apart, see scans.h. */
static inline bool windows_scan(const tarn_problem *problem)
{
    enum { LEAST_KERNEL = 3, LEAST_COLUMNS = 8, LEAST_LANES = 16 };
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    return problem->spatial == 2 && windows_slide(problem) && down->stride == 1 && across->stride == 1 &&
           down->kernel >= LEAST_KERNEL && across->kernel >= LEAST_KERNEL &&
           (problem->lanes > 1 ? problem->lanes >= LEAST_LANES : across->out >= LEAST_COLUMNS);
}

static inline bool tangents_scan(const tarn_problem *problem)
{
    return windows_scan(problem) && problem->ties == TARN_TIES_FIRST;
}

static inline bool sums_stream(const tarn_problem *problem)
{
    return planes_stream(problem, 4);
}

/* Bytes have running sums. */
static inline bool short_sums_stream(const tarn_problem *problem)
{
    int64_t least_kernel = tarn_dtype_size(problem->dtype) == 1 ? 2 : 4;
    return planes_stream(problem, least_kernel) && means_fit_f32(problem);
}

static inline bool tangents_slide(const tarn_problem *problem)
{
    return windows_slide(problem) && problem->ties == TARN_TIES_FIRST;
}

static inline bool average_slides_backward(const tarn_problem *problem)
{
    return slides_backward(problem, 2 * rows_kept(problem) + 4,
                           most_readers(&problem->axis[problem->spatial - 1])) &&
           (problem->spatial < 3 || most_readers(&problem->axis[0]) <= 8);
}

static inline bool winners_are_contiguous(const tarn_problem *problem)
{
    return problem->ties == TARN_TIES_FIRST && problem->element_bytes[OPERAND_SAVED] <= 4 &&
           problem->stride[OPERAND_SAVED][problem->spatial - 1] == problem->lanes;
}

static inline bool winners_slide_backward(const tarn_problem *problem)
{
    int inner = problem->spatial - 1;
    for (int a = 0; a <= inner; a++)
        if (most_readers(&problem->axis[a]) > 8)
            return false;
    return winners_are_contiguous(problem) &&
           slides_backward(problem, 2 * rows_kept(problem) + 1,
                           most_readers(&problem->axis[inner]));
}

/* Large windows on two axes: asking every window of a cell would take longer. */
static inline bool winners_scatter(const tarn_problem *problem)
{
    enum { FEW_READERS = 25 };
    const tarn_axis *axis = problem->axis;
    return problem->spatial == 2 && winners_are_contiguous(problem) &&
           most_readers(&axis[0]) * most_readers(&axis[1]) > FEW_READERS &&
           axis[0].kernel <= MOST_TAPS && axis[1].kernel <= MOST_TAPS / axis[0].kernel &&
           slides_backward(problem, scatter_rows(problem), scatter_halo(problem));
}

/* Windows that meet, on two axes: more of them to a cell than are soon asked. Lanes, rows of windows or planes, fill
 * vectors, also the longest; the places of cells, and of padding around them, are counted in 31 bits. */
static inline bool winners_run(const tarn_problem *problem)
{
    enum { FEW_READERS = 9, FEW_LANE_READERS = 16, LONGEST_VECTOR = 16 };
    const tarn_axis *axis = problem->axis;
    int64_t lanes = problem->lanes, few = lanes > 1 ? FEW_LANE_READERS : FEW_READERS;
    return problem->spatial == 2 && winners_are_contiguous(problem) &&
           most_readers(&axis[0]) * most_readers(&axis[1]) > few &&
           (lanes > 1 ? lanes : axis[1].out) >= LONGEST_VECTOR && axis[1].out <= MOST_RUN_WINDOWS &&
           axis[0].kernel <= MOST_TAPS && axis[1].kernel <= MOST_TAPS / axis[0].kernel &&
           axis[0].lo < axis[0].kernel && axis[1].lo < axis[1].kernel &&
           axis[1].size <= MOST_RUN_COLUMNS && axis[0].size <= (1 << 30) / MOST_RUN_COLUMNS &&
           problem->stride[TARN_GX][1] == lanes && problem->stride[TARN_GX][0] == axis[1].size * lanes &&
           slides_backward(problem, scatter_rows(problem), scatter_halo(problem));
}

/* Interleaved planes that fill vectors, also the longest. */
static inline bool average_in_lanes(const tarn_problem *problem)
{
    return problem->lanes >= 16 && windows_of_cell(problem) == 1;
}

static inline bool winners_in_lanes(const tarn_problem *problem)
{
    return problem->lanes >= 16 && problem->ties == TARN_TIES_FIRST &&
           problem->element_bytes[OPERAND_SAVED] <= 4 &&
           windows_of_cell(problem) <= MOST_LANE_WINDOWS;
}

/* Windows of three by three, see backward_patches.inc; rows of gradients lie side by side. */
static inline bool windows_in_patches(const tarn_problem *problem)
{
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    return problem->spatial == 2 && most_readers(down) <= MOST_READERS && most_readers(across) <= MOST_READERS &&
           down->kernel == 3 && across->kernel == 3 && across->stride == down->stride &&
           (problem->lanes > 1 || (problem->stride[TARN_GX][1] == 1 && problem->stride[TARN_GY][1] == 1));
}

static inline bool winners_in_patches(const tarn_problem *problem)
{
    return windows_in_patches(problem) && problem->lanes == 1 && problem->axis[0].stride <= 2 &&
           problem->ties == TARN_TIES_FIRST && problem->element_bytes[OPERAND_SAVED] == 1 &&
           problem->stride[OPERAND_SAVED][1] == 1;
}

/* ... one apart, each with a tap that counts. Interleaved planes fill vectors, also the longest. */
static inline bool shares_in_patches(const tarn_problem *problem)
{
    return windows_in_patches(problem) && problem->axis[0].stride == 1 && every_window_reads(&problem->axis[0]) &&
           every_window_reads(&problem->axis[1]) && (problem->lanes == 1 || problem->lanes >= 16);
}

/* Two columns in each window, no window meets another or reaches beyond the input. */
static inline bool in_pairs(const tarn_problem *problem)
{
    int inner = problem->spatial - 1;
    for (int a = 0; a <= inner; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (most_readers(axis) > 1 || axis->lo > 0 ||
            axis->size - axis->kernel < (axis->out - 1) * axis->stride)
            return false;
    }
    return inner > 0 && problem->axis[inner].kernel == 2 && problem->axis[inner].stride == 2 &&
           problem->lanes == 1 && problem->stride[TARN_GX][inner] == 1 &&
           problem->stride[TARN_GY][inner] == 1;
}

static inline bool winners_in_pairs(const tarn_problem *problem)
{
    return in_pairs(problem) && problem->ties == TARN_TIES_FIRST &&
           problem->element_bytes[OPERAND_SAVED] == 1 &&
           problem->stride[OPERAND_SAVED][problem->spatial - 1] == 1;
}

/* Whether a plane's cells lie side by side, in row-major order. */
static inline bool is_dense(const tarn_problem *problem, int operand)
{
    int64_t step = 1;
    for (int a = problem->spatial - 1; a >= 0; a--) {
        if (problem->axis[a].size > 1 && problem->stride[operand][a] != step)
            return false;
        step *= problem->axis[a].size;
    }
    return true;
}

static inline bool have_equal_strides(const tarn_problem *problem, int one, int other)
{
    for (int a = 0; a < problem->spatial; a++)
        if (problem->axis[a].size > 1 && problem->stride[one][a] != problem->stride[other][a])
            return false;
    return true;
}

/* Planes in one run, of up to two axes, dense or with enough channels last to fill vectors. Cells are counted
 * in 31 bits. */
static inline bool has_vector_planes(const tarn_problem *problem)
{
    int64_t cells = 1;
    for (int a = 0; a < problem->spatial; a++) {
        if (problem->axis[a].size > INT32_MAX / cells)
            return false;
        cells *= problem->axis[a].size;
    }
    if (problem->spatial > 2 || problem->leading > 1)
        return false;
    if (problem->lanes > 1)
        return problem->lanes >= 8 && have_equal_strides(problem, TARN_X, TARN_DX);
    return is_dense(problem, TARN_X) && is_dense(problem, TARN_DX) && is_dense(problem, TARN_GX);
}

/* One window that covers its plane. */
static inline bool is_global(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        tarn_span taps = window_taps(axis, 0);
        if (axis->out != 1 || taps.n != axis->size || taps.lo != 0 || taps.hi != taps.n ||
            (taps.step != 1 && taps.n > 1))
            return false;
    }
    return has_vector_planes(problem);
}

/* Adaptive windows whose rows fit buffers, and whose taps are few enough for f32 to count them. */
static inline bool is_adaptive(const tarn_problem *problem)
{
    const tarn_axis *rows = &problem->axis[0], *columns = &problem->axis[1];
    return problem->spatial == 2 && rows->adaptive && columns->size <= 128 && columns->out <= 128 &&
           rows->size <= 1 << 16 && has_vector_planes(problem);
}

/* ... of which no more than two on an axis meet in a cell. */
static inline bool is_adaptive_down(const tarn_problem *problem)
{
    return is_adaptive(problem) && problem->axis[0].out <= problem->axis[0].size &&
           problem->axis[1].out <= problem->axis[1].size;
}

static inline bool is_adaptive_first(const tarn_problem *problem)
{
    return is_adaptive(problem) && problem->ties == TARN_TIES_FIRST;
}

static inline bool is_adaptive_down_first(const tarn_problem *problem)
{
    return is_adaptive_down(problem) && problem->ties == TARN_TIES_FIRST;
}

/* Sliding windows in one or two dimensions that fit the rings of weights.inc. */
static inline bool has_small_windows(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || axis->kernel > 8 || axis->stride > 16 || axis->dilation > 1)
            return false;
    }
    return problem->spatial <= 2;
}

/* From x: winners are recomputed into a buffer and then used as saved ones. */
static inline bool winners_can_be_recomputed(const tarn_problem *problem)
{
    if (problem->ties != TARN_TIES_FIRST || problem->planes == 0)
        return false;
    for (int a = 0; a < problem->spatial; a++)
        if (most_readers(&problem->axis[a]) > MOST_READERS || !every_window_reads(&problem->axis[a]))
            return false;
    tarn_box box = box_of(problem);
    tarn_problem part;
    memcpy(&part, problem, offsetof(tarn_problem, lead_size)); /* one plane has no leading axes */
    int64_t first;
    for (int a = 0; a < problem->spatial; a++)
        part.axis[a] = axis_of_gradients(&problem->axis[a], 0, box.cells[a], &first);
    set_box_lanes(&part, box.lanes);
    return box.lanes > 0 && (winners_slide_backward(&part) || winners_scatter(&part) ||
                             winners_in_pairs(&part) || winners_in_lanes(&part));
}

/* Two taps, two apart, on both axes of a plane or all three of a volume; no window reaches beyond the input. */
static inline bool are_pairs(const tarn_problem *problem)
{
    if (problem->spatial < 2 || problem->spatial > 3 || problem->lanes > 1)
        return false;
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || axis->kernel != 2 || axis->stride != 2 || axis->dilation != 1 ||
            axis->lo > 0 || axis->out > axis->size / 2)
            return false;
    }
    return rows_are_dense(problem);
}

static inline bool are_pairs_first(const tarn_problem *problem)
{
    return are_pairs(problem) && problem->ties == TARN_TIES_FIRST;
}

/* Whether rows of x or dx, or of results, follow each other without a gap. */
static inline bool reads_follow(const tarn_problem *problem, int operand)
{
    return problem->axis[0].size == 1 || problem->stride[operand][0] == problem->axis[1].size;
}

static inline bool results_follow(const tarn_problem *problem, int operand)
{
    return problem->axis[0].out == 1 || problem->stride[operand][0] == problem->axis[1].out;
}

/* Three taps on the only axis, see narrow_line.inc. */
static inline bool lines_are_narrow(const tarn_problem *problem)
{
    const tarn_axis *axis = &problem->axis[0];
    return problem->spatial == 1 && problem->lanes == 1 && axis->kernel == 3 && axis->stride <= 2 &&
           windows_slide(problem);
}

/* Three or five taps on both axes, see narrow.inc. */
static inline bool windows_are_narrow(const tarn_problem *problem)
{
    if (problem->spatial != 2 || !windows_slide(problem))
        return false;
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    bool threes = across->kernel == 3 && across->stride <= 2;
    bool fives = across->kernel == 5 && across->stride == 1;
    return (threes || fives) && down->kernel == across->kernel;
}

/* ... of a plane without gaps. */
static inline bool planes_are_narrow(const tarn_problem *problem)
{
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    return problem->lanes == 1 && windows_are_narrow(problem) && across->size >= across->kernel &&
           across->out <= ceil_div(across->size, across->stride) &&
           narrow_rows(down, across->size, computed_bytes(problem)) > 0 && reads_follow(problem, TARN_X) &&
           results_follow(problem, TARN_Y);
}

/* ... unless so few of its rows are in hand at once that streams do better. */
static inline bool plane_extremes_are_narrow(const tarn_problem *problem)
{
    enum { FEW_ROWS = 8 };
    return planes_are_narrow(problem) &&
           (narrow_rows(&problem->axis[0], problem->axis[1].size, computed_bytes(problem)) >= FEW_ROWS ||
            !extremes_stream(problem));
}

static inline bool winners_are_narrow(const tarn_problem *problem)
{
    return planes_are_narrow(problem) && results_follow(problem, OPERAND_SAVED);
}

static inline bool tangents_are_narrow(const tarn_problem *problem)
{
    return planes_are_narrow(problem) && problem->ties == TARN_TIES_FIRST && reads_follow(problem, TARN_DX) &&
           results_follow(problem, TARN_DY);
}

/* Two apart, few taps are shared, and pixels.inc, where this is spelled out, reads rows from end to end: prefetchers follow
 * it, and not the blocks of columns of narrow_lanes.inc. */
static inline bool pixels_go_one_by_one(const tarn_problem *problem)
{
    return problem->dtype == TARN_F32 && problem->op == TARN_MAX && problem->axis[1].stride == 2 && problem->lanes >= 32;
}

/* ... of planes that are interleaved without gaps and fill a vector, also the longest. */
static inline bool pixels_are_narrow(const tarn_problem *problem)
{
    int64_t lanes = problem->lanes;
    int64_t bytes = computed_bytes(problem);
    return windows_are_narrow(problem) && !pixels_go_one_by_one(problem) && lanes * bytes >= 64 &&
           problem->stride[TARN_X][1] == lanes && problem->stride[TARN_Y][1] == lanes &&
           narrow_rows(&problem->axis[0], narrow_columns(problem) * lanes, bytes) > 0 &&
           (narrow_columns(problem) * problem->axis[1].stride + problem->axis[1].kernel) * lanes * bytes <=
               NARROW_BYTES;
}

static inline bool pixel_extremes_are_narrow(const tarn_problem *problem)
{
    return pixels_are_narrow(problem) && !extremes_stream(problem);
}

static inline bool pixel_winners_are_narrow(const tarn_problem *problem)
{
    return pixels_are_narrow(problem) && problem->stride[OPERAND_SAVED][1] == problem->lanes;
}

/* Two apart, few windows read a pixel, and pixels.inc is faster. */
static inline bool pixel_tangents_narrow(const tarn_problem *problem)
{
    return pixels_are_narrow(problem) && problem->axis[1].stride == 1 && problem->ties == TARN_TIES_FIRST &&
           problem->stride[TARN_DX][1] == problem->lanes && problem->stride[TARN_DY][1] == problem->lanes;
}

/* Averages of three by three, one apart, with padding of one or none across. */
static inline bool averages_are_narrow(const tarn_problem *problem)
{
    if (problem->spatial != 2 || !windows_slide(problem))
        return false;
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    return across->kernel == 3 && down->kernel == 3 && across->stride == 1 && down->stride == 1 && across->size >= 3 &&
           across->lo <= 1 && across->out - across->lo < across->size;
}

static inline bool plane_averages_are_narrow(const tarn_problem *problem)
{
    const tarn_axis *across = &problem->axis[1];
    return problem->lanes == 1 && averages_are_narrow(problem) && across->out <= across->size &&
           across->size <= NARROW_USUAL / (int64_t)sizeof(double) && reads_follow(problem, TARN_X) &&
           results_follow(problem, TARN_Y);
}

static inline bool plane_tangents_are_narrow(const tarn_problem *problem)
{
    return plane_averages_are_narrow(problem) && reads_follow(problem, TARN_DX) && results_follow(problem, TARN_DY);
}

/* Bytes of wide planes have running sums. */
static inline bool short_plane_averages_are_narrow(const tarn_problem *problem)
{
    bool bytes = tarn_dtype_size(problem->dtype) == 1;
    return plane_averages_are_narrow(problem) && means_fit_f32(problem) && !(bytes && short_sums_stream(problem));
}

/* ... of interleaved planes that fill a vector, also the longest; sums are of at least 4 bytes. */
static inline bool pixel_averages_are_narrow(const tarn_problem *problem)
{
    int64_t lanes = problem->lanes;
    return lanes >= 16 && averages_are_narrow(problem) && problem->stride[TARN_X][1] == lanes &&
           problem->stride[TARN_Y][1] == lanes &&
           (narrow_columns(problem) + 2) * lanes <= NARROW_USUAL / (int64_t)sizeof(double);
}

static inline bool pixel_tangents_are_narrow(const tarn_problem *problem)
{
    return pixel_averages_are_narrow(problem) && problem->stride[TARN_DX][1] == problem->lanes &&
           problem->stride[TARN_DY][1] == problem->lanes;
}

static inline bool short_pixel_averages_are_narrow(const tarn_problem *problem)
{
    return pixel_averages_are_narrow(problem) && means_fit_f32(problem);
}

/* Windows of few taps, each with a real one, and channels last that fill a vector. Where many windows read a
 * pixel, narrow types do better to share what they convert and compare. */
static inline bool pixels_are_wide(const tarn_problem *problem)
{
    enum { FEW_READERS = 4 };
    int64_t taps = 1, readers = 1, bytes = (int64_t)tarn_dtype_size(problem->dtype);
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || !every_window_reads(axis) || axis->kernel > MOST_PIXEL_TAPS ||
            (taps *= axis->kernel) > MOST_PIXEL_TAPS)
            return false;
        readers *= ceil_div(axis->kernel, axis->stride);
    }
    return problem->lanes >= 32 / bytes && (bytes >= 4 || readers <= FEW_READERS);
}

/* Three by three, or five by five in dense planes: where narrow.inc or pixels.inc would do, too. See columns_first.inc. */
static inline bool columns_come_first(const tarn_problem *problem)
{
    enum { LONG_ROW = 112 }; /* from here on it takes less time than narrow.inc */
    const tarn_axis *down = &problem->axis[0], *across = &problem->axis[1];
    if (!windows_are_narrow(problem) || down->stride != across->stride || down->lo > down->kernel / 2 ||
        across->lo > across->kernel / 2)
        return false;
    if (problem->lanes == 1) /* one apart, short rows would be read again before they are written */
        return planes_are_narrow(problem) && (across->stride == 2 || across->size >= LONG_ROW);
    return across->kernel == 3 && (across->stride == 1 ? pixels_are_narrow(problem) : pixels_are_wide(problem)) &&
           problem->stride[TARN_X][1] == problem->lanes && problem->stride[TARN_Y][1] == problem->lanes &&
           (down->size == 1 || problem->stride[TARN_X][0] == across->size * problem->lanes);
}

static inline bool columns_of_bytes_come_first(const tarn_problem *problem)
{
    enum { LONG_ROW = 448 }; /* as above: as many bytes */
    return problem->lanes == 1 && problem->axis[1].stride == 1 && problem->axis[1].size >= LONG_ROW &&
           columns_come_first(problem);
}

static inline bool pixel_tangents(const tarn_problem *problem)
{
    int inner = problem->spatial - 1;
    return pixels_are_wide(problem) && problem->ties == TARN_TIES_FIRST &&
           problem->stride[TARN_X][inner] == problem->stride[TARN_DX][inner];
}

/* Sums have up to four terms on each of three axes. */
static inline bool pixel_sums(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++)
        if (problem->axis[a].kernel > 4)
            return false;
    return problem->spatial <= 3 && pixels_are_wide(problem);
}

static inline bool short_pixel_sums(const tarn_problem *problem)
{
    return pixel_sums(problem) && means_fit_f32(problem);
}

/* One plane of few taps, without padding or dilation. */
static inline bool is_small(const tarn_problem *problem)
{
    int64_t taps = 1;
    if (problem->spatial != 2 || problem->planes != 1 || problem->lanes != 1)
        return false;
    for (int a = 0; a < 2; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || axis->dilation != 1 || axis->lo > 0 || axis->kernel > MOST_SMALL_TAPS ||
            axis->out > MOST_SMALL_TAPS || axis->stride > INT32_MAX ||
            axis->size - axis->kernel < (axis->out - 1) * axis->stride)
            return false;
        taps *= axis->kernel * axis->out;
    }
    return taps <= MOST_SMALL_TAPS;
}

static inline bool is_small_with_tangents(const tarn_problem *problem)
{
    return is_small(problem) && problem->ties == TARN_TIES_FIRST;
}

static inline bool is_small_sum(const tarn_problem *problem)
{
    return is_small(problem) && problem->axis[0].kernel <= MOST_SMALL_SIDE &&
           problem->axis[1].kernel <= MOST_SMALL_SIDE;
}

/* ... of few cells, whose windows do not meet. */
static inline bool is_small_apart(const tarn_problem *problem)
{
    return is_small(problem) && windows_are_disjoint(problem) && problem->axis[0].size <= MOST_SMALL_TAPS &&
           problem->axis[1].size <= MOST_SMALL_TAPS / problem->axis[0].size && problem->ties == TARN_TIES_FIRST;
}

static inline bool short_pairs(const tarn_problem *problem)
{
    return are_pairs(problem) && short_sums_slide(problem);
}

#endif
