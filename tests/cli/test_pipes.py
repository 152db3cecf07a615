"""Pipes and devices where files are expected: nobody waits for what never comes, or has no end."""

import os
import subprocess
import sys

import pytest

from cadr.cli.main import main
from cadr.data.sources.base import Wanted
from cadr.data.sources.registry import open_blocks
from cadr.errors import DataError
from tests.data.loose import open_data
from tests.report.own_runs import write_csv, write_images

PATIENCE = 60  # seconds that a command may take, after which it waits for the pipe


def pipe(path):
    os.mkfifo(path)
    return path


def device(path):
    path.symlink_to("/dev/zero")
    return path


def failed(*arguments):
    """The sentence that a command ends with, in a process that can be ended if it does not."""
    command = [sys.executable, "-m", "cadr", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("kind", [pipe, device])
@pytest.mark.parametrize("name", ["x.csv", "x.npz", "x.parquet"])
def test_data(kind, name, tmp_path):
    path = kind(tmp_path / name)
    assert (
        failed("data", "show", path)
        == f"cadr: {path} is a pipe or a device; save what it gives to a file, and name that\n"
    )


def test_flags_are_not_read_off_a_pipe(tmp_path):
    assert "is a pipe or a device" in failed("train", pipe(tmp_path / "x.npz"))


@pytest.mark.parametrize("name", ["x.csv", "x.npy"])
def test_labels(name, tmp_path):
    write_images(tmp_path / "photos", 4)
    assert "is a pipe or a device" in failed("data", "show", tmp_path / "photos", "--labels", pipe(tmp_path / name))


def test_to_predict_on(trees, tmp_path):
    out = tmp_path / "predictions.csv"
    assert "is a pipe or a device" in failed("predict", trees, pipe(tmp_path / "x.csv"), "--out", out)
    assert not out.exists()
    with pytest.raises(DataError, match="is a pipe or a device"):
        open_blocks(str(pipe(tmp_path / "x.png")), Wanted((6, 6, 3), ("a", "b")))


def test_in_folders_they_are_passed_over(tmp_path):
    for name in ("robin", "wren"):
        write_images(tmp_path / name, 3)
    pipe(tmp_path / "loose.png")
    pipe(tmp_path / "wren" / "a.png")
    device(tmp_path / "wren" / "b.png")
    assert len(open_data(tmp_path).examples) == 6
    write_csv(tmp_path / "labels.csv", ["file", "label"], [["robin/000.png", "a"], ["wren/000.png", "b"]])
    assert len(open_data(tmp_path).examples) == 6


def test_a_label_for_one_is_refused(tmp_path, capsys):
    write_images(tmp_path, 3)
    pipe(tmp_path / "x.png")
    write_csv(tmp_path / "labels.csv", ["file", "label"], [["000.png", "a"], ["001.png", "b"], ["x.png", "a"]])
    assert main(["data", "show", str(tmp_path)]) == 2
    assert "line 4: 'x.png' is not in" in capsys.readouterr().err
