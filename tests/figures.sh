#!/usr/bin/env bash
# The figures of README and docs/performance.md are those of bench/results.
set -euo pipefail
cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
PYTHONDONTWRITEBYTECODE=1 python3 bench/report/figures.py --check
