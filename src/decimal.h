/* Real numbers in text. They have a dot, whatever the locale of the process says. */
#ifndef TARN_DECIMAL_H
#define TARN_DECIMAL_H

#include <stdbool.h>

enum {
    DECIMAL_BYTES = 32,   /* of a printed number, with the 0 behind it */
    DECIMAL_DIGITS = 2048 /* of a number that is read; one of more is refused */
};

/* Takes a decimal number such as -1.5e3 off the text; false, and nothing taken, where there is
 * none. */
bool tarn_take_decimal(const char **at, double *number);
/* A whole text that is a decimal number. NULL is none. */
bool tarn_read_decimal(const char *text, double *number);

/* Prints a number with enough digits to give it back; inf and nan by their names. */
void tarn_print_decimal(double number, char text[DECIMAL_BYTES]);

#endif
