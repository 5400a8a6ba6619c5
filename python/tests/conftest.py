import os
import pathlib
import sys

import pytest

# The compiled step of tarn.torch is kept where `make clean` finds it.
os.environ.setdefault("TARN_CACHE_DIR", str(pathlib.Path(__file__).parents[2] / "build" / "cache"))

# Idle threads of PyTorch must not spin on a core that another test needs.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=20260, help="seed of the random tests")
    parser.addoption("--cases", type=int, default=3000, help="cases of the differential test")
    parser.addoption("--kills", type=int, default=2, help="processes that the tests of pyramids kill")


@pytest.fixture
def kills(request):
    return request.config.getoption("--kills")


@pytest.fixture
def seed(request):
    return request.config.getoption("--seed")


@pytest.fixture(autouse=True)
def seeded(seed):
    """Random tensors are the same in every run, whatever ran before."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@pytest.fixture
def cases(request):
    return request.config.getoption("--cases")


@pytest.fixture(params=["compiled", "python"])
def step(request, monkeypatch):
    """Steps of tarn.torch, by the compiled node and by Python's."""
    from tarn import torch_build
    import tarn.torch
    if request.param == "compiled":
        tarn.torch.build()
    else:
        monkeypatch.setenv("TARN_TORCH_NATIVE", "0")
        torch_build.unload()
    yield request.param
    tarn.torch.build()
