"""What makes views on a GPU, played on a CPU, against the tensor code, which is tested against Pillow."""

import pytest
import torch

from cadr.augment import ImageViews
from cadr.augment.ctaugment import METHODS, NAMES, RESCALE, Policy, carry_out
from cadr.kernels import augment, nvrtc
from cadr.utils import random_numbers
from tests import emulated
from tests.augment import samples

pytestmark = pytest.mark.skipif(emulated.COMPILER is None, reason="needs g++")
SIZES = [(8, 8), (32, 32), (20, 33), (4, 130), (1, 1)]


THREADS = 96  # three warps, the fewest that the kernels can do with


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    names = ("weak_view", "strong_view", "carry_out")
    return emulated.Emulated(tmp_path_factory.mktemp("kernels"), augment._SOURCES, names, THREADS)


@pytest.fixture
def as_on_a_gpu(played, monkeypatch):
    def run(make):
        with monkeypatch.context() as patch:
            patch.setattr(nvrtc, "kernel", played.kernel)
            patch.setattr(augment, "applies", lambda images: True)
            return make()

    return run


def pictures(size, n=40):
    images = torch.from_numpy(samples.synthetic(*size))
    return images.repeat(-(-n // len(images)), 1, 1, 1)[:n].contiguous()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    "views", [ImageViews(), ImageViews(flip=False, shift=1, operations=3, cutout=0.25), ImageViews(strong="ctaugment")]
)
def test_views(as_on_a_gpu, size, views):
    images, state = pictures(size), views.init()
    key = random_numbers.key(1, torch.tensor(3), 1)
    assert torch.equal(as_on_a_gpu(lambda: views.weak(images, key)), views.weak(images, key))
    strong = as_on_a_gpu(lambda: views.strong_view(images, key, state))
    assert torch.equal(strong, views.strong_view(images, key, state))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rescale"])
def test_each_operation_of_ctaugment(as_on_a_gpu, name):
    images, key = pictures((20, 33)), random_numbers.key(1, torch.tensor(5), 0)
    level = torch.linspace(0, 0.999, len(images), dtype=torch.float64)
    policy = Policy(torch.full((len(images),), NAMES.index(name)), level, torch.zeros_like(level))
    expected = carry_out(images, policy, key)
    assert torch.equal(expected, images) == (name in ("identity", "translate_x", "translate_y"))
    assert torch.equal(as_on_a_gpu(lambda: carry_out(images, policy, key)), expected)


@pytest.mark.parametrize("method", range(len(METHODS)), ids=METHODS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_way_to_rescale(as_on_a_gpu, size, method):
    images, key = pictures(size, 24), random_numbers.key(1, torch.tensor(5), 0)
    level = torch.linspace(0, 0.999, len(images), dtype=torch.float64)
    chosen = torch.full_like(level, (method + 0.5) / len(METHODS))
    policy = Policy(torch.full((len(images),), RESCALE), level, chosen)
    expected = carry_out(images, policy, key)
    assert torch.equal(expected, images) == (size == (1, 1))
    assert torch.equal(as_on_a_gpu(lambda: carry_out(images, policy, key)), expected)


def test_probes(as_on_a_gpu):
    views, images, key = (
        ImageViews(strong="ctaugment"),
        pictures((32, 32), 64),
        random_numbers.key(1, torch.tensor(5), 0),
    )
    (played, policies), (expected, same) = as_on_a_gpu(lambda: views.probe(images, key)), views.probe(images, key)
    assert torch.equal(played, expected)
    for one, other in zip(policies, same, strict=True):
        assert all(map(torch.equal, one, other))
