"""The weak view, a flip and a reflect-padded shift: pixels move, none changes."""

from __future__ import annotations

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
