"""tarn.torch: derivatives of every kind, transforms, the compiler, modules, patching."""

import itertools
import subprocess
import sys

import numpy
import pytest
import torch
import torch.nn.functional as F

import tarn
import tarn.torch as T

FUNCTIONS = {
    "max": lambda x: T.max_pool2d(x, 3, 2, 1),
    "max, with indices": lambda x: T.max_pool2d(x, 2, return_indices=True)[0],
    "min": lambda x: T.min_pool2d(x, 2),
    "avg": lambda x: T.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "smooth": lambda x: T.smooth_max_pool2d(x, 3, 2, 1, beta=0.7),
    "smooth, sharp": lambda x: T.smooth_max_pool2d(x, 2, beta=-3.0),
    "adaptive max": lambda x: T.adaptive_max_pool2d(x, (3, None)),
    "adaptive avg": lambda x: T.adaptive_avg_pool2d(x, 3),
    "global max": lambda x: T.global_max_pool(x),
    "global avg": lambda x: T.global_avg_pool(x, keepdims=False),
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


def numbers(*shape, **kwargs):
    generator = torch.Generator().manual_seed(7)
    return torch.randn(*shape, dtype=torch.float64, generator=generator, **kwargs)


@every_function
def test_gradcheck(function):
    x = numbers(1, 2, 4, 4).requires_grad_()
    assert torch.autograd.gradcheck(function, x, check_forward_ad=True, check_batched_grad=True,
                                    check_batched_forward_grad=True)
    assert torch.autograd.gradgradcheck(function, numbers(1, 1, 4, 4).requires_grad_(),
                                        check_fwd_over_rev=True, check_batched_grad=True)


@every_function
def test_transforms(function):
    x = numbers(2, 3, 5, 6)
    stack = torch.stack([x, 2 * x, -x])
    separate = torch.stack([function(part) for part in stack])
    assert torch.func.vmap(function)(stack).equal(separate)
    assert torch.func.vmap(function, in_dims=1)(stack.movedim(0, 1)).equal(separate)

    def total(z):
        return function(z).pow(2).sum()

    gradients = torch.func.vmap(torch.func.grad(total))(stack)
    assert gradients.equal(torch.stack([torch.func.grad(total)(part) for part in stack]))
    assert torch.allclose(torch.func.jacfwd(function)(x), torch.func.jacrev(function)(x))
    value, tangent = torch.func.jvp(function, (x,), (torch.ones_like(x),))
    assert value.equal(function(x)) and tangent.shape == value.shape
    assert torch.func.linearize(function, x)[1](torch.ones_like(x)).equal(tangent)


@pytest.mark.parametrize("order", (1, 2, 3))
def test_derivatives_of_smooth_max(order):
    """Forward and reverse mode in every nesting, against PyTorch's own logsumexp. The squares see to it
    that values, too, must carry derivatives."""
    x = numbers(1, 2, 2)

    def ours(z):
        return T.smooth_max_pool2d(z, 2, beta=1.5).pow(2).sum()

    def theirs(z):
        return ((1.5 * z).flatten().logsumexp(0) / 1.5).pow(2)

    for nesting in itertools.product((torch.func.jacfwd, torch.func.jacrev), repeat=order):
        mine, reference = ours, theirs
        for derivative in nesting:
            mine, reference = derivative(mine), derivative(reference)
        assert torch.allclose(mine(x), reference(x)), nesting


OPERATORS = {
    "pool": lambda x: (x, "smooth k3s2p1 beta=0.7"),
    "pool_indices": lambda x: (x, "max k3s2p1"),
    "pool_saved": lambda x: (x, "max k3s2p1"),
    "pool_vjp_saved": lambda x: (torch.ops.tarn.pool_saved(x.detach(), "min k3s2p1")[1],
                                 torch.ones_like(T.max_pool2d(x, 3, 2, 1)).requires_grad_(),
                                 list(x.shape), T._is_last(x, 2), "min k3s2p1"),
    "pool_jvp": lambda x: (x, torch.ones_like(x).requires_grad_(), "smooth k3s2p1"),
    "pool_vjp": lambda x: (x, T.max_pool2d(x, 3, 2, 1).detach().requires_grad_(), "avg k3s2p1"),
    "unpool": lambda x: (*T.max_pool2d(x, 2, return_indices=True), list(x.shape[-2:])),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(name):
    x = numbers(2, 3, 6, 7).requires_grad_()
    last = x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    for given in (x, last):
        arguments = OPERATORS[name](given)
        torch.library.opcheck(getattr(torch.ops.tarn, name).default, arguments)


def network(x):
    y = T.max_pool2d(x, 3, 2, 1)
    y = T.smooth_max_pool2d(y, 2, beta=2.0)
    y = T.adaptive_avg_pool2d(y, (2, None))
    z, where = T.max_pool2d(x, 2, return_indices=True)
    return T.global_avg_pool(y, keepdims=False), T.max_unpool2d(z, where, 2)


@pytest.mark.parametrize("dynamic", (False, True))
def test_compile_without_graph_breaks(dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for size in (16, 20):
        x = numbers(2, 3, size, size).requires_grad_()
        other = x.detach().clone().requires_grad_()
        for function, given in ((network, x), (compiled, other)):
            first, second = function(given)
            (first.pow(2).sum() + second.sum()).backward()
        assert x.grad.equal(other.grad)
    with pytest.raises(RuntimeError):
        torch.compile(lambda z: T.max_pool2d(z, 99), fullgraph=True, backend="aot_eager")(x)


def test_a_compiled_kernel_may_be_a_size_of_x():
    def function(z):
        y = T.max_pool2d(z, kernel_size=[2, z.shape[-1] // 3], padding=(0, 1))
        return T.avg_pool2d(y, y.size()[2:])

    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (9, 14):
        x = numbers(1, 2, size, size + 1)
        assert compiled(x).equal(function(x))
    with pytest.raises((RuntimeError, ValueError), match="padding"):
        torch.compile(lambda z: T.max_pool2d(z, 2, padding=-1), backend="aot_eager", dynamic=True)(x)


@pytest.mark.parametrize("dynamic", (None, True))
@pytest.mark.parametrize("module, name, values", [
    (T.MaxPool2d(2), "stride", (2, 3)), (T.MinPool2d(2), "return_indices", (True, False)),
    (T.AvgPool2d(2, ceil_mode=True), "divisor_override", (None, 3)), (T.AdaptiveAvgPool2d(2), "output_size", (2, (3, None))),
    (T.SmoothMaxPool2d(2, beta=3.0), "beta", (3.0, 0.1)), (T.AdaptiveLpPool2d(2.0, 2), "norm_type", (2.0, 2.5)),
    (T.GlobalSmoothMaxPool(), "beta", (3.0, -2.5)), (T.GlobalMaxPool(1), "ndim", (1, 2))])
def test_a_compiled_module_follows_its_numbers(module, name, values, dynamic):
    """torch.compile may hold each of them as a symbol."""
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for value in values:
        setattr(module, name, value)
        for size in (7, 9):
            x = numbers(1, 2, size, size + 1)
            for ours, eager in zip(compiled(x), module(x)):
                assert ours.equal(eager)


def test_modules_are_pytorchs():
    x = numbers(1, 2, 8, 8)
    for name, arguments in (("MaxPool2d", (3, 2, 1)), ("AvgPool2d", (2,)), ("AdaptiveMaxPool2d", (3,)),
                            ("AdaptiveAvgPool2d", ((3, None),))):
        ours, theirs = getattr(T, name)(*arguments), getattr(torch.nn, name)(*arguments)
        assert isinstance(ours, type(theirs)) and repr(ours) == repr(theirs)
        assert torch.allclose(ours(x), theirs(x))
    for name, shape in (("1d", (2, 8)), ("3d", (2, 8, 8, 8))):
        for kind in ("MaxPool", "AvgPool"):
            module = getattr(T, kind + name)(2)
            assert torch.allclose(module(numbers(*shape)),
                                  getattr(torch.nn, kind + name)(2)(numbers(*shape)))
    assert T.MinPool2d(2)(x).equal(-F.max_pool2d(-x, 2))
    assert T.SmoothMaxPool2d(2, beta=3.0)(x).equal(T.smooth_max_pool2d(x, 2, beta=3.0))
    assert "beta=3.0" in repr(T.SmoothMaxPool2d(2, beta=3.0))
    assert T.GlobalMaxPool()(x).equal(x.amax((2, 3), keepdim=True))
    assert torch.allclose(T.GlobalAvgPool(keepdims=False)(x), x.mean((2, 3)))
    assert torch.jit.is_scripting() is False


def test_patch():
    x = numbers(1, 2, 8, 8).requires_grad_()
    originals = F.max_pool2d, F.avg_pool3d
    with T.patch():
        assert F.max_pool2d is not originals[0]
        y = torch.nn.MaxPool2d(2)(x)
        # The compiled step, Python's, and the operators that stand in for it up to PyTorch 2.9.
        assert y.grad_fn.name() in ("TarnPoolBackward", "_StepBackward", "_ForwardSavedBackward")
        values, where = F.max_pool2d(input=x, kernel_size=2, return_indices=True)
        assert F.max_unpool2d(values, where, 2).shape == x.shape
        assert F.max_pool2d(torch.ones(1, 4, 4, device="meta"), 2).shape == (1, 2, 2)
    with pytest.raises(ZeroDivisionError), T.patch():
        1 / 0
    assert (F.max_pool2d, F.avg_pool3d) == originals
    assert y.equal(F.max_pool2d(x, 2))


def test_dtypes_and_layouts():
    x = torch.randn(2, 3, 8, 8)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for layout in (torch.contiguous_format, torch.channels_last):
            z = x.clone().to(dtype, memory_format=layout).detach().requires_grad_()
            y = T.max_pool2d(z, 2)
            y.backward(torch.ones_like(y))
            assert y.dtype == dtype and y.is_contiguous(memory_format=layout)
            assert z.grad.is_contiguous(memory_format=layout) and z.grad.sum() == y.numel()
    assert T.max_pool2d(torch.arange(16).reshape(1, 4, 4), 2).tolist() == [[[5, 7], [13, 15]]]


@pytest.mark.parametrize("name, arguments", [
    ("max", {"ties": "all d1"}), ("min", {"ndim": "1 ties=split"}), ("avg", {"ndim": 2.5}), ("avg", {"ndim": 9}),
    ("smooth_max", {"beta": "1"}), ("lp", {"norm_type": "2 ties=all"})])
def test_arguments_of_global_pools_are_no_words(name, arguments):
    with pytest.raises((ValueError, TypeError)):
        getattr(T, f"global_{name}_pool")(torch.zeros(1, 2, 3, 4), **arguments)


def test_no_device_but_the_cpu():
    with pytest.raises(NotImplementedError):
        torch.ops.tarn.pool(torch.ones(1, 4, 4).to_sparse(), "max k2s2")


def test_gradient_of_unpool():
    y, where = T.max_pool2d(numbers(1, 2, 6, 6), 2, return_indices=True)
    assert torch.autograd.gradcheck(lambda z: T.max_unpool2d(z, where, 2), y.requires_grad_(),
                                    check_forward_ad=True)


def test_torch_is_imported_when_asked_for():
    program = "import sys, tarn; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; " \
              "tarn.torch; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_ops_agree_with_pools():
    x = numbers(2, 9, 9)
    text = tarn.MaxPool(3, 2, 1, ties="split").text
    assert torch.ops.tarn.pool(x, text).equal(tarn.MaxPool(3, 2, 1)(x))
    assert numpy.array_equal(torch.ops.tarn.pool_vjp(x, torch.ones(2, 5, 5, dtype=x.dtype), text),
                             tarn.Pool.parse(text).vjp(x.numpy(), numpy.ones((2, 5, 5))))


def test_older_torch_is_refused():
    program = "import torch\ntorch.__version__ = '2.5.1+cpu'\nimport tarn.torch"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1
    assert "ImportError: tarn.torch needs PyTorch 2.6 or later: this is 2.5.1+cpu" in run.stderr
