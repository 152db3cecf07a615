"""Where in a network what is found: the layer that tells classes apart, and what arrives at the stage before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from cadr.models.parts import Residual


def class_head(model: nn.Module, num_classes: int) -> str:
    """The name of the last linear layer with an output per class; empty if there is none inside the model."""
    found = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and m.out_features == num_classes]
    return found[-1] if found else ""


def last_stage(model: nn.Module) -> nn.Module | None:
    """The last stage of a residual network, the last layer before the head of a plain one; None for other modules."""
    if isinstance(model, Residual):
        return [unit for unit in model.units if unit.shortcut is not None][-1]
    layers = [m for m in model if isinstance(m, (nn.Conv2d, nn.Linear))] if isinstance(model, nn.Sequential) else []
    return layers[-2] if len(layers) > 1 and layers.count(layers[-2]) == 1 else None  # what runs twice is no stage


@contextmanager
def arriving(stage: nn.Module) -> Iterator[list[Tensor]]:
    """Notes the features (n, d) that flow into a stage, batch by batch, those of images averaged over their pixels."""
    noted: list[Tensor] = []

    def note(_stage: nn.Module, arrived: tuple[Tensor]) -> None:
        x = arrived[0].float()
        noted.append(x.mean((2, 3)) if x.ndim == 4 else x.flatten(1))

    listener = stage.register_forward_pre_hook(note)
    try:
        yield noted
    finally:
        listener.remove()
