"""Re-weighting of the labelled rows by class: inverse counts, or effective numbers (Cui et al., CVPR 2019).

The weights add up to the number of classes, as theirs do, and so their mean over the labelled rows is less than one
where the labels are imbalanced: C² / (n Σ_c 1/N_c) for inverse counts, 0.28 for the 143 labels of γ = 50. The labelled
loss then counts for that much less beside the unlabelled one than it does in FixMatch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cadr.algorithms.base import Facts, State, Terms, check_choice, check_range
from cadr.algorithms.cadr import CADR
from cadr.algorithms.fixmatch import FixMatch
from cadr.algorithms.imputation import Predictions, Rebalanced
from cadr.functional import cross_entropy
from cadr.utils.options import option


@dataclass(frozen=True)
class Reweighted(Rebalanced):
    """The cross-entropy of a labelled row counts w_c times, where w falls with the labels of its class."""

    weighting: Literal["inverse", "effective"] = option(
        "inverse", "Weights 1/N_c, or one over the effective number of labels, (1 − b^N_c) / (1 − b)."
    )
    effective_beta: float = option(0.9999, "b of the effective number; 0 weights all classes alike.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weighting", self.weighting, "inverse", "effective")
        check_range("effective_beta", self.effective_beta, 0.0, 1.0 - 1e-9)

    def init(self, facts: Facts) -> State:
        return {**super().init(facts), "class_weights": self.class_weights(facts.labelled_counts)}

    def class_weights(self, counts: Tensor) -> Tensor:
        """(C,) w, which adds up to C; a class without labels has no row to weight."""
        numbers = counts.double()
        if self.weighting == "effective":
            numbers = 1.0 - self.effective_beta**numbers
        weights = torch.where(counts > 0, 1.0 / numbers, 0.0)
        return (len(counts) * weights / weights.sum()).to(torch.float32)

    def supervised(self, step: Predictions) -> Terms:
        weights = step.state["class_weights"][step.labels]
        return {"supervised": (weights * cross_entropy(step.labelled, step.labels)).mean()}


@dataclass(frozen=True)
class Reweighting(Reweighted, FixMatch):
    """FixMatch with re-weighted labelled rows: the paper's row."""


@dataclass(frozen=True)
class ReweightedCADR(Reweighted, CADR):
    """CADR with re-weighted labelled rows."""
