"""The kernels that make views on a GPU, run on a CPU, against the tensor code, which is tested against Pillow."""

import pytest
import torch

from cadr.data import draw
from cadr.views import ImageViews
from cadr.views.ctaugment import NAMES, RESCALE, Policy, carry_out, draw_policy, initial_rates
from cadr.views.rescale import METHODS
from tests.views import emulated, samples

pytestmark = pytest.mark.skipif(emulated.COMPILER is None, reason="needs g++")
SIZES = [(8, 8), (32, 32), (20, 33), (1, 1)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return emulated.build(tmp_path_factory.mktemp("kernels"))


def pictures(size, n=40):
    images = torch.from_numpy(samples.synthetic(*size))
    return images.repeat(-(-n // len(images)), 1, 1, 1)[:n].contiguous()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_weak_and_strong_views(library, size):
    images, key = pictures(size), draw.key(1, torch.tensor(3), 1)
    for views in (ImageViews(), ImageViews(flip=False, shift=1, operations=3, cutout=0.25)):
        shift, cut = views._shift(images), round(views.cutout * min(size))
        weak = emulated.run(library, "weak_view", images, key, shift, int(views.flip))
        assert torch.equal(weak, views.weak(images, key))
        strong = emulated.run(library, "strong_view", images, key, shift, int(views.flip), views.operations, cut)
        assert torch.equal(strong, views.strong_view(images, key, {}))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rescale"])
def test_each_operation_of_ctaugment(library, name):
    images, key = pictures((20, 33)), draw.key(1, torch.tensor(5), 0)
    level = torch.linspace(0, 0.999, len(images), dtype=torch.float64)
    policy = Policy(torch.full((len(images),), NAMES.index(name)), level, torch.zeros_like(level))
    expected = carry_out(images, policy, key)
    assert name == "identity" or not torch.equal(expected, images) or name.startswith("translate")
    assert torch.equal(emulated.run(library, "carry_out", images, *policy, key), expected)


@pytest.mark.parametrize("method", range(len(METHODS)), ids=METHODS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_way_to_rescale(library, size, method):
    images, key = pictures(size, 24), draw.key(1, torch.tensor(5), 0)
    level = torch.linspace(0, 0.999, len(images), dtype=torch.float64)
    chosen = torch.full_like(level, (method + 0.5) / len(METHODS))
    policy = Policy(torch.full((len(images),), RESCALE), level, chosen)
    expected = carry_out(images, policy, key)
    assert max(size) < 8 or not torch.equal(expected, images)
    assert torch.equal(emulated.run(library, "carry_out", images, *policy, key), expected)


def test_policies_as_they_are_drawn(library):
    images = pictures((32, 32), 100)
    for step in range(2):
        by_policy, by_cut = draw.split(draw.key(1, torch.tensor(step), 0), 2)
        policy = draw_policy(initial_rates(), by_policy, len(images))
        assert torch.equal(
            emulated.run(library, "carry_out", images, *policy, by_cut), carry_out(images, policy, by_cut)
        )
