"""Every operation equals Pillow on every pixel, in both ways of running it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.augment.randaugment import FIXMATCH, MAGNITUDES, OPERATIONS, amounts, apply, dense, grouped
from tests.augment import pillow, samples

SIGNED = {"rotate", "shear_x", "shear_y", "translate_x", "translate_y"}
CONTINUOUS = [0.0, 0.003, 0.1, 0.31, 0.5, 0.77, 0.999, 1.0, 1.3, 1.9, 2.0]
AMOUNTS: dict[str, list[float]] = {
    "rotate": [*range(-45, 46, 3), -30, 30, -44, 44],
    "shear_x": [-0.3, -0.2999, -0.17, 0.0, 0.01, 0.29],
    "shear_y": [-0.3, -0.2999, -0.17, 0.0, 0.01, 0.29],
    "translate_x": [-9, -1, 0, 1, 7, -0.3, 0.29],
    "translate_y": [-9, -1, 0, 1, 7, -0.3, 0.29],
    "posterise": [1, 2, 3, 4, 5, 6, 7, 8],
    "solarise": [0, 1, 26, 127, 128, 255, 256],
}
BLENDED = ("autocontrast", "equalise", "invert", "smooth", "blur")


def both_ways(name, images, amount):
    batch = torch.from_numpy(images)
    operation = torch.full((len(batch),), OPERATIONS.index(name))
    amounts_ = torch.full((len(batch),), amount, dtype=torch.float64)
    return [way(batch, operation, amounts_).numpy() for way in (dense, grouped)]


@pytest.mark.parametrize("name", FIXMATCH)
@pytest.mark.parametrize("size", samples.SIZES, ids=str)
def test_fixmatch_operation_equals_pillow_at_every_magnitude(name, size):
    images = samples.synthetic(*size)[:: 4 if size[0] > 40 else 1]
    for magnitude in range(1, MAGNITUDES + 1):
        for sign in (1, -1) if name in SIGNED else (1,):
            expected_amount = pillow.fixmatch_amount(name, magnitude, sign, *size)
            ours = amounts(
                torch.tensor([OPERATIONS.index(name)]), torch.tensor([magnitude]), torch.tensor([sign < 0]), *size
            )
            if name != "identity":
                assert ours.item() == expected_amount
            expected = pillow.apply(name, images, expected_amount)
            for got in both_ways(name, images, expected_amount):
                np.testing.assert_array_equal(got, expected, err_msg=f"{name} at magnitude {sign * magnitude}")


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "identity"])
@pytest.mark.parametrize("size", [(8, 8), (32, 32), (20, 33), (3, 5)], ids=str)
def test_operation_equals_pillow_over_the_whole_range(name, size):
    images = samples.synthetic(*size)
    for amount in AMOUNTS.get(name, [x for x in CONTINUOUS if x <= 1 or name not in BLENDED]):
        expected = pillow.apply(name, images, amount)
        for got in both_ways(name, images, amount):
            np.testing.assert_array_equal(got, expected, err_msg=f"{name} by {amount}")


@pytest.mark.parametrize("kind", ["digits", "cifar"])
@pytest.mark.parametrize("name", FIXMATCH)
def test_fixmatch_operation_equals_pillow_on_real_images(name, kind):
    images = samples.digits() if kind == "digits" else samples.cifar()
    if images is None:
        pytest.skip("data/cifar10.npz is not there")
    for magnitude in (1, 4, 9):
        amount = pillow.fixmatch_amount(name, magnitude, -1, *images.shape[1:3])
        expected = pillow.apply(name, images, amount)
        for got in both_ways(name, images, amount):
            np.testing.assert_array_equal(got, expected)


def test_each_image_of_a_batch_gets_its_own_operation_and_amount():
    random = np.random.Generator(np.random.PCG64(5))
    images = random.integers(0, 256, (120, 16, 20, 3)).astype(np.uint8)
    names = [OPERATIONS[i] for i in random.integers(0, len(OPERATIONS), len(images))]
    chosen = [AMOUNTS.get(name, [0.3, 0.6])[i % 2] for i, name in enumerate(names)]
    operation = torch.tensor([OPERATIONS.index(name) for name in names])
    amount = torch.tensor(chosen, dtype=torch.float64)
    expected = np.concatenate(
        [pillow.apply(name, images[i : i + 1], x) for i, (name, x) in enumerate(zip(names, chosen, strict=True))]
    )
    before = images.copy()
    for way in (apply, dense, grouped):
        np.testing.assert_array_equal(way(torch.from_numpy(images), operation, amount).numpy(), expected)
    np.testing.assert_array_equal(images, before)
