"""The folder of a run that was refused: nothing stays behind, and nothing that was there goes."""

from __future__ import annotations

import pytest

from cadr.errors import ConfigError
from cadr.training.run_folder import RunFolder


def begin(folder: RunFolder, *written: str) -> None:
    with folder.locked():
        for name in written:
            folder.write(name, "")
        raise ConfigError("refused")


def refuse(folder: RunFolder, *written: str) -> None:
    with pytest.raises(ConfigError, match="refused"):
        begin(folder, *written)


def test_a_refused_run_leaves_no_folder_behind(tmp_path):
    refuse(RunFolder(tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []


def test_nor_the_folders_on_the_way_that_were_made_for_it(tmp_path):
    (tmp_path / "mine").mkdir()
    refuse(RunFolder(tmp_path / "mine" / "runs" / "first" / "run"))
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]


def test_a_folder_on_the_way_that_holds_another_run_stays(tmp_path):
    with RunFolder(tmp_path / "runs" / "one").locked():
        with pytest.raises(ConfigError, match="refused"), RunFolder(tmp_path / "runs" / "two").locked():
            raise ConfigError("refused")
        assert {path.name for path in (tmp_path / "runs").iterdir()} == {"one"}


def test_what_was_written_stays(tmp_path):
    refuse(RunFolder(tmp_path / "run"), "config.toml")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {".lock", "config.toml"}


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "run").mkdir()
    refuse(RunFolder(tmp_path / "run"))
    assert (tmp_path / "run").is_dir()
    assert list((tmp_path / "run").iterdir()) == []
