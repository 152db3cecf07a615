"""The record of calibration: its table is what the pages show, and nothing got worse on average."""

import json
import statistics
from pathlib import Path

import pytest
from benchmarks.calibration import LABELS, RECORD, SEEDS, table

CELLS = json.loads(RECORD.read_text(encoding="utf-8"))["cells"]
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("page", ["benchmarks/calibration.md", "docs/calibration.md"])
def test_pages_show_the_record(page):
    assert table(CELLS) in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell['case']}, {cell['labels']} labels")
def test_calibration_does_not_make_it_worse(cell):
    assert cell["labels"] in LABELS
    assert len(cell["before"]) == SEEDS
    assert statistics.fmean(cell["after"]) <= statistics.fmean(cell["before"])
