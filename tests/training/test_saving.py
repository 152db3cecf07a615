"""A run saves every step once: the checkpoint before the newest is always an earlier one."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cadr.models import MLP
from cadr.training import checkpoint, train
from tests.training import tiny
from tests.training.test_resume import Interrupting


def saved(out: Path) -> list[int]:
    """The steps of the newest checkpoint and of the one before it."""
    folders = [out / name for name in (checkpoint.CURRENT, checkpoint.PREVIOUS)]
    return [int(checkpoint.load(folder)[0]["step"]) for folder in folders if folder.is_dir()]


def close_at(step: int, out: Path) -> str:
    """Train, saving at every record, until the first record of the step; what the run said when it began."""
    records = train(tiny.config(), out, pool=tiny.pool())
    message: str = next(records)["message"]
    while step and next(records)["step"] < step:
        pass
    records.close()
    return message


def test_ctrl_c_when_a_checkpoint_is_due_saves_once(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        tiny.finish(tiny.config(), tmp_path, model=Interrupting(MLP((16,)).build(3, (4,)), when=13))
    assert saved(tmp_path) == [13, 10]


def test_ctrl_c_while_a_checkpoint_is_written_saves_once(tmp_path, monkeypatch):
    real = checkpoint.save

    def interrupted(out, tensors, facts):
        real(out, tensors, facts)
        if int(tensors["step"]) == 15:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(checkpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tiny.finish(tiny.config(), tmp_path)
    assert saved(tmp_path) == [15, 10]


def test_closing_where_it_was_saved_just_now_saves_nothing_more(tmp_path):
    close_at(30, tmp_path)
    assert saved(tmp_path) == [30, 25]


def test_stopping_a_continued_run_before_its_first_step_saves_nothing_more(tmp_path):
    close_at(30, tmp_path)
    assert close_at(0, tmp_path).startswith("Continuing at step 30")
    assert saved(tmp_path) == [30, 25]


def test_the_one_before_takes_the_place_of_a_damaged_one(tmp_path):
    close_at(30, tmp_path)
    (tmp_path / checkpoint.CURRENT / "manifest.json").unlink()
    assert "Continuing at step 25" in close_at(0, tmp_path)
    assert saved(tmp_path) == [25]
    assert "cannot be used" not in close_at(35, tmp_path)
    assert saved(tmp_path) == [35, 30]
