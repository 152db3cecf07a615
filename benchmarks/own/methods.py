"""The methods of `own_data.py`: functions of a task to class probabilities of its unlabelled rows.

A new one is a function and a line in a table; it sees what somebody with half-labelled data has, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from cadr.classifier import CADRClassifier
from cadr.data.pool import Pool
from cadr.ensemble.fit import fit_ensemble
from cadr.training.feed import Inputs

Probabilities = NDArray[np.float64]  # (unlabelled rows, classes)


class Task(NamedTuple):
    """Rows of features and their labels, −1 where there is none."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    classes: int
    seed: int


Method = Callable[[Task], Probabilities]


def _supervised(make: Callable[[int], Any]) -> Method:
    """A classifier of scikit-learn on the labelled rows."""

    def method(task: Task) -> Probabilities:
        known = task.y >= 0
        return np.asarray(make(task.seed).fit(task.X[known], task.y[known]).predict_proba(task.X[~known]))

    return method


def _semi_supervised(make: Callable[[int], Any]) -> Method:
    """A classifier that is given all rows."""

    def method(task: Task) -> Probabilities:
        model = make(task.seed).fit(task.X, task.y)
        return np.asarray(model.predict_proba(task.X[task.y < 0]))

    return method


def _spreading(neighbours: int) -> Method:
    """LabelSpreading; a row that no label reaches gets equal probabilities."""

    def method(task: Task) -> Probabilities:
        X = StandardScaler().fit_transform(task.X)
        with np.errstate(divide="ignore", invalid="ignore"):
            model = LabelSpreading(kernel="knn", n_neighbors=min(neighbours, len(X) - 1), max_iter=100).fit(X, task.y)
        found = np.asarray(model.label_distributions_)[task.y < 0]
        return np.where(np.isfinite(found).all(1, keepdims=True), found, 1 / task.classes)

    return method


def _logistic(balanced: bool, C: float = 1.0) -> Any:
    weight = "balanced" if balanced else None
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, class_weight=weight, max_iter=1000))


def _self_training(seed: int) -> Any:
    inner = LogisticRegression(class_weight="balanced", max_iter=1000)
    return make_pipeline(StandardScaler(), SelfTrainingClassifier(inner))


SIMPLE: dict[str, Method] = {
    "logistic": _supervised(lambda seed: _logistic(False)),
    "logistic_balanced": _supervised(lambda seed: _logistic(True)),
    "forest_balanced": _supervised(
        lambda seed: RandomForestClassifier(300, class_weight="balanced_subsample", random_state=seed)
    ),
    "boosting_balanced": _supervised(
        lambda seed: HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)
    ),
    "self_training": _semi_supervised(_self_training),
    "spreading_7": _spreading(7),
    "spreading_20": _spreading(20),
}
# Stronger penalties: not among the seven, but they say how much of a lead is only that.
PENALISED: dict[str, Method] = {
    "logistic_balanced_0.1": _supervised(lambda seed: _logistic(True, 0.1)),
    "logistic_balanced_0.01": _supervised(lambda seed: _logistic(True, 0.01)),
}


def _ours(algorithm: str) -> Method:
    return _semi_supervised(lambda seed: CADRClassifier(algorithm, device="cpu", random_state=seed))


def ensemble(task: Task) -> Probabilities:
    """What is fitted to people's own data unless they ask for another method: `CADRClassifier()` without its folder."""
    names = tuple(map(str, range(task.classes)))
    inputs = Inputs.of(Pool(task.X, task.y, names, "X"), torch.device("cpu"))
    assert inputs.scale is not None
    scale = inputs.scale.double().numpy()
    return fit_ensemble(inputs.examples.numpy(), task.y, scale, task.classes, task.seed).probabilities()[task.y < 0]


NETWORKS = ("cadr", "cap_cai", "cadr_resampling", "fixmatch")
OURS: dict[str, Method] = {"ensemble": ensemble} | {name: _ours(name) for name in NETWORKS}
METHODS: dict[str, Method] = SIMPLE | PENALISED | OURS
