"""Names of data and classes that are no UTF-8, as old disks have them: one sentence, and nothing is written."""

import os

import pytest

from cadr.cli.main import main
from tests.cli.test_user_data_mistakes import failed
from tests.report.own_runs import COLUMNS, TINY, write_csv, write_images

NAME = os.fsdecode(b"m\xe4use")  # as Latin-1 has it
WORDS = r"m\udce4use"


def train_on(data, out, *flags):
    return ["train", str(data), *flags, *TINY, "--out", str(out)]


@pytest.fixture
def mice(tmp_path):
    folder = tmp_path / NAME
    for name in ("field", "house", "unlabelled"):
        write_images(folder / name, 6)
    return folder


def test_a_folder(mice, tmp_path, capsys, monkeypatch):
    for data in (mice, mice / "."):
        assert WORDS in failed(capsys, train_on(data, tmp_path / "run"))
    monkeypatch.chdir(mice)
    assert f"the name '{WORDS}' is no UTF-8; rename it" in failed(capsys, train_on(".", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_the_folder_of_a_class(mice, tmp_path, capsys):
    folder = mice.rename(tmp_path / "mice")
    (folder / "house").rename(folder / NAME)
    for command in (["data", "show", str(folder)], ["diagnose", str(folder)], train_on(folder, tmp_path / "run")):
        assert f"mice/{WORDS}' is no UTF-8; rename it" in failed(capsys, command)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_a_file(suffix, trees, tmp_path, capsys):
    data = write_csv(tmp_path / f"{NAME}.{suffix}", [*COLUMNS, "label"], [[1.0, 2.0, 3.0, "ash"]])
    assert WORDS in failed(capsys, train_on(data, tmp_path / "run"))
    assert WORDS in failed(capsys, ["predict", str(trees), str(data), "--out", str(tmp_path / "p.csv")])
    assert {path.name for path in tmp_path.iterdir()} == {data.name}


def test_labels(mice, tmp_path, capsys):
    folder = mice.rename(tmp_path / "mice")
    labels = write_csv(tmp_path / f"{NAME}.csv", ["file", "label"], [["field/000.png", "a"], ["house/000.png", "b"]])
    assert WORDS in failed(capsys, train_on(folder, tmp_path / "run", "--labels", str(labels)))


def test_a_picture_may_be_called_so(mice, tmp_path):
    """Nothing but the table of predictions names it, which has the same bytes."""
    folder = mice.rename(tmp_path / "mice")
    (folder / "unlabelled" / "000.png").rename(folder / "unlabelled" / f"{NAME}.png")
    assert main(train_on(folder, tmp_path / "run")) == 0
    assert main(["predict", str(tmp_path / "run"), str(folder), "--out", str(tmp_path / "p.csv")]) == 0
    assert b"m\xe4use.png" in (tmp_path / "p.csv").read_bytes()


def test_a_file_to_write_to(trees, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    command = ["predict", str(trees), str(trees.parent / "trees.csv"), "--out"]
    for name in (f"{NAME}.parquet", f"{NAME}/p.parquet"):
        error = failed(capsys, [*command, str(tmp_path / name)])
        assert f"{WORDS}{name[len(NAME) :]}' could not be written: the name is no UTF-8" in error
    assert main([*command, str(tmp_path / f"{NAME}.csv")]) == 0
