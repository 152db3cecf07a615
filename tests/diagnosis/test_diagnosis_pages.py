"""The sample data of the pages on one's own data: within a class chance decides who is labelled, and so it is found."""

from pathlib import Path

import pytest

from cadr import open_data
from cadr.diagnosis.diagnose import diagnose
from tests.pages import ROOT, blocks


def samples(page):
    return [block.content for block in blocks(ROOT / "docs" / page) if block.language == "python"]


def run(monkeypatch, tmp_path, *code):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in code:
        exec(block, names)


def clear(found):
    """The verdict is of the bias and what to do about it, and no check objects."""
    assert found.verdict.startswith("Labels are NOT missing at random")
    assert "labels are worth" in found.verdict
    assert found.other_than_class == ""
    assert not any("nobody labelled" in warning for warning in found.warnings)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pictures(seed, tmp_path, monkeypatch):
    run(monkeypatch, tmp_path, samples("start.md")[0])
    clear(diagnose(open_data("photos", labels="labels.csv"), seed=seed))
    assert len(Path("labels.csv").read_text().splitlines()) == 1 + 60


def test_the_same_pictures_in_folders(tmp_path, monkeypatch):
    making, sorting = samples("own-images.md")
    assert making == samples("start.md")[0]
    run(monkeypatch, tmp_path, making, sorting)
    plain, folders = diagnose(open_data("photos", labels="labels.csv")), diagnose(open_data("sorted"))
    clear(folders)
    assert folders.domain_auc == pytest.approx(plain.domain_auc, abs=0.03)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_table(seed, tmp_path, monkeypatch):
    run(monkeypatch, tmp_path, samples("own-table.md")[0])
    clear(diagnose(open_data("wine.csv", label_column="kind", ignore_columns=("bottle",)), seed=seed))
