"""FixMatch (Sohn et al., NeurIPS 2020), plain and with distribution alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from cadr.algorithms.alignment import Aligned
from cadr.algorithms.base import Terms
from cadr.algorithms.imputation import Predictions, Thresholded
from cadr.utils.options import option


@dataclass(frozen=True)
class FixMatch(Aligned, Thresholded):
    """Confident predictions on weak views become labels of the strong views."""

    renamed: ClassVar[tuple[str, ...]] = ("prior",)

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)


@dataclass(frozen=True)
class AlignedFixMatch(FixMatch):
    """FixMatch on predictions that are aligned with a class distribution; without alignment it is FixMatch."""

    alignment: Literal["none", "uniform", "labelled", "given"] = option(
        "uniform", "Align predictions with a class distribution before pseudo-labels are read off."
    )
