"""Any classifier of scikit-learn as a learner, so that class-aware imputation works around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter
from torch import nn

from cadr.ensemble.learners import Fitted, Floats, Matrix
from cadr.errors import ConfigError

FLOOR = 1 / 300  # of a probability: a tree may say 0 of a class that it has hardly seen


@dataclass(frozen=True)
class Estimator:
    """It takes the likeliest class of an imputed row for its label, and weights."""

    estimator: Any
    density = False
    unlabelled_weight = None

    def __post_init__(self) -> None:
        if not hasattr(self.estimator, "predict_proba") or not has_fit_parameter(self.estimator, "sample_weight"):
            raise ConfigError(
                "estimator must be a classifier with predict_proba whose fit takes sample_weight, as those of "
                f"scikit-learn do, got {type(self.estimator).__name__}."
            )

    def fit(self, x: Matrix, targets: Floats, weights: Floats, start: Fitted | None = None) -> EstimatorScores:
        fitted = clone(self.estimator).fit(x, targets.argmax(1), sample_weight=weights)
        return EstimatorScores(fitted, targets.shape[1])


@dataclass(frozen=True, eq=False)
class EstimatorScores:
    fitted: Any
    num_classes: int

    def scores(self, x: Matrix) -> Floats:
        found = np.zeros((len(x), self.num_classes))
        found[:, self.fitted.classes_] = self.fitted.predict_proba(x)
        return np.log(found + FLOOR)

    def module(self) -> nn.Module:
        raise ConfigError(
            f"A run with {type(self.fitted).__name__} of one's own cannot be kept in a folder or exported; keep the "
            "fitted CADRClassifier, or name an algorithm such as forest."
        )
