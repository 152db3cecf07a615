"""RandAugment as FixMatch uses it (Sohn et al., 2020, appendix D; Cubuk et al., 2020).

Each image draws its operations from fourteen, with replacement; each is applied with probability one half, at one of
nine magnitudes. Enhancement factors run from 0.14 to 0.86: FixMatch only ever weakens colour, contrast, brightness and
sharpness. All ranges are relative to the image's side, so they mean the same at 8×8 as at 96×96.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.data import draw
from cadr.views.operations import IDENTITY, OPERATIONS, apply

FIXMATCH: tuple[str, ...] = (
    "autocontrast",
    "brightness",
    "colour",
    "contrast",
    "equalise",
    "identity",
    "posterise",
    "rotate",
    "sharpness",
    "shear_x",
    "shear_y",
    "solarise",
    "translate_x",
    "translate_y",
)
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


def _operation(choice: Tensor) -> Tensor:
    """From a position in `FIXMATCH` to one in `OPERATIONS`, by comparison: a table would have to live on the device."""
    operation = torch.full_like(choice, IDENTITY)
    for position, name in enumerate(FIXMATCH):
        operation = torch.where(choice == position, OPERATIONS.index(name), operation)
    return operation


def randaugment(images: Tensor, key: Tensor, operations: int = 2) -> Tensor:
    """`operations` random operations on each uint8 image (n, h, w, 3)."""
    n, height, width, _ = images.shape
    for turn in range(operations):
        turn_key = draw.split(key, turn)
        choice = _operation(draw.integers(draw.split(turn_key, 0), len(FIXMATCH), n))
        applied = draw.uniform(draw.split(turn_key, 1), n) < 0.5
        magnitude = 1 + draw.integers(draw.split(turn_key, 2), MAGNITUDES, n)
        negative = draw.uniform(draw.split(turn_key, 3), n) < 0.5
        operation = torch.where(applied, choice, IDENTITY)
        images = apply(images, operation, amounts(operation, magnitude, negative, height, width), FIXMATCH)
    return images
