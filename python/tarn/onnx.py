"""A backend of ONNX whose pooling is tarn's.

MaxPool, AveragePool, LpPool, their global forms and MaxUnpool run here, in any number of spatial
axes; the other nodes of a model are left to ONNX's own reference evaluator. The module itself is
the backend: `prepare`, `run_model`, `run_node` and `supports_device` are what ``onnx.backend.base``
asks for.

>>> import numpy, onnx, tarn.onnx
>>> node = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
>>> tarn.onnx.run_node(node, [numpy.arange(16.0).reshape(1, 1, 4, 4)])[0]
array([[[[ 5.,  7.],
         [13., 15.]]]])
"""

import math

import numpy
from onnx import GraphProto, ModelProto, NodeProto
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep, Device, DeviceType
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from . import pools
from .errors import Error
from ._core import unpool as _unpool

__all__ = ["Backend", "Model", "operators", "prepare", "run_model", "run_node", "supports_device"]

# ---- Windows -------------------------------------------------------------------------------------


def _same_padding(size, extent, stride, upper):
    """What SAME_UPPER and SAME_LOWER put around an axis, so that ceil(size/stride) windows fit."""
    total = max((-(-size // stride) - 1) * stride + extent - size, 0)
    less, more = total // 2, total - total // 2
    return (less, more) if upper else (more, less)


def _padding(sizes, kernel, strides, dilations, auto_pad, pads):
    """Pairs (before, behind), one for each spatial axis."""
    if auto_pad in (None, "", "NOTSET"):
        pads = pads or [0] * (2 * len(kernel))
        return list(zip(pads[:len(kernel)], pads[len(kernel):], strict=True))
    if auto_pad == "VALID":
        return [(0, 0)] * len(kernel)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad is {auto_pad!r}")
    return [_same_padding(size, (k - 1) * d + 1, s, auto_pad == "SAME_UPPER")
            for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]


def _check_window(x, kernel, strides, dilations, pads):
    """What ONNX asks of a node's attributes: one number for each spatial axis, and a positive one."""
    axes = x.ndim - 2
    if axes < 1:
        raise Error(f"x has rank {x.ndim}, expected a batch, channels and space", "TARN_BAD_RANK")
    lists = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    for name, numbers in lists.items():
        if len(numbers) != axes:
            raise Error(f"{name} has {len(numbers)} entries, but x of rank {x.ndim} has {axes} "
                        "spatial axes")
        if min(numbers) < 1:
            raise Error(f"{name} {list(numbers)} are not positive")
    if pads and len(pads) != 2 * axes:
        raise Error(f"pads has {len(pads)} entries, expected {2 * axes}")


def _window(x, kernel_shape, strides=None, dilations=None, auto_pad=None, pads=None, ceil_mode=0,
            **unused):
    """The arguments that every sliding pool takes, from a node's attributes."""
    ones = [1] * len(kernel_shape)
    strides, dilations = strides or ones, dilations or ones
    _check_window(x, kernel_shape, strides, dilations, pads)
    padding = _padding(x.shape[2:], kernel_shape, strides, dilations, auto_pad, pads)
    # Windows of auto_pad are counted by their own rule, which leaves nothing to round.
    ceil = bool(ceil_mode) and auto_pad in (None, "", "NOTSET")
    return tuple(kernel_shape), tuple(strides), padding, tuple(dilations), ceil


def _in_whole_tensor(indices, shape, column_major):
    """Indices within each plane as ONNX has them: within the flattened tensor, planes row-major."""
    sizes = shape[2:]
    if column_major:
        at = numpy.unravel_index(numpy.maximum(indices, 0), sizes)
        inside = numpy.ravel_multi_index(at, sizes, order="F")
    else:
        inside = indices
    planes = numpy.arange(shape[0] * shape[1]).reshape(shape[:2] + (1,) * len(sizes))
    return numpy.where(indices < 0, -1, planes * math.prod(sizes) + inside)


# ---- Operators -----------------------------------------------------------------------------------
# Named as ONNX names them: that is how the evaluator finds them. Attributes come as arguments, those
# that a node does not have with the defaults of ONNX's schemas.


class MaxPool(OpRun):
    def _run(self, x, storage_order=0, **attributes):
        if storage_order not in (0, 1):
            raise Error(f"storage_order is {storage_order}, not 0 or 1")
        pool = pools.MaxPool(*_window(x, **attributes))
        if len(self.output) < 2 or not self.output[1]:
            return (pool(x),)
        y, indices = pool.forward_indices(x)
        return y, _in_whole_tensor(indices, x.shape, storage_order)


class AveragePool(OpRun):
    def _run(self, x, count_include_pad=0, **attributes):
        return (pools.AvgPool(*_window(x, **attributes), bool(count_include_pad))(x),)


class LpPool(OpRun):
    def _run(self, x, p=2, **attributes):
        return (pools.LpPool(*_window(x, **attributes), p)(x),)


class GlobalMaxPool(OpRun):
    def _run(self, x):
        return (pools.GlobalMaxPool(x.ndim - 2)(x),)


class GlobalAveragePool(OpRun):
    def _run(self, x):
        return (pools.GlobalAvgPool(x.ndim - 2)(x),)


class GlobalLpPool(OpRun):
    def _run(self, x, p=2):
        return (pools.GlobalLpPool(x.ndim - 2, p=p)(x),)


class MaxUnpool(OpRun):
    def _run(self, x, indices, output_shape=None, kernel_shape=None, pads=None, strides=None):
        axes = len(kernel_shape)
        pads, strides = pads or [0] * (2 * axes), strides or [1] * axes
        _check_window(x, kernel_shape, strides, [1] * axes, pads)
        sizes = tuple((n - 1) * s - lo - hi + k for n, k, s, lo, hi in
                      zip(x.shape[2:], kernel_shape, strides, pads[:axes], pads[axes:], strict=True))
        shape = x.shape[:2] + sizes
        # Indices count in the whole tensor, so the whole tensor is one plane with one axis.
        y = _unpool(1, x.ravel(), indices.ravel(), (math.prod(shape),), None).reshape(shape)
        return (y if output_shape is None else _enlarged(y, tuple(output_shape)),)


def _enlarged(y, shape):
    """y in the corner of zeros: indices count in the natural shape, whatever shape is asked for."""
    if len(shape) != y.ndim or any(wanted < size for wanted, size in zip(shape, y.shape)):
        raise Error(f"output_shape {shape} does not hold the natural shape {y.shape}")
    if shape[:2] != y.shape[:2]:
        raise Error(f"output_shape {shape} changes the batch or the channels of {y.shape}")
    result = numpy.zeros(shape, y.dtype)
    result[tuple(slice(size) for size in y.shape)] = y
    return result


operators = (AveragePool, GlobalAveragePool, GlobalLpPool, GlobalMaxPool, LpPool, MaxPool, MaxUnpool)
"""The operators that tarn runs, for ``ReferenceEvaluator(model, new_ops=tarn.onnx.operators)``."""

# ---- Backend -------------------------------------------------------------------------------------


class Model(BackendRep):
    """A model, or a single node, ready to run."""

    def __init__(self, proto):
        self._evaluator = ReferenceEvaluator(proto, new_ops=list(operators))

    def run(self, inputs, **unused):
        """The outputs for a list of inputs, or for a dictionary of them by name."""
        names = self._evaluator.input_names
        if not isinstance(inputs, dict):
            if isinstance(inputs, numpy.ndarray):
                inputs = [inputs]
            inputs = dict(zip(names, inputs))
        return tuple(self._evaluator.run(None, inputs))


class Backend(_Backend):
    """The classes and functions above as ``onnx.backend.base.Backend`` wants them."""

    @classmethod
    def supports_device(cls, device):
        """Whether a device such as "CPU" is one that tarn runs on."""
        return Device(device).type == DeviceType.CPU

    @classmethod
    def _check_device(cls, device):
        if not cls.supports_device(device):
            raise ValueError(f"tarn runs on the CPU, not on {device!r}")

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """Checks a model and makes it ready to run."""
        cls._check_device(device)
        if not isinstance(model, (ModelProto, GraphProto)):
            raise TypeError(f"expected a model, got {type(model).__name__}")
        super().prepare(model, device, **kwargs)
        return Model(model)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """Runs a single node on a list of inputs."""
        cls._check_device(device)
        if not isinstance(node, NodeProto):
            raise TypeError(f"expected a node, got {type(node).__name__}")
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        return Model(node).run(inputs)


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
