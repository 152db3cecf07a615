"""Rotation, shear and translation as Pillow does them: nearest neighbour, 16.16 fixed point, black outside.

A transformation is six integers per image: output pixel (x, y) shows input pixel
((a x + b y + c) >> 16, (d x + e y + f) >> 16). The integers are rounded as Pillow rounds them, so the results are
identical, not merely close.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

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
