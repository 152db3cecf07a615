"""The step as a GPU runs it, captured in a graph, against the step as it is written.

With the written-out network in bf16 too, in methods that pass through it several times a step, start afresh, or change
their state between steps.
"""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest
import torch

from cadr.algorithms import ALGORITHMS, DARP, CReST, MixMatch, PiModel, ReMixMatch, SimPro
from cadr.augment import ImageViews
from cadr.config import Training
from cadr.data.pool import Pool
from cadr.kernels import wide_resnet
from cadr.models import WideResNet28
from cadr.optim import SGD, Muon
from cadr.training.auxiliary_head import widen
from cadr.training.feed import Inputs
from cadr.training.phases import step_phases
from cadr.training.phases.self_training import Generations
from cadr.training.step import Step
from tests.training.test_step import images, network


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    ("name", "compiled", "optimiser"),
    [
        *((name, "none", SGD()) for name in ALGORITHMS),
        ("cadr", "all", SGD()),
        ("remixmatch", "all", SGD()),
        ("cadr", "none", Muon()),
        ("cadr", "all", Muon()),
    ],
)
def test_a_captured_step_is_the_step(name, compiled, optimiser):
    algorithm = ALGORITHMS[name]()
    results = []
    for device, how in (("cpu", "none"), ("cuda", compiled)):
        training = Training(steps=12, batch=4, ratio=3, seed=5, precision="fp32", compile=how)
        inputs = Inputs.of(images(), torch.device(device))
        model = widen(network(), 3, algorithm.auxiliary, 5)
        step = Step(
            model,
            algorithm,
            ImageViews(),
            inputs,
            optimiser,
            training,
            7,
            phases=step_phases(algorithm, ImageViews(), 12),
        )
        step.advance(5)
        step.advance(7)
        assert step.graph is not None or device == "cpu"
        # By name: on a GPU the kernels lie in memory with the channels last.
        results.append({name: t.cpu() for name, t in step.state.tensors().items() if t.is_floating_point()})
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_former_runs_graph_does_not_spoil_the_next_capture():
    inputs, training = Inputs.of(images(), torch.device("cuda")), Training(steps=12, batch=4, ratio=3, compile="none")
    thresholds = gc.get_threshold()
    try:
        gc.disable()  # the first step stays about, and is collected as soon as that is possible again
        Step(network(), ALGORITHMS["cadr"](), ImageViews(), inputs, SGD(), training, longest=7).advance(2)
        step = Step(network(), ALGORITHMS["cadr"](), ImageViews(), inputs, SGD(), training, longest=7)
        gc.set_threshold(1)
        gc.enable()
        step.advance(2)
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
    assert step.graph is not None


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_any_gpu_will_do():
    results = []
    try:
        for device in ("cuda:0", "cuda:1"):
            inputs, training = Inputs.of(images(), torch.device(device)), Training(steps=12, batch=4, ratio=3, seed=5)
            step = Step(network(), ALGORITHMS["cadr"](), ImageViews(), inputs, SGD(), training, longest=7)
            step.advance(5)
            results.append({name: t.cpu() for name, t in step.state.tensors().items() if t.is_floating_point()})
    finally:
        torch.cuda.set_device(0)
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


# Thresholds of 0, or nearly none of a fresh network's pseudo-labels would be used.
SEVERAL = {
    "pi_model": PiModel(ramp=0.0),
    "pi_model, three passes": PiModel(ramp=0.0, statistics="labelled"),
    "mixmatch": MixMatch(ramp=0.0),
    "remixmatch": ReMixMatch(ramp=0.0),
    "simpro": SimPro(threshold=0.0, updates=4),
    "crest": CReST(threshold=0.0, generations=2),
    "darp": DARP(threshold=0.0, warm_up=0.0, refresh_every=2),
}


def coloured(side):
    """Three classes that differ in colour: labels that are adopted do not hang by a rounding error."""
    generator = np.random.default_rng(1)
    truth = np.arange(60) % 3
    examples = generator.integers(128, size=(60, side, side, 3))
    examples[np.arange(60), ..., truth] += 127
    return Pool(examples.astype(np.uint8), np.where(np.arange(60) < 15, truth, -1), ("a", "b", "c"))


def trained(algorithm, model, inputs, precision, *, captured):
    """What eight steps make of the run's tensors, and the sums of mask and terms on the way."""
    training = Training(steps=8, batch=8, ratio=2, seed=5, precision=precision, compile="none")
    generations, sums = Generations(algorithm, training.steps, inputs, model), []
    while True:
        parts = (model, algorithm, ImageViews(), generations.inputs(), SGD(), training)
        step = Step(*parts, 3, generations.current, step_phases(algorithm, ImageViews(), training.steps))
        step.captures = captured and step.on_gpu
        if captured and not step.on_gpu:  # the same computation, one launch after another
            step.start(1)
            step.ready, step.compute = step.feed.batch(step.state.step), step.compute_ahead  # type: ignore[method-assign]
        while step.done < generations.current.stop:
            step.advance(min(3, generations.current.stop - step.done))
            values, _, finite = step.state.read(len(step.term_names))
            assert finite
            sums.append(values)
        assert (step.graph is not None) == step.captures
        if step.done == training.steps:
            return {name: t.cpu() for name, t in step.state.tensors().items() if t.is_floating_point()}, np.array(sums)
        generations.advance(step.state.average_model, step.half)


def apart(algorithm, model, inputs, precision):
    """How far a captured run's weights and statistics end from the plain run's, in units of how far that one went."""
    widen(model, 3, algorithm.auxiliary, 5)
    begun = {name: value.clone() for name, value in model.state_dict().items()}
    (plain, losses), (ours, our_losses) = (
        trained(algorithm, copy.deepcopy(model), inputs, precision, captured=captured) for captured in (False, True)
    )
    assert np.isfinite(losses).all()
    np.testing.assert_allclose(our_losses, losses, rtol=0.05, atol=0.01)
    gone = off = 0.0
    for name, value in plain.items():
        kind, _, key = name.removeprefix("training.").partition(".")
        if kind in ("weight", "buffer"):
            gone += float((value - begun[key]).square().sum())
            off += float((ours[name] - value).square().sum())
        elif kind == "algorithm":
            torch.testing.assert_close(ours[name], value, rtol=0.05, atol=0.02)
    return (off / gone) ** 0.5


@pytest.mark.parametrize("name", SEVERAL)
def test_steps_that_look_ahead_end_where_plain_ones_do(name):
    assert apart(SEVERAL[name], network(), Inputs.of(coloured(8), torch.device("cpu")), "fp32") < 1e-6


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs a Hopper GPU"
)
@pytest.mark.parametrize("name", SEVERAL)
def test_captured_steps_of_the_written_out_network_end_where_plain_ones_do(name, monkeypatch):
    written_out, applies = [], wide_resnet.applies

    def noted(model, images):
        answer = applies(model, images)
        written_out.extend([answer] if model.training else [])
        return answer

    monkeypatch.setattr(wide_resnet, "applies", noted)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)  # the graph is compared, not the order of sums
    torch.manual_seed(0)
    model = WideResNet28().build(3, (3, 32, 32))
    assert apart(SEVERAL[name], model, Inputs.of(coloured(32), torch.device("cuda")), "bf16") < 0.05
    assert written_out
    assert all(written_out)
