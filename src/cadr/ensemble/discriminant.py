"""Linear discriminant analysis on soft labels: one Gaussian a class, all with one covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cadr.ensemble.learners import Fitted, Floats, Matrix
from cadr.ensemble.logistic import LinearScores

FIRST_SHRINKAGE = 0.5  # while there are labelled rows only


@dataclass(frozen=True)
class Discriminant:
    """The covariance is shrunk towards a multiple of the identity; `dimensions` are the first principal ones."""

    dimensions: int = 80
    shrinkage: float = 0.2
    density = True
    unlabelled_weight = 1.0  # a row tells as much of the covariance whether its label is given or imputed

    def fit(self, x: Matrix, targets: Floats, weights: Floats, start: Fitted | None = None) -> LinearScores:
        z = x[:, : self.dimensions].astype(np.float64)  # representations have their principal axes first
        mass = targets * weights[:, None]
        of_class = mass.sum(0) + 1e-9
        with np.errstate(invalid="ignore"):
            means = (mass.T @ z) / of_class[:, None]
            second = (z * mass.sum(1, keepdims=True)).T @ z - (means * of_class[:, None]).T @ means
        covariance = second / of_class.sum()
        shrinkage = FIRST_SHRINKAGE if start is None else self.shrinkage
        level = max(float(np.trace(covariance)) / len(covariance), 1e-12)
        covariance = (1.0 - shrinkage) * covariance + shrinkage * level * np.eye(len(covariance))
        kernel = np.linalg.solve(covariance, means.T)  # (d, C)
        padded = np.zeros((x.shape[1], targets.shape[1]))
        padded[: len(kernel)] = kernel
        return LinearScores(padded, -0.5 * (means.T * kernel).sum(0))
