"""Runs whose checkpoint cannot be read, or is not there yet: no page, or one with what there is."""

import html
import shutil

from cadr.cli.main import main
from cadr.training import checkpoint
from tests.report.reports import written


def damaged(run, copy):
    """A copy of a run whose only checkpoint cannot be read."""
    shutil.copytree(run, copy)
    shutil.rmtree(copy / checkpoint.PREVIOUS, ignore_errors=True)
    part = copy / checkpoint.CURRENT / "part-000.pt"
    part.write_bytes(part.read_bytes()[:1000])
    return copy


def test_a_damaged_run_is_one_sentence_and_no_page(clouds, tmp_path, capsys):
    broken = damaged(clouds, tmp_path / "broken")
    assert main(["report", str(broken), "--out", str(tmp_path / "new" / "page.html")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "does not fit its hash" in said.err
    assert not (tmp_path / "new").exists()


def test_a_damaged_run_among_others_is_shown_by_its_records(clouds, tmp_path):
    page, problems = written([clouds, damaged(clouds, tmp_path / "broken")], tmp_path)
    assert len(problems) == 1
    assert "The data or the model of broken could not be opened again" in problems[0]
    assert "does not fit its hash" in problems[0]
    assert page.count("Confusion matrix of broken") == 2  # as a title and in its label
    assert html.unescape(page).count(problems[0]) == 1


def test_a_damaged_checkpoint_with_one_before_it_is_no_problem_but_said(clouds, tmp_path, capsys):
    copy = damaged(clouds, tmp_path / "copy")
    shutil.copytree(clouds / checkpoint.CURRENT, copy / checkpoint.PREVIOUS)
    assert written([copy], tmp_path)[1] == []
    assert f"Warning: The checkpoint {copy / checkpoint.CURRENT} cannot be used" in capsys.readouterr().err


def test_a_run_that_has_no_checkpoint_yet_is_shown_by_its_records(clouds, tmp_path):
    copy = damaged(clouds, tmp_path / "begun")
    shutil.rmtree(copy / checkpoint.CURRENT)
    page, problems = written([copy], tmp_path)
    assert len(problems) == 1
    assert "holds no checkpoint" in problems[0]
    assert 'id="learning"' in page
    assert 'id="examples"' not in page
