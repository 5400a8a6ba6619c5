"""OpenVINO: one node, inputs and outputs bound to fixed memory."""

import numpy as np
import openvino as ov
from openvino import opset8 as operations

from peer_call import Call

core = ov.Core()


def version():
    return ov.__version__.split("-")[0]


def node(problem, x):
    strides, pads, kernel = list(problem.strides), list(problem.paddings), list(problem.kernels)
    if problem.op == "avg":
        return operations.avg_pool(x, strides, pads, pads, kernel, False, "floor", "explicit")
    return operations.max_pool(x, strides, list(problem.dilations), pads, pads, kernel, "floor", "explicit").output(0)


def calls(problem, name, inputs, threads):
    if problem.op not in ("max", "avg") or name != "fwd" or problem.dtype not in ("f32", "u8") or not problem.kernels:
        return []
    x = np.ascontiguousarray(inputs.x)
    parameter = operations.parameter(x.shape, x.dtype.type)
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(ov.Model([node(problem, parameter)], [parameter]), "CPU", settings)
    request = compiled.create_infer_request()
    y = np.zeros((*problem.batch_and_channels, *problem.out), x.dtype)
    source, target = ov.Tensor(x, shared_memory=True), ov.Tensor(y, shared_memory=True)
    request.set_input_tensor(source)
    request.set_output_tensor(target)
    keep = [compiled, request, source, target, x, y]
    return [Call("openvino", "nchw", request.infer, lambda: y, keep=keep)]
