"""A run that was stopped, however rudely, ends as the one that was not."""

from __future__ import annotations

import copy
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor, nn

from cadr.config import Config
from cadr.errors import CheckpointError, ConfigError, DataError, TrainingError
from cadr.models import MLP
from cadr.training import checkpoint, train
from tests.training import tiny

ROOT = Path(__file__).resolve().parents[2]


def test_twenty_kills_change_nothing(tmp_path):
    command = [sys.executable, "-m", "tests.training.kill", str(tmp_path), "20"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("20 kills, 6 of them inside checkpoint.save")  # at each of its moments


def test_same_seed_twice(reference, tmp_path):
    tiny.finish(tiny.config(), tmp_path)
    tiny.assert_same(reference, tmp_path)


def test_another_seed_is_another_run(reference, tmp_path):
    tiny.finish(tiny.config(seed=4), tmp_path)
    assert not tiny.tensors(reference)["weight.1.weight"].equal(tiny.tensors(tmp_path)["weight.1.weight"])


def test_evaluating_and_logging_change_no_weight(reference, tmp_path):
    tiny.finish(tiny.config(evaluations=7, log_every=13), tmp_path)
    ours, theirs = tiny.tensors(reference), tiny.tensors(tmp_path)
    changed = [n for n in ours if not ours[n].equal(theirs[n])]
    assert set(changed) <= {"sums", "pseudo"}
    assert len(tiny.metrics(tmp_path)) != len(tiny.metrics(reference))


def test_closing_saves_where_it_stopped(reference, tmp_path):
    records = train(tiny.config(checkpoint_seconds=1e9), tmp_path, pool=tiny.pool())
    for record in records:
        if record["step"] == 30 and record["kind"] == "train":  # the evaluation of step 30 has not been heard yet
            break
    records.close()
    assert int(tiny.tensors(tmp_path)["step"]) == 30
    start = next(iter(train(tiny.config(), tmp_path, pool=tiny.pool())))
    assert start["resumed"] == 30
    assert "Continuing at step 30" in start["message"]
    tiny.finish(tiny.config(), tmp_path)
    tiny.assert_same(reference, tmp_path)


class Interrupting(nn.Module):
    """The ordinary network, with Ctrl-C pressed in the middle of one of its steps, once or more often."""

    def __init__(self, inner: nn.Module, when: int, times: int = 1) -> None:
        super().__init__()
        self.inner, self.when, self.times, self.calls = inner, when, times, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.training
        for _ in range(self.times if self.training and self.calls == self.when else 0):
            signal.raise_signal(signal.SIGINT)
        logits: Tensor = self.inner(x)
        return logits


def test_interrupt_saves_at_the_end_of_the_step(tmp_path):
    settings = Config("clouds", tiny.config().algorithm, training=tiny.config(checkpoint_seconds=1e9).training)
    network = MLP((16,)).build(3, (4,))
    tiny.finish(settings, tmp_path / "whole", model=Interrupting(copy.deepcopy(network), when=0))
    with pytest.raises(KeyboardInterrupt):
        tiny.finish(settings, tmp_path / "stopped", model=Interrupting(network, when=13))
    assert int(tiny.tensors(tmp_path / "stopped")["step"]) == 13
    other = MLP((16,)).build(3, (4,))  # the checkpoint's weights take the place of these
    tiny.finish(settings, tmp_path / "stopped", model=Interrupting(other, when=0))
    tiny.assert_same(tmp_path / "whole", tmp_path / "stopped")


def test_a_second_interrupt_stops_in_the_middle_of_a_step_and_saves_nothing_half_done(tmp_path):
    settings = Config("clouds", tiny.config().algorithm, training=tiny.config(checkpoint_seconds=1e9).training)
    with pytest.raises(KeyboardInterrupt):
        tiny.finish(settings, tmp_path, model=Interrupting(MLP((16,)).build(3, (4,)), when=13, times=2))
    assert not (tmp_path / checkpoint.CURRENT).exists()


def test_a_finished_run_does_nothing(reference):
    before = {path: path.stat().st_mtime_ns for path in reference.rglob("*") if path.is_file()}
    (record,) = train(tiny.config(), reference, pool=tiny.pool())
    assert record["kind"] == "finished"
    assert "finished already" in record["message"]
    assert record["result"]["last"] == tiny.result(reference)["last"]
    after = {path: path.stat().st_mtime_ns for path in reference.rglob("*") if path.is_file()}
    assert {path.name for path in after if after[path] != before[path]} <= {".lock"}


def test_a_changed_configuration_is_refused_by_name(reference, tmp_path):
    with pytest.raises(ConfigError, match=r"steps \(was 60, now 61\); seed \(was 3, now 5\)"):
        tiny.finish(tiny.config(steps=61, seed=5), reference)
    records = train(tiny.config(), tmp_path, pool=tiny.pool())
    next(records)
    records.close()
    with pytest.raises(ConfigError, match=r"batch \(was 8, now 9\)"):
        tiny.finish(tiny.config(batch=9), tmp_path)
    tiny.finish(tiny.config(checkpoint_seconds=7.0), tmp_path)  # how often to save is nobody's business
    tiny.assert_same(reference, tmp_path)


def test_changed_data_are_refused(tmp_path):
    records = train(tiny.config(), tmp_path, pool=tiny.pool())
    next(records), next(records)
    records.close()
    renamed = dataclasses.replace(tiny.pool(), class_names=("ant", "cat", "bee"))
    for other in (tiny.pool(n=120), renamed):
        with pytest.raises(DataError, match="data have changed"):
            tiny.finish(tiny.config(), tmp_path, pool=other)


def test_two_processes_cannot_share_a_run(tmp_path):
    records = train(tiny.config(), tmp_path, pool=tiny.pool())
    next(records)
    with pytest.raises(TrainingError, match="Another process"):
        tiny.finish(tiny.config(), tmp_path)
    records.close()
    tiny.finish(tiny.config(), tmp_path)


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(reference, tmp_path):
    records = train(tiny.config(), tmp_path, pool=tiny.pool())
    for record in records:
        if record["step"] == 40:
            break
    records.close()
    part = tmp_path / checkpoint.CURRENT / "part-000.pt"
    part.write_bytes(part.read_bytes()[:-100])
    start = next(iter(train(tiny.config(), tmp_path, pool=tiny.pool())))
    assert "cannot be used" in start["message"]
    assert 0 < start["resumed"] <= 40
    tiny.finish(tiny.config(), tmp_path)
    tiny.assert_same(reference, tmp_path)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    records = train(tiny.config(), tmp_path, pool=tiny.pool())
    next(records), next(records)
    records.close()
    tensors, facts = checkpoint.load(tmp_path / checkpoint.CURRENT)
    checkpoint.save(tmp_path, tensors, {"something": "else"})
    with pytest.raises(CheckpointError, match="is not that of a network's run"):
        tiny.finish(tiny.config(), tmp_path)
    checkpoint.save(tmp_path, {"step": tensors["step"]}, facts)
    with pytest.raises(CheckpointError, match="another model or algorithm"):
        tiny.finish(tiny.config(), tmp_path)
