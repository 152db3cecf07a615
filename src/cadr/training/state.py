"""All of a model that a checkpoint holds, by name, and how the averaged model comes out of it again.

A parameter that trains is there as `weight`, and as `average`, which is what predicts; one that is frozen as `frozen`.
Two layers that share a parameter or a buffer have it once, under its first name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from cadr.errors import CheckpointError
from cadr.training.auxiliary_head import MARK

_Model = TypeVar("_Model", bound=nn.Module)
_AVERAGED = ("average.", "training.average.", "frozen.", "buffer.")  # where a checkpoint has a part of that model


def key(kind: str, name: str) -> str:
    """Under which a trained parameter's weight, velocity or average is saved.

    A second head's are set apart: a finished model does without them.
    """
    apart = "training." if name.rpartition(".")[2].startswith(MARK) else ""
    return f"{apart}{kind}.{name}"


def untrained(model: nn.Module) -> dict[str, Tensor]:
    """Frozen parameters and buffers. The tensors are the live ones."""
    frozen = {f"frozen.{name}": p.data for name, p in model.named_parameters() if not p.requires_grad}
    return frozen | {f"buffer.{name}": buffer for name, buffer in model.named_buffers()}


def share_untrained(source: nn.Module, target: nn.Module) -> None:
    """Let a copy use the running statistics and frozen parameters as they are: no average is taken of them."""
    for ours, theirs in zip(source.modules(), target.modules(), strict=True):
        for name in ours._buffers:
            theirs._buffers[name] = ours._buffers[name]
        for name, parameter in ours._parameters.items():
            if parameter is not None and not parameter.requires_grad:
                theirs._parameters[name] = parameter


def load_averaged(model: _Model, tensors: dict[str, Tensor], run: Path | str) -> _Model:
    """Give the model, in place, what a run's averaged model has; all of it has to be there.

    A buffer that PyTorch does not count as state may differ in shape, and is then left as it is.
    """
    found: list[tuple[Tensor, Tensor]] = []
    passing = set(_not_state(model))
    for name, ours in [*model.named_parameters(), *model.named_buffers()]:
        stored = next((tensors[kind + name] for kind in _AVERAGED if kind + name in tensors), None)
        if stored is not None and stored.shape == ours.shape:
            found.append((ours, stored))
        elif name not in passing:
            raise CheckpointError(f"The checkpoint in {run} is of another model: {name} does not fit.")
    with torch.no_grad():
        for ours, stored in found:
            ours.copy_(stored)
    return model


def _not_state(model: nn.Module) -> Iterator[str]:
    for prefix, module in model.named_modules():
        yield from (f"{prefix}.{name}" if prefix else name for name in module._non_persistent_buffers_set)
