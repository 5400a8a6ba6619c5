/* Problem strings: text that parses is printed as text that parses to the same text, and what
 * can be planned and is small is run and compared with the specification. */
#include "fuzz_run.h"

enum { MOST_TEXT = 500 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char text[MOST_TEXT + 1], once[2000], twice[2000];
    tarn_pool pool;
    tarn_view x;
    tarn_error error;
    fuzz_bytes rest = {data, size, size / 2}; /* numbers for the tensors */
    size = size < MOST_TEXT ? size : MOST_TEXT;
    memcpy(text, data, size);
    text[size] = '\0';
    tarn_status status = tarn_problem_parse(text, &pool, &x, &error);
    fuzz_expect(error.code == status && (status != 0) == (error.message[0] != '\0'));
    if (status)
        return 0;
    int length = tarn_problem_format(&pool, &x, once, sizeof once);
    if (length >= 0 && length < (int)sizeof once) {
        fuzz_expect(!tarn_problem_parse(once, &pool, &x, NULL));
        fuzz_expect(tarn_problem_format(&pool, &x, twice, sizeof twice) == length);
        fuzz_expect(strcmp(once, twice) == 0);
    }
    fuzz_problem(&pool, &x, &rest);
    return 0;
}
