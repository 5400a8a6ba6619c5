"""Times tarn beside other libraries, in one process, on the same values, in turn, round by round.

usage: run_peers.py --build DIR --csv FILE [--seconds S] [--quick] [--threads N] [--peers a,b] [ROW]...

Every result is first compared with tarn's, element by element; a peer whose values differ is named
and not timed. docs/performance.md says what is timed and how to read it.
"""

import argparse
import csv
import gc
import importlib
import math
import os
import statistics
import subprocess
import sys
import time

# glibc would return large blocks to the system and fault them in again in every call that
# allocates its result: peers shall not pay for that. Spinning threads of one library shall not
# slow down the next for long.
ENVIRONMENT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "2000000000", "MALLOC_TOP_PAD_": "67108864",
               "OMP_DYNAMIC": "false"}
if __name__ == "__main__" and os.environ.get("MALLOC_MMAP_MAX_") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ENVIRONMENT})

import numpy as np

import peer_native
import tarn_case
from peer_call import Call, Inputs
from peer_problem import parse

COLUMNS = "row pass threads who layout median_ns min_ns max_ns rounds bytes error detail".split()
MODULES = ["torch", "onnxruntime", "openvino", "opencv", "scipy", "tinybrain"]
NATIVE = {"onednn": peer_native.onednn, "xnnpack": peer_native.xnnpack}
TENSOR_LIBRARIES = {"torch", "onnxruntime", "openvino", "onednn", "xnnpack"}  # every tap of every window is looked at
MOST_TAPS = 3e8  # beyond it a call of theirs takes seconds
SLOW_NS, VERY_SLOW_NS = 60e6, 300e6  # calls that take longer are sampled three times, or once
MOST_ROUNDS = 31
SETTLE_SECONDS = 0.004  # for threads that still spin


def note(*words):
    print(*words, file=sys.stderr, flush=True)


def load_peers(names, directory):
    """Those that are installed, and a word on those that are not."""
    peers = {}
    for name in names:
        try:
            peers[name] = NATIVE[name](directory) if name in NATIVE else importlib.import_module(f"peer_{name}")
        except (ImportError, OSError) as problem:
            note(f"{name} is left out: {problem}")
    return peers


def list_rows(build, wanted):
    text = subprocess.run([os.path.join(build, "bench", "bench"), "--list", *wanted], check=True, text=True,
                          capture_output=True).stdout
    return [line.split(",") for line in text.splitlines()]


# ---- What is compared ----


def floats(array, dtype):
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def interior(problem):
    """Outputs whose windows lie inside x altogether."""
    def inside(n, out, k, s, p):
        first = np.arange(out) * s - p
        return (first >= 0) & (first + k <= n)
    masks = [inside(*axis, problem.padding) for axis in zip(problem.size, problem.out, problem.kernels, problem.strides)]
    return np.ix_(*masks)


def tolerance(problem, name):
    """Of the difference to tarn: none where nothing is rounded, else some units in the last place of the greatest value;
    means of integers may round a half the other way, or down."""
    if problem.op in ("max", "min") and name != "bwd":
        return 0.0
    overlap = 1 if name != "bwd" or not problem.kernels else math.prod(
        -(-k // s) for k, s in zip(problem.kernels, problem.strides))  # terms of a sum over windows, at most 1 each
    return {"f32": 4e-6, "bf16": 0.02, "u8": 1.0}[problem.dtype] * overlap


def greatest_difference(call, expected, problem):
    """Of the elements, batch by batch to spare memory; nan if there is one on one side only."""
    n_c = problem.batch_and_channels
    size = expected.shape[-problem.spatial:]
    found, expected = call.result().reshape(*n_c, *size), expected.reshape(*n_c, *size)
    difference = 0.0
    for f, e in zip(found, expected):
        if call.interior_only:
            f, e = (a[(slice(None), *interior(problem))] for a in (f, e))
        if not np.array_equal(f, e):
            difference = np.maximum(difference, np.abs(floats(f, problem.dtype) - floats(e, problem.dtype)).max())
    return difference


def error_of(call, reference, problem):
    elements, values = reference
    result = call.result()
    at = np.unravel_index(elements, result.shape)  # an index: flattening would copy a strided result
    found = floats(result[at], problem.dtype)
    if call.interior_only:
        keep = np.zeros(result.shape, bool)
        keep[(slice(None), slice(None), *interior(problem))] = True
        found, values = found[keep[at]], values[keep[at]]
    greatest = np.abs(values).max(initial=0)
    return float(np.abs(found - values).max(initial=0) / greatest) if greatest > 0 else 0.0


# ---- Measuring ----


class Timed:
    """A call, how often to repeat it, and its times."""

    def __init__(self, name, tarn_pass, threads, call, bytes_moved, error):
        self.name, self.tarn_pass, self.threads, self.call = name, tarn_pass, threads, call
        self.bytes, self.error, self.ns = bytes_moved, error, []

    def calibrate(self, sample_ns):
        self.repeats = 1
        while (once := self.call.run(self.repeats)) < sample_ns / 2:
            self.repeats *= 2 if once > sample_ns / 100 else 10
        per_call = once / self.repeats
        self.most_rounds = 1 if per_call > VERY_SLOW_NS else 3 if per_call > SLOW_NS else MOST_ROUNDS

    def sample(self):
        if self.repeats > 1:
            self.call.run(1)
        self.ns.append(self.call.run(self.repeats) / self.repeats)

    def line(self, row, suffix):
        return [row, self.name + suffix, self.threads, self.call.who, self.call.layout,
                f"{statistics.median_low(self.ns):.2f}", f"{min(self.ns):.2f}", f"{max(self.ns):.2f}", len(self.ns),
                self.bytes, f"{self.error:.3g}", self.call.detail]


def measure(timed, peers, rounds, sample_ns, patience):
    """All of them in turn; threads of libraries that keep their number in a global are set before each."""
    begin = time.monotonic()
    def settle(t):
        peer = peers.get(t.call.who)
        if hasattr(peer, "set_threads"):
            peer.set_threads(t.threads)
        if t.threads > 1:
            time.sleep(SETTLE_SECONDS)
    for t in timed:
        settle(t)
        t.calibrate(sample_ns)
    for turn in range(rounds):
        if turn >= 3 and time.monotonic() - begin > patience:
            break
        for t in timed:
            if turn < t.most_rounds:
                settle(t)
                t.sample()


# ---- One row ----


def tarn_call(case, tarn_pass, threads):
    many = lambda repeats: case.run(tarn_pass, threads, repeats)
    operand = {tarn_case.VJP: tarn_case.GX, tarn_case.VJP_SAVED: tarn_case.GX}.get(tarn_pass, tarn_case.Y)
    return Call("tarn", case.layout, None, lambda: case.array(operand), many=many)


def bound_calls(case, tarn_pass, threads):
    return [Call("bound", "-", None, None, detail,
                 many=lambda repeats, bypass=bypass: case.bound(tarn_pass, threads, bypass, repeats))
            for bypass, detail in ((False, "plain stores"), (True, "stores past the caches"))]


def refuses(who, problem, name, trouble):
    note(f"  {who} does not do {problem.text} {name}: {str(trouble).splitlines()[0][:100]}")


def takes_too_long(who, problem, sweep):
    if sweep:
        return who in TENSOR_LIBRARIES or who == "scipy"  # there it is OpenCV that is fast
    taps = math.prod(problem.leading) * math.prod(problem.out) * math.prod(problem.kernels or [1])
    return who in TENSOR_LIBRARIES and taps > MOST_TAPS


def peer_calls(peers, problem, name, inputs, threads, sweep):
    for who, peer in peers.items():
        if takes_too_long(who, problem, sweep):
            continue
        try:
            yield from peer.calls(problem, name, inputs, threads)
        except Exception as trouble:  # whatever a library throws
            refuses(who, problem, name, trouble)


def checked(call, name, case, reference, problem):
    """The error of a peer's call; None, and a word about it, if it fails or its values are not tarn's."""
    try:
        call.run(1)
        difference = greatest_difference(call, case.array(tarn_case.GX if name == "bwd" else tarn_case.Y), problem)
    except Exception as trouble:  # whatever a library throws
        return refuses(call.who, problem, name, trouble)
    if difference <= tolerance(problem, name):
        return error_of(call, reference, problem)
    return refuses(f"{call.who}/{call.layout}", problem, name, f"its values differ by {difference:.3g}")


def prepare_pass(name, cases, peers, inputs, problem, threads, sweep):
    case = cases[0]
    tarn_pass = {"fwd": tarn_case.FORWARD, "train": tarn_case.FORWARD_SAVED, "bwd": case.backward()}[name]
    if not case.has(tarn_pass):
        return []
    moved, reference = sum(case.bytes(tarn_pass)), case.reference(tarn_pass)
    timed = [Timed(name, tarn_pass, threads, call, moved, 0) for call in bound_calls(case, tarn_pass, threads)]
    for c in cases:
        call = tarn_call(c, tarn_pass, threads)
        call.run(1)
        timed.append(Timed(name, tarn_pass, threads, call, moved, error_of(call, reference, problem)))
    for call in peer_calls(peers, problem, name, inputs, threads, sweep):
        error = checked(call, name, case, reference, problem)
        if error is not None:
            timed.append(Timed(name, tarn_pass, threads, call, moved, error))
    return timed


def open_cases(library, problem, threads, sweep):
    cases = [tarn_case.Case(library, problem, "nchw", threads)]
    if problem.batch_and_channels[1] > 1 and not sweep:
        cases.append(tarn_case.Case(library, problem, "nhwc", threads))
        cases[1].take_inputs(cases[0])
    return cases


def inputs_of(cases, problem):
    """Tensors with exactly two leading axes, on the memory of tarn's own."""
    n_c = problem.batch_and_channels
    plain, last = cases[0], cases[-1]
    x, gy = (plain.array(k).reshape(*n_c, *size) for k, size in ((tarn_case.X, problem.size), (tarn_case.GY, problem.out)))
    if last is plain:
        return Inputs(x, x, gy, gy)
    return Inputs(x, last.array(tarn_case.X), gy, last.array(tarn_case.GY))


def run_row(library, peers, row, arguments, patience):
    name, suffix, text, kind = row
    problem, sweep = parse(text), kind == "sweep"
    cases = open_cases(library, problem, arguments.threads, sweep)
    inputs = inputs_of(cases, problem)
    lines = []
    for threads in [1] if sweep or arguments.threads == 1 else [1, arguments.threads]:
        timed = []
        for pass_name in ["fwd"] if kind != "all" else ["fwd", "train", "bwd"]:
            timed += prepare_pass(pass_name, cases, peers, inputs, problem, threads, sweep)
        measure(timed, peers, arguments.rounds, arguments.sample_ns, patience / (1 if threads > 1 else 2))
        lines += [t.line(name, suffix) for t in timed]
        del timed
    del inputs
    gc.collect()
    for case in cases:
        case.close()
    return lines


# ---- All rows ----


def describe_machine(peers):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        facts = dict((part.strip() for part in line.split(":", 1)) for line in file if ":" in line)
    yield f"cpu: {facts.get('model name', 'unknown')} (family {facts.get('cpu family')}, model {facts.get('model')})"
    for name, peer in peers.items():
        yield f"{name}: {peer.version()}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--csv", required=True)
    parser.add_argument("--seconds", type=float, default=420, help="about how long all of it may take")
    parser.add_argument("--quick", action="store_true", help="three short rounds")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peers", default=",".join([*MODULES, *NATIVE]))
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_args()
    arguments.rounds = 3 if arguments.quick else MOST_ROUNDS
    arguments.sample_ns = 0.3e6 if arguments.quick else 3e6
    return arguments


def main():
    arguments = parse_arguments()
    directory = os.path.join(arguments.build, "bench")
    peers = load_peers(arguments.peers.split(","), os.path.join(directory, "peers"))
    library = tarn_case.load(os.path.join(directory, "libtarn_bench_parts.so"))
    rows = list_rows(arguments.build, arguments.rows)
    end = time.monotonic() + arguments.seconds
    with open(arguments.csv, "w", encoding="utf-8", newline="") as file:
        for line in describe_machine(peers):
            print("#", line, file=file)
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for k, row in enumerate(rows):
            note(f"{row[0]}{row[1]} ({k + 1} of {len(rows)})")
            table.writerows(run_row(library, peers, row, arguments, max(0, end - time.monotonic()) / (len(rows) - k)))
            file.flush()


if __name__ == "__main__":
    main()
