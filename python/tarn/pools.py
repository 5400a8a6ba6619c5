"""Pools as objects, for any number of spatial axes, with derivatives both ways."""

import functools

from ._core import ADAPTIVE, AVG, GLOBAL, LP, MAX, MIN, MODE, SLIDING, SMOOTH, SUM, Pool

__all__ = ["AdaptiveAvgPool", "AdaptiveLpPool", "AdaptiveMaxPool", "AdaptiveMinPool",
           "AdaptiveModePool", "AdaptiveSmoothMaxPool", "AdaptiveSumPool", "AvgPool",
           "GlobalAvgPool", "GlobalLpPool", "GlobalMaxPool", "GlobalMinPool", "GlobalModePool",
           "GlobalSmoothMaxPool", "GlobalSumPool", "LpPool", "MaxPool", "MinPool", "ModePool",
           "Pool", "SmoothMaxPool", "SumPool"]


def _ndim(numbers, ndim):
    """How many axes are pooled: as many as numbers are given, or ``ndim`` if it is one for all."""
    count = None if isinstance(numbers, int) else len(numbers)
    if count is None:
        return 2 if ndim is None else ndim
    if ndim is not None and count not in (1, ndim):
        raise ValueError(f"{count} numbers for {ndim} axes")
    return count if ndim is None else ndim


def _sliding(cls, op, kernel, stride, padding, dilation, ceil, ties="first", ndim=None, count=True,
             divisor=None, number=1.0, skip=None, min_count=None):
    if divisor is not None and divisor < 1:
        raise ValueError(f"divisor is {divisor}, not positive")
    return Pool.__new__(cls, op, SLIDING, _ndim(kernel, ndim), kernel, stride, padding, dilation, 1,
                        ceil, count, divisor or 0, number, ties, False, skip, min_count)


def _adaptive(cls, op, output_size, ties, ndim, number=1.0, skip=None, min_count=None):
    return Pool.__new__(cls, op, ADAPTIVE, _ndim(output_size, ndim), 1, 1, 0, 1, output_size, False,
                        True, 0, number, ties, False, skip, min_count)


def _global(cls, op, ndim, keepdims, ties, number=1.0, skip=None, min_count=None):
    return Pool.__new__(cls, op, GLOBAL, ndim, 1, 1, 0, 1, 1, False, True, 0, number, ties,
                        not keepdims, skip, min_count)


_OLD_NAMES = {"kernel": "kernel_size", "ceil": "ceil_mode", "divisor": "divisor_override",
              "p": "norm_type"}


def _with_old_names(new):
    """Takes the names that arguments had before they were PyTorch's; until 1.0."""

    @functools.wraps(new)
    def wrapped(cls, *args, **kwargs):
        for old, name in _OLD_NAMES.items():
            if old in kwargs and name not in kwargs:
                kwargs[name] = kwargs.pop(old)
        return new(cls, *args, **kwargs)

    return wrapped


class MaxPool(Pool):
    """The greatest value of each window.

    ``kernel_size``, ``stride`` (the kernel unless given) and ``dilation`` are a number for every axis
    or a tuple with one for each; there are as many spatial axes as numbers, or ``ndim``, or two.
    ``padding`` may also have pairs (before, behind). ``ties`` says who receives the derivative when
    several taps reach the maximum: "first", "all" or "split". ``skip``, NaN or a number, says which
    taps do not count; a window in which fewer than ``min_count`` (1) do has the skipped value.

    >>> import numpy, tarn
    >>> p = tarn.MaxPool((2, 2))
    >>> x = numpy.array([[5.0, 9.0], [7.0, 1.0]])
    >>> p(x)
    array([[9.]])
    >>> p.indices(x)
    array([[1]])
    >>> p.jvp(x, numpy.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[2.]])
    >>> p.vjp(x, numpy.array([[10.0]]))
    array([[ 0., 10.],
           [ 0.,  0.]])
    >>> p.output_shape((64, 32, 32))
    (64, 16, 16)
    >>> p
    tarn.MaxPool.parse('max k2s2')
    """

    __slots__ = ()

    @_with_old_names
    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                ties="first", *, ndim=None, skip=None, min_count=None):
        return _sliding(cls, MAX, kernel_size, stride, padding, dilation, ceil_mode, ties, ndim,
                        skip=skip, min_count=min_count)


class MinPool(Pool):
    """The least value of each window; otherwise as `MaxPool`.

    >>> import numpy, tarn
    >>> tarn.MinPool(2)(numpy.array([[5.0, 9.0], [7.0, 1.0]]))
    array([[1.]])
    """

    __slots__ = ()

    @_with_old_names
    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                ties="first", *, ndim=None, skip=None, min_count=None):
        return _sliding(cls, MIN, kernel_size, stride, padding, dilation, ceil_mode, ties, ndim,
                        skip=skip, min_count=min_count)


class AvgPool(Pool):
    """The mean of each window; arguments as `MaxPool`, ``count_include_pad`` and
    ``divisor_override``.

    >>> import numpy, tarn
    >>> tarn.AvgPool(3, stride=1, padding=1, count_include_pad=False)(numpy.ones((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """

    __slots__ = ()

    @_with_old_names
    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                count_include_pad=True, divisor_override=None, *, ndim=None, skip=None, min_count=None):
        return _sliding(cls, AVG, kernel_size, stride, padding, dilation, ceil_mode, ndim=ndim,
                        count=count_include_pad, divisor=divisor_override,
                        skip=skip, min_count=min_count)


class SumPool(Pool):
    """The sum of each window: the mean with divisor 1; arguments as `MaxPool`, without ``ties``.

    >>> import numpy, tarn
    >>> tarn.SumPool((2,), skip=numpy.nan)(numpy.array([1.0, 2.0, numpy.nan, 4.0]))
    array([3., 4.])
    """

    __slots__ = ()

    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                ndim=None, skip=None, min_count=None):
        return _sliding(cls, SUM, kernel_size, stride, padding, dilation, ceil_mode, ndim=ndim,
                        skip=skip, min_count=min_count)


class ModePool(Pool):
    """The most frequent integer of each window, of equals the least; arguments as `MaxPool`, without
    ``ties``. ``skip`` is the ignored value.

    >>> import numpy, tarn
    >>> tarn.ModePool((4,), skip=0)(numpy.array([0, 0, 3, 3, 0, 0, 0, 0]))
    array([3, 0])
    """

    __slots__ = ()

    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                ndim=None, skip=None, min_count=None):
        return _sliding(cls, MODE, kernel_size, stride, padding, dilation, ceil_mode, ndim=ndim,
                        skip=skip, min_count=min_count)


class SmoothMaxPool(Pool):
    """``log(sum(exp(beta*x)))/beta`` over each window; arguments as `MaxPool` and ``beta``.

    >>> import numpy, tarn
    >>> p = tarn.SmoothMaxPool((2,), beta=1.0)
    >>> p.vjp(numpy.array([1.0, 1.0]), numpy.array([1.0]))
    array([0.5, 0.5])
    """

    __slots__ = ()

    @_with_old_names
    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, beta=1.0,
                count_include_pad=True, *, ndim=None):
        return _sliding(cls, SMOOTH, kernel_size, stride, padding, dilation, ceil_mode, ndim=ndim,
                        count=count_include_pad, number=beta)


class LpPool(Pool):
    """``sum(|x|**p)**(1/p)`` over each window; arguments as `MaxPool` and ``norm_type``, p,
    at least 1.

    >>> import numpy, tarn
    >>> p = tarn.LpPool((2,), norm_type=2)
    >>> x = numpy.array([3.0, -4.0])
    >>> p(x)
    array([5.])
    >>> p.vjp(x, numpy.array([10.0])).round(6)
    array([ 6., -8.])
    """

    __slots__ = ()

    @_with_old_names
    def __new__(cls, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                norm_type=2.0, *, ndim=None):
        return _sliding(cls, LP, kernel_size, stride, padding, dilation, ceil_mode, ndim=ndim,
                        number=norm_type)


class AdaptiveMaxPool(Pool):
    """The greatest value of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveMaxPool((2,))(numpy.array([1.0, 3.0, 2.0, 5.0, 4.0]))
    array([3., 5.])
    """

    __slots__ = ()

    def __new__(cls, output_size, ties="first", *, ndim=None, skip=None, min_count=None):
        return _adaptive(cls, MAX, output_size, ties, ndim,
                         skip=skip, min_count=min_count)


class AdaptiveAvgPool(Pool):
    """The mean of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveAvgPool((2,))(numpy.array([1.0, 3.0, 2.0, 6.0]))
    array([2., 4.])
    """

    __slots__ = ()

    def __new__(cls, output_size, *, ndim=None, skip=None, min_count=None):
        return _adaptive(cls, AVG, output_size, "first", ndim,
                         skip=skip, min_count=min_count)


class AdaptiveMinPool(Pool):
    """The least value of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveMinPool((2,))(numpy.array([1.0, 3.0, 2.0, 5.0]))
    array([1., 2.])
    """

    __slots__ = ()

    def __new__(cls, output_size, ties="first", *, ndim=None, skip=None, min_count=None):
        return _adaptive(cls, MIN, output_size, ties, ndim,
                         skip=skip, min_count=min_count)


class AdaptiveSumPool(Pool):
    """The sum of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveSumPool((2,))(numpy.array([1.0, 3.0, 2.0, 5.0]))
    array([4., 7.])
    """

    __slots__ = ()

    def __new__(cls, output_size, *, ndim=None, skip=None, min_count=None):
        return _adaptive(cls, SUM, output_size, "first", ndim, skip=skip, min_count=min_count)


class AdaptiveModePool(Pool):
    """The most frequent integer of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveModePool((2,))(numpy.array([1, 1, 2, 5, 5, 4]))
    array([1, 5])
    """

    __slots__ = ()

    def __new__(cls, output_size, *, ndim=None, skip=None, min_count=None):
        return _adaptive(cls, MODE, output_size, "first", ndim, skip=skip, min_count=min_count)


class AdaptiveSmoothMaxPool(Pool):
    """The smooth maximum of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveSmoothMaxPool((1,))(numpy.zeros(2)).round(6)
    array([0.693147])
    """

    __slots__ = ()

    def __new__(cls, output_size, beta=1.0, *, ndim=None):
        return _adaptive(cls, SMOOTH, output_size, "first", ndim, beta)


class AdaptiveLpPool(Pool):
    """The p-norm of each of ``output_size`` windows that share an axis evenly.

    >>> import numpy, tarn
    >>> tarn.AdaptiveLpPool((1,))(numpy.array([3.0, -4.0]))
    array([5.])
    """

    __slots__ = ()

    def __new__(cls, output_size, norm_type=2.0, *, ndim=None):
        return _adaptive(cls, LP, output_size, "first", ndim, norm_type)


class GlobalMaxPool(Pool):
    """The greatest value over the last ``ndim`` axes. Ties: every cell that reaches it.

    >>> import numpy, tarn
    >>> p = tarn.GlobalMaxPool(ndim=1)
    >>> p.vjp(numpy.array([2.0, 2.0]), numpy.array([1.0]))
    array([1., 1.])
    """

    __slots__ = ()

    def __new__(cls, ndim=2, keepdims=True, ties="all", *, skip=None, min_count=None):
        return _global(cls, MAX, ndim, keepdims, ties, skip=skip,
                       min_count=min_count)


class GlobalMinPool(Pool):
    """The least value over the last ``ndim`` axes. Ties: every cell that reaches it.

    >>> import numpy, tarn
    >>> tarn.GlobalMinPool(ndim=1)(numpy.array([2.0, 1.0]))
    array([1.])
    """

    __slots__ = ()

    def __new__(cls, ndim=2, keepdims=True, ties="all", *, skip=None, min_count=None):
        return _global(cls, MIN, ndim, keepdims, ties, skip=skip,
                       min_count=min_count)


class GlobalSumPool(Pool):
    """The sum over the last ``ndim`` axes.

    >>> import numpy, tarn
    >>> tarn.GlobalSumPool(ndim=1)(numpy.array([2.0, 1.0]))
    array([3.])
    """

    __slots__ = ()

    def __new__(cls, ndim=2, keepdims=True, *, skip=None, min_count=None):
        return _global(cls, SUM, ndim, keepdims, "first", skip=skip, min_count=min_count)


class GlobalModePool(Pool):
    """The most frequent integer over the last ``ndim`` axes.

    >>> import numpy, tarn
    >>> tarn.GlobalModePool(ndim=1)(numpy.array([2, 1, 2]))
    array([2])
    """

    __slots__ = ()

    def __new__(cls, ndim=2, keepdims=True, *, skip=None, min_count=None):
        return _global(cls, MODE, ndim, keepdims, "first", skip=skip, min_count=min_count)


class GlobalSmoothMaxPool(Pool):
    """The smooth maximum over the last ``ndim`` axes.

    >>> import numpy, tarn
    >>> tarn.GlobalSmoothMaxPool(ndim=1)(numpy.zeros(2)).round(6)
    array([0.693147])
    """

    __slots__ = ()

    def __new__(cls, ndim=2, keepdims=True, beta=1.0):
        return _global(cls, SMOOTH, ndim, keepdims, "first", beta)


class GlobalAvgPool(Pool):
    """The mean over the last ``ndim`` axes.

    >>> import numpy, tarn
    >>> tarn.GlobalAvgPool(ndim=1, keepdims=False)(numpy.array([1.0, 2.0]))
    array(1.5)
    """

    __slots__ = ()

    def __new__(cls, ndim=2, keepdims=True, *, skip=None, min_count=None):
        return _global(cls, AVG, ndim, keepdims, "first", skip=skip,
                       min_count=min_count)


class GlobalLpPool(Pool):
    """The p-norm over the last ``ndim`` axes.

    >>> import numpy, tarn
    >>> tarn.GlobalLpPool(ndim=1, keepdims=False)(numpy.array([3.0, -4.0]))
    array(5.)
    """

    __slots__ = ()

    @_with_old_names
    def __new__(cls, ndim=2, keepdims=True, norm_type=2.0):
        return _global(cls, LP, ndim, keepdims, "first", norm_type)
