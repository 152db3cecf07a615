"""The step as a GPU runs it, captured in a graph, against the step as it is written."""

from __future__ import annotations

import gc

import pytest
import torch

from cadr.algorithms import ALGORITHMS
from cadr.config import Optimiser, Training
from cadr.train.auxiliary import widen
from cadr.train.inputs import Inputs
from cadr.train.step import Step
from cadr.views import ImageViews
from tests.train.test_step import images, network


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    ("name", "compiled"), [*((name, "none") for name in ALGORITHMS), ("cadr", "all"), ("remixmatch", "all")]
)
def test_a_captured_step_is_the_step(name, compiled):
    algorithm = ALGORITHMS[name]()
    results = []
    for device, how in (("cpu", "none"), ("cuda", compiled)):
        training = Training(steps=12, batch=4, ratio=3, seed=5, precision="fp32", compile=how)
        inputs = Inputs.of(images(), torch.device(device))
        model = widen(network(), 3, algorithm.auxiliary, 5)
        step = Step(model, algorithm, ImageViews(), inputs, Optimiser(), training, longest=7)
        step.advance(5)
        step.advance(7)
        assert step.graph is not None or device == "cpu"
        # By name: on a GPU the kernels lie in memory with the channels last.
        results.append({name: t.cpu() for name, t in step.tensors().items() if t.is_floating_point()})
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_former_runs_graph_does_not_spoil_the_next_capture():
    inputs, training = Inputs.of(images(), torch.device("cuda")), Training(steps=12, batch=4, ratio=3, compile="none")
    thresholds = gc.get_threshold()
    try:
        gc.disable()  # the first step stays about, and is collected as soon as that is possible again
        Step(network(), ALGORITHMS["cadr"](), ImageViews(), inputs, Optimiser(), training, longest=7).advance(2)
        step = Step(network(), ALGORITHMS["cadr"](), ImageViews(), inputs, Optimiser(), training, longest=7)
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
            step = Step(network(), ALGORITHMS["cadr"](), ImageViews(), inputs, Optimiser(), training, longest=7)
            step.advance(5)
            results.append({name: t.cpu() for name, t in step.tensors().items() if t.is_floating_point()})
    finally:
        torch.cuda.set_device(0)
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)
