"""What the columns of a table hold, by all of their cells: numbers, numbers with gaps, or words.

What is probably a mistake is refused rather than guessed at: a few words among numbers, and words by which nearly every
row is another, which are names or notes and no features.
"""

from __future__ import annotations

import math
import shlex
from array import array
from collections import Counter
from pathlib import Path

import numpy as np

from cadr.data.sources.cells import TRUTH, Cells, TableError, Where, as_number, as_word, lacks_point, not_a_number
from cadr.data.sources.columns import Column

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
        self.numbers = array("d")
        self.words: set[str] = set()
        self.first_word = ""  # the first cell that is no number, in a sentence

    def add(self, cells: Cells, where: Where) -> None:
        self.rows += len(cells)
        if isinstance(cells, np.ndarray):
            numbers = cells[~np.isnan(cells)]
            self.numbers.frombytes(numbers.tobytes())
            self.gaps += len(cells) - len(numbers)
            return
        for cell, count in Counter(cells).items():  # in the order in which they come first
            number = as_number(cell)
            if number is not None and not math.isnan(number):
                self.numbers.extend([number] * count)
                self.truths += count if cell.strip().lower() in TRUTH else 0
            elif number is not None:
                self.gaps += count
            elif not self.first_word:
                self.first_word = f"{where(cells.index(cell))}, column {self.name!r}: {not_a_number(cell)}"
            self.commas += count if lacks_point(cell) else 0
            if len(self.words) <= COUNTED and (word := as_word(cell)):
                self.words.add(word)

    def column(self, path: Path) -> Column:
        filled = self.rows - self.gaps
        leave_out = f"--ignore-columns {shlex.quote(self.name)}"
        if not filled:
            raise TableError(f"{path}: column {self.name!r} has no value in any row; leave it out with {leave_out}")
        if len(self.numbers) == filled:
            return Column(self.name, fill=float(np.median(np.frombuffer(self.numbers))) if self.gaps else None)
        if 2 * (len(self.numbers) - self.truths + self.commas) >= filled:
            raise TableError(f"{self.first_word}; if the column is no feature, leave it out with --ignore-columns")
        different = len(self.words)
        if different > MOST_WORDS or different > max(FEW_WORDS, filled / 2):
            many = f"{different:,}" if different <= COUNTED else f"more than {COUNTED:,}"
            raise TableError(
                f"{path}: column {self.name!r} holds {many} different words in {filled:,} rows, too many to learn from;"
                f" leave it out with {leave_out} if it names or describes the rows, or else write fewer words"
            )
        return Column(self.name, words=tuple(sorted(self.words)))
