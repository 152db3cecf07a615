"""3×3 convolutions of stride 1 in our own kernels, with batch norm, activation, residual sum and statistics folded in.

There are two kinds of kernels: on warpgroup multiplications where a shape has been cut for them, else on older ones,
which take images of 32×32 only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet.source import KERNELS, TABLE_ROWS, Source, flags, multiprocessors, sums

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
    source: Source,
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
