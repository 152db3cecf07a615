"""Dates and times as ISO 8601 writes them, in days. What may mean another day elsewhere, as 03/04/2025, is no date."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPOCH = datetime(1970, 1, 1)
_DAY = timedelta(days=1)
# Python reads more than people write: 20250304, which is a number here, and 2025-W10-2.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d([.,]\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)
_LIKE = re.compile(r"\d{1,4}([./ -])(\d{1,2}|[A-Za-z]{3,9})\.?\1\d{1,4}([T ,].*)?", re.ASCII)


def as_days(cell: str) -> float | None:
    """Days since 1970 began, None if the cell is no date. Where there is no zone, the time is taken for UTC."""
    text = cell.strip()
    if _ISO.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # a 30th of February
        return None
    return (moment.replace(tzinfo=None) - EPOCH - (moment.utcoffset() or timedelta())) / _DAY


def days_of(dates: NDArray[Any]) -> NDArray[np.float64]:
    """The same of NumPy's dates, NaN where there is none."""
    return np.asarray((dates - np.datetime64(0, "D")) / np.timedelta64(1, "D"), dtype=np.float64)


def day_text(days: float) -> str:
    """The day on which a time lies."""
    return str(np.datetime64(int(np.floor(days)), "D"))


def like_a_date(word: str) -> bool:
    """Whether people, though not ISO 8601, would take it for a date."""
    return _LIKE.fullmatch(word) is not None


def not_a_date(cell: str) -> str:
    return f"expected a date such as 2025-03-04 or 2025-03-04T09:30, got {cell!r}"
