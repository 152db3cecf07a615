"""Tables of pandas, with words, dates or gaps or without, encoded as a table in a file is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.sources.base import Options
from cadr.data.sources.columns import Column, encode
from cadr.data.sources.labels import label_text
from cadr.data.sources.parsing import Cells, TableError, rows_from, values
from cadr.data.sources.schema_inference import Survey
from cadr.data.sources.table import Part, places, table_pool

_PLAIN = (str, bool, int, float, Decimal, date, np.bool_, np.integer, np.floating)


def is_frame(examples: Any) -> bool:
    return all(hasattr(examples, name) for name in ("columns", "dtypes", "iloc"))


def open_frame(frame: Any, options: Options) -> Pool:
    """A pool from a table with a column of labels, as from a file of the name DataFrame."""
    path, header = Path("DataFrame"), [str(title) for title in frame.columns]
    at = places(path, header, options)
    labels, *called = (_texts(frame.iloc[:, i]) for i in (at.label, *at.called))
    cells = [_cells(str(path), header[i], frame.iloc[:, i]) for i in at.features]

    def parts() -> Iterator[Part]:
        yield Part(labels, called[0] if called else [], cells, rows_from(path, 0))

    return table_pool(path, [header[i] for i in at.features], parts)


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
    if series.dtype.kind == "O" and all(isinstance(value, _PLAIN) for value in series[series.notna()].tolist()):
        return _texts(series)
    raise TableError(
        f"{name}: column {title!r} is {series.dtype}; features must be numbers, dates or words: convert it, or "
        f"drop(columns={title!r})"
    )


def _texts(series: Any) -> list[str]:
    filled = series.notna().tolist()
    return [label_text(value) if there else "" for value, there in zip(series.tolist(), filled, strict=True)]
