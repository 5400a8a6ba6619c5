"""``python -m tarn``: the program, if it is on PATH; the package does not bring it."""

import os
import shutil
import sys


def main():
    program = shutil.which("tarn")
    if program is None:
        sys.exit("tarn: the program is not on PATH. A checkout builds it as build/tarn (make) and\n"
                 "installs it (cmake --install build); this package is for import only.")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
