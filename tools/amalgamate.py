#!/usr/bin/env python3
"""usage: tools/amalgamate.py FOLDER

Writes the library as two files, tarn.c and tarn.h (and tarn_graph.h, if you want graphs), for those who put it into a program of their own:
cc -O2 -ffp-contract=off program.c tarn.c. What small builds leave out is left out by the same names (src/families.h).

Each file of src/ becomes a chunk: first the headers, once, then the sources with what only they include. Names that several chunks
declare get the chunk's number, by #define before the chunk and #undef after it; libclang tells who declares what. A name that is also
a member of a shared struct is replaced in the text instead, where it does not follow a dot or an arrow.
"""
import pathlib
import re
import sys

import clang.cindex as clang

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
LOCAL = re.compile(r'^\s*#\s*include\s+"([^"]+)".*$')
SYSTEM = re.compile(r"^\s*#\s*include\s+<([^>]+)>.*$")
# libclang comes without stdbool.h, and what it cannot parse it drops: members of type bool.
OPTIONS = ["-std=c11", "-D_GNU_SOURCE", "-DTARN_BUILD", "-Dbool=_Bool", f"-I{ROOT}/include"]


class Chunk:
    """A header that several files share, or a source with all that is compiled anew for it."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        self.headers = []  # chunks that it sees
        self.names = set()


def sources():
    """Files are the program's business; AVX-512 would be a quarter of the text."""
    found = sorted(SRC.glob("*.c")) + sorted(SRC.glob("*/*.c"))
    return [p for p in found if p.parent.name != "io" and "avx512" not in p.name]


def is_shared(path):
    return path.suffix == ".h" and path.name not in ("isa_begin.h", "isa_end.h", "vector.h")


def opened(line):
    """What a line #if, #ifdef or #ifndef asks."""
    word, _, rest = line.strip().lstrip("#").strip().partition(" ")
    rest = re.sub(r"/\*.*?\*/", "", rest).strip()
    return {"ifdef": f"defined({rest})", "ifndef": f"!defined({rest})"}.get(word, f"({rest})")


class Reader:
    def __init__(self):
        self.headers = {}  # path -> chunk, in the order of first use
        self.system = {}  # header -> conditions under which it is included

    def header(self, path):
        if path not in self.headers:
            chunk = Chunk(path)
            self.take(path, chunk, {path})
            self.headers[path] = chunk
        return self.headers[path]

    def source(self, path):
        chunk = Chunk(path)
        self.take(path, chunk, set())
        return chunk

    def take(self, path, chunk, once):
        """The text of a file into a chunk; includes become chunks or text."""
        stack = []
        for line in path.read_text().splitlines():
            directive = line.lstrip().lstrip("#").strip() if line.lstrip().startswith("#") else ""
            if directive.startswith("if"):
                stack.append(opened(line))
            elif directive.startswith("elif"):
                stack[-1] = f"!{stack[-1]} && {opened(line)}"
            elif directive.startswith("else"):
                stack[-1] = f"!({stack[-1]})"
            elif directive.startswith("endif"):
                stack.pop()
            local, system = LOCAL.match(line), SYSTEM.match(line)
            if system:
                asked = [s for s in stack if not re.fullmatch(r"!defined\(TARN_\w+_H\)", s)]
                self.system.setdefault(system[1], []).append(" && ".join(asked))
            elif local:
                self.include(path, local[1], chunk, once)
            elif not re.match(r"#define _(GNU|POSIX_C|DEFAULT)_SOURCE", line):
                chunk.lines.append(line)

    def include(self, path, name, chunk, once):
        if name in ("tarn.h", "tarn_graph.h"):
            return
        inner = (path.parent / name).resolve()
        if is_shared(inner):
            shared = self.header(inner)
            for seen in [*shared.headers, shared]:
                if seen not in chunk.headers:
                    chunk.headers.append(seen)
        elif inner.name != "vector.h" or inner not in once:
            once.add(inner)
            self.take(inner, chunk, once)


# ---- Names ---------------------------------------------------------------------------------------


def declared(unit):
    """The names of file scope that a translation unit declares, by file; and the members of its structs."""
    names, members = {}, {}
    for cursor in unit.cursor.get_children():
        where = cursor.location.file
        if where is None or not str(pathlib.Path(where.name).resolve()).startswith(str(ROOT)):
            continue
        own = names.setdefault(pathlib.Path(where.name).resolve(), set())
        object_or_function = cursor.kind in (clang.CursorKind.FUNCTION_DECL, clang.CursorKind.VAR_DECL)
        outside = object_or_function and cursor.linkage == clang.LinkageKind.EXTERNAL
        if cursor.spelling and not outside and "(" not in cursor.spelling:
            own.add(cursor.spelling)
        for child in cursor.walk_preorder():
            if child.kind == clang.CursorKind.ENUM_CONSTANT_DECL:
                own.add(child.spelling)
            elif child.kind == clang.CursorKind.FIELD_DECL:
                members.setdefault(pathlib.Path(child.location.file.name).resolve(), set()).add(child.spelling)
    return names, members


def find_names(chunks, headers):
    index, members = clang.Index.create(), set()
    for chunk in chunks:
        unit = index.parse(str(chunk.path), OPTIONS)
        wrong = [d for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error and "file not found" not in d.spelling]
        if wrong:
            sys.exit(f"{chunk.path}: {wrong[0].spelling}")
        names, fields = declared(unit)
        for path, found in names.items():
            (headers[path] if path in headers else chunk).names |= found if "include" not in path.parts else set()
        for path, found in fields.items():
            if path in headers or "include" in path.parts:
                members |= found
    return members


def rename(chunks):
    """name -> new name, for each chunk."""
    owners = {}
    for number, chunk in enumerate(chunks):
        for name in chunk.names:
            owners.setdefault(name, []).append(number)
    own = {chunk: {n: f"{n}_{number}" for n in chunk.names if len(owners[n]) > 1} for number, chunk in enumerate(chunks)}
    return {chunk: {n: new for seen in [*chunk.headers, chunk] for n, new in own[seen].items()} for chunk in chunks}


# ---- Writing -------------------------------------------------------------------------------------


def macros_of(chunk):
    return {m[1] for line in chunk.lines if (m := re.match(r"\s*#\s*define\s+(\w+)", line))}


def write_chunk(out, chunk, names, members, kept):
    text = "\n".join(chunk.lines)
    in_text = {n: new for n, new in names.items() if n in members}
    for name, new in in_text.items():
        text = re.sub(rf"(?<![\w.])(?<!->){name}\b", new, text)
    by_macro = {n: new for n, new in names.items() if n not in in_text}
    out.append(f"/* ---- {chunk.path.relative_to(ROOT)} ---- */")
    source = chunk.path.suffix == ".c"
    if source:
        out += ["#if defined(__GNUC__) && !defined(__clang__)", "#pragma GCC push_options", "#endif"]
    out += [f"#define {name} {new}" for name, new in sorted(by_macro.items())]
    out.append(text)
    out += [f"#undef {name}" for name in sorted(by_macro)]
    if source:
        out += [f"#undef {name}" for name in sorted(macros_of(chunk) - kept)]
        out += ["#if defined(__GNUC__) && !defined(__clang__)", "#pragma GCC pop_options", "#endif"]


def main():
    folder = pathlib.Path(sys.argv[1])
    reader = Reader()
    chunks = [reader.source(path) for path in sources()]
    headers = reader.headers
    members = find_names(chunks, headers)
    everything = [*headers.values(), *chunks]
    names = rename(everything)
    kept = set().union(*(macros_of(h) for h in headers.values()))
    out = ["/* tarn as one file, made by tools/amalgamate.py. Compile it with -ffp-contract=off. */",
           '#pragma GCC diagnostic ignored "-Wunused-function"',
           "#ifndef _GNU_SOURCE", "#define _GNU_SOURCE", "#endif", "#undef TARN_NO_AVX512", "#define TARN_NO_AVX512", '#include "tarn.h"', '#include "tarn_graph.h"']
    families = headers.pop(SRC / "families.h")  # conditions below ask what it says
    write_chunk(out, families, {}, members, kept)
    for header, conditions in sorted(reader.system.items()):
        if "" in conditions:
            out.append(f"#include <{header}>")
        else:
            out += [f"#if {' || '.join(f'({c})' for c in sorted(set(conditions)))}", f"#include <{header}>", "#endif"]
    for chunk in [*headers.values(), *chunks]:
        write_chunk(out, chunk, names[chunk], members, kept)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tarn.c").write_text("\n".join(out) + "\n")
    for name in ("tarn.h", "tarn_graph.h"):
        (folder / name).write_text((ROOT / "include" / name).read_text())
    text = (folder / "tarn.c").read_text()
    print(f"{folder}/tarn.c: {text.count(chr(10))} lines, {len(text) // 1024} KiB")


main()
