#!/usr/bin/env python3
"""Runs the commands of docs/tutorial.md and compares what they print and draw with what the page shows.

usage: tools/tutorial.py [--write]        --write takes the new output as right; look at it before you commit

TARN_PROGRAM is the program to run, build/tarn unless set.

In the page, the lines of a block that begins with ```sh are commands; a block that begins with ```text right
behind it is what they print. Pictures are compared dot by dot: PNG files may be packed differently.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "tutorial.md")
PICTURES = os.path.join(ROOT, "docs", "pictures")
BLOCK = re.compile(r"```sh\n(?P<commands>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?", re.S)
PICTURE = re.compile(r"!\[[^\]]*\]\(pictures/([a-z0-9_]+\.png)\)")


def make_folder(folder, program):
    """What the first lines of the page tell the reader to do: the examples, and `tarn` on the path."""
    for part in ("data", "graphs"):
        shutil.copytree(os.path.join(ROOT, "examples", part), folder, dirs_exist_ok=True)
    tools = os.path.join(folder, "bin")
    os.mkdir(tools)
    os.symlink(os.path.abspath(program), os.path.join(tools, "tarn"))
    return {**os.environ, "PATH": tools + os.pathsep + os.environ["PATH"], "OMP_WAIT_POLICY": "passive"}


def run_commands(commands, folder, environment):
    done = subprocess.run(["sh", "-e", "-c", commands], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode:
        raise RuntimeError("failed:\n%s%s" % (commands, done.stdout))
    return done.stdout


def dots(path, program):
    """The dots of a picture, as the program reads them: pooling windows of one dot changes nothing."""
    return subprocess.run([program, "max", path, "-o", "-", "--kernel", "1"], stdout=subprocess.PIPE,
                          check=True, timeout=60).stdout


def new_page(page, folder, environment):
    """The page with what its commands print now, and the blocks that changed."""
    changed = []

    def renew(block):
        printed = run_commands(block["commands"], folder, environment)
        if block["printed"] is None or block["printed"] == printed:
            return block[0]
        changed.append("printed by\n%s%s" % (block["commands"], printed))
        return "```sh\n%s```\n\n```text\n%s```\n" % (block["commands"], printed)

    return BLOCK.sub(renew, page), changed


def changed_pictures(page, folder, program):
    for name in PICTURE.findall(page):
        shown, drawn = os.path.join(PICTURES, name), os.path.join(folder, name)
        if not os.path.exists(shown) or dots(shown, program) != dots(drawn, program):
            yield name


def main(write):
    program = os.environ.get("TARN_PROGRAM", os.path.join(ROOT, "build", "tarn"))
    with open(PAGE) as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as folder:
        renewed, changed = new_page(page, folder, make_folder(folder, program))
        pictures = list(changed_pictures(page, folder, program))
        if write:
            os.makedirs(PICTURES, exist_ok=True)
            for name in pictures:
                shutil.copy(os.path.join(folder, name), PICTURES)
            with open(PAGE, "w") as file:
                file.write(renewed)
        for what in changed + pictures:
            print("changed: %s" % what)
    return 0 if write or not (changed or pictures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--write"]))
