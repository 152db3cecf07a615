"""On a GPU the views are the CPU's, pixel by pixel, and a captured graph draws afresh at every replay."""

from __future__ import annotations

import pytest
import torch

from cadr.augment import ImageViews
from cadr.augment.randaugment import OPERATIONS, dense, grouped
from cadr.models import normalised
from cadr.utils import random_numbers
from tests.augment import samples

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize("size", [(8, 8), (32, 32), (20, 33), (96, 64), (1, 1)], ids=str)
def test_views_equal_the_cpu(size):
    images = torch.from_numpy(samples.synthetic(*size)).repeat(20, 1, 1, 1)
    for views in (ImageViews(), ImageViews(flip=False, shift=1, operations=3, cutout=0.25)):
        for step in range(5):
            here, there = torch.tensor(step), torch.tensor(step, device="cuda")
            weak = views.weak(images.cuda(), random_numbers.key(1, there, 0))
            assert torch.equal(weak.cpu(), views.weak(images, random_numbers.key(1, here, 0)))
            strong = views.strong_view(images.cuda(), random_numbers.key(1, there, 1), {})
            assert torch.equal(strong.cpu(), views.strong_view(images, random_numbers.key(1, here, 1), {}))


def test_ctaugment_equals_the_cpu():
    views = ImageViews(strong="ctaugment")
    images = torch.from_numpy(samples.synthetic(32, 32)).repeat(20, 1, 1, 1)
    for step in range(3):
        strong = views.strong_view(
            images.cuda(), random_numbers.key(1, torch.tensor(step, device="cuda"), 0), views.init("cuda")
        )
        assert torch.equal(
            strong.cpu(), views.strong_view(images, random_numbers.key(1, torch.tensor(step), 0), views.init())
        )


def test_tensor_operations_equal_the_cpu():
    images = torch.from_numpy(samples.synthetic(32, 32)).repeat(40, 1, 1, 1)
    random = torch.Generator().manual_seed(1)
    operation = torch.randint(len(OPERATIONS), (len(images),), generator=random)
    amount = torch.rand(len(images), generator=random, dtype=torch.float64)
    expected = grouped(images, operation, amount)
    assert torch.equal(dense(images.cuda(), operation.cuda(), amount.cuda()).cpu(), expected)


@pytest.mark.parametrize("strong", ["randaugment", "ctaugment"])
def test_captured_views_draw_afresh_at_every_replay(strong):
    views = ImageViews(strong=strong)
    images = torch.from_numpy(samples.synthetic(32, 32)).cuda()
    step, state = torch.zeros((), dtype=torch.int64, device="cuda"), views.init("cuda")

    def make() -> torch.Tensor:
        return normalised(views.strong_view(images, random_numbers.key(1, step, 0), state), dtype=torch.float32)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        make()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        seen = make()
    for current in (3, 8):
        step.fill_(current)
        graph.replay()
        assert torch.equal(seen, make())
