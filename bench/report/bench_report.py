"""Turns the numbers of a run into tables and plots.

usage: bench_report.py DIRECTORY      a folder with core.csv, peers.csv or both
       bench_report.py --slug CSV     print the folder name for the CPU of a file
"""

import os
import sys

import report_plots
import report_targets
from report_data import Run, geometric_mean, show_time, slug


def speed_cell(entry):
    return f"{show_time(entry.ns)} ({show_time(entry.least)} .. {show_time(entry.most)})" if entry else ""


def peers_table(run, threads):
    yield "| row | pass | bound | tarn nchw | tarn nhwc | fastest peer | x nchw | x nhwc | fastest peer in nchw | PyTorch nchw " \
          "| error of tarn | error of the peer |"
    yield "| --- | --- | --: | --: | --: | --- | --: | --: | --- | --: | --: | --: |"
    for row, name in run.keys(threads):
        bound, peer = run.bound(row, name, threads), run.fastest_peer(row, name, threads)
        plain, last = (run.tarn(row, name, threads, layout) for layout in report_targets.LAYOUTS)
        torch = run.best(row, name, threads, who="torch", layout="nchw")
        in_nchw = run.fastest_peer(row, name, threads, "nchw")
        cells = [row, name, show_time(bound.ns) if bound else "-", speed_cell(plain), speed_cell(last),
                 f"{peer.label} {speed_cell(peer)}" if peer else "-",
                 f"{peer.ns / plain.ns:.2f}" if peer else "-", f"{peer.ns / last.ns:.2f}" if peer else "-",
                 f"{in_nchw.label} {show_time(in_nchw.ns)}" if in_nchw else "-",
                 show_time(torch.ns) if torch else "-", f"{plain.error:.1e}", f"{peer.error:.1e}" if peer else "-"]
        yield "| " + " | ".join(cells) + " |"


def core_table(run, threads):
    yield "| row | pass | layout | time | bound | x bound | GB/s | error | kernel |"
    yield "| --- | --- | --- | --: | --: | --: | --: | --: | --- |"
    for row, name in run.keys(threads):
        bound = run.bound(row, name, threads)
        for e in run.all(row, name, threads, who="tarn"):
            cells = [row, name, e.layout, speed_cell(e), show_time(bound.ns) if bound else "-",
                     f"{e.ns / bound.ns:.2f}" if bound else "-", f"{e.bytes / e.ns:.1f}", f"{e.error:.1e}", e.detail]
            yield "| " + " | ".join(cells) + " |"


def everyone_table(run, threads):
    """Geometric mean of tarn's lead over each peer in each of its layouts."""
    yield "| peer | layout | rows | tarn nchw is faster by | tarn nhwc is faster by |"
    yield "| --- | --- | --: | --: | --: |"
    others = [(e.who, e.layout) for e in run.entries if e.threads == threads and e.who not in ("tarn", "bound")]
    for who, layout in sorted(set(others)):
        found = [(key, run.best(*key, threads, who=who, layout=layout)) for key in run.keys(threads)]
        found = [(key, e) for key, e in found if e]
        means = [geometric_mean(e.ns / run.tarn(*key, threads, mine).ns for key, e in found) for mine in report_targets.LAYOUTS]
        yield f"| {who} | {layout} | {len(found)} | {means[0]:.2f}x | {means[1]:.2f}x |"


def document(core, peers):
    yield "# Results\n\nWritten by bench/report/bench_report.py; docs/performance.md says how to read them.\n"
    for facts in (core.facts, peers.facts):
        yield from (f"- {key}: {value}" for key, value in facts.items())
        yield ""
    yield "## Targets\n\nEach claim with its verdict; below it what is lost, the worst first. T: threads.\n"
    yield from report_targets.lines(core, peers)
    for threads in sorted({1, peers.most_threads()}) if peers.entries else []:
        yield f"\n## Beside other libraries, {threads} T\n\nMedian (least .. greatest) of the rounds.\n"
        yield from peers_table(peers, threads)
        yield ""
        yield from everyone_table(peers, threads)
    for threads in sorted({1, core.most_threads()}) if core.entries else []:
        yield f"\n## Every pass, {threads} T\n"
        yield from core_table(core, threads)


def write_report(directory):
    core, peers = (Run(os.path.join(directory, name)) for name in ("core.csv", "peers.csv"))
    if not core.entries and not peers.entries:
        sys.exit(f"{directory}: neither core.csv nor peers.csv has a row")
    with open(os.path.join(directory, "table.md"), "w", encoding="utf-8") as file:
        print("\n".join(document(core, peers)), file=file)
    report_plots.window_size(report_targets.swept_run(core, peers), os.path.join(directory, "window-size.svg"))
    report_plots.against_bound(core if core.entries else peers, os.path.join(directory, "bound.svg"))
    if peers.entries:
        report_plots.against_peers(peers, os.path.join(directory, "peers.svg"))
    print(f"wrote {directory}/table.md and the plots beside it")


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--slug":
        print(slug(Run(arguments[1]).facts))
    elif len(arguments) == 1 and os.path.isdir(arguments[0]):
        write_report(arguments[0])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
