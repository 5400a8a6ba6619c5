#!/usr/bin/env python3
"""usage: tools/coverage.py SUMMARY.json      (of gcovr --json-summary)

Prints lines and branches that the tests reached in each folder of src/, and fails below the recorded level.
"""

import json
import sys

# Per cent of lines and branches, a little below what was last reached; None where nothing was recorded yet.
LEVELS = {"src": None, "src/graph": None, "src/io": None, "src/kernel": None, "src/spec": None}


def main(path):
    folders, status = {}, 0
    for file in json.load(open(path))["files"]:
        folder = file["filename"].rsplit("/", 1)[0]
        counts = folders.setdefault(folder, [0, 0, 0, 0])
        for k, key in enumerate(["line_covered", "line_total", "branch_covered", "branch_total"]):
            counts[k] += file[key]
    for folder, (lines, all_lines, branches, all_branches) in sorted(folders.items()):
        reached = 100 * lines / max(all_lines, 1), 100 * branches / max(all_branches, 1)
        level = LEVELS.get(folder)
        below = level and (reached[0] < level[0] or reached[1] < level[1])
        status |= bool(below)
        print(f"{folder:12} lines {reached[0]:5.1f} % of {all_lines}, branches {reached[1]:5.1f} % of {all_branches}"
              f"{'   BELOW ' + str(level) if below else '' if level else '   (no level recorded)'}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
