"""What people hold in memory, lists and pandas' tables and columns, as NumPy arrays of plain numbers or strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cadr.data.sources.labels import label_text
from cadr.errors import DataError
from cadr.utils.text import reason


def examples_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array, which is not copied if it is one already."""
    return _as_numbers(_as_array(name, values))


def labels_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Labels with gaps are often objects: here text, or else floating point with NaN for None."""
    array = _as_array(name, values, object if isinstance(values, list | tuple) else None)  # or None becomes a word
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    known = [None if _is_missing(value) else value for value in array.tolist()]
    if any(isinstance(value, str) for value in known):
        return np.array([label_text(value) for value in known], dtype=str)
    return _as_numbers(np.array(known, dtype=object))


def _as_array(name: str, values: ArrayLike, kind: type | None = None) -> NDArray[Any]:
    try:
        return np.asarray(values, dtype=kind)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected an array, or what can become one, but {reason(error)}") from None


def _as_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers of several types become objects in one array; whoever takes it says what else they may be."""
    try:
        return array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError):
        return array


def _is_missing(value: Any) -> bool:
    """None, NaN, and the NA of pandas, which compares to nothing."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
