"""What an algorithm receives and returns, and the one forward pass most of them share.

An algorithm is a frozen dataclass whose fields are the paper's hyper-parameters, with two methods:

    init(facts) -> State                          explicit, so that it can be checkpointed, reduced and captured
    loss(model, batch, state) -> Output           named terms whose sum is the objective

`loss` runs inside a captured graph: static shapes, no branch on data, no tensor made from Python numbers on the fly.
What else a method needs from the training loop it declares: see `Algorithm`, and `Refreshing` for slow work on the
state between steps, outside the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from cadr.errors import ConfigError
from cadr.estimate.prior import at_least_float32
from cadr.utils.options import NUMBER, check_numbers

State = dict[str, Tensor]
Terms = dict[str, Tensor]
Model = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known about the data before training."""

    num_classes: int
    labelled_counts: Tensor  # (C,) float, of the labels that were given: no generation adds to them
    num_examples: int  # rows of the stream and labelled rows outside it
    num_unlabelled: int  # rows of the stream
    labelled_in_stream: bool
    steps: int  # of this generation
    generation: int = 0  # how many went before


class Batch(NamedTuple):
    """Views ready for the model. Several views of the same U examples follow one another: `weak.chunk(weak_views)`."""

    labelled: Tensor  # labelled_views · B rows
    labels: Tensor
    weak: Tensor  # weak_views · U rows
    strong: Tensor  # strong_views · U rows
    index: Tensor  # type: ignore[assignment]  # (U,) positions in the unlabelled stream; hides tuple.index
    key: Tensor = torch.zeros((), dtype=torch.int64)  # for random numbers of the method's own, see data/draw.py
    step: Tensor = torch.zeros((), dtype=torch.int64)  # steps done in this generation


class Output(NamedTuple):
    terms: Terms  # scalars, each logged; their sum is the objective
    state: State  # the same keys, shapes and dtypes as before
    pseudo: Tensor  # (U,) int64
    mask: Tensor  # (U,) float, 1 where the pseudo-label is used
    thresholds: Tensor  # (C,)
    prior: Tensor  # (C,) P̂ after this step


class Algorithm(ABC):
    """The two methods, and what the loop heeds beside them: a class attribute or field of the name says otherwise."""

    def __post_init__(self) -> None:
        check_numbers(self)

    @abstractmethod
    def init(self, facts: Facts) -> State:
        """The state before the first step, of every generation."""

    @abstractmethod
    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        """One step."""

    @property
    def labelled_views(self) -> int:
        """Views of each labelled example: a weak one, and strong ones after it."""
        return 1

    @property
    def weak_views(self) -> int:
        """Weak views of each unlabelled example."""
        return 1

    @property
    def strong_views(self) -> int:
        """Strong views of each unlabelled example."""
        return 1

    @property
    def balanced_labels(self) -> bool:
        """Whether labelled batches hold all classes alike."""
        return False

    @property
    def auxiliary(self) -> int:
        """Outputs of the network behind those of the classes, in training only: a second linear head."""
        return 0

    @property
    def rotates(self) -> bool:
        """Whether views are turned by quarters of a turn, which only square images can be."""
        return False

    @property
    def selects(self) -> bool:
        """Whether each pseudo-label is used or not; if so, using none or all of them is worth a warning."""
        return True

    def aimed_at(self, num_classes: int) -> Tensor | None:
        """(C,) the class shares that predictions are drawn to, if they are; falling far short is worth a warning."""
        return None

    @property
    def estimates_target(self) -> bool:
        """Whether the class shares that predictions are drawn to are estimated while training goes on."""
        return getattr(self, "target_prior", ()) == "estimated"

    def towards(self, target: Tensor) -> State:
        """What of the state draws predictions to these class shares, (C,)."""
        return {}

    @property
    def renamed(self) -> tuple[str, ...]:
        """What of the state is by predicted class, and moves when classes are given each other's names in training.

        Empty where they cannot be: the state knows more of the predictions, or of single examples.
        """
        return ()

    @property
    def capturable(self) -> bool:
        """Whether a step can be captured in a CUDA graph."""
        return True

    @property
    def generations(self) -> int:
        """How often training starts afresh, on labels that `enlarge` adds to; they share the steps evenly."""
        return 1

    def enlarge(self, predicted: Tensor, facts: Facts) -> Tensor:
        """The labels (n,) that join the given ones in the next generation, −1 for none.

        `predicted` (n, C) are the averaged model's probabilities for the unlabelled rows that were given no label.
        """
        return torch.full((len(predicted),), -1)


@runtime_checkable
class Refreshing(Protocol):
    """An algorithm whose state is worked on every so many steps, where shapes and branches are free."""

    @property
    def refresh_every(self) -> int: ...

    def refresh(self, state: State, done: int, steps: int) -> State:
        """The state after `done` of `steps` steps, with the same keys, shapes and dtypes."""


def forward(model: Model, *inputs: Tensor) -> tuple[Tensor, ...]:
    """One pass over the concatenation, so that batch normalisation sees all views together, in every method.

    Half-precision logits are widened here, once: terms that nearly cancel would otherwise be rounded one by one.
    """
    return torch.split(at_least_float32(model(torch.cat(inputs))), [part.shape[0] for part in inputs])


def untracked(model: Model, *inputs: Tensor) -> tuple[Tensor, ...]:
    """As `forward`, but the running statistics of batch normalisation stay as they are."""
    return forward(getattr(model, "untracked", model), *inputs)  # a plain function has no statistics


def linear_ramp(step: Tensor, length: Tensor) -> Tensor:
    """step / length, at most 1: a weight that rises linearly. A length of 0 gives 1 at once."""
    return torch.where(length > 0, step / length, 1.0).clamp(max=1.0)


def check_range(name: str, value: float, low: float, high: float) -> None:
    """A setting outside [low, high] is refused when the algorithm is made, not at step 100,000."""
    if not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low:g} and {high:g}, not {value:g}.")


def check_choice(name: str, value: str, *choices: str) -> None:
    """A misspelt choice is refused when the algorithm is made."""
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")


def check_belonging(algorithm: Any) -> None:
    """A setting that belongs to a value of another is given with it, and not without."""
    for item in fields(algorithm):
        if pair := item.metadata.get("belongs_to"):
            name, value = pair
            if (getattr(algorithm, name) == value) != bool(getattr(algorithm, item.name)):
                raise ConfigError(f"{item.name} belongs to {name} {value!r}: set both of them, or neither.")


def target_distribution(given: tuple[float, ...] | Literal["estimated"], num_classes: int) -> Tensor:
    """(C,) the class distribution asked for; uniform when none is given, or until one is estimated."""
    if not given or isinstance(given, str):
        return torch.full((num_classes,), 1.0 / num_classes)
    if len(given) != num_classes:
        raise ConfigError(f"target_prior must have one number per class ({num_classes}), not {len(given)}.")
    tiny = torch.finfo(torch.float32).tiny  # what is less, of all or by itself, is as good as 0
    if min(given) < tiny * max(1.0, sum(given)) or sum(given) > NUMBER:
        raise ConfigError(
            f"target_prior must be positive for every class, and its numbers add up to at most {NUMBER:.3g}; the "
            f"smallest is {min(given):g}, the sum {sum(given):g}."
        )
    return torch.tensor(given) / sum(given)
