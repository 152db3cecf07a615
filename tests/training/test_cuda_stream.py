"""What a step does on a second stream, as a GPU would be asked to do it."""

import pytest
import torch

from cadr.algorithms import ALGORITHMS
from cadr.augment import ImageViews
from cadr.config import Training
from cadr.kernels.cuda_stream import SideStream
from cadr.optim import SGD
from cadr.training.auxiliary_head import widen
from cadr.training.feed import Inputs
from cadr.training.step import Step
from tests.streams import Streams
from tests.training.test_step import CPU, images, network


def ahead(name):
    algorithm, training = ALGORITHMS[name](), Training(steps=12, batch=4, ratio=3, seed=5)
    model = widen(network(), 3, algorithm.auxiliary, 5)
    step = Step(model, algorithm, ImageViews(), Inputs.of(images(), CPU), SGD(), training, longest=3)
    step.start(3)
    step.ready = step.feed.batch(step.state.step)
    return step


@pytest.mark.parametrize("name", [name for name, kind in ALGORITHMS.items() if kind().capturable])
def test_a_step_waits_for_what_is_done_beside_it(name, monkeypatch):
    step = ahead(name)
    with Streams(monkeypatch) as streams:
        step.beside = SideStream(torch.device("cuda"))
        for _ in range(2):
            step.compute_ahead()
    assert streams.beside > 20
    assert streams.races == []


def test_the_streams_see_what_does_not_wait(monkeypatch):
    step = ahead("cadr")
    with Streams(monkeypatch) as streams:
        step.beside = SideStream(torch.device("cuda"))
        step.beside.join = lambda: None
        step.compute_ahead()
    assert "add_ writes" in streams.races  # the step's number, which is still being read
    assert "copy_ reads" in streams.races  # the batch to come


def test_the_streams_see_memory_that_is_given_back_too_early(monkeypatch):
    with Streams(monkeypatch) as streams:
        beside = SideStream(torch.device("cuda"))
        lent = torch.zeros(3) + 1
        with beside.work():
            read = lent + 1
        del lent
        again = torch.zeros(3) + 1
        beside.join()
        read += again
    assert streams.races
    assert all("still in use" in race for race in streams.races)
