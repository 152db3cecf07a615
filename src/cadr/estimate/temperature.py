"""Bias-corrected temperature scaling (Alexandari, Kundaje and Shrikumar, 2020): softmax(a·log f + b), fitted to labels.

One slope mends over- and under-confidence; the intercepts make the mean prediction fit the class frequencies, without
which label-shift estimates from the recalibrated probabilities are biased.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RIDGE = 10.0  # on b, against a log-loss summed over rows: a class with one label must not buy a huge intercept
SLOPE_RIDGE = 0.01  # on a − 1: predictions without an error would otherwise ask for an infinite slope
FLOOR = 1e-12  # of a probability whose logarithm is needed


class Scaling(NamedTuple):
    slope: float  # a
    intercept: Floats  # b, (C,)

    def apply(self, probabilities: Floats) -> Floats:
        """softmax(a·log f + b), (m, C)."""
        return _softmax(self.slope * np.log(np.maximum(probabilities, FLOOR)) + self.intercept)


def fit_scaling(
    probabilities: Floats, labels: NDArray[np.int64], weights: Floats | None = None, ridge: float = RIDGE
) -> Scaling:
    """a and b that minimise the weighted log-loss plus (ridge/2)·|b|², by Newton's method with step halving.

    A touch of the same on a − 1 keeps the slope finite.
    """
    logs = np.log(np.maximum(probabilities, FLOOR))
    w = np.ones(len(logs)) if weights is None else weights
    theta = np.concatenate([[1.0], np.zeros(logs.shape[1])])
    loss = _loss(theta, logs, labels, w, ridge)
    for _ in range(50):
        gradient, hessian = _derivatives(theta, logs, labels, w, ridge)
        step = np.linalg.solve(hessian, gradient)
        if np.abs(step).max() < 1e-7:
            break
        for _ in range(30):
            new = _loss(theta - step, logs, labels, w, ridge)
            if new <= loss:
                break
            step = step / 2
        else:
            break
        theta, loss = theta - step, new
    return Scaling(float(theta[0]), theta[1:])


def _softmax(logits: Floats) -> Floats:
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(shifted / shifted.sum(1, keepdims=True))


def _loss(theta: Floats, logs: Floats, labels: NDArray[np.int64], w: Floats, ridge: float) -> float:
    logits = theta[0] * logs + theta[1:]
    top = logits.max(1)
    log_sum = top + np.log(np.exp(logits - top[:, None]).sum(1))
    chosen = logits[np.arange(len(labels)), labels]
    penalty = ridge * (theta[1:] ** 2).sum() + SLOPE_RIDGE * (theta[0] - 1.0) ** 2
    return float(w @ (log_sum - chosen) + penalty / 2)


def _derivatives(
    theta: Floats, logs: Floats, labels: NDArray[np.int64], w: Floats, ridge: float
) -> tuple[Floats, Floats]:
    p = _softmax(theta[0] * logs + theta[1:])
    rows, size = np.arange(len(labels)), logs.shape[1]
    mean = (p * logs).sum(1)
    residual = w[:, None] * p
    residual[rows, labels] -= w
    slope = (residual * logs).sum() + SLOPE_RIDGE * (theta[0] - 1.0)
    gradient = np.concatenate([[slope], residual.sum(0) + ridge * theta[1:]])
    hessian = np.empty((size + 1, size + 1))
    hessian[0, 0] = w @ ((p * logs**2).sum(1) - mean**2) + SLOPE_RIDGE
    hessian[0, 1:] = hessian[1:, 0] = (w[:, None] * p * (logs - mean[:, None])).sum(0)
    weighted = w[:, None] * p
    hessian[1:, 1:] = np.diag(weighted.sum(0) + ridge) - weighted.T @ p
    return gradient, hessian
