"""The step against a plain loop with PyTorch's own optimiser, written out as one would read it in the paper."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from cadr.algorithms import ALGORITHMS, Batch, Refreshing, Supervised
from cadr.augment import FeatureViews, ImageViews
from cadr.config import Training
from cadr.data.pool import Pool
from cadr.data.shuffle import LABELLED, UNLABELLED, balanced_indices, indices
from cadr.models import normalised
from cadr.optim import SGD
from cadr.training.auxiliary_head import widen
from cadr.training.feed import BatchRows, Inputs
from cadr.training.network import Network
from cadr.training.phases import Generation, step_phases
from cadr.training.step import Step
from cadr.utils import random_numbers
from tests.training import tiny

CPU = torch.device("cpu")


def images() -> Pool:
    generator = np.random.default_rng(1)
    examples = generator.integers(256, size=(40, 8, 8, 3)).astype(np.uint8)
    labels = np.where(np.arange(40) < 12, np.arange(40) % 3, -1)
    return Pool(examples, labels, ("a", "b", "c"), stream=np.arange(6, 40))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_step_equals_a_plain_loop(name):
    pool, algorithm, views = images(), ALGORITHMS[name](), ImageViews()
    options = SGD(lr=0.2, sgd_momentum=0.8, weight_decay=0.1, ema=0.7)
    training = Training(steps=12, batch=4, ratio=3, seed=5)
    inputs = Inputs.of(pool, CPU)
    step = Step(
        widen(network(), 3, algorithm.auxiliary, 5),
        algorithm,
        views,
        inputs,
        options,
        training,
        longest=7,
        phases=step_phases(algorithm, views, 12),
    )
    step.advance(5)
    step.advance(7)

    model = widen(network(), 3, algorithm.auxiliary, 5).train()
    average = copy.deepcopy(model)
    kernels = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": kernels, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.SGD(groups, lr=0.2, momentum=0.8, nesterov=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: math.cos(7 * math.pi * k / (16 * 12)))
    state = algorithm.init(inputs.facts(12))
    rows = np.flatnonzero(pool.labels >= 0)  # and the stream begins at row 6
    for k in range(12):
        drawn = indices(5, LABELLED, 12, 4, k, k + 1)[0]
        if getattr(algorithm, "balanced_labels", False):
            drawn = balanced_indices(5, LABELLED, pool.labels[rows], 4, k, k + 1)[0]
        labelled = rows[drawn]
        position = indices(5, UNLABELLED, 34, 12, k, k + 1)[0]
        first, then = torch.tensor(pool.examples[labelled]), torch.tensor(pool.examples[6 + position])
        keys = [random_numbers.key(5, torch.tensor(k), stream) for stream in range(20)]
        weak_views, strong_views = algorithm.weak_views, algorithm.strong_views
        weak = [views.weak(then, key) for key in (keys[1], *keys[5 : 5 + weak_views - 1])]
        strong = [views.strong_view(then, key, {}) for key in (keys[2], *keys[5 + weak_views :])][:strong_views]
        more = keys[5 + weak_views + strong_views :][: algorithm.labelled_views - 1]
        seen = [views.weak(first, keys[0]), *(views.strong_view(first, key, {}) for key in more)]
        parts = [torch.cat(seen), torch.cat(weak), torch.cat([then[:0], *strong])]
        a, b, c = (normalised(part) for part in parts)
        truth = torch.tensor(pool.labels[labelled])
        batch = Batch(a, truth, b, c, torch.tensor(position), keys[4], torch.tensor(k))
        output = algorithm.loss(Network(model, half=False), batch, state)
        optimiser.zero_grad()
        torch.stack(list(output.terms.values())).sum().backward()
        optimiser.step()
        schedule.step()
        state = output.state
        if isinstance(algorithm, Refreshing) and (k + 1) % algorithm.refresh_every == 0:
            state = algorithm.refresh(state, k + 1, 12)
        with torch.no_grad():
            for old, new in zip(average.parameters(), model.parameters(), strict=True):
                old.mul_(0.7).add_(0.3 * new)

    named = step.state.tensors()
    apart = {key: "training." if ".auxiliary_" in key else "" for key, _ in model.named_parameters()}
    for key, value in model.named_parameters():
        torch.testing.assert_close(named[f"{apart[key]}weight.{key}"], value.data, rtol=1e-4, atol=1e-6)
    for key, value in average.named_parameters():
        torch.testing.assert_close(named[f"{apart[key]}average.{key}"], value.data, rtol=1e-4, atol=1e-6)
    for key, buffer in model.named_buffers():
        torch.testing.assert_close(named[f"buffer.{key}"], buffer, rtol=1e-4, atol=1e-6)
    for key, kept in state.items():
        torch.testing.assert_close(step.state.method[key], kept, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, kind in ALGORITHMS.items() if kind().capturable])
def test_a_step_that_looks_ahead_is_the_step(name):
    algorithm, steps = ALGORITHMS[name](), []
    for _ in range(2):
        training, generation = Training(steps=20, batch=4, ratio=3, seed=5), Generation(0, 2, 20)
        model, inputs = widen(network(), 3, algorithm.auxiliary, 5), Inputs.of(images(), CPU)
        phases = step_phases(algorithm, ImageViews(), 20)
        steps.append(Step(model, algorithm, ImageViews(), inputs, SGD(), training, 7, generation, phases))
    plain, ahead = steps
    assert ahead.looks_ahead
    ahead.start(5)
    ahead.ready = ahead.feed.batch(ahead.state.step)
    memory = [part.data_ptr() for part in ahead.ready]
    ahead.compute = ahead.compute_ahead  # type: ignore[method-assign]
    for n, done in ((5, 5), (7, 7), (6, 2), (1, 1)):  # the table holds seven: beyond its end all is made anew
        plain.advance(done)
        ahead.advance(n, stop=lambda: ahead.done == plain.done)
    before = {name: value.clone() for name, value in ahead.state.tensors().items()}
    ahead.advance(1)
    ahead.state.load(before)  # as if it went on from a checkpoint
    for step in steps:
        step.advance(2)
    for name, value in plain.state.tensors().items():
        assert torch.equal(ahead.state.tensors()[name], value), name
    assert [part.data_ptr() for part in ahead.ready] == memory  # which a captured step reads


def test_rows_are_those_of_the_step_however_they_are_uploaded():
    training, pool = Training(steps=20, batch=4, ratio=3, seed=5), images()
    for balanced in (False, True):
        rows = BatchRows(Inputs.of(pool, CPU), training, balanced, 7)
        for start, stop in ((0, 5), (0, 5), (5, 12), (3, 9), (9, 15), (0, 5)):
            rows.upload(start, stop)
            rows.make(stop, stop + 6)  # in vain, if something else is wanted
            for k in range(start, stop):
                labelled, position = rows.of(torch.tensor(k))
                drawn = indices(5, LABELLED, 12, 4, k, k + 1)[0]
                if balanced:
                    drawn = balanced_indices(5, LABELLED, pool.labels[:12], 4, k, k + 1)[0]
                assert labelled.tolist() == drawn.tolist()  # the first twelve are the labelled ones
                assert position.tolist() == indices(5, UNLABELLED, 34, 12, k, k + 1)[0].tolist()


def test_rows_are_drawn_once_for_start_and_advance(monkeypatch):
    training = Training(steps=20, batch=4, ratio=3, seed=5)
    step = Step(network(), ALGORITHMS["cadr"](), ImageViews(), Inputs.of(images(), CPU), SGD(), training, 7)
    drawn = []

    def draw_rows(start, stop):
        drawn.append((start, stop))
        return BatchRows._rows(step.feed.rows, start, stop)

    monkeypatch.setattr(step.feed.rows, "_rows", draw_rows)
    for _ in range(2):
        step.start(7)
        step.advance(7)
        step.feed.rows.make(step.done, step.done + 7)  # as on a GPU, while it works
    assert drawn == [(0, 7), (7, 14), (14, 21)]


@dataclass(frozen=True)
class Counting(Supervised):
    """Supervised training that counts its refreshes."""

    refresh_every: int = 3

    def init(self, facts):
        return super().init(facts) | {"refreshed": torch.zeros(3)}

    def loss(self, model, batch, state):
        output = super().loss(model, batch, state)
        return output._replace(state={**state, **output.state})

    def refresh(self, state, done, steps):
        return state | {"refreshed": torch.tensor([float(state["refreshed"][0]) + 1, done, steps])}


def test_an_algorithm_refreshes_its_state_between_steps():
    training = Training(steps=12, batch=4, ratio=3)
    algorithm, views = Counting(), ImageViews()
    phases = step_phases(algorithm, views, 12)
    step = Step(network(), algorithm, views, Inputs.of(images(), CPU), SGD(), training, 12, phases=phases)
    kept = step.state.method["refreshed"]
    for n, expected in ((2, [0, 0, 0]), (1, [1, 3, 12]), (2, [1, 3, 12]), (5, [3, 9, 12])):
        step.advance(n)
        assert step.state.method["refreshed"].tolist() == expected
    assert step.state.method["refreshed"] is kept  # in place: a captured graph reads the same memory
    step.advance(2, stop=lambda: True)  # stopped after one step, and that one is not a third
    assert step.state.method["refreshed"].tolist() == [3, 9, 12]


def test_the_averaged_model_has_averaged_weights_and_the_latest_statistics():
    step = Step(network(), ALGORITHMS["cadr"](), ImageViews(), Inputs.of(images(), CPU), SGD(), Training(), 4)
    step.advance(4)
    assert not step.state.average_model.training
    ours, averaged = step.state.model.state_dict(keep_vars=True), step.state.average_model.state_dict(keep_vars=True)
    assert averaged["1.running_mean"] is ours["1.running_mean"]
    assert averaged["0.weight"].data_ptr() != ours["0.weight"].data_ptr()
    assert not averaged["0.weight"].equal(ours["0.weight"])


def test_views_that_learn_are_probed_with_labelled_examples_and_the_averaged_model():
    views, training = ImageViews(strong="ctaugment"), Training(steps=9, batch=4, ratio=3, seed=5)
    algorithm = ALGORITHMS["fixmatch"]()
    phases = step_phases(algorithm, views, 9)
    step = Step(network(), algorithm, views, Inputs.of(images(), CPU), SGD(), training, 4, phases=phases)
    assert not step.looks_ahead  # the next strong views are up to what is learned now
    rates = step.state.views["rates"].clone()
    average = copy.deepcopy(step.state.average_model)
    step.advance(1)
    pool = images()
    rows = np.flatnonzero(pool.labels >= 0)[indices(5, LABELLED, 12, 4, 0, 1)[0]]
    probes, policies = views.probe(torch.tensor(pool.examples[rows]), random_numbers.key(5, torch.tensor(0), 3))
    statistics = {name: value for name, value in step.state.tensors().items() if name.startswith("buffer.")}
    average.load_state_dict({n.removeprefix("buffer."): v for n, v in statistics.items()}, strict=False)
    expected = views.update(
        {"rates": rates}, policies, average(normalised(probes)).softmax(1), torch.tensor(pool.labels[rows])
    )
    torch.testing.assert_close(step.state.views["rates"], expected["rates"])
    assert not expected["rates"].equal(rates)
    assert "views.rates" in step.state.tensors()


def test_a_model_may_handle_its_precision_itself():
    class Seen(nn.Module):
        def __init__(self, handles_precision: bool) -> None:
            super().__init__()
            self.handles_precision, self.linear = handles_precision, nn.Linear(4, 3)
            self.autocast: list[bool] = []

        def forward(self, x):
            self.autocast.append(torch.is_autocast_enabled("cpu"))
            return self.linear(x.float())

    for handles in (False, True):
        model = Seen(handles)
        training = Training(steps=2, batch=4, ratio=2, precision="bf16")
        inputs = Inputs.of(tiny.pool(), CPU)
        Step(model, ALGORITHMS["fixmatch"](), FeatureViews(), inputs, SGD(), training, 2).advance(2)
        assert model.autocast == [not handles] * 2


def test_features_are_standardised_over_the_stream():
    inputs = Inputs.of(tiny.pool(), CPU)
    torch.testing.assert_close(inputs.examples.mean(0), torch.zeros(4), rtol=0, atol=1e-5)
    torch.testing.assert_close(inputs.examples.std(0, correction=0), torch.ones(4))
    assert inputs.test_examples is not None
    torch.testing.assert_close(inputs.test_examples, inputs.examples[45:])


def test_facts_count_what_the_streams_hold():
    facts = Inputs.of(images(), CPU).facts(9)
    assert facts.labelled_counts.tolist() == [4, 4, 4]
    assert (facts.num_unlabelled, facts.num_examples, facts.labelled_in_stream) == (34, 40, False)
    assert Inputs.of(tiny.pool(), CPU).facts(9).labelled_in_stream
