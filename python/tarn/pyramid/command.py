"""``python -m tarn pyramid``: the command line of `tarn.pyramid.write`."""

import argparse
import dataclasses
import json
import sys
import time

from . import RequestError, WorkError, write

EPILOG = """factors, chunks, shards and scales are given by axis (y=2,x=2); a factor also as one number for
all axes of space. Exit status: 0 done, 1 the work failed (go on with --resume), 2 the request was wrong.

example: python -m tarn pyramid volume.zarr volume.ome.zarr --factor z=1,y=2,x=2 --memory 1G
docs/scale.md says what is promised."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise RequestError(message)


def make_parser():
    parser = Parser(prog="tarn pyramid", epilog=EPILOG, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter,
                    description="Write an image pyramid (OME-Zarr 0.5) from zarr, OME-Zarr or .npy.")
    add = parser.add_argument
    add("source", metavar="IN", help="zarr array (v2, v3), OME-Zarr image (0.4, 0.5) or .npy file")
    add("out", metavar="OUT", help="folder to write, such as volume.ome.zarr")
    add("--op", default="avg", help="avg, max, min, or mode for labels (avg)")
    add("--factor", default="auto", metavar="z=1,y=2,x=2", help="cells that become one, for each level (auto)")
    add("--levels", default="auto", metavar="N", help="how many, the full resolution included (auto)")
    add("--edge", default="keep", help="what is left over at the end: keep a shorter window, or trim (keep)")
    add("--from", default="previous", dest="level_from", metavar="previous|base", help="which level a level pools (previous)")
    add("--skip", metavar="nan|V", help="cells that do not count")
    add("--min-count", type=int, metavar="N", help="how many must count, or the result is the skipped value (1)")
    add("--chunks", default="auto", metavar="z=64,...", help="chunks of every level (the input's)")
    add("--shards", default="auto", metavar="z=256,...", help="shards of every level, or none (the input's)")
    add("--codec", default="auto", help="none, zstd:LEVEL, gzip:LEVEL, blosc:LEVEL (the input's)")
    add("--axes", metavar="t,c,z,y,x", help="names of the axes (the input's, or the last of tczyx)")
    add("--scale", metavar="z=2,y=0.5", help="spacing of the cells (the input's, or 1)")
    add("--unit", help="unit of the spacing, such as micrometer")
    add("--name", help="name of the image (the input's)")
    add("--memory", default="2G", help="of the process (2G)")
    add("--workers", type=int, metavar="N", help="threads (one for each core)")
    add("--scheduler", metavar="tcp://...", help="a dask cluster that sees the same files, instead of threads")
    add("--resume", action="store_true", help="go on where a run with the same options stopped")
    add("--overwrite", action="store_true", help="replace OUT")
    add("--json", action="store_true", help="progress and result as lines of JSON on standard output")
    add("--quiet", action="store_true", help="no progress")
    return parser


def main(arguments):
    as_json = "--json" in arguments
    try:
        options = make_parser().parse_args(arguments)
        show = Show(options.json, options.quiet)
        result = write(**_keywords(options), progress=show)
        show.finish(result)
        return 0
    except RequestError as error:
        return _complain(error, as_json, 2)
    except (WorkError, OSError) as error:
        return _complain(error, as_json, 1)
    except KeyboardInterrupt:
        return _complain("interrupted; --resume goes on", as_json, 130)


def _keywords(options):
    keywords = vars(options)
    for name in ("json", "quiet"):
        del keywords[name]
    if keywords["levels"] != "auto":
        keywords["levels"] = _number("levels", keywords["levels"], int)
    if keywords["skip"] not in (None, "nan"):
        whole = keywords["skip"].lstrip("-").isdigit()
        keywords["skip"] = _number("skip", keywords["skip"], int if whole else float)
    if keywords["factor"].isdecimal():
        keywords["factor"] = int(keywords["factor"])
    for name in ("factor", "chunks", "shards"):
        keywords[name] = _by_axis(name, keywords[name], int)
    if keywords["scale"] is not None:
        keywords["scale"] = _by_axis("scale", keywords["scale"], float)
    if keywords["axes"] is not None:
        axes = keywords["axes"]
        keywords["axes"] = axes.split(",") if "," in axes else list(axes)
    return keywords


def _by_axis(option, text, kind):
    if not isinstance(text, str) or "=" not in text:
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    return {name: _number(option, value, kind) for name, _, value in pairs}


def _number(option, text, kind):
    try:
        return kind(text)
    except ValueError:
        raise RequestError(f"{option}: {text!r} is not a number") from None


def _complain(error, as_json, status):
    text = " ".join(str(error).split())
    print(json.dumps({"error": text, "status": status}) if as_json else f"tarn pyramid: {text}",
          file=sys.stderr)
    return status


class Show:
    """Progress: a line on a terminal after a second, or lines of JSON, at most two in a second."""

    def __init__(self, as_json, quiet):
        self._json, self._last, self._drawn = as_json, time.monotonic(), False
        self._silent = quiet or not (as_json or sys.stderr.isatty())

    def __call__(self, state):
        now = time.monotonic()
        if self._silent or now - self._last < (0.5 if self._json or self._drawn else 1.0):
            return
        self._last = now
        if self._json:
            print(json.dumps({"event": "progress", **dataclasses.asdict(state)}), flush=True)
            return
        self._drawn = True
        print(f"\rlevel {state.level}, task {state.tasks_done} of {state.tasks}, "
              f"{state.bytes_done / 1e9:.2f} of {state.bytes / 1e9:.2f} GB, "
              f"{state.eta_seconds:.0f} s left \x1b[K", end="", file=sys.stderr, flush=True)

    def finish(self, result):
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr)
        if self._json:
            print(json.dumps({"event": "done", **dataclasses.asdict(result)}), flush=True)
