"""Anchoring: labelled rows are learned in strong views as well as in a weak one.

A handful of labelled rows is soon known by heart in its weak views, and from then on teaches nothing: the name of a
class with one label is left to its pseudo-labels, and CADR's supplement, which predicts the labelled rows, cancels CAP.
Strong views of the same rows stay hard, and hold the names where the labels are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cadr.algorithms.base import Terms, check_range
from cadr.algorithms.cadr import CADR, CAPCAI
from cadr.algorithms.fixmatch import FixMatch
from cadr.algorithms.imputation import Predictions, Rebalanced
from cadr.utils.options import VIEWS, option


@dataclass(frozen=True)
class Anchored(Rebalanced):
    """The supervised term is the mean over the views of the labelled rows; all other terms see the weak one alone."""

    labelled_views: int = option(2, "Views of each labelled example: a weak one, and strong ones; 1 is none of these.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("labelled_views", self.labelled_views, 1, VIEWS)

    def terms(self, step: Predictions) -> Terms:
        views = [step._replace(labelled=view) for view in step.labelled.chunk(self.labelled_views)]
        terms = super().terms(views[0])  # type: ignore[safe-super]  # a modifier comes before a whole method
        each = [terms["supervised"], *(self.supervised(view)["supervised"] for view in views[1:])]
        return terms | {"supervised": torch.stack(each).mean()}


@dataclass(frozen=True)
class Anchoring(Anchored, FixMatch):
    """FixMatch with anchored labels."""


@dataclass(frozen=True)
class AnchoredCAPCAI(Anchored, CAPCAI):
    """CAP + CAI with anchored labels."""


@dataclass(frozen=True)
class AnchoredCADR(Anchored, CADR):
    """CADR with anchored labels."""
