"""Every kind of tensor is pooled rightly or refused, and so is every way to trace."""

import contextlib
import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tarn
import tarn.torch as T

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
torch.set_num_threads(1)
both_steps = pytest.mark.usefixtures("step")


def image(seed=0, shape=(2, 3, 6, 6)):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


class Subclass(torch.Tensor):
    pass


def negative():
    return torch.complex(image(1), image(2)).conj().imag


EQUAL = {"negative": negative, "zero": lambda: torch._efficientzerotensor((2, 3, 6, 6)),
         "subclass": lambda: image().as_subclass(Subclass), "parameter": lambda: nn.Parameter(image()),
         "lazy clone": lambda: torch._lazy_clone(image()), "expanded": lambda: image()[:1].expand(2, 3, 6, 6)}
REFUSED = {"complex": lambda: torch.complex(image(1), image(2)),
           "conjugate": lambda: torch.complex(image(1), image(2)).conj(), "boolean": lambda: image() > 0,
           "sparse": lambda: image().to_sparse(),
           "quantised": lambda: torch.quantize_per_tensor(image(), 0.1, 0, torch.quint8),
           "nested": lambda: torch.nested.nested_tensor([image()[0], image()[1]]),
           "jagged": lambda: torch.nested.nested_tensor([image()[0], image()[1]], layout=torch.jagged)}
FUNCTIONS = {"max_pool2d": (3, 2, 1), "avg_pool2d": (3, 2, 1), "adaptive_max_pool2d": (2,),
             "adaptive_avg_pool2d": (2,)}


@both_steps
@pytest.mark.parametrize("kind", EQUAL)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_unusual_tensors(kind, name):
    x, arguments = EQUAL[kind](), FUNCTIONS[name]
    expected = getattr(F, name)(x, *arguments)
    assert torch.allclose(getattr(T, name)(x, *arguments), expected)
    assert type(getattr(T, name)(x, *arguments)) is type(expected)
    with T.patch():
        assert torch.allclose(getattr(F, name)(x, *arguments), expected)


@both_steps
@pytest.mark.parametrize("kind", REFUSED)
def test_refused_tensors(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = REFUSED[kind]()
    for name, arguments in FUNCTIONS.items():
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(T, name)(x, *arguments)
    with pytest.raises((tarn.Error, BufferError, RuntimeError)):
        tarn.max_pool2d(x, 2)


@pytest.mark.parametrize("x", [[[1.0]], None, numpy.zeros((1, 1, 4, 4))])
def test_what_is_no_tensor_is_named(x):
    calls = (lambda: T.max_pool2d(x, 2), lambda: T.adaptive_avg_pool2d(x, 2), lambda: T.global_max_pool(x),
             lambda: T.pool(tarn.MaxPool(2), x), lambda: T.max_unpool2d(x, x, 2))
    for call in calls:
        with pytest.raises(TypeError, match=f"{type(x).__name__}, not a tensor"):
            call()
    with T.patch(), pytest.raises(TypeError, match="must be Tensor"):
        F.max_pool2d(x, 2)


@both_steps
def test_the_negative_bit_is_refused_where_it_cannot_be_seen():
    for call in (lambda x: tarn.max_pool2d(x, 2), tarn.MaxPool(2), lambda x: tarn.pad(x, (1, 1))):
        with pytest.raises(BufferError, match="negative bit"):
            call(negative())
    x = image().requires_grad_()
    gy = torch.complex(image(3, (2, 3, 3, 3)), image(4, (2, 3, 3, 3))).conj().imag
    (gx,) = torch.autograd.grad(T.max_pool2d(x, 2), x, gy)
    assert torch.equal(gx, torch.autograd.grad(F.max_pool2d(x, 2), x, gy)[0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = T.MaxPool2d(2), nn.AvgPool2d(2, 1)

    def forward(self, x):
        return self.second(self.first(x)) + T.global_max_pool(x) + F.max_pool2d(x, 2)[..., 1:, 1:]


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("trace", ["jit", "fx", "export", "make_fx"])
def test_traces_follow_their_input(trace, patched):
    net, x, other = Net(), image(1), image(2)
    expected = net(other)
    with T.patch() if patched else warnings.catch_warnings(), torch.no_grad():
        if not patched:
            warnings.simplefilter("ignore")
        if trace == "jit":
            traced = torch.jit.trace(net, (x,))
        elif trace == "fx":
            traced = torch.fx.symbolic_trace(net)
        elif trace == "export":
            traced = torch.export.export(net, (x,)).module()
        else:
            traced = torch.fx.experimental.proxy_tensor.make_fx(net)(x)
    assert torch.allclose(traced(other), expected) and torch.allclose(traced(x), net(x))
    assert not torch.allclose(traced(other), traced(x))


def exported(net, path, dynamo):
    """The model of ONNX that a net becomes; its results are compared on two inputs."""
    onnx, _ = pytest.importorskip("onnx"), pytest.importorskip("onnxscript")
    from onnx.reference import ReferenceEvaluator
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (image(1),), str(path), dynamo=dynamo, opset_version=18)
    model = onnx.load(str(path))
    for x in (image(1), image(2)):
        (y,) = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(y), net(x))
    return {node.op_type for node in model.graph.node}


class Pools(nn.Module):
    """What ONNX has nodes for."""

    def forward(self, x):
        a = T.avg_pool2d(T.max_pool2d(x, 3, 2, 1, ceil_mode=True), 2, 1, 1, count_include_pad=False)
        b = T.global_max_pool(x) - T.global_min_pool(x) + T.pool(tarn.GlobalAvgPool(2), x)
        return a.sum() + b + T.min_pool2d(x, 2, 2, dilation=2).sum() + T.adaptive_avg_pool2d(x, (2, 3))[..., :1, :1]


def refusal(expected):
    return pytest.raises(Exception, match="No ONNX function found for .*pool") if expected else contextlib.nullcontext()


@pytest.mark.parametrize("dynamo", [False, True])
def test_models_become_onnx_pools(tmp_path, dynamo):
    # The new exporter of PyTorch 2.6 and 2.7 does not say that it is at work: tarn's operators stop it.
    with refusal(dynamo and TORCH < (2, 8)):
        assert {"MaxPool", "AveragePool"} <= exported(Pools(), tmp_path / "net.onnx", dynamo)
    # It has learnt PyTorch's adaptive max later.
    with refusal(dynamo and torch.ops.aten.adaptive_max_pool2d.default not in torch._decomp.decomposition_table):
        exported(T.AdaptiveMaxPool2d((2, 3)), tmp_path / "adaptive.onnx", dynamo)


@pytest.mark.parametrize("dynamo", [False, True])
def test_patched_models_become_onnx_pools(tmp_path, dynamo):
    net = nn.Sequential(nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.AvgPool2d(2, 1, 1, count_include_pad=False))
    with T.patch(), refusal(dynamo and TORCH < (2, 7)):
        assert {"MaxPool", "AveragePool"} <= exported(net, tmp_path / "net.onnx", dynamo)


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("pool", [tarn.SmoothMaxPool(2), tarn.LpPool(2), tarn.AvgPool(2, skip=0),
                                  tarn.MaxPool(2, padding=((0, 1), (0, 1)))])
def test_what_onnx_has_no_node_for_is_refused(tmp_path, pool, dynamo):
    net = nn.Sequential()
    net.forward = lambda x: T.pool(pool, x)
    # PyTorch's new exporter tries in several ways and has the last word.
    words = "No ONNX function found for .*tarn.pool" if dynamo else "no node of ONNX means the same"
    with pytest.raises(Exception, match=words):
        exported(net, tmp_path / "net.onnx", dynamo)


@both_steps
def test_meta_and_fake_tensors_have_the_shape_only():
    y = T.max_pool2d(torch.empty(1, 2, 7, 7, device="meta"), 3, 2)
    assert y.is_meta and y.shape == (1, 2, 3, 3)
    with torch._subclasses.FakeTensorMode():
        y = T.adaptive_avg_pool2d(torch.empty(1, 2, 7, 7), (3, None))
    assert y.shape == (1, 2, 3, 7)


@both_steps
def test_overriding():
    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.append(function.__name__)
            return function(*args, **(kwargs or {}))

    names, x = [], image()
    with Seen():
        T.max_pool2d(x, 2)
        T.adaptive_lp_pool2d(x, 2, 2)
    assert names == ["max_pool2d", "adaptive_lp_pool2d"]


@both_steps
def test_patch_leaves_out_to_pytorch():
    y = torch.empty(2, 3, 3, 3)
    with T.patch():
        assert F.avg_pool2d(image(), 2, out=y) is y
    assert torch.equal(y, F.avg_pool2d(image(), 2))


@both_steps
def test_patch_has_pytorchs_words_for_what_is_wrong():
    x = image()
    wrong = {lambda: F.max_pool2d(x, 2, 0), lambda: F.avg_pool2d(x, 9), lambda: F.avg_pool2d(x, "2"),
             lambda: F.max_pool2d(x[:, :0], 2), lambda: F.adaptive_avg_pool2d(x[0, 0], 2),
             lambda: F.max_unpool2d(x, x.long(), [1, 1, 1])}
    for call in wrong:
        with pytest.raises(Exception) as theirs:
            call()
        with T.patch(), pytest.raises(Exception) as ours:
            call()
        assert type(ours.value) is type(theirs.value) and str(ours.value) == str(theirs.value)
    with T.patch():  # PyTorch has a result where tarn has none
        assert F.adaptive_avg_pool2d(x, 0).shape == (2, 3, 0, 0)
        assert torch.allclose(F.avg_pool2d(x, 2, divisor_override=-1), -4 * F.avg_pool2d(x, 2))


@pytest.mark.parametrize("module", [nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2),
                                    nn.AdaptiveMaxPool2d(2), nn.MaxPool2d(2, return_indices=True)], ids=repr)
def test_scripted_models_have_pytorchs_pools(module):
    expected = torch.jit.script(module)
    with T.patch():
        scripted = torch.jit.script(module)
    for seed in (1, 2):
        torch.testing.assert_close(scripted(image(seed)), expected(image(seed)), rtol=0, atol=0)


LAYOUTS = {"channels last": lambda x: x.movedim(-1, 1), "unbatched": lambda x: x.movedim(-1, 1)[0],
           "sliced": lambda x: x.movedim(-1, 1)[:, ::2], "row-major": lambda x: x}


@both_steps
@pytest.mark.parametrize("ndim", (1, 2, 3))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators_lay_results_out_as_eager_mode_does(layout, ndim):
    x = LAYOUTS[layout](image(1, (2, *(6, 5, 4)[:ndim], 8)))
    name, ends = f"max_pool{ndim}d", f"max k2s1 d{ndim}"
    y = getattr(T, name)(x, 2, 1)
    for other in (torch.ops.tarn.pool(x, ends), torch.ops.tarn.pool_indices(x, ends)[1],
                  getattr(T, name)(x.clone().as_strided(x.shape, x.stride(), 0).requires_grad_(), 2, 1,
                                   return_indices=True)[0] if layout != "sliced" else y):
        assert other.stride() == y.stride()
    leaf = x.detach().requires_grad_()
    (eager,) = torch.autograd.grad(getattr(T, name)(leaf, 2, 1), leaf, y)
    (through,) = torch.autograd.grad(torch.ops.tarn.pool(leaf, ends), leaf, y)
    assert torch.equal(eager, through) and eager.stride() == through.stride()


PRIVATE = {torch._jit_internal: ["boolean_dispatched"],
           torch._C: ["_AutoDispatchBelowAutograd", "_are_functorch_transforms_active", "_get_tracing_state",
                      "_is_torch_function_mode_enabled", "_len_torch_dispatch_stack"],
           torch._functorch.utils: ["enable_single_level_autograd_function"],
           torch.autograd.forward_ad: ["_current_level", "_set_fwd_grad_enabled"],
           torch.autograd.function: ["_SingleLevelFunction"],
           torch.autograd.Function: ["_backward_cls", "_compiled_autograd_key"], nn.modules.pooling: ["_MaxPoolNd"]}


def test_private_names_that_are_used_exist():
    """A failure here means that PyTorch has changed, and that tarn/torch.py must follow."""
    gone = [(owner, name) for owner, names in PRIVATE.items() for name in names
            if not hasattr(owner, name)]
    assert not gone
    assert torch.autograd.forward_ad._current_level < 0
    assert "apply" in vars(T._Step._backward_cls)


def test_the_rest_is_pytorchs():
    assert T.relu is F.relu and T.pad is F.pad
    with pytest.raises(AttributeError, match="no_such"):
        T.no_such


@both_steps
@pytest.mark.parametrize("name", ["lp_pool2d", "adaptive_lp_pool2d", "adaptive_smooth_max_pool2d",
                                  "adaptive_min_pool2d", "global_min_pool", "global_smooth_max_pool",
                                  "global_lp_pool"])
def test_every_operator_has_gradients_and_a_module(name):
    x = image(5, (1, 2, 4, 4)).double().requires_grad_()
    lp, shape = "lp_" in name, () if "global" in name else (2,)
    arguments = ((3,) if lp else ()) + shape
    function = getattr(T, name)
    assert torch.autograd.gradcheck(lambda v: function(v, *arguments), x)
    expected = getattr(tarn, name)(x.detach(), *arguments)
    assert torch.equal(function(x, *arguments), expected)
    module = getattr(T, "".join(map(str.capitalize, name.split("_"))))(*arguments)
    assert torch.equal(module(x), expected) and torch.equal(copy.deepcopy(module)(x), expected)
    assert torch.equal(pickle.loads(pickle.dumps(module))(x), expected)
    assert torch.equal(torch.func.vmap(lambda v: function(v, *arguments))(x[None])[0], expected)


def test_second_derivatives_of_lp_are_refused():
    x = image(5, (1, 2, 4, 4)).requires_grad_()
    (gx,) = torch.autograd.grad(T.lp_pool2d(x, 3, 2).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="Lp"):
        gx.sum().backward()


@both_steps
@pytest.mark.parametrize("shape", [(2, 8, 6, 6), (8, 6, 6), (1, 8, 4, 6, 6)])
@pytest.mark.parametrize("cut", [slice(None), slice(None, None, 2)])
def test_the_layout_does_not_depend_on_gradients(shape, cut):
    ndim = 3 if len(shape) == 5 else 2
    axis = len(shape) - ndim - 1
    last = image(3, (*shape[:axis], *shape[axis + 1:], shape[axis])).movedim(-1, axis)
    x = last[(slice(None),) * axis + (cut,)]
    pool = getattr(T, f"max_pool{ndim}d")
    recorded = last.clone().requires_grad_()[(slice(None),) * axis + (cut,)]
    assert pool(x, 2).stride() == pool(recorded, 2).stride()
    if len(shape) == 4:
        assert pool(x, 2).is_contiguous(memory_format=torch.channels_last)
        assert torch.ops.tarn.pool(x, "max k2s2").stride() == pool(x, 2).stride()


def test_the_functions_below_check_for_themselves():
    from tarn import _core
    x = image()
    with pytest.raises(TypeError, match="step"):
        _core.torch_forward(None, x, 5)
    node = type("Node", (), {"step": 5, "saved_tensors": ()})()
    with pytest.raises(TypeError, match="step"):
        _core.torch_backward(node, x)


def test_unpool_refuses_what_it_cannot_do():
    x, where = torch.zeros(1, 1, 2, 2, 2), torch.zeros(1, 1, 2, 2, 2, dtype=torch.int64)
    for call in (lambda: T.max_unpool3d(x, where, [1, 1]), lambda: tarn.max_unpool3d(x, where, ()),
                 lambda: T.max_unpool3d(x, where, 2, padding=5)):
        with pytest.raises(tarn.Error):
            call()


THREADS = """
import os, torch, tarn.torch
torch.set_num_threads(4)
x, before = torch.randn(1, 64, 64, 64), len(os.listdir("/proc/self/task"))
y = tarn.torch.max_pool2d(x, 3)
after = len(os.listdir("/proc/self/task"))
torch.set_num_threads(1)
assert torch.equal(tarn.torch.max_pool2d(x, 3), y) and after == before + 3, (before, after)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_threads_follow_pytorch():
    assert run(THREADS).returncode == 0, run(THREADS).stderr


@pytest.mark.parametrize("bridge, library", [("torch", "torch"), ("onnx", "numpy"), ("pyramid", "numpy"),
                                              ("pyramid", "zarr"), ("pyramid", "google_crc32c")])
def test_a_missing_library_is_named(bridge, library):
    program = f"import sys; sys.modules['{library}'] = None\nimport tarn\ntarn.{bridge}"
    assert f"pip install 'tarn-pooling[{bridge}]'" in run(program).stderr


def test_the_command_line_names_a_missing_library():
    done = run("import runpy, sys; sys.modules['zarr'] = None; sys.argv[1:] = ['pyramid', 'a', 'b']\n"
               "runpy.run_module('tarn', run_name='__main__')")
    assert done.returncode == 1 and done.stderr.startswith("tarn: tarn.pyramid needs"), done.stderr
