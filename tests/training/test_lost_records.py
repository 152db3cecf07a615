"""Records that a crash has taken, of a run whose checkpoint is good: it goes on, and says what it lacks."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cadr.cli.main import main
from cadr.errors import CheckpointError
from cadr.inference.accuracy_notes import UNKNOWN, caution, caution_about_differences, examples_judged
from cadr.training import checkpoint, train
from cadr.training.run_folder import RunFolder
from tests.training import tiny


@pytest.fixture
def run(reference, tmp_path) -> Path:
    out: Path = shutil.copytree(reference, tmp_path / "run")
    return out


def test_records_are_on_the_disk_before_the_checkpoint_of_their_step(tmp_path, monkeypatch):
    real, synced = os.fsync, dict[int, int]()

    def noted(descriptor):
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size
        real(descriptor)

    def checked(out, tensors, facts):
        status = (out / "metrics.jsonl").stat()
        assert synced[status.st_ino] == status.st_size > 0
        saved.append(int(tensors["step"]))

    saved: list[int] = []
    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(checkpoint, "save", checked)
    tiny.finish(tiny.config(steps=10, evaluations=2), tmp_path)
    assert saved == [5, 10]


@pytest.mark.parametrize("content", [b"", b"\0\0\0\n"])
def test_a_finished_run_without_records(run, content):
    (run / "metrics.jsonl").write_bytes(content)
    assert examples_judged(run) == UNKNOWN
    assert caution(100.0, UNKNOWN, "test") == ""
    for words in (caution(100.0, UNKNOWN, "validation"), caution_about_differences([("cadr", UNKNOWN, "validation")])):
        assert words.startswith("Held-out labels are as biased as all labels")


def test_the_command_too(trees, tmp_path, capsys):
    out = shutil.copytree(trees, tmp_path / "run")
    (out / "metrics.jsonl").write_bytes(b"")
    settings = ["--ignore-columns", "id", "--steps", "30", "--batch", "8", "--ratio", "2", "--evaluations", "2"]
    assert main(["train", str(trees.parent / "trees.csv"), *settings, "--device", "cpu", "--out", str(out)]) == 0
    assert "finished already" in capsys.readouterr().out


def test_the_last_step_is_judged_again(run, reference):
    (run / "result.json").unlink()
    (run / "metrics.jsonl").write_bytes(b"")
    start, *_, last = train(tiny.config(), run, pool=tiny.pool())
    assert f"{run / 'metrics.jsonl'} was damaged: its records of steps 1 to 60 are lost" in start["message"]
    expected = tiny.result(reference)
    for name in ("evaluated_on", "last", "gm", "recall"):
        assert last["result"][name] == expected[name]
    assert last["result"]["curve"] == expected["curve"][-1:]
    assert tiny.metrics(run) == tiny.metrics(reference)[-1:]


def test_zero_bytes_in_the_middle(run, reference):
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if json.loads(line)["step"] == 30)
    damaged = b"".join([*lines[:at], b"\0" * 500 + b"\n", *lines[at + 1 :]])
    (run / "metrics.jsonl").write_bytes(damaged)
    with pytest.raises(CheckpointError, match=rf"line {at + 1} is no record.*; delete it and the lines after it\.$"):
        RunFolder(run).records()
    (run / "result.json").unlink()
    start, *_ = train(tiny.config(), run, pool=tiny.pool())
    assert "its records of steps 26 to 60 are lost" in start["message"]
    assert tiny.metrics(run) == [*tiny.metrics(reference)[:at], tiny.metrics(reference)[-1]]


def test_a_run_that_lost_nothing_says_nothing(run, reference):
    (run / "result.json").unlink()
    start, *_ = train(tiny.config(), run, pool=tiny.pool())
    assert start["message"].startswith("Continuing at step 60 of 60")
    tiny.assert_same(reference, run)
