"""Nothing of a run that is no longer finite reaches a checkpoint: the last good one, to go back to, would be lost.

Asked where a record or a checkpoint is due, never within a step: the answer has to be waited for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cadr.errors import TrainingError
from cadr.training.step import Step

_MAY_BEGIN_OTHERWISE = ("buffer.", "frozen.", "algorithm.")  # a mask of −∞ in somebody's network is as it should be


class NotFiniteError(TrainingError):
    """What is no longer finite, and since when."""

    def __init__(self, what: str, step: int, kept: int | None) -> None:
        self.what, self.step = what, step
        rest = (
            "nothing had been saved yet" if kept is None else f"the last good checkpoint is kept, that of step {kept}"
        )
        super().__init__(
            f"{what} is no longer finite at step {step}; {rest}: try a lower lr in a new run, or precision fp32."
        )


def check_record(step: int, terms: dict[str, float], weights: bool, kept: int | None) -> None:
    """The losses since the last record, and whether the weights are finite; `kept` is the last step saved."""
    bad = [name for name, value in terms.items() if not math.isfinite(value)]
    if bad or not weights:
        raise _error(bad, "A weight", step, kept)


class Finite:
    """What a checkpoint would hold; remembers what was not finite to begin with."""

    def __init__(self, step: Step) -> None:
        self.exempt = {name for name in _not_finite(step.tensors()) if name.startswith(_MAY_BEGIN_OTHERWISE)}

    def check(self, step: Step, kept: int | None) -> None:
        """All of it, before it is saved."""
        bad = [name for name in _not_finite(step.tensors()) if name not in self.exempt]
        if bad:
            sums = zip(step.term_names, step.sums[1:].tolist(), strict=False)
            losses = [name for name, value in sums if not math.isfinite(value)]
            raise _error(losses, f"The tensor {bad[0]}", step.done, kept)


def _not_finite(tensors: dict[str, Tensor]) -> list[str]:
    """Their names; the device is waited for once."""
    finite = torch.stack([tensor.isfinite().all() for tensor in tensors.values()]).tolist()
    return [name for name, good in zip(tensors, finite, strict=True) if not good]


def _error(losses: list[str], other: str, step: int, kept: int | None) -> NotFiniteError:
    return NotFiniteError(f"The loss ({', '.join(losses)})" if losses else other, step, kept)
