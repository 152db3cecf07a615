"""What a method does beside its steps, as the loop and the step know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from cadr.training.feed import Inputs
from cadr.training.record import Record

if TYPE_CHECKING:
    from cadr.training.step import Step


@dataclass(frozen=True)
class Generation:
    """The steps start … stop − 1 of a run."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Stretch:
    """What is trained on, and for how long, before training starts afresh: most runs are one stretch."""

    inputs: Inputs
    generation: Generation


class Phase:
    """One phase of a method; what it does not override does nothing.

    A phase's random choices are functions of the run's seed, and what it remembers is in its tensors: so a run that is
    continued does the same.
    """

    steers_views = False  # whether what it does in a step changes how the next step's views are drawn

    @property
    def stops(self) -> set[int]:
        """Steps after which it wants to be asked; a record is due there too."""
        return set()

    def begin(self, step: Step, stop: Callable[[], bool]) -> list[Record]:
        """Before the first step of a run that begins, and not of one that is continued; what there is to say.

        Where somebody asks to `stop` it may leave off: the run has not begun then, and begins anew.
        """
        return []

    def in_step(self, step: Step) -> None:
        """In every step, between gradient and update. Captured with it: static shapes, no branch on data."""

    def after_step(self, step: Step) -> None:
        """After every step, outside of what is captured. Waits for the device only if something is due."""

    def at_stop(self, step: Step) -> list[Record]:
        """At every stop of the run, its own and others; what there is to say."""
        return []

    def stretch(self, now: Stretch) -> Stretch:
        """What is trained on from here: another than `now`, and training starts afresh."""
        return now

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds of it."""
        return {}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from those of its tensors that a checkpoint held."""
