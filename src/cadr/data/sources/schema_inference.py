"""What the columns of a table hold, by all of their cells: numbers or dates, with gaps or without, or words.

What is probably a mistake is refused rather than guessed at: a few words among numbers or dates, and words by which
nearly every row is another, which are names or notes and no features.
"""

from __future__ import annotations

import math
import shlex
from array import array
from collections import Counter
from pathlib import Path

import numpy as np

from cadr.data.sources.columns import Column
from cadr.data.sources.dates import as_days, day_text, days_of, like_a_date, not_a_date
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
from cadr.data.sources.rounding import merges

MOST_WORDS = 50  # of a column
FEW_WORDS = 10  # so many are a feature each even where the rows are hardly more
COUNTED = 1000  # different words that are kept to be counted


class Survey:
    """One column, as far as its cells have been seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = self.gaps = 0  # gaps: cells that say nothing where numbers are expected
        self.truths = 0  # among the numbers
        self.commas = 0  # cells that only a comma keeps from being a number
        self.numbers, self.dates = array("d"), array("d")  # dates in days since 1970
        self.words: set[str] = set()
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
                self.no_number = self.no_number or f"{self._place(cells, cell, where)}: {not_a_number(cell)}"
            elif not math.isnan(number):
                self.numbers.extend([number] * count)
                self.truths += count if cell.strip().lower() in TRUTH else 0
            self.commas += count if lacks_point(cell) else 0
            if len(self.words) <= COUNTED and (word := as_word(cell)):
                self.words.add(word)

    def column(self, path: Path) -> Column:
        filled = self.rows - self.gaps
        leave_out = f"--ignore-columns {shlex.quote(self.name)}"
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
            raise TableError(f"{mistake}; if the column is no feature, leave it out with --ignore-columns")
        different = len(self.words)
        if different > MOST_WORDS or different > max(FEW_WORDS, filled / 2):
            many = f"{different:,}" if different <= COUNTED else f"more than {COUNTED:,}"
            remedy = f"leave it out with {leave_out} if it names or describes the rows, or else write fewer words"
            if 2 * sum(map(like_a_date, self.words)) >= different:
                remedy = f"dates are understood if they are written as 2025-03-04; or leave it out with {leave_out}"
            raise TableError(
                f"{path}: column {self.name!r} holds {many} different words in {filled:,} rows, too many to learn from;"
                f" {remedy}"
            )
        return Column(self.name, words=tuple(sorted(self.words)))

    def _place(self, cells: list[str], cell: str, where: Where) -> str:
        return f"{where(cells.index(cell))}, column {self.name!r}"
