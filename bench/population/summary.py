"""Prints what a population's CSV says, as Markdown.

usage: summary.py CSV
"""

import csv
import math
import sys

PASSES = "fwd train indices jvp bwd bwd_x step patched".split()
PEERS = ("torch", "onednn")
LAYOUTS = ("first", "last", "both")
FAMILIES = ("tarn:portable", "tarn:avx2")
WORST, FURTHEST = 20, 10


class Row:
    """One pass of one problem: the least time of everyone."""

    def __init__(self, problem, name, layout, dtype):
        self.problem, self.name, self.layout, self.dtype = problem, name, layout, dtype
        self.ns = {}

    def fastest_peer(self):
        return min((who for who in PEERS if who in self.ns), key=self.ns.get, default=None)

    def over(self, who):
        """Their time over tarn's; None if they do not do it."""
        return self.ns[who] / self.ns["tarn"] if who in self.ns else None

    def over_bound(self):
        return self.ns["tarn"] / self.ns["bound"]

    def lead(self):
        return self.over(self.fastest_peer())


def read(path):
    facts, rows = [], {}
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(file)
    facts = [line[2:].strip() for line in lines if line.startswith("# ")]
    for entry in csv.DictReader(line for line in lines if not line.startswith("# ")):
        key = entry["problem"], entry["pass"], entry["layout"], entry["dtype"]
        ns = rows.setdefault(key, Row(*key)).ns
        ns[entry["who"]] = min(ns.get(entry["who"], math.inf), float(entry["least_ns"]))
    return facts, [row for row in rows.values() if "tarn" in row.ns]


# ---- Numbers ----


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def percentile(values, percent):
    """The value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)] if ordered else math.nan


def show(value):
    return "-" if math.isnan(value) else f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def show_time(ns):
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns:.0f} ns"


def there(values):
    return [value for value in values if value is not None]


# ---- Tables ----


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" if k < 2 else "--:" for k in range(len(head))) + " |"
    yield from ("| " + " | ".join(map(str, cells)) + " |" for cells in rows)


def groups(rows):
    for name in PASSES:
        for layout in LAYOUTS:
            group = [row for row in rows if row.name == name and layout in (row.layout, "both")]
            if group:
                yield name, layout, group


def peer_cells(name, layout, group):
    over_torch, leads = there(row.over("torch") for row in group), there(row.lead() for row in group)
    f32 = there(row.over("torch") for row in group if row.dtype == "f32")
    lost = sum(lead < 1 for lead in leads)
    return [name, layout, len(group), len(group) - len(leads), show(geometric_mean(f32)), show(geometric_mean(over_torch)),
            show(geometric_mean(leads)), *(show(percentile(leads, percent)) for percent in (1, 5, 50)),
            f"{lost} ({100 * lost / len(leads):.0f} %)" if leads else "-", sum(lead < 1 / 1.25 for lead in leads)]


def own_cells(name, layout, group):
    over_bound = [row.over_bound() for row in group]
    simple = [row.over_bound() for row in group if row.problem.startswith(("max", "min", "avg"))]
    cells = [name, layout, len(group), *(show(percentile(over_bound, percent)) for percent in (50, 95, 100)),
             show(percentile(simple, 95))]
    for family in FAMILIES:
        ratios = there(row.over(family) for row in group)
        cells += [show(geometric_mean(ratios)), sum(ratio < 1 / 1.05 for ratio in ratios)]
    return cells


def name_cells(row, other, number):
    return [row.problem, row.name, show_time(row.ns["tarn"]), f"{other} {show_time(row.ns[other])}", show(number)]


def document(facts, rows):
    yield "# Population\n"
    yield from (f"- {fact}" for fact in facts)
    yield "\n## Beside the peers\n\nTheir time over tarn's: above 1 tarn is faster. " \
          "*Fastest*: the faster of PyTorch and oneDNN in the layout as given.\n"
    yield from table(["pass", "channels", "problems", "no peer", "PyTorch f32, mean", "PyTorch, mean", "fastest, mean", "1st %",
                      "5th %", "50th %", "lost", "by more than 1.25x"], (peer_cells(*group) for group in groups(rows)))
    yield "\n## Beside the bound and tarn's own families\n\n" \
          "tarn's time over the streaming bound's; a family's time over that of the kernel chosen.\n"
    yield from table(["pass", "channels", "problems", "x bound, 50th %", "95th %", "most", "95th % of max, min, avg", "portable, mean",
                      "slower than it by > 5 %", "AVX2 alone, mean", "slower than it by > 5 %"],
                     (own_cells(*group) for group in groups(rows)))
    yield f"\n## The {WORST} worst beside a peer\n"
    beside = sorted((row for row in rows if row.lead()), key=Row.lead)[:WORST]
    yield from table(["problem", "pass", "tarn", "peer", "ratio"],
                     (name_cells(row, row.fastest_peer(), row.lead()) for row in beside))
    yield f"\n## The {FURTHEST} furthest from the bound\n"
    far = sorted((row for row in rows if row.name not in ("step", "patched")), key=Row.over_bound)[:-FURTHEST - 1:-1]
    yield from table(["problem", "pass", "tarn", "bound", "ratio"],
                     (name_cells(row, "bound", row.over_bound()) for row in far))
    yield f"\n## The {FURTHEST} worst beside a family of its own\n"
    own = [(row.over(family), family, row) for row in rows for family in FAMILIES if family in row.ns]
    yield from table(["problem", "pass", "tarn", "family", "ratio"],
                     (name_cells(row, family, ratio) for ratio, family, row in sorted(own, key=lambda e: e[0])[:FURTHEST]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(document(*read(sys.argv[1]))))


if __name__ == "__main__":
    main()
