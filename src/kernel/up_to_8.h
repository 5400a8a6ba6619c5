/* Short sums in halves [S1], spelled out. */
#ifndef TARN_UP_TO_8_H
#define TARN_UP_TO_8_H

/* The sum of 1 to 8 terms AT(0), AT(1), ... */
#define TWO(AT, k) (AT(k) + AT((k) + 1))
#define FOUR(AT, k) (TWO(AT, k) + TWO(AT, (k) + 2))
#define UP_TO_8(n, result, AT) DO_UP_TO_8(n, result =, AT)
/* DO with that sum as its argument: where DO is a loop, it knows the number of terms. */
#define DO_UP_TO_8(n, DO, AT)                                                                      \
    switch (n) {                                                                                   \
    case 1: DO(AT(0)); break;                                                                      \
    case 2: DO(TWO(AT, 0)); break;                                                                 \
    case 3: DO(TWO(AT, 0) + AT(2)); break;                                                         \
    case 4: DO(FOUR(AT, 0)); break;                                                                \
    case 5: DO(FOUR(AT, 0) + AT(4)); break;                                                        \
    case 6: DO(FOUR(AT, 0) + TWO(AT, 4)); break;                                                   \
    case 7: DO(FOUR(AT, 0) + (TWO(AT, 4) + AT(6))); break;                                         \
    default: DO(FOUR(AT, 0) + FOUR(AT, 4)); break;                                                 \
    }

#endif
