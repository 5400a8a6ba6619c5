"""tarn's pooling for PyTorch: the functions of ``torch.nn.functional``, with everything torch can do.

Registered custom operators with autograd of any order, forward-mode derivatives, ``vmap`` and
``torch.compile`` without graph breaks; ``nn.Module`` classes; `patch`, which swaps the functions of
``torch.nn.functional`` for a while.

>>> import torch, tarn.torch
>>> x = torch.tensor([[[1.0, 4.0], [3.0, 2.0]]], requires_grad=True)
>>> tarn.torch.max_pool2d(x, 2).backward()
>>> x.grad
tensor([[[0., 1.],
         [0., 0.]]])
"""

import contextlib
import functools
import inspect
import math
import operator

import torch

if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 6):
    raise ImportError(f"tarn.torch needs PyTorch 2.6 or later: this is {torch.__version__}")

from torch import nn
from torch.autograd import forward_ad
from torch._jit_internal import boolean_dispatched
from torch._functorch.utils import enable_single_level_autograd_function
from torch.overrides import handle_torch_function, has_torch_function_unary

from . import _core, pools, torch_build
from .errors import Error
from .functional import _unpooled_sizes, _window_taps

_below_autograd = torch._C._AutoDispatchBelowAutograd
_transforms_are_active = torch._C._are_functorch_transforms_active
_is_compiling = torch.compiler.is_dynamo_compiling  # A quick question; what else traces is seen by the core.
_compiler_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # PyTorch 2.7
_sliding, _adaptive = _core.torch_sliding, _core.torch_adaptive
_is_plain = _core.torch_is_plain
_MAX, _MIN, _AVG, _SMOOTH, _LP = _core.MAX, _core.MIN, _core.AVG, _core.SMOOTH, _core.LP

# ---- Descriptors ---------------------------------------------------------------------------------
# An operator gets its pool as the words of a problem string, such as "max k3s2p1": text can be traced,
# exported and read.


@functools.lru_cache(maxsize=4096)
def _pool(text):
    return _core.Pool.parse(text)


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=4096, typed=True)
def _remembered_text(*arguments):
    return _core.sliding_pool(*arguments, None, None, False, None).text


@torch.compiler.assume_constant_result
def _sliding_text(op, ndim, kernel, stride, padding, dilation, ceil, count, divisor, beta):
    """The words of a sliding pool, after the checks that PyTorch makes."""
    return _remembered_text(op, ndim, None, _hashable(kernel), _hashable(stride), _hashable(padding),
                            _hashable(dilation), ceil, count, divisor, beta)


def _axis_size(pool, axis, size):
    """What `Pool.output_shape` computes for one axis, on a size that may be symbolic."""
    kernel, stride, dilation, lo, hi, out = axis
    if pool.window == "adaptive":
        return out
    if pool.window == "global":
        return 1
    span = size + lo + hi - dilation * (kernel - 1) - 1
    torch._check(span >= 0, lambda: f"kernel {kernel} does not fit: padded size is {size + lo + hi}")
    windows = (span + (stride - 1 if pool.ceil else 0)) // stride + 1
    return windows - 1 if pool.ceil and (windows - 1) * stride >= size + lo else windows


def _output_shape(text, shape):
    pool = _pool(text)
    if all(isinstance(size, int) for size in shape):
        return pool.output_shape(shape)
    lead = len(shape) - len(pool.axes)
    if pool.flat:
        return shape[:lead]
    return (*shape[:lead], *(_axis_size(pool, *pair) for pair in zip(pool.axes, shape[lead:])))


# ---- Kernels -------------------------------------------------------------------------------------


def _is_last(x, ndim):
    """Whether the channels, the axis before the last ``ndim``, lie innermost in memory, with gaps or
    without, and the tensor is not contiguous at the same time."""
    channel = x.dim() - ndim - 1
    if channel < 0 or x.is_contiguous() or x.stride(channel) == 0:
        return False
    reach = 0
    for axis in _from_innermost(x.dim(), channel):
        if x.stride(axis) < reach or (axis < channel and reach == x.stride(channel)):
            return False
        reach = x.stride(axis) * max(x.shape[axis], 1)
    return True


def _from_innermost(rank, channel):
    return (channel, *range(rank - 1, channel, -1), *range(channel - 1, -1, -1))


def _dense(shape, last, ndim, dtype, device):
    """A tensor for a result: contiguous, or its channels innermost."""
    if not last:
        return torch.empty(shape, dtype=dtype, device=device)
    strides, stride = [0] * len(shape), 1
    for axis in _from_innermost(len(shape), len(shape) - ndim - 1):
        strides[axis] = stride
        stride = stride * max(shape[axis], 1)
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _empty(shape, like, ndim, dtype=None):
    """A tensor for a result of a pool over ``ndim`` axes: channels last if ``like`` is."""
    last = len(shape) == like.dim() and _is_last(like, ndim)
    return _dense(shape, last, ndim, dtype or like.dtype, like.device)


def _ndim(pool):
    return len(_pool(pool).axes)


def _result(x, pool, dtype=None):
    return _empty(_output_shape(pool, x.shape), x, _ndim(pool), dtype)


def _forward(x, pool):
    return _pool(pool)(x.detach(), out=_result(x, pool))


def _indices(x, pool):
    y, indices = _fake_indices(x, pool)
    return _pool(pool).forward_indices(x.detach(), out=(y, indices))


def _jvp(x, dx, pool):
    return _pool(pool).jvp(x.detach(), dx.detach(), out=_result(x, pool))


def _laid_out(gy, rank, last, ndim):
    """gy as y lies: backward kernels are many times slower where it lies otherwise."""
    gy = gy.detach()
    if not last or gy.dim() != rank:
        return gy.contiguous()
    wanted = _dense(gy.shape, True, ndim, gy.dtype, gy.device)
    return gy if gy.stride() == wanted.stride() else wanted.copy_(gy)


def _vjp(x, gy, pool):
    ndim = _ndim(pool)
    gy = _laid_out(gy, x.dim(), _is_last(x, ndim), ndim)
    return _pool(pool).vjp(x.detach(), gy, out=_empty(x.shape, x, ndim))


def _saved(x, pool):
    return _core.pool_saved(_pool(pool), x.detach(), *_fake_saved(x, pool))


def _vjp_saved(winners, gy, size, last, pool):
    gx = _dense(size, last, _ndim(pool), gy.dtype, "meta")
    if winners is not None and torch.empty_like(winners, device="meta").stride() != winners.stride():
        winners = winners.contiguous()  # They had gaps, or were broadcast.
    gy = _laid_out(gy, len(size), last, _ndim(pool))
    return _core.vjp_saved(_pool(pool), (gx.shape, gx.stride()), winners, gy)


def _unpool(x, indices, size):
    out = _fake_unpool(x, indices, size)
    return _core.unpool(len(size), x.detach(), indices.detach(), tuple(size), out)


# ---- The same for tensors without data -----------------------------------------------------------


def _fake_forward(x, pool):
    return _result(x, pool)


def _fake_indices(x, pool):
    return _result(x, pool), _result(x, pool, torch.int64)


def _fake_jvp(x, dx, pool):
    return _result(x, pool)


def _fake_vjp(x, gy, pool):
    return _empty(x.shape, x, _ndim(pool))


def _fake_saved(x, pool):
    if not _pool(pool).keeps_winners:
        raise Error(f"{pool!r} keeps no winners: max and min with the tie rule 'first' do")
    taps = math.prod(_window_taps(_pool(pool), x.shape))
    dtype = torch.uint8 if taps <= 255 else torch.int32 if taps < 2**31 else torch.int64
    return _result(x, pool), _result(x, pool, dtype)


def _fake_vjp_saved(winners, gy, size, last, pool):
    return _dense(size, last, _ndim(pool), gy.dtype, gy.device)


def _fake_unpool(x, indices, size):
    return _empty((*x.shape[:x.dim() - len(size)], *size), x, len(size))


# ---- Derivatives ---------------------------------------------------------------------------------
# pool_jvp(x, dx) = J(x) dx and pool_vjp(x, gy) = J(x)' gy are linear in their second argument, and
# each is the transpose of the other. In x only smooth max is curved: with its weights w = J(x),
# d w_i / d x_j = beta * w_i * ([i = j] - w_j). Everything below is composed of the two operators
# again, so derivatives of any order exist.


def _is_curved(pool):
    if _pool(pool).op == _LP:
        raise NotImplementedError("second derivatives of Lp pooling are not implemented")
    return _pool(pool).op == _SMOOTH


def _curvature(x, gy, v, pool):
    """The gradient in x of the number <gy, J(x) v>; J being symmetric in its two uses, also the
    change of J(x)' gy along v."""
    ops = torch.ops.tarn
    inner = gy * ops.pool_jvp(x, v, pool)
    return _pool(pool).beta * (v * ops.pool_vjp(x, gy, pool) - ops.pool_vjp(x, inner, pool))


def _bend(x, dx, tx, pool):
    """The change of J(x) dx along tx."""
    ops = torch.ops.tarn
    product = ops.pool_jvp(x, dx, pool) * ops.pool_jvp(x, tx, pool)
    return _pool(pool).beta * (ops.pool_jvp(x, dx * tx, pool) - product)


def _sum(*terms):
    """The sum of the terms that are there."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def _below(op, *arguments):
    """Calls an operator below autograd. Transforms further out still want their derivatives, which
    autograd.Function switches off while it runs a forward."""
    if not _transforms_are_active():
        with _below_autograd():
            return op(*arguments)
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), _below_autograd():
        return op(*arguments)


def _outer_tangents(jvp):
    """A ``jvp`` whose tangents can be differentiated once more, by a transform further out: forward
    mode, which autograd.Function has switched off, is on again, and what was saved is stripped of
    the tangents of this layer."""

    @functools.wraps(jvp)
    def wrapped(ctx, *tangents):
        if not _transforms_are_active():
            return jvp(ctx, ctx.saved_tensors, *tangents)
        saved = [forward_ad.unpack_dual(tensor).primal for tensor in ctx.saved_tensors]
        with forward_ad._set_fwd_grad_enabled(True):
            return jvp(ctx, saved, *tangents)

    return wrapped


class _Function(torch.autograd.function._SingleLevelFunction):
    """An autograd.Function whose ``apply`` takes no detour through functorch: when the dispatcher calls
    an autograd kernel, functorch has already chosen the layer that is to be differentiated."""

    _compiled_autograd_key = staticmethod(torch.autograd.Function._compiled_autograd_key)


class _Forward(_Function):
    @staticmethod
    def forward(x, pool):
        return _below(torch.ops.tarn.pool, x, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.pool = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, gy):
        return torch.ops.tarn.pool_vjp(*ctx.saved_tensors, gy, ctx.pool), None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, dx, _):
        return torch.ops.tarn.pool_jvp(*saved, dx, ctx.pool)


class _ForwardSaved(_Function):
    """Max and min where the first of equals wins: a backward needs the winners, and not x."""

    @staticmethod
    def forward(x, pool):
        return _below(torch.ops.tarn.pool_saved, x, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.pool = inputs
        ctx.size, ctx.last = x.shape, _is_last(x, _ndim(ctx.pool))
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, gy, _):
        arguments = gy, ctx.size, ctx.last, ctx.pool
        return torch.ops.tarn.pool_vjp_saved(*ctx.saved_tensors, *arguments), None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, dx, _):
        return torch.ops.tarn.pool_jvp(*saved, dx, ctx.pool), None


class _ForwardMean(_Function):
    """Means are linear: a backward needs the shape of x only."""

    @staticmethod
    def forward(x, pool):
        return _below(torch.ops.tarn.pool, x, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.pool = inputs
        ctx.size, ctx.last = x.shape, _is_last(x, _ndim(ctx.pool))

    @staticmethod
    def backward(ctx, gy):
        return torch.ops.tarn.pool_vjp_saved(None, gy, ctx.size, ctx.last, ctx.pool), None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, dx, _):
        return torch.ops.tarn.pool(dx, ctx.pool)


class _ForwardIndices(_Function):
    @staticmethod
    def forward(x, pool):
        return _below(torch.ops.tarn.pool_indices, x, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _Forward.setup_context(ctx, inputs, output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, gy, _):
        return _Forward.backward(ctx, gy)

    @staticmethod
    def jvp(ctx, dx, _):
        return _Forward.jvp(ctx, dx, _), None


class _Jvp(_Function):
    @staticmethod
    def forward(x, dx, pool):
        return _below(torch.ops.tarn.pool_jvp, x, dx, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, second, ctx.pool = inputs
        ctx.save_for_backward(x, second)
        ctx.save_for_forward(x, second)

    @staticmethod
    def backward(ctx, g):
        x, dx = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0] and _is_curved(ctx.pool):
            gx = _curvature(x, g, dx, ctx.pool)
        return gx, torch.ops.tarn.pool_vjp(x, g, ctx.pool), None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, tx, tdx, _):
        x, dx = saved
        bend = _bend(x, dx, tx, ctx.pool) if tx is not None and _is_curved(ctx.pool) else None
        along = None if tdx is None else torch.ops.tarn.pool_jvp(x, tdx, ctx.pool)
        return _sum(bend, along)


class _Vjp(_Function):
    @staticmethod
    def forward(x, gy, pool):
        return _below(torch.ops.tarn.pool_vjp, x, gy, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _Jvp.setup_context(ctx, inputs, output)

    @staticmethod
    def backward(ctx, v):
        x, gy = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0] and _is_curved(ctx.pool):
            gx = _curvature(x, gy, v, ctx.pool)
        return gx, torch.ops.tarn.pool_jvp(x, v, ctx.pool), None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, tx, tgy, _):
        x, gy = saved
        bend = _curvature(x, gy, tx, ctx.pool) if tx is not None and _is_curved(ctx.pool) else None
        along = None if tgy is None else torch.ops.tarn.pool_vjp(x, tgy, ctx.pool)
        return _sum(bend, along)


def _at(tensor, indices, ndim):
    """The elements of ``tensor`` at flat positions in its last axes; 0 where an index is -1."""
    flat, places = (part.reshape(*part.shape[:-ndim], math.prod(part.shape[-ndim:]))
                    for part in (tensor, indices))
    return flat.gather(-1, places.clamp(min=0)).reshape(indices.shape).masked_fill(indices < 0, 0)


def _winner_indices(winners, size, pool):
    """Where the winners lie in the flattened last axes: from their positions in their windows."""
    pool, lead = _pool(pool), len(size) - len(_pool(pool).axes)
    if pool.flat:
        winners = winners.reshape(*winners.shape, *[1] * len(pool.axes))
    rest, index, step = winners.long(), 0, 1
    for a, taps in reversed(list(enumerate(_window_taps(pool, size)))):
        _, stride, dilation, lo, _, out = pool.axes[a]
        n, at = size[lead + a], torch.arange(winners.shape[lead + a], device=winners.device)
        start = {"sliding": at * stride - lo, "adaptive": at * n // out, "global": at}[pool.window]
        start = start.reshape(-1, *[1] * (len(pool.axes) - 1 - a))
        index = index + (start + rest % taps * (dilation if pool.window == "sliding" else 1)) * step
        rest, step = rest // taps, step * n
    return index.masked_fill(winners == (255 if winners.dtype == torch.uint8 else -1), -1)


class _VjpSaved(_Function):
    @staticmethod
    def forward(winners, gy, size, last, pool):
        return _below(torch.ops.tarn.pool_vjp_saved, winners, gy, size, last, pool)

    @staticmethod
    def setup_context(ctx, inputs, output):
        winners, _, *ctx.rest = inputs
        kept = [] if winners is None else [winners]
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)

    @staticmethod
    def backward(ctx, v):
        size, _, pool = ctx.rest
        if not ctx.saved_tensors:
            return None, torch.ops.tarn.pool(v, pool), None, None, None
        ndim = len(_pool(pool).axes)
        chosen = _at(v, _winner_indices(*ctx.saved_tensors, size, pool), ndim)
        return None, chosen.reshape(ctx.saved_tensors[0].shape), None, None, None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, _, tgy, *rest):
        return torch.ops.tarn.pool_vjp_saved(*(saved or [None]), tgy, *ctx.rest)


class _Unpool(_Function):
    @staticmethod
    def forward(x, indices, size):
        return _below(torch.ops.tarn.unpool, x, indices, size)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, indices, ctx.size = inputs
        ctx.save_for_backward(indices)
        ctx.save_for_forward(indices)

    @staticmethod
    def backward(ctx, gy):
        return _at(gy, *ctx.saved_tensors, len(ctx.size)), None, None

    @staticmethod
    @_outer_tangents
    def jvp(ctx, saved, dx, *_):
        return torch.ops.tarn.unpool(dx, *saved, ctx.size)


# ---- Registration --------------------------------------------------------------------------------


def _first(tensor, axis, size):
    """The tensor with its batch axis first; broadcast, without a copy, if it has none."""
    return tensor.expand(size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)


def _batched(op, tensors, outputs):
    """The vmap rule: pooling takes any number of leading axes, so that a batch is one more."""

    def rule(info, axes, *arguments):
        moved = (_first(*pair, info.batch_size) for pair in zip(arguments[:tensors], axes))
        result = op(*moved, *arguments[tensors:])
        return result, (0 if outputs == 1 else (0,) * outputs)

    return rule


def _batched_vjp_saved(info, axes, winners, gy, size, last, pool):
    winners = winners if winners is None else _first(winners, axes[0], info.batch_size)
    gy = _first(gy, axes[1], info.batch_size)
    return torch.ops.tarn.pool_vjp_saved(winners, gy, [info.batch_size, *size], False, pool), 0


def _autograd_kernel(function):
    """``function.apply``, which functorch wants to be told of."""
    apply = function.apply

    def kernel(*arguments):
        if not _transforms_are_active():
            return apply(*arguments)
        with enable_single_level_autograd_function():
            return apply(*arguments)

    return kernel


def _pool_with_autograd():
    """The autograd kernel of ``pool``: what a backward will need depends on the pool."""
    with_x, with_winners, with_nothing = map(_autograd_kernel, (_Forward, _ForwardSaved, _ForwardMean))

    def kernel(x, pool):
        if _pool(pool).linear:
            return with_nothing(x, pool)
        if _pool(pool).keeps_winners and x.requires_grad and torch.is_grad_enabled():
            return with_winners(x, pool)[0]
        return with_x(x, pool)

    return kernel


_library = torch.library.Library("tarn", "DEF")


def _register(schema, kernel, fake, autograd, rule):
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(name, kernel, "CPU")
    torch.library.register_fake(f"tarn::{name}", fake, lib=_library)
    _library.impl(name, autograd, "Autograd")
    rule = rule if callable(rule) else _batched(getattr(torch.ops.tarn, name), *rule)
    torch.library.register_vmap(f"tarn::{name}", rule, lib=_library)


_register("pool(Tensor x, str pool) -> Tensor", _forward, _fake_forward, _pool_with_autograd(),
          (1, 1))
_register("pool_indices(Tensor x, str pool) -> (Tensor, Tensor)", _indices, _fake_indices,
          _autograd_kernel(_ForwardIndices), (1, 2))
_register("pool_saved(Tensor x, str pool) -> (Tensor, Tensor)", _saved, _fake_saved,
          _autograd_kernel(_ForwardSaved), (1, 2))
_register("pool_jvp(Tensor x, Tensor dx, str pool) -> Tensor", _jvp, _fake_jvp, _autograd_kernel(_Jvp),
          (2, 1))
_register("pool_vjp(Tensor x, Tensor gy, str pool) -> Tensor", _vjp, _fake_vjp, _autograd_kernel(_Vjp),
          (2, 1))
_register("pool_vjp_saved(Tensor? winners, Tensor gy, SymInt[] size, bool last, str pool) -> Tensor",
          _vjp_saved, _fake_vjp_saved, _autograd_kernel(_VjpSaved), _batched_vjp_saved)
_register("unpool(Tensor x, Tensor indices, SymInt[] size) -> Tensor", _unpool, _fake_unpool,
          _autograd_kernel(_Unpool), (2, 1))

# ---- Without the dispatcher ----------------------------------------------------------------------
# It takes longer than pooling a small tensor, and for a plain tensor in eager mode has nothing to do.


class _Step(_Function):
    """A pool in eager mode. The backward falls back to the operators if it is itself recorded,
    transformed or traced."""

    forward = _core.torch_forward
    backward = _core.torch_backward


def _step_backward(node, gy, backward=_core.torch_backward):
    return backward(node, gy)


# What PyTorch puts here looks for the function above first, which takes as long as a small backward.
_Step._backward_cls.apply = _step_backward


def _vjp_by_operators(step, saved, gy):
    pool = step.pool
    if saved and not pool.keeps_winners:
        return torch.ops.tarn.pool_vjp(*saved, gy, pool.text)
    size, strides = step.form
    last = _is_last(torch.empty_strided(size, strides, device="meta"), len(pool.axes))
    return torch.ops.tarn.pool_vjp_saved(*(saved or [None]), gy, size, last, pool.text)


def _copied(gy, strides):
    return torch.empty_strided(gy.shape, strides, dtype=gy.dtype).copy_(gy)


_core.torch_setup(
    torch.Tensor, torch.Tensor.is_neg, torch._C._are_functorch_transforms_active,
    torch._C._len_torch_dispatch_stack, torch._C._is_torch_function_mode_enabled,
    torch._C._get_tracing_state, vars(forward_ad),
    torch.is_grad_enabled, torch.get_num_threads, torch_build.start, _Step.apply,
    _vjp_by_operators, _copied)
build = torch_build.build
torch_build.load_if_wanted()

# ---- Functions -----------------------------------------------------------------------------------


def _check_tensor(x):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"input is of type {type(x).__name__}, not a tensor; the functions of tarn itself take "
                        "other arrays")


def _check_frame(x, ndim, filled=None):
    """What PyTorch asks of an input: channels, maybe a batch before them, and only that empty."""
    _check_tensor(x)
    if not ndim + 1 <= x.dim() <= ndim + 2:
        raise Error(f"input has rank {x.dim()}, expected {ndim + 1} (channels, then space) or "
                    f"{ndim + 2} (batch first)", "TARN_BAD_RANK")
    for axis in range(x.dim() - ndim - 1 if filled is None else filled, x.dim()):
        if x.shape[axis] == 0:
            raise Error(f"input is empty in dimension {axis}; only a batch may be empty",
                        "TARN_BAD_SHAPE")


def _run(x, ndim, text, return_indices=False, filled=None):
    _check_frame(x, ndim, filled)
    return _by_operators(x, text, return_indices)


def _by_operators(x, text, return_indices=False):
    """By tarn's operators; while a model becomes one of ONNX, by PyTorch's, which have nodes there."""
    _check_tensor(x)
    if torch.onnx.is_in_onnx_export():
        return _for_onnx(x, _pool(text), return_indices)
    return torch.ops.tarn.pool_indices(x, text) if return_indices else torch.ops.tarn.pool(x, text)


def _for_onnx(x, pool, return_indices):
    if not _is_of_onnx(pool):
        raise Error(f"{pool!r} cannot be exported: no node of ONNX means the same", "TARN_UNSUPPORTED")
    if pool.op != _MIN:
        return _by_pytorch(x, pool, return_indices)
    y = _by_pytorch(-x, pool, return_indices)
    return (-y[0], y[1]) if return_indices else -y


def _is_of_onnx(pool):
    """Whether PyTorch, and with it ONNX, has the pool, or for min its mirror image."""
    if pool.op not in (_MAX, _MIN, _AVG) or pool.skips or len(pool.axes) > 3:
        return False
    plain = all(dilation == 1 for _, _, dilation, *_ in pool.axes)
    return all(lo == hi for *_, lo, hi, _ in pool.axes) and (plain or pool.op != _AVG) and not pool.divisor


def _by_pytorch(x, pool, return_indices):
    kind, ndim = "avg" if pool.op == _AVG else "max", len(pool.axes)
    if pool.window == "global":
        return (x.mean if kind == "avg" else x.amax)(tuple(range(-ndim, 0)), keepdim=not pool.flat)
    kernel, stride, dilation, padding, _, sizes = map(list, zip(*pool.axes))
    if pool.window == "adaptive":
        function = _theirs[f"adaptive_{kind}_pool{ndim}d"]
        return function(x, sizes, True) if return_indices else function(x, sizes)
    function = _theirs[f"{kind}_pool{ndim}d"]
    if kind == "max":
        return function(x, kernel, stride, padding, dilation, pool.ceil, return_indices)
    return function(x, kernel, stride, padding, pool.ceil, "nopad" not in pool.text.split())


def _named(function, name):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`tarn.{name}` with autograd."
    return function


def _settled(value):
    """The same of plain numbers: torch.compile may hold a number as a symbol, which is no word of a pool. It
    asks what an integer is for the length of a range, and a float for a place in a set."""
    if isinstance(value, (tuple, list)):
        return tuple([_settled(entry) for entry in value])
    if isinstance(value, float):
        return [*{value}][0]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return len(range(value)) if value >= 0 else -len(range(-value))


def _slide(function, arguments, op, ndim, x, window, return_indices=False):
    """A sliding pool by the operators, unless somebody overrides the function."""
    if has_torch_function_unary(x):
        return handle_torch_function(function, (x,), x, *arguments)
    if torch.compiler.is_compiling():
        op, ndim, window = _settled((op, ndim, window))
    return _run(x, ndim, _sliding_text(op, ndim, *window), return_indices)


def _extreme_function(op, word, ndim):
    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
             return_indices=False):
        if not _is_compiling():
            y = _sliding(op, ndim, input, kernel_size, stride, padding, dilation, ceil_mode, True,
                         None, 1.0, None, None, return_indices)
            if y is not NotImplemented:
                return y
        arguments = kernel_size, stride, padding, dilation, ceil_mode, return_indices
        window = kernel_size, stride, padding, dilation, ceil_mode, True, None, 1.0
        return _slide(pool, arguments, op, ndim, input, window, return_indices)

    return _named(pool, f"{word}_pool{ndim}d")


def _avg_function(ndim):
    def pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
             divisor_override=None):
        if not _is_compiling():
            y = _sliding(_AVG, ndim, input, kernel_size, stride, padding, 1, ceil_mode,
                         count_include_pad, divisor_override, 1.0, None, None, False)
            if y is not NotImplemented:
                return y
        arguments = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        window = kernel_size, stride, padding, 1, ceil_mode, count_include_pad, divisor_override, 1.0
        return _slide(pool, arguments, _AVG, ndim, input, window)

    return _named(pool, f"avg_pool{ndim}d")


def _smooth_function(ndim):
    def pool(input, kernel_size, stride=None, padding=0, beta=1.0, dilation=1, ceil_mode=False,
             count_include_pad=True):
        if not _is_compiling():
            y = _sliding(_SMOOTH, ndim, input, kernel_size, stride, padding, dilation, ceil_mode,
                         count_include_pad, None, beta, None, None, False)
            if y is not NotImplemented:
                return y
        arguments = kernel_size, stride, padding, beta, dilation, ceil_mode, count_include_pad
        window = kernel_size, stride, padding, dilation, ceil_mode, count_include_pad, None, beta
        return _slide(pool, arguments, _SMOOTH, ndim, input, window)

    return _named(pool, f"smooth_max_pool{ndim}d")


def _lp_function(ndim):
    def pool(input, norm_type, kernel_size, stride=None, ceil_mode=False, padding=0, dilation=1):
        if not _is_compiling():
            y = _sliding(_LP, ndim, input, kernel_size, stride, padding, dilation, ceil_mode, True,
                         None, norm_type, None, None, False)
            if y is not NotImplemented:
                return y
        arguments = norm_type, kernel_size, stride, ceil_mode, padding, dilation
        window = kernel_size, stride, padding, dilation, ceil_mode, True, None, norm_type
        return _slide(pool, arguments, _LP, ndim, input, window)

    return _named(pool, f"lp_pool{ndim}d")


def _output_sizes(x, ndim, output_size):
    """One size for each axis; None keeps that of x."""
    _check_frame(x, ndim, filled=1)
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * ndim
    if len(sizes) != ndim:
        raise Error(f"output_size has {len(sizes)} entries, expected {ndim}")
    return [_settled(x.shape[axis - ndim] if size is None else operator.index(size))
            for axis, size in enumerate(sizes)]


def _adapt(function, arguments, op, word, ndim, x, output_size, number=1.0, indices=False):
    """An adaptive pool by the operators, unless somebody overrides the function."""
    if has_torch_function_unary(x):
        return handle_torch_function(function, (x,), x, *arguments)
    op, ndim = _settled((op, ndim))
    sizes = _output_sizes(x, ndim, output_size)
    text = f"{word} a{','.join([str(size) for size in sizes])} d{ndim}"
    return _run(x, ndim, f"{text}{_number_word(op, number)}", indices, filled=1)


def _number_word(op, number):
    """What a problem string says of the one number that an operator takes."""
    number = _settled(number)
    return f" beta={number}" if op == _SMOOTH else f" p={number}" if op == _LP else ""


def _adaptive_extreme_function(op, word, ndim):
    def pool(input, output_size, return_indices=False):
        if not _is_compiling():
            y = _adaptive(op, ndim, input, output_size, 1.0, None, None, return_indices)
            if y is not NotImplemented:
                return y
        return _adapt(pool, (output_size, return_indices), op, word, ndim, input, output_size, 1.0,
                      return_indices)

    return _named(pool, f"adaptive_{word}_pool{ndim}d")


def _adaptive_avg_function(ndim):
    def pool(input, output_size):
        if not _is_compiling():
            y = _adaptive(_AVG, ndim, input, output_size, 1.0, None, None, False)
            if y is not NotImplemented:
                return y
        return _adapt(pool, (output_size,), _AVG, "avg", ndim, input, output_size)

    return _named(pool, f"adaptive_avg_pool{ndim}d")


def _adaptive_smooth_function(ndim):
    def pool(input, output_size, beta=1.0):
        if not _is_compiling():
            y = _adaptive(_SMOOTH, ndim, input, output_size, beta, None, None, False)
            if y is not NotImplemented:
                return y
        return _adapt(pool, (output_size, beta), _SMOOTH, "smooth", ndim, input, output_size, beta)

    return _named(pool, f"adaptive_smooth_max_pool{ndim}d")


def _adaptive_lp_function(ndim):
    def pool(input, norm_type, output_size):
        if not _is_compiling():
            y = _adaptive(_LP, ndim, input, output_size, norm_type, None, None, False)
            if y is not NotImplemented:
                return y
        return _adapt(pool, (norm_type, output_size), _LP, "lp", ndim, input, output_size, norm_type)

    return _named(pool, f"adaptive_lp_pool{ndim}d")


def _unpool_function(ndim):
    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        if has_torch_function_unary(input):
            return handle_torch_function(unpool, (input,), input, indices, kernel_size, stride,
                                         padding, output_size)
        _check_tensor(input)
        sizes = _unpooled_sizes(ndim, input.shape, kernel_size, stride, padding, output_size)
        if any(size <= 0 for size in sizes):
            raise Error(f"output sizes {tuple(sizes)} are not positive", "TARN_BAD_SHAPE")
        return torch.ops.tarn.unpool(input, indices, list(sizes))

    return _named(unpool, f"max_unpool{ndim}d")


max_pool1d, max_pool2d, max_pool3d = (_extreme_function(_MAX, "max", n) for n in (1, 2, 3))
min_pool1d, min_pool2d, min_pool3d = (_extreme_function(_MIN, "min", n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_function, (1, 2, 3))
smooth_max_pool1d, smooth_max_pool2d, smooth_max_pool3d = map(_smooth_function, (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_function, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_extreme_function(_MAX, "max", n) for n in (1, 2, 3))
adaptive_min_pool1d, adaptive_min_pool2d, adaptive_min_pool3d = (
    _adaptive_extreme_function(_MIN, "min", n) for n in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_function, (1, 2, 3))
adaptive_smooth_max_pool1d, adaptive_smooth_max_pool2d, adaptive_smooth_max_pool3d = map(
    _adaptive_smooth_function, (1, 2, 3))
adaptive_lp_pool1d, adaptive_lp_pool2d, adaptive_lp_pool3d = map(_adaptive_lp_function, (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool_function, (1, 2, 3))


def pool(p, input):
    """A pool object, such as `tarn.AvgPool(2, skip=math.nan)`, with autograd.

    >>> import math, torch, tarn.torch
    >>> x = torch.tensor([[1.0, math.nan], [3.0, 5.0]], requires_grad=True)
    >>> tarn.torch.pool(tarn.AvgPool(2, skip=math.nan), x).backward()
    >>> x.grad
    tensor([[0.3333, 0.0000],
            [0.3333, 0.3333]])
    """
    if not _is_compiling():
        y = _core.torch_pool(p, input)
        if y is not NotImplemented:
            return y
    if has_torch_function_unary(input):
        return handle_torch_function(pool, (input,), p, input)
    return _by_operators(input, p.text)


@functools.lru_cache(maxsize=4096, typed=True)
def _global_pool(kind, *arguments):
    return kind(*arguments)


@torch.compiler.assume_constant_result
def _global_text(kind, *arguments):
    return _global_pool(kind, *arguments).text


def _globally(function, arguments, x, kind, *window):
    if not _is_compiling():
        y = _core.torch_pool(_global_pool(kind, *window), x)
        if y is not NotImplemented:
            return y
    if has_torch_function_unary(x):
        return handle_torch_function(function, (x,), x, *arguments)
    return _by_operators(x, _global_text(kind, *_settled(window)))


def global_max_pool(input, ndim=2, keepdims=True, ties="all"):
    """`tarn.global_max_pool` with autograd, which follows the tie rule."""
    window = ndim, keepdims, ties
    return _globally(global_max_pool, window, input, pools.GlobalMaxPool, *window)


def global_min_pool(input, ndim=2, keepdims=True, ties="all"):
    """`tarn.global_min_pool` with autograd, which follows the tie rule."""
    window = ndim, keepdims, ties
    return _globally(global_min_pool, window, input, pools.GlobalMinPool, *window)


def global_avg_pool(input, ndim=2, keepdims=True):
    """`tarn.global_avg_pool` with autograd."""
    window = ndim, keepdims
    return _globally(global_avg_pool, window, input, pools.GlobalAvgPool, *window)


def global_smooth_max_pool(input, ndim=2, keepdims=True, beta=1.0):
    """`tarn.global_smooth_max_pool` with autograd."""
    window = ndim, keepdims, beta
    return _globally(global_smooth_max_pool, window, input, pools.GlobalSmoothMaxPool, *window)


def global_lp_pool(input, norm_type=2.0, ndim=2, keepdims=True):
    """`tarn.global_lp_pool` with autograd."""
    arguments = norm_type, ndim, keepdims
    return _globally(global_lp_pool, arguments, input, pools.GlobalLpPool, ndim, keepdims, norm_type)


def __getattr__(name):
    # So that `import tarn.torch as F` can stand for `import torch.nn.functional as F`.
    if not name.startswith("_") and hasattr(nn.functional, name):
        return getattr(nn.functional, name)
    raise AttributeError(f"module 'tarn.torch' has no attribute '{name}'")


# ---- Modules -------------------------------------------------------------------------------------
# Those that PyTorch has are PyTorch's own with another forward, so that isinstance(), repr() and
# saved models keep working. Lp is not among them: PyTorch's has another meaning.


def _forward_method(function):
    """Calls the function with the module's attributes of the names of its arguments."""
    names = list(inspect.signature(function).parameters)[1:]

    def forward(self, input):
        return function(input, *[getattr(self, name, None) for name in names])

    return forward


def _module_class(name, function, base):
    return type(name, (base,), {"forward": _forward_method(function), "__module__": __name__,
                                "__doc__": f"`{function.__name__}` as a module."})


def _new_module_class(name, function):
    """A module with the arguments of the function, but for the input."""
    _, *parameters = inspect.signature(function).parameters.values()
    signature = inspect.Signature(parameters)

    def __init__(self, *args, **kwargs):
        nn.Module.__init__(self)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    def extra_repr(self):
        return ", ".join(f"{parameter.name}={getattr(self, parameter.name)}"
                         for parameter in parameters)

    made = _module_class(name, function, nn.Module)
    made.__init__, made.extra_repr, made.__signature__ = __init__, extra_repr, signature
    return made


for _kind in ("Max", "Avg", "AdaptiveMax", "AdaptiveAvg", "Min", "SmoothMax", "Lp", "AdaptiveMin",
              "AdaptiveSmoothMax", "AdaptiveLp", "GlobalMax", "GlobalMin", "GlobalAvg",
              "GlobalSmoothMax", "GlobalLp"):
    _function_kind = "".join("_" + c.lower() if c.isupper() else c for c in _kind)[1:]
    for _end in ("",) if _kind.startswith("Global") else ("1d", "2d", "3d"):
        _name, _function = f"{_kind}Pool{_end}", globals()[f"{_function_kind}_pool{_end}"]
        if _kind == "Min":
            _made = _module_class(_name, _function, nn.modules.pooling._MaxPoolNd)
        elif _kind in ("Max", "Avg", "AdaptiveMax", "AdaptiveAvg"):
            _made = _module_class(_name, _function, getattr(nn, _name))
        else:
            _made = _new_module_class(_name, _function)
        globals()[_name] = _made

# ---- In place of PyTorch's own -------------------------------------------------------------------

_PATCHED = [f"{kind}{n}d" for n in (1, 2, 3)
            for kind in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool",
                         "max_unpool")]
_theirs = {name: getattr(nn.functional, name) for name in _PATCHED}


def _is_served(x):
    """Whether tarn can pool the tensor. PyTorch has kernels for other devices and layouts."""
    return (isinstance(x, torch.Tensor) and x.is_cpu and x.layout is torch.strided
            and not x.is_quantized and not x.is_nested and not x.is_complex())


def _is_exporting():
    """Whether a model is written down that may be loaded where there is no tarn."""
    return torch._C._get_tracing_state() is not None or _compiler_is_exporting()


def _in_place_of(theirs, ours):
    """Ours for tensors that tarn can pool. PyTorch's for others, for ``out``, for whoever overrides its
    functions, for models that are exported, and for what tarn refuses: then the error, or the result,
    is PyTorch's own."""

    @functools.wraps(ours)
    def pool(input, *args, **kwargs):
        if not _is_compiling() and _is_plain(input):
            try:
                return ours(input, *args, **kwargs)
            except (Error, TypeError, OverflowError):
                return theirs(input, *args, **kwargs)
        if (not has_torch_function_unary(input) and "out" not in kwargs and _is_served(input)
                and not _is_exporting()):
            try:
                return ours(input, *args, **kwargs)
            except (Error, TypeError, OverflowError):
                pass
        return theirs(input, *args, **kwargs)

    # What torch.jit.script compiles.
    boolean_dispatched[pool] = boolean_dispatched.get(theirs) or {
        "if_true": theirs, "if_false": theirs, "index": 99, "default": False, "arg_name": ""}
    return pool


@contextlib.contextmanager
def patch():
    """Within this context ``torch.nn.functional`` pools with tarn, and so do the modules of
    ``torch.nn``. Tensors on other devices than the CPU still go to PyTorch.

    >>> import torch, tarn.torch
    >>> with tarn.torch.patch():
    ...     torch.nn.MaxPool2d(2)(torch.tensor([[[1.0, 4.0], [3.0, 2.0]]]))
    tensor([[[4.]]])
    """
    functional = nn.functional
    originals = {name: getattr(functional, name) for name in _PATCHED}
    try:
        for name, original in originals.items():
            setattr(functional, name, _in_place_of(original, globals()[name]))
        yield
    finally:
        for name, original in originals.items():
            setattr(functional, name, original)
