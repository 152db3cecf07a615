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
    for scarce, words in ((False, "at random in {} of {} draws"), (True, "it rejects {} of {}")):
        rows = [row for row in RECORD["test"] if row["gamma"] == 1 and ("unequal" in row["labels"]) == scarce]
        assert words.format(sum(row["rejected"] for row in rows), sum(row["of"] for row in rows)) in GUIDE
    found = {(row["dataset"], row["labels"].partition(", ")[2]): row for row in RECORD["test"] if row["gamma"] > 1}
    for kind in ("γ = 3, drawn", "γ = 3, of fixed number", "γ = 5, drawn", "γ = 5, of fixed number"):
        digits, fashion = (found[dataset, kind] for dataset in ("digits", "fashion_mnist"))
        cells = [f"{row['rejected']} of {row['of']}" for row in (digits, fashion)]
        assert f"| {kind} | {cells[0]} | {cells[1]} |" in GUIDE


def test_the_largest_errors():
    largest = {(cell["dataset"], cell["gamma"], cell["unlabelled"]): cell["largest_error"] for cell in RECORD["cells"]}
    for dataset, words in [
        ("digits", "is {:.1f} points on digits, γ = 50 (the study: 9.4), and {:.1f} there with γ = 20, reversed (5.7)"),
        ("fashion_mnist", "Fashion-MNIST it is {:.1f} (10.2) and {:.1f} (10.6)"),
    ]:
        assert words.format(largest[dataset, 50, "uniform"], largest[dataset, 20, "reversed"]) in GUIDE
        assert max(error for (name, *_), error in largest.items() if name == dataset) == largest[dataset, 50, "uniform"]


def test_the_table_shows_every_part(capsys):
    show(RECORD)
    text = capsys.readouterr().out
    for words in ("reversed", "BBSE", "size over all", "features decide", "nobody labelled", "bootstrap"):
        assert words in text
