"""The library's convolutions, on NHWC tensors; those of 1×1 are its matrix products."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cadr.kernels.wide_resnet.weights import PreparedWeights


def nchw(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 3, 1, 2)


def nhwc(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 2, 3, 1)


def convolve(x: Tensor, layer: nn.Conv2d, weight: Tensor) -> Tensor:
    return nhwc(F.conv2d(nchw(x), weight, stride=layer.stride, padding=layer.padding))


def _back(dy: Tensor, x: Tensor, layer: nn.Conv2d, weight: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
    gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        nchw(dy), nchw(x), weight, None, layer.stride, layer.padding, [1, 1], False, [0, 0], 1, wanted
    )
    return gradients


def input_gradient(dy: Tensor, x: Tensor, layer: nn.Conv2d, weights: PreparedWeights) -> Tensor:
    """Without a stride as the convolution that it is: the library's own way back clears memory before each."""
    if layer.stride == (1, 1):
        return convolve(dy, layer, weights.back)
    return nhwc(_back(dy, x, layer, weights.ahead, [True, False, False])[0])


def weight_gradient(dy: Tensor, x: Tensor, layer: nn.Conv2d, weights: PreparedWeights) -> Tensor:
    return _back(dy, x, layer, weights.ahead, [False, True, False])[1]


def pointwise(x: Tensor, weights: PreparedWeights) -> Tensor:
    """A 1×1 convolution of the pixels that are there: with a stride, x is what remains of the image."""
    return F.linear(x, weights.ahead.flatten(1))


def pointwise_input_gradient(dy: Tensor, weights: PreparedWeights) -> Tensor:
    return dy @ weights.ahead.flatten(1)


def pointwise_weight_gradient(dy: Tensor, x: Tensor) -> Tensor:
    return nchw((dy.flatten(0, 2).T @ x.flatten(0, 2))[:, None, None])
