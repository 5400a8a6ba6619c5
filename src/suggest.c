#include "suggest.h"

#include <string.h>

enum { LONGEST = 32 }; /* letters of a word that is looked at */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to insert, drop, change or swap with the next until `a` is `b`. */
static int distance(const char *a, int length, const char *b, int other)
{
    int row[3][LONGEST + 1]; /* of the letters before, of those up to now, and one further back */
    int *back = row[0], *before = row[1], *now = row[2];
    for (int j = 0; j <= other; j++)
        before[j] = j;
    for (int i = 1; i <= length; i++) {
        now[0] = i;
        for (int j = 1; j <= other; j++) {
            now[j] = least(before[j], now[j - 1]) + 1;
            now[j] = least(now[j], before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], back[j - 2] + 1);
        }
        int *oldest = back;
        back = before;
        before = now;
        now = oldest;
    }
    return before[other];
}

const char *tarn_suggest(const char *word, size_t length, const tarn_spelling *list, int count)
{
    const char *found = NULL;
    if (length > LONGEST)
        return NULL;
    int best = (int)length / 3 + 1; /* one slip in three letters; none in one or two */
    for (int k = 0; k < count; k++) {
        size_t other = strlen(list[k].written);
        int apart =
            other <= LONGEST ? distance(word, (int)length, list[k].written, (int)other) : LONGEST;
        if (apart < best) {
            best = apart;
            found = list[k].meant;
        }
    }
    return found;
}
