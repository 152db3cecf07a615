"""Batch norm and its activation between the library's convolutions, one pass over memory each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet.convolutions import KERNELS, TABLE_ROWS, flags, multiprocessors, sums

_SOURCES = (KERNELS / "common.cuh", KERNELS / "norm.cu")


def _elementwise(name: str, tensor: Tensor, blocks_each: int, arguments: list[Any]) -> None:
    blocks = multiprocessors(tensor.device) * blocks_each
    nvrtc.kernel(_SOURCES, name)(grid=(blocks, 1, 1), block=(512, 1, 1), args=arguments)


def _pixels(tensor: Tensor) -> int:
    return tensor.numel() // tensor.shape[-1]


def _sharing(dh: Tensor, z: Tensor) -> int:
    """How many pixels after one another have one and the same dh: all of an image where it is (n, C)."""
    return _pixels(z) // _pixels(dh)


def statistics(tensor: Tensor, norm: nn.BatchNorm2d, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The tensor (plus a residual) and its batch norm's table."""
    channels, device = tensor.shape[-1], tensor.device
    output = tensor if residual is None else torch.empty_like(tensor)
    table = torch.empty(TABLE_ROWS, channels, device=device)
    _elementwise(
        f"statistics<{channels},{flags(residual is not None)}>",
        tensor,
        2,
        [
            *(tensor, tensor if residual is None else residual, output, *sums(device), table),
            *(norm.weight, norm.bias, norm.running_mean, norm.running_var, _pixels(tensor), norm.eps, norm.momentum),
        ],
    )
    return output, table


def activate(z: Tensor, table: Tensor) -> Tensor:
    """leaky(a·z + b)."""
    h = torch.empty_like(z)
    _elementwise(f"activate<{z.shape[-1]},0,0>", z, 4, [z, table, h, h, _pixels(z)])
    return h


def activate_and_halve(z: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The same, and every second pixel of every second row of z: what a 1×1 convolution with stride 2 reads."""
    images, height, width, channels = z.shape
    h = torch.empty_like(z)
    halved = torch.empty(images, -(-height // 2), -(-width // 2), channels, dtype=z.dtype, device=z.device)
    _elementwise(f"activate<{channels},{height},{width}>", z, 4, [z, table, h, halved, _pixels(z)])
    return h, halved


def gradient_sums(dh: Tensor, z: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Completes the table for the way back; the gradients of the norm's weight and bias. dh may be (n, C)."""
    channels, device = z.shape[-1], z.device
    gradients = torch.empty(channels, device=device), torch.empty(channels, device=device)
    name = f"gradient_sums<{channels},{_sharing(dh, z)}>"
    _elementwise(name, z, 2, [dh, z, *sums(device), table, *gradients, _pixels(z)])
    return gradients


def input_gradient(g: Tensor, z: Tensor, table: Tensor, *, masked: bool, residual: Tensor | None = None) -> Tensor:
    """dz (plus a residual) from g, or from dh where `masked`. A residual of half the sides is for every second pixel of
    every second row."""
    _, height, width, channels = z.shape
    dz = torch.empty_like(z)
    halved = residual is not None and residual.shape != z.shape
    sides = f"{height},{width}" if halved else "0,0"
    _elementwise(
        f"input_gradient<{channels},{flags(masked)},{_sharing(g, z)},{flags(residual is not None)},{sides}>",
        z,
        4,
        [g, z, g if residual is None else residual, table, dz, _pixels(z)],
    )
    return dz
