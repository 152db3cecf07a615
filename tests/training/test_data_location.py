"""A run knows its data by the path that it was begun with, and is asked for from other folders, too."""

import dataclasses

import pytest

from cadr.algorithms import CADR
from cadr.cli.main import main
from cadr.config import Config, Source
from cadr.training.run_folder import located
from tests.report.own_runs import TINY, write_csv

ROWS = [[0.37 * i, float(i % 3), "yes" if i % 2 else "no" if i < 20 else ""] for i in range(30)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    write_csv(work / "mine.csv", ["a", "b", "label"], ROWS)
    assert main(["train", "mine.csv", *TINY, "--out", "runs/one"]) == 0
    return work / "runs" / "one"


@pytest.mark.parametrize("command", [["evaluate"], ["report", "--out", "page.html"]])
def test_from_another_folder(run, tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    name, *flags = command
    assert main([name, str(run.relative_to(tmp_path)), *flags]) == 0
    said = capsys.readouterr()
    assert "neither a file or folder" not in said.out + said.err


def test_other_data_of_that_name_are_noticed(run, tmp_path, monkeypatch, capsys):
    (run.parent / "mine.csv").write_text("a,b,label\n1,2,yes\n2,3,no\n3,4,yes\n4,5,no\n5,6,\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(run)]) == 2
    assert capsys.readouterr().err.startswith("cadr: ")


def test_each_path_is_looked_for_above_the_run(tmp_path, monkeypatch):
    run = tmp_path / "work" / "runs" / "one"
    (tmp_path / "work" / "photos").mkdir(parents=True)
    run.mkdir(parents=True)
    (tmp_path / "labels.csv").touch()
    monkeypatch.chdir(run)
    config = Config("photos", CADR(), source=Source(labels="labels.csv", root="nowhere"))
    found = located(config, run)
    assert found.data == str(tmp_path / "work" / "photos")
    assert (found.source.labels, found.source.root) == (str(tmp_path / "labels.csv"), "nowhere")
    assert dataclasses.replace(found, data=config.data, source=config.source) == config


def test_what_is_found_from_here_and_benchmarks_stay_as_they_are(tmp_path, monkeypatch):
    run = tmp_path / "work" / "run"
    run.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "work"):
        (folder / "photos").mkdir()
        (folder / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    for data in ("photos", "digits", str(tmp_path / "gone")):
        assert located(Config(data, CADR()), run).data == data
    monkeypatch.chdir(run)
    assert located(Config("digits", CADR()), run).data == "digits"
