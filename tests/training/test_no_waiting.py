"""Nothing in a step makes the host wait for the device: found on a CPU, by watching every operation.

A tensor's value that Python asks for, or a result whose size depends on values, stalls a GPU and cannot be captured in
a CUDA graph. What the views do on a GPU is a kernel of its own, so they are left out here.
"""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cadr.algorithms import ALGORITHMS
from cadr.augment import ImageViews
from cadr.config import Training
from cadr.optim import SGD
from cadr.training.auxiliary_head import widen
from cadr.training.feed import Inputs
from cadr.training.step import Step
from tests.training.test_step import images, network

WAITING = {
    *("_local_scalar_dense", "nonzero", "masked_select", "unique_consecutive", "_unique", "_unique2", "unique_dim"),
    *("bincount", "histc", "repeat_interleave", "equal", "is_nonzero", "lift_fresh"),
}


class Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        by_mask = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        )
        if name in WAITING or by_mask:
            self.seen.append(name)
        return func(*args, **(kwargs or {}))


def watched(name):
    algorithm = ALGORITHMS[name]()
    training = Training(steps=12, batch=4, ratio=3, seed=5)
    model = widen(network(), 3, algorithm.auxiliary, 5)
    step = Step(model, algorithm, ImageViews(), Inputs.of(images(), torch.device("cpu")), SGD(), training, 7)
    step.start(7)
    batch = step.feed.batch(step.state.step)
    step.feed.batch = lambda step: batch  # type: ignore[method-assign]
    with Watch() as watch:
        step.compute()
    return watch.seen


@pytest.mark.parametrize("name", [name for name, kind in ALGORITHMS.items() if kind().capturable])
def test_a_step_never_waits_for_the_device(name):
    assert watched(name) == []


@pytest.mark.parametrize("name", ["cap", "cadr"])
def test_what_cannot_be_captured_says_so(name):
    kind: Any = ALGORITHMS[name]
    assert not kind(form="pinv").capturable


def test_the_watch_sees_what_waits():
    with Watch() as watch:
        x = torch.arange(3.0)
        assert float(x.sum()) == 3
        _ = x[x > 1]
        torch.tensor([1, 2])
    assert watch.seen == ["_local_scalar_dense", "index", "lift_fresh"]
