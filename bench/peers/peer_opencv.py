"""OpenCV: dilate, erode and boxFilter for windows at stride 1, resize for means of 2x2."""

import cv2
import numpy as np

from peer_call import Call


def version():
    return cv2.__version__


def filtered(problem, x, y):
    k = problem.kernel
    if problem.op == "avg":
        return lambda: cv2.boxFilter(x, -1, (k, k), dst=y, borderType=cv2.BORDER_CONSTANT)
    window = np.ones((k, k), np.uint8)
    function = cv2.dilate if problem.op == "max" else cv2.erode
    return lambda: function(x, window, dst=y)


def calls(problem, name, inputs, threads):
    one_picture = problem.batch_and_channels == (1, 1) and problem.spatial == 2
    if not one_picture or name != "fwd" or problem.op == "smooth" or problem.dtype not in ("f32", "u8"):
        return []
    cv2.setNumThreads(threads)
    x = inputs.x[0, 0]
    y = np.zeros(problem.out, x.dtype)
    if problem.stride == 1 and problem.padding == problem.kernel // 2:
        return [Call("opencv", "nchw", filtered(problem, x, y), lambda: y[None, None], keep=[x, y])]
    if problem.op == "avg" and problem.kernel == problem.stride == 2 and problem.padding == 0:
        resize = lambda: cv2.resize(x, problem.out[::-1], dst=y, interpolation=cv2.INTER_AREA)
        return [Call("opencv", "nchw", resize, lambda: y[None, None], "resize INTER_AREA", keep=[x, y])]
    return []


def set_threads(threads):
    cv2.setNumThreads(threads)
