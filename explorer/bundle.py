#!/usr/bin/env python3
"""usage: explorer/bundle.py module.wasm page.html

Puts the explorer into one file: modules without their imports and exports one after the other, the style sheet, the
clauses of docs/spec.md, the WebAssembly module (gzip, base64), and a policy that allows exactly these scripts."""
import base64
import gzip
import hashlib
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# Every module after those it imports.
MODULES = ["engine", "numbers", "files", "state", "model", "explain", "peers", "codes", "gallery", "panel", "app"]


def script():
    """One script of all modules; names are unique across them, which strict mode checks."""
    parts = ['"use strict";']
    for name in MODULES:
        text = (HERE / "js" / f"{name}.mjs").read_text()
        for module in re.findall(r'from "\./(\w+)\.mjs"', text):
            assert MODULES.index(module) < MODULES.index(name), f"{name} imports {module}, which comes later"
        text = re.sub(r"^import [^;]*;\n", "", text, flags=re.M)
        text = re.sub(r"^ *//.*\n", "", text, flags=re.M)  # comments stay at home
        parts.append(re.sub(r"^export ", "", text, flags=re.M))
    return "\n".join(parts)


def clauses():
    """The clauses of the contract by name, as plain text."""
    text = (HERE.parent / "docs" / "spec.md").read_text()
    found = {}
    for name, body in re.findall(r"^- \*\*([A-Z]\d)\*\* (.*?)(?=^- \*\*|^#|\Z)", text, flags=re.M | re.S):
        lines = [re.sub(r"^\s+", "", line) for line in body.strip().split("\n")]
        flowing = re.sub(r"(?<!\n)\n(?![\n|])", " ", "\n".join(lines)).replace("\n\n", "\n")
        flowing = re.sub(r"\n\| --- .*", "", flowing)
        flowing = re.sub(r" ?\[See it\]\([^)]*\)\.?", "", flowing)
        flowing = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", flowing)  # links
        flowing = re.sub(r"\*\*(.+?)\*\*|(?<![\w`])\*(\w[\w ]*)\*(?![\w`])", r"\1\2", flowing)  # emphasis
        found[name] = flowing.replace("`", "").strip()
    return found


def commit():
    """The commit this tree is at, with a plus if it was changed since."""
    def git(*words):
        return subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True).stdout.strip()
    return (git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "..") else "")) or "unknown"


def version():
    header = (HERE.parent / "include" / "tarn.h").read_text()
    return ".".join(re.search(rf"TARN_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def packed(file):
    """gzip; by zopfli, which finds 5 % more, where it is installed."""
    try:
        return subprocess.run(["zopfli", "-c", "--i15", file], capture_output=True, check=True).stdout
    except FileNotFoundError:
        return gzip.compress(file.read_bytes(), 9, mtime=0)


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main():
    wasm, page = map(pathlib.Path, sys.argv[1:])
    code, style = script(), (HERE / "style.css").read_text()
    assert "</script" not in code
    policy = ("default-src 'none'; script-src " + hash_of(code) + " 'wasm-unsafe-eval'; style-src " + hash_of(style) +
              "; img-src blob: data:; worker-src blob:; base-uri 'none'; form-action 'none'")
    values = {
        "CSP": policy, "STYLE": style, "SCRIPT": code, "VERSION": version(), "COMMIT": commit(),
        "IDEAS": str((HERE / "js" / "gallery.mjs").read_text().count('"p=')),
        "CLAUSES": json.dumps(clauses(), ensure_ascii=False).replace("<", "\\u003c"),
        "WASM": base64.b64encode(packed(wasm)).decode(),
    }
    text = re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], (HERE / "page.html").read_text())
    page.write_text(text)
    wire = len(gzip.compress(text.encode(), 9))
    print(f"{page}: {len(text.encode()):,} bytes, {wire:,} on the wire ({len(code.encode()):,} of script, {len(style.encode()):,} of style)")


if __name__ == "__main__":
    main()
