"""Nesterov SGD with L2 on kernels and a cosine schedule: what the paper has."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cadr.optim.base import Update
from cadr.optim.flat_parameters import Flat
from cadr.utils.options import at_least, check_numbers, option, share


@dataclass(frozen=True)
class SGD:
    """Nesterov SGD with L2 on kernels, a cosine schedule over 7/16 of half a turn, and an average of the weights."""

    lr: float = option(0.03, "learning rate at the first step")
    cosine: float = option(7 / 16, "share of half a turn that the learning rate's cosine runs through")
    sgd_momentum: float = option(0.9, "Nesterov momentum")
    weight_decay: float = option(5e-4, "L2 penalty on kernels (not on biases or batch norm)")
    ema: float = option(0.999, "decay of the moving average of the weights that is evaluated")

    def __post_init__(self) -> None:
        check_numbers(self)
        at_least(self.lr, 0.0, "lr")
        at_least(self.weight_decay, 0.0, "weight_decay")
        share(self.cosine, "cosine")
        share(self.sgd_momentum, "sgd_momentum")
        share(self.ema, "ema")

    def hidden(self, model: nn.Module) -> frozenset[str]:
        return frozenset()

    def factor(self, step: Tensor, steps: int) -> Tensor:
        """cos(7πk/16K) for step k of K: it ends at a fifth of where it began. `cosine` is the 7/16."""
        return torch.cos(step.to(torch.float64) * (self.cosine * math.pi / steps))

    def begin(self, flat: Flat, weights: Tensor, gradient: Tensor, velocity: Tensor) -> Update:
        """Nesterov's step on all that lies behind the hidden kernels, which an heir moves by itself."""
        weights, gradient, velocity = weights[flat.hidden :], gradient[flat.hidden :], velocity[flat.hidden :]
        decayed = flat.decayed - flat.hidden
        rates = flat.rates(weights.device)
        rates = None if rates is None else rates[flat.hidden :]

        def update(factor: Tensor) -> None:
            gradient[:decayed].add_(weights[:decayed], alpha=self.weight_decay)
            velocity.mul_(self.sgd_momentum).add_(gradient)
            gradient.add_(velocity, alpha=self.sgd_momentum)  # Nesterov: look one step ahead along the velocity
            if rates is not None:
                gradient.mul_(rates)
            weights.addcmul_(gradient, (self.lr * factor).to(weights.dtype), value=-1.0)

        return update
