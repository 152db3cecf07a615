"""CTAugment (Berthelot et al., 2020): augmentation whose strength follows what the model can still recognise.

Every operation's range is cut into bins and every bin has a rate: how well the (averaged) model recognises labelled
images treated in that bin. Strong views only use bins whose rate is near the best of their operation. The rates are
explicit state: `initial_rates` makes them, `draw_policy` uses them, `probe_policy` and `update_rates` learn them.

The rates are learned from labelled images alone: where labels are missing not at random, mostly from common classes.
As in FixMatch's code, translation is by less than a third of a pixel and so does nothing.

One operation crops to the middle and scales back up, with Pillow's six ways to resample. Pillow resamples rows first,
then columns, each time with weights of 22 bits and a result rounded to a byte. Here the weights are a matrix per image
and axis, and float64 products keep every sum exact. The result equals Pillow's. Only the nearest neighbour can differ,
where these tensors are on a GPU and a position falls exactly between two pixels: Pillow adds up its positions one by
one, a GPU adds them in another order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cadr.augment.operations import cutout, draw_centres
from cadr.augment.randaugment import IDENTITY, OPERATIONS, apply
from cadr.kernels import augment
from cadr.utils import random_numbers

METHODS = ("lanczos", "bicubic", "bilinear", "box", "hamming", "nearest")
_BITS = 22
# Pillow writes these two as C floats.
_HAMMING = (float(np.float32(0.54)), float(np.float32(0.46)))


def _sinc(x: Tensor) -> Tensor:
    x = x * math.pi
    return torch.where(x == 0, 1.0, torch.sin(x) / torch.where(x == 0, 1.0, x))


def _kernel(distance: Tensor, method: Tensor) -> Tensor:
    """The resampling filter's value at a signed distance in source pixels; nearest is not a filter and gives 0."""
    x = distance.abs()
    zero = torch.zeros_like(x)
    lanczos = torch.where((distance >= -3) & (distance < 3), _sinc(distance) * _sinc(distance / 3), zero)
    near, far = (1.5 * x - 2.5) * x * x + 1, (((x - 5) * x + 8) * x - 4) * -0.5
    bicubic = torch.where(x < 1, near, torch.where(x < 2, far, zero))
    bilinear = (1 - x).clamp(min=0)
    box = ((distance > -0.5) & (distance <= 0.5)).to(x.dtype)
    hamming = torch.where(x < 1, _sinc(x) * (_HAMMING[0] + _HAMMING[1] * torch.cos(x * math.pi)), zero)
    weight = zero
    for index, value in enumerate((lanczos, bicubic, bilinear, box, hamming)):
        weight = torch.where(method == index, value, weight)
    return weight


def _weights(start: Tensor, stop: Tensor, method: Tensor, side: int) -> Tensor:
    """Integer weights, as float64 (n, side out, side in), that stretch [start, stop) over the whole side."""
    begin, end, how = start[:, None, None], stop[:, None, None], method[:, None, None]
    source = torch.arange(side, device=start.device)
    inside = (source >= begin) & (source < end)
    scale = (end - begin).to(torch.float64) / torch.full((), side, dtype=torch.float64, device=start.device)
    target = torch.arange(side, device=start.device, dtype=torch.float64)[:, None]
    position = (source - begin).to(torch.float64)
    smooth = _kernel(position - (target + 0.5) * scale + 0.5, how) * inside
    smooth = smooth / smooth.sum(-1, keepdim=True).clamp(min=1e-30)
    smooth = torch.trunc(smooth * 2.0**_BITS + torch.where(smooth < 0, -0.5, 0.5))
    steps = torch.where(target == 0, scale * 0.5, scale).cumsum(1)
    nearest = (position == torch.floor(steps)) & inside
    return torch.where(how == METHODS.index("nearest"), nearest * 2.0**_BITS, smooth)


def _rounded(total: Tensor) -> Tensor:
    return torch.floor((total + 2.0 ** (_BITS - 1)) * 2.0**-_BITS).clamp(0, 255)


def rescale(images: Tensor, share: Tensor, method: Tensor) -> Tensor:
    """Cut `share` of the side (float64 (n,), below one half) off every edge of uint8 (n, h, w, c), then scale back up.

    `method` is an int64 index into `METHODS` for each image.
    """
    n, height, width, channels = images.shape
    left, right = torch.round(share * width).to(torch.int64), torch.round(width * (1 - share)).to(torch.int64)
    top, bottom = torch.round(share * height).to(torch.int64), torch.round(height * (1 - share)).to(torch.int64)
    pixels = images.to(torch.float64)
    across = _weights(left, right, method, width)
    pixels = _rounded(across[:, None] @ pixels)  # (n, 1, w, w) @ (n, h, w, c)
    down = _weights(top, bottom, method, height)
    pixels = _rounded(down @ pixels.reshape(n, height, width * channels))
    return pixels.reshape(images.shape).to(torch.uint8)


NAMES = (*OPERATIONS, "cutout", "rescale")
CUTOUT, RESCALE = NAMES.index("cutout"), NAMES.index("rescale")
BINS = 17
DECAY = 0.99  # of the rates, at every probe
THRESHOLD = 0.80  # a bin is used if its rate is at least this share of its operation's best
_METHOD_ROW = len(NAMES)  # the rates of the resampling methods stand below those of the operations


class Policy(NamedTuple):
    """One operation for each of n images."""

    operation: Tensor  # int64 (n,), index into `NAMES`
    level: Tensor  # float64 (n,) in [0, 1)
    method: Tensor  # float64 (n,) in [0, 1): the resampling method, for rescale alone


def initial_rates(device: torch.device | str = "cpu") -> Tensor:
    """All ones: everything is allowed at first. float32 (operations + 1, bins)."""
    return torch.ones(len(NAMES) + 1, BINS, device=device)


def _bins(row: Tensor) -> Tensor:
    """How many bins a row of the rates has."""
    few = torch.where(row == NAMES.index("posterise"), 8, BINS)
    return torch.where(row == _METHOD_ROW, len(METHODS), few)


def _draw_level(rates: Tensor, row: Tensor, where: Tensor, within: Tensor) -> Tensor:
    """A level from a bin drawn in proportion to the rates near the best of its row; `where`, `within` are uniform."""
    bins = _bins(row)
    exists = torch.arange(BINS, device=row.device) < bins[:, None]
    weight = (rates[row] + (1 - DECAY)) * exists
    weight = weight / weight.amax(1, keepdim=True)
    weight = weight * (weight >= THRESHOLD)
    cumulative = weight.cumsum(1)
    chosen = (cumulative <= where[:, None] * cumulative[:, -1:]).sum(1)
    return (torch.minimum(chosen, bins - 1) + within.to(torch.float64)) / bins.to(torch.float64)


def draw_policy(rates: Tensor, key: Tensor, n: int) -> Policy:
    """What a strong view does: an operation at random, a level where the model still follows."""
    choice, where, within, where_method, within_method = random_numbers.uniform(key, 5, n)
    operation = (choice * len(NAMES)).to(torch.int64)
    method_row = torch.full_like(operation, _METHOD_ROW)
    return Policy(
        operation,
        _draw_level(rates, operation, where, within),
        _draw_level(rates, method_row, where_method, within_method),
    )


def probe_policy(key: Tensor, n: int) -> Policy:
    """What a probe does: any operation at any level."""
    choice, level, method = random_numbers.uniform(key, 3, n)
    return Policy((choice * len(NAMES)).to(torch.int64), level.to(torch.float64), method.to(torch.float64))


def _amount(operation: Tensor, level: Tensor) -> Tensor:
    """What a level means to an operation; where nothing else is said it is a blending weight."""
    slope = (2 * level - 1) * 0.3
    enhance = 0.1 + 1.9 * level
    meaning = {
        "brightness": enhance,
        "colour": enhance,
        "contrast": enhance,
        "sharpness": enhance,
        "posterise": 1 + torch.trunc(level * 7.999),
        "rotate": torch.round((2 * level - 1) * 45),
        "shear_x": slope,
        "shear_y": slope,
        "solarise": torch.trunc(level * 255.999),
        "translate_x": slope,
        "translate_y": slope,
    }
    amount = level
    for name, value in meaning.items():
        amount = torch.where(operation == OPERATIONS.index(name), value, amount)
    return amount


def carry_out(images: Tensor, policy: Policy, key: Tensor) -> Tensor:
    """Each uint8 image (n, h, w, 3) under its policy; the key decides where cutout cuts."""
    if augment.applies(images):
        return augment.carry_out(images, *policy, key)
    n, height, width, _ = images.shape
    known = torch.where(policy.operation < len(OPERATIONS), policy.operation, IDENTITY)
    result = _rescaled(images, apply(images, known, _amount(known, policy.level)), policy)
    half = (1 + torch.trunc(policy.level * (min(height, width) * 0.499))).to(torch.int64) // 2
    size = torch.where(policy.operation == CUTOUT, 2 * half, 0)
    return cutout(result, *draw_centres(key, n, height, width), size)


def _rescaled(images: Tensor, others: Tensor, policy: Policy) -> Tensor:
    """`others`, but rescaled images where the policy says so."""
    chosen = policy.operation == RESCALE
    share, method = policy.level * 0.25, torch.trunc(policy.method * 5.99).to(torch.int64)
    if images.device.type == "cpu" and not torch.compiler.is_compiling():
        rows = chosen.nonzero().flatten()
        return others.index_copy(0, rows, rescale(images[rows], share[rows], method[rows])) if len(rows) else others
    return torch.where(chosen[:, None, None, None], rescale(images, share, method), others)


def update_rates(rates: Tensor, policies: list[Policy], proximity: Tensor) -> Tensor:
    """Move the rates of the bins that were probed towards how well the images were recognised (float (n,)).

    Equal to going through the images one by one, rate ← 0.99 rate + 0.01 proximity for each of its bins,
    where a later image weighs more than an earlier one in the same bin.
    """
    rows, levels = [], []
    for policy in policies:
        rows += [policy.operation, torch.full_like(policy.operation, _METHOD_ROW)]
        levels += [policy.level, policy.method]
    row, level = torch.stack(rows, 1), torch.stack(levels, 1)  # (n, 2 · policies), image by image in order
    rescaled = torch.stack([policy.operation == RESCALE for policy in policies], 1).repeat_interleave(2, dim=1)
    counts = ((row < _METHOD_ROW) & (row != NAMES.index("identity"))) | ((row == _METHOD_ROW) & rescaled)
    bins = _bins(row)
    which = (row * BINS + torch.trunc(level * bins * 0.999).to(torch.int64)).reshape(-1)
    hit = (which[:, None] == torch.arange(rates.numel(), device=rates.device)) & counts.reshape(-1, 1)
    hits = hit.to(torch.float64)
    later = hits.flip(0).cumsum(0).flip(0) - hits  # how many hits on the same bin come after this one
    each = proximity.to(torch.float64)[:, None].expand(row.shape).reshape(-1, 1)
    gained = (hits * DECAY**later * each).sum(0) * (1 - DECAY)
    kept = rates.reshape(-1).to(torch.float64) * DECAY ** hits.sum(0)
    return (kept + gained).to(rates.dtype).reshape(rates.shape)
