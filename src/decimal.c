#include "decimal.h"

#include "checked.h"
#include "float_state.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- Reading -------------------------------------------------------------------------------- */

typedef struct {
    char text[DECIMAL_DIGITS + 32]; /* room for a sign and an exponent */
    int length, digits;
} number_text;

/* Copies digits as far as there is room for them; returns how many there are. */
static int copy_digits(const char **at, number_text *n)
{
    int before = n->digits;
    for (; is_digit(**at) && n->digits < DECIMAL_DIGITS; n->digits++)
        n->text[n->length++] = *(*at)++;
    return n->digits - before;
}

/* "e5", "E-5" or nothing. Beyond these bounds every number is 0 or infinite, also one of many
 * digits. */
static int64_t take_exponent(const char **at)
{
    enum { MOST = 1000000 };
    const char *next = *at;
    int64_t exponent = 0;
    if (*next != 'e' && *next != 'E')
        return 0;
    bool negative = *++next == '-';
    next += negative || *next == '+';
    if (!is_digit(*next))
        return 0;
    for (; is_digit(*next); next++)
        exponent = min_i64(MOST, 10 * exponent + (*next - '0'));
    *at = next;
    return negative ? -exponent : exponent;
}

/* strtod() reads the point that the locale has, so it gets digits and an exponent without one. */
bool tarn_take_decimal(const char **at, double *number)
{
    number_text n = {.length = 0};
    const char *next = *at;
    int fraction = 0;
    if (*next == '-' || *next == '+')
        n.text[n.length++] = *next++;
    copy_digits(&next, &n);
    if (*next == '.') {
        next++;
        fraction = copy_digits(&next, &n);
    }
    if (n.digits == 0 || is_digit(*next))
        return false;
    int64_t exponent = take_exponent(&next) - fraction;
    snprintf(n.text + n.length, sizeof n.text - (size_t)n.length, "e%lld", (long long)exponent);
    uint64_t former = set_float_state(); /* strtod() rounds as the states say */
    unsigned former_text = set_text_state();
    *number = strtod(n.text, NULL);
    restore_text_state(former_text);
    restore_float_state(former);
    *at = next;
    return true;
}

bool tarn_read_decimal(const char *text, double *number)
{
    return text && tarn_take_decimal(&text, number) && *text == '\0';
}

/* ---- Printing ------------------------------------------------------------------------------- */

/* Letters are those of an exponent, of inf and of nan. */
static bool is_of_number(char c)
{
    return is_digit(c) || c == '-' || c == '+' || (c >= 'a' && c <= 'z');
}

/* Whatever point the locale has, of one byte or several, becomes a dot. */
void tarn_print_decimal(double number, char text[DECIMAL_BYTES])
{
    char printed[64];
    uint64_t former = set_float_state(); /* so does snprintf() */
    unsigned former_text = set_text_state();
    for (int digits = 15; digits <= 17; digits++) { /* 15 are never too many, 17 always enough */
        snprintf(printed, sizeof printed, "%.*g", digits, number);
        if (strtod(printed, NULL) == number)
            break;
    }
    restore_text_state(former_text);
    restore_float_state(former);
    for (const char *at = printed; *at; at++) {
        bool point = !is_of_number(*at);
        if (!point || is_of_number(at[1])) /* the last byte of a point stands for it */
            *text++ = point ? '.' : *at;
    }
    *text = '\0';
}
