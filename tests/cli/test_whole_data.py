"""Data in which no label is missing: a mistake, where they are somebody's own and more than labels is to be learned."""

import pytest

from cadr.cli.main import main
from tests.report.own_runs import TINY, write_csv

WHOLE = [[float(i), float(i % 3), "yes" if i % 2 else "no"] for i in range(12)]


@pytest.mark.parametrize("command", ["train", "compare"])
def test_no_label_missing(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "mine.csv", ["a", "b", "label"], WHOLE)
    assert main([command, "mine.csv", *TINY, "--out", "run"]) == 2
    said = capsys.readouterr().err
    assert "no label is missing, so there is nothing to learn from but the labels; leave some out" in said
    assert len(said.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv"]


def test_no_label_missing_of_a_benchmark_is_said(tmp_path, capsys):
    flags = [*TINY, "--steps", "2", "--model", "mlp"]
    assert main(["train", "digits", *flags, "--out", str(tmp_path / "whole")]) == 0
    assert "No label is missing: a protocol would leave some out." in capsys.readouterr().out
    assert main(["train", "digits", *flags, "--protocol", "longtail", "--out", str(tmp_path / "run")]) == 0
    assert "No label is missing" not in capsys.readouterr().out


def test_no_label_missing_is_no_mistake_where_only_labels_are_learned(tmp_path, capsys):
    data = write_csv(tmp_path / "mine.csv", ["a", "b", "label"], WHOLE)
    assert main(["train", str(data), *TINY, "--algorithm", "supervised", "--out", str(tmp_path / "run")]) == 0
    assert "2 classes" in capsys.readouterr().out
