"""A run that diverges goes back to where it was last good, with a lower rate, and says so."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import Tensor, nn

from cadr.algorithms import CReST, FixMatch
from cadr.errors import TrainingError
from cadr.models import MLP
from cadr.optim import SGD
from tests.training import tiny
from tests.training.test_nan_guard import NEVER, Exploding
from tests.training.test_resume import Interrupting


class Stumbling(nn.Module):
    """A network whose output is not a number in one of its calls, and never again."""

    def __init__(self, when: int) -> None:
        super().__init__()
        self.inner, self.when, self.calls = MLP((16,)).build(3, (4,)), when, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.training
        logits: Tensor = self.inner(x)
        return logits * (float("nan") if self.training and self.calls == self.when else 1.0)


class Fragile(nn.Linear):
    """Is no longer finite once a weight has gone too far, as networks are of which the exponentials overflow."""

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            super().__init__(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / (self.weight.abs() < 5.0).all()


def settings(lr: float = 0.1, **training):
    config = dataclasses.replace(tiny.config(**training), algorithm=FixMatch())
    return dataclasses.replace(config, optimiser=SGD(lr=lr, ema=0.9))


def rates(folder) -> dict[int, float]:
    return {record["step"]: record["lr"] for record in tiny.metrics(folder) if record["kind"] == "train"}


def warnings(folder) -> list[str]:
    return [record["message"] for record in tiny.metrics(folder) if record["kind"] == "warning"]


def test_a_rate_that_is_far_too_high_is_lowered_until_the_run_converges(tmp_path):
    result = tiny.finish(settings(lr=30.0, checkpoint_seconds=NEVER), tmp_path, model=Fragile())["result"]
    assert result["last"] > 70
    first, *_ = warnings(tmp_path)
    assert "was no longer finite at step" in first
    assert "with a learning rate of 30: the run goes back to the beginning, for nothing had been saved yet" in first
    assert result["rate_share"] in (1 / 4, 1 / 16, 1 / 64)
    assert rates(tmp_path)[5] == pytest.approx(30.0 * result["rate_share"], rel=0.01)


def test_it_goes_back_to_the_last_checkpoint_and_is_as_if_it_had_gone_on_from_there(tmp_path):
    network = Stumbling(when=23)
    start = copy.deepcopy(network.state_dict())
    tiny.finish(settings(), tmp_path / "ours", model=network)
    assert warnings(tmp_path / "ours") == [
        "The loss (supervised, unlabelled) was no longer finite at step 25 with a learning rate of 0.1: the run goes "
        "back to the checkpoint of step 20, and on with 0.025."
    ]
    whole = Stumbling(when=-1)
    whole.load_state_dict(start)
    tiny.finish(settings(), tmp_path / "whole", model=whole)
    ours, theirs = rates(tmp_path / "ours"), rates(tmp_path / "whole")
    assert ours == pytest.approx({step: rate / (4 if step > 20 else 1) for step, rate in theirs.items()})
    before = [r for r in tiny.metrics(tmp_path / "ours") if r["step"] <= 20 and r["kind"] != "warning"]
    assert before == [r for r in tiny.metrics(tmp_path / "whole") if r["step"] <= 20]


def test_it_begins_with_the_weights_that_it_began_with(tmp_path):
    """A module of somebody's own cannot be made anew."""
    network = Stumbling(when=3)
    low = copy.deepcopy(network)
    low.when = -1
    tiny.finish(settings(checkpoint_seconds=NEVER), tmp_path / "back", model=network)
    tiny.finish(settings(lr=0.025, checkpoint_seconds=NEVER), tmp_path / "low", model=low)
    ours, theirs = tiny.tensors(tmp_path / "back"), tiny.tensors(tmp_path / "low")
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_a_continued_run_keeps_its_lower_rate(tmp_path):
    network = Interrupting(Stumbling(when=23), when=40)
    with pytest.raises(KeyboardInterrupt):
        tiny.finish(settings(), tmp_path, model=network)
    tiny.finish(settings(), tmp_path, model=Interrupting(Stumbling(when=-1), when=-1))
    assert rates(tmp_path)[60] == pytest.approx(0.025 * torch.cos(torch.tensor(59 / 60 * 7 / 16 * torch.pi)).item())
    assert len(warnings(tmp_path)) == 1


def test_one_that_lower_rates_do_not_help_stops_and_keeps_its_last_good_checkpoint(tmp_path):
    with pytest.raises(TrainingError, match="at step 25; the last good checkpoint is kept, that of step 20"):
        tiny.finish(settings(), tmp_path, model=Exploding(when=22))
    said = warnings(tmp_path)
    assert [message.rpartition(" ")[2] for message in said] == ["0.025.", "0.00625.", "0.00156."]
    assert int(tiny.tensors(tmp_path)["step"]) == 20


def test_generations_begin_again_as_they_began(tmp_path):
    """The second generation diverges where nothing was saved: the first one comes again, with nothing adopted."""
    crest = dataclasses.replace(settings(checkpoint_seconds=NEVER), algorithm=CReST(generations=2))
    network = Stumbling(when=40)
    clean = copy.deepcopy(network)
    clean.when = -1
    low = dataclasses.replace(crest, optimiser=dataclasses.replace(crest.optimiser, lr=0.025))
    tiny.finish(crest, tmp_path / "back", model=network)
    tiny.finish(low, tmp_path / "low", model=clean)
    ours, theirs = tiny.tensors(tmp_path / "back"), tiny.tensors(tmp_path / "low")
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_ctrl_c_as_it_diverges_ends_it(tmp_path):
    with pytest.raises(TrainingError, match="is no longer finite at step 24"):
        tiny.finish(settings(), tmp_path, model=Interrupting(Exploding(when=22), when=24))
    assert not warnings(tmp_path)
