#!/usr/bin/env bash
# usage: tools/machines.sh [MACHINE]...      all of them, or those named; MACHINES_FLAGS="-O2" for another level than -O1
# Compiles the library, the program and four tests for each machine, runs them there (in QEMU, Wine, or as they are), and compares the bits
# with those of the others. build/machines/results.tsv keeps a line for each, from which --table makes the table of docs/machines.md.
set -euo pipefail
cd "$(dirname "$0")/.."

# name|system|compiler|how it is run; a compiler that begins with "zig " is zig's clang for that target
machines='
x86-64|Linux, glibc|gcc|
x86-64-musl|Linux, musl|musl-gcc|
i386|Linux, glibc, 32 bits|i686-linux-gnu-gcc -msse2 -mfpmath=sse|
aarch64|Linux, glibc|aarch64-linux-gnu-gcc|qemu-aarch64
aarch64-musl|Linux, musl|zig aarch64-linux-musl|qemu-aarch64
armhf|Linux, glibc, 32 bits|arm-linux-gnueabihf-gcc|qemu-arm
riscv64|Linux, glibc|riscv64-linux-gnu-gcc|qemu-riscv64
s390x|Linux, glibc, big-endian|s390x-linux-gnu-gcc|qemu-s390x
ppc64le|Linux, glibc|powerpc64le-linux-gnu-gcc|qemu-ppc64le
windows|Windows, x86-64|x86_64-w64-mingw32-gcc|wine
macos-arm64|macOS, AArch64|zig aarch64-macos|not run
macos-x86-64|macOS, x86-64|zig x86_64-macos|not run
wasm32|WASI|clang|node
'
out=build/machines
results=$out/results.tsv
jobs=${JOBS:-$(nproc)}
level=${MACHINES_FLAGS:--O1}

fail() {
    echo "tools/machines.sh: $*" >&2
    exit 1
}

# ---- Building ----

make_zig() {
    zig=$(echo $out/zig/lib/python3*/site-packages/ziglang/zig)
    mkdir -p $out/bin
    for tool in ar ranlib; do
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$PWD/$zig" $tool >$out/bin/$tool
        chmod +x $out/bin/$tool
    done
    export ZIG_GLOBAL_CACHE_DIR=$PWD/$out/zig-cache ZIG_LOCAL_CACHE_DIR=$PWD/$out/zig-cache
}

# Kernels of families that no emulator here runs are left out, as they would not be tested.
configure() { # configure <name> <compiler>
    local name=$1 compiler=$2 flags="$level -DNDEBUG" arguments=()
    case $compiler in
    'zig '*)
        make_zig
        read -r _ target more <<<"$compiler"
        arguments=(--toolchain "$PWD/cmake/zig.cmake" -DTARN_ZIG="$PWD/$zig" -DTARN_TARGET="$target" -DTARN_ZIG_TOOLS="$PWD/$out/bin")
        ;;
    *)
        read -r program more <<<"$compiler"
        arguments=(-DCMAKE_C_COMPILER="$program")
        case $program in
        gcc) ;;
        *-mingw32-gcc) arguments+=(-DCMAKE_SYSTEM_NAME=Windows -DCMAKE_EXE_LINKER_FLAGS=-static) ;;
        *) arguments+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="${program%%-*}" -DCMAKE_EXE_LINKER_FLAGS=-static) ;;
        esac
        ;;
    esac
    cmake -S . -B "$out/$name" "${arguments[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="${more:-}" -DCMAKE_C_FLAGS_RELEASE="$flags" \
        -DTARN_TESTS=ON -DTARN_WERROR=ON -DTARN_TOOL=ON -DTARN_EXAMPLES=OFF -DTARN_INSTALL=OFF -DTARN_TESTS_EXACT=OFF -DTARN_SHORT_TESTS=ON \
        -DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON -DTARN_AVX2=OFF >"$out/$name.log" 2>&1
}

build() { # build <name> <compiler>
    configure "$1" "$2" && cmake --build "$out/$1" --parallel "$jobs" --target test_seeds test_golden test_kernels hashes tarn_tool >>"$out/$1.log" 2>&1
}

# ---- Running ----

run() { # run <name> <runner> <program> <argument>...
    local name=$1 runner=$2 program=$out/$1/$3
    shift 3
    [ -e "$program" ] || program=$program.exe
    case $runner in
    wine) WINEDEBUG=-all WINEPREFIX=$PWD/$out/wine "$wine" "$program" "$@" 2>>"$out/$name.log" | tr -d '\r' ;;
    *) $runner "$program" "$@" 2>>"$out/$name.log" ;;
    esac
}

# The sweeps that take seconds in an emulator, too.
short_sweeps='1-D found adaptive'

# Files that the program writes, of a picture that it reads, as one hash. Numbers as text, because .npy has the machine's byte order.
test_program() { # test_program <name> <runner>: sets program
    local folder=$out/$1 picture=examples/data/tarn.pgm
    local files="$folder/max.pgm $folder/smooth.txt $folder/gradient.txt"
    rm -f $files $folder/gy.npy
    run "$1" "$2" tarn max $picture -o $folder/max.pgm --kernel 3 --stride 2 --pad 1 &&
        run "$1" "$2" tarn smooth $picture --dtype f32 -o $folder/smooth.txt --kernel 3 --stride 1 --pad 1 --beta 0.1 &&
        run "$1" "$2" tarn smooth $picture --dtype f32 -o $folder/gy.npy --kernel 3 --stride 1 --pad 1 --beta 0.1 &&
        run "$1" "$2" tarn avg $picture --dtype f32 --vjp $folder/gy.npy -o $folder/gradient.txt --kernel 3 --stride 1 --pad 1 &&
        run "$1" "$2" tarn check max k3s2p1 f32 2x3x20x20 >/dev/null || return 1
    program=$(cat $files | sha256sum | cut -c 1-16)
}

test_machine() { # test_machine <name> <runner>: sets golden, seeds, kernels, hash, program
    local counted=0 line
    golden=$(run "$1" "$2" tests/test_golden | tail -n 1) && seeds=$(run "$1" "$2" tests/test_seeds | tail -n 1) &&
        hash=$(run "$1" "$2" tests/hashes | tail -n 1) || return 1
    for sweep in $short_sweeps; do
        line=$(run "$1" "$2" tests/test_kernels 1 "$sweep" | tail -n 1) || return 1
        counted=$((counted + ${line%% *}))
    done
    kernels="$counted passed"
    test_program "$1" "$2"
}

version_of() { # version_of <compiler>
    case $1 in
    'zig '*) make_zig && echo "clang $("$zig" clang --version | sed -n 's/.*clang version \([0-9.]*\).*/\1/p') (zig $("$zig" version))" ;;
    clang*) clang --version | sed -n '1s/.*clang version \([0-9.]*\).*/clang \1/p' ;;
    *) echo "gcc $(${1%% *} -dumpfullversion)" ;;
    esac
}

note() { # note <name> <system> <compiler> <runner> <golden> <seeds> <kernels> <hash> <program>
    touch $results
    grep -v "^$1	" $results >$results.new || true
    (IFS=$'\t' && echo "$*") >>$results.new
    mv $results.new $results
    printf '%-13s %s | %s | %s | %s | %s | %s\n' "$1" "$4" "$5" "$6" "$7" "$8" "$9"
}

do_wasm() {
    tools/explorer.sh wasm >$out/wasm32.log 2>&1 || return 1
    golden=$(sed -n 's/^test_golden: //p' $out/wasm32.log) && seeds=$(sed -n 's/^test_seeds: //p' $out/wasm32.log) &&
        hash=$(sed -n 's/^hashes: //p' $out/wasm32.log)
    kernels='no protected memory' program='not compiled'
}

do_machine() { # do_machine <name> <system> <compiler> <runner>
    echo "-- $1"
    if [ "$1" = wasm32 ]; then
        do_wasm || return 1
    else
        build "$1" "$3" || return 1
        golden='not run' seeds='not run' kernels='not run' hash='not run' program='linked'
        [ "$4" = 'not run' ] || test_machine "$1" "$4" || return 1
    fi
    note "$1" "$2" "$(version_of "$3")" "${4:-as it is}" "$golden" "$seeds" "$kernels" "${hash##* }" "$program"
}

# ---- The table ----

table() {
    echo '| machine | system | compiler | run | golden | seeds | kernels | hash | program |'
    echo '| --- | --- | --- | --- | --: | --: | --: | --- | --- |'
    while IFS='|' read -r name _; do
        [ -z "$name" ] || awk -F'\t' -v name="$name" '$1 == name { gsub(/ passed(, 0 failed)?/, "")
            print "| " $1 " | " $2 " | " $3 " | " $4 " | " $5 " | " $6 " | " $7 " | " $8 " | " $9 " |" }' $results
    done <<<"$machines" | sed -E 's/\| ([0-9a-f]{16}) /| `\1` /g'
}

mkdir -p $out
if [ "${1:-}" = --table ]; then
    table
    exit
fi
[ $# -gt 0 ] || set -- $(sed -n 's/^\([^|]*\)|.*/\1/p' <<<"$machines")
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
failed=
for name; do
    line=$(grep "^$name|" <<<"$machines") || fail "no machine '$name'; there are:$(sed -n 's/^\([^|]*\)|.*/ \1/p' <<<"$machines" | tr -d '\n')"
    IFS='|' read -r _ system compiler runner <<<"$line"
    do_machine "$name" "$system" "$compiler" "$runner" || {
        failed="$failed $name"
        echo "   FAILED: the end of $out/$name.log:"
        tail -n 15 "$out/$name.log" | sed 's/^/   /'
    }
done
touch $results
for column in 8 9; do
    different=$(awk -F'\t' -v column=$column '$column ~ /^[0-9a-f]+$/ { print $column }' $results | sort -u)
    [ "$(wc -w <<<"$different")" -le 1 ] || fail "different hashes in $results:" $different
done
[ -z "$failed" ] || fail "failed:$failed"
echo "all the same bits: $(awk -F'\t' '$8 ~ /^[0-9a-f]+$/' $results | wc -l) machines"
