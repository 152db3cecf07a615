"""How good probabilities of unlabelled rows are, by the rows' true classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

LEAST = 1e-6  # of a probability


def scores(probabilities: NDArray[np.float64], truth: NDArray[np.int64], classes: int) -> dict[str, float]:
    """Accuracy and macro recall in percent; log loss as the probabilities are, and after calibration."""
    right = probabilities.argmax(1) == truth
    recalls = [right[truth == c].mean() for c in range(classes) if (truth == c).any()]
    logs = np.log(np.clip(probabilities, LEAST, None))
    return {
        "accuracy": round(100 * float(right.mean()), 2),
        "macro_recall": round(100 * float(np.mean(recalls)), 2),
        "log_loss": round(_loss(logs, truth), 4),
        "calibrated": round(calibrated(logs, truth), 4),
    }


def calibrated(logs: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Log loss of each half of the rows at the temperature that suits the other half.

    Its logarithm is taken to be standard normal beforehand: a half without an error would ask for certainty.
    """
    order = np.random.default_rng(0).permutation(len(truth))
    logs, truth = logs[order], truth[order]
    losses = []
    for half in (0, 1):
        fit, judge = slice(half, None, 2), slice(1 - half, None, 2)

        def posterior(t: float, logs: NDArray[np.float64] = logs[fit], truth: NDArray[np.int64] = truth[fit]) -> float:
            return _loss(np.exp(t) * logs, truth) + t**2 / 2 / len(truth)

        found = minimize_scalar(posterior, bounds=(-4, 4), method="bounded")
        losses.append(_loss(np.exp(found.x) * logs[judge], truth[judge]))
    return float(np.mean(losses))


def _loss(logs: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    return float(-log_softmax(logs, axis=1)[np.arange(len(truth)), truth].mean())
