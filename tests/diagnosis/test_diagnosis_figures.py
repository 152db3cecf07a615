"""The guide's figures of the diagnosis are those of the committed record, and the record is of one run."""

import json
from pathlib import Path

import pytest
from benchmarks.diagnosis_table import CELLS, THEIRS, show, show_checks

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8")
RECORD = json.loads((ROOT / "benchmarks" / "diagnosis.json").read_text(encoding="utf-8"))
CHECKS = json.loads((ROOT / "benchmarks" / "diagnosis_checks.json").read_text(encoding="utf-8"))["checks"]
TABLES = {"wine": 30, "breast cancer": 80, "Gaussian classes": 100, "rings": 120}
LINEAR = ("wine", "breast cancer", "Gaussian classes")
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
    for words in ("reversed", "BBSE", "size over all", "bootstrap"):
        assert words in text


def counted(key, datasets, *decides):
    """How many draws of these settings have it, of how many."""
    rows = [row for row in CHECKS if row["dataset"] in datasets and row["decides"] in decides]
    return f"{sum(row[key] for row in rows)} of {sum(row['of'] for row in rows)}"


def percentages(key, dataset, decides):
    rows = [row for row in CHECKS if (row["dataset"], row["decides"]) == (dataset, decides)]
    assert [row["gamma"] for row in rows] == [1, 5, 20]
    return ", ".join(f"{100 * row[key] / row['of']:.0f}" for row in rows)


@pytest.mark.parametrize("dataset", TABLES)
def test_how_often_the_checks_warn_on_tables(dataset):
    found = {row["decides"]: row for row in CHECKS if row["dataset"] == dataset}
    assert {row["of"] for row in found.values()} == {100}
    cells = [f"{found[by]['warned']}, {found[by]['far']}" for by in ("chance", "class", "feature", "class and feature")]
    assert f"| {dataset}, {TABLES[dataset]} labels | {' | '.join(cells)} |" in GUIDE


def test_false_alarms_and_misses_of_the_checks():
    guide, kinds = " ".join(GUIDE.split()), ("chance", "class")
    both = [percentages("warned", name, "class and feature") for name in NAMES]
    found = [percentages("far", name, "a class without labels") for name in NAMES]
    for words in (
        f"the first warning came in {counted('warned', TABLES, *kinds)} draws of these tables, and in "
        f"{counted('warned', NAMES, 'class')} of the images above",
        f"it came there in {both[0]} % (digits) and {both[1]} % (Fashion-MNIST)",
        f"Of 300 draws of wines, tumours and Gaussian classes in which a feature alone decides, "
        f"{counted('unqualified', LINEAR, 'feature').removesuffix(' of 300')} are reported as a bias by class "
        "without it",
        f"was suspected in {found[0]} % (digits) and {found[1]} % (Fashion-MNIST",
        f"without reason in {counted('far', LINEAR, *kinds)} draws of wines, tumours and Gaussian classes and in "
        f"{counted('far', NAMES, 'class')} of images; but in {counted('far', ['rings'], 'class')} of rings",
    ):
        assert words in guide


def test_the_table_of_the_checks_shows_every_setting(capsys):
    show_checks({"checks": CHECKS})
    text = capsys.readouterr().out
    assert all(text.count(f"{name} ") >= 4 for name in (*TABLES, *NAMES))
    assert "theirs" in text
