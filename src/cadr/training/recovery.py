"""A run that is no longer finite goes back to its last good checkpoint, or to its beginning, with a lower rate.

Nothing of it reaches a checkpoint: the last good one would be lost. That is asked where a record or a checkpoint is
due, never within a step: the answer has to be waited for.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from cadr.errors import TrainingError
from cadr.training.record import Record
from cadr.training.step import Step

_LOWER, _MOST = 0.25, 3  # of the rate each time; as often in one process
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
        self.exempt = {name for name in _not_finite(step.state.tensors()) if name.startswith(_MAY_BEGIN_OTHERWISE)}

    def check(self, step: Step, kept: int | None) -> None:
        """All of it, before it is saved."""
        bad = [name for name in _not_finite(step.state.tensors()) if name not in self.exempt]
        if bad:
            sums = zip(step.term_names, step.state.sums[1:].tolist(), strict=False)
            losses = [name for name, value in sums if not math.isfinite(value)]
            raise _error(losses, f"The tensor {bad[0]}", step.done, kept)


def _not_finite(tensors: dict[str, Tensor]) -> list[str]:
    """Their names; the device is waited for once."""
    finite = torch.stack([tensor.isfinite().all() for tensor in tensors.values()]).tolist()
    return [name for name, good in zip(tensors, finite, strict=True) if not good]


def _error(losses: list[str], other: str, step: int, kept: int | None) -> NotFiniteError:
    return NotFiniteError(f"The loss ({', '.join(losses)})" if losses else other, step, kept)


class Recovery:
    """How often a run has gone back, at which share of the configured learning rate it is, and how it began."""

    def __init__(self, model: nn.Module, lr: float) -> None:
        self.model, self.lr = model, lr
        self.share, self.times = 1.0, 0
        self.said = ""  # why it has gone back, until the records say so
        self.initial = {name: tensor.detach().to("cpu", copy=True) for name, tensor in _tensors(model).items()}

    def go_back(self, error: NotFiniteError) -> None:
        """Get ready to resume with a lower rate; raises where lower rates have not helped."""
        if self.times == _MOST:
            raise error
        self.said = f"{error.what} was no longer finite at step {error.step} with a learning rate of "
        self.said += f"{self.lr * self.share:.3g}"
        self.times, self.share = self.times + 1, self.share * _LOWER
        with torch.no_grad():
            for name, tensor in _tensors(self.model).items():
                tensor.copy_(self.initial[name])

    def resumed_with(self, share: float) -> None:
        """A checkpoint knows the share it was trained with, of other processes perhaps."""
        self.share = min(self.share, share)

    def records(self, step: int) -> list[Record]:
        """What is to be said once the run stands where it goes on from."""
        if not self.said:
            return []
        where = f"the checkpoint of step {step}" if step else "the beginning, for nothing had been saved yet"
        message = f"{self.said}: the run goes back to {where}, and on with {self.lr * self.share:.3g}."
        self.said = ""
        return [{"kind": "warning", "step": step, "message": message}]


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return dict(itertools.chain(model.named_parameters(), model.named_buffers()))
