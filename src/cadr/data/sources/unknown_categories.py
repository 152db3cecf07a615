"""Words of a column that the table which was trained on does not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.labels import label_text
from cadr.data.sources.parsing import UNSEEN, Cells, as_word
from cadr.utils.text import counted

SHOWN = 3
_LONGEST = 40  # characters of a word: a cell may hold a whole letter


@dataclass(frozen=True)
class UnknownCategories:
    """In how many rows, and the first different words, one more than are shown: there may be one in every row."""

    rows: int = 0
    words: tuple[str, ...] = ()

    @staticmethod
    def among(cells: Cells, positions: NDArray[Any]) -> UnknownCategories:
        """`positions` among the words, of each cell."""
        rows = np.flatnonzero(positions == UNSEEN).tolist()
        return UnknownCategories(len(rows), _first(as_word(label_text(cells[row])) for row in rows))

    def __add__(self, more: UnknownCategories) -> UnknownCategories:
        return UnknownCategories(self.rows + more.rows, _first([*self.words, *more.words]))

    def __str__(self) -> str:
        others = " and others" if len(self.words) > SHOWN else ""
        shown = ", ".join(repr(w if len(w) <= _LONGEST else f"{w[:_LONGEST]}…") for w in self.words[:SHOWN])
        return f"{shown}{others} in {counted(self.rows, 'row')}"


def _first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))[: SHOWN + 1]
