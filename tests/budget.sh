#!/usr/bin/env bash
# Budgets, so that tarn stays small and without cliffs: bytes, lines, instructions (tests/budget.py). No time can fail it.
set -euo pipefail

source=${TARN_SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
for tool in valgrind python3 size strip; do
    command -v "$tool" >/dev/null || {
        echo "budget.sh needs $tool: tools/setup.sh test installs it" >&2
        exit 1
    }
done
exec python3 -B "$source/tests/budget.py" "$source" "${TARN_BUILD_DIR:-$source/build}"
