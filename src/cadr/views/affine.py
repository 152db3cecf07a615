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


def _coefficients(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor) -> Coefficients:
    """Fixed point, with the half pixel that moves pixel corners to pixel centres folded into the offsets."""
    return (
        _fixed(a),
        _fixed(b),
        _fixed(c + a * 0.5 + b * 0.5),
        _fixed(d),
        _fixed(e),
        _fixed(f + d * 0.5 + e * 0.5),
    )


def rotate(degrees: Tensor, height: int, width: int) -> Coefficients:
    """Counter-clockwise about the centre, as `Image.rotate`."""
    angle = degrees * (math.pi / 180)
    cos, sin = torch.cos(angle), torch.sin(angle)
    x, y = width / 2, height / 2
    return _coefficients(cos, -sin, x - (cos * x - sin * y), sin, cos, y - (sin * x + cos * y))


def shear_x(shear: Tensor, height: int, width: int) -> Coefficients:
    one, zero = torch.ones_like(shear), torch.zeros_like(shear)
    return _coefficients(one, shear, zero, zero, one, zero)


def shear_y(shear: Tensor, height: int, width: int) -> Coefficients:
    one, zero = torch.ones_like(shear), torch.zeros_like(shear)
    return _coefficients(one, zero, zero, shear, one, zero)


def translate_x(pixels: Tensor, height: int, width: int) -> Coefficients:
    one, zero = torch.ones_like(pixels), torch.zeros_like(pixels)
    return _coefficients(one, zero, pixels, zero, one, zero)


def translate_y(pixels: Tensor, height: int, width: int) -> Coefficients:
    one, zero = torch.ones_like(pixels), torch.zeros_like(pixels)
    return _coefficients(one, zero, zero, zero, one, pixels)


AFFINE: dict[str, Callable[[Tensor, int, int], Coefficients]] = {
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
}


def gather_pixels(images: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """images[n, row, column] for row and column (n, h, w), which must lie inside."""
    n, height, width, channels = images.shape
    position = (row * width + column).to(torch.int64).reshape(n, height * width, 1).expand(-1, -1, channels)
    return images.reshape(n, height * width, channels).gather(1, position).reshape(images.shape)


def transform(images: Tensor, coefficients: Coefficients) -> Tensor:
    """Each uint8 image (n, h, w, c) under its own transformation."""
    _, height, width, _ = images.shape
    a, b, c, d, e, f = (value[:, None, None] for value in coefficients)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)[:, None]
    column, row = (a * x + b * y + c) >> 16, (d * x + e * y + f) >> 16
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    seen = gather_pixels(images, row.clamp(0, height - 1), column.clamp(0, width - 1))
    return seen * inside[..., None]
