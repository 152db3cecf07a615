"""What a training step asks of an optimiser."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from cadr.optim.flat_parameters import Flat


class Update(Protocol):
    """One step on flat tensors, in place, with the rate's share of what it was at first. Overwrites the gradient."""

    def __call__(self, factor: Tensor) -> None: ...


class Optimiser(Protocol):
    """All that changes from step to step is in the flat tensors, so that a checkpoint of them holds it."""

    @property
    def lr(self) -> float: ...

    @property
    def ema(self) -> float: ...

    def hidden(self, model: nn.Module) -> frozenset[str]:
        """Names of the parameters that lie before all others in the flat tensors."""
        ...

    def factor(self, step: Tensor, steps: int) -> Tensor:
        """The learning rate at a step, as a share of what it is at first; on the device."""
        ...

    def begin(self, flat: Flat, weights: Tensor, gradient: Tensor, velocity: Tensor) -> Update:
        """Get ready to move these tensors; `velocity` begins as zeros and is the optimiser's own."""
        ...
