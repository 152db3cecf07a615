"""Gradients of the weights of 3×3, stride-1 convolutions in our own kernels.

As for the convolutions there are two kinds of kernels. Every block leaves a partial sum, added in a fixed order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet.convolutions import plane_bytes
from cadr.kernels.wide_resnet.source import KERNELS, Source, multiprocessors

# Rows a tile, by side and channels (as many in as out).
_WARPGROUP_ROWS = {(32, 32): 16, (16, 64): 8}
_SIDE, _TILE, _TOGETHER = 32, 8, 2  # of the older kernels; how many blocks a multiprocessor holds
_THREADS = 384
_SOURCES = (KERNELS / "common.cuh", KERNELS / "weight_gradient.cu")
_WARPGROUP_SOURCES = tuple(KERNELS / name for name in ("common.cuh", "warpgroup.cuh", "weight_gradient_warpgroup.cu"))


def rebuilds(side: int, inputs: int, outputs: int) -> bool:
    """Whether h may come as z, to be activated here again: then the way ahead need not keep it."""
    return inputs == outputs and (side, inputs) in _WARPGROUP_ROWS


def _warpgroup(h: Source, dz: Tensor, partial: Tensor) -> None:
    images, side, _, channels = dz.shape
    rows = _WARPGROUP_ROWS[side, channels]
    of_h, of_dz = plane_bytes(side // 8 * 160, channels), plane_bytes(side * 16, channels)
    buffer = channels // 8 * (rows * of_h + (rows + 2) * of_dz)
    shared = max(2 * buffer, 36 * channels * channels)
    name = f"weight_gradient_warpgroup<{channels},{side},{rows},{h.how}>"
    tensor, _, _, table = h.arguments()
    nvrtc.kernel(_WARPGROUP_SOURCES, name, shared, capability="90a")(
        grid=(partial.shape[0], 1, 1),
        block=(_THREADS, 1, 1),
        shared_mem=shared,
        args=[tensor, table, dz, partial, images],
    )


def _older(h: Source, dz: Tensor, partial: Tensor, inputs: int) -> None:
    assert h.how in ("PLAIN", "IMAGE")
    assert dz.shape[1] == _SIDE
    images, outputs = dz.shape[0], dz.shape[-1]
    shared = 2 * ((_TILE + 2) * (_SIDE + 2) * (inputs * 2 + 16) + _TILE * _SIDE * (outputs * 2 + 16))
    nvrtc.kernel(_SOURCES, f"weight_gradient<{inputs},{outputs},{_SIDE},{_TILE},{h.how}>", shared)(
        grid=(partial.shape[0], 1, 1),
        block=(_THREADS, 1, 1),
        shared_mem=shared,
        args=[h.tensor, dz, partial, images],
    )


def weight_gradient(h: Source, dz: Tensor) -> Tensor:
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
