// The calls of tarn.jax as a foreign function of XLA. tarn/jax.py compiles this file against the headers that
// jaxlib brings; without it, calls go through callbacks to Python.
#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "jax_native.h"
#include "xla/ffi/api/ffi.h"

namespace
{

namespace ffi = xla::ffi;

const jax_core *core;

// ---- Plans ------------------------------------------------------------------------------------------

using plan_pointer = std::shared_ptr<tarn_plan>;

// Plans by their problem and threads. Executions hold what they run, so all may be forgotten at any time.
plan_pointer find_plan(const std::string &problem, tarn_error *error)
{
    static std::mutex mutex;
    static auto &plans = *new std::unordered_map<std::string, plan_pointer>; // used until the process ends
    const std::string key = problem + " " + std::to_string(core->threads());
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = plans.find(key);
    if (found != plans.end())
        return found->second;
    tarn_plan *made = nullptr;
    if (core->plan(problem.c_str(), &made, error))
        return nullptr;
    if (plans.size() >= 1024)
        plans.clear();
    return plans[key] = plan_pointer(made, core->destroy);
}

// ---- The call ---------------------------------------------------------------------------------------

// How many arrays each pass reads and writes.
struct arrays {
    size_t in, out;
};
const arrays expected[JAX_PASSES] = {{1, 1}, {1, 2}, {1, 1}, {2, 1}, {2, 1}, {2, 1}, {1, 1}};

ffi::Error refuse(const char *words)
{
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, words);
}

ffi::Error pool(ffi::RemainingArgs args, ffi::RemainingRets rets, std::string_view problem, int32_t pass)
{
    void *in[2] = {nullptr}, *out[2] = {nullptr};
    if (pass < 0 || pass >= JAX_PASSES || args.size() != expected[pass].in || rets.size() != expected[pass].out)
        return refuse("tarn: not the arrays of this pass");
    for (size_t k = 0; k < args.size(); k++)
        in[k] = args.get<ffi::AnyBuffer>(k)->untyped_data();
    for (size_t k = 0; k < rets.size(); k++)
        out[k] = (*rets.get<ffi::AnyBuffer>(k))->untyped_data();
    tarn_error error;
    const plan_pointer plan = find_plan(std::string(problem), &error);
    if (!plan || core->run(plan.get(), static_cast<jax_pass>(pass), in, out, &error))
        return refuse(error.message);
    return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(handler, pool,
                       ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<std::string_view>("problem").Attr<int32_t>(
                           "pass"));

// connect(capsule of jax_core): a capsule of the handler.
PyObject *connect(PyObject *, PyObject *capsule)
{
    core = static_cast<const jax_core *>(PyCapsule_GetPointer(capsule, JAX_CORE));
    return core ? PyCapsule_New(reinterpret_cast<void *>(handler), nullptr, nullptr) : nullptr;
}

PyMethodDef methods[] = {{"connect", connect, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "jax_native",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

PyMODINIT_FUNC PyInit_jax_native()
{
    return PyModule_Create(&definition);
}
