"""DARP (Kim et al., "Distribution Aligning Refinery of Pseudo-label", NeurIPS 2020), on FixMatch.

The predictions of all unlabelled examples are kept, and every few steps replaced by the nearest ones whose class
counts are the target's: min Σ_i KL(q_i ‖ p_i) / H(p_i) with rows that add up to 1 and columns that add up to M. The
dual is climbed as published, by turns: rows are normalised, columns get their sum by Newton's method.

Estimated counts are the most likely ones if the classes look the same among labelled and unlabelled rows. The labels'
shares stand for the mean prediction of the labelled rows, which a network that has fitted them gives them. It has been
trained on its own pseudo-labels too and is overconfident: of a class that it has lost the estimate finds nothing, and
so it has a floor. It remains too close to what is predicted; equal counts are better where they are nearly true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cadr.algorithms import store
from cadr.algorithms.base import (
    Batch,
    Facts,
    State,
    Terms,
    check_belonging,
    check_choice,
    check_range,
    target_distribution,
)
from cadr.algorithms.imputation import Predictions, Thresholded
from cadr.estimate.label_shift import label_shift
from cadr.functional import predictions
from cadr.utils.options import option

_SMALL = 1e-6  # the published floor under probabilities
_NEWTON, _AGAIN = 10, 3  # steps in the first turn and in later ones, which begin close to their end


@dataclass(frozen=True)
class DARP(Thresholded):
    """Pseudo-labels refined to target class counts, over the whole unlabelled set."""

    target: Literal["labelled", "uniform", "given", "estimated"] = option(
        "labelled", "Class counts to refine to: the labels' (as published), equal, given, or estimated from the data."
    )
    target_prior: tuple[float, ...] = option(
        (), "The class distribution of --target given, one number per class.", belongs_to=("target", "given")
    )
    least_share: float = option(0.5, "Estimated counts are at least this part of equal ones.")
    alpha: float = option(2.0, "A class keeps its α·M_c largest probabilities before the refinement.")
    warm_up: float = option(0.4, "Share of the run before the first refinement.")
    refresh_every: int = option(10, "Steps between refinements.")
    iterations: int = option(10, "Turns of rows and columns in a refinement.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("target", self.target, "labelled", "uniform", "given", "estimated")
        check_range("least_share", self.least_share, 0.0, 1.0)
        check_range("alpha", self.alpha, 1.0, float("inf"))
        check_range("warm_up", self.warm_up, 0.0, 1.0)
        check_range("refresh_every", self.refresh_every, 1, float("inf"))
        check_range("iterations", self.iterations, 1, float("inf"))
        check_belonging(self)

    def init(self, facts: Facts) -> State:
        labelled, c = facts.labelled_counts.to(torch.float32) / facts.labelled_counts.sum(), facts.num_classes
        target = labelled if self.target == "labelled" else target_distribution(self.target_prior, c)
        kept = torch.full((facts.num_unlabelled, c), 1.0 / c)
        return {
            **super().init(facts),
            "counts": target * facts.num_unlabelled,
            "labelled": labelled,
            "predictions": kept,
            "refined": kept.clone(),
            "refining": torch.zeros(()),
        }

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        return torch.where(state["refining"] > 0, state["refined"][batch.index], predictions(weak))

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)

    def conclude(self, step: Predictions, state: State) -> State:
        seen = store.remember(state["predictions"], step.batch.index, predictions(step.weak))
        return {**state, "predictions": seen}

    def refresh(self, state: State, done: int, steps: int) -> State:
        if done < self.warm_up * steps:
            return state
        counts = state["counts"]
        if self.target == "estimated" and not state["refining"]:  # once, as the authors do beforehand
            counts = self.estimated(state["predictions"], state["labelled"])
        refined = refine(truncate(state["predictions"], counts, self.alpha), counts, self.iterations)
        return {**state, "counts": counts, "refined": refined, "refining": torch.ones_like(state["refining"])}

    def estimated(self, predicted: Tensor, labelled: Tensor) -> Tensor:
        """Counts by label shift from the labels' shares, none of them below the floor."""
        likely = label_shift(predicted.double().cpu().numpy(), labelled.double().cpu().numpy())
        shares = torch.from_numpy(likely).clamp(min=self.least_share / len(likely)).to(labelled)
        return len(predicted) * shares / shares.sum()


def truncate(predicted: Tensor, counts: Tensor, alpha: float) -> Tensor:
    """Keep the α·M_c largest probabilities of each class, scaled to M_c in all; rows add up to 1 again."""
    rank = predicted.argsort(stable=True, dim=0, descending=True).argsort(0)
    kept: Tensor = predicted * (rank < (alpha * counts).floor())
    scaled = kept * ((counts + _SMALL) / (kept.sum(0) + _SMALL)) + _SMALL
    return scaled / scaled.sum(1, keepdim=True)


def refine(predicted: Tensor, counts: Tensor, iterations: int) -> Tensor:
    """(N, C) the solution q_ic ∝ p_ic exp(−ν_c H_i), rows normalised, with the ν that give the columns their counts.

    In log space throughout, where the column sums are nearly straight lines in ν. The entropies' scale is free, since ν
    takes up its inverse; at a mean of one Newton's steps are of the order of one as well.
    """
    log_p, log_counts = predicted.log(), counts.clamp(min=_SMALL).log()
    entropy = -(predicted * (predicted + _SMALL).log()).sum(1, keepdim=True).clamp(max=-_SMALL)  # (N, 1)
    entropy = entropy / entropy.mean()
    nu = torch.zeros_like(counts)
    for turn in range(iterations):
        rows = log_p - torch.logsumexp(log_p - entropy * nu, 1, keepdim=True)
        for _ in range(_AGAIN if turn else _NEWTON):
            tilted = rows - entropy * nu
            log_sums = torch.logsumexp(tilted, 0)
            # Not torch.softmax, which on a GPU gives a column of any length to one block.
            slope = ((tilted - log_sums).exp() * entropy).sum(0).clamp(min=_SMALL)
            nu = nu + (log_sums - log_counts) / slope
    return torch.softmax(log_p - entropy * nu, 1)
