"""Our CUDA kernels as functions of tensors: compiled for the card on first use, launched on the current stream.

Tensors are NHWC bf16. A `table` holds one batch norm's coefficients, fp32 (7, C); the kernels' sources say which.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from cadr import nvrtc

_SOURCES = tuple(
    Path(__file__).parent / "kernels" / name for name in ("common.cuh", "conv.cu", "weight_gradient.cu", "norm.cu")
)
_ROWS = 7
Read = Literal["PLAIN", "ACTIVATED", "GRADIENT", "IMAGE"]


def _kernel(expression: str, shared: int) -> Any:
    return nvrtc.kernel(_SOURCES, expression, shared)


@cache
def multiprocessors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@cache
def _sums(device: torch.device) -> tuple[Tensor, Tensor]:
    """Totals (2, channels) and a counter, which every kernel finds and leaves at zero."""
    return torch.zeros(2048, dtype=torch.float64, device=device), torch.zeros(1, dtype=torch.int32, device=device)


@dataclass(frozen=True)
class Source:
    """A tensor and how it is read: plain, through batch norm and activation, or as batch norm's gradient.

    What a convolution has rebuilt on the way in it keeps: `rebuilt` gives that, to be read plainly from then on.
    """

    how: Read
    tensor: Tensor
    table: Tensor | None = None
    before: Tensor | None = None  # z, where `tensor` is the gradient behind z's activation

    @cached_property
    def rebuilt(self) -> Tensor:
        return self.tensor if self.how in ("PLAIN", "IMAGE") else torch.empty_like(self.tensor)

    def arguments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Tensor, z, table; what is not used is any valid pointer."""
        return (
            self.tensor,
            self.tensor if self.before is None else self.before,
            self.tensor if self.table is None else self.table,
        )


# How a convolution of 32×32 images is cut (as the kernels' sources say): rows a tile, groups of 256 threads a block.
_SIDE, _TILE, _GROUPS, _THREADS = 32, 16, 2, 256


def _flag(value: bool) -> str:
    return "true" if value else "false"


def conv(
    source: Source,
    weights: Tensor,  # (9, outputs, inputs) bf16
    norm: nn.BatchNorm2d,  # forward: of what comes out; backward: the one whose activation went in
    *,
    residual: Tensor | None = None,
    z: Tensor | None = None,
    table: Tensor | None = None,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Forward (no `z`): output, its table. Backward: g behind the activation of `z`, with `table` completed.

    The last part of the result is the gradient of the norm's weight and bias (backward only).
    """
    _, outputs, inputs = weights.shape
    backward = z is not None
    device, images = weights.device, source.tensor.shape[0]
    output = torch.empty(images, _SIDE, _SIDE, outputs, dtype=torch.bfloat16, device=device)
    if table is None:
        table = torch.empty(_ROWS, outputs, device=device)
    gradients = (
        (torch.empty(outputs, device=device), torch.empty(outputs, device=device)) if backward else (table, table)
    )
    pitch = inputs * 2 + 16
    shared = 9 * outputs * pitch + _GROUPS * (_TILE + 2) * (_SIDE + 2) * pitch + 3 * outputs * 4
    name = f"conv<{inputs},{outputs},{_SIDE},{_TILE},{source.how},{_flag(backward)},{_flag(residual is not None)}>"
    tensor, before, in_table = source.arguments()
    _kernel(name, shared)(
        grid=(multiprocessors(device), 1, 1),
        block=(_THREADS * _GROUPS, 1, 1),
        shared_mem=shared,
        args=[
            tensor,
            before,
            in_table,
            weights,
            tensor if residual is None else residual,
            tensor if z is None else z,
            output,
            source.rebuilt,
            *_sums(device),
            table,
            norm.weight,
            norm.bias,
            norm.running_mean,
            norm.running_var,
            *gradients,
            images,
            norm.eps,
            norm.momentum,
        ],
    )
    return output, table, gradients


def weight_gradient(h: Tensor, dz: Tensor, *, image: bool = False) -> Tensor:
    """(outputs, 3, 3, inputs) fp32; an image's three channels count as 16 inputs."""
    inputs, outputs = 16 if image else h.shape[-1], dz.shape[-1]
    device, images = dz.device, dz.shape[0]
    blocks = multiprocessors(device)
    partial = torch.empty(blocks, outputs * 9 * inputs, device=device)
    buffer = (_TILE + 2) * (_SIDE + 2) * (inputs * 2 + 16) + _TILE * _SIDE * (outputs * 2 + 16)
    shared = 2 * buffer
    name = f"weight_gradient<{inputs},{outputs},{_SIDE},{_TILE},{'IMAGE' if image else 'PLAIN'}>"
    _kernel(name, shared)(grid=(blocks, 1, 1), block=(384, 1, 1), shared_mem=shared, args=[h, dz, partial, images])
    out = torch.empty(outputs, 3, 3, inputs, device=device)
    _kernel("sum_partials", 0)(
        grid=(-(-out.numel() // 32), 1, 1), block=(32, 8, 1), args=[partial, out, blocks, out.numel()]
    )
    return out


def _elementwise(name: str, tensor: Tensor, blocks_each: int, arguments: list[Any]) -> None:
    blocks = multiprocessors(tensor.device) * blocks_each
    _kernel(name, 0)(grid=(blocks, 1, 1), block=(512, 1, 1), args=arguments)


def _pixels(tensor: Tensor) -> int:
    return tensor.numel() // tensor.shape[-1]


def statistics(tensor: Tensor, norm: nn.BatchNorm2d, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The tensor (plus a residual) and its batch norm's table."""
    channels, device = tensor.shape[-1], tensor.device
    output = tensor if residual is None else torch.empty_like(tensor)
    table = torch.empty(_ROWS, channels, device=device)
    _elementwise(
        f"statistics<{channels},{_flag(residual is not None)}>",
        tensor,
        2,
        [
            *(tensor, tensor if residual is None else residual, output, *_sums(device), table),
            *(norm.weight, norm.bias, norm.running_mean, norm.running_var, _pixels(tensor), norm.eps, norm.momentum),
        ],
    )
    return output, table


def activate(z: Tensor, table: Tensor) -> Tensor:
    """leaky(a·z + b)."""
    h = torch.empty_like(z)
    _elementwise(f"activate<{z.shape[-1]}>", z, 4, [z, table, h, _pixels(z)])
    return h


def gradient_sums(dh: Tensor, z: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Completes the table for the way back; the gradients of the norm's weight and bias."""
    channels, device = z.shape[-1], z.device
    gradients = torch.empty(channels, device=device), torch.empty(channels, device=device)
    _elementwise(f"gradient_sums<{channels}>", z, 2, [dh, z, *_sums(device), table, *gradients, _pixels(z)])
    return gradients


def input_gradient(g: Tensor, z: Tensor, table: Tensor, *, masked: bool, residual: Tensor | None = None) -> Tensor:
    """dz (plus a residual) from g, or from dh where `masked`."""
    dz = torch.empty_like(z)
    _elementwise(
        f"input_gradient<{z.shape[-1]},{_flag(masked)},{_flag(residual is not None)}>",
        z,
        4,
        [g, z, g if residual is None else residual, table, dz, _pixels(z)],
    )
    return dz
