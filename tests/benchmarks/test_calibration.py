"""The record of calibration: its table is what the pages show, and on average nothing got worse by half a point."""

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
def test_calibration_hardly_makes_it_worse(cell):
    assert cell["labels"] in LABELS
    assert len(cell["before"]) == SEEDS
    assert statistics.fmean(cell["after"]) < statistics.fmean(cell["before"]) + 0.5


def test_calibration_helps_where_probabilities_are_bad():
    bad = [cell for cell in CELLS if statistics.fmean(cell["before"]) > 5]
    assert bad
    for cell in bad:
        assert statistics.fmean(cell["after"]) < 0.9 * statistics.fmean(cell["before"])
