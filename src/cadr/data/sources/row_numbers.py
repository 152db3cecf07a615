"""A column that numbers the rows is no feature, whatever its name, and whether or not the rows have been shuffled."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.columns import Column
from cadr.data.sources.parsing import TableError

FEW_ROWS = 20


def check_no_row_numbers(path: Path, columns: Sequence[Column], matrix: NDArray[np.float32]) -> None:
    """Refuse columns of numbers without gaps that are each number from 0 or 1 on once."""
    at = 0
    for column in columns:
        if column == Column(column.name) and number_rows(matrix[:, at]):
            first, rows = int(matrix[:, at].min()), len(matrix)
            raise TableError(
                f"{path}: column {column.name!r} only numbers the rows, from {first} to {first + rows - 1}; "
                "nothing can be learned from that: leave the column out with --ignore-columns "
                f"{shlex.quote(column.name)}, or divide it by {rows} if it measures something, such as a rank"
            )
        at += len(column.features)


def number_rows(values: NDArray[np.float32]) -> bool:
    """Few rows may have such numbers by chance. Nearly every other column is known by its first cells or its range."""
    rows, some = len(values), values[:FEW_ROWS]
    if rows < FEW_ROWS or not ((some == np.floor(some)) & (some >= 0) & (some <= rows)).all():
        return False
    first = values.min()
    if first not in (0, 1) or values.max() != np.float32(int(first) + rows - 1):
        return False
    # numbers above 2²⁴ are rounded in 32 bits, but stay in their order
    return bool((np.sort(values) == np.arange(int(first), int(first) + rows).astype(np.float32)).all())
