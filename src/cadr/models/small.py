"""Nets for small pictures and for tables of features."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import nn

from cadr.data.option import option
from cadr.errors import ConfigError
from cadr.models.parts import SLOPE, batch_norm, channels_last, conv, head

# A small net sees hundreds of steps, not hundreds of thousands: statistics that follow within tens of steps.
_SMALL_BN_MOMENTUM = 0.1


@dataclass(frozen=True)
class ConvNet:
    """Three 3×3 convolutions with batch norm, each halving the picture, then a global average."""

    channels: int = option(32, "channels of the first convolution; doubled by each of the other two")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        if self.channels < 1:
            raise ConfigError(f"the small convolutional net needs at least 1 channel, not {self.channels}")
        layers: list[nn.Module] = []
        inputs = 3
        for stage in range(3):
            outputs = self.channels << stage
            norm = batch_norm(outputs)
            norm.momentum = _SMALL_BN_MOMENTUM
            layers += [conv(inputs, outputs, 3, 2 if stage else 1), norm, nn.LeakyReLU(SLOPE)]
            inputs = outputs
        return channels_last(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(inputs, num_classes)))


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with batch norm: for features and embeddings."""

    hidden: tuple[int, ...] = option((128, 128), "widths of the hidden layers")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        if any(width < 1 for width in self.hidden):
            raise ConfigError(f"every hidden layer needs at least 1 unit, not {self.hidden}")
        inputs = math.prod(input_shape)
        layers: list[nn.Module] = [nn.Flatten()]
        for outputs in self.hidden:
            linear = nn.Linear(inputs, outputs)
            nn.init.kaiming_normal_(linear.weight, a=SLOPE)
            nn.init.zeros_(linear.bias)
            layers += [linear, nn.BatchNorm1d(outputs, momentum=_SMALL_BN_MOMENTUM), nn.LeakyReLU(SLOPE)]
            inputs = outputs
        return nn.Sequential(*layers, head(inputs, num_classes))
