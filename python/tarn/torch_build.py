"""The step of tarn.torch as a node of PyTorch's autograd (torch_native.cpp), compiled when a step is first
recorded; see compiled.py. Until then Python takes the steps."""

import pathlib

import torch

from . import _core
from .compiled import Compiled


def _flags():
    home = pathlib.Path(torch.__file__).parent
    include = home / "include"
    return ["-std=c++20", f"-I{include}", f"-I{include / 'torch/csrc/api/include'}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            f"-L{home / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"]


def _connect(module):
    _core.torch_native(module.connect(_core.torch_core()))


def unload():
    """Lets Python take the steps again."""
    _core.torch_native(None)


_step = Compiled("torch_native", torch.__version__, torch.version.git_version, _flags, _connect,
                 "TARN_TORCH_NATIVE")
path, load, load_if_wanted, build, start = (_step.path, _step.load, _step.load_if_wanted, _step.build,
                                            _step.start)
