"""Any classifier of scikit-learn as a learner, so that class-aware imputation works around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter
from torch import nn

from cadr.ensemble.learners import Fitted, Floats, Matrix, Rows
from cadr.errors import ConfigError

FLOOR = 1 / 300  # of a probability: a tree may say 0 of a class that it has hardly seen
_COPIES = 2  # rows that are drawn for every row there is, where a classifier takes no weights


@dataclass(frozen=True)
class Estimator:
    """It takes the likeliest class of an imputed row for its label.

    Weights go to its `fit`, or to that of a pipeline's last step; where that takes none, rows are repeated instead.
    """

    estimator: Any
    density = False
    unlabelled_weight = None

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "predict_proba"):
            called = self.estimator.__name__ if isinstance(self.estimator, type) else type(self.estimator).__name__
            hint = " (the class; give an instance)" if isinstance(self.estimator, type) else ""
            raise ConfigError(
                "estimator must be a classifier with predict_proba, as those of scikit-learn are, such as "
                f"HistGradientBoostingClassifier(), got {called}{hint}."
            )

    def fit(self, x: Matrix, targets: Floats, weights: Floats, start: Fitted | None = None) -> EstimatorScores:
        labels, model = targets.argmax(1), clone(self.estimator)
        name = _weight_name(model)
        if name:
            fitted = model.fit(x, labels, **{name: weights})
        else:
            rows = repeated(weights, _COPIES * len(labels))
            fitted = model.fit(x[rows], labels[rows])
        return EstimatorScores(fitted, targets.shape[1])


def _weight_name(model: Any) -> str:
    """What its `fit` calls the weights of rows; blank if it takes none."""
    if isinstance(model, Pipeline):
        step, last = model.steps[-1]
        return f"{step}__sample_weight" if has_fit_parameter(last, "sample_weight") else ""
    return "sample_weight" if has_fit_parameter(model, "sample_weight") else ""


def repeated(weights: Floats, number: int) -> Rows:
    """So many rows, each as often as its weight asks, rounded up or down."""
    edges = np.cumsum(weights)
    places = (np.arange(number) + 0.5) / number * edges[-1]
    return np.asarray(np.minimum(np.searchsorted(edges, places), len(weights) - 1), dtype=np.int64)


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
            f"A model around {type(self.fitted).__name__} cannot be kept in a run folder or exported: that would take "
            "a pickle, which can execute code; keep the fitted CADRClassifier, or name an algorithm, such as forest."
        )
