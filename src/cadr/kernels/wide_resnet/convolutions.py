"""3×3 convolutions of stride 1 in our own kernels, with batch norm, activation, residual sum and statistics folded in.

Ahead, back, and the gradients of their weights. There are two kinds of kernels: on warpgroup multiplications where a
shape has been cut for them, else on older ones, which take images of 32×32 only. Tensors are NHWC bf16. A `table` holds
one batch norm's coefficients, fp32 (7, C); the kernels' sources say which.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from cadr.kernels import nvrtc

KERNELS = Path(__file__).parent / "cuda"
TABLE_ROWS = 7
Read = Literal["PLAIN", "ACTIVATED", "GRADIENT", "JOINED", "IMAGE"]


@cache
def multiprocessors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@cache
def sums(device: torch.device) -> tuple[Tensor, Tensor]:
    """Totals (2, channels) and a counter, which every kernel finds and leaves at zero."""
    return torch.zeros(2048, dtype=torch.float64, device=device), torch.zeros(1, dtype=torch.int32, device=device)


def flags(*values: bool) -> str:
    """As arguments of a template."""
    return ",".join("true" if value else "false" for value in values)


@dataclass(frozen=True)
class ConvInput:
    """A tensor and how it is read: plain, through batch norm and activation, or as batch norm's gradient (joined: with
    the gradient that came round by the skip).

    A convolution can keep what it has rebuilt on the way in: `rebuilt` gives that, to be read plainly from then on.
    """

    how: Read
    tensor: Tensor
    table: Tensor | None = None
    before: Tensor | None = None  # z, where `tensor` is the gradient behind z's activation
    skip: Tensor | None = None  # where joined

    @cached_property
    def rebuilt(self) -> Tensor:
        return self.tensor if self.how in ("PLAIN", "IMAGE") else torch.empty_like(self.tensor)

    @property
    def kept(self) -> ConvInput:
        """What a convolution has kept of this, as it is read from then on."""
        return ConvInput("PLAIN", self.rebuilt)

    def arguments(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tensor, z, skip, table; what is not used is any valid pointer."""
        before, skip, table = (self.tensor if each is None else each for each in (self.before, self.skip, self.table))
        return self.tensor, before, skip, table


# Rows a tile and teams a block, by side, inputs and outputs.
_WARPGROUP_CUTS = {(32, 16, 32): (8, 3), (32, 32, 32): (8, 3), (16, 64, 64): (8, 3)}
# The older kernels: rows a tile, groups of 256 threads a block.
_SIDE, _TILE, _GROUPS, _THREADS = 32, 16, 2, 256


def plane_bytes(size: int, channels: int) -> int:
    """Of a plane in shared memory, as in warpgroup.cuh."""
    return -(-size // 128) * 128 + 1024 // channels


@dataclass(frozen=True)
class _Cut:
    """Which kernel runs a convolution, and how it is launched."""

    sources: tuple[Path, ...]
    name: str
    shape: tuple[int, ...]  # the template's arguments that say how it is cut
    shared: int
    threads: int
    capability: str | None = None


def _cut(side: int, inputs: int, outputs: int) -> _Cut:
    if (side, inputs, outputs) in _WARPGROUP_CUTS:
        rows, teams = _WARPGROUP_CUTS[side, inputs, outputs]
        tile = inputs // 8 * plane_bytes((rows + 2) * (side + 2) * 16, inputs)
        return _Cut(
            tuple(KERNELS / name for name in ("common.cuh", "warpgroup.cuh", "conv_warpgroup.cu")),
            "conv_warpgroup",
            (inputs, outputs, side, rows, teams),
            18 * inputs * outputs + teams * tile + 3 * (inputs + outputs) * 4,
            128 * teams,
            "90a",
        )
    assert side == _SIDE
    pitch = inputs * 2 + 16
    return _Cut(
        (KERNELS / "common.cuh", KERNELS / "conv.cu"),
        "conv",
        (inputs, outputs, side, _TILE),
        9 * outputs * pitch + _GROUPS * (_TILE + 2) * (_SIDE + 2) * pitch + 3 * outputs * 4,
        _THREADS * _GROUPS,
    )


def on_warpgroups(side: int, inputs: int, outputs: int) -> bool:
    """Whether this shape has been cut for warpgroup multiplications."""
    return (side, inputs, outputs) in _WARPGROUP_CUTS


def conv(
    source: ConvInput,
    weights: Tensor,  # (9, outputs, inputs) bf16
    norm: nn.BatchNorm2d,  # forward: of what comes out; backward: the one whose activation went in
    *,
    residual: Tensor | None = None,
    z: Tensor | None = None,
    table: Tensor | None = None,
    keep: bool = True,  # what is rebuilt on the way in; the older kernels always do
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Forward (no `z`): output, its table. Backward: g behind the activation of `z`, with `table` completed.

    The last part of the result is the gradient of the norm's weight and bias (backward only).
    """
    _, outputs, inputs = weights.shape
    device, backward = weights.device, z is not None
    images, side = source.tensor.shape[:2]
    output = torch.empty(images, side, side, outputs, dtype=torch.bfloat16, device=device)
    if table is None:
        table = torch.empty(TABLE_ROWS, outputs, device=device)
    gradients = (
        (torch.empty(outputs, device=device), torch.empty(outputs, device=device)) if backward else (table, table)
    )
    cut = _cut(side, inputs, outputs)
    warpgroup = cut.capability is not None
    keep = (keep or not warpgroup) and source.how not in ("PLAIN", "IMAGE")
    chosen = flags(backward, residual is not None, *([keep] if warpgroup else []))
    expression = f"{cut.name}<{','.join(map(str, cut.shape))},{source.how},{chosen}>"
    tensor, before, skip, in_table = source.arguments()
    nvrtc.kernel(cut.sources, expression, cut.shared, capability=cut.capability)(
        grid=(multiprocessors(device), 1, 1),
        block=(cut.threads, 1, 1),
        shared_mem=cut.shared,
        args=[
            tensor,
            before,
            *([skip] if warpgroup else []),
            in_table,
            weights,
            tensor if residual is None else residual,
            tensor if z is None else z,
            output,
            source.rebuilt if keep else tensor,
            *sums(device),
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


# Rows a tile, by side and channels (as many in as out).
_WARPGROUP_ROWS = {(32, 32): 16, (16, 64): 8}
_GRADIENT_SIDE, _GRADIENT_TILE, _TOGETHER = 32, 8, 2  # of the older kernels; how many blocks a multiprocessor holds
_GRADIENT_THREADS = 384
_SOURCES = (KERNELS / "common.cuh", KERNELS / "weight_gradient.cu")
_WARPGROUP_SOURCES = tuple(KERNELS / name for name in ("common.cuh", "warpgroup.cuh", "weight_gradient_warpgroup.cu"))


def rebuilds(side: int, inputs: int, outputs: int) -> bool:
    """Whether h may come as z, to be activated here again: then the way ahead need not keep it."""
    return inputs == outputs and (side, inputs) in _WARPGROUP_ROWS


def _warpgroup(h: ConvInput, dz: Tensor, partial: Tensor) -> None:
    images, side, _, channels = dz.shape
    rows = _WARPGROUP_ROWS[side, channels]
    of_h, of_dz = plane_bytes(side // 8 * 160, channels), plane_bytes(side * 16, channels)
    buffer = channels // 8 * (rows * of_h + (rows + 2) * of_dz)
    shared = max(2 * buffer, 36 * channels * channels)
    name = f"weight_gradient_warpgroup<{channels},{side},{rows},{h.how}>"
    tensor, _, _, table = h.arguments()
    nvrtc.kernel(_WARPGROUP_SOURCES, name, shared, capability="90a")(
        grid=(partial.shape[0], 1, 1),
        block=(_GRADIENT_THREADS, 1, 1),
        shared_mem=shared,
        args=[tensor, table, dz, partial, images],
    )


def _older(h: ConvInput, dz: Tensor, partial: Tensor, inputs: int) -> None:
    assert h.how in ("PLAIN", "IMAGE")
    assert dz.shape[1] == _GRADIENT_SIDE
    images, outputs = dz.shape[0], dz.shape[-1]
    shared = 2 * (
        (_GRADIENT_TILE + 2) * (_GRADIENT_SIDE + 2) * (inputs * 2 + 16)
        + _GRADIENT_TILE * _GRADIENT_SIDE * (outputs * 2 + 16)
    )
    nvrtc.kernel(_SOURCES, f"weight_gradient<{inputs},{outputs},{_GRADIENT_SIDE},{_GRADIENT_TILE},{h.how}>", shared)(
        grid=(partial.shape[0], 1, 1),
        block=(_GRADIENT_THREADS, 1, 1),
        shared_mem=shared,
        args=[h.tensor, dz, partial, images],
    )


def weight_gradient(h: ConvInput, dz: Tensor) -> Tensor:
    """(outputs, 3, 3, inputs) fp32; an image's three channels count as 16 inputs."""
    inputs, outputs = 16 if h.how == "IMAGE" else h.tensor.shape[-1], dz.shape[-1]
    warpgroup = h.how != "IMAGE" and rebuilds(dz.shape[1], inputs, outputs)
    blocks = multiprocessors(dz.device) * (1 if warpgroup else _TOGETHER)
    partial = torch.empty(blocks, outputs * 9 * inputs, device=dz.device)
    if warpgroup:
        _warpgroup(h, dz, partial)
    else:
        _older(h, dz, partial, inputs)
    out = torch.empty(outputs, 3, 3, inputs, device=dz.device)
    vectors = out.numel() // 4
    nvrtc.kernel(_SOURCES, "sum_partials")(
        grid=(-(-vectors // 32), 1, 1),
        block=(32, 16, 1),
        args=[partial, out, blocks, vectors],
    )
    return out
