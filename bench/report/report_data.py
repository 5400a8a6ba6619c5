"""The numbers of a run: those of the benchmark (core.csv) and of the comparison (peers.csv)."""

import csv
import math
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    row: str
    name: str  # of the pass
    threads: int
    who: str
    layout: str
    ns: float
    least: float
    most: float
    rounds: int
    bytes: int
    error: float
    detail: str

    @property
    def label(self):
        place = "" if self.layout == "-" else f"/{self.layout}"
        return f"{self.who}{place}"


class Run:
    """The entries of one file, by row and pass; and the facts of its comments."""

    def __init__(self, path=None):
        self.facts, self.entries = {}, []
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.read(file)

    def read(self, file):
        rest = []
        for line in file:
            if line.startswith("#"):
                key, _, value = line[1:].partition(":")
                self.facts[key.strip()] = value.strip()
            else:
                rest.append(line)
        for r in csv.DictReader(rest):
            self.entries.append(Entry(r["row"], r["pass"], int(r["threads"]), r["who"], r["layout"],
                                      float(r["median_ns"]), float(r["min_ns"]), float(r["max_ns"]), int(r["rounds"]),
                                      int(r["bytes"]), float(r["error"]), r["detail"]))

    def keys(self, threads):
        """Rows and passes that tarn was timed on, in order."""
        found = ((e.row, e.name) for e in self.entries if e.threads == threads and e.who == "tarn")
        return list(dict.fromkeys(found))

    def most_threads(self):
        return max((e.threads for e in self.entries), default=1)

    def all(self, row, name, threads, who=None, layout=None):
        return [e for e in self.entries if (e.row, e.name, e.threads) == (row, name, threads)
                and who in (None, e.who) and layout in (None, e.layout)]

    def best(self, *key, **kind):
        return min(self.all(*key, **kind), key=lambda e: e.ns, default=None)

    def tarn(self, row, name, threads, layout):
        """A row whose layouts coincide has one entry, which counts for both."""
        return self.best(row, name, threads, who="tarn", layout=layout) or self.best(row, name, threads, who="tarn")

    def bound(self, row, name, threads):
        return self.best(row, name, threads, who="bound")

    def fastest_peer(self, row, name, threads, layout=None):
        peers = [e for e in self.all(row, name, threads, layout=layout) if e.who not in ("tarn", "bound")]
        return min(peers, key=lambda e: e.ns, default=None)


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def show_time(ns):
    if ns >= 1e6:
        return f"{ns / 1e6:.3f} ms"
    return f"{ns / 1e3:.2f} µs" if ns >= 1e3 else f"{ns:.0f} ns"


def slug(facts):
    """A folder name for the CPU: "AMD EPYC (family 25, model 1), ..." to "amd-epyc-family-25-model-1"."""
    name = facts.get("cpu", "unknown").split("),")[0].lower()
    words = "".join(c if c.isalnum() else " " for c in name).split()
    return "-".join(words)
