"""The cells of a column, some rows at a time, as values: numbers or days, NaN where missing, or positions of words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.columns import Column, as_days, days_of, not_a_date
from cadr.data.sources.labels import label_spelling, label_text
from cadr.errors import DataError
from cadr.utils.text import counted, reason

# Text, blank where missing; or float64, NaN where missing; or NumPy's dates, NaT where missing.
Cells = list[str] | NDArray[np.float64] | NDArray[np.datetime64]
Where = Callable[[int], str]  # says where a row stands: "wine.csv, line 7"

LARGEST = float(np.finfo(np.float32).max)
BLANK, UNSEEN = -1, -2  # in place of a position among the words
# What R, pandas, spreadsheets and databases write for a missing number, in any case.
_NO_NUMBER = ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "?")
NO_NUMBER = sorted({spelt(word) for word in _NO_NUMBER for spelt in (str.lower, str.upper, str.title)} | {"NaN", "NaT"})
TRUTH = {"true": 1.0, "false": 0.0}
_MEANING = {**TRUTH, **dict.fromkeys(_NO_NUMBER, math.nan)}


class TableError(DataError):
    """A table is not features, numbers, dates or words, with a label column."""


def values(column: Column, cells: Cells, where: Where) -> NDArray[Any]:
    """What `encode` takes. Raises where the cells are not what the column is known to hold."""
    if column.words is not None:
        return _positions(cells if isinstance(cells, list) else _texts(column, cells, where), column.words)
    if isinstance(cells, np.ndarray):
        numbers = _kept_as(column, cells, where)
    else:
        numbers = (_numbers if column.since is None else _days)(column, cells, where)
    if column.origin:
        numbers = numbers - column.origin
    large = np.flatnonzero(np.abs(numbers) > LARGEST)
    if len(large):
        cell = str(cells[large[0]]).strip()
        raise TableError(f"{_place(column, where, large[0])}: {cell} is not a finite number of 32 bits")
    gaps = np.flatnonzero(np.isnan(numbers))
    if len(gaps) and column.fill is None:
        raise TableError(
            f"{_place(column, where, gaps[0])}: there is no {_kind(column)}, and the table that was trained on has one "
            "in every row; fill it in, or leave the row out"
        )
    return numbers


def lines_of(path: Path, lines: list[tuple[int, list[str]]]) -> Where:
    return lambda row: f"{path}, line {lines[row][0]}"


def rows_from(path: Path, start: int) -> Where:
    return lambda row: f"{path}, row {start + row}"


def as_number(cell: str) -> float | None:
    """NaN where the number is missing, None if it is none; pandas writes True and False, R writes TRUE and FALSE."""
    try:
        return None if "_" in cell else float(cell)  # 2023_01 is a number to Python alone
    except ValueError:
        return _MEANING.get(cell.strip().lower())


def lacks_point(cell: str) -> bool:
    """Whether it is a number but for its commas: half the world writes decimals with one."""
    number = as_number(cell.replace(",", "")) if "," in cell else None
    return number is not None and not math.isnan(number)


def not_a_number(cell: str) -> str:
    comma = " (decimals are written with a point)" if lacks_point(cell) else ""
    return f"expected a number, got {cell!r}{comma}"


def as_word(cell: str) -> str:
    """One spelling for words that mean the same: as for labels, and true and false, which every program writes anew."""
    word = label_spelling(cell)
    return word.lower() if word.lower() in TRUTH else word


def arrow_cells(array: Any, words: bool = False) -> Cells | None:
    """The cells of an Arrow array; None if it holds neither numbers, dates nor words. Truth may be number or word."""
    pyarrow = import_module("pyarrow")
    kind, types = array.type, pyarrow.types
    if types.is_dictionary(kind):  # what pandas makes of a categorical column
        return arrow_cells(array.dictionary_decode(), words)
    if types.is_boolean(kind):
        array = array.cast(pyarrow.string() if words else pyarrow.int8())  # with gaps it would become Python's objects
    elif types.is_decimal(kind):
        array = array.cast(pyarrow.float64())
    kind = array.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return ["" if text is None else text for text in array.to_pylist()]
    if types.is_null(kind):
        return np.full(len(array), np.nan)
    if types.is_date(kind) or types.is_timestamp(kind):  # with a zone: in UTC
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if not types.is_integer(kind) and not types.is_floating(kind):
        return None
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def python_values(column: Any, where: str) -> list[Any]:
    """What Python makes of a column of Arrow's: not all that Arrow can hold is a value there, or is text at all."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, NotImplementedError) as error:
        raise TableError(f"{where} cannot be read: {reason(error)}") from None
    return values


def _numbers(column: Column, cells: list[str], where: Where) -> NDArray[np.float64]:
    """One pass over all cells, and a second, slow one for gaps, truth values and mistakes."""
    with suppress(ValueError):
        if not any("_" in cell for cell in cells):
            return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    found = list(map(as_number, cells))
    if None in found:
        row = found.index(None)
        raise TableError(f"{_place(column, where, row)}: {not_a_number(cells[row])}")
    return np.array(found, dtype=np.float64)


def _days(column: Column, cells: list[str], where: Where) -> NDArray[np.float64]:
    days = {cell: as_days(cell) for cell in dict.fromkeys(cells)}  # many rows may be of one day
    for cell in (cell for cell, day in days.items() if day is None):
        if cell.strip().lower() not in _NO_NUMBER:
            raise TableError(f"{_place(column, where, cells.index(cell))}: {not_a_date(cell)}")
    return np.array([days[cell] for cell in cells], dtype=np.float64)


def _kept_as(column: Column, cells: NDArray[Any], where: Where) -> NDArray[np.float64]:
    """Numbers or days, as the file keeps them. A column without any value may be either."""
    dates = is_dates(cells)
    numbers = days_of(cells) if dates else cells
    there = np.flatnonzero(~np.isnan(numbers))
    if len(there) and dates != (column.since is not None):
        raise TableError(f"{_place(column, where, there[0])}: expected a {_kind(column)}, got {cells[there[0]]}")
    return numbers


def _texts(column: Column, cells: NDArray[Any], where: Where) -> list[str]:
    if not is_dates(cells):
        return list(map(label_text, cells.tolist()))
    there = np.flatnonzero(~np.isnat(cells))
    if len(there):
        raise TableError(f"{_place(column, where, there[0])}: expected a word, got the date {cells[there[0]]}")
    return [""] * len(cells)


def cells_as_texts(cells: Cells) -> list[str]:
    """Of a column of texts, whatever a program has made of some of them."""
    return cells if isinstance(cells, list) else list(map(label_text, cells.tolist()))


def is_dates(cells: Cells) -> bool:
    return isinstance(cells, np.ndarray) and cells.dtype.kind == "M"


def _kind(column: Column) -> str:
    return "number" if column.since is None else "date"


def _positions(texts: list[str], words: tuple[str, ...]) -> NDArray[np.int64]:
    position = {"": BLANK, **{as_word(word): i for i, word in enumerate(words)}}
    found = {text: position.get(as_word(text), UNSEEN) for text in set(texts)}
    return np.fromiter(map(found.__getitem__, texts), dtype=np.int64, count=len(texts))


def _place(column: Column, where: Where, row: int) -> str:
    return f"{where(int(row))}, column {column.name!r}"


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
