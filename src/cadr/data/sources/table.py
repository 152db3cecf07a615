"""Tables of features, numbers, dates or words, with a label column: CSV, or Parquet through the `parquet` extra."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.sources.columns import Column, encode
from cadr.data.sources.csv_file import LABEL_HINT, column, read_csv
from cadr.data.sources.labels import class_order, index_labels, label_text
from cadr.data.sources.parsing import Cells, TableError, Where, arrow_cells, lines_of, rows_from, values
from cadr.data.sources.schema_inference import Rounding, Survey, check_no_row_numbers
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason

ROWS = 4096  # turned into numbers together
_ROW_NUMBERS = ("", "Unnamed: 0", "__index_level_0__")  # to CSV; to CSV, read and written again; to Parquet


class Part(NamedTuple):
    """Some rows of a table."""

    labels: list[str]  # blank where missing
    called: list[str]  # what the rows are called, if anything
    cells: list[Cells]  # of each column that is a feature
    where: Where


Parts = Callable[[], Iterator[Part]]  # to read the table from its start


def open_csv(path: Path, label_column: str, ignored: tuple[str, ...] = ()) -> Pool:
    """Every column but the label and those ignored is a feature; a blank label is missing.

    The first ignored column says what the rows are called.
    """
    header, _ = read_csv(path)
    label_at = column(path, header, label_column, LABEL_HINT)
    feature_at = _feature_columns(path, header, label_at, ignored)
    called_at = [header.index(name) for name in ignored[:1]]

    def parts() -> Iterator[Part]:
        _, rows = read_csv(path)
        while lines := list(islice(rows, ROWS)):
            table = list(zip(*(row for _, row in lines), strict=True))
            labels, *called = ([text.strip() for text in table[i]] for i in (label_at, *called_at))
            cells: list[Cells] = [list(table[i]) for i in feature_at]
            yield Part(labels, called[0] if called else [], cells, lines_of(path, lines))

    return _pool(path, [header[i] for i in feature_at], parts)


def open_parquet(path: Path, label_column: str, ignored: tuple[str, ...] = ()) -> Pool:
    """As for CSV; a null label is missing."""
    pyarrow, parquet = (optional_import(name, f"reading {path}", "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        table = parquet.read_table(path, memory_map=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {reason(error)}") from error
    header = [str(name) for name in table.column_names]
    if len(set(header)) != len(header):
        raise TableError(f"{path}: column {next(n for n in header if header.count(n) > 1)!r} is there twice")
    label_at = column(path, header, label_column, LABEL_HINT)
    feature_at = _feature_columns(path, header, label_at, ignored)
    called_at = [header.index(name) for name in ignored[:1]]

    def parts() -> Iterator[Part]:
        start = 0
        for batch in table.to_batches(max_chunksize=ROWS):
            labels, *called = (list(map(label_text, batch.column(i).to_pylist())) for i in (label_at, *called_at))
            cells: list[Cells] = []
            for i in feature_at:
                found = arrow_cells(batch.column(i))
                if found is None:
                    raise TableError(
                        f"{path}: column {header[i]!r} is {batch.column(i).type}; features must be numbers, dates "
                        "or words, and what is no feature is left out with --ignore-columns"
                    )
                cells.append(found)
            yield Part(labels, called[0] if called else [], cells, rows_from(path, start))
            start += len(labels)

    return _pool(path, [header[i] for i in feature_at], parts)


def _pool(path: Path, header: list[str], parts: Parts) -> Pool:
    columns = [Column(name) for name in header]
    rounding = Rounding(len(header))
    try:
        matrix, texts, called = _read(columns, parts(), rounding)
        plain = not rounding.merges.any()
    except TableError:
        plain = False
    if not plain:  # words, dates, gaps or offsets, and what such columns hold is known when all of it has been seen
        columns = _survey(path, header, parts())
        matrix, texts, called = _read(columns, parts())
    if not texts or not columns:
        raise TableError(f"{path}: expected rows of features, found {len(texts)} rows and {len(columns)} features")
    features = tuple(feature for column in columns for feature in column.features)
    check_no_row_numbers(path, columns, matrix)
    names = class_order(str(path), texts)
    return Pool(
        matrix,
        index_labels(str(path), texts, names),
        names,
        path.stem,
        feature_names=features,
        columns=None if columns == [Column(name) for name in header] else tuple(columns),
        identifiers=tuple(called) or None,
    )


def _read(
    columns: list[Column], parts: Iterator[Part], rounding: Rounding | None = None
) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """Features, labels, and what the rows are called."""
    texts: list[str] = []
    called: list[str] = []
    blocks = [np.empty((0, sum(len(column.features) for column in columns)), dtype=np.float32)]
    for part in parts:
        texts += part.labels
        called += part.called
        found = [values(*each, part.where) for each in zip(columns, part.cells, strict=True)]
        if rounding is not None and found:
            rounding.add(np.stack(found, axis=1))
        blocks.append(encode(columns, found, len(part.labels)))
    return np.concatenate(blocks), texts, called


def _survey(path: Path, header: list[str], parts: Iterator[Part]) -> list[Column]:
    surveys = [Survey(name) for name in header]
    for part in parts:
        for survey, cells in zip(surveys, part.cells, strict=True):
            survey.add(cells, part.where)
    return [survey.column(path) for survey in surveys]


def _feature_columns(path: Path, header: list[str], label_at: int, ignored: tuple[str, ...]) -> list[int]:
    out = {label_at} | {column(path, header, name) for name in ignored}
    for name in (header[i] for i in range(len(header)) if i not in out):
        if name in _ROW_NUMBERS:
            raise TableError(
                f"{path}: column {name!r} looks like row numbers, as pandas and R write them; nothing can be learned "
                f"from them: leave the column out with --ignore-columns {shlex.quote(name)}, or give it a name"
            )
    return [i for i in range(len(header)) if i not in out]
