"""Weak and strong views of images, and each turn of CTAugment, in one launch on CUDA devices.

Equal to the tensor code, which defines them.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from cadr.kernels import nvrtc

_SOURCES = (Path(__file__).parent / "augment.cu",)
_OPTIONS = ("--fmad=false",)  # products and sums are rounded separately, as Pillow and the tensor code round them
_THREADS = 256
_MOST_SHARED = 160 * 1024
_TAPS = 8  # integers that say where a rescaled pixel gets its value from


def _shared_bytes(images: Tensor) -> int:
    height, width = images.shape[1:3]
    scratch = max(768 + 8, _TAPS * max(height, width))  # of a histogram, or of the weights that rescale a side
    return 2 * (-(-height * width * 3 // 16) * 16) + scratch * 4


def applies(images: Tensor) -> bool:
    return (
        images.is_cuda
        and torch.version.hip is None
        and images.shape[-1] == 3
        and _shared_bytes(images) <= _MOST_SHARED
        and not torch.compiler.is_compiling()
    )


def weak_view(images: Tensor, key: Tensor, *, flip: bool, shift: int) -> Tensor:
    return _launched("weak_view", 0, images, [key], shift, int(flip))


def strong_view(images: Tensor, key: Tensor, *, flip: bool, shift: int, operations: int, cutout: int) -> Tensor:
    return _launched("strong_view", _shared_bytes(images), images, [key], shift, int(flip), operations, cutout)


def carry_out(images: Tensor, operation: Tensor, level: Tensor, method: Tensor, key: Tensor) -> Tensor:
    policy = [part.contiguous() for part in (operation, level, method)]
    return _launched("carry_out", _shared_bytes(images), images, [*policy, key])


def _launched(kernel: str, shared: int, images: Tensor, drawn: list[Tensor], *numbers: int) -> Tensor:
    """The views that a kernel makes, a block an image."""
    n, height, width, _ = images.shape
    images, views = images.contiguous(), torch.empty_like(images, memory_format=torch.contiguous_format)
    nvrtc.kernel(_SOURCES, kernel, shared, _OPTIONS)(
        grid=(n, 1, 1),
        block=(_THREADS, 1, 1),
        shared_mem=shared,
        args=[images, *drawn, views, n, height, width, *numbers],
    )
    return views
