"""Small real problems whose labels are missing by class."""

from typing import NamedTuple

import numpy as np
from sklearn import datasets


class Problem(NamedTuple):
    x: np.ndarray  # standardised, float32
    labels: np.ndarray  # −1 where missing
    truth: np.ndarray
    scale: np.ndarray
    classes: int

    @property
    def missing(self):
        return self.labels < 0

    def accuracy(self, probabilities):
        """Of the rows without a label."""
        return float((probabilities.argmax(1) == self.truth)[self.missing].mean())


def biased(name="digits", counts=(40, 30, 22, 16, 12, 9, 7, 5, 4, 3), seed=0, rows=None):
    """So many labels of the classes, in their order."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(len(y))[:rows])
    X, y = X[chosen].astype(np.float32), y[chosen]
    labels = np.full(len(y), -1)
    for c, count in enumerate(counts):
        some = random.permutation(np.flatnonzero(y == c))[:count]
        labels[some] = c
    scale = X.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    return Problem(((X - X.mean(0)) / scale).astype(np.float32), labels, y, scale.astype(np.float64), len(counts))
