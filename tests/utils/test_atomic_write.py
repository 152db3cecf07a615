"""Files that appear as a whole, whoever else writes to the same name, and whatever the disk refuses."""

import errno
import os
from pathlib import Path

import pytest

from cadr.utils.files import WriteError, atomic_write


def test_two_that_write_to_one_name_at_a_time_do_not_mix(tmp_path):
    path = tmp_path / "predictions.csv"
    with atomic_write(path) as one, one.open("w") as first:
        first.write("first, ")
        first.flush()
        with atomic_write(path) as two:
            two.write_text("second")
        assert path.read_text() == "second"
        first.write("to its end")
    assert path.read_text() == "first, to its end"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_cannot_be_written_to_is_the_reason_that_is_given(tmp_path, monkeypatch):
    """Where a file can be neither made nor removed, it is the first that people should read about."""

    def refused(self, *arguments, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    path = tmp_path / "predictions.csv"
    with (
        pytest.raises(WriteError, match=r"predictions\.csv could not be written: Read-only file system"),
        atomic_write(path) as new,
    ):
        new.open("w")
