"""What is done. A file of lines, appended to, one for each finished unit, each with its checksum.

The presence of a shard does not say that it is done: zarr writes no file for a unit of fill values. A
line does, and holds the size and checksum of the file, so that a resumed run can ask whether the file is
still (or, after a loss of power, already) what the line says. Lines reach the file at once, so a killed
process loses none; the disk gets them when the system writes them, and what it then lacks is done again.
"""

import fcntl
import json
import os
import zlib

from .errors import RequestError

NAME = ".tarn-journal"


class Journal:
    """An open journal, which no other process can open. `done` maps (level, unit) to its line."""

    def __init__(self, folder, header, resume):
        self.path = os.path.join(folder, NAME)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.done = self._read(header) if resume else {}
        except BlockingIOError:
            os.close(self._fd)
            raise RequestError(f"{folder} is being written by another process") from None
        except BaseException:
            os.close(self._fd)
            raise
        if os.fstat(self._fd).st_size == 0:
            self.add(header)

    def add(self, line):
        os.write(self._fd, _encode(line))

    def _read(self, header):
        """Lines up to the first that is torn or damaged; the rest is cut off."""
        with open(self.path, "rb") as file:
            lines = file.read().split(b"\n")
        good, end = [], 0
        for line in lines[:-1]:
            decoded = _decode(line)
            if decoded is None:
                break
            good.append(decoded)
            end += len(line) + 1
        if good:
            refuse_other(good[0], header)
        elif lines[:-1]:
            raise RequestError(f"resume: {self.path} is damaged; --overwrite begins anew")
        os.ftruncate(self._fd, end)
        return {(line["level"], tuple(line["unit"])): line for line in good[1:]}

    def close(self):
        os.close(self._fd)

    def finish(self):
        """The work is done: nothing is left to resume."""
        os.unlink(self.path)
        self.close()


def refuse_other(found, wanted):
    """Going on with other parameters would mix two pyramids."""
    found, wanted = _flat(found), _flat(wanted)
    for name in wanted:
        if found.get(name) != wanted[name]:
            raise RequestError(f"resume: begun with another {name}: {found.get(name)!r}, "
                               f"now {wanted[name]!r}")


def _flat(facts):
    """One name for each part, in the order in which they are complained of."""
    source = {f"source ({name})": value for name, value in facts.get("source", {}).items()}
    return {**facts.get("request", {}), **source, "version of tarn": facts.get("tarn"),
            "geometry": facts.get("levels")}


_text_of = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _encode(line):
    text = _text_of(line).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _decode(line):
    checksum, _, text = line.partition(b" ")
    try:
        return json.loads(text) if int(checksum, 16) == zlib.crc32(text) else None
    except ValueError:
        return None
