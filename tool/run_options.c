/* How to run: threads and kernel families. */
#include "tool.h"
#include "../src/dispatch.h"
#include "../src/io/output.h"

#include <limits.h>
#include <string.h>

static bool read_isa(const tool_call *call, uint32_t *mask, tarn_complaint *complaint)
{
    uint32_t chosen = 0;
    for (const char *list = call->value[OPTION_ISA]; *list;) {
        size_t length = strcspn(list, ",");
        uint32_t family = tarn_isa_named(list, length);
        if (!family)
            return tool_complain_option(complaint, OPTION_ISA, "'%.*s' is no kernel family",
                                        (int)(length < 40 ? length : 40), list);
        chosen |= family;
        list += length + (list[length] == ',');
    }
    if (!(chosen & tarn_isa_available()))
        return tool_complain_option(complaint, OPTION_ISA,
                                    "names no family that this machine can run");
    *mask = chosen;
    return true;
}

bool tool_check_replaced(const tool_call *call, tool_option_id option, const char *read,
                         const char *written, tarn_complaint *complaint)
{
    return tool_given(call, OPTION_IN_PLACE) || tarn_output_is_stream(written) ||
           !tarn_output_same(read, written) ||
           tool_complain_option(complaint, option, "'%.60s' is read, too: %s", written,
                                call->command->groups & WRITES ? "say --in-place to replace it"
                                                               : "name another file");
}

bool tool_read_options(const tool_call *call, tarn_options *options, tarn_complaint *complaint)
{
    int64_t threads = 0;
    tarn_error error;
    *options = tarn_options_default();
    if (tool_given(call, OPTION_THREADS) &&
        !tool_read_integer(call, OPTION_THREADS, 1, &threads, complaint))
        return false;
    if (threads > INT_MAX)
        return tool_complain_option(complaint, OPTION_THREADS, "is at most %d", INT_MAX);
    /* A build without threads has one: an answer to the default, but not to a demand. */
    tarn_status status = tarn_executor_threads((int)threads, &options->executor, &error);
    if (status && threads > 1)
        return tool_complain_option(complaint, OPTION_THREADS, "%s", error.message);
    if (status)
        options->executor = tarn_executor_serial();
    return !tool_given(call, OPTION_ISA) || read_isa(call, &options->isa, complaint);
}
