"""What the estimates rest on, looked at: does the class explain who is labelled, and is there a class nobody labelled?

Both checks weight the labelled rows so that their classes have the shares estimated for the unlabelled rows. Under the
assumption that missingness depends on the class alone, the two sides then look alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]

SUSPICIOUS_AUC = 0.58  # a study found at most 0.574 where the class alone decides, with hundreds of labels
DOMAIN_SURPRISE = 3.0  # as SURPRISE, chosen on draws that no reported figure uses
DOMAIN_RIDGE = 0.1  # of features at unit scale
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


def domain_check(x: Matrix, labels: Rows, weights: Floats, others: Matrix) -> Check:
    """AUC of a linear discriminant that tells labelled rows `x`, weighted, from unlabelled ones.

    About a half when the class alone decides who is labelled. The weighted labelled rows are few: chance moves the AUC
    by √(1/(12 n)), n being their effective number, and by as much again since the discriminant is made from them too;
    what chance can do is not suspicious.
    """
    from sklearn.metrics import roc_auc_score

    sides = np.concatenate([weights / weights.sum(), np.full(len(others), 1.0 / len(others))]) / 2.0
    groups = np.concatenate([labels, np.full(len(others), labels.max() + 1)])
    labelled = np.arange(len(groups)) < len(x)
    scores = left_out_scores(np.concatenate([x, others], dtype=np.float64), sides, groups, labelled)
    chance = np.sqrt(1.0 / (12.0 * effective_size(weights)))
    auc = float(roc_auc_score(labelled, scores, sample_weight=sides))
    return Check(auc, max(SUSPICIOUS_AUC, 0.5 + DOMAIN_SURPRISE * float(chance)))


def left_out_scores(x: Floats, weights: Floats, groups: Rows, labelled: NDArray[np.bool_]) -> Floats:
    """Each row's score by the ridge discriminant of all *other* rows, those of its group taking over its weight.

    Folds would be drawn, and with few labels the AUC depends on the draw; leaving out every row in turn depends on
    nothing, and is one system of equations. A row whose weight nobody took over would make its side look less like
    itself. If it is alone in its group, all rows take it over.
    """
    x = x - weights @ x
    side = np.where(labelled, weights, -weights)
    solved = x @ np.linalg.inv((x * weights[:, None]).T @ x + DOMAIN_RIDGE * np.eye(x.shape[1]))
    others = np.bincount(groups)[groups] - 1
    sums = np.zeros((int(groups.max()) + 1, x.shape[1]))
    np.add.at(sums, groups, x)
    own = np.einsum("ij,ij->i", solved, x)
    theirs = (np.einsum("ij,ij->i", solved, sums[groups]) - own) / np.maximum(others, 1)
    return np.asarray((solved @ (side @ x) - side * (own - theirs)) / (1.0 - weights * own))


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
