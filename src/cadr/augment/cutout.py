"""Cutout (DeVries and Taylor, 2017): a grey square hides part of each image."""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.utils import random_numbers

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
