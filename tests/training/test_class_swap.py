"""Names that were exchanged are put right in the middle of a run, and right ones are left alone."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

from cadr.algorithms import ALGORITHMS, CADR
from cadr.augment import FeatureViews
from cadr.cli.main import main
from cadr.config import Config, Training
from cadr.errors import ConfigError
from cadr.models import MLP
from cadr.optim import SGD
from cadr.training import train
from cadr.training.feed import Inputs
from cadr.training.phases import phases_of
from cadr.training.phases.class_swap import Renaming, rename
from cadr.training.phases.self_training import Generations
from cadr.training.step import Step
from tests.training import tiny

CPU = torch.device("cpu")


def config(**changes) -> Config:
    return dataclasses.replace(tiny.config(renaming=True, **changes), model=MLP((16, 16)))


def trained(steps: int = 60, device: torch.device = CPU) -> tuple[Step, Renaming]:
    settings, pool = config(), tiny.pool()
    inputs = Inputs.of(pool, device)
    torch.manual_seed(0)
    model = settings.model.build(3, (4,))
    step = Step(model, CADR(), FeatureViews(), inputs, settings.optimiser, settings.training, longest=60)
    renaming = Renaming(settings, inputs, pool.class_names, model)
    step.advance(steps)
    return step, renaming


def test_names_are_looked_at_after_each_quarter_but_the_last():
    _, renaming = trained(steps=1)
    assert renaming.stops == {15, 30, 45}
    model, inputs = MLP((8,)).build(3, (4,)), Inputs.of(tiny.pool(), CPU)
    few = dataclasses.replace(config(), training=Training(steps=2, renaming=True))
    assert Renaming(few, inputs, ("a", "b", "c"), model).stops == {1}
    assert phases_of(tiny.config(), inputs, ("a", "b", "c"), model) == []


def test_who_is_asked(monkeypatch):
    """Labelled examples of every class, and unlabelled ones of the stream; chosen by the seed, and not too many."""
    inputs = Inputs.of(dataclasses.replace(tiny.pool(), stream=np.arange(10, 60)), CPU)
    model = MLP((8, 8)).build(3, (4,))

    def asked(seed: int) -> tuple[list[int], list[int]]:
        found = Renaming(config(seed=seed), inputs, ("a", "b", "c"), model).asked
        return found.seen.tolist(), found.others.tolist()

    seen, others = asked(3)
    assert sorted(seen) == list(range(18))
    assert sorted(others) == list(range(18, 60))
    monkeypatch.setattr("cadr.training.phases.class_swap._MOST_SEEN", 2)
    monkeypatch.setattr("cadr.training.phases.class_swap._MOST_OTHERS", 30)
    seen, others = asked(3)
    assert sorted(row % 3 for row in seen) == [0, 0, 1, 1, 2, 2]
    assert len(set(others)) == 30
    assert asked(3) == (seen, others)
    assert asked(4) != (seen, others)


def test_a_result_says_whether_names_were_looked_at(tmp_path):
    for renaming, options in ((True, {"renaming": True}), (False, {})):
        training = dataclasses.replace(config().training, renaming=renaming)
        out = tmp_path / str(renaming)
        tiny.finish(dataclasses.replace(config(), training=training), out)
        assert json.loads((out / "result.json").read_text())["options"] == options


def test_names_are_looked_at_though_nothing_else_is_due_then(tmp_path, monkeypatch):
    monkeypatch.setattr("cadr.training.phases.class_swap.exchanged", swapped)
    records = list(train(config(log_every=100, evaluations=1), tmp_path, pool=tiny.pool()))
    assert [record["step"] for record in records if record["kind"] == "renaming"] == [15, 30, 45]


def test_renamed_outputs_are_the_old_ones_under_new_names():
    step, _ = trained()
    x = step.inputs.examples
    before = [model.eval()(x).detach() for model in (step.state.model, step.state.average_model)]
    prior, velocity = step.state.method["prior"].clone(), step.state.velocity.clone()
    reported, thresholds = step.state.prior.clone(), step.state.thresholds.clone()
    rename(step, torch.tensor([0, 2, 1]))
    for model, old in zip((step.state.model, step.state.average_model), before, strict=True):
        torch.testing.assert_close(model.eval()(x), old[:, [0, 2, 1]])
    assert step.state.method["prior"].tolist() == prior[[0, 2, 1]].tolist()
    assert step.state.prior.tolist() == reported[[0, 2, 1]].tolist() != reported.tolist()
    assert step.state.thresholds.tolist() == thresholds[[0, 2, 1]].tolist() != thresholds.tolist()
    assert sorted(step.state.velocity.tolist()) == sorted(velocity.tolist())
    assert not torch.equal(step.state.velocity, velocity)
    rename(step, torch.tensor([0, 2, 1]))
    assert torch.equal(step.state.velocity, velocity)


@pytest.mark.parametrize("names", [(0, 2, 1), (1, 0, 2), (1, 2, 0)])
def test_exchanged_names_are_found_and_put_right(names):
    step, renaming = trained(steps=45)
    before = {name: tensor.clone() for name, tensor in step.state.tensors().items()}
    rename(step, torch.tensor(names))
    (record,) = renaming.at_stop(step)
    after = step.state.tensors()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert record["kind"] == "renaming"
    assert record["step"] == 45
    assert {name for pair in record["exchanged"] for name in pair} == {
        ("ant", "bee", "cat")[c] for c in range(3) if names[c] != c
    }
    assert all(f"{one} and {other}" in record["message"] for one, other in record["exchanged"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_captured_step_goes_on_with_the_new_names():
    step, renaming = trained(steps=45, device=torch.device("cuda"))
    assert step.graph is not None
    rename(step, torch.tensor([0, 2, 1]))
    before = step.state.weights.clone()
    assert len(renaming.at_stop(step)) == 1
    assert not torch.equal(step.state.weights, before)
    step.advance(1)
    assert renaming.at_stop(step) == []
    logits = step.state.average_model(step.inputs.examples)
    known = step.inputs.truth >= 0
    assert (logits.argmax(1) == step.inputs.truth)[known].float().mean() > 0.8


def test_right_names_and_other_steps_are_left_alone():
    step, renaming = trained(steps=45)
    assert renaming.at_stop(step) == []
    step.advance(1)
    rename(step, torch.tensor([0, 2, 1]))
    assert renaming.at_stop(step) == []


def test_labels_alone_surround_nothing():
    settings, pool = config(), tiny.pool()
    pool = dataclasses.replace(pool, stream=torch.arange(18).numpy())
    inputs = Inputs.of(pool, CPU)
    step, _ = trained(steps=45)
    assert Renaming(settings, inputs, pool.class_names, settings.model.build(3, (4,))).at_stop(step) == []


def test_a_run_whose_names_are_right_is_the_same_with_it(tmp_path):
    tiny.finish(config(), tmp_path / "with")
    tiny.finish(dataclasses.replace(config(), training=tiny.config().training), tmp_path / "without")
    with_it, without = (tiny.tensors(tmp_path / name) for name in ("with", "without"))
    assert all(torch.equal(with_it[name], tensor) for name, tensor in without.items())


def swapped(fit, labels):
    return torch.tensor([1, 0, 2]), [(0, 1)]


def test_a_kill_on_either_side_of_a_renaming_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("cadr.training.phases.class_swap.exchanged", swapped)
    tiny.finish(config(), tmp_path / "whole")
    expected = tiny.tensors(tmp_path / "whole")
    for end in (14, 15, 16):
        out = tmp_path / str(end)
        records = train(config(log_every=1), out, pool=tiny.pool())
        for record in records:
            if record["kind"] == "train" and record["step"] == end:
                break
        records.close()
        tiny.finish(config(log_every=1), out)
        lines = (out / "metrics.jsonl").read_text().splitlines()
        assert [line.count('"renaming"') for line in lines].count(1) == 3
        weights = [name for name in expected if name.startswith(("weight", "average", "velocity", "algorithm"))]
        assert all(torch.equal(tiny.tensors(out)[name], expected[name]) for name in weights)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_methods_that_know_more_of_the_classes_refuse(name, tmp_path):
    """Of those that do not, nothing that is by class changes with the predictions but what is moved with the names."""
    algorithm = ALGORITHMS[name]()
    inputs = Inputs.of(tiny.pool(), CPU)
    model = MLP((16, 16)).build(3, (4,))
    if not algorithm.renamed:
        with pytest.raises(ConfigError, match=f"^{name} has state by class that renaming cannot swap"):
            dataclasses.replace(config(), algorithm=algorithm)
        return
    Renaming(dataclasses.replace(config(), algorithm=algorithm), inputs, ("a", "b", "c"), model)
    assert Generations(algorithm, 60, inputs, model).stops == {60}
    training = Training(steps=60, batch=8, ratio=2, seed=3)
    step = Step(model, algorithm, FeatureViews(), inputs, SGD(lr=0.1), training, longest=60)
    before = {name: tensor.clone() for name, tensor in step.state.method.items()}
    step.advance(5)
    changed = {n for n, tensor in step.state.method.items() if not torch.equal(tensor, before[n])}
    assert {n for n in changed if step.state.method[n].shape} == {*algorithm.renamed}
    kept = {name: tensor.clone() for name, tensor in step.state.method.items()}
    rename(step, torch.tensor([1, 2, 0]))
    for name, tensor in step.state.method.items():
        assert torch.equal(tensor, kept[name][[1, 2, 0]] if name in algorithm.renamed else kept[name])


def test_a_comparison_is_refused_before_its_first_run(tmp_path, capsys):
    flags = ["--seeds", "1", "--steps", "4", "--renaming", "--out", str(tmp_path / "runs")]
    assert main(["compare", "digits", "--protocol", "longtail", "--algorithms", "fixmatch", "flexmatch", *flags]) == 2
    assert capsys.readouterr().err.startswith("cadr: flexmatch has state by class that renaming")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(4, 3),
        nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3), nn.BatchNorm1d(3)),  # whose rows are not the outputs
        nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 5), nn.Softmax(1)),
    ],
)
def test_networks_of_ones_own_that_do_not_show_their_middle_or_last_layer_refuse(model):
    with pytest.raises(ConfigError, match="renaming needs intermediate features"):
        Renaming(config(), Inputs.of(tiny.pool(), CPU), ("a", "b", "c"), model)
