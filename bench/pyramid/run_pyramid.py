"""Measures pyramids beside other writers, and whether their values depend on the chunks.

usage: run_pyramid.py --csv FILE [--mib N] [--rounds N] [--folder FOLDER] [--only NAME,...] [--cases NAME,...] [--cold]
       run_pyramid.py --table CSV      prints it as Markdown

Each contender runs in a process of its own, in turn, round after round. The cache of the file system is warm
and nobody syncs, so `cp` is a copy in memory; it copies the finished pyramid, the bytes that have to be
written. With --cold the input comes from the disk and the output must have got there. Input and output have the same chunks and the same codec, or none, so that it does not hide the work.
"""

import argparse
import csv
import importlib.metadata
import json
import math
import os
import shutil
import statistics
import subprocess
import sys

import numpy
import zarr
from contenders import CONTENDERS

HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = 4
# Shape of a plane, dtype, chunks, shards, codec. The first is what tarn.pyramid was tuned on.
CASES = {
    "u16": ((512, 512), "u2", (64, 64, 64), None, None),
    "f32": ((600, 520), "f4", (16, 200, 130), None, None),
    "u8 shards": ((504, 648), "u1", (32, 64, 64), (128, 128, 128), None),
    "u16 zstd": ((440, 696), "u2", (50, 90, 70), None, "zstd"),
}
ODD = (61, 83, 95)  # no size is a multiple of anything
CHUNKINGS = ((64, 96, 96), (16, 16, 16), (7, 30, 11))
PACKAGES = ("numpy", "zarr", "dask", "ome-zarr", "ngff-zarr", "tensorstore", "xarray", "tinybrain", "scikit-image")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", default="build/bench/pyramid.csv")
    parser.add_argument("--table")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default="build/bench/pyramid")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--only", default=",".join(CONTENDERS))
    parser.add_argument("--cases", default=",".join(CASES))
    options = parser.parse_args()
    if options.table:
        print_table(options.table)
        return
    names = options.only.split(",")
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    results = {case: measure(options, names, case) for case in options.cases.split(",")}
    same = {name: depends_on_chunks(options.folder, name) for name in names}
    write_csv(options, results, same)
    shutil.rmtree(options.folder)


def measure(options, names, case):
    """What each contender said of itself in each round."""
    source = make_volume(options.folder, options.mib, case)
    finished, out = (os.path.join(options.folder, name) for name in ("finished", "out"))
    run("tarn 1 worker", source, finished)
    rounds = {name: [] for name in names}
    for number in range(options.rounds):
        for name in names:
            print(f"{case}, round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
            rounds[name].append(run(name, finished if name == "cp" else source, out,
                                    *["cold"] * options.cold))
    return rounds


def make_volume(folder, mib, case):
    """Photon counts, as cameras give them: noise over a background."""
    plane, dtype, chunks, shards, codec = CASES[case]
    path = os.path.join(folder, "source")
    planes = mib * 2**20 // (numpy.dtype(dtype).itemsize * math.prod(plane))
    depth = planes // 8 * 8  # tinybrain wants even sizes on each level
    compressors = zarr.codecs.ZstdCodec(level=1) if codec else None
    array = zarr.create_array(path, shape=(depth, *plane), dtype=dtype, chunks=chunks, shards=shards,
                              compressors=compressors, overwrite=True)
    rng, step = numpy.random.default_rng(0), (shards or chunks)[0]
    for z in range(0, depth, step):
        array[z:z + step] = rng.integers(90, 250, (min(step, depth - z), *plane), "u2").astype(dtype)
    return path


def run(name, source, out, *words):
    """What a contender says of itself, and the bytes it left; None with a line if it failed."""
    command = [sys.executable, os.path.join(HERE, "contenders.py"), name, source, out, str(LEVELS), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        print(f"{name} failed: {lines[-1] if lines else done.returncode}", file=sys.stderr)
        return None
    size = sum(os.path.getsize(os.path.join(where, file)) for where, _, files in os.walk(out) for file in files)
    return json.loads(done.stdout.splitlines()[-1]) | {"bytes": size}


def depends_on_chunks(folder, name):
    """"no" if levels have the same values for every chunking of the source, else what differs."""
    if name == "cp":
        return "-"
    x = numpy.random.default_rng(1).integers(0, 65536, ODD, "u2", endpoint=False)
    first = None
    for chunks in CHUNKINGS:
        source, out = os.path.join(folder, "odd"), os.path.join(folder, "odd-out")
        array = zarr.create_array(source, shape=ODD, dtype="u2", chunks=chunks, compressors=None, overwrite=True)
        array[...] = x
        if run(name, source, out) is None:
            return "fails: even sizes only" if name == "tinybrain" else "fails"
        levels = read_levels(out)
        first = first or levels
        for mine, other in zip(levels[1:], first[1:]):
            if mine.shape != other.shape:
                return "yes: shapes"
            if (mine != other).any():
                return f"yes: {(mine != other).sum()} of {mine.size} values"
    return "no"


def read_levels(out):
    found = []
    for where, _, files in os.walk(out):
        if "zarr.json" in files and json.load(open(os.path.join(where, "zarr.json")))["node_type"] == "array":
            array = zarr.open_array(where, mode="r")
            if array.ndim == 3:
                found.append(array[...])
    return sorted(found, key=lambda array: -array.size)


def write_csv(options, cases, same):
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        print(f"# cpu: {cpu()}", file=file)
        print(f"# cores: {len(os.sched_getaffinity(0))}", file=file)
        versions = [f"{package} {importlib.metadata.version(package)}" for package in PACKAGES]
        print(f"# versions: Python {sys.version.split()[0]}, {', '.join(versions)}", file=file)
        print(f"# input: {options.mib} MiB; {LEVELS} levels of means, 2x2x2; {options.rounds} rounds; "
                  f"{'from and to the disk' if options.cold else 'warm cache'}", file=file)
        table = csv.writer(file)
        table.writerow("case who seconds least most cpu_seconds peak_mib bytes_out chunks_change_values".split())
        for case, rounds in cases.items():
            for name, results in rounds.items():
                table.writerow([case, name, *numbers([result for result in results if result]), same[name]])


def numbers(results):
    if not results:
        return [""] * 6
    seconds = [result["seconds"] for result in results]
    return [f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f}", f"{max(seconds):.3f}",
            f"{statistics.median(r['cpu'] for r in results):.3f}",
            max(r["peak_kb"] for r in results) >> 10, results[0]["bytes"]]


def print_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(file)
    print("# Pyramids\n")
    for line in lines:
        if line.startswith("# "):
            print(f"- {line[2:].strip()}")
    rows = list(csv.DictReader(line for line in lines if not line.startswith("# ")))
    print("\nSeconds are medians (least .. greatest) and begin after the imports; *x* is their median over the best of "
          "tarn, *CPU x* the processor time over that of tarn with one worker; memory is that of the largest process.")
    for case in dict.fromkeys(row["case"] for row in rows):
        print_case(case, {row["who"]: row for row in rows if row["case"] == case})


def print_case(case, rows):
    plane, dtype, chunks, shards, codec = CASES[case]
    layout = "x".join(map(str, chunks)) + (f" in shards of {'x'.join(map(str, shards))}" if shards else "")
    print(f"\n## {case}\n\nPlanes of {'x'.join(map(str, plane))}, {dtype}, chunks of {layout}, {codec or 'not compressed'}.\n")
    print("| who | seconds | x | CPU s | CPU x | peak MiB | MB written | do chunks change values? |")
    print("| --- | --: | --: | --: | --: | --: | --: | --- |")
    best = min(float(rows[name]["seconds"]) for name in ("tarn 1 worker", "tarn 2 workers"))
    used = float(rows["tarn 1 worker"]["cpu_seconds"])
    for name, row in rows.items():
        if not row["seconds"]:
            print(f"| {name} | fails | | | | | | {row['chunks_change_values']} |")
            continue
        print(f"| {name} | {row['seconds']} ({row['least']} .. {row['most']}) "
              f"| {float(row['seconds']) / best:.2f} | {row['cpu_seconds']} "
              f"| {float(row['cpu_seconds']) / used:.2f} | {row['peak_mib']} "
              f"| {int(row['bytes_out']) / 1e6:.0f} | {row['chunks_change_values']} |")


def cpu():
    fields = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name", "unknown")
    if "EPYC" in name:
        return f"AMD EPYC (family {fields['cpu family']}, model {fields['model']})"
    return name


if __name__ == "__main__":
    main()
