"""RandAugment as FixMatch uses it (Sohn et al., 2020, appendix D; Cubuk et al., 2020), and the operations it draws.

Each image draws its operations from fourteen, with replacement; each is applied with probability one half, at one of
nine magnitudes. Enhancement factors run from 0.14 to 0.86: FixMatch only ever weakens colour, contrast, brightness and
sharpness. All ranges are relative to the image's side, so they mean the same at 8×8 as at 96×96.

A batch has one operation per image, each with its own amount. An operation is one of three kinds (a transformation, a
table of grey levels, a filter), so a batch needs at most one gather per kind however many operations are in play. There
are two ways to run it with the same result:

- `dense` computes every kind for every image and selects: fixed shapes, no decision by the host, so that it can be
  compiled and captured in a CUDA graph;
- `grouped` sorts the images by operation first and does no needless work, which suits a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cadr.augment.operations import AFFINE, FILTERS, TABLES, Coefficients, look_up, transform
from cadr.utils import random_numbers

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
OPERATIONS = (*FIXMATCH, "blur", "invert", "smooth")
IDENTITY = OPERATIONS.index("identity")


def apply(images: Tensor, operation: Tensor, amount: Tensor, among: Sequence[str] = OPERATIONS) -> Tensor:
    """uint8 images (n, h, w, 3), each under its operation (int64 index into `OPERATIONS`) with its float64 amount.

    `among` promises which operations occur, which spares the others' cost. What an amount means depends on them:
    degrees for rotate, the coefficient for shear, pixels for translate, bits for posterise, the threshold for solarise,
    Pillow's enhancement factor for brightness, colour, contrast and sharpness, and for the others the blending weight
    between the image (0) and the operation's result (1).
    """
    if images.device.type == "cpu" and not torch.compiler.is_compiling():
        return grouped(images, operation, amount)
    return dense(images, operation, amount, among)


def dense(images: Tensor, operation: Tensor, amount: Tensor, among: Sequence[str] = OPERATIONS) -> Tensor:
    """Every kind for every image, then a selection."""
    _, height, width, _ = images.shape
    chosen = {name: operation == OPERATIONS.index(name) for name in among if name != "identity"}
    result = images
    moved = [name for name in chosen if name in AFFINE]
    if moved:
        coefficients = AFFINE["translate_x"](torch.zeros_like(amount), height, width)
        for name in moved:
            coefficients = _where(chosen[name], AFFINE[name](amount, height, width), coefficients)
        result = transform(images, coefficients)
    mapped = [name for name in chosen if name in TABLES]
    if mapped:
        table = torch.arange(256, device=images.device, dtype=torch.uint8)[None, :, None]
        any_table = torch.zeros_like(operation, dtype=torch.bool)
        for name in mapped:
            table = torch.where(chosen[name][:, None, None], TABLES[name](images, amount), table)
            any_table = any_table | chosen[name]
        table = table.expand(-1, -1, images.shape[3])
        result = torch.where(any_table[:, None, None, None], look_up(images, table), result)
    for name in chosen:
        if name in FILTERS:
            result = torch.where(chosen[name][:, None, None, None], FILTERS[name](images, amount), result)
    return result


def _where(chosen: Tensor, yes: Coefficients, no: Coefficients) -> Coefficients:
    a, b, c, d, e, f = (torch.where(chosen, one, other) for one, other in zip(yes, no, strict=True))
    return a, b, c, d, e, f


def grouped(images: Tensor, operation: Tensor, amount: Tensor) -> Tensor:
    """Sort the images by operation, kinds together, do each operation's in place, and put them back in order."""
    _, height, width, channels = images.shape
    counts = torch.bincount(operation, minlength=len(OPERATIONS)).tolist()
    rows = dict(zip(OPERATIONS, torch.split(operation.argsort(), counts), strict=True))
    names = [name for name in (*AFFINE, *TABLES, *FILTERS, "identity") if len(rows[name])]
    sizes = [len(rows[name]) for name in names]
    order = torch.cat([rows[name] for name in names])
    result = images.index_select(0, order)
    parts = dict(zip(names, torch.split(result, sizes), strict=True))  # these share the memory of `result`
    amounts = dict(zip(names, torch.split(amount.index_select(0, order), sizes), strict=True))
    moved = [name for name in names if name in AFFINE]
    mapped = [name for name in names if name in TABLES]
    first = sum(len(parts[name]) for name in moved)
    second = first + sum(len(parts[name]) for name in mapped)
    if moved:
        each = [AFFINE[name](amounts[name], height, width) for name in moved]
        a, b, c, d, e, f = (torch.cat(values) for values in zip(*each, strict=True))
        result[:first] = transform(result[:first], (a, b, c, d, e, f))
    if mapped:
        tables = [TABLES[name](parts[name], amounts[name]).expand(-1, -1, channels) for name in mapped]
        result[first:second] = look_up(result[first:second], torch.cat(tables))
    for name in names:
        if name in FILTERS:
            parts[name].copy_(FILTERS[name](parts[name], amounts[name]))
    return result.index_select(0, order.argsort())


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
