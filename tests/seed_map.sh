#!/usr/bin/env bash
# docs/seed-map.md names only what exists: functions and types of the headers, clauses of spec.md, tests in
# the file given for them. And every row of its tables names a function, a clause and a test.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
map=docs/seed-map.md
number=0 rows=0 failures=0

complain() { # complain <what>: about the current line
    echo "$map:$number: $1" >&2
    echo "    $line" >&2
    failures=$((failures + 1))
}

found() { # found <pattern>: the matches in the current line, each on a line of its own
    grep -oE "$1" <<<"$line" || true
}

defines() { # defines <file> <function>: a definition, not a declaration or a call
    grep -E "^[a-z].*[ *]$2\(" "$1" | grep -qv ';$'
}

while IFS= read -r line; do
    number=$((number + 1))
    functions=$(found '\btarn_[a-z0-9_]+\(')
    types=$(found '\btarn_[a-z0-9_]+\b[^(a-z0-9_.]')
    constants=$(found '\bTARN_[A-Z0-9_]+\b')
    clauses=$(found '\b[A-Z][0-9]+\b')
    files=$(found '\btest_[a-z0-9_]+\.c\b')
    tests=$(found '\b[a-z0-9_]+\.c:[a-z0-9_]+\(\)')
    homeless=$(found '(^|[^:a-z0-9_])(test|check|sweep)_[a-z0-9_]+\(')

    for name in $functions; do
        grep -qE "^TARN_API .*[ *]${name%(}\(" include/tarn*.h ||
            complain "no header declares $name)"
    done
    for name in $types $constants; do
        name=${name%[!A-Za-z0-9_]} # the character behind a type
        grep -qwF -- "$name" include/tarn*.h || complain "no header has $name"
    done
    for clause in $clauses; do
        grep -qF -- "- **$clause** " docs/spec.md || complain "docs/spec.md has no clause $clause"
    done
    for file in $files; do
        [ -f "tests/$file" ] || complain "there is no tests/$file"
    done
    for test in $tests; do
        file=tests/${test%%:*} name=${test#*:}
        [ ! -f "$file" ] || defines "$file" "${name%()}" || complain "$file does not define $name"
    done
    [ -z "$homeless" ] || complain "a test without its file: $homeless"

    case $line in
    '| definition |'* | '| in the seeds |'* | '| --- |'*) ;;
    '|'*)
        rows=$((rows + 1))
        [ -n "$functions" ] || complain "a row without a function"
        [ -n "$clauses" ] || complain "a row without a clause"
        [ -n "$tests" ] || complain "a row without a test"
        ;;
    esac
done <"$map"

echo "$rows rows, $failures failures"
[ "$failures" -eq 0 ] && [ "$rows" -gt 0 ] # a map without rows would prove nothing
