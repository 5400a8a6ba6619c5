"""ONNX Runtime: one node, inputs and outputs bound to fixed memory. The graph optimiser may put
reorders to blocked channels around the node: both ways are measured, and the blocked node alone."""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from peer_call import BLOCK, Call, from_blocked, to_blocked

ELEMENT = {"f32": TensorProto.FLOAT, "u8": TensorProto.UINT8}
OPSET = 12  # MaxPool takes bytes from here on; AveragePool from 19 on runs a slower loop


def version():
    return ort.__version__


def node(problem, name, domain):
    outputs = ["y", "indices"] if name == "train" else ["y"]
    kind = {"max": "Max", "avg": "Average"}[problem.op]
    if problem.window == "global" and name == "fwd":
        return helper.make_node(f"Global{kind}Pool", ["x"], outputs, domain=domain)
    words = {"kernel_shape": list(problem.kernels), "strides": list(problem.strides), "pads": list(problem.paddings) * 2}
    if problem.op == "avg":
        words["count_include_pad"] = 1
    else:
        words["dilations"] = list(problem.dilations)
    return helper.make_node(f"{kind}Pool", ["x"], outputs, domain=domain, **words)


def model(problem, name, domain):
    n, c = problem.batch_and_channels
    element = ELEMENT[problem.dtype]
    x = helper.make_tensor_value_info("x", element, [n, c, *problem.size])
    y = helper.make_tensor_value_info("y", element, [n, c, *problem.out])
    indices = helper.make_tensor_value_info("indices", TensorProto.INT64, [n, c, *problem.out])
    graph = helper.make_graph([node(problem, name, domain)], "pool", [x], [y, indices] if name == "train" else [y])
    imports = [helper.make_opsetid("", OPSET)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    made = helper.make_model(graph, opset_imports=imports)
    made.ir_version = 8
    return made.SerializeToString()


def session(serialized, threads, optimise):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])


def bound_call(problem, name, x, threads, optimise, layout, detail):
    n, c = problem.batch_and_channels
    blocked = layout == "nChw8c"
    made = session(model(problem, name, "com.microsoft.nchwc" if blocked else ""), threads, optimise)
    memory = np.ascontiguousarray(to_blocked(x) if blocked else x).reshape(x.shape)
    y = np.zeros((n, c, *problem.out), memory.dtype)
    binding = made.io_binding()
    keep = [made, memory, y]
    def bind(value, attach, key):
        shared = ort.OrtValue.ortvalue_from_numpy(value)
        keep.append(shared)
        attach(key, shared)
    bind(memory, binding.bind_ortvalue_input, "x")
    output = ort.OrtValue.ortvalue_from_numpy(y)
    binding.bind_ortvalue_output("y", output)
    if name == "train":
        bind(np.zeros(y.shape, np.int64), binding.bind_ortvalue_output, "indices")
    def result():
        plain = output.numpy()
        return from_blocked(plain.reshape(n, c // BLOCK, *problem.out, BLOCK)) if blocked else plain
    return Call("onnxruntime", layout, lambda: made.run_with_iobinding(binding), result, detail, keep=keep + [output])


def calls(problem, name, inputs, threads):
    if problem.op not in ("max", "avg") or name == "bwd" or problem.dtype not in ELEMENT or not problem.kernels:
        return []
    found = [bound_call(problem, name, inputs.x, threads, False, "nchw", "")]
    if name == "fwd" and problem.dtype == "f32":
        found.append(bound_call(problem, name, inputs.x, threads, True, "nchw", "optimised graph"))
        if problem.spatial == 2 and problem.batch_and_channels[1] % BLOCK == 0:
            found.append(bound_call(problem, name, inputs.x, threads, False, "nChw8c", "nchwc node"))
    return found
