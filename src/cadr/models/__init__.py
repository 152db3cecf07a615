"""The networks, by name. Each name is a dataclass of settings whose `build` gives a plain `nn.Module`.

Modules take float images (n, 3, h, w) in channels-last memory, or features (n, d), and return logits (n, classes).
"""

from __future__ import annotations

from typing import Protocol

from torch import nn

from cadr.models.networks import MLP, ConvNet, ResNet18, WideResNet28, WideResNet28x8, WideResNet37

__all__ = [
    "MLP",
    "MODELS",
    "ConvNet",
    "ModelSpec",
    "ResNet18",
    "WideResNet28",
    "WideResNet28x8",
    "WideResNet37",
    "choose",
]


class ModelSpec(Protocol):
    """Settings that can build a network."""

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        """A fresh network; `input_shape` is one example's: (3, h, w) or (d,)."""
        ...


MODELS: dict[str, type[ModelSpec]] = {
    "wrn-28-2": WideResNet28,
    "wrn-28-8": WideResNet28x8,
    "wrn-37-2": WideResNet37,
    "resnet-18": ResNet18,
    "convnet": ConvNet,
    "mlp": MLP,
}


def choose(input_shape: tuple[int, ...]) -> str:
    """The network that suits the data when nobody names one."""
    if len(input_shape) == 1:
        return "mlp"
    side = min(input_shape[1:])
    if side < 8:
        return "mlp"
    if side < 24:
        return "convnet"
    if side <= 48:
        return "wrn-28-2"
    return "resnet-18" if side < 96 else "wrn-37-2"
