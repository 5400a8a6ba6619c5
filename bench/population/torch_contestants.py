"""PyTorch's own functions, pass by pass, and the training step: tarn.torch beside torch.nn.functional.

What PyTorch does not have (min, smooth max, dilated averages, padding on one side, four axes, most integers) gives no contestant.
"""

from functools import cache, partial

import numpy as np
import torch
import torch.nn.functional as F

from contestants import DX, DY, GX, GY, INDICES, PATCHED, STEP, X, Y, Contestant

aten = torch.ops.aten


def tensor(array, dtype):
    """Shares the array's memory, whatever its strides."""
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_array(tensor):
    tensor = tensor.detach()
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def as_picture(function):
    """1-D as PyTorch does it itself: pictures one row high."""
    def wrapped(*tensors):
        found = function(*(t.unsqueeze(-2) for t in tensors))
        return tuple(t.squeeze(-2) for t in found) if isinstance(found, tuple) else found.squeeze(-2)
    return wrapped


class Pooling:
    """One problem as functions of tensors: `values` (PyTorch's and tarn.torch's), `with_indices`, `backward`."""

    def __init__(self, p):
        self.p, self.d = p, p.spatial
        self.window = [list(p.kernel), list(p.stride), list(p.pad_lo)]
        self.ones = [1] * self.d

    def exists(self):
        p = self.p
        if p.op not in ("max", "avg", "lp") or self.d > 3 or p.pad_lo != p.pad_hi:
            return False
        if p.op == "avg":
            return set(p.dilation) <= {1}
        if p.op == "lp":  # PyTorch's has no padding, keeps the sign of odd powers and counts taps beyond the edge
            return p.window == "sliding" and not any(p.pad_lo) and set(p.dilation) == {1} and not p.ceil and p.power == 2
        return True

    def values(self, library, is_tarn=False):
        """The function that a user of `library` (torch.nn.functional or tarn.torch) would call, with its arguments."""
        p, d = self.p, self.d
        if p.window != "sliding":
            if is_tarn and p.window == "global":
                ties = {"ties": p.ties} if p.op == "max" else {}
                return partial(getattr(library, f"global_{p.op}_pool"), ndim=d, **ties)
            out = list(p.out) or self.ones
            return partial(getattr(library, f"adaptive_{p.op}_pool{d}d"), output_size=out[0] if d == 1 else out)
        function = getattr(library, f"{p.op}_pool{d}d")
        kernel, stride, padding = self.window
        if p.op == "max":
            return partial(function, kernel_size=kernel, stride=stride, padding=padding, dilation=list(p.dilation),
                           ceil_mode=p.ceil)
        if p.op == "avg":
            return partial(function, kernel_size=kernel, stride=stride, padding=padding, ceil_mode=p.ceil,
                           count_include_pad=p.counts_padding)
        return partial(function, norm_type=2.0, kernel_size=kernel[0] if d == 1 else kernel,
                       stride=stride[0] if d == 1 else stride)

    def flat_window(self):
        """The window for functions of two or three axes."""
        rows = ([1], [1], [0]) if self.d == 1 else ([], [], [])
        return [first + own for first, own in zip(rows, self.window)]

    def with_indices(self):
        return partial(self.values(F), return_indices=True)

    def backward(self):
        """gx as a function of gy, x and, for max, indices."""
        p, d = self.p, max(2, self.d)
        if p.window != "sliding":
            if p.op == "max":
                backward = getattr(aten, f"adaptive_max_pool{d}d_backward").default
            else:
                backward = getattr(aten, f"_adaptive_avg_pool{d}d_backward").default
        elif p.op == "max":
            function = getattr(aten, f"max_pool{d}d_with_indices_backward").default
            dilation = [1] * (d - self.d) + list(p.dilation)
            backward = lambda gy, x, indices: function(gy, x, *self.flat_window(), dilation, p.ceil, indices)
        else:
            function = getattr(aten, f"avg_pool{d}d_backward").default
            backward = lambda gy, x: function(gy, x, *self.flat_window(), p.ceil, p.counts_padding, None)
        return as_picture(backward) if self.d == 1 else backward


def contestants(problem, case):
    """PyTorch's, for the passes of `case`; calls that do the work of several passes are timed once."""
    pooling, wanted = Pooling(problem), case.passes()
    if not pooling.exists():
        return []
    tensors = [tensor(case.array(operand), problem.dtype) for operand in (X, GY, DX)]
    found = {"max": max_contestants, "avg": avg_contestants, "lp": lp_contestants}[problem.op](pooling, *tensors)
    for c in found:
        c.passes = tuple(name for name in c.passes if name in wanted)
    return [c for c in found if c.passes]


def contestant(passes, once, *operands):
    def results():
        found = once()
        found = found if isinstance(found, tuple) else (found,)
        return {operand: to_array(t) for operand, t in zip(operands, found)}
    return Contestant("torch", passes, once=once, results=results)


def max_contestants(pooling, x, gy, dx):
    p, d = pooling.p, pooling.d
    with_indices, values, backward = pooling.with_indices(), pooling.values(F), pooling.backward()
    def tangents():
        _, indices = with_indices(x)
        return dx.flatten(-d).gather(-1, indices.flatten(-d)).view(indices.shape)
    found = []
    if d == 1 and p.window == "sliding":
        found.append(contestant(("fwd",), lambda: values(x), Y))  # the only one that does not compute indices
    if p.window == "global":
        axes = tuple(range(2, 2 + d))
        found.append(contestant(("fwd",), lambda: x.amax(axes, keepdim=True), Y))
    found.append(contestant(("fwd", "train", "indices"), lambda: with_indices(x), Y, INDICES))
    if p.ties == "first":
        found.append(contestant(("jvp",), tangents, DY))
        indices = cache(lambda: with_indices(x)[1])
        found.append(contestant(("bwd", "bwd_x"), lambda: backward(gy, x, indices()), GX))
    return found


def avg_contestants(pooling, x, gy, dx):
    values, backward = pooling.values(F), pooling.backward()
    return [contestant(("fwd",), lambda: values(x), Y), contestant(("jvp",), lambda: values(dx), DY),
            contestant(("bwd",), lambda: backward(gy, x), GX)]


def lp_contestants(pooling, x, gy, dx):
    values = pooling.values(F)
    leaf = x.detach().requires_grad_()
    y = cache(torch.enable_grad()(lambda: values(leaf)))
    backward = lambda: torch.autograd.grad(y(), leaf, gy, retain_graph=True)[0]
    return [contestant(("fwd",), lambda: values(x), Y), contestant(("bwd",), backward, GX)]


def step_contestants(problem, case, tarn_torch):
    """The whole training step, by both libraries, and by PyTorch's functions inside patch()."""
    pooling = Pooling(problem)
    if not tarn_torch or not problem.is_float or not pooling.exists() or problem.op == "lp" or problem.ties == "all":
        return []
    x, gy = (tensor(case.array(operand), problem.dtype) for operand in (X, GY))
    leaf = x.detach().requires_grad_()
    def step(values):
        with torch.enable_grad():
            y = values(leaf)
            return y, torch.autograd.grad(y, leaf, gy)[0]
    with tarn_torch.patch():
        patched = pooling.values(F)
    found = [contestant((STEP,), partial(step, pooling.values(tarn_torch, True)), Y, GX),
             contestant((PATCHED,), partial(step, patched), Y, GX),
             contestant((STEP, PATCHED), partial(step, pooling.values(F)), Y, GX)]
    found[0].who = found[1].who = "tarn"
    return found
