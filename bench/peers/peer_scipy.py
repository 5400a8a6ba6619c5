"""scipy.ndimage, which has one thread, for large windows at stride 1."""

import numpy as np
import scipy
from scipy import ndimage

from peer_call import Call


def version():
    return scipy.__version__


def calls(problem, name, inputs, threads):
    one_picture = problem.batch_and_channels == (1, 1) and problem.spatial == 2
    fits = problem.stride == 1 and problem.padding == problem.kernel // 2
    if not one_picture or not fits or name != "fwd" or threads > 1 or problem.op == "smooth":
        return []
    x = inputs.x[0, 0]
    y = np.zeros(problem.out, x.dtype)
    lowest = -np.inf if problem.dtype == "f32" else 0
    function, outside = {"max": (ndimage.maximum_filter, lowest), "min": (ndimage.minimum_filter, -lowest or 255),
                         "avg": (ndimage.uniform_filter, 0)}[problem.op]
    once = lambda: function(x, problem.kernel, output=y, mode="constant", cval=outside)
    return [Call("scipy", "nchw", once, lambda: y[None, None], keep=[x, y])]
