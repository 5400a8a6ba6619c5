"""The driver: makes the plan, hands out tasks level by level, keeps the journal, and writes the image's
metadata last, so that half a pyramid is never taken for a whole one.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import math
import os
import shutil
import threading
import time

import numpy
import zarr

from . import journal as journals
from .chunks import PARTIAL, file_facts, whole_file
from .errors import RequestError, WorkError, naming
from .plan import WORKER_BYTES, make_plan, ome_attributes, shapes_of_tasks
from .source import refuse_changed
from .task import run_task


@dataclasses.dataclass(frozen=True)
class Progress:
    level: int
    tasks_done: int
    tasks: int
    bytes_done: int
    bytes: int
    seconds: float
    eta_seconds: float | None


@dataclasses.dataclass(frozen=True)
class Result:
    out: str
    shapes: tuple  # of the levels
    tasks: int
    tasks_run: int  # without those that an earlier run had done
    seconds: float


def run(source, out, request, memory, workers, scheduler, resume, overwrite, progress):
    began = time.monotonic()
    out = os.path.abspath(os.fspath(out))
    plan = make_plan(source, out, request)
    _compressors(request.codec)
    _refuse_nested(source.path, out)
    header, group = plan.as_json(), _group(plan)
    with _engine(plan, memory, workers, scheduler) as engine:
        with naming(out):
            if not _prepare(out, group, resume, overwrite):
                tasks = sum(level.count() for level in plan.levels)
                return Result(out, _shapes(plan), tasks, 0, time.monotonic() - began)
            journal = journals.Journal(out, header, resume)
        try:
            if resume:
                _sweep(out)
            counts = _work(plan, engine, journal, progress, began)
            refuse_changed(source)
            if resume or scheduler is not None:
                _sweep(out)
            _advertise(out, group)
        except BaseException:
            journal.close()
            raise
        journal.finish()
    return Result(out, _shapes(plan), *counts, time.monotonic() - began)


def _shapes(plan):
    return tuple(level.shape for level in plan.levels)


# ---- The output folder --------------------------------------------------------------------------


def _refuse_nested(source, out):
    source, out = os.path.realpath(source), os.path.realpath(out)
    if os.path.commonpath([source, out]) in (source, out):
        raise RequestError(f"{out}: lies in the input, or the input in it")


def _prepare(out, group, resume, overwrite):
    """Leaves a folder to work in; False if the pyramid is there already, whole."""
    journal = os.path.join(out, journals.NAME)
    if not os.path.lexists(out):
        os.makedirs(out)
        return True
    if resume and os.path.exists(journal):
        return True
    if resume and os.path.exists(os.path.join(out, "zarr.json")):
        with open(os.path.join(out, "zarr.json"), encoding="utf-8") as file:
            if json.load(file) != group:
                raise RequestError(f"{out}: is whole already, and made otherwise; it is not resumed")
        return False
    if os.path.isdir(out) and not os.listdir(out):
        return True
    if not overwrite:
        raise RequestError(f"{out}: is there already" + (
            " and was not begun by this command" if resume else
            "; --resume goes on, --overwrite begins anew" if os.path.exists(journal) else
            "; --overwrite replaces it"))
    _remove(out)
    os.makedirs(out)
    return True


def _remove(out):
    """Only what is zarr is removed, what names it first, so that no half of it looks whole."""
    names = ("zarr.json", ".zgroup", ".zattrs", ".zarray", journals.NAME)
    there = [os.path.join(out, name) for name in names if os.path.exists(os.path.join(out, name))]
    if not there or os.path.islink(out):
        raise RequestError(f"{out}: is not zarr, so --overwrite leaves it alone")
    for path in there:
        os.unlink(path)
    shutil.rmtree(out)


def _sweep(out):
    """Removes files that a killed run, or a killed worker of a cluster, left unfinished."""
    with naming(out):
        for folder, _, names in os.walk(out):
            for name in names:
                if name.endswith(PARTIAL):
                    os.unlink(os.path.join(folder, name))


def _group(plan):
    return json.loads(json.dumps({"zarr_format": 3, "node_type": "group",
                                  "attributes": {"ome": ome_attributes(plan)}}))


def _advertise(out, group):
    path = os.path.join(out, "zarr.json")
    with naming(path), whole_file(path) as file:
        file.write(json.dumps(group, indent=2).encode())


def _create_level(plan, number):
    """The metadata of a level's array; the same bytes each time."""
    level, source = plan.levels[number], plan.source
    facts = {"fill_value": numpy.zeros((), source.dtype)[()]}
    array = zarr.open_array(source.path, mode="r") if source.kind == "zarr" else None
    if array is not None and array.fill_value is not None:
        facts["fill_value"] = array.fill_value
    if plan.request.codec != "auto":
        facts["compressors"] = _compressors(plan.request.codec)
    elif array is not None and array.metadata.zarr_format == 3 and not source.foreign:
        facts |= {"filters": array.filters, "serializer": array.serializer,
                  "compressors": array.compressors}
    path = os.path.join(plan.out, str(number))
    if not os.path.exists(os.path.join(path, "zarr.json")):
        zarr.create_array(path, shape=level.shape, dtype=source.dtype, chunks=level.chunks,
                          shards=level.shards, zarr_format=3,
                          dimension_names=[axis["name"] for axis in source.axes], **facts)


def _compressors(codec):
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec
    makers = {"zstd": lambda n: ZstdCodec(level=n), "gzip": lambda n: GzipCodec(level=n),
              "blosc": lambda n: BloscCodec(clevel=n, cname="zstd")}
    name, _, level = str(codec).partition(":")
    if codec in ("auto", "none"):
        return None
    try:
        number = int(level or {"zstd": 0, "gzip": 5, "blosc": 5}[name])
        if name == "blosc" and not 0 <= number <= 9:
            raise ValueError(number)
        return [makers[name](number)]
    except (KeyError, ValueError):
        raise RequestError(f"codec: {codec!r} is none of auto, none, zstd, gzip, blosc, "
                           "the last three perhaps with a level: zstd:5") from None


# ---- The work -----------------------------------------------------------------------------------


def _work(plan, engine, journal, progress, began):
    """Runs what is not done, level after level; (tasks, tasks run)."""
    done = {task for task, line in journal.done.items() if _is_there(plan, task, line)}
    size = numpy.dtype(plan.source.dtype).itemsize
    cost = [math.prod(level.unit) * (1 + math.prod(level.step)) * size for level in plan.levels]
    count = [level.count() for level in plan.levels]
    total, tasks = sum(n * c for n, c in zip(count, cost)), sum(count)
    finished, moved, started = len(done), sum(cost[level] for level, _ in done), 0
    before = moved

    def finish(line):
        nonlocal started, finished, moved
        with naming(journal.path):
            journal.add(line)
        started, finished, moved = started + 1, finished + 1, moved + cost[line["level"]]
        if progress is not None:
            seconds = time.monotonic() - began
            eta = (total - moved) * seconds / (moved - before)
            progress(Progress(line["level"], finished, tasks, moved, total, seconds, eta))

    for number in range(len(plan.levels)):
        with naming(f"level {number}, key {number}/zarr.json"):
            _create_level(plan, number)
        if number > 0 or not engine.shapes.joined:
            engine.run(_tasks(plan, number, engine.shapes.joined, done), finish)
    return tasks, started


def _tasks(plan, number, joined, done):
    """The tasks of a level, each with those of its units that are not done."""
    for unit in plan.levels[number].units():
        units = [(number, unit)]
        if joined and number == 1:
            units += [(0, child) for child in plan.children(unit)]
        left = [unit for unit in units if unit not in done]
        if left:
            yield (number, unit), left


def _is_there(plan, task, line):
    """Whether the file of a finished task is what the journal says it was."""
    level, unit = task
    key = "/".join(["c", *map(str, unit)])
    return file_facts(os.path.join(plan.out, str(level), key)) == (line["bytes"], line["crc32c"])


# ---- Who runs the tasks -------------------------------------------------------------------------


@contextlib.contextmanager
def _engine(plan, memory, workers, scheduler):
    if scheduler is not None:
        with _cluster(scheduler) as (executor, threads):
            budget = memory // threads - WORKER_BYTES
            yield Cluster(plan, executor, threads, shapes_of_tasks(plan, budget, threads))
    else:
        yield Threads(plan, *_share(plan, memory - WORKER_BYTES, workers))


def _share(plan, memory, workers):
    """How many threads, as many as memory has room for, and the shapes of their tasks."""
    if workers is not None:
        if workers < 1:
            raise RequestError(f"workers: {workers} is not positive")
        return workers, shapes_of_tasks(plan, memory // workers, workers)
    most = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
               max(level.count() for level in plan.levels))
    for workers in range(most, 1, -1):
        with contextlib.suppress(RequestError):
            return workers, shapes_of_tasks(plan, memory // workers, workers)
    return 1, shapes_of_tasks(plan, memory, 1)


@contextlib.contextmanager
def _cluster(scheduler):
    try:
        from distributed import Client
    except ImportError:
        raise RequestError("scheduler: dask's distributed is not installed") from None
    try:
        client = Client(scheduler, timeout=20)
    except (OSError, ValueError) as error:
        raise RequestError(f"scheduler: {scheduler}: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise RequestError(f"scheduler: {scheduler} has no workers")
        yield client.get_executor(pure=False), threads


class Threads:
    """Tasks in threads of this process: what takes time lets go of the interpreter."""

    def __init__(self, plan, workers, shapes):
        self._plan, self._workers, self.shapes = plan, workers, shapes

    def run(self, tasks, finish):
        """Calls `finish` with the line of each unit, in one thread at a time, before that thread begins
        another: so a killed process has at most one a worker that is done and not in the journal.
        After a failure units that are under way are waited for."""
        failures, lock = [], threading.Lock()

        def work():
            try:
                while not failures:
                    with lock:
                        task = next(tasks, None)
                    if task is None:
                        return
                    for line in run_task(self._plan, *task, self.shapes):
                        with lock:
                            finish(line)
                        if failures:
                            return
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(self._workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:  # an interrupt
            failures.insert(0, error)
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]


class Cluster:
    """Tasks on a cluster, one under way for each of its threads. It replaces workers that die."""

    def __init__(self, plan, executor, workers, shapes):
        self._plan, self._executor, self._workers, self.shapes = plan, executor, workers, shapes

    def run(self, tasks, finish):
        failure, running = None, {}
        while True:
            while failure is None and len(running) < self._workers:
                task = next(tasks, None)
                if task is None:
                    break
                running[self._executor.submit(_lines, self._plan, *task, self.shapes)] = task
            if not running:
                break
            finished, _ = concurrent.futures.wait(running, None, concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                (level, unit), _ = running.pop(future)
                try:
                    for line in future.result():
                        finish(line)
                except (WorkError, RequestError) as error:
                    failure = failure or error
                except Exception as error:
                    failure = failure or WorkError(f"level {level}, unit {unit}: {error!r}")
        if failure is not None:
            raise failure


def _lines(*task):
    return list(run_task(*task))
