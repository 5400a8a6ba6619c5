/* Numbers in text, in the locale that the command line names: `test_decimal [LOCALE POINT]`. By
 * itself it runs in the C locale; comma_locale.sh runs it where the point is a comma. */
#include "check.h"
#include "decimal.h"
#include "tarn_graph.h"

#include <locale.h>
#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void test_reading(void)
{
    static const struct {
        const char *text;
        double number;
        const char *rest;
    } cases[] = {
        {"0", 0, ""},
        {"-0", -0.0, ""},
        {"+1.5", 1.5, ""},
        {".5", 0.5, ""},
        {"5.", 5, ""},
        {"12.5e-3", 0.0125, ""},
        {"1E+3", 1000, ""},
        {"4.9e-324", 4.9e-324, ""},
        {"1e-400", 0, ""},
        {"-1e400", -(double)INFINITY, ""},
        {"1e99999999999999999999", (double)INFINITY, ""},
        {"0.1000000000000000055511151231257827", 0.1, ""},
        {"2.5x", 2.5, "x"},
        {"2.5.5", 2.5, ".5"},
        {"2,5", 2, ",5"}, /* in every locale */
        {"2e", 2, "e"},
        {"2e+", 2, "e+"},
        {"0x1p3", 0, "x1p3"},
    };
    for (int k = 0; k < COUNT(cases); k++) {
        const char *at = cases[k].text;
        double number = -1;
        bool whole = *cases[k].rest == '\0';
        CHECK(tarn_take_decimal(&at, &number) && same_bits(number, cases[k].number), "%s: %a",
              cases[k].text, number);
        CHECK(strcmp(at, cases[k].rest) == 0, "%s: '%s' is left", cases[k].text, at);
        CHECK(tarn_read_decimal(cases[k].text, &number) == whole, "%s", cases[k].text);
    }
}

static void test_refusals(void)
{
    static const char *const texts[] = {"",   "-",   "+",   ".",   "-.", "e5",
                                        " 1", "--1", "inf", "nan", "x",  ",5"};
    for (int k = 0; k < COUNT(texts); k++) {
        const char *at = texts[k];
        double number = -1;
        CHECK(!tarn_take_decimal(&at, &number) && at == texts[k] && same_bits(number, -1), "'%s'",
              texts[k]);
    }
    double number;
    CHECK(!tarn_read_decimal(NULL, &number), "NULL");
}

/* The longest number that is read, and one digit more, with the point at every kind of place. */
static void test_many_digits(void)
{
    static char text[DECIMAL_DIGITS + 3];
    for (int point = 0; point <= DECIMAL_DIGITS; point += DECIMAL_DIGITS / 4)
        for (int more = 0; more <= 1; more++) {
            const char *at = text;
            double number;
            memset(text, '1', sizeof text);
            text[point] = '.';
            text[DECIMAL_DIGITS + 1 + more] = '\0';
            CHECK(tarn_take_decimal(&at, &number) == !more && (*at == '\0') == !more,
                  "%d digits, point at %d", DECIMAL_DIGITS + more, point);
        }
}

static void check_round_trip(double number)
{
    char text[DECIMAL_BYTES];
    double back = 0;
    tarn_print_decimal(number, text);
    CHECK(strlen(text) < sizeof text && !strchr(text, ','), "%s", text);
    CHECK(tarn_read_decimal(text, &back) && same_bits(back, number), "%s: %a", text, back);
}

static void test_round_trips(void)
{
    static const double special[] = {0.0, -0.0, 0.1, 1e300, -2.2250738585072014e-308, 5e-324};
    rng r = {7};
    for (int k = 0; k < COUNT(special); k++)
        check_round_trip(special[k]);
    for (int k = 0; k < 100000; k++) {
        uint64_t bits = rng_next(&r);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (isfinite(number))
            check_round_trip(number);
    }
    char text[DECIMAL_BYTES];
    tarn_print_decimal(-(double)INFINITY, text);
    CHECK(strcmp(text, "-inf") == 0, "%s", text);
    tarn_print_decimal(1.5, text);
    CHECK(strcmp(text, "1.5") == 0, "%s", text);
}

/* What uses it: problem strings and the text form of graphs. */
static void test_problem_strings(void)
{
    static const char *const texts[] = {"smooth k2s2 f32 4x4 beta=-2.5", "lp a2 f64 4x4 p=1.5"};
    for (int k = 0; k < COUNT(texts); k++) {
        char again[80];
        tarn_pool pool;
        tarn_view x;
        tarn_error error;
        CHECK(!tarn_problem_parse(texts[k], &pool, &x, &error), "%s: %s", texts[k], error.message);
        CHECK((k ? pool.power : pool.beta) == (k ? 1.5 : -2.5), "%s", texts[k]);
        tarn_problem_format(&pool, &x, again, sizeof again);
        CHECK(strcmp(texts[k], again) == 0, "%s comes back as %s", texts[k], again);
    }
}

static void test_graph_text(void)
{
    static const char text[] = "x = input f32 4x4\ny = lp x kernel=2,2 stride=2,2 p=2.5\n"
                               "z = smooth y global beta=0.5\nw = scale z factor=-0.25\nreturn w\n";
    char again[sizeof text + 20] = "";
    tarn_graph *graph = NULL;
    tarn_error error;
    CHECK(!tarn_graph_load(&graph, text, strlen(text), NULL, NULL, NULL, &error), "%s",
          error.message);
    tarn_graph_save(graph, again, sizeof again);
    CHECK(strcmp(text, again) == 0, "%s", again);
    tarn_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        CHECK(setlocale(LC_NUMERIC, argv[1]), "there is no locale %s", argv[1]);
        CHECK(strcmp(localeconv()->decimal_point, argv[2]) == 0, "its point is %s",
              localeconv()->decimal_point);
    }
    test_reading();
    test_refusals();
    test_many_digits();
    test_round_trips();
    test_problem_strings();
    test_graph_text();
    return finish_checks();
}
