"""Class-aware imputation around any learner: rounds of imputed labels, the surest first, in given class shares.

The first fit sees the labels alone, all classes with the same weight. Then, in each round, the rows without a label
take class probabilities that have the shares in the mean (CAP), sharpened; of every class the surest rows take part,
more of them in each round, so that no class has to pass a threshold that only common classes reach (CAI).
"""

from __future__ import annotations

import numpy as np

from cadr.ensemble.learners import Fitted, Floats, Learner, Matrix, Rows, class_weights, one_hot
from cadr.ensemble.shares import posterior_with_shares

ROUNDS = 8
SHARPNESS = 2.0  # the power that imputed probabilities are raised to


def fit_labels(learner: Learner, x: Matrix, labels: Rows, num_classes: int, weights: Floats | None = None) -> Fitted:
    """A fit to the labelled rows alone, (n,) labels without a missing one, all classes weighing the same."""
    uniform = np.full(num_classes, 1.0 / num_classes)
    return learner.fit(x, one_hot(labels, num_classes), class_weights(labels, uniform, weights))


def fit_imputed(
    learner: Learner,
    x: Matrix,
    labels: Rows,
    unlabelled: Matrix,
    shares: Floats,
    rounds: int = ROUNDS,
    of_labelled: Floats | None = None,
    of_others: Floats | None = None,
) -> Fitted:
    """A fit to labelled rows and to imputed labels of others; `shares` (C,) are the classes' of all rows together.

    `of_labelled` and `of_others` are for how many rows each row counts.
    """
    num_classes = len(shares)
    fitted = fit_labels(learner, x, labels, num_classes, of_labelled)
    if len(unlabelled) == 0:
        rounds = 0
    each = np.ones(len(labels)) if of_labelled is None else of_labelled
    others = np.ones(len(unlabelled)) if of_others is None else of_others
    of_unlabelled = shares_of_unlabelled(shares, labels, others.sum(), of_labelled)
    given, weights = one_hot(labels, num_classes), class_weights(labels, shares, of_labelled)
    if learner.density:
        weights = each
    for number in range(rounds):
        imputed = posterior_with_shares(fitted.scores(unlabelled), of_unlabelled, of_others)
        imputed = imputed**SHARPNESS
        imputed /= imputed.sum(1, keepdims=True)
        sure = surest(imputed, (number + 1) / rounds)
        weight = learner.unlabelled_weight
        if weight is None:
            weight = each.sum() / max(1e-12, others[sure].sum())
        fitted = learner.fit(
            np.vstack([x, unlabelled[sure]]),
            np.vstack([given, imputed[sure]]),
            np.concatenate([weights, weight * others[sure]]),
            fitted,
        )
    return fitted


def neutral(learner: Learner, fitted: Fitted, x: Matrix, shares: Floats | None) -> Floats:
    """Log-likelihoods of the classes, (n, C), up to a number for each row: scores without the shares fitted at."""
    scores = fitted.scores(x)
    if shares is not None and not learner.density:
        scores = scores - np.log(shares)
    return log_softmax(scores)


def surest(probabilities: Floats, share: float) -> np.ndarray:
    """Which rows are among the given share of the surest of the class that they are predicted to be of."""
    best, sureness = probabilities.argmax(1), probabilities.max(1)
    chosen = np.zeros(len(best), dtype=np.bool_)
    for c in range(probabilities.shape[1]):
        of_class = np.flatnonzero(best == c)
        if len(of_class):
            chosen[of_class] = sureness[of_class] >= np.quantile(sureness[of_class], 1.0 - share)
    return chosen


def shares_of_unlabelled(shares: Floats, labels: Rows, unlabelled: float, weights: Floats | None = None) -> Floats:
    """What is left for the rows without a label when all rows have `shares`; no class less than half a row."""
    counts = np.bincount(labels, weights, minlength=len(shares))
    left = np.maximum(shares * (counts.sum() + unlabelled) - counts, 0.5)
    return np.asarray(left / left.sum())


def log_softmax(scores: Floats) -> Floats:
    scores = scores - scores.max(1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(1, keepdims=True)))
