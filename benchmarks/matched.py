"""The accuracy a classifier would have if somebody gave its classes the names that fit best.

Where one or two images tie a name to a class, two classes may be told apart and yet be called by each other's name.
Then this is far above the accuracy; where a class is lost, it is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment


def accuracy(confusion: Sequence[Sequence[int]]) -> float:
    counts = np.asarray(confusion)
    return float(100.0 * counts.trace() / counts.sum())


def matched_accuracy(confusion: Sequence[Sequence[int]]) -> float:
    """In percent: the best one-to-one assignment of predicted to true classes."""
    counts = np.asarray(confusion)
    return float(100.0 * counts[linear_sum_assignment(counts, maximize=True)].sum() / counts.sum())
