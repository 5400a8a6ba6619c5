#!/usr/bin/env python3
"""Writes the figures of README.md and docs/performance.md from the populations in bench/results.

usage: figures.py [--check]      --check: changes nothing, fails if a page says something else

Every table between the marks `<!-- figures: NAME -->` and `<!-- end of figures -->` is made here.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "population"))
from summary import geometric_mean, percentile, read, show, table, there  # noqa: E402

PAGES = ("README.md", "docs/performance.md")
PASSES = {"fwd": "values", "train": "values and winners", "indices": "values and indices", "jvp": "forward-mode derivative",
          "bwd": "gradient", "bwd_x": "gradient, from x alone", "step": "training step in PyTorch",
          "patched": "the same inside `patch()`"}


def machines():
    """(facts of a machine's runs, their seeds, their rows): all seeds of a machine together. Its note.txt says what is not true of the
    present kernels; machines that have one come last."""
    for folder in sorted((ROOT / "bench" / "results").iterdir(), key=lambda folder: ((folder / "note.txt").exists(), folder)):
        runs = [read(path) for path in sorted(folder.glob("population-*.csv"))]
        if runs:
            facts = dict(fact.split(": ", 1) for fact in runs[0][0])
            note = folder / "note.txt"
            facts["note"] = note.read_text(encoding="utf-8").strip() if note.exists() else ""
            seeds = [re.search(r"seed (\w+), (\d+) problems", dict(f.split(": ", 1) for f in facts_)["population"]).groups()
                     for facts_, _ in runs]
            yield facts, seeds, [row for _, rows in runs for row in rows]


def of_pass(rows, name):
    return [row for row in rows if row.name == name]


def peer_row(rows, name):
    group = of_pass(rows, name)
    f32 = there(row.over("torch") for row in group if row.dtype == "f32")
    leads = there(row.lead() for row in group)
    lost = sum(lead < 1 for lead in leads)
    return [f"`{name}`", PASSES[name], show(geometric_mean(f32)), show(geometric_mean(leads)), len(leads), lost,
            sum(lead < 1 / 1.25 for lead in leads)]


def bound_row(rows, name):
    group = of_pass(rows, name)
    simple = [row.over_bound() for row in group if row.problem.startswith(("max", "min", "avg"))]
    rest = [row.over_bound() for row in group if not row.problem.startswith(("max", "min", "avg"))]
    portable = there(row.over("tarn:portable") for row in group)
    return [f"`{name}`", PASSES[name], *(show(percentile(simple, p)) for p in (50, 95)), show(percentile(rest, 50)),
            show(geometric_mean(portable)), sum(ratio < 1 / 1.05 for ratio in portable)]


def caption(facts, seeds):
    drawn = ", ".join(f"{count} of seed {seed}" for seed, count in seeds)
    return f"{facts['cpu']}, one thread, {facts['compiler']}, PyTorch {facts['PyTorch']}, " \
           f"oneDNN {facts['oneDNN'].split()[0]}; problems: {drawn}.{' ' * bool(facts['note'])}{facts['note']}"


def present():
    """The machines whose results are of the present kernels."""
    return (machine for machine in machines() if not machine[0]["note"])


def peers(names, found):
    for facts, seeds, rows in found:
        yield caption(facts, seeds) + "\n"
        yield from table(["pass", "computes", "PyTorch / tarn, f32", "fastest / tarn", "compared", "lost", "by > 1.25x"],
                         (peer_row(rows, name) for name in names))
        yield ""


def headline(names):
    """A sentence for each machine: what a reader of one line should know."""
    for facts, _, rows in present():
        found = {name: peer_row(rows, name) for name in names}
        compared, lost = (sum(row[column] for row in found.values()) for column in (4, 5))
        problems = len(there(row.over("torch") for row in of_pass(rows, "fwd") if row.dtype == "f32"))
        yield f"- **{found['fwd'][2]} times as fast as PyTorch forward, {found['bwd'][2]} times backward, " \
              f"{found['step'][2]} times in a training step**: geometric means of {problems} random f32 problems,\n" \
              f"  one thread, {re.sub(r' [(].*?[)]', '', facts['cpu'])}. Over all dtypes, {lost} of {compared} comparisons with the faster of " \
              "PyTorch and oneDNN are lost; [each is named](bench/results/)."


def bounds(names):
    for facts, seeds, rows in machines():
        yield caption(facts, seeds) + "\n"
        yield from table(["pass", "computes", "max, min, avg: 50th %", "95th %", "smooth, lp: 50th %", "portable / chosen",
                          "slower than portable by > 5 %"], (bound_row(rows, name) for name in names if name not in ("step", "patched")))
        yield ""


FIGURES = {
    "headline": lambda: headline(("fwd", "indices", "bwd", "step")),
    "short": lambda: peers(("fwd", "indices", "bwd", "step"), present()),
    "peers": lambda: peers(PASSES, machines()),
    "bounds": lambda: bounds(PASSES),
}


def renewed(text):
    def make(mark):
        return f"<!-- figures: {mark[1]} -->\n" + "\n".join(FIGURES[mark[1]]()).strip() + "\n<!-- end of figures -->"
    return re.sub(r"<!-- figures: (\w+) -->\n.*?<!-- end of figures -->", make, text, flags=re.S)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    stale = []
    for name in PAGES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        if "<!-- figures: " not in text:
            sys.exit(f"{name} has no figures")
        if renewed(text) != text:
            stale.append(name)
            if not sys.argv[1:]:
                page.write_text(renewed(text), encoding="utf-8")
    if sys.argv[1:] and stale:
        sys.exit(f"figures differ from bench/results in {', '.join(stale)}: run bench/report/figures.py")


if __name__ == "__main__":
    main()
