/* Writing text of any length into a buffer of any size, as snprintf does. */
#ifndef TARN_GRAPH_WRITE_H
#define TARN_GRAPH_WRITE_H

#include "graph.h"

typedef struct tarn_writer {
    char *text;
    size_t size;
    int64_t length; /* of the whole text, also what did not fit */
} tarn_writer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tarn_put(tarn_writer *w, const char *format, ...);

/* The words of the text form. */
extern const char *const tarn_op_words[TARN_OPS];
extern const char *const tarn_tie_words[TARN_TIES];

/* Parts of the text form that drawings use, too. */
void tarn_put_shape(tarn_writer *w, const tarn_view *view);
void tarn_put_parameters(tarn_writer *w, const tarn_node *node);
const char *tarn_node_word(const tarn_node *node);

#endif
