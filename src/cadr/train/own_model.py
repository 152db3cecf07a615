"""Is a network of somebody's own one that can be trained here? Asked before anything is written."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from cadr.data.reason import reason
from cadr.errors import ConfigError


def check_own_model(model: nn.Module, num_classes: int, shape: tuple[int, ...]) -> None:
    """It must be a module that returns a logit per class for examples of this shape."""
    if not isinstance(model, nn.Module):
        kind = f"the class {model.__name__}; make an instance of it" if isinstance(model, type) else _called(model)
        raise ConfigError(f"model should be an nn.Module, not {kind}.")
    first = next(model.parameters(), None)
    if first is None:
        raise ConfigError(f"{type(model).__name__} has no parameters, so there is nothing to train.")
    if first.dtype != torch.float32 or getattr(model, "handles_precision", False):
        return  # what it can be called with depends on the precision of the run
    found = _answer(model, torch.zeros(2, *shape, device=first.device))
    if not isinstance(found, Tensor):
        raise ConfigError(
            f"{type(model).__name__} should return logits, a tensor (n, {num_classes}), not {_called(found)}."
        )
    if found.shape != (2, num_classes):
        raise ConfigError(
            f"{type(model).__name__} should return a logit for each of {num_classes} classes: expected "
            f"(2, {num_classes}) for two examples, got {tuple(found.shape)}."
        )


def _answer(model: nn.Module, x: Tensor) -> Any:
    """What it makes of two examples; asked of a copy, for a model may count its calls."""
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            return copy.deepcopy(model).eval()(x)
    except Exception as error:
        raise ConfigError(
            f"{type(model).__name__} cannot be called with a tensor {tuple(x.shape)}: {reason(error)}"
        ) from error


def _called(thing: object) -> str:
    return f"a {type(thing).__name__}"
