"""Where pixels go: flips and shifts of the weak view, affine transformations, and the square that cutout hides.

Rotation, shear and translation are as Pillow does them: nearest neighbour, 16.16 fixed point, black outside. A
transformation is six integers per image: output pixel (x, y) shows input pixel ((a x + b y + c) >> 16,
(d x + e y + f) >> 16). The integers are rounded as Pillow rounds them, so the results are identical, not close.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from cadr.utils import random_numbers


class Moves(NamedTuple):
    """What happens to each image of a batch, all (n,)."""

    down: Tensor  # int64: output row y shows input row y + down, mirrored at the edges
    right: Tensor  # int64, likewise
    mirrored: Tensor  # bool: left and right exchanged, after the shift


def draw_moves(key: Tensor, n: int, height: int, width: int, *, flip: bool, shift: int) -> Moves:
    """Uniform shifts of up to `shift` pixels either way, and a flip with probability one half."""
    vertical, horizontal, side = random_numbers.uniform(key, 3, n)
    reach_y, reach_x = min(shift, height - 1), min(shift, width - 1)
    down = (vertical * (2 * reach_y + 1)).to(torch.int64) - reach_y
    right = (horizontal * (2 * reach_x + 1)).to(torch.int64) - reach_x
    return Moves(down, right, (side < 0.5) if flip else torch.zeros_like(side, dtype=torch.bool))


def _reflect(position: Tensor, size: int) -> Tensor:
    """Mirror positions outside 0 … size − 1 at the edge pixels, without repeating them."""
    return (size - 1) - ((size - 1) - position.abs()).abs()


def move(images: Tensor, moves: Moves) -> Tensor:
    """Each image (n, h, w, c) under its own move."""
    n, height, width, channels = images.shape
    row = _reflect(torch.arange(height, device=images.device) + moves.down[:, None], height)
    column = _reflect(torch.arange(width, device=images.device) + moves.right[:, None], width)
    column = torch.where(moves.mirrored[:, None], column.flip(1), column)
    first = torch.arange(0, n * height, height, device=images.device)[:, None]
    position = ((first + row) * width)[:, :, None] + column[:, None, :]
    return images.reshape(-1, channels).index_select(0, position.reshape(-1)).reshape(images.shape)


GREY = 127


def draw_centres(key: Tensor, n: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The row and column of each square's centre, uniform over the pixels: int64 (n,) each."""
    vertical, horizontal = random_numbers.uniform(key, 2, n)
    return (vertical * height).to(torch.int64), (horizontal * width).to(torch.int64)


def _covered(length: int, centre: Tensor, size: Tensor | int, each: int, device: torch.device) -> Tensor:
    """255 where a position lies in the square and 0 elsewhere, `each` entries a position: uint8 (n, length · each)."""
    position = torch.arange(length * each, device=device) // each
    start = centre - size // 2
    inside = (position >= start[:, None]) & (position < (start + size)[:, None])
    return inside.to(torch.uint8) * 255


def cutout(images: Tensor, row: Tensor, column: Tensor, size: Tensor | int) -> Tensor:
    """Hide a square of `size` pixels about (row, column) in each uint8 image (n, h, w, c), as far as it is inside.

    Of a square of even size the centre is the pixel right of and below its middle.
    """
    n, height, width, channels = images.shape
    rows = _covered(height, row, size, 1, images.device)
    columns = _covered(width, column, size, channels, images.device)
    hidden = rows[:, :, None] & columns[:, None, :]
    flat = images.reshape(n, height, width * channels)
    return (flat ^ ((flat ^ GREY) & hidden)).reshape(images.shape)  # `where` on bytes is many times slower on a CPU


_ONE = 1 << 16

Coefficients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _fixed(value: Tensor) -> Tensor:
    return torch.floor(value * _ONE + 0.5).to(torch.int32)


# Half a pixel is part of every offset: it moves from pixel corners, where Pillow's matrices count, to pixel centres.


def rotate(degrees: Tensor, height: int, width: int) -> Coefficients:
    """Counter-clockwise about the centre, as `Image.rotate`."""
    angle = degrees * (math.pi / 180)
    cos, sin = torch.cos(angle), torch.sin(angle)
    x, y = width / 2, height / 2
    right = x - (cos * x - sin * y) + cos * 0.5 - sin * 0.5
    down = y - (sin * x + cos * y) + sin * 0.5 + cos * 0.5
    fixed_cos, fixed_sin = _fixed(cos), _fixed(sin)
    return fixed_cos, _fixed(-sin), _fixed(right), fixed_sin, fixed_cos, _fixed(down)


def shear_x(shear: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(shear)
    return one, _fixed(shear), _fixed(0.5 + shear * 0.5), zero, one, half


def shear_y(shear: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(shear)
    return one, zero, half, _fixed(shear), one, _fixed(shear * 0.5 + 0.5)


def translate_x(pixels: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(pixels)
    return one, zero, _fixed(pixels + 0.5), zero, one, half


def translate_y(pixels: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(pixels)
    return one, zero, half, zero, one, _fixed(pixels + 0.5)


def _constants(like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    one = torch.full_like(like, _ONE, dtype=torch.int32)
    return one, torch.zeros_like(one), one >> 1


AFFINE: dict[str, Callable[[Tensor, int, int], Coefficients]] = {
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
}


def transform(images: Tensor, coefficients: Coefficients) -> Tensor:
    """Each uint8 image (n, h, w, c) under its own transformation."""
    n, height, width, channels = images.shape
    a, b, c, d, e, f = (value[:, None, None] for value in coefficients)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)[:, None]
    column, row = (a * x + (b * y + c)) >> 16, (d * x + (e * y + f)) >> 16
    near_row, near_column = row.clamp(0, height - 1), column.clamp(0, width - 1)
    inside = ((near_row ^ row) | (near_column ^ column)) == 0
    # Position 0 is a black pixel put before all others: what lies outside needs no second pass over the result.
    pixels = torch.cat([images.new_zeros(1, channels), images.reshape(-1, channels)])
    first = torch.arange(1, n * height * width + 1, height * width, device=images.device, dtype=torch.int32)
    position = (first[:, None, None] + (near_row * width + near_column)) * inside
    return pixels.index_select(0, position.reshape(-1)).reshape(images.shape)
