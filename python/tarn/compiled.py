"""Compiles a C++ file of this package against a library that is installed here.

It is done once for each version of that library, in the background, when it would first be of use; the
result lies in the user's cache. Where it cannot be done (no C++ compiler, no headers, no place to
write) everything works without it: the same numbers, some microseconds later.
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

_HERE = pathlib.Path(__file__).parent
_STALE = 600  # seconds after which a build that left its lock behind is taken for dead
_FAILED = 86400  # and after which one that failed is tried again: memory may have been short


def _compiler():
    """The words that start the C++ compiler, or None."""
    words = shlex.split(os.environ.get("CXX") or "c++")
    return words if words and shutil.which(words[0]) else None


def _caches():
    """The user's folder of caches. A user without a name, as in some containers, may have none."""
    try:
        return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    except RuntimeError as error:
        raise OSError(f"{error} Set TARN_CACHE_DIR.") from None


class Compiled:
    """The module ``name``, of the C++ file and the header of that name. ``version`` tells the library's
    version and build, ``flags()`` gives the compiler's words for it, ``connect(module)`` lets the module
    take over. The environment variable ``switch`` = 0 switches it off."""

    def __init__(self, name, version, build, flags, connect, switch):
        self.name, self.version, self.digest = name, version, build
        self.flags, self.connect, self.switch = flags, connect, switch

    @functools.cached_property
    def file_name(self):
        digest = hashlib.sha256(self.digest.encode())
        for name in (f"{self.name}.cpp", f"{self.name}.h", "tarn.h"):
            digest.update((_HERE / name).read_bytes())
        kind = self.name.partition("_")[0]
        return f"{kind}-{self.version}-{digest.hexdigest()[:16]}{sysconfig.get_config_var('EXT_SUFFIX')}"

    def path(self):
        """Where the compiled module lies, or will."""
        return pathlib.Path(os.environ.get("TARN_CACHE_DIR") or _caches() / "tarn", self.file_name)

    def _check_folder(self):
        """Raises PermissionError if others may put a module there, whose code we would run. The folder that
        TARN_CACHE_DIR names is the user's word."""
        folder = self.path().parent
        about = folder.stat()
        if os.name != "posix" or os.environ.get("TARN_CACHE_DIR"):
            return
        if about.st_uid not in (0, os.getuid()) or about.st_mode & 0o022:
            raise PermissionError(f"{folder} is not used: it belongs to somebody else, or others may write to it")

    def load(self):
        """Lets the compiled module take over, if it is there; says whether it has."""
        if not self.path().exists():
            return False
        self._check_folder()
        loader = importlib.machinery.ExtensionFileLoader(self.name, str(self.path()))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(self.name, loader))
        loader.exec_module(module)
        self.connect(module)
        return True

    def load_if_wanted(self):
        if self._is_wanted():
            self._try_to_load()

    def _is_wanted(self):
        return os.environ.get(self.switch) != "0"

    def _try_to_load(self):
        try:
            self.load()
        except (OSError, ImportError):
            pass  # It was made for something else: we do without.

    def _beside(self, end):
        return self.path().with_name(self.path().name + end)

    def _is_recent(self, end, seconds):
        try:
            return time.time() - self._beside(end).stat().st_mtime < seconds
        except OSError:
            return False

    def _is_building(self):
        return self._is_recent(".lock", _STALE)

    def _start(self, nice=0):
        """The process that compiles; None if another one is at it, or nothing can be done. It outlives us,
        and puts the result in its place when it is whole."""
        compiler, lock, path = _compiler(), self._beside(".lock"), self.path()
        if not compiler:
            return None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_folder()
        try:
            lock.mkdir()
        except FileExistsError:
            if self._is_building():
                return None
            os.utime(lock)
        part = self._beside(f".{os.getpid()}")
        command = [*compiler, _HERE / f"{self.name}.cpp", "-o", part, "-O2", "-fPIC", "-shared", "-w",
                   f"-I{sysconfig.get_path('include')}", f"-I{_HERE}", *self.flags()]
        script = ('part=$1 path=$2 words=$3 failed=$4 lock=$5; shift 5; '
                  f'if nice -n {nice} "$@" >"$words" 2>&1; then mv "$part" "$path"; rm -f "$words" "$failed"; '
                  'else mv "$words" "$failed"; fi; rmdir "$lock"')
        return subprocess.Popen(
            ["sh", "-c", script, "tarn", part, path, self._beside(".words"), self._beside(".failed"), lock,
             *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def build(self):
        """Compiles it now, and waits for it: for the making of images and the like.

        Raises OSError with the compiler's words if it cannot be done.
        """
        if self.load():
            return
        process = self._start()
        if process:
            process.wait()
        elif not _compiler():
            raise OSError("there is no C++ compiler: set CXX, or install one as c++")
        while self._is_building():
            time.sleep(0.1)
        if not self.load():
            failed = self._beside(".failed")
            words = failed.read_text() if failed.exists() else "the compiler was stopped"
            raise OSError(f"{self.name}.cpp was not compiled:\n{words}")

    def start(self):
        """Compiles it in the background, unless that has just failed. This process takes it over when it is
        ready."""
        if not self._is_wanted() or self._is_recent(".failed", _FAILED):
            return
        try:
            if self.path().exists():  # since this process began
                return self._try_to_load()
            process = self._start(nice=19)
        except OSError:
            return  # There is no place for it, or its source was not packed.
        if process:
            threading.Thread(target=lambda: process.wait() or self._try_to_load(), daemon=True).start()
