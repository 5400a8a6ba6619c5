#!/usr/bin/env bash
# One line compiles the library, all families of kernels, and a program: no build system, no generated file, no definition.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

flags="-Wall -Wextra -Wpedantic -Werror -ffp-contract=off -Iinclude"
echo '-- gcc'
# shellcheck disable=SC2086
gcc -O0 $flags src/*.c src/*/*.c tests/consumer/consumer.c -o "$tmp/consumer"
"$tmp/consumer"
echo '-- clang' # whose code the tests of its own build run; here it looks at the kernels that cannot run on this machine, too
# shellcheck disable=SC2086
clang -fsyntax-only $flags src/*.c src/*/*.c
