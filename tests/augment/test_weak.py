"""The weak view and cutout against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.augment.operations import GREY, cutout, draw_centres, draw_moves, move
from cadr.utils import random_numbers
from tests.augment import samples


def key(step: int = 0, stream: int = 0) -> torch.Tensor:
    return random_numbers.key(7, torch.tensor(step), stream)


@pytest.mark.parametrize(
    ("size", "shift"), [((8, 8), 1), ((32, 32), 4), ((20, 33), 6), ((3, 5), 4), ((1, 1), 3)], ids=str
)
def test_shift_is_a_crop_of_the_reflect_padded_image(size, shift):
    images = samples.synthetic(*size)
    moves = draw_moves(key(), len(images), *size, flip=True, shift=shift)
    got = move(torch.from_numpy(images), moves).numpy()
    for image, result, down, right, mirrored in zip(images, got, *(part.tolist() for part in moves), strict=True):
        y, x = min(shift, size[0] - 1), min(shift, size[1] - 1)
        padded = np.pad(image, ((y, y), (x, x), (0, 0)), mode="reflect")
        expected = padded[y + down : y + down + size[0], x + right : x + right + size[1]]
        np.testing.assert_array_equal(result, expected[:, ::-1] if mirrored else expected)


def test_shifts_and_flips_are_uniform():
    n = 90_000
    moves = draw_moves(key(), n, 32, 32, flip=True, shift=4)
    cells = torch.bincount((moves.down + 4) * 9 + moves.right + 4, minlength=81).double()
    assert len(cells) == 81  # none beyond 4 pixels
    assert ((cells - n / 81) ** 2 / (n / 81)).sum() < 140  # chi-square with 80 degrees of freedom: p about 4e-5
    assert abs(moves.mirrored.double().mean() - 0.5) < 0.01
    assert not draw_moves(key(), 100, 32, 32, flip=False, shift=4).mirrored.any()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 16])
def test_cutout_paints_one_grey_square(size):
    images = samples.synthetic(20, 33)
    row, column = draw_centres(key(), len(images), 20, 33)
    got = cutout(torch.from_numpy(images), row, column, size).numpy()
    for image, result, y, x in zip(images, got, row.tolist(), column.tolist(), strict=True):
        expected = image.copy()
        top, left = y - size // 2, x - size // 2
        expected[max(top, 0) : max(top + size, 0), max(left, 0) : max(left + size, 0)] = GREY
        np.testing.assert_array_equal(result, expected)


def test_cutout_centres_cover_the_image():
    row, column = draw_centres(key(), 20_000, 5, 8)
    cells = torch.bincount(row * 8 + column, minlength=40).double()
    assert len(cells) == 40
    assert ((cells - 500) ** 2 / 500).sum() < 85  # 39 degrees of freedom: p about 3e-5
