"""More outputs for a network: a second linear head beside the first, there in training and gone after it."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cadr.errors import ConfigError
from cadr.models.feature_hooks import class_head
from cadr.models.networks import head

MARK = "auxiliary_"  # how the names of the second head's parameters begin: a finished model does without them


class TwoHeads(nn.Module):
    """The classes' logits, and in training mode the second head's behind them."""

    def __init__(self, first: nn.Linear, extra: int) -> None:
        super().__init__()
        self.weight, self.bias = first.weight, first.bias
        second = head(first.in_features, extra)
        self.auxiliary_weight, self.auxiliary_bias = second.weight, second.bias

    def forward(self, features: Tensor) -> Tensor:
        classes = F.linear(features, self.weight, self.bias)
        if not self.training:
            return classes
        return torch.cat((classes, F.linear(features, self.auxiliary_weight, self.auxiliary_bias)), dim=1)


def widen(model: nn.Module, num_classes: int, extra: int, seed: int) -> nn.Module:
    """Give the model `extra` outputs in training, in place; all other weights stay as they are.

    The last linear layer with an output per class is taken for the first head. A model with two heads keeps them.
    """
    if not extra or any(isinstance(module, TwoHeads) for module in model.modules()):
        return model
    name = class_head(model, num_classes)
    if not name:
        raise ConfigError(
            f"The method needs a second head, but the model holds no linear layer with {num_classes} outputs to put it "
            "beside; end the model in one, or use another method."
        )
    parent, _, attribute = name.rpartition(".")
    first = cast(nn.Linear, model.get_submodule(name))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        both = TwoHeads(first, extra).to(first.weight.device).train(first.training)
    setattr(model.get_submodule(parent), attribute, both)
    return model
