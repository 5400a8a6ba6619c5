"""Compiles torch_native.cpp, the step of tarn.torch as a node of PyTorch's autograd.

It is done once for each version of PyTorch, in the background, when a step is first recorded; the
result lies in the user's cache. Where it cannot be done (no C++ compiler, no headers, no place to
write) the step is taken in Python: the same numbers, some microseconds later. The environment
variable TARN_TORCH_NATIVE=0 switches all of it off.
"""

import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sysconfig
import threading
import time

import torch

from . import _core

_HERE = pathlib.Path(__file__).parent
_STALE = 600  # seconds after which a build that left its lock behind is taken for dead
_FAILED = 86400  # and after which one that failed is tried again: memory may have been short


def _compiler():
    """The words that start the C++ compiler, or None."""
    words = shlex.split(os.environ.get("CXX") or "c++")
    return words if words and shutil.which(words[0]) else None


def _flags():
    include = pathlib.Path(torch.__file__).parent / "include"
    folders = include, include / "torch/csrc/api/include", sysconfig.get_path("include"), _HERE
    return ["-std=c++20", "-O2", "-fPIC", "-shared", "-w", *(f"-I{folder}" for folder in folders),
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            f"-L{pathlib.Path(torch.__file__).parent / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"]


@functools.cache
def _name():
    digest = hashlib.sha256(torch.version.git_version.encode())
    for name in ("torch_native.cpp", "torch_native.h", "tarn.h"):
        digest.update((_HERE / name).read_bytes())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}{sysconfig.get_config_var('EXT_SUFFIX')}"


def path():
    """Where the compiled step lies, or will."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("TARN_CACHE_DIR") or pathlib.Path(home, "tarn"), _name())


def load():
    """Lets the compiled step take over, if it is there; says whether it has."""
    if not path().exists():
        return False
    loader = importlib.machinery.ExtensionFileLoader("torch_native", str(path()))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("torch_native", loader))
    loader.exec_module(module)
    _core.torch_native(module.connect(_core.torch_core()))
    return True


def load_if_wanted():
    if _is_wanted():
        _try_to_load()


def _is_wanted():
    return os.environ.get("TARN_TORCH_NATIVE") != "0"


def _try_to_load():
    try:
        load()
    except (OSError, ImportError):
        pass  # It was made for something else: Python takes the steps.


def unload():
    """Lets Python take the steps again."""
    _core.torch_native(None)


def _beside(end):
    return path().with_name(path().name + end)


def _is_recent(end, seconds):
    try:
        return time.time() - _beside(end).stat().st_mtime < seconds
    except OSError:
        return False


def _is_building():
    return _is_recent(".lock", _STALE)


def _start(nice=0):
    """The process that compiles; None if another one is at it, or nothing can be done. It outlives us, and
    puts the result in its place when it is whole."""
    compiler, lock = _compiler(), _beside(".lock")
    if not compiler:
        return None
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        lock.mkdir()
    except FileExistsError:
        if _is_building():
            return None
        os.utime(lock)
    part = _beside(f".{os.getpid()}")
    command = [*compiler, _HERE / "torch_native.cpp", "-o", part, *_flags()]
    script = ('part=$1 path=$2 words=$3 failed=$4 lock=$5; shift 5; '
              f'if nice -n {nice} "$@" >"$words" 2>&1; then mv "$part" "$path"; rm -f "$words" "$failed"; '
              'else mv "$words" "$failed"; fi; rmdir "$lock"')
    return subprocess.Popen(
        ["sh", "-c", script, "tarn", part, path(), _beside(".words"), _beside(".failed"), lock, *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)


def build():
    """Compiles the step now, and waits for it: for the making of images and the like.

    Raises OSError with the compiler's words if it cannot be done.
    """
    if load():
        return
    process = _start()
    if process:
        process.wait()
    elif not _compiler():
        raise OSError("there is no C++ compiler: set CXX, or install one as c++")
    while _is_building():
        time.sleep(0.1)
    if not load():
        failed = _beside(".failed")
        words = failed.read_text() if failed.exists() else "the compiler was stopped"
        raise OSError(f"torch_native.cpp was not compiled:\n{words}")


def start():
    """Compiles the step in the background, unless that has just failed. This process takes it over when it is
    ready."""
    if not _is_wanted() or _is_recent(".failed", _FAILED):
        return
    if path().exists():  # since this process began
        return _try_to_load()
    try:
        process = _start(nice=19)
    except OSError:
        return  # There is no place for it.
    if process:
        threading.Thread(target=lambda: process.wait() or _try_to_load(), daemon=True).start()
