"""The figures of docs/scale.md are those of the committed records."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MEASURED = json.loads((ROOT / "benchmarks" / "predict.json").read_text(encoding="utf-8"))["predictions"]


@pytest.mark.parametrize("measured", MEASURED, ids=lambda measured: f"{measured['from']} to {measured['to']}")
def test_core_hours(measured):
    hours = measured["processor_seconds"] / measured["rows"] / 3600
    line = f"| {measured['from']} → {measured['to']} | {' | '.join(f'{hours * n:.2g}' for n in (1e6, 1e8, 1e9))} |"
    assert line in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8").splitlines()


def test_a_worker_was_killed():
    found = json.loads((ROOT / "benchmarks" / "bulk.json").read_text(encoding="utf-8"))["predictions"]
    killed = found["ray_one_of_two_killed"]
    assert killed["same_bytes"]
    assert 0.4 * found["rows"] < killed["killed_at_row"] < 0.6 * found["rows"]
    said = f"of {found['rows']:,} rows one of two workers was killed at row {killed['killed_at_row']:,}"
    assert said in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_a_run_was_killed():
    found = json.loads((ROOT / "benchmarks" / "bulk.json").read_text(encoding="utf-8"))["comparison"]
    killed = found["ray_one_of_two_killed"]
    assert killed["same_results"]
    said = f"a worker killed in a comparison of {killed['runs']} runs"
    assert said in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
