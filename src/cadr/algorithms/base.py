"""What an algorithm receives and returns, and the one forward pass most of them share.

An algorithm is a frozen dataclass whose fields are the paper's hyper-parameters, with two methods:

    init(facts) -> State                          explicit, so that it can be checkpointed, reduced and captured
    loss(model, batch, state) -> Output           named terms whose sum is the objective

`loss` runs inside a captured graph: static shapes, no branch on data, no tensor made from Python numbers on the fly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from cadr.errors import ConfigError

State = dict[str, Tensor]
Terms = dict[str, Tensor]
Model = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known about the data before training."""

    num_classes: int
    labelled_counts: Tensor  # (C,) float
    num_examples: int  # rows of the stream and labelled rows outside it
    num_unlabelled: int  # rows of the stream
    labelled_in_stream: bool
    steps: int


class Batch(NamedTuple):
    """Views ready for the model."""

    labelled: Tensor
    labels: Tensor
    weak: Tensor
    strong: Tensor
    index: Tensor  # type: ignore[assignment]  # (U,) positions in the unlabelled stream; hides tuple.index


class Output(NamedTuple):
    terms: Terms  # scalars, each logged; their sum is the objective
    state: State  # the same keys, shapes and dtypes as before
    pseudo: Tensor  # (U,) int64
    mask: Tensor  # (U,) float, 1 where the pseudo-label is used
    thresholds: Tensor  # (C,)
    prior: Tensor  # (C,) P̂ after this step


class Algorithm(Protocol):
    def init(self, facts: Facts) -> State: ...

    def loss(self, model: Model, batch: Batch, state: State) -> Output: ...


def forward(model: Model, *inputs: Tensor) -> tuple[Tensor, ...]:
    """One pass over the concatenation, so that batch normalisation sees all views together, in every method."""
    return torch.split(model(torch.cat(inputs)), [part.shape[0] for part in inputs])


def check_range(name: str, value: float, low: float, high: float) -> None:
    """A setting outside [low, high] is refused when the algorithm is made, not at step 100,000."""
    if not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low:g} and {high:g}, not {value:g}.")


def check_choice(name: str, value: str, *choices: str) -> None:
    """A misspelt choice is refused when the algorithm is made."""
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")


def target_distribution(given: tuple[float, ...], num_classes: int) -> Tensor:
    """(C,) the class distribution asked for, uniform when none is given."""
    if not given:
        return torch.full((num_classes,), 1.0 / num_classes)
    if len(given) != num_classes:
        raise ConfigError(f"target_prior must have one number per class ({num_classes}), not {len(given)}.")
    if min(given) <= 0:
        raise ConfigError(f"target_prior must be positive for every class, but its smallest number is {min(given):g}.")
    return torch.tensor(given) / sum(given)
