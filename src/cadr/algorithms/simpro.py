"""SimPro (Du, Han and Huang, "SimPro: A Simple Probabilistic Framework Towards Realistic Long-Tailed Semi-Supervised
Learning", ICML 2024): EM in which the class distribution of the unlabelled data is a parameter like any other.

Pseudo-labels come from f + τ log π_u; the losses are of f + τ log π, π being that of all rows seen; f itself, for
balanced classes, is what is tested.

That every row weighs the same, labelled or not, is the derivation's, and in the published settings gives the labelled
loss a weight of 0.23 to 1. A few labels among very many rows would get next to none (0.02 for 143 of 50,000 at a ratio
of 7), and with so little to hold on to the estimated distributions drift off and classes are lost; so the weight never
falls below the least published one.

Where the model is unsure, f + τ log π comes to log π, and f to (1 − τ) log π: with the published τ = 2 a class is
preferred in proportion as its labels are rare, and with few labels that becomes pseudo-labels. τ = 1 prefers none.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.algorithms.base import Batch, Facts, State, Terms, check_range
from cadr.algorithms.imputation import Imputation, Predictions
from cadr.algorithms.mixing import one_hot
from cadr.estimate.prior import uniform_prior
from cadr.functional import cross_entropy, predictions, thresholds
from cadr.utils.options import VIEWS, option

_SMALL = 1e-12  # the published floor under a logarithm


@dataclass(frozen=True)
class SimPro(Imputation):
    """Soft pseudo-labels, and class distributions that are estimated from them at intervals."""

    threshold: float = option(0.95, "Confidence above which a pseudo-label is used.")
    tau: float = option(2.0, "Strength of the logit adjustment (τ); 0 is none.")
    updates: int = option(86, "How often in a run the class distributions are updated.")
    update_momentum: float = option(0.9, "Share of the old distribution that an update keeps.")
    least_labelled_weight: float = option(
        0.23, "The labelled loss weighs at least this; 0 for rows that all weigh alike."
    )
    labelled_views: int = option(2, "Views of each labelled example: a weak one, and strong ones.")
    strong_views: int = option(2, "Strong views of each unlabelled example.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("threshold", self.threshold, 0.0, 1.0)
        check_range("updates", self.updates, 1, float("inf"))
        check_range("update_momentum", self.update_momentum, 0.0, 1.0)
        check_range("least_labelled_weight", self.least_labelled_weight, 0.0, float("inf"))
        check_range("labelled_views", self.labelled_views, 1, VIEWS)
        check_range("strong_views", self.strong_views, 1, VIEWS)

    def init(self, facts: Facts) -> State:
        counts = facts.labelled_counts.to(torch.float32)
        return {
            **super().init(facts),
            "unlabelled_prior": uniform_prior(facts.num_classes),
            "mixed_prior": counts / counts.sum(),
            "counted_unlabelled": torch.zeros_like(counts),
            "counted_labelled": torch.zeros_like(counts),
            "period": torch.tensor(max(1, facts.steps // self.updates)),
            "labels_per_row": counts.sum() / facts.num_unlabelled,
        }

    def class_thresholds(self, state: State) -> Tensor:
        return thresholds(state["prior"], self.threshold, beta=0.0)

    def adjustment(self, prior: Tensor) -> Tensor:
        return torch.log(prior**self.tau + _SMALL)

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        return predictions(weak + self.adjustment(state["unlabelled_prior"]))

    def terms(self, step: Predictions) -> Terms:
        """A labelled row weighs as much as an unlabelled one, however often either is drawn; or more, see above."""
        adjustment = self.adjustment(step.state["mixed_prior"])
        once = step.state["labels_per_row"] * (step.weak.shape[0] / step.labels.shape[0])
        weight = once.clamp(min=self.least_labelled_weight)
        labels = step.labels.repeat(step.labelled.shape[0] // step.labels.shape[0])
        views = step.strong.shape[0] // step.weak.shape[0]
        unlabelled = cross_entropy(step.strong + adjustment, step.predicted.repeat(views, 1))
        return {
            "supervised": weight * cross_entropy(step.labelled + adjustment, labels).mean(),
            "unlabelled": self.lambda_u * (step.imputed.mask.repeat(views) * unlabelled).mean(),
        }

    def conclude(self, step: Predictions, state: State) -> State:
        """Add up soft pseudo-labels and labels; at the end of a period they move the distributions."""
        soft = state["counted_unlabelled"] + (step.imputed.mask.unsqueeze(1) * step.predicted).sum(0)
        hard = state["counted_labelled"] + one_hot(step.labels, step.predicted).sum(0)
        due = (step.batch.step + 1) % state["period"] == 0
        rate = 1.0 - self.update_momentum
        unlabelled = torch.lerp(state["unlabelled_prior"], soft / (soft.sum() + 1.0), rate)
        mixed = torch.lerp(state["mixed_prior"], (soft + hard) / (soft + hard).sum(), rate)
        return {
            **state,
            "unlabelled_prior": torch.where(due, unlabelled, state["unlabelled_prior"]),
            "mixed_prior": torch.where(due, mixed, state["mixed_prior"]),
            "counted_unlabelled": torch.where(due, 0.0, soft),
            "counted_labelled": torch.where(due, 0.0, hard),
        }
