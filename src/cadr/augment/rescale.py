"""Crop to the middle and scale back up, with Pillow's six ways to resample.

Pillow resamples rows first, then columns, each time with weights of 22 bits and a result rounded to a byte. Here the
weights are a matrix per image and axis, and float64 products keep every sum exact.

The result equals Pillow's. Only the nearest neighbour can differ, where these tensors are on a GPU and a position falls
exactly between two pixels: Pillow adds up its positions one by one, a GPU adds them in another order.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

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
