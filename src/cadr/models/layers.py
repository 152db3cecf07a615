"""What the convolutional networks share: the authors' initialisation, batch norm and activation."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SLOPE = 0.1  # of the leaky ReLU
BN_MOMENTUM = 0.001  # TensorFlow's 0.999
BN_EPS = 0.001


def activate(x: Tensor) -> Tensor:
    return F.leaky_relu(x, SLOPE)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=BN_EPS, momentum=BN_MOMENTUM)


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution with weights from N(0, 2 / (k²·outputs)), as the authors draw them.

    It has no bias: every output passes through batch norm (directly, or after sums and 1×1 convolutions that carry a
    constant to a constant), which subtracts the bias again, so the authors' biases never leave their initial zero.
    """
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.normal_(layer.weight, std=math.sqrt(2.0 / (kernel * kernel * outputs)))
    return layer


def head(features: int, num_classes: int) -> nn.Linear:
    layer = nn.Linear(features, num_classes)
    nn.init.xavier_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Unit(nn.Module):
    """A pre-activation residual unit; with `activated_skip` (the first unit of the net) the skip is activated too."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, activated_skip: bool = False) -> None:
        super().__init__()
        self.activated_skip = activated_skip
        self.norm1 = batch_norm(inputs)
        self.conv1 = conv(inputs, outputs, 3, stride)
        self.norm2 = batch_norm(outputs)
        self.conv2 = conv(outputs, outputs, 3)
        self.shortcut = conv(inputs, outputs, 1, stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        h = activate(self.norm1(x))
        skip = h if self.activated_skip else x
        if self.shortcut is not None:
            skip = self.shortcut(skip)
        out: Tensor = skip + self.conv2(activate(self.norm2(self.conv1(h))))
        return out


class Residual(nn.Module):
    """Stem, units, batch norm, global average, linear head."""

    def __init__(self, stem: nn.Module, units: list[Unit], features: int, num_classes: int) -> None:
        super().__init__()
        self.stem = stem
        self.units = nn.ModuleList(units)
        self.norm = batch_norm(features)
        self.head = head(features, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for unit in self.units:
            x = unit(x)
        pooled = activate(self.norm(x)).mean(dim=(2, 3))
        logits: Tensor = self.head(pooled)
        return logits


def channels_last(module: nn.Module) -> nn.Module:
    """Kernels laid out for NHWC, which is how views are laid out."""
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
