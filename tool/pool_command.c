#include "tool.h"
bool tool_run_pool(const tool_call *call, tarn_complaint *complaint)
{
    tool_problem problem;
    if (!tool_problem_open(call, &problem, complaint))
        return false;
    tool_problem_close(&problem);
    return tarn_complain(complaint, FAILED_WORK, "pooling is not written yet");
}
