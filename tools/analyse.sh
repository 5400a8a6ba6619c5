#!/usr/bin/env bash
# usage: tools/analyse.sh [gcc|tidy|cppcheck]...      all of them without arguments
# Static analysis of the library, the program and the readers: gcc -fanalyzer, clang-tidy with the analyser of clang, cppcheck; of
# engines and specification by cppcheck only, of vector code by none. A finding fails; what is suppressed stands below, with its reason.
set -uo pipefail
cd "$(dirname "$0")/.."

sources=$(ls src/*.c src/graph/*.c src/io/*.c tool/*.c | grep -vE '/(error|complaint|.*_windows).c$') # told by tools/analysis.h
engines=$(ls src/kernel/*.c src/spec/*.c | grep -vE '/(row_ops|[a-z0-9]*_weights)')
flags=(-std=c11 -Iinclude -Isrc -DTARN_PNG=1 -DTARN_ZLIB=1 -ffp-contract=off -D_GNU_SOURCE= -include tools/analysis.h)
out=build/analysis
mkdir -p $out

# -Wanalyzer-too-complex only tells that a function was not followed to its end. gcc 12 takes the bases of a program, which a run
# has checked, for NULL in graph_glue.c and graph_run.c, and loses what graph_file.c keeps in an array (graph_file_close frees it).
run_gcc() {
    for source in $(echo "$sources" | grep -vE '/graph_(glue|run).c$'); do
        more=-Wno-analyzer-too-complex
        [ "$source" != tool/graph_file.c ] || more="$more -Wno-analyzer-malloc-leak"
        gcc "${flags[@]}" -O1 -fanalyzer $more -c "$source" -o /dev/null
    done
}

# Left out: dead stores (compilers' business); memcpy and snprintf, for which it would have functions of Annex K that glibc does not
# have; results of snprintf, which all cut; status = call() in a condition, which is how errors are handed on here; parameters
# that could be swapped; void * and pointers to pointers; names of feature macros; results of the C library that say nothing more
# than the checks that follow (cert-err33-c); bytes of memory that get a type through void *; estimates of the chooser, which divide
# integers; products of small integers as offsets, and casts of sums of int64_t to long long, for printf(); conditions of two characters,
# which are an int; text++ in conditions, in the order of &&; numbers that are compared by their bits; the magic of .npy, which is no
# string.
# By file: the address of a job that src/threads.c keeps is gone before its function ends. The analyser of clang does not see that a
# permutation of axes is set by as many steps as it is read (layout.c), that dtypes have sizes (layout.c), that pictures without a
# pixel are refused before their bits are read (pnm.c), that all places have their outputs or a complaint (graph_check.c), and that
# operations of the command line have a row in the table (problems.c).
tidy_checks='-*,bugprone-*,portability-*,clang-analyzer-*,-clang-analyzer-deadcode.DeadStores'
for check in clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling bugprone-assignment-in-if-condition \
    bugprone-easily-swappable-parameters bugprone-multi-level-implicit-pointer-conversion bugprone-reserved-identifier \
    bugprone-casting-through-void bugprone-integer-division bugprone-implicit-widening-of-multiplication-result \
    bugprone-misplaced-widening-cast bugprone-narrowing-conversions bugprone-inc-dec-in-conditions bugprone-suspicious-memory-comparison \
    bugprone-not-null-terminated-result; do
    tidy_checks+=,-$check
done
run_tidy() {
    for source in $sources; do
        checks=$tidy_checks
        case $source in
        src/threads.c) checks+=,-clang-analyzer-core.StackAddressEscape ;;
        src/layout.c) checks+=,-clang-analyzer-core.DivideZero,-clang-analyzer-core.uninitialized.ArraySubscript ;;
        src/io/pnm.c) checks+=,-clang-analyzer-core.DivideZero ;;
        tool/graph_check.c | tool/problems.c) checks+=,-clang-analyzer-core.NullDereference ;;
        esac
        clang-tidy-19 --quiet --checks="$checks" "$source" -- "${flags[@]}"
    done
}

# Style is not asked for. Kernels come by tables of macros, which cppcheck does not expand all the way. rounded() in convert.c
# converts numbers below 2^64 only; cppcheck takes the bound itself for one of them. Of engines: two
# variables may begin as equal; there is an axis at least, and a tap, so that what loops over them set is set; the first functions that
# ties.c calls fill what they are given. It takes 0x1p52 for 0 (exponential.h), and cannot read a compound literal behind a '?' (spec.inc).
run_cppcheck() {
    # shellcheck disable=SC2086
    cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem \
        --suppress=preprocessorErrorDirective --suppress=floatConversionOverflow:src/io/convert.c --suppress='duplicateAssignExpression:src/kernel/*' \
        --suppress=uninitvar:src/kernel/weighted.c --suppress=uninitvar:src/kernel/winners_asked.c --suppress=ctuuninitvar:src/kernel/ties.c \
        --suppress=incorrectLogicOperator:src/spec/exponential.h --suppress=internalAstError:src/spec/spec.inc \
        --template=gcc -Iinclude -Isrc -DTARN_PNG=1 -DTARN_ZLIB=1 $sources $engines
}

status=0
[ $# -gt 0 ] || set -- gcc tidy cppcheck
for tool; do
    command -v "${tool/tidy/clang-tidy-19}" >/dev/null || { echo "tools/analyse.sh: there is no $tool" >&2; exit 1; }
    "run_$tool" >$out/"$tool".txt 2>&1
    findings=$(grep -E '(warning|error):' $out/"$tool".txt | grep -vc redefined)
    echo "$tool: $findings findings ($out/$tool.txt)"
    [ "$findings" -eq 0 ] || { grep -E '(warning|error):' $out/"$tool".txt | grep -v redefined | head -n 40; status=1; }
done
exit $status
