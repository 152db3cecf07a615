"""scikit-learn's scorers where labels are missing: by themselves they take −1 for a class of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing

from cadr.missing_labels import known_labels

Scorer = Callable[[Any, Any, Any], float]


def on_labelled(scoring: str | Scorer) -> Scorer:
    """A scorer of scikit-learn, or its name, on the rows that have a label.

    cross_val_score(CADRClassifier(), X, y, scoring=on_labelled("balanced_accuracy"))
    """
    return partial(_score, get_scorer(scoring))  # no closure: it is pickled for other processes


def _score(scorer: Scorer, estimator: Any, X: Any, y: Any) -> float:
    known, values = known_labels(y, len(X))
    return scorer(estimator, _safe_indexing(X, np.flatnonzero(known)), values)
