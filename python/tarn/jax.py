"""tarn's pooling for JAX: under ``jit`` and ``vmap``, with derivatives both ways.

The functions have the names and arguments of `tarn`; `pool` applies any pool object. Each is a
primitive of JAX with a rule for its JVP, its transpose (so that ``grad`` and ``vjp`` work) and its
batches; the numbers themselves are computed on the CPU, by a foreign function of XLA or a callback, so
the bits are those of `tarn`.

>>> import jax, jax.numpy as jnp, tarn.jax
>>> x = jnp.array([[[1.0, 4.0], [3.0, 2.0]]])
>>> jax.jit(jax.grad(lambda x: tarn.jax.max_pool2d(x, 2).sum()))(x)
Array([[[0., 1.],
        [0., 0.]]], dtype=float32)
"""

import functools
import math
import operator

import jax
import jaxlib
import numpy
from jax import ffi
from jax import numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _core
from .compiled import Compiled
from .errors import Error
from .functional import _window_taps

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_lp_pool1d",
    "adaptive_lp_pool2d", "adaptive_lp_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "adaptive_min_pool1d", "adaptive_min_pool2d", "adaptive_min_pool3d",
    "adaptive_smooth_max_pool1d", "adaptive_smooth_max_pool2d", "adaptive_smooth_max_pool3d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "build", "global_avg_pool", "global_lp_pool",
    "global_max_pool", "global_min_pool", "global_smooth_max_pool", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "min_pool1d", "min_pool2d",
    "min_pool3d", "pool", "smooth_max_pool1d", "smooth_max_pool2d", "smooth_max_pool3d",
]

# ---- Primitives ----------------------------------------------------------------------------------
# Each has its pool as a parameter, by the words of a problem string: "max k3s2p1".


@functools.lru_cache(maxsize=4096)
def _pool(text):
    return _core.Pool.parse(text)


def _primitive(name, compute, describe, native, several=False):
    """A primitive that calls compute(pool, *arrays). describe(pool, x) gives shape and dtype of each result,
    native(pool, dtype of the first result) the number of the pass in jax_native.h, and which operands that
    reads, or None."""
    primitive = Primitive(f"tarn_{name}")
    primitive.multiple_results = several

    def results(x, text):
        return [ShapedArray(*pair) for pair in describe(_pool(text), x)]

    def one_or_all(made):
        return made if several else made[0]

    def abstract(x, *rest, text):
        return one_or_all(results(x, text))

    def run(*operands, text):
        made = compute(_pool(text), *map(numpy.asarray, operands))
        return one_or_all([numpy.asarray(array, kind.dtype) for array, kind in
                           zip(made if several else [made], results(operands[0], text))])

    def call(*operands, text):
        kinds = [jax.ShapeDtypeStruct(kind.shape, kind.dtype) for kind in results(operands[0], text)]
        return jax.pure_callback(functools.partial(run, text=text), one_or_all(kinds), *operands)

    def implement(*operands, text):
        return jax.tree.map(jnp.asarray, run(*operands, text=text))

    def batch(operands, axes, *, text):
        """Pools take any number of leading axes: a batch is one more."""
        size = next(x.shape[a] for x, a in zip(operands, axes) if a is not None)
        front = [jnp.broadcast_to(x, (size, *x.shape)) if a is None else jnp.moveaxis(x, a, 0)
                 for x, a in zip(operands, axes)]
        made = primitive.bind(*front, text=text)
        return made, [0] * len(made) if several else 0

    by_callback = mlir.lower_fun(call, multiple_results=several)

    def lower(ctx, *operands, text):
        found = _has_native(ctx) and native(_pool(text), ctx.avals_out[0].dtype)
        if not found:
            return by_callback(ctx, *operands, text=text)
        number, reads = found
        shorter = ctx.replace(avals_in=[ctx.avals_in[k] for k in reads])
        attributes = {"problem": _problem(text, ctx.avals_in[0]), "pass": numpy.int32(number)}
        return ffi.ffi_lowering(_TARGET)(shorter, *[operands[k] for k in reads], **attributes)

    primitive.def_abstract_eval(abstract)
    primitive.def_impl(implement)
    mlir.register_lowering(primitive, by_callback)
    mlir.register_lowering(primitive, lower, platform="cpu")
    batching.primitive_batchers[primitive] = batch
    return primitive


# ---- The compiled calls --------------------------------------------------------------------------
# jax_native.cpp is a foreign function of XLA for all of the primitives, which under jit takes the place of
# callbacks: the same bits, without a way through Python.

_TARGET = "tarn_pool"


class _Native:
    is_connected = was_registered = was_started = False


def _connect(module):
    if not _Native.was_registered:
        ffi.register_ffi_target(_TARGET, module.connect(_core.jax_core()), platform="cpu")
    _Native.is_connected = _Native.was_registered = True


_native = Compiled("jax_native", jaxlib.__version__, jaxlib.__version__,
                   lambda: ["-std=c++17", f"-I{ffi.include_dir()}"], _connect, "TARN_JAX_NATIVE")


def _disconnect():
    """Has what is compiled from now on make callbacks."""
    _Native.is_connected, _Native.was_started = False, True


def build():
    """Compiles the calls now, and waits for it, where otherwise that is done in the background when a
    function is first compiled for a CPU. Raises OSError with the compiler's words if it cannot be done."""
    _native.build()


def _has_native(ctx):
    """Whether the compiled calls are there, and know such arrays: those that are not empty."""
    if not _Native.was_started and not _Native.is_connected:
        _Native.was_started = True
        _native.start()
    return _Native.is_connected and all(kind.size for kind in (*ctx.avals_in, *ctx.avals_out))


def _problem(text, x):
    dtype = str(x.dtype).replace("float", "f").replace("int", "i").replace("ui", "u")
    return f"{text} {dtype} {'x'.join(map(str, x.shape))}"


def _result(pool, x):
    return [(pool.output_shape(x.shape), x.dtype)]


def _result_and_winners(pool, x):
    shape = pool.output_shape(x.shape)
    return [(shape, x.dtype), (shape, _winners_dtype(pool, x.shape))]


def _winners_dtype(pool, shape):
    """One byte while windows have at most 255 taps; None if four bytes do not count them."""
    taps = math.prod(_window_taps(pool, shape))
    return numpy.dtype("uint8" if taps <= 255 else "int32") if taps < 2**31 else None


def _index(pool, x):
    return [(pool.output_shape(x.shape), jax.dtypes.canonicalize_dtype(numpy.int64))]


def _cotangent(pool, x):
    return [(x.shape, x.dtype)]


def _vjp_from_winners(pool, x, winners, gy):
    strides = tuple(math.prod(x.shape[k + 1:]) for k in range(x.ndim))
    return _core.vjp_saved(pool, (x.shape, strides), winners, gy)


# The passes of jax_native.h. A backward from winners has x as an operand, too, for the derivatives of higher
# order, and does not read it: under jit XLA then does not keep it.
_forward = _primitive("pool", lambda pool, x: pool(x), _result, lambda pool, _: (0, [0]))
_saved = _primitive("pool_saved", lambda pool, x: _core.pool_saved(pool, x, None, None), _result_and_winners,
                    lambda pool, _: (1, [0]), several=True)
_indices = _primitive("pool_indices", lambda pool, x: pool.indices(x), _index,
                      lambda pool, dtype: (2, [0]) if dtype == numpy.int64 else None)
_jvp = _primitive("pool_jvp", lambda pool, x, dx: pool.jvp(x, dx), _result, lambda pool, _: (3, [0, 1]))
_vjp = _primitive("pool_vjp", lambda pool, x, gy: pool.vjp(x, gy), _cotangent,
                  lambda pool, _: (6, [1]) if pool.linear else (4, [0, 1]))
_jvp_saved = _primitive("pool_jvp_saved", lambda pool, x, winners, dx: pool.jvp(x, dx), _result,
                        lambda pool, _: (3, [0, 2]))
_vjp_saved = _primitive("pool_vjp_saved", _vjp_from_winners, _cotangent, lambda pool, _: (5, [1, 2]))

# ---- Derivatives ---------------------------------------------------------------------------------
# _jvp(x, dx) = J(x) dx and _vjp(x, gy) = J(x)' gy are linear in their second argument, and each is the
# transpose of the other. In x, max, min and avg are straight; smooth max, with its weights w = J(x), is
# curved by d w_i / d x_j = beta * w_i * ([i = j] - w_j).


def _curved_jvp(tx, x, dx, *, text):
    """The derivative of J(x) dx in x, in the direction tx."""
    p = _pool(text)
    if p.op == _core.SMOOTH:
        product = _jvp.bind(x, dx, text=text) * _jvp.bind(x, tx, text=text)
        return p.beta * (_jvp.bind(x, dx * tx, text=text) - product)
    return _straight(p, jnp.zeros(p.output_shape(x.shape), x.dtype))


def _curved_vjp(tx, x, gy, *, text):
    """The derivative of J(x)' gy in x, in the direction tx."""
    p = _pool(text)
    if p.op == _core.SMOOTH:
        inner = _vjp.bind(x, gy * _jvp.bind(x, tx, text=text), text=text)
        return p.beta * (tx * _vjp.bind(x, gy, text=text) - inner)
    return _straight(p, jnp.zeros_like(x))


def _straight(pool, zeros):
    if pool.op == _core.LP:
        raise NotImplementedError("second derivatives of Lp pooling")
    return zeros


def _transpose(to):
    """That of a primitive that is linear in its last operand."""
    def transpose(cotangent, *operands, text):
        *others, linear = operands
        if isinstance(cotangent, ad.Zero):
            return *[None] * len(others), ad.Zero(linear.aval)
        return *[None] * len(others), to().bind(*others, cotangent, text=text)

    return transpose


def _forward_jvp(primals, tangents, *, text):
    """Where a backward is possible from winners, they are found with the values."""
    (x,), dx, p = primals, ad.instantiate_zeros(tangents[0]), _pool(text)
    if p.keeps_winners and _winners_dtype(p, x.shape):
        (y, _), (dy, _) = _saved_jvp((x,), (dx,), text=text)
        return y, dy
    return _forward.bind(x, text=text), _jvp.bind(x, dx, text=text)


def _saved_jvp(primals, tangents, *, text):
    (x,), dx = primals, ad.instantiate_zeros(tangents[0])
    y, winners = _saved.bind(x, text=text)
    dy = _jvp_saved.bind(x, winners, dx, text=text)
    return (y, winners), (dy, ad.Zero(ShapedArray(winners.shape, jax.dtypes.float0)))


ad.primitive_jvps[_forward] = _forward_jvp
ad.primitive_jvps[_saved] = _saved_jvp
ad.defjvp(_jvp_saved, None, None,
          lambda tdx, x, winners, dx, *, text: _jvp_saved.bind(x, winners, tdx, text=text))
ad.defjvp(_vjp_saved, None, None,
          lambda tgy, x, winners, gy, *, text: _vjp_saved.bind(x, winners, tgy, text=text))
ad.primitive_transposes[_jvp_saved] = _transpose(lambda: _vjp_saved)
ad.primitive_transposes[_vjp_saved] = _transpose(lambda: _jvp_saved)
ad.defjvp(_jvp, _curved_jvp, lambda tdx, x, dx, *, text: _jvp.bind(x, tdx, text=text))
ad.defjvp(_vjp, _curved_vjp, lambda tgy, x, gy, *, text: _vjp.bind(x, tgy, text=text))
ad.primitive_transposes[_jvp] = _transpose(lambda: _vjp)
ad.primitive_transposes[_vjp] = _transpose(lambda: _jvp)

# ---- Functions -----------------------------------------------------------------------------------


def pool(p, x):
    """A pool object, such as `tarn.MaxPool(3)`, applied to an array of JAX.

    >>> import jax.numpy as jnp, tarn.jax
    >>> tarn.jax.pool(tarn.LpPool((2,), norm_type=2), jnp.array([3.0, -4.0]))
    Array([5.], dtype=float32)
    """
    return _apply(p, jnp.asarray(x))


def _apply(p, x):
    p.explain(x.shape, str(x.dtype))  # Refuses while tracing what would fail in the callback.
    return _forward.bind(x, text=p.text)


def _run(ndim, p, x, return_indices=False):
    x = jnp.asarray(x)
    if x.ndim not in (ndim + 1, ndim + 2):
        raise Error(f"x has rank {x.ndim}, expected {ndim + 1} (channels, then space) or {ndim + 2} "
                    "(batch first)")
    y = _apply(p, x)
    return (y, _indices.bind(jax.lax.stop_gradient(x), text=p.text)) if return_indices else y


def _sliding(op, ndim, x, kernel, stride, padding, dilation, ceil, count=True, divisor=None,
             number=1.0, return_indices=False):
    p = _core.sliding_pool(op, ndim, None, kernel, stride, padding, dilation, ceil, count, divisor,
                           number, None, None, False, None)
    return _run(ndim, p, x, return_indices)


def _adaptive(word, ndim, x, output_size, return_indices=False, number=""):
    x = jnp.asarray(x)
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * ndim
    if len(sizes) != ndim:
        raise Error(f"output_size has {len(sizes)} entries, expected {ndim}")
    sizes = [size if wanted is None else operator.index(wanted)
             for wanted, size in zip(sizes, x.shape[-ndim:])]
    text = f"{word} a{','.join(map(str, sizes))} d{ndim}{number}"
    return _run(ndim, _pool(text), x, return_indices)


def _named(function, name, like):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`tarn.{like}` on an array of JAX."
    return function


def _extreme_function(op, word, ndim):
    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                 return_indices=False):
        return _sliding(op, ndim, input, kernel_size, stride, padding, dilation, ceil_mode,
                        return_indices=return_indices)

    return _named(function, f"{word}_pool{ndim}d", f"{word}_pool{ndim}d")


def _avg_function(ndim):
    def function(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None):
        return _sliding(_core.AVG, ndim, input, kernel_size, stride, padding, 1, ceil_mode,
                        count_include_pad, divisor_override)

    return _named(function, f"avg_pool{ndim}d", f"avg_pool{ndim}d")


def _smooth_function(ndim):
    def function(input, kernel_size, stride=None, padding=0, beta=1.0, dilation=1, ceil_mode=False,
                 count_include_pad=True):
        return _sliding(_core.SMOOTH, ndim, input, kernel_size, stride, padding, dilation, ceil_mode,
                        count_include_pad, number=beta)

    return _named(function, f"smooth_max_pool{ndim}d", f"smooth_max_pool{ndim}d")


def _lp_function(ndim):
    def function(input, norm_type, kernel_size, stride=None, ceil_mode=False, padding=0, dilation=1):
        return _sliding(_core.LP, ndim, input, kernel_size, stride, padding, dilation, ceil_mode,
                        number=norm_type)

    return _named(function, f"lp_pool{ndim}d", f"lp_pool{ndim}d")


def _adaptive_extreme_function(word, ndim):
    def function(input, output_size, return_indices=False):
        return _adaptive(word, ndim, input, output_size, return_indices)

    return _named(function, f"adaptive_{word}_pool{ndim}d", f"adaptive_{word}_pool{ndim}d")


def _adaptive_avg_function(ndim):
    def function(input, output_size):
        return _adaptive("avg", ndim, input, output_size)

    return _named(function, f"adaptive_avg_pool{ndim}d", f"adaptive_avg_pool{ndim}d")


def _adaptive_smooth_function(ndim):
    def function(input, output_size, beta=1.0):
        return _adaptive("smooth", ndim, input, output_size, number=f" beta={beta}")

    return _named(function, f"adaptive_smooth_max_pool{ndim}d", f"adaptive_smooth_max_pool{ndim}d")


def _adaptive_lp_function(ndim):
    def function(input, norm_type, output_size):
        return _adaptive("lp", ndim, input, output_size, number=f" p={norm_type}")

    return _named(function, f"adaptive_lp_pool{ndim}d", f"adaptive_lp_pool{ndim}d")


max_pool1d, max_pool2d, max_pool3d = (_extreme_function(_core.MAX, "max", n) for n in (1, 2, 3))
min_pool1d, min_pool2d, min_pool3d = (_extreme_function(_core.MIN, "min", n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_function, (1, 2, 3))
smooth_max_pool1d, smooth_max_pool2d, smooth_max_pool3d = map(_smooth_function, (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_function, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_extreme_function("max", n) for n in (1, 2, 3))
adaptive_min_pool1d, adaptive_min_pool2d, adaptive_min_pool3d = (
    _adaptive_extreme_function("min", n) for n in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_function, (1, 2, 3))
adaptive_smooth_max_pool1d, adaptive_smooth_max_pool2d, adaptive_smooth_max_pool3d = map(
    _adaptive_smooth_function, (1, 2, 3))
adaptive_lp_pool1d, adaptive_lp_pool2d, adaptive_lp_pool3d = map(_adaptive_lp_function, (1, 2, 3))


def _globally(word, x, ndim, keepdims, tail=""):
    text = f"{word} {'global' if keepdims else 'flat'} d{ndim}{tail}"
    return _apply(_pool(text), jnp.asarray(x))


def global_max_pool(input, ndim=2, keepdims=True, ties="all"):
    """`tarn.global_max_pool` on an array of JAX; its derivative follows the tie rule."""
    return _globally("max", input, ndim, keepdims, f" ties={ties}")


def global_min_pool(input, ndim=2, keepdims=True, ties="all"):
    """`tarn.global_min_pool` on an array of JAX; its derivative follows the tie rule."""
    return _globally("min", input, ndim, keepdims, f" ties={ties}")


def global_avg_pool(input, ndim=2, keepdims=True):
    """`tarn.global_avg_pool` on an array of JAX."""
    return _globally("avg", input, ndim, keepdims)


def global_smooth_max_pool(input, ndim=2, keepdims=True, beta=1.0):
    """`tarn.global_smooth_max_pool` on an array of JAX."""
    return _globally("smooth", input, ndim, keepdims, f" beta={beta}")


def global_lp_pool(input, norm_type=2.0, ndim=2, keepdims=True):
    """`tarn.global_lp_pool` on an array of JAX."""
    return _globally("lp", input, ndim, keepdims, f" p={norm_type}")


_native.load_if_wanted()
