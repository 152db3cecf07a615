"""Nesterov SGD with L2 on kernels, the cosine schedule, and the average of the weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cadr.config import Optimiser


def learning_rate(options: Optimiser, step: Tensor, steps: int) -> Tensor:
    """lr·cos(7πk/16K) for step k of K, on the device: it ends at a fifth of where it began. `cosine` is the 7/16."""
    return options.lr * torch.cos(step.to(torch.float64) * (options.cosine * math.pi / steps))


def update(
    options: Optimiser, rate: Tensor, weights: Tensor, gradient: Tensor, velocity: Tensor, average: Tensor, decayed: int
) -> None:
    """One step on flat tensors, in place; the first `decayed` elements are kernels. Overwrites the gradient."""
    gradient[:decayed].add_(weights[:decayed], alpha=options.weight_decay)
    velocity.mul_(options.sgd_momentum).add_(gradient)
    gradient.add_(velocity, alpha=options.sgd_momentum)  # Nesterov: look one step ahead along the velocity
    weights.addcmul_(gradient, rate.to(weights.dtype), value=-1.0)
    average.lerp_(weights, 1.0 - options.ema)
