/* Which word was probably meant: "unknown option --padding: did you mean --pad?" */
#ifndef TARN_SUGGEST_H
#define TARN_SUGGEST_H

#include <stddef.h>

/* A spelling, and the word it stands for: itself, or the word of tarn for one of other
 * libraries. */
typedef struct tarn_spelling {
    const char *written, *meant;
} tarn_spelling;

/* What the word nearest to `word` stands for; NULL if none of the `count` is near. */
const char *tarn_suggest(const char *word, size_t length, const tarn_spelling *list, int count);

#endif
