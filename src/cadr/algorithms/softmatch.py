"""SoftMatch (Chen et al., ICLR 2023): no threshold but a weight, Gaussian below the mean confidence and 1 above it.

Confidence is that of the aligned prediction, so that rare classes weigh more; the pseudo-label is still the class that
the prediction itself says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cadr.algorithms.alignment import Aligned
from cadr.algorithms.base import Batch, Facts, State, Terms, check_range
from cadr.algorithms.imputation import Predictions
from cadr.functional import Imputed, predictions
from cadr.utils.options import option


@dataclass(frozen=True)
class SoftMatch(Aligned):
    """Pseudo-labels weighted by a truncated Gaussian of their confidence, which is aligned."""

    momentum: float = option(0.999, "Momentum of the moving averages of predictions and confidence.")
    n_sigma: float = option(2.0, "The Gaussian's standard deviation is that of the confidence over this number.")
    alignment: Literal["none", "uniform", "labelled", "given"] = option(
        "uniform", "Align predictions with a class distribution before their confidence is read off."
    )

    selects = False  # every pseudo-label has a weight above 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("n_sigma", self.n_sigma, 0.0, float("inf"))

    def init(self, facts: Facts) -> State:
        start = {"mean": torch.tensor(1.0 / facts.num_classes), "variance": torch.tensor(1.0)}
        return {**super().init(facts), **start}

    def observe(self, weak: Tensor, batch: Batch, state: State) -> State:
        seen = super().observe(weak, batch, state)
        confidence = self.aligned(predictions(weak), seen).amax(1)
        mean = confidence.mean()
        # A single row has no variance of its own; its distance from the mean so far stands in for it.
        variance = confidence.var() if len(confidence) > 1 else (mean - state["mean"]).square()
        rate = 1.0 - self.momentum
        moved = {
            "mean": torch.lerp(state["mean"], mean, rate),
            "variance": torch.lerp(state["variance"], variance, rate),
        }
        return {**seen, **moved}

    def class_thresholds(self, state: State) -> Tensor:
        """Above the mean a pseudo-label counts fully."""
        return state["mean"].expand_as(state["prior"])

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        return predictions(weak)

    def impute(self, predicted: Tensor, limits: Tensor, state: State) -> Imputed:
        confidence = self.aligned(predicted, state).amax(1)
        below = (confidence - state["mean"]).clamp(max=0.0)
        variance = state["variance"].clamp(min=torch.finfo(below.dtype).tiny)
        return Imputed(predicted.argmax(1), torch.exp(-0.5 * (self.n_sigma * below) ** 2 / variance))

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)
