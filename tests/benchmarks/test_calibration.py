"""The record of calibration: its table is what the pages show, and nothing got worse on average, but for one cell."""

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


def _cell(cell):
    """In one cell chance makes good probabilities of one run in five worse; docs/calibration.md says how."""
    worse = (cell["case"], cell["labels"]) == ("digits, small convolutional net", 500)
    marks = (
        pytest.mark.xfail(strict=True, reason="one of five runs has every held-out label right by chance")
        if worse
        else ()
    )
    return pytest.param(cell, id=f"{cell['case']}, {cell['labels']} labels", marks=marks)


@pytest.mark.parametrize("cell", [_cell(cell) for cell in CELLS])
def test_calibration_does_not_make_it_worse(cell):
    assert cell["labels"] in LABELS
    assert len(cell["before"]) == SEEDS
    assert statistics.fmean(cell["after"]) <= statistics.fmean(cell["before"])


def test_calibration_helps_where_probabilities_are_bad():
    bad = [cell for cell in CELLS if statistics.fmean(cell["before"]) > 5]
    assert bad
    for cell in bad:
        assert statistics.fmean(cell["after"]) < 0.9 * statistics.fmean(cell["before"])
