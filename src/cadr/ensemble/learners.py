"""What a learner is: it fits soft labels with weights, and scores rows class by class."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Matrix = NDArray[np.float32]

FITTING = "the ensemble of simple learners"  # what scipy and scikit-learn are needed for: networks train without


class Fitted(Protocol):
    """A fitted learner."""

    def scores(self, x: Matrix) -> Floats:
        """(n, C) logarithms of class probabilities, or of densities, each row up to a number of its own."""
        ...

    def module(self) -> nn.Module:
        """The same scores, as a module without state of its own beside its buffers."""
        ...


class Learner(Protocol):
    """Settings that can be fitted."""

    @property
    def density(self) -> bool:
        """Whether scores are those of densities, into which class shares do not enter."""
        ...

    @property
    def unlabelled_weight(self) -> float | None:
        """Of an imputed row, where a labelled one has 1; None: all imputed rows together weigh as the labels."""
        ...

    def fit(self, x: Matrix, targets: Floats, weights: Floats, start: Fitted | None = None) -> Fitted:
        """From rows (n, d) with class probabilities (n, C) and weights (n,); `start` is a fit to begin with."""
        ...


def one_hot(labels: Rows, num_classes: int) -> Floats:
    return np.asarray(np.eye(num_classes)[labels])


def class_weights(labels: Rows, shares: Floats, given: Floats | None = None) -> Floats:
    """Weights of labelled rows, 1 in the mean, that give the classes their `shares`: inverse propensities.

    Rows that have weights already, `given` (n,), keep their sum and, within a class, their ratios.
    """
    if given is not None:
        share_each = shares / np.maximum(np.bincount(labels, given, minlength=len(shares)), 1e-12)
        weights = share_each[labels] * given
        return np.asarray(weights / weights.sum() * given.sum())
    weights = (shares / np.maximum(np.bincount(labels, minlength=len(shares)), 1))[labels]
    return np.asarray(weights / weights.mean())
