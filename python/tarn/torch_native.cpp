// The step of tarn.torch as a node of PyTorch's autograd. tarn/torch_build.py compiles this file against
// the PyTorch that is installed; without it the same step is taken in Python, more slowly. It does for
// ordinary tensors what torch_step.c does: all others are left to the registered operators.
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/TensorIterator.h>

#include "torch_native.h"

namespace
{

namespace autograd = torch::autograd;
using at::Tensor;

const torch_core *core;

// ---- Which tensors ----------------------------------------------------------------------------------

bool within(c10::DispatchKeySet keys, c10::DispatchKeySet allowed)
{
    return (keys.raw_repr() & ~allowed.raw_repr()) == 0;
}

// Axes had names until PyTorch 2.13.
template <class T> auto is_named(const T &t, int) -> decltype(t.has_names())
{
    return t.has_names();
}

template <class T> bool is_named(const T &, long)
{
    return false;
}

// Whether the numbers are those of the tensor's memory: no wrapper, negative bit or tangent.
bool is_ordinary(const Tensor &t)
{
    using Key = c10::DispatchKey;
    const c10::DispatchKeySet plain(
        {Key::CPU, Key::AutogradCPU, Key::ADInplaceOrView, Key::AutocastCPU});
    return within(t.key_set(), plain) && !is_named(t, 0) && t.dim() <= TARN_MAX_RANK &&
           !t._fw_grad(0).defined();
}

// Whether no mode, transform or tracer is on. Autograd may be off only where nothing is recorded.
bool is_unwatched()
{
    const auto keys = c10::impl::tls_local_dispatch_key_set();
    return within(keys.included_, c10::default_included_set) &&
           !at::impl::torch_function_mode_enabled() &&
           (!keys.excluded_.has(c10::DispatchKey::AutogradCPU) || !at::GradMode::is_enabled());
}

tarn_dtype dtype_of(const Tensor &t)
{
    switch (t.scalar_type()) {
    case at::kDouble:
        return TARN_F64;
    case at::kFloat:
        return TARN_F32;
    case at::kHalf:
        return TARN_F16;
    case at::kBFloat16:
        return TARN_BF16;
    case at::kChar:
        return TARN_I8;
    case at::kByte:
        return TARN_U8;
    case at::kShort:
        return TARN_I16;
    case at::kUInt16:
        return TARN_U16;
    case at::kInt:
        return TARN_I32;
    case at::kUInt32:
        return TARN_U32;
    case at::kLong:
        return TARN_I64;
    case at::kUInt64:
        return TARN_U64;
    default:
        return TARN_DTYPES;
    }
}

at::ScalarType scalar_type_of(tarn_dtype dtype)
{
    static const at::ScalarType types[TARN_DTYPES] = {
        at::kDouble, at::kFloat,  at::kHalf, at::kBFloat16, at::kChar, at::kByte,
        at::kShort,  at::kUInt16, at::kInt,  at::kUInt32,   at::kLong, at::kUInt64};
    return types[dtype];
}

// ---- Memory -----------------------------------------------------------------------------------------

tarn_view view_of(const Tensor &t)
{
    tarn_view view;
    view.data = nullptr;
    view.dtype = dtype_of(t);
    view.rank = static_cast<int>(t.dim());
    std::copy_n(t.sizes().data(), view.rank, view.shape);
    std::copy_n(t.strides().data(), view.rank, view.strides);
    return view;
}

Tensor make(const tarn_view &layout, tarn_dtype dtype)
{
    const auto rank = static_cast<size_t>(layout.rank);
    return at::detail::empty_strided_cpu({layout.shape, rank}, {layout.strides, rank},
                                         scalar_type_of(dtype));
}

bool lies_as(const Tensor &t, const tarn_view &layout)
{
    bool fits = t.dim() == layout.rank;
    for (int a = 0; fits && a < layout.rank; a++)
        fits = t.size(a) == layout.shape[a] &&
               (layout.shape[a] <= 1 || t.stride(a) == layout.strides[a]);
    return fits;
}

// ---- Threads ----------------------------------------------------------------------------------------

// The parts of a pass on PyTorch's threads: they spin for a while after each operator, and would keep others
// from their cores. An operator over one byte a part brings them, whatever they are made of. In a child of
// fork() they are gone, and PyTorch would wait for them for ever.
void in_torch_threads(void *, int count, void (*body)(void *, int), void *argument)
{
    if (core->is_forked())
        return core->own_threads(count, body, argument);
    const Tensor parts = at::detail::empty_cpu({count}, at::kByte);
    const char *first = static_cast<const char *>(parts.const_data_ptr());
    at::TensorIterator::borrowing_nullary_op(parts).for_each(
        [&](char **data, const int64_t *, int64_t part_count) {
            for (int64_t k = 0; k < part_count; k++)
                body(argument, static_cast<int>(data[0] - first + k));
        },
        1);
}

// ---- Backward ---------------------------------------------------------------------------------------

// PyTorch 2.13 counts the owners of a node inside of it; before, shared_ptr did.
using NodePointer = decltype(autograd::Edge::function);

template <class T> struct Owner;
template <class T> struct Owner<std::shared_ptr<T>> {
    static std::shared_ptr<T> of(T *node)
    {
        return {node, [](T *last) { deleteNode(last); }};
    }
};
template <class T> struct Owner<c10::intrusive_ptr<T>> {
    static c10::intrusive_ptr<T> of(T *node)
    {
        return c10::intrusive_ptr<T>::unsafe_steal_from_new(node);
    }
};

struct PoolBackward : autograd::Node {
    PoolBackward(PyObject *taken, autograd::edge_list &&edges) : Node(std::move(edges)), step(taken)
    {
        Py_INCREF(step);
    }

    ~PoolBackward() override
    {
        if (!Py_IsInitialized())
            return;
        pybind11::gil_scoped_acquire gil;
        Py_DECREF(step);
    }

    std::string name() const override
    {
        return "TarnPoolBackward";
    }
    autograd::variable_list apply(autograd::variable_list &&gradients) override;
    void release_variables() override;
    // For compiled autograd. PyTorch declares the first without const up to 2.6, and with it since.
    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs &arguments) const;
    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs &arguments)
    {
        std::as_const(*this).compiled_args(arguments);
    }
    autograd::variable_list
    apply_with_saved(const autograd::variable_list &gradients,
                     torch::dynamo::autograd::SwapSavedVariables &traced) override;
    bool is_simple(const Tensor &gy, const Tensor &kept, const tarn_view &y) const;

    PyObject *step;
    autograd::SavedVariable saved;
};

void PoolBackward::release_variables()
{
    std::lock_guard<std::mutex> lock(mutex_);
    saved.reset_data();
}

// Python's exception as one of C++; the GIL is held.
[[noreturn]] void throw_exception()
{
    python_error error;
    error.persist();
    throw error;
}

Tensor run_vjp(PyObject *step, const Tensor &kept, const Tensor &given, const tarn_view &y)
{
    Tensor gy = given;
    if (!lies_as(gy, y)) // backward kernels are many times slower where it lies otherwise
        gy = make(y, y.dtype).copy_(given);
    tarn_view layout;
    core->layout(step, TARN_GX, &layout);
    Tensor gx = make(layout, y.dtype);
    const void *data = kept.defined() ? kept.const_data_ptr() : nullptr;
    const bool winners = core->saves(step) == 2;
    const void *x = winners ? nullptr : data, *won = winners ? data : nullptr;
    tarn_error error;
    if (core->is_long(step)) {
        pybind11::gil_scoped_acquire gil;
        if (core->watched_vjp(step, x, won, gy.const_data_ptr(), gx.mutable_data_ptr()))
            throw_exception();
        return gx;
    }
    TORCH_CHECK(!core->vjp(step, x, won, gy.const_data_ptr(), gx.mutable_data_ptr(), &error),
                error.message);
    return gx;
}

PyObject *wrapped(const Tensor &t)
{
    PyObject *object = THPVariable_Wrap(t);
    if (!object)
        throw python_error();
    return object;
}

// A gradient that is recorded or transformed itself.
Tensor vjp_by_operators(PyObject *step, const Tensor &kept, const Tensor &gy)
{
    pybind11::gil_scoped_acquire gil;
    const auto grad = pybind11::reinterpret_steal<pybind11::object>(wrapped(gy));
    const auto saved = kept.defined() ? pybind11::reinterpret_steal<pybind11::object>(wrapped(kept))
                                      : pybind11::object();
    const auto gx = pybind11::reinterpret_steal<pybind11::object>(
        core->vjp_by_operators(step, saved.ptr(), grad.ptr()));
    if (!gx)
        throw_exception();
    return THPVariable_Unpack(gx.ptr());
}

// Hooks on saved tensors may have brought something else back.
bool PoolBackward::is_simple(const Tensor &gy, const Tensor &kept, const tarn_view &y) const
{
    if (at::GradMode::is_enabled() || !is_unwatched() || !is_ordinary(gy) ||
        dtype_of(gy) != y.dtype)
        return false;
    if (!kept.defined())
        return true;
    tarn_view wanted = y;
    tarn_dtype dtype = core->second(step, &y);
    if (core->saves(step) == 1) {
        core->layout(step, TARN_X, &wanted);
        dtype = y.dtype;
    }
    return is_ordinary(kept) && dtype_of(kept) == dtype && lies_as(kept, wanted);
}

autograd::variable_list PoolBackward::apply(autograd::variable_list &&gradients)
{
    std::lock_guard<std::mutex> lock(mutex_);
    const Tensor &gy = gradients[0];
    if (!gy.defined())
        return {Tensor()};
    const Tensor kept = core->saves(step) ? saved.unpack() : Tensor();
    tarn_view y;
    core->layout(step, TARN_Y, &y);
    return {is_simple(gy, kept, y) ? run_vjp(step, kept, gy, y) : vjp_by_operators(step, kept, gy)};
}

// What a compiled graph depends on: the pool, how x lay, and the tensor that was kept.
void PoolBackward::compiled_args(torch::dynamo::autograd::CompiledNodeArgs &arguments) const
{
    const auto *pool = reinterpret_cast<const char *>(core->pool(step));
    tarn_view x;
    core->layout(step, TARN_X, &x);
    arguments.collect(std::string(pool, sizeof(tarn_pool)));
    arguments.collect(static_cast<int64_t>(x.dtype));
    arguments.collect(std::vector<int64_t>(x.shape, x.shape + x.rank));
    arguments.collect(std::vector<int64_t>(x.strides, x.strides + x.rank));
    if (core->saves(step))
        arguments.collect(saved, false);
}

autograd::variable_list
PoolBackward::apply_with_saved(const autograd::variable_list &gradients,
                               torch::dynamo::autograd::SwapSavedVariables &traced)
{
    if (core->saves(step))
        traced.before(saved);
    autograd::variable_list found = apply(autograd::variable_list(gradients));
    if (core->saves(step))
        traced.after(saved);
    return found;
}

// ---- Forward ----------------------------------------------------------------------------------------

void record(PyObject *step, const Tensor &x, const Tensor &y, const Tensor &winners)
{
    auto *node = new PoolBackward(step, autograd::collect_next_edges(x));
    const NodePointer owner = Owner<NodePointer>::of(node);
    if (core->saves(step))
        node->saved = autograd::SavedVariable(core->saves(step) == 2 ? winners : x, false);
    autograd::set_history(y, owner);
}

PyObject *run_tensor(PyObject *step, const Tensor &x, torch_way way)
{
    const tarn_view view = view_of(x);
    if (core->plan(step, &view, x.numel() < 65536 ? 1 : at::get_num_threads(), in_torch_threads))
        return nullptr;
    tarn_view layout;
    core->layout(step, TARN_Y, &layout);
    const tarn_dtype dtype = core->second(step, &layout);
    const Tensor y = make(layout, view.dtype);
    const Tensor second = dtype == TARN_DTYPES ? Tensor() : make(layout, dtype);
    if (core->forward(step, x.const_data_ptr(), y.mutable_data_ptr(),
                      second.defined() ? second.mutable_data_ptr() : nullptr))
        return nullptr;
    if (way == TORCH_RECORD)
        record(step, x, y, second);
    if (way == TORCH_RECORD || !second.defined())
        return THPVariable_Wrap(y);
    PyObject *first = wrapped(y), *indices = THPVariable_Wrap(second);
    PyObject *both = indices ? PyTuple_Pack(2, first, indices) : nullptr;
    Py_DECREF(first);
    Py_XDECREF(indices);
    return both;
}

// ---- For tarn._core ---------------------------------------------------------------------------------

torch_way find_way(PyObject *object)
{
    if (!THPVariable_CheckExact(object) || !is_unwatched())
        return TORCH_BY_OPERATORS;
    const Tensor &x = THPVariable_Unpack(object);
    if (!is_ordinary(x) || dtype_of(x) == TARN_DTYPES)
        return TORCH_BY_OPERATORS;
    return x.requires_grad() && at::GradMode::is_enabled() ? TORCH_RECORD : TORCH_RUN;
}

PyObject *run(PyObject *step, PyObject *x, torch_way way)
{
    HANDLE_TH_ERRORS
    return run_tensor(step, THPVariable_Unpack(x), way);
    END_HANDLE_TH_ERRORS
}

// connect(capsule of torch_core): a capsule of torch_native.
PyObject *connect(PyObject *, PyObject *capsule)
{
    static torch_native native = {find_way, run};
    core = static_cast<const torch_core *>(PyCapsule_GetPointer(capsule, TORCH_CORE));
    return core ? PyCapsule_New(&native, TORCH_NATIVE, nullptr) : nullptr;
}

PyMethodDef methods[] = {{"connect", connect, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "torch_native",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

PyMODINIT_FUNC PyInit_torch_native()
{
    return PyModule_Create(&definition);
}
