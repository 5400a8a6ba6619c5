"""The compiled step of tarn.torch: when it is made, what becomes of a failure, and what it leaves to others."""

import os
import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.nn.functional as F

import tarn
import tarn.torch as T
from tarn import torch_build



@pytest.fixture(autouse=True)
def library():
    """The compiled step, which is in use before and after a test."""
    T.build()
    yield torch_build.path()
    T.build()


def is_compiled():
    """Takes a step; whether the compiled one was taken."""
    x = torch.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
    y = T.max_pool2d(x, 2)
    y.sum().backward()
    assert y.flatten().tolist() == [5, 7, 13, 15] and x.grad.sum() == 4 and x.grad[0, 0, 1, 1] == 1
    return y.grad_fn.name() == "TarnPoolBackward"


def wait(condition):
    end = time.time() + 60
    while not condition() and time.time() < end:
        time.sleep(0.02)
    return condition()


class Compiler:
    """A program that takes the words of a compiler, another cache, and no compiled step."""

    def __init__(self, folder, monkeypatch):
        self.path, self.cache, self.calls = folder / "c++", folder / "cache", folder / "calls"
        monkeypatch.setenv("CXX", str(self.path))
        monkeypatch.setenv("TARN_CACHE_DIR", str(self.cache))
        torch_build.unload()

    def does(self, commands):
        self.path.write_text("#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                             f"echo x >> {self.calls}\n{commands}\n")
        self.path.chmod(0o700)

    def times(self):
        return len(self.calls.read_text().split()) if self.calls.exists() else 0


@pytest.fixture
def compiler(tmp_path, monkeypatch, library):
    return Compiler(tmp_path, monkeypatch)


def leaf(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).requires_grad_()


FIRST = """
import os, subprocess, sys, time, torch, tarn.torch as T
from tarn import torch_build
T.max_pool2d(torch.zeros(1, 4, 4), 2)
assert not os.path.exists(os.environ["TARN_CACHE_DIR"])
x = torch.zeros(1, 4, 4, requires_grad=True)
names = []
end = time.time() + 60
while (not names or names[-1] == names[0]) and time.time() < end:
    node = T.max_pool2d(x, 2).grad_fn
    python = isinstance(node, torch.autograd.function.BackwardCFunction)
    names.append(type(node).__name__ if python else node.name())
    time.sleep(0.02)
print(*sorted(set(names)))
"""


def test_the_first_recorded_step_has_it_made(compiler, library):
    compiler.does(f"sleep 1; cp {library} $out")
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True)
    first, second = done.stdout.split()
    assert first == "TarnPoolBackward" and second.startswith("_"), done.stderr
    assert [path.name for path in compiler.cache.iterdir()] == [library.name]


def test_it_is_made_in_the_background(compiler, library):
    compiler.does(f"sleep 0.3; cp {library} $out")
    torch_build.start()
    torch_build.start()
    assert not is_compiled() and wait(is_compiled) and compiler.times() == 1
    assert [path.name for path in compiler.cache.iterdir()] == [library.name]
    torch_build.unload()
    torch_build.load_if_wanted()
    assert is_compiled()


def test_it_can_be_switched_off(compiler, library, monkeypatch):
    compiler.does(f"cp {library} $out")
    monkeypatch.setenv("TARN_TORCH_NATIVE", "0")
    torch_build.start()
    torch_build.load_if_wanted()
    assert not is_compiled() and compiler.times() == 0 and not compiler.cache.exists()


def test_a_failure_is_remembered_for_a_day(compiler, library):
    compiler.does("echo no such header; exit 1")
    torch_build.start()
    failed = compiler.cache / (library.name + ".failed")
    assert wait(failed.exists) and failed.read_text() == "no such header\n"
    assert wait(lambda: len(list(compiler.cache.iterdir())) == 1)
    torch_build.start()
    time.sleep(0.3)
    assert compiler.times() == 1 and not is_compiled()
    with pytest.raises(OSError, match="no such header"):
        T.build()
    compiler.does(f"cp {library} $out")
    os.utime(failed, (time.time() - 2 * 86400,) * 2)
    torch_build.start()
    assert wait(is_compiled) and not failed.exists()


def test_a_lock_left_behind_is_broken(compiler, library):
    compiler.does(f"cp {library} $out")
    lock = compiler.cache / (library.name + ".lock")
    lock.mkdir(parents=True)
    torch_build.start()
    time.sleep(0.3)
    assert compiler.times() == 0
    os.utime(lock, (time.time() - 3600,) * 2)
    T.build()
    assert is_compiled() and not lock.exists()


@pytest.mark.parametrize("words", ["no-such-compiler", ""])
def test_without_a_compiler(compiler, monkeypatch, words):
    monkeypatch.setenv("CXX", words)
    monkeypatch.setenv("PATH", str(compiler.cache))
    torch_build.start()
    with pytest.raises(OSError, match="no C.. compiler"):
        T.build()
    assert not is_compiled()


def test_a_cache_that_is_no_use(compiler, library, monkeypatch):
    compiler.cache.mkdir()
    (compiler.cache / library.name).write_text("not a library")
    torch_build.load_if_wanted()
    assert not is_compiled()
    compiler.does(f"cp {library} $out")
    monkeypatch.setenv("TARN_CACHE_DIR", "/proc/no/such/place")
    torch_build.start()
    assert not is_compiled() and compiler.times() == 0


def test_errors_are_tarns():
    for x, words in ((leaf(4, 4), "rank"), (leaf(1, 0, 4, 4), "empty"), (leaf(1, 1, 1, 1), "does not fit")):
        with pytest.raises(tarn.Error, match=words):
            T.max_pool2d(x, 2)
    torch_build.unload()
    for x, words in ((leaf(4, 4), "rank"), (leaf(1, 0, 4, 4), "empty"), (leaf(1, 1, 1, 1), "does not fit")):
        with pytest.raises(tarn.Error, match=words):
            T.max_pool2d(x, 2)


def test_capsules_are_checked():
    from tarn import _core
    with pytest.raises(ValueError):
        _core.torch_native(_core.torch_core())
    with pytest.raises(TypeError):
        _core.torch_native(5, 6)


def test_hooks_on_what_is_saved():
    x = leaf(1, 2, 8, 8)
    expected = torch.autograd.grad(F.max_pool2d(x, 2).sum(), x)[0]
    other = {"bytes": (lambda t: t.numpy().tobytes(),
                       lambda b: torch.frombuffer(bytearray(b), dtype=torch.uint8).reshape(1, 2, 4, 4)),
             "turned": (lambda t: t, lambda t: t.transpose(2, 3).contiguous().transpose(2, 3)),
             "subclass": (lambda t: t, lambda t: torch.nn.Parameter(t, requires_grad=False))}
    for pack, unpack in other.values():
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = T.max_pool2d(x, 2)
        assert torch.autograd.grad(y.sum(), x)[0].equal(expected)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t.long()):
        y = T.max_pool2d(x, 2)
    with pytest.raises(tarn.Error, match="winners"):
        y.sum().backward()


def test_hooks_and_other_company_of_autograd():
    x, seen = leaf(1, 2, 8, 8), []
    y = T.max_pool2d(x, 2)
    y.register_hook(lambda g: seen.append("tensor") or 2 * g)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append("node"))
    y.sum().backward()
    assert seen == ["tensor", "node"] and x.grad.sum() == 2 * y.numel()
    with torch.autograd.detect_anomaly(check_nan=True), pytest.warns(UserWarning):
        with pytest.raises(RuntimeError, match="TarnPoolBackward"):
            T.avg_pool2d(x, 2).backward(torch.full((1, 2, 4, 4), torch.nan))
    with torch.inference_mode():
        assert T.max_pool2d(x, 2).is_inference()
    with torch.autocast("cpu"):
        assert T.avg_pool2d(x, 2).dtype == torch.float32
    assert T.max_pool2d(torch.nn.Parameter(x.detach()), 2).grad_fn.name() == "TarnPoolBackward"
    for gy in (torch.ones(1, 2, 4, 4, dtype=torch.float32).expand(1, 2, 4, 4), torch.ones(()).expand(1, 2, 4, 4)):
        assert torch.autograd.grad(T.max_pool2d(x, 2), x, gy)[0].sum() == 32


def test_compiled_autograd():
    from torch._dynamo import compiled_autograd
    x, graphs = leaf(1, 2, 6, 6), []
    calls = [lambda z: T.max_pool2d(z, 2), lambda z: T.max_pool2d(z, 3), lambda z: T.avg_pool2d(z, 2),
             lambda z: T.smooth_max_pool2d(z, 2), lambda z: T.max_pool2d(z.transpose(2, 3), 2)]
    for call in 2 * calls:
        (expected,) = torch.autograd.grad(call(x).sum(), x)
        x.grad = None
        with compiled_autograd._enable(lambda graph: graphs.append(graph) or graph):
            call(x).sum().backward()
        assert x.grad.equal(expected)
    assert len(graphs) == len(calls)


def test_long_graphs_and_threads():
    x = y = leaf(1, 1, 3, 3)
    for _ in range(20000):
        y = T.max_pool2d(y, 1)
    y.sum().backward()
    assert x.grad.eq(1).all()
    del y
    gradients = {}

    def train(name):
        z = leaf(2, 3, 64, 64)
        for _ in range(20):
            z.grad = None
            T.max_pool2d(z * 1, 3, 2, 1).sum().backward()
        gradients[name] = z.grad

    threads = [threading.Thread(target=train, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = leaf(2, 3, 64, 64)
    F.max_pool2d(expected, 3, 2, 1).sum().backward()
    assert len(gradients) == 4 and all(g.equal(expected.grad) for g in gradients.values())


# ---- Threads ----


def step(x, pool):
    leaf = x.detach().requires_grad_()
    y = pool(leaf)
    y.backward(y.detach())
    return y.detach(), leaf.grad


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("pool", (lambda x: T.max_pool2d(x, 3, 2, 1), lambda x: T.avg_pool2d(x, 5, 1, 2),
                                  lambda x: T.smooth_max_pool2d(x, 3), lambda x: T.adaptive_max_pool2d(x, 7)))
def test_the_bits_do_not_depend_on_pytorchs_threads(threads, pool):
    x = torch.randn(2, 3, 150, 170)
    threads(1)
    expected = step(x, pool)
    for torchs, own in ((2, None), (3, None), (8, None), (2, 5), (1, 4)):  # where they differ, tarn has its own
        threads(torchs)
        if own:
            with tarn.threads(own):
                found = step(x, pool)
        else:
            found = step(x, pool)
        assert all(torch.equal(a, b) for a, b in zip(found, expected))


IN_PYTORCHS_THREADS = """
import os, sys, torch, tarn.torch as T

def threads():
    return len(os.listdir("/proc/self/task"))

x = torch.arange(240000.0).reshape(2, 3, 200, 200).requires_grad_()
gy = torch.ones(2, 3, 66, 66)

def step():
    # Bytes: comparing tensors would take PyTorch's threads again.
    y = T.max_pool2d(x, 3)
    (gx,) = torch.autograd.grad(y, x, gy)
    return y.detach().numpy().tobytes(), gx.numpy().tobytes()

T.build()
torch.set_num_threads(1)
expected = step()
torch.set_num_threads(2)
torch.ones(1000000).exp()  # starts PyTorch's threads
before = threads()
assert step() == expected and threads() == before, (before, threads())
child = os.fork()
if child == 0:
    try:
        os._exit(0 if step() == expected and threads() == 2 else 3)
    finally:
        os._exit(4)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_a_step_takes_pytorchs_threads_but_not_those_lost_by_a_fork():
    subprocess.run([sys.executable, "-c", IN_PYTORCHS_THREADS], check=True, timeout=120)


def test_a_cache_that_others_can_write_to_is_not_used(tmp_path, monkeypatch):
    """A module that somebody else put there would be code that we run."""
    monkeypatch.delenv("TARN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tarn").mkdir()
    for mode in 0o777, 0o770, 0o702:
        (tmp_path / "tarn").chmod(mode)
        torch_build.path().unlink(missing_ok=True)
        with pytest.raises(PermissionError, match="is not used"):
            torch_build.build()
        torch_build.start()
        torch_build.path().write_bytes(b"not even a library")
        with pytest.raises(PermissionError, match="is not used"):
            torch_build.load()
        torch_build.load_if_wanted()
        assert len(list((tmp_path / "tarn").iterdir())) == 1
    (tmp_path / "tarn").chmod(0o755)
    with pytest.raises(ImportError):
        torch_build.load()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    os.chown(tmp_path / "tarn", 54321, -1) if os.geteuid() == 0 else None
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        torch_build.load()
    monkeypatch.setenv("TARN_CACHE_DIR", str(tmp_path / "tarn"))
    with pytest.raises(ImportError):
        torch_build.load()


NO_PLACE = """
import pathlib, sys
def home():
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = home
import torch, tarn.torch as T
from tarn import compiled
if "no sources" in sys.argv:
    compiled._HERE = pathlib.Path("/nowhere")
x = torch.arange(16.0).reshape(1, 4, 4).requires_grad_()
T.max_pool2d(x, 2).sum().backward()
assert x.grad.sum() == 4
try:
    T.build()
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("what, words", [("no home", "home directory. Set TARN_CACHE_DIR"), ("no sources", "No such file")])
def test_python_takes_the_step_where_there_is(what, words, tmp_path):
    """Users without a home, as in some containers; programs that were packed without our sources."""
    env = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "TARN_CACHE_DIR")}
    if what == "no sources":
        env["TARN_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", NO_PLACE, what], capture_output=True, text=True, env=env)
    assert words in done.stdout and not done.stderr, done.stderr
