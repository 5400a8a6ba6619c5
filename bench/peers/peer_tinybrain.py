"""tinybrain: means of 2x2, for pyramids of large pictures. It allocates its results."""

from importlib import metadata

import numpy as np
import tinybrain

from peer_call import Call


def version():
    return metadata.version("tinybrain")


def calls(problem, name, inputs, threads):
    pyramid = problem.op == "avg" and problem.kernel == problem.stride == 2 and problem.padding == 0
    if not pyramid or len(problem.shape) != 2 or name != "fwd" or threads > 1:
        return []
    x = np.asfortranarray(inputs.x[0, 0][:, :, None])
    once = lambda: tinybrain.downsample_with_averaging(x, (2, 2, 1))
    return [Call("tinybrain", "nchw", once, lambda: once()[0][None, None, :, :, 0], keep=[x])]
