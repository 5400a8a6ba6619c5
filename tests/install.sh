#!/usr/bin/env bash
# What is installed is complete, and usable through pkg-config, find_package and add_subdirectory.
set -euo pipefail

source=${TARN_SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
build=${TARN_BUILD_DIR:-$source/build}
export CC=${CC:-cc}
unset DESTDIR
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "install.sh: $*" >&2
    exit 1
}
version_part() { sed -n "s/^#define TARN_VERSION_$1 \([0-9]*\).*/\1/p" "$source/include/tarn.h"; }
major=$(version_part MAJOR)
minor=$(version_part MINOR)
version=$major.$minor.$(version_part PATCH)
abi=$major
[ "$major" -ne 0 ] || abi=0.$minor

# Staged below DESTDIR, then moved: nothing may remember where it was first.
DESTDIR=$tmp/stage cmake --install "$build" --prefix /opt/tarn >/dev/null
mv "$tmp/stage/opt/tarn" "$tmp/moved"
echo '-- manifest'
sed -e "s/VERSION/$version/" -e "s/ABI/$abi/" "$source/tests/installed.txt" >"$tmp/expected"
(cd "$tmp/moved" && find . ! -type d | sed -e 's,^\./,,' -e 's,^lib/[^/]*-linux-gnu[^/]*/,lib/,' | LC_ALL=C sort) >"$tmp/installed"
diff "$tmp/expected" "$tmp/installed" || fail 'what is installed is not what tests/installed.txt lists'
find "$tmp/moved" -type f -empty | grep . && fail 'an installed file is empty'
pc=$(find "$tmp/moved" -name tarn.pc)
[ -n "$pc" ] || fail 'no tarn.pc'
lib=$(cd "$(dirname "$pc")/.." && pwd)
if grep -rI -e "$source" -e "$tmp" "$tmp/moved"; then
    fail 'an installed file names the folder it was built or staged in'
fi

echo '-- shared library'
dynamic=$(readelf -d "$lib/libtarn.so")
grep -qF "Library soname: [libtarn.so.$abi]" <<<"$dynamic" || fail "SONAME is not libtarn.so.$abi"
[ -e "$lib/libtarn.so.$abi" ] || fail "no libtarn.so.$abi"
needed=$(sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' <<<"$dynamic")
if grep -vE '^(libc|libpthread|ld-linux.*|libgomp|libomp)\.so' <<<"$needed"; then
    fail 'needs libraries other than libc and OpenMP'
fi
if nm -D --defined-only "$lib/libtarn.so" | awk '{ print $NF }' | grep -v '^tarn_'; then
    fail 'exports symbols that do not start with tarn_'
fi
nm -D --defined-only "$lib/libtarn.so" | awk '{ print $NF }' | LC_ALL=C sort | diff "$source/tests/symbols.txt" - ||
    fail 'exports other symbols than tests/symbols.txt lists: what is added is added there, what is gone changes the ABI'
# Weak symbols (w) are hooks of the compiler's start files, absent as a rule.
if nm -D --undefined-only "$lib/libtarn.so" | awk '$1 != "w" { print $NF }' |
    grep -vE '@GLIBC_|^(GOMP|omp|__kmpc)_'; then
    fail 'wants symbols from outside libc and OpenMP'
fi

echo '-- pkg-config'
export PKG_CONFIG_PATH=$lib/pkgconfig
[ "$(pkg-config --modversion tarn)" = "$version" ] || fail "tarn.pc is not version $version"
read -ra flags <<<"$(pkg-config --cflags --libs tarn)"
"$CC" "$source/tests/consumer/consumer.c" "${flags[@]}" -o "$tmp/pc-shared"
LD_LIBRARY_PATH=$lib "$tmp/pc-shared"
readelf -d "$tmp/pc-shared" | grep -qF "[libtarn.so.$abi]" || fail 'the shared library is not used'

# With both there the linker takes the shared one, so hide it.
cp -a "$tmp/moved" "$tmp/moved-static"
find "$tmp/moved-static" -name 'libtarn.so*' -delete
export PKG_CONFIG_PATH=${PKG_CONFIG_PATH/$tmp\/moved/$tmp\/moved-static}
read -ra flags <<<"$(pkg-config --static --cflags --libs tarn)"
"$CC" "$source/tests/consumer/consumer.c" "${flags[@]}" -o "$tmp/pc-static"
"$tmp/pc-static"

consume() { # consume <name> <cmake arguments>
    local name=$1
    shift
    echo "-- $name"
    if ! { cmake -S "$source/tests/consumer" -B "$tmp/$name" "$@" &&
        cmake --build "$tmp/$name" --parallel 2; } >"$tmp/log" 2>&1; then
        cat "$tmp/log"
        fail "$name does not build"
    fi
    "$tmp/$name/shared"
    "$tmp/$name/static"
}
consume find_package -DCMAKE_PREFIX_PATH="$tmp/moved" -DTARN_VERSION="$version"
case $CC in *clang*) exit 0 ;; esac # the rest compiles the library again; one compiler will do

# All of it is compiled elsewhere; this is the smallest library that serves the consumer.
consume add_subdirectory -DTARN_SOURCE_DIR="$source" -DTARN_AVX2=OFF -DTARN_DTYPES=f32 -DTARN_OPERATORS=max \
    -DTARN_GRAPH=OFF -DTARN_TEXT=OFF -DCMAKE_C_FLAGS_RELEASE=-O1

echo '-- FetchContent'
cmake -S "$source/tests/consumer" -B "$tmp/fetch" -DFETCH=ON -DTARN_SOURCE_DIR="$source" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log" && fail 'FetchContent does not configure'; }

# As a part of another project tarn brings no tests and installs nothing.
DESTDIR=$tmp/nothing cmake --install "$tmp/add_subdirectory" >/dev/null
[ ! -e "$tmp/nothing" ] || fail 'add_subdirectory installs files'
[ ! -e "$tmp/add_subdirectory/tarn/CTestTestfile.cmake" ] || fail 'add_subdirectory adds tests'
