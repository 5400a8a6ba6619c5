#!/usr/bin/env bash
# The library notices a compiler that was told to change arithmetic: src/arithmetic.c finds each such option out, and no other.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/main.c" <<'C'
#include "dispatch.h"
int main(void)
{
    return !tarn_arithmetic_is_exact();
}
C
finds() { # finds <compiler> <flags>: succeeds if arithmetic is found to be changed
    # shellcheck disable=SC2086
    $1 $2 -Wall -Wextra -Werror -Iinclude -Isrc src/arithmetic.c "$tmp/main.c" -o "$tmp/main" || exit 1
    ! "$tmp/main"
}
for compiler in gcc clang; do
    for flags in -O0 -O2 '-O3 -ffp-contract=off'; do
        ! finds "$compiler" "$flags" || { echo "$compiler $flags: arithmetic is as it should be, but a plan would be refused" >&2 && exit 1; }
    done
    for flags in '-O2 -funsafe-math-optimizations' '-O3 -fassociative-math -fno-signed-zeros -fno-trapping-math' '-O2 -fno-signed-zeros'; do
        finds "$compiler" "$flags" || { echo "$compiler $flags: not noticed" >&2 && exit 1; }
    done
    for flags in -ffast-math -Ofast -ffinite-math-only; do
        ! $compiler "$flags" -w -Iinclude -c src/arithmetic.c -o "$tmp/arithmetic.o" 2>/dev/null ||
            { echo "$compiler $flags: compiles" >&2 && exit 1; }
    done
done
if [ "$(uname -m)" = x86_64 ]; then # gcc obeys the pragma of scalar.h
    ! finds gcc '-O3 -ffp-contract=fast -mfma' || { echo 'gcc -ffp-contract=fast: changes arithmetic' >&2 && exit 1; }
    finds clang '-O3 -ffp-contract=fast -mfma' || { echo 'clang -ffp-contract=fast: not noticed' >&2 && exit 1; }
fi
finds clang '-O3 -freciprocal-math' || { echo 'clang -freciprocal-math: not noticed' >&2 && exit 1; }
