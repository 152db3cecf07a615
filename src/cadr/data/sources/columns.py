"""Columns of a table as features: numbers as they are, dates in days, gaps filled and marked, categories one-hot.

Texts are the vectors that a pretrained model makes of them.

Dates and times are those of ISO 8601. What may mean another day elsewhere, as 03/04/2025, is no date.

scikit-learn's OneHotEncoder and SimpleImputer give the same features, which a test compares. They are not used here
because they are stored as pickles: to rebuild fitted ones from JSON takes their private attributes and more lines than
`encode` has. What is long, and what they leave to others, is to tell what a cell means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
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


RARE = 0.2  # the standard deviation of a word that one row in 24 has; where a word varies less, it is divided by this


@dataclass(frozen=True)
class Column:
    """A column of numbers, of dates, or of words if it has any, and what becomes of its cells."""

    name: str
    words: tuple[str, ...] | None = None  # each is a feature: 1 where the cell is this word
    fill: float | None = None  # what stands in the gaps of numbers, their median; None: training has seen no gap
    # The cells are dates, as days since this one in their middle: days since 1970 know no seconds in 32 bits. It is no
    # part of the text of a column, by which runs that are older than dates know their data again.
    since: str | None = field(default=None, repr=False)
    # What is taken from numbers that lie too close together, so far from 0, for 32 bits: the one in their middle.
    offset: float | None = field(default=None, repr=False)
    texts: int | None = field(default=None, repr=False)  # the cells are texts, and this many numbers stand for each

    def __post_init__(self) -> None:
        if self.since is not None:
            np.datetime64(self.since, "D")  # or a ValueError, before any cell is read

    @property
    def origin(self) -> float:
        """The number, or the day in days since 1970, from which the cells are counted."""
        if self.since is None:
            return self.offset or 0.0
        return float(np.datetime64(self.since, "D").astype(np.int64))

    @property
    def features(self) -> tuple[str, ...]:
        if self.words is not None:
            return tuple(f"{self.name} = {word}" for word in self.words)
        if self.texts is not None:
            return tuple(f"{self.name} [{i}]" for i in range(self.texts))
        return (self.name,) if self.fill is None else (self.name, f"{self.name} missing")


def encode(columns: Sequence[Column], values: Sequence[NDArray[Any]], rows: int) -> NDArray[np.float32]:
    """float32 (rows, features).

    Values are numbers, NaN where missing; positions among the words, else negative; or the vectors of texts.
    """
    matrix = np.zeros((rows, sum(len(column.features) for column in columns)), dtype=np.float32)
    at = 0
    for column, found in zip(columns, values, strict=True):
        if column.words is not None:
            known = np.flatnonzero(found >= 0)
            matrix[known, at + found[known]] = 1
        elif column.texts is not None:
            matrix[:, at : at + column.texts] = found
        elif column.fill is not None:
            gaps = np.isnan(found)
            matrix[:, at], matrix[:, at + 1] = np.where(gaps, column.fill, found), gaps
        else:
            matrix[:, at] = found
        at += len(column.features)
    return matrix


def in_words(columns: Sequence[Column]) -> list[str]:
    """What was made of words, dates, offsets and gaps, in a sentence each, for people to see if they meant it."""
    words = [f"{column.name} ({_some([*map(apart, column.words)])})" for column in columns if column.words is not None]
    dates = [f"{column.name} ({column.since})" for column in columns if column.since is not None]
    offsets = [f"{column.name} ({column.offset:.15g})" for column in columns if column.offset is not None]
    gaps = [f"{column.name} ({_filled(column, column.fill)})" for column in columns if column.fill is not None]
    texts = [column.name for column in columns if column.texts is not None]
    lines = [f"Text columns, embedded by the pretrained model: {_some(texts, 20)}."] if texts else []
    lines += [f"Categorical columns, one-hot encoded: {_some(words, 20)}."] if words else []
    lines += [f"Date columns, in days since the median: {_some(dates, 20)}."] if dates else []
    lines += [f"Numeric columns far from 0, less their median: {_some(offsets, 20)}."] if offsets else []
    lines += [f"Missing values imputed by the median and flagged by a feature: {_some(gaps, 20)}."] if gaps else []
    return lines


def apart(word: str) -> str:
    """The word as one of several between commas."""
    return repr(word) if "," in word else word


def _filled(column: Column, fill: float) -> str:
    if column.since is not None:
        return day_text(column.origin + fill)
    return f"{fill:g}" if column.offset is None else f"{column.origin + fill:.15g}"


def _some(texts: Sequence[str], most: int = 6) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(" ".join(text.split()) for text in texts[:most]) + more
