/* Lines, words and numbers of the text form. */
#ifndef TARN_GRAPH_WORDS_H
#define TARN_GRAPH_WORDS_H

#include "../decimal.h"
#include "graph.h"

enum { WORD_BYTES = 2048 }; /* 64 sizes of 20 digits fit; longer words are refused */

/* One word of a line. A word that is too long, or has a zero in it, has an empty text, which
 * whatever reads it refuses: no name or number is like that. */
typedef struct tarn_word {
    char text[WORD_BYTES];
    const char *at; /* where it begins; where one was expected, if there is none */
} tarn_word;

/* The text, and how far it has been read. */
typedef struct tarn_reader {
    const char *at, *end, *line; /* the rest, the end, the start of this line */
    int line_number;
} tarn_reader;

bool tarn_at_line_end(tarn_reader *r);
/* The next word of the line; false, and an empty word, at its end. */
bool tarn_next_word(tarn_reader *r, tarn_word *w);
/* Leaves this line, whatever is left of it; false at the end of the text. */
bool tarn_next_line(tarn_reader *r);

bool tarn_word_is(const tarn_word *w, const char *text);
/* What follows `key=` in a word, or NULL. */
const char *tarn_word_value(const tarn_word *w, const char *key);

/* A whole word that is an integer from `low` to `high`. NULL is no number, here and below. */
bool tarn_read_integer(const char *text, int64_t low, int64_t high, int64_t *number);
/* "3" or "3,5,..."; with `hi`, "1:2,0:1,...". One number stands for every axis; *count is how many
 * were given, here or before: no two words of a node may disagree. */
bool tarn_read_axes(const char *text, int64_t *lo, int64_t *hi, int *count);
/* "1x64x7x7" or "scalar". */
bool tarn_read_shape(const char *text, int *rank, int64_t *shape);
bool tarn_read_dtype(const char *text, tarn_dtype *dtype);
/* A number that the dtype holds: decimal, or the bits as 0x... */
bool tarn_read_element(const char *text, tarn_dtype dtype, void *to);

#endif
