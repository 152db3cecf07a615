"""All that a checkpoint holds of a run, by name, and how the averaged model comes out of it again.

A parameter that trains is there as `weight`, and as `average`, which is what predicts; one that is frozen as `frozen`.
Two layers that share a parameter or a buffer have it once, under its first name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from cadr.algorithms import Output
from cadr.errors import CheckpointError
from cadr.metrics import count_pseudo_labels
from cadr.optim.flat_parameters import Flat
from cadr.training.auxiliary_head import MARK

_Model = TypeVar("_Model", bound=nn.Module)
_AVERAGED = ("average.", "training.average.", "frozen.", "buffer.")  # where a checkpoint has a part of that model
_MOST_TERMS = 16  # that an objective may have


class TrainingState:
    """What a step changes and the next one reads: tensors of fixed memory, updated in place.

    The model's and the averaged model's parameters are views into `weights` and `average`.
    """

    def __init__(self, model: nn.Module, hidden: AbstractSet[str], num_classes: int, start: int) -> None:
        """The model is on its device already. `hidden` are the parameters that an optimiser wants to lie together."""
        self.model = model.train()
        self.flat = Flat(model, hidden)
        self.average_model = copy.deepcopy(model).eval()
        self.weights, self.parameters = self.flat.adopt(model)
        self.average, _ = self.flat.adopt(self.average_model)
        share_untrained(model, self.average_model)
        self.velocity = torch.zeros_like(self.weights)
        self.method: dict[str, Tensor] = {}  # the algorithm's state
        self.views: dict[str, Tensor] = {}  # that of views that learn

        device = self.weights.device
        self.step = torch.full((), start, dtype=torch.int64, device=device)
        self.done = start  # the same number on the host
        self.pseudo = torch.zeros(num_classes + 1, num_classes, 2, dtype=torch.int64, device=device)
        self.sums = torch.zeros(1 + _MOST_TERMS, dtype=torch.float64, device=device)
        self.thresholds = torch.zeros(num_classes, device=device)
        self.prior = torch.full((num_classes,), 1.0 / num_classes, device=device)

    def note(self, truth: Tensor, terms: Tensor, output: Output) -> None:
        """Add up what the log will say (see `read`). `truth` is of the unlabelled rows, −1 where unknown."""
        self.sums[: 1 + len(terms)] += torch.cat((output.mask.mean().reshape(1), terms))
        self.pseudo += count_pseudo_labels(truth, output.pseudo, output.mask > 0, len(self.prior))
        self.thresholds.copy_(output.thresholds)
        self.prior.copy_(output.prior)

    def follow(self, output: Output, ema: float) -> None:
        """After the weights have moved: their average, and the algorithm's state."""
        self.average.lerp_(self.weights, 1.0 - ema)
        for name, value in output.state.items():
            if value is not self.method[name]:
                self.method[name].copy_(value)
        self.step += 1

    def tensors(self) -> dict[str, Tensor]:
        """All that a run is, by name: what a checkpoint holds. The tensors are the live ones."""
        named: dict[str, Tensor] = {"step": self.step, "sums": self.sums, "pseudo": self.pseudo}
        for kind, flat in (("weight", self.weights), ("velocity", self.velocity), ("average", self.average)):
            views = zip(self.flat.names, self.flat.views(flat), strict=True)
            named |= {key(kind, name): view for name, view in views}
        named |= untrained(self.model)
        named |= {f"algorithm.{name}": value for name, value in self.method.items()}
        named |= {f"views.{name}": value for name, value in self.views.items()}
        named |= {"prior": self.prior, "thresholds": self.thresholds}
        return named

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave."""
        ours = self.tensors()
        if {n: t.shape for n, t in ours.items()} != {n: t.shape for n, t in tensors.items()}:
            raise CheckpointError("The checkpoint is of another model or algorithm; start a new run in another folder.")
        with torch.no_grad():
            for name, tensor in ours.items():
                tensor.copy_(tensors[name])
        self.done = int(self.step)

    def read(self, terms: int) -> tuple[list[float], Tensor, bool]:
        """Sums of the mask rate and of each term, pseudo-label counts, and whether all weights are finite.

        Waits for the device, and starts new sums.
        """
        finite = bool(self.weights.isfinite().all())
        sums, pseudo = self.sums.tolist(), self.pseudo.cpu().clone()
        self.sums.zero_()
        self.pseudo.zero_()
        return sums[: 1 + terms], pseudo, finite


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
        stored = stored_average(tensors, name)
        if stored is not None and stored.shape == ours.shape:
            found.append((ours, stored))
        elif name not in passing:
            raise CheckpointError(f"The checkpoint in {run} is of another model: {name} does not fit.")
    with torch.no_grad():
        for ours, stored in found:
            ours.copy_(stored)
    return model


def stored_average(tensors: dict[str, Tensor], name: str) -> Tensor | None:
    """What a checkpoint has for a parameter or buffer of the averaged model."""
    return next((tensors[kind + name] for kind in _AVERAGED if kind + name in tensors), None)


def _not_state(model: nn.Module) -> Iterator[str]:
    for prefix, module in model.named_modules():
        yield from (f"{prefix}.{name}" if prefix else name for name in module._non_persistent_buffers_set)
