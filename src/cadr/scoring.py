"""scikit-learn's `y` with labels missing (−1, None, NaN and blanks stand for one), and its scorers on such labels.

By themselves scorers take −1 for a class of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from cadr.data.pool import MISSING
from cadr.data.sources.labels import NO_LABEL
from cadr.errors import DataError


def known_labels(y: Any, n: int) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which rows have a label, and those labels."""
    y = column_or_1d(_with_own_kinds(y), warn=True)
    if len(y) != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n, len(y)]}")
    if y.dtype.kind == "O":
        known = np.array([not _is_missing(value) for value in y], dtype=bool)
        values = np.array(y[known].tolist())  # of a plain type again: strings, whole numbers
        if values.dtype.kind == "U" and not all(isinstance(value, str) for value in y[known]):
            raise DataError("labels should all be strings or all be numbers, y holds both")
    elif y.dtype.kind == "f":
        known = ~np.isnan(y) & (y != MISSING)
        values = y[known]
    else:
        known = ~np.isin(y, [*NO_LABEL]) if y.dtype.kind == "U" else y != MISSING
        values = y[known]
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise DataError("Input y contains infinity; a missing label is −1 or NaN")
    if not known.any():
        raise DataError("every label in y is missing; label at least one row of each class")
    return known, values


def _with_own_kinds(y: Any) -> Any:
    """Columns of types that only pandas has, as objects: scikit-learn would make floats of whole numbers and truths."""
    if not hasattr(y, "astype"):
        return y
    kinds = y.dtypes if y.ndim == 2 and hasattr(y, "dtypes") else [y.dtype]  # of a table, or of a column
    return y if all(isinstance(kind, np.dtype) for kind in kinds) else y.astype(object)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, str):
        return value in NO_LABEL
    return bool((isinstance(value, float) and np.isnan(value)) or value == MISSING)


Scorer = Callable[[Any, Any, Any], float]


def on_labelled(scoring: str | Scorer) -> Scorer:
    """A scorer of scikit-learn, or its name, on the rows that have a label.

    cross_val_score(CADRClassifier(), X, y, scoring=on_labelled("balanced_accuracy"))
    """
    from sklearn.metrics import get_scorer

    return partial(_score, get_scorer(scoring))  # no closure: it is pickled for other processes


def _score(scorer: Scorer, estimator: Any, X: Any, y: Any) -> float:
    known, values = known_labels(y, len(X))
    return scorer(estimator, _safe_indexing(X, np.flatnonzero(known)), values)
