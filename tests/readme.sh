#!/usr/bin/env bash
# What README shows can be typed as it stands: the programs in C, linked as it says, and the picture.
set -euo pipefail
cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
build=${TARN_BUILD_DIR:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "readme.sh: $*" >&2
    exit 1
}
block() { # block <number>: that block of C in README
    awk -v wanted="$1" '/^```c$/ { inside = ++number == wanted; next } /^```$/ { inside = 0 } inside' README.md
}
openmp=$(grep -q '^TARN_OPENMP:BOOL=ON' "$build/CMakeCache.txt" && echo -fopenmp || true)

# The first is a program; a comment of it says what it prints.
block 1 >"$tmp/program.c"
printed=$(sed -n 's|.*printf.*/\* \(.*\) \*/|\1|p' "$tmp/program.c")
[ -n "$printed" ] || fail 'the program does not say what it prints'
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$tmp/program.c" "$build/libtarn.a" $openmp -o "$tmp/program"
[ "$("$tmp/program")" = "$printed" ] || fail "the program prints '$("$tmp/program")', not '$printed'"

# The second is a part of one.
{
    printf '#include <tarn.h>\n#include <stdlib.h>\nint main(void)\n{\n'
    printf 'static float data[2 * 3 * 8 * 8];\nint64_t n = 2, c = 3, h = 8, w = 8;\ntarn_error error;\n'
    block 2
    printf 'free(y.data);\nreturn error.code || y.shape[2] != 4 || y.strides[1] != 1;\n}\n'
} >"$tmp/part.c"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$tmp/part.c" "$build/libtarn.a" $openmp -o "$tmp/part"
"$tmp/part" || fail 'the part about channels last fails'

# The picture is what its command draws.
command=$(sed -n 's|^    build/tarn show|show|p' README.md)
[ -n "$command" ] || fail 'there is no command for the picture'
"$build/tarn" ${command/what_happened.png/$tmp/what_happened.png} >"$tmp/said"
cmp "$tmp/what_happened.png" "$(sed -n 's/^!\[.*\](\(docs[^)]*\))$/\1/p' README.md | head -n 1)" || fail 'the picture is another'
echo 'readme.sh: two programs, one picture'
