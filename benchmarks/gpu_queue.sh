#!/usr/bin/env bash
# Everything that short runs, draws of labels and unequal populations want of a GPU, in the order of what decides most.
#
#     CADR_DATA=FOLDER bash benchmarks/gpu_queue.sh [MINUTES]    (25 unless said otherwise)
#     DRY=1 CADR_DATA=FOLDER bash benchmarks/gpu_queue.sh        every row of its plans, tiny, on the CPU; keeps nothing
#
# It stops in time, and the same command goes on: finished runs have a record, begun ones a folder under runs/ (RUNS),
# on this machine or on another that both are carried to. KEKMODEL and USB may name clones of other people's FixMatch
# (benchmarks/peers.py says how they are set up), PEER_PATH a folder of what they lack.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
PYTHON=${PYTHON:-python3} RUNS=${RUNS:-runs} DRY=${DRY:-}
LIMIT=$((60 * ${1:-25}))
[ -z "$DRY" ] || LIMIT=1000000
failed=0

left() { echo $(((LIMIT - SECONDS) / 60)); }

once() { # FILE COMMAND…: unless the file is there, and as long as five minutes are left
    local file=$1
    shift
    if [ -e "$file" ] || [ "$(left)" -lt 5 ]; then return; fi
    echo "== $*" >&2
    "$@" || { echo "failed: $*" >&2; failed=1; }
}

plan() { # FILE RECORDS: what has no record yet
    if [ "$(left)" -lt 2 ]; then return; fi
    echo "== $1" >&2
    if [ -n "$DRY" ]; then
        "$PYTHON" benchmarks/reproduce.py rest --plan "$1" --dry || failed=1
    else
        "$PYTHON" benchmarks/reproduce.py rest --plan "$1" --records "$2" --runs "$RUNS" --minutes "$(left)"
        case $? in 0 | 3) ;; *) failed=1 ;; esac # 3: stopped in time
    fi
}

gpu_tests() { # of what is captured on a GPU only
    mkdir -p "$RUNS"
    "$PYTHON" -m pytest -q tests/optim tests/training/test_captured.py tests/training/test_pace.py && touch "$RUNS/tests_passed"
}

peers() {
    local all=()
    [ -z "${KEKMODEL:-}" ] || all+=(--peer kekmodel "$KEKMODEL" "train.py --num-labeled 40 --no-progress")
    [ -z "${USB:-}" ] || all+=(--peer usb "$USB" "train.py --c one_gpu.yaml")
    [ -z "${PEER_PATH:-}" ] || all+=(--path "$PEER_PATH")
    "$PYTHON" benchmarks/peers.py "${all[@]}" --out "benchmarks/peers.json"
}

if [ -z "$DRY" ]; then
    once "$RUNS/tests_passed" gpu_tests
    once "benchmarks/step_time_muon.json" "$PYTHON" benchmarks/step_time.py --muon --out "benchmarks/step_time_muon.json"
    [ -z "${KEKMODEL:-}${USB:-}" ] || once "benchmarks/peers.json" peers
fi
plan benchmarks/gpu_tune.txt "benchmarks/tuning"
plan benchmarks/gpu_queue.txt "benchmarks/records"
exit $failed
