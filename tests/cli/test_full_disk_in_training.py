"""When the disk is full as a run begins: the advice to make room and run the same command again can be followed."""

import pytest

from cadr.cli.main import main
from tests.cli.test_full_disk import room_for
from tests.cli.test_train import TINY
from tests.report.own_runs import COLUMNS, NAMES, table, write_csv


@pytest.fixture
def command(tmp_path):
    x, truth = table(40)
    rows = [[*map(float, x[i]), NAMES[truth[i]] if i < 20 else ""] for i in range(40)]
    data = write_csv(tmp_path / "trees.csv", [*COLUMNS, "label"], rows)
    return ["train", str(data), *TINY, "--device", "cpu", "--out", str(tmp_path / "run")]


def test_the_settings_do_not_fit(command, tmp_path, capsys):
    with room_for(100):
        assert main(command) == 2
    error = capsys.readouterr().err
    assert "config.toml.new could not be written" in error
    assert "run the same command again" in error
    assert not (tmp_path / "run").exists()
    assert main(command) == 0


def test_the_first_checkpoint_does_not_fit(command, capsys):
    with room_for(3500):
        assert main(command) == 2
    error = capsys.readouterr().err
    assert "The checkpoint in" in error
    assert "nothing was saved before" in error
    assert "intact" not in error
    assert main(command) == 0


def test_a_kill_while_the_settings_are_written(command, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml.new").write_text('data = "tre')
    assert main(command) == 0
    assert not (tmp_path / "run" / "config.toml.new").exists()
