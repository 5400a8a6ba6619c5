"""Times tarn on a population of random problems, beside PyTorch, oneDNN, the streaming bound and its own families.

usage: run_population.py --build DIR --csv FILE [--seed N] [--count N] [--quick] [--only TEXT] [--passes NAMES] [--threads N]
                         [--no-avx512]

One process, one thread, one core (--threads N: as many of each). All contestants of a problem are sampled in turn, round by round; results are compared
first. `tools/bench.sh population` sets the environment and calls this; docs/population.md says how to read the result.
"""

import argparse
import csv
import gc
import math
import os
import statistics
import subprocess
import sys
import time

# Read before any library starts a thread.
how_many = argparse.ArgumentParser(add_help=False)
how_many.add_argument("--threads", type=int, default=1, help="of everyone; times are then elapsed ones")
how_many.add_argument("--no-avx512", action="store_true", help="everyone does without: a machine that has none")
THREADS, MASKED = vars(how_many.parse_known_args()[0]).values()
if MASKED:
    os.environ.update(TARN_ISA="spec,portable,avx2", ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-THREADS:])

import numpy as np
import torch

import contestants as teams
import distribution
import torch_contestants
from contestants import PATCHED, RESULTS, STEP

COLUMNS = "problem pass layout dtype who least_ns median_ns samples".split()
ROUNDS, SAMPLE_NS = 8, 200e3  # as many for everyone: more where tarn lost would favour it
QUICK_ROUNDS, QUICK_SAMPLE_NS = 3, 60e3
WARM_BELOW_NS = 20e6  # slower calls need no call before them to find their code and data
SLOW_NS, VERY_SLOW_NS = 30e6, 150e6  # calls that take longer are sampled three times, or once
EPSILON = {"f64": 1e-13, "f32": 3e-6, "bf16": 0.016, "f16": 0.002}


def note(*words):
    print(*words, file=sys.stderr, flush=True)


# ---- The same values first ----


def numbers(array, dtype):
    if dtype == "bf16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def tolerance(problem, operand):
    """Of a difference: none where nothing is rounded, else some units in the last place of the terms, which are at most 1;
    means of integers may round a half the other way."""
    exact = problem.op in ("max", "min") and operand != teams.GX
    if operand == teams.INDICES or exact:
        return 0.0
    if not problem.is_float:
        return 1.0
    overlap = math.prod(-(-k // s) for k, s in zip(problem.kernel, problem.stride)) if operand == teams.GX else 1
    return EPSILON[problem.dtype] * overlap * (4 if problem.op == "lp" else 1)


def differences(contestant, case, problem):
    """The passes in which a peer's results are not tarn's, and how they differ."""
    contestant.run(1)
    found = contestant.results()
    for name in contestant.passes:
        for part in ("fwd", "bwd") if name in (STEP, PATCHED) else (name,):
            case.run(case.passes()[part], 1, 1)
        for operand in set(RESULTS[name]) & set(found):
            mine, theirs = case.array(operand), found[operand]
            if mine.shape != theirs.shape:
                yield name, f"shape {theirs.shape} instead of {mine.shape}"
            elif not np.array_equal(mine, theirs):
                most = np.abs(numbers(mine, problem.dtype) - numbers(theirs, problem.dtype)).max()
                if not most <= tolerance(problem, operand):
                    yield name, f"values differ by {most:.3g}"


def agreeing(peers, case, problem, mismatches):
    """The peers, with the passes in which they compute what tarn does; what differs is named."""
    kept = []
    for peer in peers:
        try:
            found = dict(differences(peer, case, problem))
        except RuntimeError as refusal:  # no such dtype, for example
            note(f"  no {peer.who} for {', '.join(peer.passes)}: {str(refusal).splitlines()[0][:100]}")
            continue
        mismatches += [f"{problem.text} {name}: {peer.who}, {sentence}" for name, sentence in found.items()]
        peer.passes = tuple(name for name in peer.passes if name not in found)
        kept += [peer] * bool(peer.passes)
    return kept


# ---- Then the times ----


def calibrate(contestant, sample_ns):
    """How often to repeat a call for one sample; a very slow call is a sample."""
    once = contestant.run(1)
    if once < VERY_SLOW_NS or THREADS > 1:  # elapsed time may have a pause of the machine in it
        once = contestant.run(1)
    contestant.repeats = max(1, round(sample_ns / max(once, 50)))
    contestant.most = 1 if once > VERY_SLOW_NS else 3 if once > SLOW_NS else math.inf
    contestant.is_warmed = once < WARM_BELOW_NS
    if contestant.most == 1:
        contestant.samples.append(once)


def sample_all(all_of_them, rounds):
    """Every second round goes backwards: who follows a contestant of the same code and memory finds them in the caches."""
    for number in range(rounds):
        for c in all_of_them[::-1] if number % 2 else all_of_them:
            if len(c.samples) < c.most:
                if c.is_warmed:
                    c.run(1)
                c.samples.append(c.run(c.repeats) / c.repeats)


def measure(all_of_them, rounds, sample_ns):
    gc.disable()
    for c in all_of_them:
        calibrate(c, sample_ns)
    sample_all(all_of_them, rounds)
    gc.enable()


def run_problem(library, onednn, tarn_torch, problem, arguments, mismatches):
    cases = {who: teams.Case(library, problem, mask) for who, mask in teams.families(library).items()}
    case = cases["tarn"]
    peers = torch_contestants.contestants(problem, case) + (onednn.contestants(problem, case) if onednn else [])
    steps = torch_contestants.step_contestants(problem, case, tarn_torch)
    all_of_them = agreeing(peers + steps, case, problem, mismatches)
    all_of_them += [c for who, family in cases.items() for c in teams.tarn_contestants(family, who)]
    for c in all_of_them:
        c.passes = tuple(name for name in c.passes if name in arguments.passes)
    all_of_them = [c for c in all_of_them if c.passes]
    all_of_them += teams.bound_contestants(case, dict.fromkeys(name for c in all_of_them for name in c.passes))
    measure(all_of_them, arguments.rounds, arguments.sample_ns)
    for c in all_of_them:
        for name in c.passes:
            yield [problem.text, name, problem.layout, problem.dtype, c.who, f"{min(c.samples):.0f}",
                   f"{statistics.median(c.samples):.0f}", len(c.samples)]
    del peers, steps, all_of_them
    if onednn:
        onednn.close()
    for family in cases.values():
        family.close()


# ---- The whole run ----


def load_onednn(build):
    try:
        return teams.Onednn(os.path.join(build, "bench", "peers", "libpeer_onednn3.so"))
    except OSError as problem:
        note(f"oneDNN is left out: {problem}")


def load_tarn_torch():
    try:
        import tarn.torch
    except ImportError as problem:
        return note(f"the training step is left out: {problem}")
    tarn.set_num_threads(THREADS)
    try:
        tarn.torch.build()  # now, not in the background of what is timed
    except OSError as problem:
        note(f"steps are taken in Python: {problem}")
    return tarn.torch


def describe(library, onednn, arguments):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        facts = dict((part.strip() for part in line.split(":", 1)) for line in file if ":" in line)
    masked = " without AVX-512" if MASKED else ""
    yield f"cpu: {facts.get('model name', 'unknown')} (family {facts.get('cpu family')}, model {facts.get('model')}){masked}"
    yield f"compiler: {arguments.compiler}"
    yield f"tarn: {library.tarn_version().decode()}, families beside it: {', '.join(list(teams.families(library))[1:])}"
    yield f"PyTorch: {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})"
    yield f"oneDNN: {onednn.version() if onednn else 'left out'}"
    yield f"population: seed {arguments.seed}, {arguments.count} problems, {arguments.rounds} rounds, " \
          f"samples of {arguments.sample_ns / 1e3:.0f} us, least {'processor time, one thread' if THREADS == 1 else f'time, {THREADS} threads'}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[how_many])
    parser.add_argument("--build", default="build")
    parser.add_argument("--csv", required=True)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds; 12 problems unless --count says more")
    parser.add_argument("--only", default="", help="only problems whose text has this in it")
    parser.add_argument("--passes", type=lambda text: text.split(","), default=list(RESULTS), help="only these: step,patched")
    parser.add_argument("--compiler", default="unknown", help="for the header")
    arguments = parser.parse_args()
    arguments.count = arguments.count or (12 if arguments.quick else 120)
    arguments.rounds, arguments.sample_ns = (QUICK_ROUNDS, QUICK_SAMPLE_NS) if arguments.quick else (ROUNDS, SAMPLE_NS)
    return arguments


def main():
    arguments = parse_arguments()
    torch.set_num_threads(THREADS)
    teams.threads = THREADS
    torch.set_grad_enabled(False)
    library, onednn, tarn_torch = teams.load_tarn(arguments.build), load_onednn(arguments.build), load_tarn_torch()
    problems = [p for p in distribution.draw(arguments.seed, arguments.count) if arguments.only in p.text]
    mismatches, begin = [], time.monotonic()
    with open(arguments.csv, "w", encoding="utf-8", newline="") as file:
        for line in describe(library, onednn, arguments):
            print("#", line, file=file)
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for k, problem in enumerate(problems):
            note(f"{k + 1} of {len(problems)}, {time.monotonic() - begin:.0f} s: {problem.text}")
            table.writerows(run_problem(library, onednn, tarn_torch, problem, arguments, mismatches))
            file.flush()
        for line in mismatches:
            print("# mismatch:", line, file=file)


if __name__ == "__main__":
    main()
