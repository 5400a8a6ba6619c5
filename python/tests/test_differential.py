"""tarn against PyTorch 2.13: values, indices, gradients and errors of random calls.

Every case is made from a number, so that a failure can be made again: the message has the number and
the call. `check_*` functions assert the intended differences, which docs/migration.md lists under
the same names; at the end each of them must have been met.
"""

import collections
import itertools
import math
import re

import numpy
import pytest
import torch
import torch.nn.functional as F

import tarn
import tarn.torch

torch.set_num_threads(1)

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
EPSILON = {torch.float64: 2e-15, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}

Case = collections.namedtuple("Case", "kind ndim x kwargs indices")


# ---- Making cases --------------------------------------------------------------------------------


def random_shape(rng, ndim):
    most = {1: 12, 2: 9, 3: 6}[ndim]
    lead = [int(rng.integers(1, 4)) for _ in range(rng.integers(1, 3))]
    shape = lead + [int(rng.integers(1, most + 1)) for _ in range(ndim)]
    if rng.random() < 0.02:
        shape[rng.integers(len(shape))] = 0
    if rng.random() < 0.01:
        shape = shape[1:] if rng.random() < 0.5 else [1, 1, *shape]
    return shape


def random_values(rng, shape, dtype):
    if dtype in INTEGERS:
        return torch.from_numpy(rng.integers(0 if dtype == torch.uint8 else -9, 9, shape)).to(dtype)
    style = rng.integers(5)
    values = rng.standard_normal(shape)
    if style == 0:
        values = numpy.rint(values)  # ties
    if style == 1:
        values[rng.random(shape) < 0.1] = numpy.nan
    if style == 2:
        values[rng.random(shape) < 0.2] = numpy.inf
        values[rng.random(shape) < 0.3] = -numpy.inf
    if style == 3:
        values = numpy.where(rng.random(shape) < 0.5, 0.0, -0.0)
    return torch.from_numpy(values).to(dtype)


def random_layout(rng, x):
    """The same numbers in another place: channels last, a part of something larger, turned."""
    style = rng.integers(5)
    if style == 1 and x.dim() in (4, 5) and x.numel():
        names = {4: torch.channels_last, 5: torch.channels_last_3d}
        return x.contiguous(memory_format=names[x.dim()])
    if style == 2:
        large = torch.zeros([2 * n + 1 for n in x.shape], dtype=x.dtype)
        part = large[tuple(slice(1, 2 * n + 1, 2) for n in x.shape)]
        return part.copy_(x)
    if style == 3:
        axes = tuple(rng.permutation(x.dim()))
        return x.permute(axes).contiguous().permute(tuple(numpy.argsort(axes)))
    return x


def maybe_each(rng, ndim, draw):
    """One number for all axes, or one for each."""
    if rng.random() < 0.5:
        return draw()
    return tuple(draw() for _ in range(ndim))


def random_window(rng, kind, ndim):
    kernel = maybe_each(rng, ndim, lambda: int(rng.integers(1, 5)))
    if rng.random() < 0.02:
        kernel = maybe_each(rng, ndim, lambda: int(rng.integers(-1, 9)))
    kwargs = {"kernel_size": kernel}
    if rng.random() < 0.7:
        least = 0 if rng.random() < 0.02 else 1
        kwargs["stride"] = maybe_each(rng, ndim, lambda: int(rng.integers(least, 4)))
    if rng.random() < 0.5:
        smallest = min(kernel) if isinstance(kernel, tuple) else kernel
        most = max(smallest, 0) // 2 + (rng.random() < 0.05)
        least = -1 if rng.random() < 0.02 else 0
        kwargs["padding"] = maybe_each(rng, ndim, lambda: int(rng.integers(least, most + 1)))
    if rng.random() < 0.3:
        kwargs["ceil_mode"] = True
    if kind == "max" and rng.random() < 0.3:
        kwargs["dilation"] = maybe_each(rng, ndim, lambda: int(rng.integers(1, 4)))
    if kind == "avg" and rng.random() < 0.3:
        kwargs["count_include_pad"] = False
    if kind == "avg" and ndim > 1 and rng.random() < 0.2:
        kwargs["divisor_override"] = int(rng.integers(-1, 6))
    if rng.random() < 0.01:
        kwargs["kernel_size"] = [(), (2,) * (ndim + 1), 1.5, None][rng.integers(4)]
    return kwargs


def random_case(number):
    rng = numpy.random.default_rng(number)
    ndim = int(rng.integers(1, 4))
    kind = ("max", "max", "avg", "avg", "adaptive_max", "adaptive_avg")[rng.integers(6)]
    dtype = FLOATS[rng.integers(4)] if rng.random() < 0.85 else INTEGERS[rng.integers(5)]
    shape = random_shape(rng, ndim)
    x = random_layout(rng, random_values(rng, shape, dtype))
    if kind in ("max", "avg"):
        kwargs = random_window(rng, kind, ndim)
    else:
        kwargs = {"output_size": maybe_each(rng, ndim, lambda: int(rng.integers(1, 7)))}
        if rng.random() < 0.03:
            kwargs["output_size"] = [0, -1, (2,) * (ndim + 1), 1.5][rng.integers(4)]
    return Case(kind, ndim, x, kwargs, kind.endswith("max") and rng.random() < 0.5)


# ---- Running cases -------------------------------------------------------------------------------


def call(module, case, x):
    function = getattr(module, f"{case.kind}_pool{case.ndim}d")
    extra = {"return_indices": True} if case.indices else {}
    return function(x, **case.kwargs, **extra)


def outcome(module, case, x):
    """((values, indices or None), None) or (None, the exception)."""
    try:
        result = call(module, case, x)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return None, error
    return (result if case.indices else (result, None)), None


def ours(case, number):
    """tarn's outcome on NumPy's arrays or PyTorch's, back as tensors."""
    if number % 2 or case.x.dtype == torch.bfloat16:
        return outcome(tarn, case, case.x)
    result, error = outcome(tarn, case, case.x.numpy())
    if error:
        return result, error
    assert all(part is None or type(part) is numpy.ndarray for part in result)
    return tuple(part if part is None else torch.from_numpy(part) for part in result), None


def per_axis(value, ndim):
    return (value,) * ndim if isinstance(value, int) else value


def windows(case):
    """For each axis, the real taps of each window as a list of coordinates."""
    axes = []
    sizes = case.x.shape[-case.ndim:]
    if "output_size" in case.kwargs:
        for n, out in zip(sizes, per_axis(case.kwargs["output_size"], case.ndim)):
            axes.append([list(range(i * n // out, -((i + 1) * -n // out))) for i in range(out)])
        return axes
    kernel = per_axis(case.kwargs["kernel_size"], case.ndim)
    stride = per_axis(case.kwargs.get("stride", case.kwargs["kernel_size"]), case.ndim)
    padding = per_axis(case.kwargs.get("padding", 0), case.ndim)
    dilation = per_axis(case.kwargs.get("dilation", 1), case.ndim)
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation):
        span = n + 2 * p - d * (k - 1) - 1
        count = -(-span // s) + 1 if case.kwargs.get("ceil_mode") else span // s + 1
        if case.kwargs.get("ceil_mode") and (count - 1) * s >= n + p:
            count -= 1
        axes.append([[c for c in range(o * s - p, o * s - p + d * k, d) if 0 <= c < n]
                     for o in range(count)])
    return axes


def plane_windows(case):
    """For each window, in row-major order, the flat positions of its real taps."""
    sizes = case.x.shape[-case.ndim:]
    for parts in itertools.product(*windows(case)):
        yield [sum(c * math.prod(sizes[a + 1:]) for a, c in enumerate(place))
               for place in itertools.product(*parts)]


# ---- Intended differences ------------------------------------------------------------------------


def check_more_dtypes(case, result):
    """PyTorch has no such kernel; tarn agrees with it on binary64 numbers."""
    wide = case._replace(x=case.x.double(), indices=case.kind.endswith("max"))
    (values, indices), error = outcome(F, wide, wide.x)
    assert error is None
    if case.kind.endswith("avg"):
        check_integer_mean(case, result)
        return
    assert torch.equal(result[0], values.to(case.x.dtype))
    assert result[1] is None or torch.equal(result[1], indices)


def check_integer_mean(case, result):
    """Means of integers are exact, rounded half to even; of f16 and bf16 rounded once."""
    wide = case._replace(x=case.x.double())
    (values, _), error = outcome(F, wide, wide.x)
    assert error is None
    if case.x.dtype in FLOATS:
        assert_close(result[0], values, case)
    else:
        info = torch.iinfo(case.x.dtype)
        assert torch.equal(result[0].double(), values.round().clamp(info.min, info.max))


def check_small_volume(case, result):
    """PyTorch's 3-D average alone compares the kernel with the input before it is padded. The sums
    agree with those of its 3-D max's windows; one suffices: that of all cells, padded by hand."""
    kernel = per_axis(case.kwargs["kernel_size"], 3)
    padding = per_axis(case.kwargs["padding"], 3)
    around = [p for p in reversed(padding) for _ in range(2)]
    padded = F.pad(case.x.double(), around)
    window = padded[..., :kernel[0], :kernel[1], :kernel[2]]
    counted = torch.ones(case.x.shape[-3:], dtype=torch.float64)
    if case.kwargs.get("count_include_pad", True):
        counted = F.pad(counted, around, value=1.0)
    else:
        counted = F.pad(counted, around)
    divisor = case.kwargs.get("divisor_override") or counted[:kernel[0], :kernel[1], :kernel[2]].sum()
    mean = window.sum((-3, -2, -1)) / divisor
    if case.x.dtype not in FLOATS:
        info = torch.iinfo(case.x.dtype)
        mean = mean.round().clamp(info.min, info.max)
    first = result[0][..., :1, :1, :1].squeeze((-3, -2, -1)).double()
    finite = mean.isfinite()
    assert torch.allclose(first[finite], mean[finite], rtol=2e-2, atol=2e-2)


def kernel_exceeds_volume(case):
    kernel = per_axis(case.kwargs.get("kernel_size", 0), case.ndim)
    return case.kind == "avg" and case.ndim == 3 and any(map(int.__lt__, case.x.shape[-3:], kernel))


def check_negative_divisor(case, error):
    assert error.code == "TARN_BAD_VALUE"


def check_zero_output(case, error):
    assert error.code == "TARN_BAD_WINDOW"


def check_large_kernel(case, error):
    """In ceil mode PyTorch makes a window larger than the padded input; for tarn it does not fit."""
    assert error.code == "TARN_DOES_NOT_FIT"


def check_empty_channels(case, error):
    assert error.code == "TARN_BAD_SHAPE"


def check_unchecked_mean(case, error):
    assert error.code in ("TARN_BAD_SHAPE", "TARN_BAD_RANK")


def one_window_fits_badly(case):
    if not case.kwargs.get("ceil_mode"):
        return False
    kernel = per_axis(case.kwargs["kernel_size"], case.ndim)
    padding = per_axis(case.kwargs.get("padding", 0), case.ndim)
    dilation = per_axis(case.kwargs.get("dilation", 1), case.ndim)
    return any(n + 2 * p < d * (k - 1) + 1
               for n, k, p, d in zip(case.x.shape[-case.ndim:], kernel, padding, dilation))


def has_empty_channels(case):
    return case.kind == "adaptive_avg" and case.x.dim() == case.ndim + 2 and case.x.shape[1] == 0


def is_one_mean(case):
    """PyTorch's adaptive average to size 1 is another function, which checks no shape."""
    return case.kind == "adaptive_avg" and set(per_axis(case.kwargs["output_size"], case.ndim)) == {1}


def only_ours_refuses(case, error):
    """The name of the intended difference, checked."""
    if case.kwargs.get("divisor_override", 1) < 0:
        check_negative_divisor(case, error)
        return "negative divisor"
    if 0 in (per_axis(case.kwargs.get("output_size", 1), case.ndim)):
        check_zero_output(case, error)
        return "zero output"
    if is_one_mean(case):
        check_unchecked_mean(case, error)
        return "unchecked mean"
    if has_empty_channels(case):
        check_empty_channels(case, error)
        return "empty channels"
    assert one_window_fits_badly(case), error
    check_large_kernel(case, error)
    return "large kernel"


# ---- Comparing -----------------------------------------------------------------------------------


def assert_close(result, expected, case):
    """Sums in another order: equal up to rounding of the terms; NaN and infinities agree."""
    result, expected = result.double(), expected.double()
    finite = case.x.double().nan_to_num(0, 0, 0).abs()
    largest = finite.max().item() if finite.numel() else 0.0
    divisor = abs(case.kwargs.get("divisor_override", 1)) or 1
    slack = EPSILON[case.x.dtype] * (largest * 64 / divisor + 1e-300)
    assert torch.allclose(result, expected, rtol=EPSILON[case.x.dtype], atol=slack, equal_nan=True)


def compare_indices(case, result, expected, seen):
    """Indices agree but for windows with several NaNs, with no real tap, or all -inf in a layout in
    which PyTorch loses the depth."""
    taps = list(plane_windows(case))
    planes = case.x.reshape(-1, math.prod(case.x.shape[-case.ndim:])).double().numpy()
    mine = result.reshape(len(planes), -1).numpy()
    theirs = expected.reshape(len(planes), -1).numpy()
    for plane, window in zip(*numpy.nonzero(mine != theirs)):
        cells = taps[window]
        values = planes[plane][cells]
        if not cells:
            seen["no real tap"] += 1
            assert mine[plane, window] == -1
        elif numpy.isnan(values).sum() > 1:
            seen["several NaNs"] += 1
            nans = [c for c, v in zip(cells, values) if numpy.isnan(v)]
            assert mine[plane, window] == nans[0] and theirs[plane, window] == nans[-1]
        else:
            seen["all -inf, channels last"] += 1
            assert case.ndim == 3 and not case.x.is_contiguous()
            assert (values == -numpy.inf).all() and mine[plane, window] == cells[0]


def compare_max(case, result, expected, seen):
    """The same bits, but 0 where a window has no real tap and PyTorch has the least number."""
    mine, theirs = result[0], expected[0]
    if not torch.equal(mine.nan_to_num(77), theirs.nan_to_num(77)):
        empty = torch.tensor([not taps for taps in plane_windows(case)])
        empty = empty.reshape(mine.shape[-case.ndim:]).expand(mine.shape)
        assert (mine[empty] == 0).all()
        assert torch.equal(mine[~empty].nan_to_num(77), theirs[~empty].nan_to_num(77))
        seen["no real tap"] += 1
    if case.indices and not torch.equal(result[1], expected[1]):
        compare_indices(case, result[1], expected[1], seen)


def compare(case, result, expected, seen):
    assert result[0].shape == expected[0].shape and result[0].dtype == expected[0].dtype
    if case.kind.endswith("max"):
        compare_max(case, result, expected, seen)
    elif case.x.dtype in FLOATS:
        assert_close(result[0], expected[0], case)
    elif not torch.equal(result[0], expected[0]):
        seen["integer mean"] += 1
        check_integer_mean(case, result)


def gradient(module, case, weights):
    x = case.x.detach().clone().requires_grad_()
    y = call(module, case._replace(indices=False), x)
    (y * weights).sum().backward()
    return y.detach(), x.grad


def compare_gradients(case, expected):
    """Both gradients of a random weighing of y. NaN positions and windows without a tap, where
    PyTorch writes elsewhere, are compared by the forward tests."""
    if case.x.isnan().any() or case.x.isinf().any() or not case.x.numel():
        return False
    if case.kind == "max" and any(not taps for taps in plane_windows(case)):
        return False
    weights = torch.arange(expected.numel()).remainder(7).sub(3).reshape(expected.shape)
    y, mine = gradient(tarn.torch, case, weights.to(expected.dtype))
    _, theirs = gradient(F, case._replace(x=case.x.contiguous()), weights.to(expected.dtype))
    assert torch.equal(y, expected) or case.kind.endswith("avg")
    slack = 64 * EPSILON[case.x.dtype]
    assert torch.allclose(mine.double(), theirs.double(), rtol=EPSILON[case.x.dtype], atol=slack)
    return True


def lacks_dtype(error):
    words = "could not infer output dtype", "not implemented for"  # the latter is PyTorch 2.6's
    return isinstance(error, NotImplementedError) or any(word in str(error) for word in words)


def run_case(case, number, seen):
    expected, their_error = outcome(F, case, case.x)
    result, our_error = ours(case, number)
    if re.match("Unsupport(ed)? memory format", str(their_error)):
        seen["more layouts"] += 1  # a volume without a batch that lies as channels last would
        expected, their_error = outcome(F, case, case.x.contiguous())
    if lacks_dtype(their_error) and not our_error:
        seen["more dtypes"] += 1
        check_more_dtypes(case, result)
    elif their_error and not our_error and kernel_exceeds_volume(case):
        seen["small volume"] += 1
        check_small_volume(case, result)
    elif their_error:
        seen["errors"] += 1
        assert our_error, f"PyTorch says {their_error}"
        assert isinstance(our_error, TypeError) == isinstance(their_error, TypeError), our_error
    elif our_error:
        seen[only_ours_refuses(case, our_error)] += 1
    else:
        compare(case, result, expected, seen)
        if case.x.dtype in FLOATS and number % 3 == 0:
            seen["gradients"] += compare_gradients(case, expected[0])


INTENDED = {"more dtypes", "integer mean", "several NaNs", "no real tap", "large kernel",
            "zero output", "negative divisor", "small volume", "more layouts",
            "unchecked mean"}


def test_against_pytorch(seed, cases):
    seen = collections.Counter()
    for number in range(1_000_000 * seed, 1_000_000 * seed + cases):
        case = random_case(number)
        try:
            run_case(case, number, seen)
        except Exception as error:
            error.add_note(f"case {number}: {case.kind}_pool{case.ndim}d {case.x.dtype} "
                           f"{tuple(case.x.shape)} strides {case.x.stride()} {case.kwargs}")
            raise
    print(f"\nseed {seed}, {cases} cases: {dict(seen)}")
    assert seen["errors"] > cases / 100 and seen["gradients"] > cases / 20
    assert cases < 3000 or INTENDED <= set(seen), f"not met: {INTENDED - set(seen)}"


@pytest.mark.parametrize("ndim", (1, 2))
def test_empty_channels(ndim):
    """Rare among random cases: PyTorch's 1-D and 2-D adaptive means alone take no channels."""
    case = Case("adaptive_avg", ndim, torch.zeros((2, 0) + (5,) * ndim), {"output_size": 2}, False)
    seen = collections.Counter()
    run_case(case, 0, seen)
    assert seen == {"empty channels": 1}
