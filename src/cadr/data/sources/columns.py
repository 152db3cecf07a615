"""Columns of a table as features: numbers as they are, gaps filled and marked, and a 0 or 1 for every word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Column:
    """A column of numbers, or of words if it has any, and what becomes of its cells."""

    name: str
    words: tuple[str, ...] | None = None  # each is a feature: 1 where the cell is this word
    fill: float | None = None  # what stands in the gaps of numbers, their median; None: training has seen no gap

    @property
    def features(self) -> tuple[str, ...]:
        if self.words is not None:
            return tuple(f"{self.name} = {word}" for word in self.words)
        return (self.name,) if self.fill is None else (self.name, f"{self.name} missing")


def encode(columns: Sequence[Column], values: Sequence[NDArray[Any]], rows: int) -> NDArray[np.float32]:
    """float32 (rows, features). Values are numbers, NaN where missing, or positions among the words, else negative."""
    matrix = np.zeros((rows, sum(len(column.features) for column in columns)), dtype=np.float32)
    at = 0
    for column, found in zip(columns, values, strict=True):
        if column.words is not None:
            known = np.flatnonzero(found >= 0)
            matrix[known, at + found[known]] = 1
        elif column.fill is not None:
            gaps = np.isnan(found)
            matrix[:, at], matrix[:, at + 1] = np.where(gaps, column.fill, found), gaps
        else:
            matrix[:, at] = found
        at += len(column.features)
    return matrix


def in_words(columns: Sequence[Column]) -> list[str]:
    """What was made of words and of gaps, in a sentence each, for people to see whether it is what they meant."""
    words = [f"{column.name} ({_some([*map(apart, column.words)])})" for column in columns if column.words is not None]
    gaps = [f"{column.name} ({column.fill:g})" for column in columns if column.fill is not None]
    lines = [f"Columns of words, every word a feature: {_some(words, 20)}."] if words else []
    return [*lines, f"Gaps filled with the median and marked by a feature: {_some(gaps, 20)}."] if gaps else lines


def apart(word: str) -> str:
    """The word as one of several between commas."""
    return repr(word) if "," in word else word


def _some(texts: Sequence[str], most: int = 6) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(" ".join(text.split()) for text in texts[:most]) + more
