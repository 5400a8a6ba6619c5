"""PyTorch: contiguous and channels_last, results written to preallocated tensors where it has a call
for that (functional calls are named as such)."""

import numpy as np
import torch

from peer_call import Call

aten = torch.ops.aten
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def version():
    return torch.__version__


def set_threads(threads):
    torch.set_num_threads(threads)


def tensor(array, dtype):
    """Shares the array's memory, whatever its strides."""
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.detach().view(torch.int16).numpy().view(np.uint16)
    return tensor.detach().numpy()


class Pool:
    """One problem in one layout; empty tensors are in the layout of x."""

    def __init__(self, problem, x, gy, layout):
        self.problem, self.x, self.gy, self.layout = problem, x, gy, layout
        writes_last = layout == "nhwc" and not (problem.op == "avg" and problem.spatial == 3)  # those write contiguously
        self.format = LAST.get(x.dim(), torch.contiguous_format) if writes_last else torch.contiguous_format
        self.y = self.empty(gy.shape, x.dtype)
        self.gx = self.empty(x.shape, x.dtype)
        self.indices = self.empty(gy.shape, torch.int64)
        self.window = (list(problem.kernels), list(problem.strides), list(problem.paddings)) \
            if problem.kernels else None
        self.dilation = list(problem.dilations)

    def empty(self, shape, dtype):
        return torch.zeros(tuple(shape), dtype=dtype).contiguous(memory_format=self.format)

    def call(self, function, result, detail=""):
        return Call("torch", self.layout, function, lambda: array(result), detail, keep=[self])

    def functional(self, function, detail):
        """A call that allocates its result: glibc hands the same memory out again (see the runner)."""
        return Call("torch", self.layout, function, lambda: array(function()), detail, keep=[self])

    # Each method returns calls that compute the same.

    def fwd_max(self):
        p, d = self.problem, self.problem.spatial
        if d == 1:
            return [self.functional(lambda: torch.max_pool1d(self.x, *self.window, self.dilation), "max_pool1d")]
        calls = self.train_max()
        if p.window == "global":
            axes = tuple(range(2, 2 + d))
            calls.append(self.call(lambda: torch.amax(self.x, axes, keepdim=True, out=self.y), self.y, "amax"))
        return calls

    def train_max(self):
        p, y, indices = self.problem, self.y, self.indices
        if p.window == "adaptive":
            out = list(p.out)
            return [self.call(lambda: aten.adaptive_max_pool2d.out(self.x, out, out=y, indices=indices), y)]
        if p.spatial == 1:
            return self.train_max_1d()
        function = (aten.max_pool2d_with_indices if p.spatial == 2 else aten.max_pool3d_with_indices).out
        return [self.call(lambda: function(self.x, *self.window, self.dilation, out=y, indices=indices), y)]

    def train_max_1d(self):
        """As torch does it: one row of a picture."""
        x, y, indices = self.x.unsqueeze(2), self.y.unsqueeze(2), self.indices.unsqueeze(2)
        window = [[first, *own] for first, own in zip((1, 1, 0, 1), (*self.window, self.dilation))]
        return [self.call(lambda: aten.max_pool2d_with_indices.out(x, *window, out=y, indices=indices), self.y)]

    def bwd_max(self):
        self.train_max()[0].once()  # the indices
        p, gy, gx, indices = self.problem, self.gy, self.gx, self.indices
        if p.window == "adaptive":
            backward = aten.adaptive_max_pool2d_backward.grad_input
            return [self.call(lambda: backward(gy, self.x, indices, grad_input=gx), gx)]
        x, window = self.x, (*self.window, self.dilation)
        if p.spatial == 1:
            gy, x, gx, indices = (t.unsqueeze(2) for t in (gy, x, gx, indices))
            window = [[first, *own] for first, own in zip((1, 1, 0, 1), window)]
        function = aten.max_pool3d_with_indices_backward if p.spatial == 3 else aten.max_pool2d_with_indices_backward
        return [self.call(lambda: function.grad_input(gy, x, *window, False, indices, grad_input=gx), self.gx)]

    def fwd_avg(self):
        p, y = self.problem, self.y
        if p.window == "adaptive":
            out = list(p.out)
            return [self.call(lambda: aten.adaptive_avg_pool2d.out(self.x, out, out=y), y)]
        function = (aten.avg_pool2d if p.spatial == 2 else aten.avg_pool3d).out
        calls = [self.call(lambda: function(self.x, *self.window, out=y), y)]
        if p.window == "global":
            calls.append(self.call(lambda: torch.mean(self.x, (2, 3), keepdim=True, out=y), y, "mean"))
        return calls

    def bwd_avg(self):
        p, gy, gx = self.problem, self.gy, self.gx
        if p.window == "adaptive":
            return [self.call(lambda: aten._adaptive_avg_pool2d_backward.out(gy, self.x, out=gx), gx)]
        backward = aten.avg_pool2d_backward if p.spatial == 2 else aten.avg_pool3d_backward
        calls = [self.call(lambda: backward.grad_input(gy, self.x, *self.window, False, True, None, grad_input=gx), gx)]
        if p.window == "global":
            wide, taps = gy.expand_as(self.x), float(np.prod(p.size))
            calls.append(self.call(lambda: torch.div(wide, taps, out=gx), gx, "expand and divide"))
        return calls

    def smooth(self, x):
        p = self.problem
        columns = torch.nn.functional.unfold(x, p.kernels, padding=p.paddings, stride=p.strides)
        n, c = x.shape[:2]
        return (columns.view(n, c, -1, columns.shape[-1]) * p.beta).logsumexp(2).view(self.y.shape) / p.beta

    def fwd_smooth(self):
        return [self.functional(lambda: self.smooth(self.x), "unfold and logsumexp")]

    def bwd_smooth(self):
        x = self.x.clone().requires_grad_()
        y = self.smooth(x)
        backward = lambda: torch.autograd.grad(y, x, self.gy, retain_graph=True)[0]
        return [self.functional(backward, "autograd of unfold and logsumexp")]


def calls(problem, name, inputs, threads):
    set_threads(threads)
    found = []
    for layout, x, gy in (("nchw", inputs.x, inputs.gy), ("nhwc", inputs.x_last, inputs.gy_last)):
        if layout == "nhwc" and problem.spatial == 1:
            continue  # torch has no such format
        pool = Pool(problem, tensor(x, problem.dtype), tensor(gy, problem.dtype), layout)
        method = getattr(pool, f"{name}_{problem.op}", None)
        found += method() if method else []
    return found
