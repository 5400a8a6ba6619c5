"""``python -m tarn``: `pyramid` is the package's own; all else is the program's, if it is on PATH."""

import os
import shutil
import sys

import tarn


def pyramid(arguments):
    try:
        tarn.pyramid
    except ImportError as error:  # which says what to install
        return f"tarn: {error}"
    from tarn.pyramid.command import main
    return main(arguments)


def main():
    if sys.argv[1:2] == ["pyramid"]:
        sys.exit(pyramid(sys.argv[2:]))
    program = shutil.which("tarn")
    if program is None:
        sys.exit("tarn: the program is not on PATH. A checkout builds it as build/tarn (make) and\n"
                 "installs it (cmake --install build). The package itself has `python -m tarn pyramid`.")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
