"""RandAugment as FixMatch uses it (Sohn et al., 2020, appendix D; Cubuk et al., 2020).

Each image draws its operations from fourteen, with replacement; each is applied with probability one half, at one of
nine magnitudes. Enhancement factors run from 0.14 to 0.86: FixMatch only ever weakens colour, contrast, brightness and
sharpness. All ranges are relative to the image's side, so they mean the same at 8×8 as at 96×96.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.augment.operations import FIXMATCH, IDENTITY, OPERATIONS, apply
from cadr.utils import random_numbers

MAGNITUDES = 9


def amounts(operation: Tensor, magnitude: Tensor, negative: Tensor, height: int, width: int) -> Tensor:
    """What magnitude 1 … 9 (of 10) means to each operation, float64; `negative` turns the transformations round.

    The order of the float64 operations is the one that Pillow-based code uses, so that truncation agrees.
    """
    level = magnitude.to(torch.float64)
    sign = torch.where(negative, -1.0, 1.0).to(torch.float64)
    slope = sign * (level * 0.3 / 10)
    meaning = {
        "autocontrast": torch.ones_like(level),
        "equalise": torch.ones_like(level),
        "posterise": 4.0 + (4 * magnitude) // 10,
        "rotate": sign * ((30 * magnitude) // 10),
        "shear_x": slope,
        "shear_y": slope,
        "solarise": 256.0 - (256 * magnitude) // 10,
        "translate_x": torch.trunc(slope * width),
        "translate_y": torch.trunc(slope * height),
    }
    amount = level * 0.9 / 10 + 0.05
    for name, value in meaning.items():
        amount = torch.where(operation == OPERATIONS.index(name), value, amount)
    return amount


def draw_operations(key: Tensor, n: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """One turn's operation (int64 index into `OPERATIONS`) and amount (float64) for each of n images."""
    choice, level, side, chance = random_numbers.uniform(key, 4, n)
    operation = torch.where(chance < 0.5, (choice * len(FIXMATCH)).to(torch.int64), IDENTITY)
    magnitude = 1 + (level * MAGNITUDES).to(torch.int64)
    return operation, amounts(operation, magnitude, side < 0.5, height, width)


def randaugment(images: Tensor, key: Tensor, operations: int = 2) -> Tensor:
    """`operations` random operations on each uint8 image (n, h, w, 3)."""
    n, height, width, _ = images.shape
    for by_turn in random_numbers.split(key, operations):
        operation, amount = draw_operations(by_turn, n, height, width)
        images = apply(images, operation, amount, FIXMATCH)
    return images
