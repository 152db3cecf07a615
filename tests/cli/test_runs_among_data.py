"""Runs may lie in the folder that they were trained on: they are no class of it."""

import pytest

from cadr.cli.main import main
from tests.data.loose import open_data
from tests.report.own_runs import TINY, write_images


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """A folder per class, seen from inside."""
    for name in ("robin", "wren", "unlabelled"):
        write_images(tmp_path / "birds" / name, 8)
    monkeypatch.chdir(tmp_path / "birds")
    return tmp_path / "birds"


@pytest.mark.parametrize("flags", [[], ["--out", "run"], ["--out", "all/of/them"]])
def test_data_can_still_be_read_after_training_in_their_folder(birds, flags, capsys):
    for said in ("Finished after 30 steps", "finished already"):
        assert main(["train", ".", *TINY, *flags]) == 0
        assert said in capsys.readouterr().out
    assert open_data(birds).class_names == ("robin", "wren")
    assert main(["data", "show", "."]) == 0


def test_several_runs_in_it_one_after_another(birds):
    """Each opens the data when its own folder is there and holds nothing yet but a lock."""
    assert main(["compare", ".", "--algorithms", "cadr", "supervised", "--seeds", "1", *TINY]) == 0


def test_a_class_without_images_is_still_reported(birds, capsys):
    (birds / "owl").mkdir()
    (birds / "owl" / "notes.txt").touch()
    assert main(["data", "show", "."]) == 2
    assert "no example has class 'owl'" in capsys.readouterr().err
