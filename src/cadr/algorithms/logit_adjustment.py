"""Logit adjustment (Menon et al., "Long-tail learning via logit adjustment", ICLR 2021) of the labelled loss.

Training on f + τ log π_L makes f itself the classifier for balanced classes, were the labelled rows all there is.
Pseudo-labels and tests use f as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cadr.algorithms.base import Facts, State, Terms
from cadr.algorithms.cadr import CADR
from cadr.algorithms.fixmatch import FixMatch
from cadr.algorithms.imputation import Predictions, Rebalanced
from cadr.functional import cross_entropy
from cadr.utils.options import option


@dataclass(frozen=True)
class LogitAdjusted(Rebalanced):
    """Cross-entropy of labelled logits to which τ times the log frequency of each class is added."""

    tau: float = option(1.0, "Strength of the adjustment (τ); 0 is cross-entropy.")

    def init(self, facts: Facts) -> State:
        counts = facts.labelled_counts.to(torch.float32)
        frequencies = (counts / counts.sum()).clamp(min=torch.finfo(torch.float32).tiny)
        return {**super().init(facts), "adjustment": self.tau * frequencies.log()}

    def supervised(self, step: Predictions) -> Terms:
        return {"supervised": cross_entropy(step.labelled + step.state["adjustment"], step.labels).mean()}


@dataclass(frozen=True)
class LogitAdjustment(LogitAdjusted, FixMatch):
    """FixMatch with an adjusted labelled loss: the paper's "LA loss"."""


@dataclass(frozen=True)
class LogitAdjustedCADR(LogitAdjusted, CADR):
    """CADR with an adjusted labelled loss."""
