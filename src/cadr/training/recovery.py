"""A run that is no longer finite goes back to its last good checkpoint, or to its beginning, with a lower rate."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from cadr.training.nan_guard import NotFiniteError
from cadr.training.record import Record

_LOWER, _MOST = 0.25, 3  # of the rate each time; as often in one process


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


def _tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    return dict(itertools.chain(model.named_parameters(), model.named_buffers()))
