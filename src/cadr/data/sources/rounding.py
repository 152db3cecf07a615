"""Columns of numbers far from 0 that differ by little, which the 32 bits of a feature would merge into a few.

So a time in milliseconds since 1970 is rounded to two minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rounding may move a number by this share of its column's range: some hundredths of a standard deviation, which is no
# more than the noise of the weak views.
TOLERATED = 1 / 256
NOISE = 2.0**-40  # numbers that differ by less, in relation to their size, are one number with the rounding of 64 bits
TINY = float(np.finfo(np.float32).tiny)


class Rounding:
    """What 32 bits make of the columns of a matrix, as far as its rows have been seen."""

    def __init__(self, columns: int) -> None:
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)
        self._error = np.zeros(columns)

    def add(self, rows: NDArray[Any]) -> None:
        """(n, columns)"""
        with np.errstate(over="ignore", invalid="ignore"):  # others refuse what is not finite in 32 bits
            error = np.abs(rows - rows.astype(np.float32).astype(np.float64))
            self.low, self.high = np.minimum(self.low, rows.min(0)), np.maximum(self.high, rows.max(0))
            self._error = np.maximum(self._error, error.max(0))

    @property
    def merges(self) -> NDArray[np.bool_]:
        """(columns,) where so much is lost that it matters."""
        with np.errstate(invalid="ignore"):
            apart = self.high - self.low
            noise = np.maximum(NOISE * np.maximum(np.abs(self.low), np.abs(self.high)), TINY)
            return np.asarray((self._error > TOLERATED * apart) & (apart > noise) & np.isfinite(self._error))


def merges(numbers: NDArray[np.float64]) -> bool:
    """Whether 32 bits would merge the numbers (n,) of a column."""
    seen = Rounding(1)
    seen.add(numbers[:, None])
    return bool(seen.merges[0])
