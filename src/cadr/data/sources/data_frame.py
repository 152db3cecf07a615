"""Tables of pandas with words, dates or gaps, encoded as a table in a file is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.columns import Column, encode
from cadr.data.sources.labels import label_text
from cadr.data.sources.parsing import Cells, TableError, values
from cadr.data.sources.schema_inference import Survey

_PLAIN = (str, bool, int, float, Decimal, date, np.bool_, np.integer, np.floating)


def is_frame(examples: Any) -> bool:
    return all(hasattr(examples, name) for name in ("columns", "dtypes", "iloc"))


def columns_of(name: str, frame: Any) -> tuple[Column, ...] | None:
    """What the columns hold; None if all are numbers without gaps, which need no encoding."""
    cells = [_cells(name, title, frame.iloc[:, i]) for i, title in enumerate(frame.columns)]
    if not any(isinstance(c, list) or c.dtype.kind == "M" or np.isnan(c).any() for c in cells):
        return None
    found = []
    for title, column in zip(frame.columns, cells, strict=True):
        survey = Survey(str(title), f"drop(columns={title!r})")
        survey.add(column, lambda row: f"{name}, row {row}")
        found.append(survey.column(name))
    return tuple(found)


def frame_features(name: str, frame: Any, columns: Sequence[Column]) -> NDArray[np.float32]:
    """float32 (rows, features); the columns are those that were learned, in any order, among others or not."""
    titles = [str(title) for title in frame.columns]
    found = []
    for column in columns:
        if titles.count(column.name) != 1:
            problem = "no column" if column.name not in titles else "more than one column"
            raise TableError(f"{name}: there is {problem} {column.name!r}, which the model was trained with")
        cells = _cells(name, column.name, frame.iloc[:, titles.index(column.name)])
        found.append(values(column, cells, lambda row: f"{name}, row {row}"))
    return encode(columns, found, len(frame))


def _cells(name: str, title: Any, series: Any) -> Cells:
    """Numbers, NaN where missing; dates in UTC; or text, blank where missing."""
    if str(series.dtype) == "category":
        series = series.astype(object)
    if series.dtype.kind == "M":
        return np.asarray((series if series.dt.tz is None else series.dt.tz_convert(None)).to_numpy())
    if series.dtype.kind in "fiub":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    known = series[series.notna()].tolist()
    if series.dtype.kind == "O" and all(isinstance(value, _PLAIN) for value in known):
        there = iter(known)
        return [label_text(next(there)) if filled else "" for filled in series.notna().tolist()]
    raise TableError(
        f"{name}: column {title!r} is {series.dtype}; features must be numbers, dates or words: convert it, or "
        f"drop(columns={title!r})"
    )
