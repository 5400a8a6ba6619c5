"""tarn.torch, a training step: what is kept between forward and backward, and what comes of it."""

import itertools

import pytest
import torch
import torch.nn.functional as F

import tarn
import tarn.torch as T

pytestmark = pytest.mark.usefixtures("step")
LENDS = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
LAYOUTS = ("contiguous", "channels last", "sliced", "turned", "overlapping")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def picture(ndim, dtype=torch.float32, layout="contiguous"):
    """Few numbers, so that there are ties, and some NaN, infinities and zeros of both signs."""
    generator = torch.Generator().manual_seed(ndim)
    x = torch.randint(-4, 5, (2, 3, 11, 9, 8)[:2 + ndim], generator=generator).to(dtype)
    x.view(-1)[3::37], x.view(-1)[5::41], x.view(-1)[7::11] = torch.nan, -torch.inf, -0.0
    if layout == "channels last":
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if layout == "sliced":
        return torch.stack([x, x], -1).flatten(-2)[..., ::2]
    if layout == "turned":
        return x.transpose(-1, 1).contiguous().transpose(-1, 1)
    return x[:1].expand_as(x) if layout == "overlapping" else x


def kept_by(function):
    """What autograd keeps of a call."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        function()
    return kept


def bits(tensor):
    return tensor.reshape(-1).contiguous().view(torch.uint8)


def pools(ndim):
    yield getattr(T, f"max_pool{ndim}d"), (3, 2, 1), tarn.MaxPool(3, 2, 1, ndim=ndim)
    yield getattr(T, f"max_pool{ndim}d"), (2, 1, 1, 2), tarn.MaxPool(2, 1, 1, 2, ndim=ndim)
    yield getattr(T, f"min_pool{ndim}d"), (2,), tarn.MinPool(2, ndim=ndim)
    yield getattr(T, f"avg_pool{ndim}d"), (3, 2, 1), tarn.AvgPool(3, 2, 1, ndim=ndim)
    yield getattr(T, f"smooth_max_pool{ndim}d"), (2,), tarn.SmoothMaxPool(2, ndim=ndim)
    yield getattr(T, f"adaptive_max_pool{ndim}d"), (4,), tarn.AdaptiveMaxPool(4, ndim=ndim)
    yield getattr(T, f"adaptive_avg_pool{ndim}d"), (4,), tarn.AdaptiveAvgPool(4, ndim=ndim)
    yield T.global_max_pool, (ndim, False, "first"), tarn.GlobalMaxPool(ndim, False, "first")
    yield T.global_max_pool, (ndim,), tarn.GlobalMaxPool(ndim)
    yield T.global_avg_pool, (ndim,), tarn.GlobalAvgPool(ndim)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("ndim", (1, 2, 3))
def test_gradients_have_the_bits_of_those_from_x(ndim, dtype, layout):
    x = picture(ndim, dtype, layout)
    for function, arguments, pool in pools(ndim):
        expected = pool(x)
        weights = torch.arange(expected.numel()).remainder(7).sub(3).to(dtype)
        for gy in (weights.reshape(expected.shape), weights[1:2].expand(expected.shape)):
            from_x = bits(pool.vjp(x, gy))
            for call in (lambda z: function(z, *arguments),
                         lambda z: torch.ops.tarn.pool(z, pool.text)):
                z = x.detach().requires_grad_()
                y = call(z)
                assert bits(y).equal(bits(expected)), pool
                (gx,) = torch.autograd.grad(y, z, gy)
                assert bits(gx).equal(from_x), pool
                (gx,) = torch.autograd.grad(call(z), z, gy, create_graph=True)
                assert bits(gx.detach()).equal(from_x), pool


def test_layout_does_not_depend_on_gradients(step):
    for ndim, layout in itertools.product((1, 2, 3), LAYOUTS):
        x = picture(ndim, layout=layout)
        for function, arguments, _ in pools(ndim):
            if function not in (T.global_max_pool, T.global_avg_pool):
                z = x.detach().requires_grad_()
                y = function(z, *arguments)
                assert y.stride() == function(x, *arguments).stride()
                gx = torch.autograd.grad(y.sum(), z)[0]
                # In PyTorch 2.9 the operators do it, unless a node is compiled: gx is row-major.
                if LENDS or step == "compiled":
                    assert gx.stride() == torch.empty_like(x).stride()


@pytest.mark.parametrize("through", ("function", "patch", "operator", "compiler"))
def test_one_byte_an_output_is_kept(through):
    calls = {
        "function": lambda x, k: T.max_pool2d(x, k, 2),
        "patch": lambda x, k: F.max_pool2d(x, k, 2),
        "operator": lambda x, k: torch.ops.tarn.pool(x, f"max k{k}s2"),
        "compiler": torch.compile(lambda x, k: T.max_pool2d(x, k, 2), backend="aot_eager",
                                  dynamic=False),
    }
    x = torch.randn(2, 3, 40, 40, requires_grad=True)
    for kernel, dtype in ((3, torch.uint8), (15, torch.uint8), (16, torch.int32)):
        with T.patch():
            (winners,) = kept_by(lambda: calls[through](x, kernel))
        assert winners.dtype == dtype and winners.shape == T.max_pool2d(x, kernel, 2).shape
        assert winners.untyped_storage().nbytes() <= winners.numel() * winners.itemsize + 64


def test_what_else_is_kept():
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    assert not kept_by(lambda: T.avg_pool2d(x, 2)) and not kept_by(lambda: T.global_avg_pool(x))
    assert [t.shape for t in kept_by(lambda: T.smooth_max_pool2d(x, 2))] == [x.shape]
    assert [t.shape for t in kept_by(lambda: T.global_max_pool(x))] == [x.shape]
    (winners,) = kept_by(lambda: T.adaptive_max_pool2d(x, 2))
    assert winners.dtype == torch.uint8 and winners.shape == (2, 3, 2, 2)
    assert not kept_by(lambda: T.max_pool2d(x.detach(), 2))
    with torch.no_grad():
        assert not kept_by(lambda: T.max_pool2d(x, 2)) and not T.max_pool2d(x, 2).requires_grad


def test_x_may_change_after_the_forward():
    def gradient(function, change):
        x = torch.arange(32.0).reshape(2, 1, 4, 4).requires_grad_()
        z = x * 1
        y = function(z)
        if change:
            z.data.neg_() if change == "unseen" else z.detach().neg_()
        return torch.autograd.grad(y.sum(), x)[0]

    for function in (lambda z: T.max_pool2d(z, 3, 1, 1), lambda z: T.avg_pool2d(z, 2)):
        for change in ("seen", "unseen"):
            assert gradient(function, change).equal(gradient(function, None))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(lambda z: T.smooth_max_pool2d(z, 2), "seen")


def test_a_graph_is_freed():
    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    y = T.max_pool2d(x, 2).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    (loss,) = (T.max_pool2d(x * 2, 2).sum(),)
    z = torch.utils.checkpoint.checkpoint(lambda v: T.max_pool2d(v * 2, 2), x, use_reentrant=False)
    assert torch.autograd.grad(z.sum(), x)[0].equal(torch.autograd.grad(loss, x)[0])


@pytest.mark.parametrize("text, ndim", (
    ("max k3s2p1", 2), ("min k2,3s1,2p1,0e2,1 ceil", 2), ("max k4s3p2", 1), ("max k2,3,2s1p1", 3),
    ("max a4,3 d2", 2), ("max global d2 ties=first", 2), ("min flat d2 ties=first", 2), ("max k17s5p8", 2),
    ("max k3s7p1 ceil", 2)))
def test_winners_are_the_indices(text, ndim):
    for layout in ("contiguous", "channels last"):
        x = torch.randn(2, 3, 21, 20, 19)[(..., *[0] * (3 - ndim))]
        x = x.movedim(1, -1).contiguous().movedim(-1, 1) if layout == "channels last" else x
        y, indices = torch.ops.tarn.pool_indices(x, text)
        values, winners = torch.ops.tarn.pool_saved(x, text)
        assert values.equal(y)
        assert T._winner_indices(winners, x.shape, text).reshape(indices.shape).equal(indices)


def test_windows_without_a_tap():
    x = torch.randn(1, 2, 3, requires_grad=True)
    text = tarn.MaxPool(2, 2, ((2, 3),), ndim=1).text
    y = torch.ops.tarn.pool(x, text)
    assert torch.ops.tarn.pool_indices(x, text)[1][0, 0, 0] == -1
    (gx,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    assert gx.detach().equal(tarn.Pool.parse(text).vjp(x.detach(), torch.ones_like(y)))
    ones = torch.ones_like(y).requires_grad_()
    (gx,) = torch.autograd.grad(torch.ops.tarn.pool(x, text), x, ones, create_graph=True)
    (second,) = torch.autograd.grad(gx, ones, torch.ones_like(gx))
    assert second.equal(tarn.Pool.parse(text).jvp(x.detach(), torch.ones_like(x.detach())))


def test_no_winners():
    x = torch.randn(1, 4, 4)
    for text in ("avg k2", "smooth k2", "max k2 ties=all"):
        with pytest.raises(tarn.Error, match="keeps no winners"):
            torch.ops.tarn.pool_saved(x, text)
    y, winners = torch.ops.tarn.pool_saved(x, "max k2s2")
    for wrong in (winners.int(), winners[:, :1], None):
        with pytest.raises((tarn.Error, TypeError)):
            torch.ops.tarn.pool_vjp_saved(wrong, y, [1, 4, 4], False, "max k2s2")
    assert torch.ops.tarn.pool_vjp_saved(torch.full_like(winners, 77), y, [1, 4, 4], False,
                                         "max k2s2").eq(0).all()
    empty = torch.zeros(0, 2, 4, 4, requires_grad=True)
    T.max_pool2d(empty, 2).sum().backward()
    assert empty.grad.shape == empty.shape


def test_backward_in_other_company():
    """A forward in plain eager mode whose backward is not: recorded, batched, with tangents."""
    x = torch.randn(2, 3, 6, 6, dtype=torch.float64, requires_grad=True)
    for function in (lambda z: T.max_pool2d(z, 3, 2, 1), lambda z: T.avg_pool2d(z, 3, 2, 1),
                     lambda z: T.smooth_max_pool2d(z, 2), T.global_max_pool):
        y = function(x)
        gys = torch.randn(4, *y.shape, dtype=x.dtype)
        apart = torch.stack([torch.autograd.grad(y, x, gy, retain_graph=True)[0] for gy in gys])
        assert apart.equal(torch.autograd.grad(y, x, gys, is_grads_batched=True,
                                               retain_graph=True)[0])
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(gys[0], gys[1])
            (gx,) = torch.autograd.grad(y, x, dual)
            tangent = torch.autograd.forward_ad.unpack_dual(gx).tangent
        assert tangent.equal(apart[1])


def test_neither_traces_nor_views_are_taken_for_numbers():
    x, other = torch.randn(1, 1, 4, 4), torch.randn(1, 1, 4, 4)
    for context in (torch.no_grad(), torch.enable_grad()):
        with context:
            traced = torch.jit.trace(lambda z: T.max_pool2d(z, 2) + 0, (x,), check_trace=False)
            assert traced(other).equal(F.max_pool2d(other, 2))
    negative = torch.complex(x, other).conj().imag
    assert negative.is_neg()
    for z in (negative, torch._efficientzerotensor((1, 1, 4, 4))):
        assert T.max_pool2d(z, 2).equal(F.max_pool2d(z.clone(), 2))
        assert T.adaptive_avg_pool2d(z, 2).allclose(F.adaptive_avg_pool2d(z.clone(), 2), atol=1e-6)
    z = x.clone().requires_grad_()
    y = T.max_pool2d(z, 2)
    negative = torch.complex(y.detach(), y.detach()).conj().imag
    (expected,) = torch.autograd.grad(F.max_pool2d(z, 2), z, -y.detach())
    assert torch.autograd.grad(y, z, negative)[0].equal(expected)
