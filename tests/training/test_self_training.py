"""Generations: where they begin, what they start from, and that a kill on either side of a boundary changes nothing."""

from __future__ import annotations

import copy
import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cadr.algorithms import CReST, CReSTPlus, Facts, FixMatch
from cadr.config import Config
from cadr.errors import CheckpointError, ConfigError
from cadr.models import MLP
from cadr.optim import SGD
from cadr.training import checkpoint, train
from cadr.training.feed import Inputs
from cadr.training.phases.self_training import Generations, share_out
from tests.training import tiny

ROOT = Path(__file__).resolve().parents[2]


def config(**changes: Any) -> Config:
    """Sixty steps in three generations of twenty; evaluations every ten."""
    return dataclasses.replace(tiny.config(**changes), algorithm=CReSTPlus(generations=3, threshold=0.7))


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    out: Path = tmp_path_factory.mktemp("generations") / "reference"
    tiny.finish(config(), out)
    return out


def test_steps_are_shared_out_evenly():
    assert [(g.start, g.stop) for g in share_out(3, 10)] == [(0, 3), (3, 7), (7, 10)]
    assert [(g.start, g.stop) for g in share_out(1, 10)] == [(0, 10)]
    with pytest.raises(ConfigError, match="between 1 and the number of steps, 10, not 11"):
        share_out(11, 10)


def test_every_generation_starts_from_the_same_weights_on_more_labels(tmp_path):
    """Beside a run of the first generation alone: the second one starts as that did, and not from where it ended."""
    records = train(config(checkpoint_seconds=0.0), tmp_path, pool=tiny.pool())
    start = next(records)
    assert start["kind"] == "start"
    for record in records:
        if record["kind"] == "generation":
            break
    records.close()
    at_boundary = tiny.tensors(tmp_path)
    assert int(at_boundary["step"]) == 20
    assert int(at_boundary["generation.number"]) == 1
    fresh = MLP((16,))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        initial = fresh.build(3, (4,)).state_dict()
    for name, value in initial.items():
        kinds = ("weight", "average") if f"weight.{name}" in at_boundary else ("buffer",)
        for kind in kinds:
            assert torch.equal(at_boundary[f"{kind}.{name}"], value), name
    assert not any(at_boundary[name].any() for name in at_boundary if name.startswith("velocity."))
    adopted, labels = at_boundary["generation.adopted"], torch.tensor(tiny.pool().labels)
    assert (adopted[labels >= 0] == -1).all()  # a given label is not adopted a second time
    assert torch.bincount(adopted[adopted >= 0], minlength=3).tolist() == record["adopted"]
    assert sum(record["adopted"]) > 0


def test_the_adopted_are_those_that_the_averaged_model_chooses():
    inputs, algorithm = Inputs.of(tiny.pool(), torch.device("cpu")), CReST(generations=2)
    model = MLP((16,)).build(3, (4,)).eval()
    begun = copy.deepcopy(model.state_dict())
    generations = Generations(algorithm, 10, inputs, model)
    assert generations.inputs() is inputs
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1)
        rows = torch.nonzero(inputs.labels < 0).squeeze(1)
        facts = Facts(3, torch.full((3,), 6.0), 90, 90, True, 5)
        expected = algorithm.enlarge(model(inputs.examples[rows]).softmax(1), facts)
    averaged = copy.deepcopy(model)
    generations.advance(averaged, half=False)
    assert torch.equal(generations.adopted[rows], expected)
    assert all(torch.equal(value, begun[name]) for name, value in model.state_dict().items())
    enlarged = generations.inputs()
    assert torch.equal(enlarged.labels[rows], expected)
    assert len(enlarged.labelled) == 18 + int((expected >= 0).sum())
    assert enlarged.facts(5, 1).labelled_counts.tolist() == [6, 6, 6]  # of the given ones


def test_precision_is_that_of_adopted_labels_whose_truth_is_known():
    truth = np.where(np.arange(90) % 2, np.arange(90) % 3, -1)
    inputs = Inputs.of(dataclasses.replace(tiny.pool(), hidden_labels=truth), torch.device("cpu"))
    model = MLP((16,)).build(3, (4,)).eval()
    generations = Generations(CReST(generations=2), 10, inputs, model)
    record = generations.advance(copy.deepcopy(model), half=False)
    adopted = generations.adopted.numpy()
    known = [truth[(adopted == c) & (truth >= 0)] for c in range(3)]
    right = [None if len(t) == 0 else pytest.approx(100 * np.mean(t == c)) for c, t in enumerate(known)]
    assert record["precision"] == right
    assert 0 < sum(map(len, known)) < sum(record["adopted"])


def test_the_curve_spans_generations_and_each_has_a_schedule_of_its_own(reference):
    records = tiny.metrics(reference)
    assert [r["step"] for r in records if r["kind"] == "evaluation"] == [10, 20, 30, 40, 50, 60]
    assert [r["step"] for r in records if r["kind"] == "generation"] == [20, 40]
    assert [point[0] for point in tiny.result(reference)["curve"]] == [10, 20, 30, 40, 50, 60]
    rates = {r["step"]: r["lr"] for r in records if r["kind"] == "train"}
    assert rates[5] == rates[25] == rates[45]
    assert rates[20] < rates[25]


def test_one_generation_is_a_run_like_any_other(tmp_path):
    for name, algorithm in (("crest", CReST(generations=1)), ("fixmatch", FixMatch())):
        tiny.finish(dataclasses.replace(tiny.config(), algorithm=algorithm), tmp_path / name)
    one, other = tiny.tensors(tmp_path / "crest"), tiny.tensors(tmp_path / "fixmatch")
    assert set(other) - set(one) == {"algorithm.target"}
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("stop", [15, 20, 25])  # before, at and after a boundary
def test_closing_and_continuing_changes_nothing(reference, tmp_path, stop):
    records = train(config(checkpoint_seconds=1e9), tmp_path, pool=tiny.pool())
    for record in records:
        if record["step"] == stop:
            break
    records.close()
    assert int(tiny.tensors(tmp_path)["step"]) == stop
    tiny.finish(config(), tmp_path)
    tiny.assert_same(reference, tmp_path)


def test_a_module_of_ones_own_begins_every_generation_as_it_was_given(tmp_path):
    """Continued with another module: what the first one began with comes from the checkpoint."""
    settings = dataclasses.replace(config(), model=None)
    network = MLP((16,)).build(3, (4,))
    tiny.finish(settings, tmp_path / "whole", model=copy.deepcopy(network))
    records = train(settings, tmp_path / "stopped", pool=tiny.pool(), model=network)
    for record in records:
        if record["step"] == 15:
            break
    records.close()
    tiny.finish(settings, tmp_path / "stopped", model=MLP((16,)).build(3, (4,)))
    tiny.assert_same(tmp_path / "whole", tmp_path / "stopped")


def test_kills_on_both_sides_of_a_boundary_change_nothing(tmp_path):
    command = [sys.executable, "-m", "tests.training.kill", str(tmp_path), "8", "generations"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("8 kills, 2 of them inside checkpoint.save")


def test_a_checkpoint_without_generations_is_refused(reference, tmp_path):
    records = train(config(), tmp_path, pool=tiny.pool())
    next(records), next(records)
    records.close()
    tensors, facts = checkpoint.load(tmp_path / checkpoint.CURRENT)
    rest = {name: value for name, value in tensors.items() if not name.startswith("generation.")}
    checkpoint.save(tmp_path, rest, facts)
    with pytest.raises(CheckpointError, match="another model or algorithm"):
        tiny.finish(config(), tmp_path)


def test_a_run_shorter_than_its_generations_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="generations must lie between 1 and the number of steps, 2, not 3"):
        tiny.finish(config(steps=2), tmp_path)


def test_self_training_learns(tmp_path):
    """Three clouds, of one of which there are few labels: the last generation is right about nearly all."""
    settings = dataclasses.replace(
        tiny.config(steps=150), algorithm=CReST(generations=3), optimiser=SGD(lr=0.1, ema=0.9)
    )
    pool = tiny.pool(n=300)
    labels = np.where((pool.labels == 2) & (np.arange(300) > 5), -1, pool.labels)
    last = tiny.finish(settings, tmp_path, pool=dataclasses.replace(pool, labels=labels))
    assert last["result"]["last"] > 80
