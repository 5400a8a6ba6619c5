import os

import pytest

# Idle threads of PyTorch must not spin on a core that another test needs.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=20260, help="seed of the random tests")
    parser.addoption("--cases", type=int, default=20000, help="cases of the differential test")
    parser.addoption("--kills", type=int, default=2, help="processes that the tests of pyramids kill")


@pytest.fixture
def kills(request):
    return request.config.getoption("--kills")


@pytest.fixture
def seed(request):
    return request.config.getoption("--seed")


@pytest.fixture
def cases(request):
    return request.config.getoption("--cases")
