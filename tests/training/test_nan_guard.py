"""A run that is no longer finite says so, whatever ends it, and leaves its last good checkpoint alone.

That it goes back to it before it gives up: test_recovery.py.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from cadr.errors import TrainingError
from cadr.training import checkpoint
from cadr.training.recovery import check_record
from tests.training import tiny
from tests.training.test_resume import Interrupting
from tests.training.test_saving import saved

NEVER = 1e9  # seconds


class Exploding(nn.Module):
    """A network whose output is not a number from some step on."""

    def __init__(self, when: int) -> None:
        super().__init__()
        self.linear, self.when, self.calls = nn.Linear(4, 3), when, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.training
        logits: Tensor = self.linear(x)
        return logits * (float("nan") if self.calls > self.when else 1.0)


class Counting(nn.Module):
    """A network with a buffer that grows beyond all bounds at some step, which its output does not show."""

    count: Tensor

    def __init__(self, when: int) -> None:
        super().__init__()
        self.linear, self.when, self.calls = nn.Linear(4, 3), when, 0
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))  # not finite, and rightly so

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.training
        self.count.fill_(float("inf") if self.calls > self.when else self.calls)
        logits: Tensor = self.linear(x)
        return logits


def test_nan_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path):
    message = r"The loss \(.+\) is no longer finite at step 25; the last good checkpoint is kept, that of step 20: try"
    with pytest.raises(TrainingError, match=message):
        tiny.finish(tiny.config(), tmp_path, model=Exploding(when=22))
    assert saved(tmp_path) == [20, 15]
    assert all(tensor.isfinite().all() for tensor in tiny.tensors(tmp_path).values())
    assert not (tmp_path / "result.json").exists()


def test_a_continued_run_names_the_checkpoint_that_it_was_continued_from(tmp_path):
    settings = tiny.config(checkpoint_seconds=NEVER)
    with pytest.raises(KeyboardInterrupt):
        tiny.finish(settings, tmp_path, model=Interrupting(Exploding(when=9999), when=13))
    with pytest.raises(TrainingError, match="at step 15; the last good checkpoint is kept, that of step 13: try"):
        tiny.finish(settings, tmp_path, model=Interrupting(Exploding(when=1), when=9999))
    assert saved(tmp_path) == [13]


def test_no_checkpoint_is_said_to_be_kept_where_there_is_none(tmp_path):
    with pytest.raises(TrainingError, match="no longer finite at step 5; nothing had been saved yet: try"):
        tiny.finish(tiny.config(checkpoint_seconds=NEVER), tmp_path, model=Exploding(when=1))
    assert saved(tmp_path) == []


@pytest.mark.parametrize(
    ("seconds", "words", "steps"),
    [(0.0, "the last good checkpoint is kept, that of step 20", [20, 15]), (NEVER, "nothing had been saved yet", [])],
)
def test_ctrl_c_between_the_first_nan_and_the_next_record_saves_nothing(tmp_path, seconds, words, steps):
    network = Interrupting(Exploding(when=22), when=24)
    with pytest.raises(TrainingError, match=rf"The loss \(.+\) is no longer finite at step 24; {words}: try"):
        tiny.finish(tiny.config(checkpoint_seconds=seconds), tmp_path, model=network)
    assert saved(tmp_path) == steps


def test_nothing_that_a_checkpoint_holds_may_become_infinite(tmp_path):
    with pytest.raises(TrainingError, match=r"The tensor buffer.count is no longer finite at step 25; .* of step 20"):
        tiny.finish(tiny.config(), tmp_path, model=Counting(when=22))
    assert saved(tmp_path) == [20, 15]


def test_what_was_infinite_to_begin_with_may_stay_so(tmp_path):
    tiny.finish(tiny.config(), tmp_path, model=Counting(when=9999))
    assert tiny.tensors(tmp_path)["buffer.mask"].isinf().any()


def test_weights_that_were_never_finite_are_not_saved_either(tmp_path):
    network = nn.Linear(4, 3)
    nn.init.constant_(network.bias, float("nan"))
    with pytest.raises(TrainingError, match="no longer finite at step 4; nothing had been saved yet"):
        tiny.finish(tiny.config(), tmp_path, model=Interrupting(network, when=4))
    assert not (tmp_path / checkpoint.CURRENT).exists()


def test_an_infinite_weight_stops_the_run_before_the_loss_shows_it():
    with pytest.raises(TrainingError, match="A weight is no longer finite at step 7"):
        check_record(7, {"supervised": 1.0}, weights=False, kept=None)
