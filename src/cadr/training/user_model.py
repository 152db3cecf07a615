"""Is a network of somebody's own one that returns what is trained here? Asked before anything is written."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from cadr.errors import ConfigError
from cadr.training.network import call, is_half
from cadr.utils.text import reason


def check_user_model(
    model: nn.Module, num_classes: int, shape: tuple[int, ...], device: torch.device, precision: str
) -> None:
    """It must be a module that returns a logit per class for examples of this shape."""
    if not isinstance(model, nn.Module):
        kind = f"the class {model.__name__}; make an instance of it" if isinstance(model, type) else _called(model)
        raise ConfigError(f"model should be an nn.Module, not {kind}.")
    name, parameters = type(model).__name__, list(model.parameters())
    if not parameters:
        raise ConfigError(f"{name} has no parameters, so there is nothing to train.")
    if any(map(is_lazy, parameters)):
        raise ConfigError(f"{name} has parameters that are not made before its first call; call it once.")
    try:
        asked = copy.deepcopy(model).to(device).eval()  # a copy, for a model may count its calls
    except Exception as error:
        raise ConfigError(
            f"{name} cannot be copied, which the average of its weights takes: {reason(error)}"
        ) from error
    half = is_half(precision, device)
    x = torch.zeros(2, *shape, device=device, dtype=torch.bfloat16 if half else torch.float32)
    with torch.no_grad(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        found = _answer(asked, x, half)
        if found.shape != (2, num_classes):
            raise ConfigError(
                f"{name} should return a logit for each of {num_classes} classes: expected (2, {num_classes}) for two "
                f"examples, got {tuple(found.shape)}."
            )
        _answer(asked.train(), x, half)
    # What trains is settled before the first step, so what the first call freezes is frozen now.
    trains = {name for name, parameter in asked.named_parameters() if parameter.requires_grad}
    for each, parameter in model.named_parameters():
        parameter.requires_grad_(each in trains)


def not_given(out: Path | str) -> ConfigError:
    """Why nothing can be done with a run whose network is not there: no flag can name a module."""
    return ConfigError(
        f"{out} was trained from Python with a network of its own, which has to be given again, in Python: "
        "Predictor.load(run, model=…) predicts with it; evaluate_run, write_report and export_run take model=… too."
    )


def _answer(model: nn.Module, x: Tensor, half: bool) -> Tensor:
    """What it makes of two examples, called as in training."""
    returned: list[object] = []
    hook = model.register_forward_hook(lambda *each: returned.append(each[-1]))
    try:
        return call(model, x, half)
    except Exception as error:
        if returned and not isinstance(returned[-1], Tensor):
            raise ConfigError(
                f"{type(model).__name__} should return logits, a tensor (n, classes), not {_called(returned[-1])}."
            ) from error
        raise ConfigError(
            f"{type(model).__name__} cannot be called with a tensor {tuple(x.shape)}: {reason(error)}"
        ) from error
    finally:
        hook.remove()


def _called(thing: object) -> str:
    return f"an object of type {type(thing).__name__}"
