/* Short sums in halves [S1], spelled out. */
#ifndef TARN_UP_TO_8_H
#define TARN_UP_TO_8_H

/* The sum of 1 to 8 terms AT(0), AT(1), ... */
#define TWO(AT, k) (AT(k) + AT((k) + 1))
#define FOUR(AT, k) (TWO(AT, k) + TWO(AT, (k) + 2))
#define UP_TO_8(n, result, AT)                                                                     \
    switch (n) {                                                                                   \
    case 1: result = AT(0); break;                                                                 \
    case 2: result = TWO(AT, 0); break;                                                            \
    case 3: result = TWO(AT, 0) + AT(2); break;                                                    \
    case 4: result = FOUR(AT, 0); break;                                                           \
    case 5: result = FOUR(AT, 0) + AT(4); break;                                                   \
    case 6: result = FOUR(AT, 0) + TWO(AT, 4); break;                                              \
    case 7: result = FOUR(AT, 0) + (TWO(AT, 4) + AT(6)); break;                                    \
    default: result = FOUR(AT, 0) + FOUR(AT, 4); break;                                            \
    }

#endif
