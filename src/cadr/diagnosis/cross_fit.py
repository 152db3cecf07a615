"""Out-of-fold class probabilities for every row, labelled or not, from a linear classifier trained on the labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.diagnosis.features import Features

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

FOLDS = 5
INVERSE_RIDGE = 10.0  # C of the logistic regression: much more regularisation doubles the error of the shares
TRAINING_LABELS = 50_000
ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class CrossFit:
    labelled: Floats  # (n, C): probabilities of the labelled rows
    unlabelled: Floats  # (m, C)
    fold_labelled: Rows  # (n,)
    fold_unlabelled: Rows  # (m,)
    trained_on: NDArray[np.bool_]  # (n,): the labelled rows that took part in training, capped class by class


def cross_fit(
    features: Features,
    labelled: Rows,
    labels: Rows,
    unlabelled: Rows,
    random: np.random.Generator,
    hold_out_single: bool = False,
    weights: Floats | None = None,
    folds: Rows | None = None,
) -> CrossFit:
    """Every row of a fold is scored by the classifier of the other folds; `labels` are 0 … C − 1, each there.

    A labelled row counts as often in training as its weight says. `folds` are those of the labelled rows, where they
    are not to be drawn.

    A class with a single label always stays in training, or one classifier would not know the class. But then that
    label's own score is better than those of rows without a label: to compare the two, hold it out like the others. The
    class has no probability in its fold then.
    """
    counts = np.bincount(labels)
    fold = _spread_over_folds(labels, random) if folds is None else folds
    other_fold = random.permutation(np.arange(len(unlabelled)) % FOLDS)
    kept = _capped(labels, TRAINING_LABELS, random)
    x, y, fold_kept = features[labelled[kept]], labels[kept], fold[kept]
    always = (counts[y] == 1) & (not hold_out_single)
    models = []
    for k in range(FOLDS):
        chosen = (fold_kept != k) | always
        models.append(_classifier(x[chosen], y[chosen], None if weights is None else weights[kept][chosen]))
    return CrossFit(
        labelled=_score(models, features, labelled, fold, len(counts)),
        unlabelled=_score(models, features, unlabelled, other_fold, len(counts)),
        fold_labelled=fold,
        fold_unlabelled=other_fold,
        trained_on=kept,
    )


def unflagged() -> np.errstate:
    """Around products that scikit-learn makes of numbers it has found finite.

    In one process of many, every such product raised the processor's flag of an invalid value, of which NumPy warns;
    the same tests pass in all others.
    """
    return np.errstate(invalid="ignore")


def logistic_regression(
    x: NDArray[np.float32], y: NDArray[Any], weights: Floats | None = None, inverse_ridge: float = INVERSE_RIDGE
) -> Any:
    """A fitted scikit-learn classifier; that it stopped before the last digit is no news."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings(), unflagged():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=inverse_ridge, max_iter=ITERATIONS).fit(x, y, weights)


def _classifier(x: NDArray[np.float32], y: Rows, weights: Floats | None) -> Any:
    if (y == y[0]).all():  # of one class, which a logistic regression refuses
        from sklearn.dummy import DummyClassifier

        return DummyClassifier().fit(x, y)
    return logistic_regression(x, y, weights)


def _score(models: list[Any], features: Features, rows: Rows, fold: Rows, num_classes: int) -> Floats:
    scores = np.zeros((len(rows), num_classes))
    for where, x in features.parts(rows):
        for k, model in enumerate(models):
            mine = np.flatnonzero(fold[where] == k)
            if len(mine):
                with unflagged():
                    scores[where][np.ix_(mine, model.classes_)] = model.predict_proba(x[mine])
    return scores


def _spread_over_folds(labels: Rows, random: np.random.Generator) -> Rows:
    """A fold for each row; the rows of a class are dealt out in turn, so that no two folds differ by more than one."""
    order = np.lexsort((random.random(len(labels)), labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % FOLDS
    return fold


def _capped(labels: Rows, limit: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """At most `limit` rows in all: the largest classes give up rows, the small ones keep every label."""
    counts = np.bincount(labels)
    if counts.sum() <= limit:
        return np.ones(len(labels), dtype=np.bool_)
    low, high = 1, int(counts.max())
    while low < high:  # the largest number per class that keeps within the limit
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() <= limit else (low, middle - 1)
    order = np.lexsort((random.random(len(labels)), labels))
    place = np.empty(len(labels), dtype=np.int64)
    place[order] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(place < low)
