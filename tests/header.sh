#!/usr/bin/env bash
# Each public header stands alone and is clean, old C and C++.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"

check() { # check <language> <compiler> <flags>
    echo "-- ${*:2}"
    for header in include/*.h; do
        echo "#include \"${header#include/}\"" |
            "${@:2}" -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x "$1" -
    done
}
for cc in gcc clang; do
    check c $cc -std=c99 -Wstrict-prototypes
    check c $cc -std=c11 -Wstrict-prototypes
done
for cxx in g++ clang++; do
    check c++ $cxx -std=c++98
    check c++ $cxx -std=c++17
done
