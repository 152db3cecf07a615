"""Methods that are fitted in one go, by the names under which they are chosen: the ensemble, and each learner alone.

They stand beside the algorithms that train a network, and have no steps, batches, views or model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from cadr.algorithms.base import target_distribution
from cadr.utils.options import check_numbers, option


@dataclass(frozen=True)
class Ensemble:
    """Simple learners with class-aware imputation, stacked by cross-fitting."""

    target_prior: tuple[float, ...] = option((), "class shares of all rows, if they are known (default: estimated)")

    members: ClassVar[tuple[str, ...]] = ()  # all that suit the data
    renamed: ClassVar[tuple[str, ...]] = ()
    rotates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_numbers(self)

    def aimed_at(self, num_classes: int) -> Tensor | None:
        """(C,) the class shares that were given; without any they are estimated."""
        return target_distribution(self.target_prior, num_classes).to(torch.float64) if self.target_prior else None


@dataclass(frozen=True)
class LogisticRegression(Ensemble):
    """Logistic regression on the labels, all classes alike, with predictions corrected to the estimated shares."""

    members = ("logistic",)


@dataclass(frozen=True)
class ImputedLogistic(Ensemble):
    """Logistic regression in rounds of class-aware imputation."""

    members = ("imputed_logistic",)


@dataclass(frozen=True)
class LinearDiscriminant(Ensemble):
    """Linear discriminant analysis in rounds of class-aware imputation."""

    members = ("discriminant",)


@dataclass(frozen=True)
class LabelPropagation(Ensemble):
    """Labels that spread over the graph of nearest neighbours."""

    members = ("propagation",)


@dataclass(frozen=True)
class RandomForest(Ensemble):
    """A random forest in rounds of class-aware imputation."""

    members = ("forest",)


INSTANT: dict[str, type[Ensemble]] = {
    "ensemble": Ensemble,
    "logistic": LogisticRegression,
    "imputed_logistic": ImputedLogistic,
    "discriminant": LinearDiscriminant,
    "propagation": LabelPropagation,
    "forest": RandomForest,
}
