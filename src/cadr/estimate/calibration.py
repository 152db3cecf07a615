"""Probabilities that mean what they say, from held-out labels that are missing not at random.

The calibrated logits are s·z + α·d: s = 1/temperature says how sure the model should have been, and α how much of the
labelling bias is left in it, along d_c = log(share of class c in the population / its share among the labels). Both are
the most probable values given held-out labels, each weighted by the inverse propensity of its class, and a prior around
no change, and 0 ≤ α ≤ 1. Two numbers are what a few dozen labels can support. With ten, of which a good model gets all
right, nothing is changed: the labels must speak for it. That they gain when left out of the fit is not asked of them:
the error of thirty labels in bins is so uncertain that it would refuse changes that do help.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cadr.estimate.aipw import class_propensity, class_weights, effective_sample_size
from cadr.utils.text import counted

BINS = 15
FOLDS = 5
FEW = 30  # labels, below which nobody should rely on it
# benchmarks/calibration.py says how these two were chosen, and shows what the errors are for 10, 30 and 100 labels.
_PRECISION = 4.0  # of log s and of α, which are normal around 0 before any label is seen
_LEAST_GAIN = 2.0  # of the log-likelihood, else nothing is changed: Akaike's price of two numbers
_PRIOR_FLOOR = 1e-3  # of a uniform class share: a class that is never predicted is rare, not impossible


@dataclass(frozen=True)
class Calibration:
    """softmax(logits / temperature + correction) is calibrated; errors are expected calibration errors in percent."""

    temperature: float
    correction: tuple[float, ...]  # α·d, by class
    prior_correction: float  # α: 0 where the model has no labelling bias left, 1 where it has all of it
    error_before: float | None
    error_after: float | None  # cross-fitted: every label is judged by a fit to the others
    examples: int  # held-out labels that it was fitted to

    @property
    def changes(self) -> bool:
        """Whether probabilities are others than the model's own."""
        return self.temperature != 1.0 or any(self.correction)

    @property
    def caution(self) -> str:
        """What to know before believing a probability; blank where there were enough labels."""
        if self.examples == 0:
            return "The probabilities are not calibrated: that takes a finished run with held-out labels."
        if not self.changes and self.examples < FEW:
            return (
                f"The probabilities are not calibrated: {counted(self.examples, 'held-out label')} cannot show whether "
                "the model is overconfident."
            )
        if not self.changes:
            return f"The probabilities are not calibrated: on {self.examples} held-out labels that would not help."
        if self.examples < FEW:
            return f"The probabilities are calibrated on {self.examples} held-out labels only, too few to rely on."
        if self.error_before is not None and self.error_after is not None and self.error_after >= self.error_before:
            return (
                f"The probabilities are calibrated on {self.examples} held-out labels, which do not show that it "
                f"helps: the cross-fitted calibration error was {self.error_before:.1f} % before and is "
                f"{self.error_after:.1f} % after."
            )
        return ""

    @torch.no_grad()
    def __call__(self, logits: Tensor) -> Tensor:
        """Calibrated log-probabilities, (n, C)."""
        shift = torch.tensor(self.correction, dtype=logits.dtype, device=logits.device)
        return F.log_softmax(logits / self.temperature + shift, dim=1)


def uncalibrated(num_classes: int) -> Calibration:
    """What there is without held-out labels: the model's own probabilities."""
    return Calibration(1.0, (0.0,) * num_classes, 0.0, None, None, 0)


@torch.no_grad()
def calibrate(logits: Tensor, labels: Tensor, labelled_counts: Tensor, prior: Tensor, rows: int) -> Calibration:
    """Fit to held-out logits (n, C) and labels (n,).

    `labelled_counts` (C,) are all labels there are, held out or not; `prior` (C,) is the class distribution of all
    `rows` rows, labelled ones included.
    """
    z, counts = logits.double().cpu(), labelled_counts.double().cpu()
    labels = labels.cpu()
    prior = prior.double().cpu().clamp(min=_PRIOR_FLOOR / len(counts))
    prior = prior / prior.sum()
    propensity = class_propensity(counts, prior, torch.tensor(rows), torch.tensor(1.0))
    weights = class_weights(propensity, counts)[labels]
    direction = torch.log(prior / (counts / counts.sum()).clamp(min=_PRIOR_FLOOR / len(counts)))
    direction = direction - direction.mean()
    before = 100.0 * calibration_error(F.softmax(z, 1), labels, weights)
    after = 100.0 * calibration_error(_cross_fitted(z, labels, direction, weights), labels, weights)
    slope, share = fit(z, labels, direction, weights)
    if (slope, share) == (1.0, 0.0):  # then nothing is changed, whatever a fit to some of the labels would do
        after = before
    return Calibration(
        temperature=1.0 / slope,
        correction=tuple((share * direction).tolist()),
        prior_correction=share,
        error_before=before,
        error_after=after,
        examples=len(labels),
    )


def fit(logits: Tensor, labels: Tensor, direction: Tensor, weights: Tensor) -> tuple[float, float]:
    """(s, α) of the highest posterior density in (log s, α), or (1, 0) where the labels hardly prefer it to that.

    α stays between none and all of the labelling bias: beyond them it would fit noise. The weights are scaled to the
    number of equally weighted labels that would be as informative.
    """
    from scipy.optimize import minimize

    weights = weights * effective_sample_size(weights) / weights.sum()
    features = torch.stack((logits, direction.expand_as(logits)))  # (2, n, C): the calibrated logits are linear in them
    at_label = features.gather(2, labels.expand(2, -1).unsqueeze(2)).squeeze(2)  # (2, n)

    def log_likelihood(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """By (log s, α), with its gradient."""
        slope, share = float(np.exp(theta[0])), float(theta[1])
        calibrated = slope * features[0] + share * features[1]
        each = slope * at_label[0] + share * at_label[1] - calibrated.logsumexp(1)
        surplus = at_label - (calibrated.softmax(1) * features).sum(2)
        by_slope, by_share = (surplus @ weights).tolist()
        return float(weights @ each), np.array([slope * by_slope, by_share])

    def objective(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = log_likelihood(theta)
        return 0.5 * _PRECISION * float(theta @ theta) - value, _PRECISION * theta - gradient

    unchanged, bounds = np.zeros(2), [(None, None), (0.0, 1.0)]
    ends = {"gtol": 1e-10, "ftol": 1e-16}
    theta = minimize(objective, unchanged, jac=True, method="L-BFGS-B", bounds=bounds, options=ends).x
    if log_likelihood(theta)[0] - log_likelihood(unchanged)[0] < _LEAST_GAIN:
        return 1.0, 0.0
    return float(np.exp(theta[0])), float(theta[1])


def calibration_error(probabilities: Tensor, labels: Tensor, weights: Tensor, bins: int = BINS) -> float:
    """Expected calibration error of the predicted class: |confidence − accuracy|, averaged over bins of confidence."""
    confidence, predicted = probabilities.max(1)
    right = (predicted == labels).to(weights.dtype)
    # (0, 1/bins], (1/bins, 2/bins], …
    index = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gaps = torch.zeros(bins, dtype=weights.dtype).index_add_(0, index, weights * (confidence - right))
    return float(gaps.abs().sum() / weights.sum())


def _cross_fitted(logits: Tensor, labels: Tensor, direction: Tensor, weights: Tensor) -> Tensor:
    """Calibrated probabilities of each row from a fit to the other folds."""
    fold = torch.arange(len(labels)) % FOLDS
    result = torch.empty_like(logits)
    for number in range(FOLDS):
        inside, outside = fold == number, fold != number
        if not outside.any():  # a single label, which nothing is fitted to
            result[inside] = F.softmax(logits[inside], dim=1)
            continue
        slope, share = fit(logits[outside], labels[outside], direction, weights[outside])
        result[inside] = F.softmax(slope * logits[inside] + share * direction, dim=1)
    return result
