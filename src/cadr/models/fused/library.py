"""The library's convolutions, on NHWC tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def nchw(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 3, 1, 2)


def nhwc(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 2, 3, 1)


def convolve(x: Tensor, layer: nn.Conv2d, weight: Tensor) -> Tensor:
    return nhwc(torch.nn.functional.conv2d(nchw(x), weight, stride=layer.stride, padding=layer.padding))


def _back(dy: Tensor, x: Tensor, layer: nn.Conv2d, weight: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
    gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        nchw(dy), nchw(x), weight, None, layer.stride, layer.padding, [1, 1], False, [0, 0], 1, wanted
    )
    return gradients


def input_gradient(dy: Tensor, x: Tensor, layer: nn.Conv2d, weight: Tensor) -> Tensor:
    return nhwc(_back(dy, x, layer, weight, [True, False, False])[0])


def weight_gradient(dy: Tensor, x: Tensor, layer: nn.Conv2d, weight: Tensor) -> Tensor:
    return _back(dy, x, layer, weight, [False, True, False])[1]
