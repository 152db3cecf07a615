"""What the columns of a table hold, by all of their cells: numbers or dates, with gaps or without, or words.

What is probably a mistake is refused rather than guessed at: a few words among numbers or dates, words by which nearly
every row is another, which are names or notes and no features, and a column that numbers the rows, whatever its name,
and whether or not the rows have been shuffled.

Columns of numbers far from 0 that differ by little are found, too: the 32 bits of a feature would merge them into a
few. So a time in milliseconds since 1970 is rounded to two minutes.
"""

from __future__ import annotations

import math
import shlex
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.columns import Column, as_days, day_text, days_of, like_a_date, not_a_date
from cadr.data.sources.parsing import (
    TRUTH,
    Cells,
    TableError,
    Where,
    as_number,
    as_word,
    is_dates,
    lacks_point,
    not_a_number,
)
from cadr.data.sources.texts import ADVICE

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


MOST_WORDS = 50  # of a column
FEW_WORDS = 10  # so many are a feature each even where the rows are hardly more
COUNTED = 1000  # different words that are kept to be counted
TEXT_SPACES = 3  # between the words of most cells, where a column is taken for texts, not for names


class Survey:
    """One column, as far as its cells have been seen."""

    def __init__(self, name: str, leave_out: str | None = None) -> None:
        """`leave_out` says how the column is left out, where that is not by a flag."""
        self.name, self.leave_out = name, leave_out or f"--ignore-columns {shlex.quote(name)}"
        self.rows = self.gaps = 0  # gaps: cells that say nothing where numbers are expected
        self.truths = 0  # among the numbers
        self.commas = 0  # cells that only a comma keeps from being a number
        self.numbers, self.dates = array("d"), array("d")  # dates in days since 1970
        self.words: set[str] = set()
        self.spaces = 0  # in cells that are no numbers: between words of a text
        self.others = 0  # such cells
        self.no_number = self.no_date = ""  # the first cell that is none, in a sentence

    def add(self, cells: Cells, where: Where) -> None:
        self.rows += len(cells)
        if isinstance(cells, np.ndarray):
            kept, numbers = (self.dates, days_of(cells)) if is_dates(cells) else (self.numbers, cells)
            there = numbers[~np.isnan(numbers)]
            kept.frombytes(there.tobytes())
            self.gaps += len(cells) - len(there)
            return
        for cell, count in Counter(cells).items():  # in the order in which they come first
            number = as_number(cell)
            days = as_days(cell) if number is None else None
            if number is not None and math.isnan(number):
                self.gaps += count
            elif days is not None:
                self.dates.extend([days] * count)
            else:
                self.no_date = self.no_date or f"{self._place(cells, cell, where)}: {not_a_date(cell)}"
            if number is None:
                self.others, self.spaces = self.others + count, self.spaces + count * (len(cell.split()) - 1)
                self.no_number = self.no_number or f"{self._place(cells, cell, where)}: {not_a_number(cell)}"
            elif not math.isnan(number):
                self.numbers.extend([number] * count)
                self.truths += count if cell.strip().lower() in TRUTH else 0
            self.commas += count if lacks_point(cell) else 0
            if len(self.words) <= COUNTED and (word := as_word(cell)):
                self.words.add(word)

    def column(self, path: Path | str, embeds: bool = False, is_text: bool = False) -> Column:
        """What it is; texts can be learned from where a pretrained model `embeds` them."""
        filled, leave_out = self.rows - self.gaps, self.leave_out
        if is_text and embeds:
            return Column(self.name, texts=0)
        if not filled:
            raise TableError(f"{path}: column {self.name!r} has no value in any row; leave it out with {leave_out}")
        if len(self.numbers) == filled:
            found = np.frombuffer(self.numbers)
            offset = float(np.median(found)) if merges(found) else None
            fill = float(np.median(found)) - (offset or 0.0) if self.gaps else None
            return Column(self.name, fill=fill, offset=offset)
        if len(self.dates) == filled:
            middle = float(np.median(np.frombuffer(self.dates)))
            fill = middle - math.floor(middle) if self.gaps else None
            return Column(self.name, fill=fill, since=day_text(middle))
        numbers = len(self.numbers) - self.truths + self.commas
        if 2 * max(numbers, len(self.dates)) >= filled:
            mistake = self.no_number if numbers >= len(self.dates) else self.no_date
            raise TableError(f"{mistake}; if the column is no feature, leave it out with {leave_out}")
        different = len(self.words)
        if different > MOST_WORDS or different > max(FEW_WORDS, filled / 2):
            if self.spaces >= TEXT_SPACES * self.others:
                if embeds:
                    return Column(self.name, texts=0)
                raise TableError(
                    f"{path}: column {self.name!r} holds texts, which need a pretrained model: {ADVICE}, or leave "
                    f"it out with {leave_out}"
                )
            many = f"{different:,}" if different <= COUNTED else f"more than {COUNTED:,}"
            remedy = f"leave it out with {leave_out} if it names or describes the rows, or else merge some of them"
            if 2 * sum(map(like_a_date, self.words)) >= different:
                remedy = f"dates are understood if they are written as 2025-03-04; or leave it out with {leave_out}"
            raise TableError(
                f"{path}: column {self.name!r} holds {many} different categories in {filled:,} rows, too many to "
                f"learn from; {remedy}"
            )
        return Column(self.name, words=tuple(sorted(self.words)))

    def _place(self, cells: list[str], cell: str, where: Where) -> str:
        return f"{where(cells.index(cell))}, column {self.name!r}"


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
