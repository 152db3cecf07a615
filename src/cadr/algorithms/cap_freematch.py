"""CAP on top of FreeMatch, plain and on re-sampled labelled rows (ours).

FreeMatch's thresholds are class-aware already: CAI's with β = 1, and with a τ_o that follows the model. What it lacks
is whatever ties the predictions to the classes' shares, and that is CAP. There is no supplement, which would cancel CAP
as soon as the few labelled rows are learned; re-sampled, the rows of rare classes are seen as often as any others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.algorithms.base import State, Terms
from cadr.algorithms.class_aware import ClassAwarePropensity
from cadr.algorithms.freematch import FreeMatch
from cadr.algorithms.imputation import Predictions
from cadr.algorithms.resampling import Resampled
from cadr.utils.options import option


@dataclass(frozen=True)
class CAPFreeMatch(ClassAwarePropensity, FreeMatch):
    """CAP's term beside FreeMatch's three, with one target: thresholds follow P̂ relative to it, as in CAP + CAI."""

    renamed = FreeMatch.renamed

    momentum: float = option(0.99, "Momentum of the moving averages of predictions and confidence.")

    def class_thresholds(self, state: State) -> Tensor:
        return super().class_thresholds({**state, "prior": state["prior"] / torch.exp(state["log_target"])})

    def terms(self, step: Predictions) -> Terms:
        return FreeMatch.terms(self, step) | self.cap(step, self.marginal(step))


@dataclass(frozen=True)
class ResampledCAPFreeMatch(Resampled, CAPFreeMatch):
    """The same on re-sampled labelled rows."""
