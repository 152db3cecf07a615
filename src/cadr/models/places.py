"""Where in a network what is found: the layer that tells the classes apart, and the last stage of those before it."""

from __future__ import annotations

from torch import nn

from cadr.errors import ConfigError
from cadr.models.parts import Residual


def class_head(model: nn.Module, num_classes: int) -> str:
    """The name of the last linear layer with an output per class; empty if there is none inside the model."""
    found = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and m.out_features == num_classes]
    return found[-1] if found else ""


def last_stage(model: nn.Module) -> nn.Module:
    """What the middle of the network's features flow into: the last stage of a residual network, the last layer before
    the head of a plain one."""
    if isinstance(model, Residual):
        return [unit for unit in model.units if unit.shortcut is not None][-1]
    layers = [m for m in model if isinstance(m, (nn.Conv2d, nn.Linear))] if isinstance(model, nn.Sequential) else []
    if len(layers) < 2:
        raise ConfigError("Only a network with a layer before its last one can say what surrounds an example.")
    return layers[-2]
