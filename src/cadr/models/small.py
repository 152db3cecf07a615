"""Nets for small pictures and for tables of features."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from cadr.errors import ConfigError
from cadr.models.layers import SLOPE, batch_norm, channels_last, conv, head
from cadr.utils.limits import check_numbers
from cadr.utils.options import option

# A small net sees hundreds of steps, not hundreds of thousands: statistics that follow within tens of steps.
_SMALL_BN_MOMENTUM = 0.1
_WIDEST = 2**14  # its kernels take a gibibyte and more


@dataclass(frozen=True)
class ConvNet:
    """Three 3×3 convolutions with batch norm, each halving the picture, then a global average."""

    channels: int = option(32, "channels of the first convolution; doubled by each of the other two")

    def __post_init__(self) -> None:
        check_numbers(self, channels=_WIDEST)
        if self.channels < 1:
            raise ConfigError(f"the small convolutional net needs at least 1 channel, not {self.channels}")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        layers: list[nn.Module] = []
        inputs = 3
        for stage in range(3):
            outputs = self.channels << stage
            norm = batch_norm(outputs)
            norm.momentum = _SMALL_BN_MOMENTUM
            layers += [conv(inputs, outputs, 3, 2 if stage else 1), norm, nn.LeakyReLU(SLOPE, inplace=True)]
            inputs = outputs
        return channels_last(nn.Sequential(*layers, _Average(), nn.Flatten(), head(inputs, num_classes)))


class _Average(nn.Module):
    """(n, c, h, w) to (n, 1, 1, c). Its gradient lies channels last, as all before it does; that of AdaptiveAvgPool2d
    does not, and to read both orders at once makes the activation's several times as slow on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).mean((1, 2), keepdim=True)


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with batch norm: for features and embeddings."""

    hidden: tuple[int, ...] = option((128, 128), "widths of the hidden layers")

    def __post_init__(self) -> None:
        check_numbers(self, hidden=_WIDEST)
        if any(width < 1 for width in self.hidden):
            raise ConfigError(f"every hidden layer needs at least 1 unit, not {self.hidden}")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        inputs = math.prod(input_shape)
        layers: list[nn.Module] = [nn.Flatten()]
        for outputs in self.hidden:
            linear = nn.Linear(inputs, outputs)
            nn.init.kaiming_normal_(linear.weight, a=SLOPE)
            nn.init.zeros_(linear.bias)
            layers += [linear, nn.BatchNorm1d(outputs, momentum=_SMALL_BN_MOMENTUM), nn.LeakyReLU(SLOPE)]
            inputs = outputs
        return nn.Sequential(*layers, head(inputs, num_classes))
