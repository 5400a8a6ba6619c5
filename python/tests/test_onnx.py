"""ONNX's own backend tests for the operators that tarn.onnx runs, all of them, and what they leave out."""

import re
import unittest
import warnings

import numpy
import pytest

onnx = pytest.importorskip("onnx")

import tarn  # noqa: E402
import tarn.onnx  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # making ONNX's other test data overflows here and there
    import onnx.backend.test
    from onnx.backend.test.loader import load_model_tests

    POOLING = {operator.__name__ for operator in tarn.onnx.operators}
    SUITE = onnx.backend.test.BackendTest(tarn.onnx.Backend, __name__)


def _names():
    """Names of the official tests whose models pool; found by their models, not by their names."""
    found = set()
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = case.model
            if model is None:
                model = onnx.load(f"{case.model_dir}/model.onnx")
            if any(node.op_type in POOLING for node in model.graph.node):
                found.add(case.name)
    return found


NAMES = _names()
for _name in NAMES:
    SUITE.include(f"^{re.escape(_name)}_cpu$")
OFFICIAL = {name: (case, name) for case in SUITE.test_cases.values()
            for name in vars(case) if name.removesuffix("_cpu") in NAMES and name.endswith("_cpu")}


def test_the_suite_is_complete():
    assert len(OFFICIAL) == len(NAMES) >= 69
    covered = " ".join(NAMES)
    for word in ("maxpool", "averagepool", "lppool", "globalmaxpool", "globalaveragepool",
                 "maxunpool", "same_upper", "same_lower", "dilations", "ceil", "argmax"):
        assert word in covered


@pytest.mark.parametrize("name", sorted(OFFICIAL))
def test_official(name):
    case, method = OFFICIAL[name]
    result = unittest.TestResult()
    case(method).run(result)
    assert result.testsRun == 1 and not result.skipped
    assert result.wasSuccessful(), (result.failures + result.errors)[0][1]


# ---- Beyond the official tests -------------------------------------------------------------------


def run(op, *inputs, outputs=1, **attributes):
    names = [f"x{k}" for k in range(len(inputs))]
    node = onnx.helper.make_node(op, names, [f"y{k}" for k in range(outputs)], **attributes)
    results = tarn.onnx.run_node(node, list(inputs))
    return results[0] if outputs == 1 else results


def image(*shape, dtype="float32", seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("order", [0, 1])
def test_indices_lead_back_to_the_values(order):
    x = image(2, 3, 6, 5)
    y, where = run("MaxPool", x, outputs=2, kernel_shape=[3, 2], pads=[1, 0, 0, 1],
                   strides=[2, 1], storage_order=order)
    planes = x.reshape(6, 6, 5)
    flat = (planes.transpose(0, 2, 1) if order else planes).ravel()
    assert (flat[where] == y).all() and where.dtype == numpy.int64


def test_unpool_inverts_pool():
    x = image(2, 3, 4, 6)
    y, where = run("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    back = run("MaxUnpool", y, where, kernel_shape=[2, 2], strides=[2, 2])
    assert back.shape == x.shape
    assert (numpy.where(back != 0, x, 0) == back).all() and (back != 0).sum() == y.size
    larger = run("MaxUnpool", y, where, numpy.array([2, 3, 5, 7]), kernel_shape=[2, 2],
                 strides=[2, 2])
    assert larger.shape == (2, 3, 5, 7) and (larger[:, :, :4, :6] == back).all()
    with pytest.raises(tarn.Error):
        run("MaxUnpool", y, where + 1000, kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(ValueError):
        run("MaxUnpool", y, where, numpy.array([2, 3, 3, 7]), kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("shape, attributes", [
    ((1, 1, 4, 4), {"kernel_shape": [2]}), ((1, 4, 4), {"kernel_shape": [2, 2]}),
    ((1, 1, 4, 4, 4), {"kernel_shape": [2, 2]}), ((4, 4), {"kernel_shape": [2, 2]}),
    ((1, 1, 4, 4), {"kernel_shape": [2, 2], "strides": [0, 0], "auto_pad": "SAME_UPPER"}),
    ((1, 1, 4, 4), {"kernel_shape": [2, 2], "strides": [1]}),
    ((1, 1, 4, 4), {"kernel_shape": [2, 2], "dilations": [1, 0]}),
    ((1, 1, 4, 4), {"kernel_shape": [2, 2], "pads": [1, 1]}),
    ((1, 1, 4, 4), {"kernel_shape": [0, 2]})])
def test_attributes_must_fit_the_rank(shape, attributes):
    for op in ("MaxPool", "AveragePool", "LpPool"):
        with pytest.raises(tarn.Error):
            run(op, image(*shape), **attributes)


def test_more_refusals():
    x = image(1, 1, 4, 4)
    with pytest.raises(tarn.Error, match="storage_order"):
        run("MaxPool", x, outputs=2, kernel_shape=[2, 2], storage_order=2)
    y, where = run("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(tarn.Error, match="batch"):
        run("MaxUnpool", y, where, numpy.array([2, 1, 4, 4]), kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_global_lp(p):
    x = image(2, 3, 4, 5, dtype="float64")
    expected = (numpy.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p)
    assert numpy.allclose(run("GlobalLpPool", x, p=p), expected, rtol=1e-14)


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("rule", ["SAME_UPPER", "SAME_LOWER"])
def test_same_has_the_promised_size(size, stride, kernel, rule):
    x = image(1, 1, size)
    y = run("MaxPool", x, kernel_shape=[kernel], strides=[stride], auto_pad=rule, dilations=[2])
    assert y.shape == (1, 1, -(-size // stride))


def test_ceil_says_nothing_to_auto_pad():
    x = image(1, 1, 6)
    for rule, size in (("VALID", 2), ("SAME_UPPER", 3)):
        y = run("AveragePool", x, kernel_shape=[3], strides=[2], auto_pad=rule, ceil_mode=1)
        assert y.shape == (1, 1, size)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16", "int8", "uint8"])
def test_dtypes(dtype):
    wide = numpy.random.default_rng(2).integers(0, 100, (1, 2, 4, 4))
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    y = run("MaxPool", wide.astype(dtype), kernel_shape=[2, 2], strides=[2, 2])
    assert y.dtype == dtype
    assert (y.astype(int) == wide.reshape(1, 2, 2, 2, 2, 2).max((3, 5))).all()


def test_models_run_other_nodes_too():
    nodes = [onnx.helper.make_node("Relu", ["x"], ["r"]),
             onnx.helper.make_node("GlobalAveragePool", ["r"], ["y"])]
    shape = [1, 2, 4, 4]
    graph = onnx.helper.make_graph(
        nodes, "g", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 2, 1, 1])])
    x = image(*shape)
    model = tarn.onnx.prepare(onnx.helper.make_model(graph))
    expected = tarn.global_avg_pool(numpy.maximum(x, 0))
    assert (model.run([x])[0] == expected).all() and (model.run({"x": x})[0] == expected).all()


def test_refusals():
    x = image(1, 1, 4, 4)
    assert tarn.onnx.supports_device("CPU") and not tarn.onnx.supports_device("CUDA:0")
    with pytest.raises(tarn.Error, match="does not fit"):
        run("MaxPool", x, kernel_shape=[5, 5])
    with pytest.raises(ValueError, match="auto_pad"):
        run("MaxPool", x, kernel_shape=[2, 2], auto_pad="SAME")
    with pytest.raises(ValueError, match="CPU"):
        tarn.onnx.prepare(onnx.ModelProto(), "CUDA")
    with pytest.raises(TypeError, match="model"):
        tarn.onnx.prepare("model.onnx")
    with pytest.raises(TypeError, match="node"):
        tarn.onnx.run_node("MaxPool", [x])
