"""The folder of a run that was refused: nothing stays behind, and nothing that was there goes."""

from __future__ import annotations

import pytest

from cadr.errors import ConfigError
from cadr.train.folder import RunFolder


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


def test_what_was_written_stays(tmp_path):
    refuse(RunFolder(tmp_path / "run"), "config.toml")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {".lock", "config.toml"}


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "run").mkdir()
    refuse(RunFolder(tmp_path / "run"))
    assert (tmp_path / "run").is_dir()
