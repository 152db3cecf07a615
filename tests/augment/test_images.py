"""The whole views: shapes, reproducibility, what the strong view contains, errors, and that they can be compiled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from cadr.augment import ImageViews
from cadr.augment.operations import cutout, draw_centres
from cadr.augment.randaugment import FIXMATCH, IDENTITY, OPERATIONS, draw_operations
from cadr.errors import ConfigError
from cadr.models import normalised
from cadr.utils import random_numbers
from tests.augment import pillow, samples


def key(step: int = 0) -> torch.Tensor:
    return random_numbers.key(1, torch.tensor(step), 0)


@pytest.mark.parametrize("strong", ["randaugment", "ctaugment"])
@pytest.mark.parametrize("size", [(8, 8), (32, 32), (20, 33), (1, 1)], ids=str)
def test_views_keep_shape_and_type_and_depend_on_the_key_alone(strong, size):
    views = ImageViews(strong=strong)
    images = torch.from_numpy(samples.synthetic(*size))
    before = images.clone()
    state = views.init()
    for make in (views.weak, lambda images, key: views.strong_view(images, key, state)):
        first, again, other = make(images, key(0)), make(images, key(0)), make(images, key(1))
        assert first.shape == images.shape
        assert first.dtype == torch.uint8
        assert torch.equal(first, again)
        assert size == (1, 1) or not torch.equal(first, other)
    assert torch.equal(images, before)


def test_strong_view_is_a_weak_view_then_operations_then_cutout():
    images = samples.synthetic(32, 32)
    views = ImageViews()
    n = len(images)
    by_weak, by_turns, by_centres = random_numbers.split(key(), 3)
    expected = views.weak(torch.from_numpy(images), by_weak).numpy().copy()
    for turn in range(2):
        operation, amount = draw_operations(random_numbers.split(by_turns, 2)[turn], n, 32, 32)
        for i in range(n):
            expected[i] = pillow.apply(OPERATIONS[int(operation[i])], expected[i][None], float(amount[i]))[0]
    row, column = draw_centres(by_centres, n, 32, 32)
    hidden = cutout(torch.from_numpy(expected), row, column, 16)
    assert torch.equal(views.strong_view(torch.from_numpy(images), key(), {}), hidden)


def test_randaugment_draws_each_operation_equally_often_and_applies_half():
    n = 140_000
    operation, amount = draw_operations(key(), n, 32, 32)
    share = torch.bincount(operation, minlength=len(OPERATIONS)).double() / n
    for index, name in enumerate(OPERATIONS):
        expected = 0.0 if name not in FIXMATCH else 1 / 28 + (0.5 if index == IDENTITY else 0.0)
        assert abs(share[index].item() - expected) < 0.005, name
    degrees = amount[operation == OPERATIONS.index("rotate")]
    assert sorted(degrees.unique().tolist()) == [x for x in range(-27, 28, 3) if x != 0]


def test_operations_and_cutout_can_be_turned_off():
    images = torch.from_numpy(samples.synthetic(32, 32))
    views = ImageViews(flip=False, shift=0, operations=0, cutout=0.0)
    assert torch.equal(views.weak(images, key()), images)
    assert torch.equal(views.strong_view(images, key(), {}), images)


@pytest.mark.parametrize("size", [(16, 64), (64, 16)], ids=str)
def test_shift_and_cutout_follow_the_shorter_side(size):
    images = torch.from_numpy(samples.synthetic(*size))
    assert torch.equal(ImageViews().weak(images, key()), ImageViews(shift=2).weak(images, key()))
    views = ImageViews(flip=False, shift=0, operations=0)
    hidden = (views.strong_view(torch.zeros(200, *size, 3, dtype=torch.uint8), key(), {}) != 0).any(3)
    assert hidden.any(2).sum(1).max() == hidden.any(1).sum(1).max() == 8


def test_a_probe_is_a_weak_view_under_operations_of_its_own_at_every_turn():
    views, images = ImageViews(strong="ctaugment"), torch.from_numpy(samples.synthetic(8, 8))
    images = images.repeat(-(-5000 // len(images)), 1, 1, 1)
    probes, (first, second) = views.probe(images, key())
    assert (first.operation != second.operation).double().mean() > 0.9
    untouched = (first.operation == IDENTITY) & (second.operation == IDENTITY)
    moved = (probes != images).flatten(1).any(1)[untouched]
    assert moved.double().mean() > 0.5  # of nine shifts and two sides one leaves an image as it is


@pytest.mark.parametrize("strong", ["randaugment", "ctaugment"])
def test_strong_view_is_one_graph_with_the_same_result(strong):
    """Compiled code takes the way without decisions by the host, which a GPU takes too."""
    views = ImageViews(strong=strong)
    images, state = torch.from_numpy(samples.synthetic(16, 16)), views.init()

    def make(images: torch.Tensor, step: torch.Tensor, state: dict[str, torch.Tensor]) -> torch.Tensor:
        return views.strong_view(images, random_numbers.key(1, step, 0), state)

    compiled = torch.compile(make, fullgraph=True, backend="eager")
    for step in (torch.tensor(4), torch.tensor(5)):
        assert torch.equal(compiled(images, step, state), make(images, step, state))


def test_ctaugment_learns_what_the_model_recognises():
    views = ImageViews(strong="ctaugment")
    assert views.learns
    assert not ImageViews().learns
    assert ImageViews().init() == {}
    images = torch.from_numpy(samples.synthetic(16, 16))
    labels = torch.arange(len(images)) % 3
    state = views.init()
    probes, policies = views.probe(images, key())
    assert probes.shape == images.shape
    sure = torch.nn.functional.one_hot(labels, 3).float()
    assert torch.equal(views.update(state, policies, sure, labels)["rates"], state["rates"])  # all ones stay ones
    wrong = views.update(state, policies, sure.roll(1, dims=1), labels)["rates"]
    assert 0.95 < wrong.min() < 1
    assert set(views.update(state, policies, sure, labels)) == set(state)


@pytest.mark.parametrize(
    "wrong", [{"strong": "autoaugment"}, {"shift": -1}, {"operations": -1}, {"cutout": 1.5}, {"cutout": -0.1}]
)
def test_impossible_settings_are_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ImageViews(**wrong)


def test_pixels_are_scaled_to_one_and_keeps_the_memory_order():
    images = torch.from_numpy(samples.synthetic(8, 8))
    x = normalised(images, dtype=torch.float32)
    assert x.shape == (len(images), 3, 8, 8)
    assert x.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(x.numpy(), samples.synthetic(8, 8).transpose(0, 3, 1, 2) / 127.5 - 1, atol=1e-6)
    assert normalised(images, dtype=torch.bfloat16).dtype == torch.bfloat16


def test_every_field_has_a_help_text():
    assert all(field.metadata["help"] for field in dataclasses.fields(ImageViews))
