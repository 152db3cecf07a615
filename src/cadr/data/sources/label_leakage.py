"""Columns that tell which rows have a label: who labelled the row, or a status that is pending where nobody has."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.columns import Column

FEW = 10  # rows with a label, or without, in which words may differ by chance


def telling_in_words(columns: Sequence[Column], examples: NDArray[Any], labelled: NDArray[np.bool_]) -> list[str]:
    """A warning if words or gaps of rows with a label are never those of other rows, or these have a single number.

    Such a number, which the others never have, stands where nobody has entered one: −1, 0 or 9999.
    """
    if min(labelled.sum(), (~labelled).sum()) < FEW:
        return []
    found = []
    at = 0
    for column in columns:
        cells = examples[:, at : at + len(column.features)]
        at += len(column.features)
        numbers = column.words is None
        marks = cells[:, 1:] if numbers else cells  # of numbers: whether they are missing, if any are
        apart = marks.shape[1] and not (_kinds(marks[labelled]) & _kinds(marks[~labelled])).any()
        if apart or (numbers and _one_and_others(cells[labelled, 0], cells[~labelled, 0])):
            found.append(column.name)
    if not found:
        return []
    leave_out = f"--ignore-columns {' '.join(map(shlex.quote, found))}"
    return [
        f"Warning: {', '.join(map(repr, found))} only tells which rows have a label: what stands there in rows with "
        f"one stands in no other row. So it says nothing about the others; leave it out with {leave_out}."
    ]


def _one_and_others(some: NDArray[Any], others: NDArray[Any]) -> bool:
    """Whether one side has a single number, which the other never has."""
    return any((a == a[0]).all() and not (b == a[0]).any() for a, b in ((some, others), (others, some)))


def _kinds(marks: NDArray[Any]) -> NDArray[np.bool_]:
    """Which marks some row has, and at last whether some row has none."""
    return np.append(marks.any(0), ~marks.any(1).all())
