"""The weak view (flip and reflect-padded shift) and cutout: where pixels come from, never what they become."""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.data import draw

GREY = 127


def _reflect(position: Tensor, size: int) -> Tensor:
    """Mirror positions outside 0 … size − 1 at the edge pixels, without repeating them."""
    if size == 1:
        return torch.zeros_like(position)
    position = position.abs()
    return torch.where(position >= size, 2 * (size - 1) - position, position)


def flip_and_shift(images: Tensor, key: Tensor, *, flip: bool, shift: int) -> Tensor:
    """Each image mirrored with probability one half and moved by up to `shift` pixels either way and either axis."""
    n, height, width, channels = images.shape
    reach_y, reach_x = min(shift, height - 1), min(shift, width - 1)
    down = draw.integers(draw.split(key, 0), 2 * reach_y + 1, n) - reach_y
    right = draw.integers(draw.split(key, 1), 2 * reach_x + 1, n) - reach_x
    row = torch.arange(height, device=images.device) + down[:, None]
    column = torch.arange(width, device=images.device) + right[:, None]
    row, column = _reflect(row, height), _reflect(column, width)
    if flip:
        mirrored = draw.uniform(draw.split(key, 2), n) < 0.5
        column = torch.where(mirrored[:, None], width - 1 - column, column)
    first = torch.arange(0, n * height, height, device=images.device)[:, None]
    position = ((first + row) * width)[:, :, None] + column[:, None, :]
    return images.reshape(-1, channels).index_select(0, position.reshape(-1)).reshape(images.shape)


def cutout(images: Tensor, size: Tensor, centre_y: Tensor, centre_x: Tensor) -> Tensor:
    """Grey squares of `size` pixels (int64 (n,)) about the given pixels, cut off at the image's edge."""
    _, height, width, channels = images.shape
    half = (size // 2)[:, None]
    y = torch.arange(height, device=images.device)
    x = torch.arange(width * channels, device=images.device) // channels
    in_rows = (y >= centre_y[:, None] - half) & (y < centre_y[:, None] - half + size[:, None])
    in_columns = (x >= centre_x[:, None] - half) & (x < centre_x[:, None] - half + size[:, None])
    hidden = (in_rows[:, :, None] & in_columns[:, None, :]).view(images.shape).to(torch.uint8)
    return images * (1 - hidden) + GREY * hidden  # not torch.where, which is many times slower on a CPU


def random_cutout(images: Tensor, key: Tensor, size: int) -> Tensor:
    """One grey square of `size` pixels per image, its centre uniform over the pixels."""
    n, height, width, _ = images.shape
    centre_y = draw.integers(draw.split(key, 0), height, n)
    centre_x = draw.integers(draw.split(key, 1), width, n)
    return cutout(images, torch.full_like(centre_y, size), centre_y, centre_x)
