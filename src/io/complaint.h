/* What is wrong, and where: filled where it is noticed, printed once, by the program. */
#ifndef TARN_COMPLAINT_H
#define TARN_COMPLAINT_H

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses: work that failed, and a request that was wrong from the start. */
enum { FAILED_WORK = 1, BAD_USAGE = 2 };

typedef struct tarn_complaint {
    int status;        /* FAILED_WORK or BAD_USAGE; 0: nothing is wrong */
    int axis;          /* spatial axis, or -1 */
    int64_t offset;    /* byte in the file, or -1 */
    char option[32];   /* "--kernel"; empty if no option is to blame */
    char file[256];    /* empty if no file is; long paths lose their beginning */
    char message[400]; /* one sentence, without place */
} tarn_complaint;

#if defined(__MINGW32__) && !defined(__clang__) /* "printf" is Microsoft's older one there */
#define TARN_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#else
#define TARN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#endif

/* Each fills the complaint, keeping file and option if they are set already, and returns false. */
bool tarn_complain(tarn_complaint *complaint, int status, const char *format, ...)
    TARN_PRINTF(3, 4);
/* About byte `offset` of the file that is being read. */
bool tarn_complain_at(tarn_complaint *complaint, int64_t offset, const char *format, ...)
    TARN_PRINTF(3, 4);
/* About an option of the command line; `option` with its dashes. */
bool tarn_complain_option(tarn_complaint *complaint, const char *option, const char *format, ...)
    TARN_PRINTF(3, 4);
/* About a system call on `file`; adds what errno says. */
bool tarn_complain_errno(tarn_complaint *complaint, const char *file, const char *what);

/* Names the file that later complaints are about. */
void tarn_complaint_file(tarn_complaint *complaint, const char *file);

/* A complaint about nothing yet. */
tarn_complaint tarn_no_complaint(void);

#endif
