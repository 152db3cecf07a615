"""FreeMatch (Wang et al., "FreeMatch: Self-adaptive Thresholding for Semi-supervised Learning", ICLR 2023).

The threshold follows the model's own mean confidence, by class in proportion to P̂: CAI with β = 1 and a τ_o that is
learnt. A fairness term pulls the strong views' mean prediction, per class found, towards P̂ per class predicted. Its
weight is the 0.001 of the configurations published with USB, of CIFAR-10, CIFAR-100 and STL-10 alike; that code's own
default is 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from cadr.algorithms.base import Batch, Facts, State, Terms
from cadr.algorithms.imputation import Imputation, Predictions
from cadr.algorithms.mixing import one_hot
from cadr.estimate.prior import uniform_prior
from cadr.functional import predictions, thresholds
from cadr.utils.options import option

_SMALL = 1e-12  # the published floor under a logarithm


@dataclass(frozen=True)
class FreeMatch(Imputation):
    """Self-adaptive thresholds and self-adaptive fairness."""

    renamed: ClassVar[tuple[str, ...]] = ("prior", "histogram")

    momentum: float = option(0.999, "Momentum of the moving averages of predictions and confidence.")
    lambda_e: float = option(0.001, "Weight of the fairness term.")

    def init(self, facts: Facts) -> State:
        uniform = uniform_prior(facts.num_classes)
        return {**super().init(facts), "confidence": uniform[0].clone(), "histogram": uniform.clone()}

    def observe(self, weak: Tensor, batch: Batch, state: State) -> State:
        predicted = predictions(weak)
        confidence, classes = predicted.max(1)
        averages = {"confidence": confidence.mean(), "histogram": one_hot(classes, predicted).mean(0)}
        moved = {name: torch.lerp(state[name], new, 1.0 - self.momentum) for name, new in averages.items()}
        return {**super().observe(weak, batch, state), **moved}

    def class_thresholds(self, state: State) -> Tensor:
        return state["confidence"] * thresholds(state["prior"], 1.0, beta=1.0)

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step) | self.fairness(step)

    def fairness(self, step: Predictions) -> Terms:
        """Minus the cross-entropy between P̂ and the used strong views' mean, each over its histogram of classes."""
        strong, used = step.strong.softmax(1), step.imputed.mask.unsqueeze(1)
        found = (used * one_hot(strong.argmax(1), strong)).sum(0)
        model = _normalised(step.prior * _inverse(step.seen["histogram"]))
        batch = _normalised((used * strong).sum(0) * _inverse(found))
        # Where no row is used there is nothing to be fair about.
        return {"fairness": self.lambda_e * used.amax() * (model * torch.log(batch + _SMALL)).sum()}


def _inverse(values: Tensor) -> Tensor:
    """1/x, and 0 for 0."""
    return torch.where(values > 0, 1.0 / values.clamp(min=torch.finfo(values.dtype).tiny), 0.0)


def _normalised(values: Tensor) -> Tensor:
    return values / values.sum().clamp(min=torch.finfo(values.dtype).tiny)
