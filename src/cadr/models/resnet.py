"""ResNet-18 for 84×84 images, as CADR's authors ran it on mini-ImageNet."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from cadr.errors import ConfigError
from cadr.models.layers import Residual, Unit, activate, batch_norm, channels_last, conv

_SMALLEST = 3  # pixels: less does not survive the stem


class _Stem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = conv(3, 64, 7, 2)
        self.norm = batch_norm(64)

    def forward(self, images: Tensor) -> Tensor:
        return F.max_pool2d(activate(self.norm(self.conv(images))), 2)


@dataclass(frozen=True)
class ResNet18:
    """ResNet-18 with pre-activation units: 7×7 stem with stride 2, 2×2 max-pool, 64 to 512 channels."""

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        if min(input_shape[1:]) < _SMALLEST:
            size = "×".join(map(str, input_shape[1:]))
            raise ConfigError(f"resnet-18 takes images of {_SMALLEST}×{_SMALLEST} pixels and more, not {size}")
        units: list[Unit] = []
        inputs = 64
        for stage in range(4):
            outputs = 64 << stage
            units += [Unit(inputs, outputs, 2 if stage else 1), Unit(outputs, outputs)]
            inputs = outputs
        return channels_last(Residual(_Stem(), units, inputs, num_classes))
