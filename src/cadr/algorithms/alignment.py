"""Distribution alignment (Berthelot et al., "ReMixMatch", ICLR 2020), as a modifier of methods that impute.

A prediction p is replaced by p · target / P̂, normalised, before pseudo-labels are read off, so that on average the
predictions follow the target. The published target is the distribution of the labels, which under non-random missing
labels is the very bias; uniform is the one to compare with there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from cadr.algorithms.base import Batch, Facts, State, check_belonging, check_choice, target_distribution
from cadr.algorithms.imputation import Imputation
from cadr.utils.options import option

_SMALL = 1e-6  # keeps the ratio of target and P̂ finite


@dataclass(frozen=True)
class Aligned(Imputation):
    """Predictions are aligned with a class distribution."""

    alignment: Literal["none", "uniform", "labelled", "given"] = option(
        "none", "Align predictions with a class distribution before pseudo-labels are read off."
    )
    target_prior: tuple[float, ...] | Literal["estimated"] = option(
        (),
        "The class distribution of --alignment given, one number per class, or 'estimated' while training goes on.",
        belongs_to=("alignment", "given"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("alignment", self.alignment, "none", "uniform", "labelled", "given")
        check_belonging(self)

    def init(self, facts: Facts) -> State:
        counts = facts.labelled_counts
        labelled = self.alignment == "labelled"
        target = counts / counts.sum() if labelled else target_distribution(self.target_prior, facts.num_classes)
        return {**super().init(facts), **self.towards(target)}

    def towards(self, target: Tensor) -> State:
        return {"target": target}

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        return self.aligned(super().predict(weak, batch, state), state)

    def aligned(self, predicted: Tensor, state: State) -> Tensor:
        return predicted if self.alignment == "none" else align(predicted, state["target"], state["prior"])


def align(predicted: Tensor, target: Tensor, mean: Tensor) -> Tensor:
    """p · target / mean, normalised, where `mean` is what predictions are on average."""
    aligned = predicted * ((target + _SMALL) / (mean + _SMALL))
    return aligned / aligned.sum(1, keepdim=True)
