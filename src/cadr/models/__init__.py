"""The networks. To add one takes `networks.py` alone: a dataclass of settings, and its name in `MODELS`.

Modules take float images (n, 3, h, w) in channels-last memory, or features (n, d), and return logits (n, classes).
"""

from cadr.models.networks import (
    MLP,
    MODELS,
    ConvNet,
    ModelSpec,
    ResNet18,
    WideResNet28,
    WideResNet28x8,
    WideResNet37,
    choose,
    normalised,
)

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
    "normalised",
]
