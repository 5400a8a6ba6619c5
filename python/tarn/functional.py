"""Pooling functions with the names, arguments and defaults of ``torch.nn.functional``.

Each takes an array of any library (NumPy, PyTorch on the CPU, JAX on the CPU: whatever has the
buffer protocol or ``__dlpack__``) and returns an array of the same library. The last axes are
pooled; channels come before them and, maybe, a batch before those. ``out`` receives the result
instead of a new array; with ``return_indices`` it is a pair.

The names of dtypes, layouts and tie rules, and what exactly is computed, are in docs/spec.md.
"""

from ._core import AVG, LP, MAX, MIN, MODE, SMOOTH, SUM, get_num_threads, set_num_threads
from ._core import adaptive as _adaptive
from ._core import global_ as _global
from ._core import pad as _pad
from ._core import set_threads_here as _set_threads_here
from ._core import sliding as _sliding
from ._core import unpad as _unpad
from ._core import unpool as _unpool
from .errors import Error

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_lp_pool1d",
    "adaptive_lp_pool2d", "adaptive_lp_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "adaptive_min_pool1d", "adaptive_min_pool2d", "adaptive_min_pool3d",
    "adaptive_mode_pool1d", "adaptive_mode_pool2d", "adaptive_mode_pool3d",
    "adaptive_smooth_max_pool1d", "adaptive_smooth_max_pool2d", "adaptive_smooth_max_pool3d",
    "adaptive_sum_pool1d", "adaptive_sum_pool2d", "adaptive_sum_pool3d", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "get_num_threads", "global_avg_pool", "global_lp_pool",
    "global_max_pool", "global_min_pool", "global_mode_pool", "global_smooth_max_pool",
    "global_sum_pool", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "min_pool1d", "min_pool2d",
    "min_pool3d", "mode_pool1d", "mode_pool2d", "mode_pool3d", "pad", "set_num_threads",
    "smooth_max_pool1d", "smooth_max_pool2d", "smooth_max_pool3d", "sum_pool1d", "sum_pool2d",
    "sum_pool3d", "threads", "unpad",
]

# ---- Max and min ---------------------------------------------------------------------------------


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False, *, skip=None, min_count=None, out=None):
    """The greatest value of each window on the last axis of x, of shape (C, L) or (N, C, L).

    >>> import numpy, tarn
    >>> tarn.max_pool1d(numpy.array([[1.0, 3.0, 2.0, 5.0]]), 2)
    array([[3., 5.]])
    """
    return _sliding(MAX, 1, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, return_indices, out)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False, *, skip=None, min_count=None, out=None):
    """The greatest value of each window on the last two axes of x, (C, H, W) or (N, C, H, W).

    Padding never wins. NaN outranks every number. With ``return_indices`` also the position of each
    winner in the flattened last two axes, as int64; the first one wins a tie.

    >>> import numpy, tarn
    >>> x = numpy.arange(16.0).reshape(1, 4, 4)
    >>> tarn.max_pool2d(x, 2)
    array([[[ 5.,  7.],
            [13., 15.]]])
    >>> values, indices = tarn.max_pool2d(x, 2, return_indices=True)
    >>> indices
    array([[[ 5,  7],
            [13, 15]]])
    """
    return _sliding(MAX, 2, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, return_indices, out)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False, *, skip=None, min_count=None, out=None):
    """The greatest value of each window on the last three axes; as `max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.max_pool3d(numpy.arange(8.0).reshape(1, 2, 2, 2), 2)
    array([[[[7.]]]])
    """
    return _sliding(MAX, 3, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, return_indices, out)


def min_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False, *, skip=None, min_count=None, out=None):
    """The least value of each window; otherwise as `max_pool1d`.

    >>> import numpy, tarn
    >>> tarn.min_pool1d(numpy.array([[1.0, 3.0, 2.0, 5.0]]), 2)
    array([[1., 2.]])
    """
    return _sliding(MIN, 1, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, return_indices, out)


def min_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False, *, skip=None, min_count=None, out=None):
    """The least value of each window; otherwise as `max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.min_pool2d(numpy.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 0.,  2.],
            [ 8., 10.]]])
    """
    return _sliding(MIN, 2, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, return_indices, out)


def min_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False, *, skip=None, min_count=None, out=None):
    """The least value of each window; otherwise as `max_pool3d`.

    >>> import numpy, tarn
    >>> tarn.min_pool3d(numpy.arange(8.0).reshape(1, 2, 2, 2), 2)
    array([[[[0.]]]])
    """
    return _sliding(MIN, 3, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, return_indices, out)


# ---- Average -------------------------------------------------------------------------------------


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None, *, skip=None, min_count=None, out=None):
    """The mean of each window on the last axis; as `avg_pool2d`.

    >>> import numpy, tarn
    >>> tarn.avg_pool1d(numpy.array([[1.0, 3.0, 2.0, 5.0]]), 2)
    array([[2. , 3.5]])
    """
    return _sliding(AVG, 1, input, kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
                    divisor_override, 1.0, skip, min_count, False, out)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None, *, skip=None, min_count=None, out=None):
    """The mean of each window on the last two axes.

    Padding is the number 0; whether it counts in the divisor, ``count_include_pad`` says.
    ``divisor_override`` is the divisor itself. Means of integers are exact, rounded half to even.

    >>> import numpy, tarn
    >>> tarn.avg_pool2d(numpy.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]])

    ``skip`` leaves out NaN, or taps equal to a number, and divides by the number of those that count;
    a window in which fewer than ``min_count`` (1) count has the skipped value. So do max, min, sum.

    >>> tarn.avg_pool2d(numpy.array([[[1.0, numpy.nan], [2.0, 3.0]]]), 2, skip=numpy.nan)
    array([[[2.]]])
    """
    return _sliding(AVG, 2, input, kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
                    divisor_override, 1.0, skip, min_count, False, out)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None, *, skip=None, min_count=None, out=None):
    """The mean of each window on the last three axes; as `avg_pool2d`.

    >>> import numpy, tarn
    >>> tarn.avg_pool3d(numpy.arange(8.0).reshape(1, 2, 2, 2), 2)
    array([[[[3.5]]]])
    """
    return _sliding(AVG, 3, input, kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
                    divisor_override, 1.0, skip, min_count, False, out)


# ---- Sum and mode --------------------------------------------------------------------------------


def sum_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, *, skip=None,
               min_count=None, out=None):
    """The sum of each window on the last axis; as `sum_pool2d`.

    >>> import numpy, tarn
    >>> tarn.sum_pool1d(numpy.array([[1.0, 3.0, 2.0, 5.0]]), 2)
    array([[4., 7.]])
    """
    return _sliding(SUM, 1, input, kernel_size, stride, padding, 1, ceil_mode, True, None, 1.0,
                    skip, min_count, False, out)


def sum_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, *, skip=None,
               min_count=None, out=None):
    """The sum of each window on the last two axes.

    It is `avg_pool2d` with the divisor 1: sums of integers stop at the ends of their dtype. What is
    skipped adds nothing; with ``min_count=0`` a window without anything has the sum 0.

    >>> import numpy, tarn
    >>> tarn.sum_pool2d(numpy.ones((1, 2, 2)), 2)
    array([[[4.]]])
    """
    return _sliding(SUM, 2, input, kernel_size, stride, padding, 1, ceil_mode, True, None, 1.0,
                    skip, min_count, False, out)


def sum_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, *, skip=None,
               min_count=None, out=None):
    """The sum of each window on the last three axes; as `sum_pool2d`.

    >>> import numpy, tarn
    >>> tarn.sum_pool3d(numpy.ones((1, 2, 2, 2)), 2)
    array([[[[8.]]]])
    """
    return _sliding(SUM, 3, input, kernel_size, stride, padding, 1, ceil_mode, True, None, 1.0,
                    skip, min_count, False, out)


def mode_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                skip=None, min_count=None, out=None):
    """The most frequent integer of each window on the last axis, of equals the least; as `mode_pool2d`.

    >>> import numpy, tarn
    >>> tarn.mode_pool1d(numpy.array([[7, 7, 1, 2]]), 2)
    array([[7, 1]])
    """
    return _sliding(MODE, 1, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, False, out)


def mode_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                skip=None, min_count=None, out=None):
    """The most frequent integer of each window on the last two axes, of equals the least.

    Padding does not count, nor does ``skip``, the ignored value, which a window without anything else
    has. There are no derivatives.

    >>> import numpy, tarn
    >>> tarn.mode_pool2d(numpy.array([[[7, 7], [1, 0]]]), 2)
    array([[[7]]])
    >>> tarn.mode_pool2d(numpy.array([[[0, 0], [0, 5]]]), 2, skip=0)
    array([[[5]]])
    """
    return _sliding(MODE, 2, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, False, out)


def mode_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                skip=None, min_count=None, out=None):
    """The most frequent integer of each window on the last three axes, of equals the least; as `mode_pool2d`.

    >>> import numpy, tarn
    >>> tarn.mode_pool3d(numpy.array([[[[7, 7], [1, 0]]]]), (1, 2, 2))
    array([[[[7]]]])
    """
    return _sliding(MODE, 3, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    1.0, skip, min_count, False, out)


# ---- Smooth max ----------------------------------------------------------------------------------


def smooth_max_pool1d(input, kernel_size, stride=None, padding=0, beta=1.0, dilation=1,
                      ceil_mode=False, count_include_pad=True, *, out=None):
    """The smooth maximum of each window on the last axis; as `smooth_max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.smooth_max_pool1d(numpy.array([[0.0, 0.0]]), 2).round(6)
    array([[0.693147]])
    """
    return _sliding(SMOOTH, 1, input, kernel_size, stride, padding, dilation, ceil_mode,
                    count_include_pad, None, beta, None, None, False, out)


def smooth_max_pool2d(input, kernel_size, stride=None, padding=0, beta=1.0, dilation=1,
                      ceil_mode=False, count_include_pad=True, *, out=None):
    """``log(sum(exp(beta*x)))/beta`` over each window on the last two axes.

    It lies between the maximum and the maximum plus ``log(n)/beta``, and tends to the maximum as
    beta grows; a negative beta gives the smooth minimum. Padding is the number 0, or takes no
    part without ``count_include_pad``. Nothing overflows on the way.

    >>> import numpy, tarn
    >>> x = numpy.array([[[1.0, 2.0], [3.0, 4.0]]])
    >>> float(tarn.smooth_max_pool2d(x, 2, beta=10.0)[0, 0, 0].round(6))
    4.000005
    """
    return _sliding(SMOOTH, 2, input, kernel_size, stride, padding, dilation, ceil_mode,
                    count_include_pad, None, beta, None, None, False, out)


def smooth_max_pool3d(input, kernel_size, stride=None, padding=0, beta=1.0, dilation=1,
                      ceil_mode=False, count_include_pad=True, *, out=None):
    """The smooth maximum of each window on the last three axes; as `smooth_max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.smooth_max_pool3d(numpy.zeros((1, 1, 1, 2)), (1, 1, 2)).round(6)
    array([[[[0.693147]]]])
    """
    return _sliding(SMOOTH, 3, input, kernel_size, stride, padding, dilation, ceil_mode,
                    count_include_pad, None, beta, None, None, False, out)


# ---- Lp ------------------------------------------------------------------------------------------


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False, padding=0, dilation=1, *,
              out=None):
    """The p-norm of each window on the last axis; as `lp_pool2d`.

    >>> import numpy, tarn
    >>> tarn.lp_pool1d(numpy.array([[3.0, -4.0, 5.0, 12.0]]), 2, 2)
    array([[ 5., 13.]])
    """
    return _sliding(LP, 1, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    norm_type, None, None, False, out)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False, padding=0, dilation=1, *,
              out=None):
    """``sum(|x|**p)**(1/p)`` over each window on the last two axes, p being ``norm_type``, at least 1.

    Magnitudes are summed, as ONNX's LpPool does and PyTorch's ``lp_pool2d`` does not; padding adds
    nothing. Nothing overflows on the way.

    >>> import numpy, tarn
    >>> x = numpy.array([[[1.0, -2.0], [3.0, -4.0]]])
    >>> tarn.lp_pool2d(x, 1, 2)
    array([[[10.]]])
    """
    return _sliding(LP, 2, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    norm_type, None, None, False, out)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False, padding=0, dilation=1, *,
              out=None):
    """The p-norm of each window on the last three axes; as `lp_pool2d`.

    >>> import numpy, tarn
    >>> tarn.lp_pool3d(numpy.ones((1, 1, 2, 2)), 2, (1, 2, 2))
    array([[[[2.]]]])
    """
    return _sliding(LP, 3, input, kernel_size, stride, padding, dilation, ceil_mode, True, None,
                    norm_type, None, None, False, out)


# ---- Adaptive and global -------------------------------------------------------------------------


def adaptive_max_pool1d(input, output_size, return_indices=False, *, skip=None,
                        min_count=None, out=None):
    """The greatest value of each of ``output_size`` windows that share the last axis evenly.

    >>> import numpy, tarn
    >>> tarn.adaptive_max_pool1d(numpy.array([[1.0, 3.0, 2.0, 5.0, 4.0]]), 2)
    array([[3., 5.]])
    """
    return _adaptive(MAX, 1, input, output_size, 1.0, skip, min_count, return_indices, out)


def adaptive_max_pool2d(input, output_size, return_indices=False, *, skip=None,
                        min_count=None, out=None):
    """As `adaptive_max_pool1d`, on two axes; None keeps the size of an axis.

    >>> import numpy, tarn
    >>> tarn.adaptive_max_pool2d(numpy.arange(16.0).reshape(1, 4, 4), (2, None))
    array([[[ 4.,  5.,  6.,  7.],
            [12., 13., 14., 15.]]])
    """
    return _adaptive(MAX, 2, input, output_size, 1.0, skip, min_count, return_indices, out)


def adaptive_max_pool3d(input, output_size, return_indices=False, *, skip=None,
                        min_count=None, out=None):
    """As `adaptive_max_pool2d`, on three axes.

    >>> import numpy, tarn
    >>> tarn.adaptive_max_pool3d(numpy.arange(8.0).reshape(1, 2, 2, 2), 1)
    array([[[[7.]]]])
    """
    return _adaptive(MAX, 3, input, output_size, 1.0, skip, min_count, return_indices, out)


def adaptive_avg_pool1d(input, output_size, *, skip=None, min_count=None, out=None):
    """The mean of each of ``output_size`` windows that share the last axis evenly.

    >>> import numpy, tarn
    >>> tarn.adaptive_avg_pool1d(numpy.array([[1.0, 3.0, 2.0, 6.0]]), 2)
    array([[2., 4.]])
    """
    return _adaptive(AVG, 1, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_avg_pool2d(input, output_size, *, skip=None, min_count=None, out=None):
    """As `adaptive_avg_pool1d`, on two axes; None keeps the size of an axis.

    >>> import numpy, tarn
    >>> tarn.adaptive_avg_pool2d(numpy.arange(16.0).reshape(1, 4, 4), 1)
    array([[[7.5]]])
    """
    return _adaptive(AVG, 2, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_avg_pool3d(input, output_size, *, skip=None, min_count=None, out=None):
    """As `adaptive_avg_pool2d`, on three axes.

    >>> import numpy, tarn
    >>> tarn.adaptive_avg_pool3d(numpy.arange(8.0).reshape(1, 2, 2, 2), 1)
    array([[[[3.5]]]])
    """
    return _adaptive(AVG, 3, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_min_pool1d(input, output_size, return_indices=False, *, skip=None,
                        min_count=None, out=None):
    """The least value of windows that share the last axis evenly; as `adaptive_max_pool1d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_min_pool1d(numpy.arange(4.0).reshape(1, 4), 2)
    array([[0., 2.]])
    """
    return _adaptive(MIN, 1, input, output_size, 1.0, skip, min_count, return_indices, out)


def adaptive_min_pool2d(input, output_size, return_indices=False, *, skip=None,
                        min_count=None, out=None):
    """The least value of windows that share the last two axes evenly; as `adaptive_max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_min_pool2d(numpy.arange(4.0).reshape(1, 1, 4), (1, 2))
    array([[[0., 2.]]])
    """
    return _adaptive(MIN, 2, input, output_size, 1.0, skip, min_count, return_indices, out)


def adaptive_min_pool3d(input, output_size, return_indices=False, *, skip=None,
                        min_count=None, out=None):
    """The least value of windows that share the last three axes evenly; as `adaptive_max_pool3d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_min_pool3d(numpy.arange(4.0).reshape(1, 1, 1, 4), (1, 1, 2))
    array([[[[0., 2.]]]])
    """
    return _adaptive(MIN, 3, input, output_size, 1.0, skip, min_count, return_indices, out)


def adaptive_smooth_max_pool1d(input, output_size, beta=1.0, *, out=None):
    """The smooth maximum of windows that share the last axis evenly; as `adaptive_max_pool1d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_smooth_max_pool1d(numpy.arange(4.0).reshape(1, 4), 2).round(6)
    array([[1.313262, 3.313262]])
    """
    return _adaptive(SMOOTH, 1, input, output_size, beta, None, None, False, out)


def adaptive_smooth_max_pool2d(input, output_size, beta=1.0, *, out=None):
    """The smooth maximum of windows that share the last two axes evenly; as `adaptive_max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_smooth_max_pool2d(numpy.arange(4.0).reshape(1, 1, 4), (1, 2)).round(6)
    array([[[1.313262, 3.313262]]])
    """
    return _adaptive(SMOOTH, 2, input, output_size, beta, None, None, False, out)


def adaptive_smooth_max_pool3d(input, output_size, beta=1.0, *, out=None):
    """The smooth maximum of windows that share the last three axes evenly; as `adaptive_max_pool3d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_smooth_max_pool3d(numpy.arange(4.0).reshape(1, 1, 1, 4), (1, 1, 2)).round(6)
    array([[[[1.313262, 3.313262]]]])
    """
    return _adaptive(SMOOTH, 3, input, output_size, beta, None, None, False, out)


def adaptive_sum_pool1d(input, output_size, *, skip=None, min_count=None, out=None):
    """The sum of each of ``output_size`` windows on an axis; as `sum_pool1d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_sum_pool1d(numpy.ones((1, 4)), 1)
    array([[4.]])
    """
    return _adaptive(SUM, 1, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_sum_pool2d(input, output_size, *, skip=None, min_count=None, out=None):
    """The sum of each of ``output_size`` windows on an axis; as `sum_pool2d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_sum_pool2d(numpy.ones((1, 2, 2)), 1)
    array([[[4.]]])
    """
    return _adaptive(SUM, 2, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_sum_pool3d(input, output_size, *, skip=None, min_count=None, out=None):
    """The sum of each of ``output_size`` windows on an axis; as `sum_pool3d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_sum_pool3d(numpy.ones((1, 2, 1, 2)), 1)
    array([[[[4.]]]])
    """
    return _adaptive(SUM, 3, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_mode_pool1d(input, output_size, *, skip=None, min_count=None, out=None):
    """The mode of each of ``output_size`` windows on an axis; as `mode_pool1d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_mode_pool1d(numpy.ones((1, 4), int), 1)
    array([[1]])
    """
    return _adaptive(MODE, 1, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_mode_pool2d(input, output_size, *, skip=None, min_count=None, out=None):
    """The mode of each of ``output_size`` windows on an axis; as `mode_pool2d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_mode_pool2d(numpy.ones((1, 2, 2), int), 1)
    array([[[1]]])
    """
    return _adaptive(MODE, 2, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_mode_pool3d(input, output_size, *, skip=None, min_count=None, out=None):
    """The mode of each of ``output_size`` windows on an axis; as `mode_pool3d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_mode_pool3d(numpy.ones((1, 2, 1, 2), int), 1)
    array([[[[1]]]])
    """
    return _adaptive(MODE, 3, input, output_size, 1.0, skip, min_count, False, out)


def adaptive_lp_pool1d(input, norm_type, output_size, *, out=None):
    """The p-norm of windows that share the last axis evenly; as `adaptive_max_pool1d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_lp_pool1d(numpy.ones((1, 4)), 2, 1)
    array([[2.]])
    """
    return _adaptive(LP, 1, input, output_size, norm_type, None, None, False, out)


def adaptive_lp_pool2d(input, norm_type, output_size, *, out=None):
    """The p-norm of windows that share the last two axes evenly; as `adaptive_max_pool2d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_lp_pool2d(numpy.ones((1, 1, 4)), 2, 1)
    array([[[2.]]])
    """
    return _adaptive(LP, 2, input, output_size, norm_type, None, None, False, out)


def adaptive_lp_pool3d(input, norm_type, output_size, *, out=None):
    """The p-norm of windows that share the last three axes evenly; as `adaptive_max_pool3d`.

    >>> import numpy, tarn
    >>> tarn.adaptive_lp_pool3d(numpy.ones((1, 1, 1, 4)), 2, 1)
    array([[[[2.]]]])
    """
    return _adaptive(LP, 3, input, output_size, norm_type, None, None, False, out)


def global_max_pool(input, ndim=2, keepdims=True, ties="all", *, skip=None,
                    min_count=None, out=None):
    """The greatest value over the last ``ndim`` axes, which keep size 1 or are dropped.

    ``ties`` says who receives the derivative, for those who ask `GlobalMaxPool` for one.

    >>> import numpy, tarn
    >>> tarn.global_max_pool(numpy.arange(8.0).reshape(2, 2, 2), keepdims=False)
    array([3., 7.])
    """
    return _global(MAX, ndim, input, keepdims, ties, 1.0, skip, min_count, out)


def global_avg_pool(input, ndim=2, keepdims=True, *, skip=None, min_count=None, out=None):
    """The mean over the last ``ndim`` axes, which keep size 1 or are dropped.

    >>> import numpy, tarn
    >>> tarn.global_avg_pool(numpy.arange(8.0).reshape(2, 2, 2), keepdims=False)
    array([1.5, 5.5])
    """
    return _global(AVG, ndim, input, keepdims, "first", 1.0, skip, min_count, out)


def global_min_pool(input, ndim=2, keepdims=True, ties="all", *, skip=None,
                    min_count=None, out=None):
    """The least value over the last ``ndim`` axes; otherwise as `global_max_pool`.

    >>> import numpy, tarn
    >>> tarn.global_min_pool(numpy.arange(8.0).reshape(2, 2, 2), keepdims=False)
    array([0., 4.])
    """
    return _global(MIN, ndim, input, keepdims, ties, 1.0, skip, min_count, out)


def global_sum_pool(input, ndim=2, keepdims=True, *, skip=None, min_count=None, out=None):
    """The sum over the last ``ndim`` axes; as `sum_pool2d`.

    >>> import numpy, tarn
    >>> tarn.global_sum_pool(numpy.array([[1.0, 2.0]]))
    array([[3.]])
    """
    return _global(SUM, ndim, input, keepdims, "first", 1.0, skip, min_count, out)


def global_mode_pool(input, ndim=2, keepdims=True, *, skip=None, min_count=None, out=None):
    """The mode over the last ``ndim`` axes; as `mode_pool2d`.

    >>> import numpy, tarn
    >>> tarn.global_mode_pool(numpy.array([[4, 2, 2]]))
    array([[2]])
    """
    return _global(MODE, ndim, input, keepdims, "first", 1.0, skip, min_count, out)


def global_smooth_max_pool(input, ndim=2, keepdims=True, beta=1.0, *, out=None):
    """The smooth maximum over the last ``ndim`` axes, which keep size 1 or are dropped.

    >>> import numpy, tarn
    >>> tarn.global_smooth_max_pool(numpy.zeros((1, 2)), 1).round(6)
    array([[0.693147]])
    """
    return _global(SMOOTH, ndim, input, keepdims, "first", beta, None, None, out)


def global_lp_pool(input, norm_type=2.0, ndim=2, keepdims=True, *, out=None):
    """The p-norm over the last ``ndim`` axes, which keep size 1 or are dropped.

    >>> import numpy, tarn
    >>> tarn.global_lp_pool(numpy.array([[3.0, -4.0]]), 2, 1)
    array([[5.]])
    """
    return _global(LP, ndim, input, keepdims, "first", norm_type, None, None, out)


# ---- Unpool, pad, unpad --------------------------------------------------------------------------


def _per_axis(value, ndim, name):
    values = (value,) * ndim if isinstance(value, int) else tuple(value)
    if len(values) != ndim:
        raise Error(f"{name} has {len(values)} entries, expected {ndim}")
    return values


def _axis_taps(pool, axis, size):
    """How many taps the largest window of an axis has."""
    if pool.window == "sliding":
        return axis[0]
    if pool.window == "global":
        return size
    rest = size % axis[-1]
    return size // axis[-1] + (2 if rest > 1 else rest)


def _window_taps(pool, shape):
    """The same for each axis of a pool."""
    sizes = shape[len(shape) - len(pool.axes):]
    return [_axis_taps(pool, *pair) for pair in zip(pool.axes, sizes)]


def _unpooled_sizes(ndim, shape, kernel_size, stride, padding, output_size):
    """The sizes that pooling with these arguments came from; ``output_size`` may choose another."""
    if len(shape) not in (ndim + 1, ndim + 2):
        raise Error(f"input has rank {len(shape)}, expected {ndim + 1} or {ndim + 2}")
    kernel = _per_axis(kernel_size, ndim, "kernel_size")
    step = kernel if stride is None else _per_axis(stride, ndim, "stride")
    around = _per_axis(padding, ndim, "padding")
    sizes = tuple((n - 1) * s + k - 2 * p
                  for n, k, s, p in zip(shape[-ndim:], kernel, step, around, strict=True))
    if output_size is None:
        return sizes
    chosen = tuple(output_size)
    if len(chosen) == len(shape):
        chosen = chosen[-ndim:]
    if len(chosen) != ndim:
        raise Error(f"output_size has {len(chosen)} entries, expected {ndim} or {len(shape)}")
    for size, natural, s in zip(chosen, sizes, step):
        if not natural - s < size < natural + s:
            raise Error(f"output_size {chosen} is not within a stride of {sizes}")
    return chosen


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None, *,
                 out=None):
    """Zeros with each value of x at its index: the partial inverse of `max_pool1d`.

    >>> import numpy, tarn
    >>> y, where = tarn.max_pool1d(numpy.array([[1.0, 3.0, 2.0, 5.0]]), 2, return_indices=True)
    >>> tarn.max_unpool1d(y, where, 2)
    array([[0., 3., 0., 5.]])
    """
    sizes = _unpooled_sizes(1, input.shape, kernel_size, stride, padding, output_size)
    return _unpool(1, input, indices, sizes, out)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None, *,
                 out=None):
    """Zeros with each value of x at its index: the partial inverse of `max_pool2d`.

    ``output_size`` chooses among the sizes that pool to that of x. An index outside is an error.

    >>> import numpy, tarn
    >>> x = numpy.arange(4.0).reshape(1, 2, 2)
    >>> y, where = tarn.max_pool2d(x, 2, return_indices=True)
    >>> tarn.max_unpool2d(y, where, 2)
    array([[[0., 0.],
            [0., 3.]]])
    """
    sizes = _unpooled_sizes(2, input.shape, kernel_size, stride, padding, output_size)
    return _unpool(2, input, indices, sizes, out)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None, *,
                 out=None):
    """Zeros with each value of x at its index; as `max_unpool2d`.

    >>> import numpy, tarn
    >>> x = numpy.arange(8.0).reshape(1, 2, 2, 2)
    >>> y, where = tarn.max_pool3d(x, 2, return_indices=True)
    >>> float(tarn.max_unpool3d(y, where, 2).sum())
    7.0
    """
    sizes = _unpooled_sizes(3, input.shape, kernel_size, stride, padding, output_size)
    return _unpool(3, input, indices, sizes, out)


def pad(input, pad, *, out=None):
    """Zeros around the last axes: pairs (before, behind), the last axis first, as F.pad has them.

    >>> import numpy, tarn
    >>> tarn.pad(numpy.array([[1.0, 2.0]]), (1, 0, 0, 1))
    array([[0., 1., 2.],
           [0., 0., 0.]])
    """
    return _pad(input, pad, out)


def unpad(input, pad, *, out=None):
    """Crops what `pad` with the same numbers puts around.

    >>> import numpy, tarn
    >>> tarn.unpad(numpy.array([[0.0, 1.0, 2.0]]), (1, 0))
    array([[1., 2.]])
    """
    return _unpad(input, pad, out)


# ---- Threads -------------------------------------------------------------------------------------


class threads:
    """A context in which calls of this Python thread use up to n threads.

    The results do not depend on it, not in one bit.

    >>> import tarn
    >>> with tarn.threads(2):
    ...     tarn.get_num_threads()
    2
    """

    def __init__(self, n):
        if n < 1:
            raise ValueError(f"{n} threads are not in 1..4096")
        self._n = n
        self._former = []

    def __enter__(self):
        self._former.append(_set_threads_here(self._n))
        return self

    def __exit__(self, *unused):
        _set_threads_here(self._former.pop())
