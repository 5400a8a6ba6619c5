/* The specification in exact rational arithmetic (GMP).
 *
 * src/spec/spec.inc is instantiated a second time, for rationals: the very text that the library's
 * dtypes are made from. What must hold exactly is checked exactly: that the text says what
 * docs/spec.md says (against loops written from that page alone) and that every VJP is the
 * transpose of its JVP. The library's own results are then held to the rationals: equal where one
 * rounding or none is made, within an a priori bound where several are.
 */
#include "exact.h"
#include "rational.h"

/* Logical tensors of rationals. */
typedef struct fields {
    Q x[MOST_ELEMENTS], y[MOST_ELEMENTS], dx[MOST_ELEMENTS], dy[MOST_ELEMENTS];
    Q gx[MOST_ELEMENTS], gy[MOST_ELEMENTS];
    int64_t index[MOST_ELEMENTS];
} fields;

static void put_rationals(const scene *s, int operand, Q const *logical, Q *memory)
{
    for (int64_t k = 0; k < elements_of(s, operand); k++)
        memory[place_in_view(&s->plan.view[operand], k)] = logical[k];
}

static void get_rationals(const scene *s, int operand, Q *logical, Q const *memory)
{
    for (int64_t k = 0; k < elements_of(s, operand); k++)
        logical[k] = memory[place_in_view(&s->plan.view[operand], k)];
}

static bool is_extreme(const scene *s)
{
    return s->pool.op == TARN_MAX || s->pool.op == TARN_MIN;
}

/* All passes of spec.inc over a scene planned for f64. The VJP is taken from x, or from winners. */
static void run_rationals(const scene *s, fields *f, bool from_saved)
{
    static Q x[MOST_ELEMENTS], y[MOST_ELEMENTS], dx[MOST_ELEMENTS], dy[MOST_ELEMENTS];
    static Q gx[MOST_ELEMENTS], gy[MOST_ELEMENTS];
    static int64_t indices[MOST_ELEMENTS], saved[MOST_ELEMENTS];
    const tarn_problem *p = &s->plan.problem;
    int64_t outputs = p->planes * p->axis[0].out, inputs = p->planes * p->axis[0].size;
    bool linear = s->pool.op == TARN_AVG;
    put_rationals(s, TARN_X, f->x, x);
    put_rationals(s, TARN_DX, f->dx, dx);
    put_rationals(s, TARN_GY, f->gy, gy);
    tarn_tensors forward = {{[TARN_X] = (char *)x, [TARN_Y] = (char *)y}};
    if (is_extreme(s))
        forward.base[TARN_INDICES] = (char *)indices;
    if (from_saved)
        forward.base[OPERAND_SAVED] = (char *)saved;
    exact_forward(p, &forward, 0, outputs);
    tarn_tensors jvp = {{[TARN_DX] = (char *)dx, [TARN_DY] = (char *)dy}};
    jvp.base[TARN_X] = linear ? NULL : (char *)x;
    exact_jvp(p, &jvp, 0, outputs);
    tarn_tensors vjp = {{[TARN_GY] = (char *)gy, [TARN_GX] = (char *)gx}};
    vjp.base[TARN_X] = linear || from_saved ? NULL : (char *)x;
    vjp.base[OPERAND_SAVED] = from_saved ? (char *)saved : NULL;
    exact_vjp(p, &vjp, 0, inputs);
    get_rationals(s, TARN_Y, f->y, y);
    get_rationals(s, TARN_DY, f->dy, dy);
    get_rationals(s, TARN_GX, f->gx, gx);
    for (int64_t k = 0; is_extreme(s) && k < elements_of(s, TARN_INDICES); k++)
        f->index[k] = indices[place_in_view(&s->plan.view[TARN_INDICES], k)];
}

/* ---- The same, from the page alone --------------------------------------------------------- */

static bool is_greater(const scene *s, Q a, Q b)
{
    return s->pool.op == TARN_MIN ? q_less(a, b) : q_less(b, a);
}

/* First extreme real tap; -1 without one. */
static int naive_winner(const scene *s, const window *w, Q const *x)
{
    int best = -1;
    for (int k = 0; k < w->taps; k++)
        if (w->tap[k].real && (best < 0 || is_greater(s, x[w->tap[k].cell], x[w->tap[best].cell])))
            best = k;
    return best;
}

static int64_t naive_ties(const window *w, Q const *x, Q top)
{
    int64_t ties = 0;
    for (int k = 0; k < w->taps; k++)
        ties += w->tap[k].real && q_equal(x[w->tap[k].cell], top);
    return ties;
}

/* A tap of smooth max that takes part; padding is the number 0. */
static bool takes_part(const scene *s, const tap *t)
{
    return t->real || s->pool.count_include_pad;
}

static Q naive_toy_sum(const scene *s, const window *w, Q const *x)
{
    Q sum = q_int(0);
    for (int k = 0; k < w->taps; k++)
        if (takes_part(s, &w->tap[k]))
            sum =
                q_add(sum, toy_weight(s->pool.beta, w->tap[k].real ? x[w->tap[k].cell] : q_int(0)));
    return sum;
}

static Q naive_toy_value(const scene *s, const window *w, Q const *x)
{
    Q top = NULL;
    for (int k = 0; k < w->taps; k++) {
        if (!takes_part(s, &w->tap[k]))
            continue;
        Q value = w->tap[k].real ? x[w->tap[k].cell] : q_int(0);
        if (!top || (s->pool.beta > 0 ? q_less(top, value) : q_less(value, top)))
            top = value;
    }
    return top ? q_add(top, naive_toy_sum(s, w, x)) : q_int(0);
}

/* Lp: the toy norm of the real taps. */
static Q naive_toy_norm(const scene *s, const window *w, Q const *x)
{
    Q sum = q_int(0), top = q_int(0);
    for (int k = 0; k < w->taps; k++) {
        if (!w->tap[k].real)
            continue;
        Q size = q_abs(x[w->tap[k].cell]);
        sum = q_add(sum, q_power(size, s->pool.power));
        top = q_less(top, size) ? size : top;
    }
    return toy_norm(top, s->pool.power, sum);
}

static Q naive_value(const scene *s, const window *w, Q const *x, int64_t *index)
{
    if (s->pool.op == TARN_SMOOTH)
        return naive_toy_value(s, w, x);
    if (s->pool.op == TARN_LP)
        return naive_toy_norm(s, w, x);
    if (s->pool.op != TARN_AVG) {
        int winner = naive_winner(s, w, x);
        *index = winner < 0 ? -1 : w->tap[winner].cell;
        return winner < 0 ? q_int(0) : x[*index];
    }
    Q sum = q_int(0);
    for (int k = 0; k < w->taps; k++)
        if (w->tap[k].real)
            sum = q_add(sum, x[w->tap[k].cell]);
    int64_t divisor = naive_divisor(s, w);
    return divisor > 0 ? q_div(sum, q_int(divisor)) : q_int(0);
}

/* One row of the Jacobian: row[k] is the derivative by the cell of real tap k. */
static void naive_row(const scene *s, const window *w, Q const *x, Q *row)
{
    int winner = is_extreme(s) ? naive_winner(s, w, x) : -1;
    Q top = winner < 0 ? NULL : x[w->tap[winner].cell];
    Q whole = q_int(1), none = q_int(0), share = none;
    if (s->pool.op == TARN_AVG && w->real > 0)
        share = q_div(whole, q_int(naive_divisor(s, w)));
    if (top)
        share =
            s->pool.ties == TARN_TIES_SPLIT ? q_div(whole, q_int(naive_ties(w, x, top))) : whole;
    if (s->pool.op == TARN_SMOOTH && w->real > 0)
        share = q_div(whole, naive_toy_sum(s, w, x));
    if (s->pool.op == TARN_LP)
        share = q_over(whole, q_power(naive_toy_norm(s, w, x), s->pool.power - 1));
    for (int k = 0; k < w->taps; k++) {
        row[k] = none;
        if (!w->tap[k].real)
            continue;
        Q value = x[w->tap[k].cell];
        if (s->pool.op == TARN_SMOOTH)
            row[k] = q_mul(share, toy_weight(s->pool.beta, value));
        else if (s->pool.op == TARN_LP)
            row[k] = q_mul(share, q_signed_power(value, s->pool.power - 1));
        else if (s->pool.op == TARN_AVG)
            row[k] = share;
        else if (s->pool.ties == TARN_TIES_FIRST ? k == winner : q_equal(value, top))
            row[k] = share;
    }
}

/* y, index, dy and gx of a scene, by loops over the taps of each window. */
static void run_naive(const scene *s, fields *f)
{
    static window w;
    static Q row[MOST_TAPS];
    for (int64_t k = 0; k < s->planes * s->cells; k++)
        f->gx[k] = q_int(0);
    for (int64_t k = 0; k < s->planes * s->outs; k++) {
        int64_t base = k / s->outs * s->cells;
        list_window(s, k % s->outs, &w);
        f->y[k] = naive_value(s, &w, f->x + base, &f->index[k]);
        naive_row(s, &w, f->x + base, row);
        f->dy[k] = q_int(0);
        for (int j = 0; j < w.taps; j++) {
            if (!w.tap[j].real)
                continue;
            int64_t cell = base + w.tap[j].cell;
            f->dy[k] = q_add(f->dy[k], q_mul(row[j], f->dx[cell]));
            f->gx[cell] = q_add(f->gx[cell], q_mul(row[j], f->gy[k]));
        }
    }
}

/* ---- Rationals against rationals ----------------------------------------------------------- */

static bool same(Q const *a, Q const *b, int64_t n)
{
    while (n-- > 0)
        if (!q_equal(a[n], b[n]))
            return false;
    return true;
}

static Q dot(Q const *a, Q const *b, int64_t n)
{
    Q sum = q_int(0);
    for (int64_t k = 0; k < n; k++)
        sum = q_add(sum, q_mul(a[k], b[k]));
    return sum;
}

static void check_same_results(const scene *s, const fields *a, const fields *b)
{
    int64_t outs = s->planes * s->outs, cells = s->planes * s->cells;
    CHECK(same(a->y, b->y, outs), "value: %s", describe(s));
    CHECK(same(a->dy, b->dy, outs), "jvp: %s", describe(s));
    CHECK(same(a->gx, b->gx, cells), "vjp: %s", describe(s));
    for (int64_t k = 0; is_extreme(s) && k < outs; k++)
        CHECK(a->index[k] == b->index[k], "index %lld: %s", (long long)k, describe(s));
}

/* Whether max is differentiable in this window: no tie, or no tap at all. */
static bool is_smooth_point(const scene *s, const window *w, Q const *x)
{
    int winner = naive_winner(s, w, x);
    return winner < 0 || naive_ties(w, x, x[w->tap[winner].cell]) == 1;
}

/* (pool(x + h dx) - pool(x)) / h. For avg any h will do; for max one that leaves the order of
 * the taps: inputs lie at least 1/6 apart and tangents are at most 40. */
static void check_difference_quotient(const scene *s, const fields *f)
{
    static fields moved;
    static window w;
    Q h = q_ratio(1, 1000);
    moved = *f;
    for (int64_t k = 0; k < s->planes * s->cells; k++)
        moved.x[k] = q_add(f->x[k], q_mul(h, f->dx[k]));
    run_rationals(s, &moved, false);
    for (int64_t k = 0; k < s->planes * s->outs; k++) {
        list_window(s, k % s->outs, &w);
        if (is_extreme(s) && !is_smooth_point(s, &w, f->x + k / s->outs * s->cells))
            continue;
        CHECK(q_equal(q_div(q_sub(moved.y[k], f->y[k]), h), f->dy[k]), "quotient %lld: %s",
              (long long)k, describe(s));
    }
}

static Q draw_derivative(rng *r)
{
    long numerator = (long)rng_range(r, -40, 40);
    return q_ratio(numerator, (unsigned long)rng_range(r, 1, 7));
}

/* Few values, so that ties are frequent; one case in four has thirds and halves in it. */
static void draw_rationals(rng *r, const scene *s, fields *f)
{
    unsigned long denominator = rng_range(r, 0, 3) ? 1 : 6;
    int64_t spread = rng_range(r, 0, 3) ? 2 : 30;
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        f->x[k] = q_ratio((long)rng_range(r, -spread, spread), denominator);
        f->dx[k] = draw_derivative(r);
    }
    for (int64_t k = 0; k < s->planes * s->outs; k++)
        f->gy[k] = draw_derivative(r);
}

static void check_rational_case(rng *r, tarn_op op)
{
    static fields f, naive;
    static scene s;
    arena.used = 0;
    draw_scene(r, &s, op);
    s.pool.beta = (double)rng_range(r, 1, 8) / 4;
    s.pool.beta = signed_by(r, s.pool.beta);
    s.pool.power = (double)rng_range(r, 1, 3);
    plan_scene(&s, TARN_F64);
    for (int a = 0; a < s.pool.spatial; a++)
        CHECK(s.plan.problem.axis[a].out == s.out[a], "axis %d: %s", a, describe(&s));
    draw_rationals(r, &s, &f);
    naive = f;
    run_rationals(&s, &f, false);
    run_naive(&s, &naive);
    check_same_results(&s, &f, &naive);
    CHECK(q_equal(dot(f.gy, f.dy, s.planes * s.outs), dot(f.gx, f.dx, s.planes * s.cells)),
          "adjoint: %s", describe(&s));
    if (op <= TARN_AVG)
        check_difference_quotient(&s, &f);
    if (is_extreme(&s) && s.pool.ties == TARN_TIES_FIRST) {
        run_rationals(&s, &f, true);
        check_same_results(&s, &f, &naive);
    }
}

/* ---- Integers: extremes, and averages rounded half to even --------------------------------- */

typedef struct integer_type {
    tarn_dtype dtype;
    int bits;
    bool is_signed;
} integer_type;

static const integer_type integer_types[8] = {
    {TARN_I8, 8, true},   {TARN_U8, 8, false},   {TARN_I16, 16, true}, {TARN_U16, 16, false},
    {TARN_I32, 32, true}, {TARN_U32, 32, false}, {TARN_I64, 64, true}, {TARN_U64, 64, false}};

/* The pattern of an integer in the low bits of a word, two's complement, little endian or not. */
static void store_pattern(const integer_type *t, void *memory, int64_t at, uint64_t pattern)
{
    switch (t->bits) {
    case 8:
        ((uint8_t *)memory)[at] = (uint8_t)pattern;
        break;
    case 16:
        ((uint16_t *)memory)[at] = (uint16_t)pattern;
        break;
    case 32:
        ((uint32_t *)memory)[at] = (uint32_t)pattern;
        break;
    default:
        ((uint64_t *)memory)[at] = pattern;
        break;
    }
}

static uint64_t load_pattern(const integer_type *t, const void *memory, int64_t at)
{
    switch (t->bits) {
    case 8:
        return ((const uint8_t *)memory)[at];
    case 16:
        return ((const uint16_t *)memory)[at];
    case 32:
        return ((const uint32_t *)memory)[at];
    default:
        return ((const uint64_t *)memory)[at];
    }
}

static Q q_pattern(const integer_type *t, uint64_t pattern)
{
    Q q = q_new();
    bool negative = t->is_signed && pattern >> (t->bits - 1) & 1;
    mpz_set_ui(mpq_numref(q->value), pattern);
    mpz_set_ui(mpq_denref(q->value), 1);
    return negative ? q_sub(q, q_power_of_two(t->bits)) : q;
}

/* The nearest integer, ties to even. */
static Q rounded_half_even(Q q)
{
    Q result = q_int(0);
    mpz_t rest;
    mpz_init(rest);
    mpz_fdiv_qr(mpq_numref(result->value), rest, mpq_numref(q->value), mpq_denref(q->value));
    mpz_mul_2exp(rest, rest, 1);
    int side = mpz_cmp(rest, mpq_denref(q->value));
    mpz_clear(rest);
    bool up = side > 0 || (side == 0 && mpz_odd_p(mpq_numref(result->value)));
    return up ? q_add(result, q_int(1)) : result;
}

/* A divisor below the number of taps can lead out of the type: never wrapping is to stop there. */
static Q clamped(const integer_type *t, Q q)
{
    Q low = t->is_signed ? q_sub(q_int(0), q_power_of_two(t->bits - 1)) : q_int(0);
    Q high = q_sub(q_power_of_two(t->is_signed ? t->bits - 1 : t->bits), q_int(1));
    return q_less(q, low) ? low : q_less(high, q) ? high : q;
}

static uint64_t draw_pattern(rng *r, const integer_type *t, int kind)
{
    uint64_t mask = UINT64_MAX >> (64 - t->bits), top = UINT64_C(1) << (t->bits - 1);
    switch (kind) {
    case 0:
        return rng_next(r) & mask; /* anything */
    case 1:
        return (uint64_t)rng_range(r, t->is_signed ? -2 : 0, 2) & mask; /* ties, and halves */
    case 2:
        return t->is_signed ? top - 1 : mask; /* greatest */
    case 3:
        return t->is_signed ? top : 0; /* least */
    default:
        return top - 1 + (uint64_t)rng_range(r, 0, 2); /* edges */
    }
}

static void check_integer_case(rng *r, const integer_type *t)
{
    static const tarn_op ops[] = {TARN_MAX, TARN_MIN, TARN_AVG, TARN_AVG};
    static uint64_t x[MOST_ELEMENTS], y[MOST_ELEMENTS];
    static int64_t indices[MOST_ELEMENTS];
    static fields f;
    static scene s;
    arena.used = 0;
    draw_scene(r, &s, ops[rng_range(r, 0, 3)]);
    plan_scene(&s, t->dtype);
    int kind = (int)rng_range(r, 0, 4);
    for (int64_t k = 0; k < s.planes * s.cells; k++) {
        uint64_t pattern = draw_pattern(r, t, kind);
        f.x[k] = q_pattern(t, pattern);
        f.dx[k] = q_int(0);
        store_pattern(t, x, place_in_view(&s.plan.view[TARN_X], k), pattern);
    }
    for (int64_t k = 0; k < s.planes * s.outs; k++)
        f.gy[k] = q_int(0);
    run_naive(&s, &f);
    CHECK(is_extreme(&s) ? tarn_forward_indices(&s.plan, x, y, indices, NULL) == TARN_OK
                         : tarn_forward(&s.plan, x, y, NULL, NULL) == TARN_OK,
          "%s", describe(&s));
    for (int64_t k = 0; k < s.planes * s.outs; k++) {
        Q expected = clamped(t, rounded_half_even(f.y[k]));
        Q got = q_pattern(t, load_pattern(t, y, place_in_view(&s.plan.view[TARN_Y], k)));
        CHECK(q_equal(got, expected), "%s output %lld is %g, not %g: %s", tarn_dtype_name(t->dtype),
              (long long)k, q_about(got), q_about(expected), describe(&s));
        if (is_extreme(&s))
            CHECK(indices[place_in_view(&s.plan.view[TARN_INDICES], k)] == f.index[k], "%s %s",
                  tarn_dtype_name(t->dtype), describe(&s));
    }
}

/* ---- Floating results, where they are determined ------------------------------------------- */

/* floor(log2 |q|), q not 0. */
static int exponent_of(Q q)
{
    Q size = q_abs(q);
    int e = (int)mpz_sizeinbase(mpq_numref(size->value), 2) -
            (int)mpz_sizeinbase(mpq_denref(size->value), 2);
    return q_less(size, q_power_of_two(e)) ? e - 1 : e;
}

static Q q_ulp(format f, Q q)
{
    int e = mpq_sgn(q->value) ? exponent_of(q) : f.least;
    return q_power_of_two((e < f.least ? f.least : e) - f.precision + 1);
}

/* Rounded to nearest, ties to even; no overflow. */
static Q rounded(format f, Q q)
{
    Q ulp = q_ulp(f, q);
    return q_mul(rounded_half_even(q_div(q, ulp)), ulp);
}

/* What a dtype makes of one sum or quotient. */
static Q rounded_result(tarn_dtype dtype, Q q)
{
    return rounded(stored_format(dtype), rounded(sum_format(dtype), q));
}

/* From the middle between the greatest number and the next power of two on, results are
 * infinite. */
static bool may_overflow(tarn_dtype dtype, Q exact, Q bound)
{
    format f = stored_format(dtype);
    Q edge = q_sub(q_power_of_two(f.greatest + 1), q_power_of_two(f.greatest - f.precision));
    return !q_less(q_add(q_abs(exact), bound), edge);
}

static bool is_same_float(tarn_dtype dtype, double got, Q exact)
{
    if (isinf(got))
        return may_overflow(dtype, exact, q_int(0)) && (got > 0) == (mpq_sgn(exact->value) > 0);
    return isfinite(got) && q_equal(q_double(got), exact);
}

static void check_equal(const scene *s, tarn_dtype dtype, const char *what, const double *got,
                        Q const *exact, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        Q expected = rounded_result(dtype, exact[k]);
        CHECK(is_same_float(dtype, got[k], expected), "%s %s %lld: %a, not %a: %s",
              tarn_dtype_name(dtype), what, (long long)k, got[k], q_about(expected), describe(s));
    }
}

static void to_rationals(const scene *s, const floats *f, fields *q)
{
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        q->x[k] = q_double(f->x[k]);
        q->dx[k] = q_double(f->dx[k]);
    }
    for (int64_t k = 0; k < s->planes * s->outs; k++)
        q->gy[k] = q_double(f->gy[k]);
}

/* Integers: every sum is exact in the type of the sums, so that at most one division and the
 * rounding to the stored type are left, and the result is determined. Those with as many bits as
 * f16 and bf16 have make sums that lie halfway between two stored numbers. */
static void check_determined_case(rng *r, tarn_dtype dtype, tarn_op op)
{
    static floats f;
    static fields exact;
    static scene s;
    arena.used = 0;
    draw_scene(r, &s, op);
    plan_scene(&s, dtype);
    int64_t most = dtype == TARN_BF16 ? 255 : 2047;
    for (int64_t k = 0; k < s.planes * s.cells; k++) {
        f.x[k] = (double)rng_range(r, -3, 3);
        f.dx[k] = (double)rng_range(r, -most, most);
    }
    for (int64_t k = 0; k < s.planes * s.outs; k++)
        f.gy[k] = (double)rng_range(r, -most, most);
    run_floats(&s, &f);
    to_rationals(&s, &f, &exact);
    run_naive(&s, &exact);
    check_equal(&s, dtype, "value", f.y, exact.y, s.planes * s.outs);
    check_equal(&s, dtype, "jvp", f.dy, exact.dy, s.planes * s.outs);
    if (op == TARN_AVG)
        return;
    if (s.pool.ties != TARN_TIES_SPLIT)
        check_equal(&s, dtype, "vjp", f.gx, exact.gx, s.planes * s.cells);
    for (int64_t k = 0; k < s.planes * s.outs; k++)
        CHECK(f.index[k] == exact.index[k], "%s %s", tarn_dtype_name(dtype), describe(&s));
}

/* ---- Floating results, within bounds ------------------------------------------------------- */

/* With u = 2^-p the unit roundoff of the sums, a term that passes m roundings is off by a factor
 * of at most 1 + gamma(m), gamma(m) = mu/(1-mu); so the sum of terms is off by gamma(m) *
 * sum|terms|. `mass` is sum|terms|. A division adds at most half the least subnormal where it
 * underflows (sums do not: they are exact there), each of `terms` divisions for itself; f16 and
 * bf16 round once more, by half a unit of the stored type. */
static Q error_bound(tarn_dtype dtype, int roundings, int terms, Q exact, Q mass)
{
    format sums = sum_format(dtype), stored = stored_format(dtype);
    Q gamma = q_div(q_int(roundings), q_sub(q_power_of_two(sums.precision), q_int(roundings)));
    Q underflow = q_mul(q_int(terms), q_power_of_two(sums.least - sums.precision));
    Q bound = q_add(q_mul(gamma, mass), underflow);
    if (stored.precision == sums.precision)
        return bound;
    Q reach = q_add(q_abs(exact), bound);
    return q_add(bound, q_div(q_ulp(stored, reach), q_int(2)));
}

enum { AVG_VALUE, AVG_JVP, AVG_VJP, EXTREME_JVP, EXTREME_VJP, BOUNDS };
static const char *const bound_names[BOUNDS] = {"avg", "avg jvp", "avg vjp", "max jvp", "max vjp"};
static double worst[BOUNDS][4]; /* error over bound, by dtype */

/* Keeps the largest ratio of error to bound where it says something about the order of summation:
 * a single rounding, or one to a subnormal, reaches its bound by itself. */
static void note_ratio(tarn_dtype dtype, int kind, int roundings, Q exact, Q error, Q bound)
{
    Q normal = q_power_of_two(stored_format(dtype).least);
    if (roundings < 3 || q_less(q_abs(exact), normal))
        return;
    double ratio = q_about(q_div(error, bound));
    if (ratio > worst[kind][dtype])
        worst[kind][dtype] = ratio;
}

static void check_within(const scene *s, tarn_dtype dtype, int kind, int roundings, int terms,
                         double got, Q exact, Q mass)
{
    Q bound = error_bound(dtype, roundings, terms, exact, mass);
    if (isinf(got) && may_overflow(dtype, exact, bound) && (got > 0) == (mpq_sgn(exact->value) > 0))
        return;
    CHECK(isfinite(got), "%s: %s", bound_names[kind], describe(s));
    if (!isfinite(got))
        return;
    Q error = q_abs(q_sub(q_double(got), exact));
    CHECK(!q_less(bound, error), "%s %s is %a, not %a, off by %g instead of %g: %s",
          tarn_dtype_name(dtype), bound_names[kind], got, q_about(exact), q_about(error),
          q_about(bound), describe(s));
    note_ratio(dtype, kind, roundings, exact, error, bound);
}

/* Kinds of inputs: nearby numbers, numbers of any size, subnormals, the greatest, and a one among
 * numbers that are lost in it if they are added one by one. */
static double draw_float(rng *r, tarn_dtype dtype, int kind, int64_t k)
{
    format f = stored_format(dtype), sums = sum_format(dtype);
    double value = rng_unit(r) + 0.5;
    value = signed_by(r, value);
    switch (kind) {
    case 0:
        break;
    case 1:
        value = ldexp(value, (int)rng_range(r, f.least / 2, f.greatest / 2));
        break;
    case 2:
        value = ldexp(value, f.least - (int)rng_range(r, 0, f.precision + 1));
        break;
    case 3:
        value = ldexp(value, sums.greatest == f.greatest ? f.greatest - 11 : f.greatest - 1);
        break;
    default:
        value = k == 0 ? 1 : ldexp(0.75 + rng_unit(r) / 8, -sums.precision);
        break;
    }
    return as_dtype(dtype, value);
}

static void draw_floats(rng *r, const scene *s, tarn_dtype dtype, floats *f)
{
    int kind = (int)rng_range(r, 0, 4);
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        f->x[k] = draw_float(r, dtype, kind, k);
        f->dx[k] = draw_float(r, dtype, kind, k);
        if (s->pool.op != TARN_AVG)
            f->x[k] = (double)rng_range(r, -2, 2);
    }
    for (int64_t k = 0; k < s->planes * s->outs; k++)
        f->gy[k] = draw_float(r, dtype, kind, k);
}

/* The sums of the absolute values of all terms: the same maps, whose coefficients are positive. */
static void run_masses(const scene *s, const fields *exact, fields *mass)
{
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        mass->x[k] = s->pool.op == TARN_AVG ? q_abs(exact->x[k]) : exact->x[k];
        mass->dx[k] = q_abs(exact->dx[k]);
    }
    for (int64_t k = 0; k < s->planes * s->outs; k++)
        mass->gy[k] = q_abs(exact->gy[k]);
    run_naive(s, mass);
}

/* A divisor that the type of the sums does not have is itself rounded. */
static int division_roundings(const scene *s, tarn_dtype dtype)
{
    return s->pool.divisor >> sum_format(dtype).precision ? 2 : 1;
}

static void check_outputs(const scene *s, tarn_dtype dtype, const floats *f, const fields *exact,
                          const fields *mass)
{
    static window w;
    bool average = s->pool.op == TARN_AVG, split = s->pool.ties == TARN_TIES_SPLIT;
    int division = average ? division_roundings(s, dtype) : split;
    for (int64_t k = 0; k < s->planes * s->outs; k++) {
        list_window(s, k % s->outs, &w);
        int roundings = !average && s->pool.ties == TARN_TIES_FIRST ? 0 : w.depth + division;
        if (average)
            check_within(s, dtype, AVG_VALUE, roundings, 1, f->y[k], exact->y[k], mass->y[k]);
        check_within(s, dtype, average ? AVG_JVP : EXTREME_JVP, roundings, division, f->dy[k],
                     exact->dy[k], mass->dy[k]);
    }
}

static void check_gradients(const scene *s, tarn_dtype dtype, const floats *f, const fields *exact,
                            const fields *mass)
{
    bool average = s->pool.op == TARN_AVG, split = s->pool.ties == TARN_TIES_SPLIT;
    int division = average ? division_roundings(s, dtype) : split;
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        int roundings = reader_depth(s, k % s->cells, !average) + division;
        check_within(s, dtype, average ? AVG_VJP : EXTREME_VJP, roundings,
                     division ? (int)s->outs : 0, f->gx[k], exact->gx[k], mass->gx[k]);
    }
}

static void check_bounded_scene(rng *r, scene *s, tarn_dtype dtype)
{
    static floats f;
    static fields exact, mass;
    plan_scene(s, dtype);
    draw_floats(r, s, dtype, &f);
    run_floats(s, &f);
    to_rationals(s, &f, &exact);
    run_naive(s, &exact);
    run_masses(s, &exact, &mass);
    check_outputs(s, dtype, &f, &exact, &mass);
    check_gradients(s, dtype, &f, &exact, &mass);
}

static void check_bounded_case(rng *r, tarn_dtype dtype, tarn_op op)
{
    static scene s;
    arena.used = 0;
    draw_scene(r, &s, op);
    if (s.pool.divisor == 11)
        s.pool.divisor = (INT64_C(1) << 25) + 1; /* not a float */
    check_bounded_scene(r, &s, dtype);
}

/* Windows of many taps, and cells that many windows read: where the order of summation tells. */
static void check_long_case(rng *r, tarn_dtype dtype, tarn_op op)
{
    static scene s;
    arena.used = 0;
    global_scene(&s, op, rng_range(r, 100, MOST_TAPS));
    s.pool.ties = (tarn_ties)rng_range(r, 0, 2);
    if (rng_range(r, 0, 1)) { /* few cells, each read by up to 30 windows */
        s.pool.window = TARN_SLIDING;
        s.pool.kernel[0] = rng_range(r, 20, 30);
        s.size[0] = s.shape[0] = rng_range(r, 30, 90);
        s.pool.pad_lo[0] = rng_range(r, 0, 20);
        measure_scene(&s);
    }
    check_bounded_scene(r, &s, dtype);
}

static void report_bounds(void)
{
    for (int kind = 0; kind < BOUNDS; kind++) {
        printf("%-8s largest error/bound (3 roundings or more):", bound_names[kind]);
        for (int d = 0; d < 4; d++)
            printf("  %s %.3f", tarn_dtype_name(float_dtypes[d]), worst[kind][d]);
        printf("\n");
    }
}

int main(void)
{
    rng r = {20240607};
    for (int round = 0; round < ROUNDS(3000); round++)
        for (int op = 0; op <= TARN_LP; op++)
            check_rational_case(&r, (tarn_op)op);
    for (int round = 0; round < ROUNDS(1500); round++)
        for (int t = 0; t < 8; t++)
            check_integer_case(&r, &integer_types[t]);
    for (int round = 0; round < ROUNDS(600); round++)
        for (int d = 0; d < 4; d++)
            for (int op = 0; op < TARN_SMOOTH; op++) {
                check_determined_case(&r, float_dtypes[d], (tarn_op)op);
                check_bounded_case(&r, float_dtypes[d], (tarn_op)op);
            }
    for (int round = 0; round < ROUNDS(100); round++)
        for (int d = 0; d < 4; d++)
            for (int op = 0; op < TARN_SMOOTH; op++)
                check_long_case(&r, float_dtypes[d], (tarn_op)op);
    report_bounds();
    free_arena();
    return finish_checks();
}
