"""What the estimates rest on, looked at: does the class explain who is labelled, and is there a class nobody labelled?

Both checks weight the labelled rows so that their classes have the shares estimated for the unlabelled rows. Under the
assumption that missingness depends on the class alone, the two sides then look alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadr.evaluate.diagnosis_crossfit import FOLDS, logistic_regression, unflagged

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]

SUSPICIOUS_AUC = 0.62
DOMAIN_INVERSE_RIDGE = 1.0
FAR = 0.9  # a row is far from the labels when it is farther than this share of the reweighted labelled rows
SURPRISE = 2.5  # standard errors above what is expected: with few labels chance alone goes far


@dataclass(frozen=True)
class Check:
    value: float
    limit: float  # what the value stays below as long as nothing is wrong


def class_weights(labels: Rows, share: Floats, least: int = 1) -> Floats:
    """Weights of the labelled rows, summing to one, that give the classes these shares; under `least` labels none."""
    counts = np.bincount(labels, minlength=len(share))
    per_row = np.where(counts >= least, share, 0.0) / np.maximum(counts, 1)
    return np.asarray(per_row[labels] / per_row[labels].sum())


def effective_size(weights: Floats) -> float:
    """(Σw)² / Σw² (Kish): how many equally weighted rows would be as informative."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def domain_check(x: Matrix, weights: Floats, fold: Rows, others: Matrix, other_fold: Rows) -> Check:
    """Out-of-fold AUC of a classifier that tells labelled rows `x`, weighted, from unlabelled ones.

    About a half when the class alone decides who is labelled. The weighted labelled rows are few: chance moves the AUC
    by √(1/(12 n)), n being their effective number, and what chance can do is not suspicious.
    """
    from sklearn.metrics import roc_auc_score

    both, folds = np.concatenate([x, others]), np.concatenate([fold, other_fold])
    labelled = np.arange(len(both)) < len(x)
    w = np.concatenate([weights / weights.sum(), np.full(len(others), 1.0 / len(others))]) * (len(both) / 2)
    scores = np.empty(len(both))
    for k in range(FOLDS):
        inside = folds == k
        model = logistic_regression(both[~inside], labelled[~inside], w[~inside], DOMAIN_INVERSE_RIDGE)
        if inside.any():
            with unflagged():
                scores[inside] = model.decision_function(both[inside])
    chance = np.sqrt(1.0 / (12.0 * effective_size(weights)))
    auc = float(roc_auc_score(labelled, scores, sample_weight=w))
    return Check(auc, max(SUSPICIOUS_AUC, 0.5 + SURPRISE * float(chance)))


def distance_check(x: Matrix, weights: Floats, others: Matrix) -> Check:
    """The share of unlabelled rows that are far from every label, where 1 − FAR is expected.

    "Far" is measured by the distance of labelled rows to the nearest *other* label. Finds a class that nobody labelled
    when the labels are dense; with few labels, or a class like another, it finds nothing.
    """
    own = np.sqrt(_nearest(x, x, itself=True))
    order = np.argsort(own)
    reached = np.cumsum(weights[order]) / weights.sum()
    far = own[order][min(int(np.searchsorted(reached, FAR)), len(own) - 1)]
    expected = 1.0 - FAR
    chance = np.sqrt(expected * FAR / effective_size(weights))
    found = float((np.sqrt(_nearest(others, x, itself=False)) > far).mean())
    return Check(found, expected + SURPRISE * float(chance))


def _nearest(rows: Matrix, among: Matrix, itself: bool) -> NDArray[np.float32]:
    """Squared distance to the nearest of `among`, some rows at a time; a row is not its own neighbour."""
    squares = (among**2).sum(1)
    nearest = np.empty(len(rows), dtype=np.float32)
    step = max(1, (1 << 22) // len(among))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        distance = (part**2).sum(1)[:, None] + squares - 2.0 * part @ among.T
        if itself:
            distance[np.arange(len(part)), start + np.arange(len(part))] = np.inf
        nearest[start : start + len(part)] = distance.min(1)
    return np.maximum(nearest, 0.0)
