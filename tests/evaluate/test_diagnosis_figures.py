"""The guide's figures of the diagnosis are those of the committed record, and the record is of one run."""

import json
from pathlib import Path

import pytest
from benchmarks.diagnosis_table import CELLS, THEIRS, show

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8")
RECORD = json.loads((ROOT / "benchmarks" / "diagnosis.json").read_text(encoding="utf-8"))
NAMES = {"digits": "digits", "fashion_mnist": "Fashion-MNIST"}


@pytest.mark.parametrize("cell", RECORD["cells"], ids=lambda c: f"{c['dataset']}-{c['gamma']}-{c['unlabelled']}")
def test_errors_and_coverage(cell):
    at = CELLS.index((cell["gamma"], cell["unlabelled"] == "reversed"))
    error, covered = THEIRS["error"][cell["dataset"]][at][0], THEIRS["coverage"][cell["dataset"]][at]
    assert cell["seeds"] >= 20
    assert (
        f"| {NAMES[cell['dataset']]} | {cell['gamma']}, {cell['unlabelled']} | {cell['error']:.2f} ± "
        f"{cell['error_standard_error']:.2f} | {error:.2f} | {cell['covered']:.2f} | {covered or '–'} |"
    ) in GUIDE


def test_size_and_power():
    at_random = [row for row in RECORD["test"] if row["gamma"] == 1]
    wrong, n = sum(row["rejected"] for row in at_random), sum(row["of"] for row in at_random)
    assert f"{wrong} of {n}" in GUIDE
    for row in RECORD["test"]:
        if row["labels"].endswith("drawn"):
            assert f"{row['rejected']} of {row['of']}" in GUIDE


def test_the_table_shows_every_part(capsys):
    show(RECORD)
    text = capsys.readouterr().out
    for words in ("reversed", "BBSE", "size over all", "features decide", "nobody labelled", "bootstrap"):
        assert words in text
