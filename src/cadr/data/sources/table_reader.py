"""Tables to predict on, some rows at a time. Columns are found by name, in whatever order they come."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from cadr.data.sources.columns import Column, encode
from cadr.data.sources.csv_file import delimiter_of, read_csv
from cadr.data.sources.labels import label_text, names_of_texts
from cadr.data.sources.parsing import (
    NO_NUMBER,
    UNSEEN,
    Cells,
    TableError,
    UnknownCategories,
    Where,
    arrow_cells,
    lines_of,
    rows_from,
    values,
)
from cadr.data.sources.prediction_reader import Block, Blocks, PredictionDataError, Wanted
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import listed, reason

ROWS = 8192
BYTES = 1 << 22  # that Arrow reads together


class Layout(NamedTuple):
    """Where in a table the features, the label if any, and columns to keep are."""

    columns: tuple[Column, ...]
    feature_at: list[int]
    label_at: int | None
    kept: list[int]

    def block(self, cells: list[Cells], where: Where, labels: list[str], kept: list[Any], wanted: Wanted) -> Block:
        found = [values(*each, where) for each in zip(self.columns, cells, strict=True)]
        unseen = {
            column.name: UnknownCategories.among(texts, positions)
            for column, texts, positions in zip(self.columns, cells, found, strict=True)
            if column.words is not None and (positions == UNSEEN).any()
        }
        names = None if self.label_at is None else names_of_texts(labels, wanted.class_names)
        return Block(encode(self.columns, found, len(found[0])), names, kept, unseen)


def open_csv(path: Path, wanted: Wanted) -> Blocks:
    """Read by Arrow where it is installed, which is several times faster, and by Python elsewhere."""
    header, rows = read_csv(path)
    layout = _layout(path, header, wanted)

    def blocks() -> Iterator[Block]:
        start, complete = yield from _fast(path, header, layout, wanted)
        # What Arrow does not understand is read again from where it stopped: it may be right, or deserve a sentence.
        rest = iter(()) if complete else islice(rows, start, None)
        while lines := list(islice(rest, ROWS)):
            yield _block(path, layout, wanted, lines, start)
            start += len(lines)
        if start == 0:
            raise PredictionDataError(f"{path} has no rows, only the names of columns")

    names = [header[i] for i in layout.kept]
    return Blocks(names or ["row"], layout.label_at is not None, blocks(), {}, not names)


def _block(path: Path, layout: Layout, wanted: Wanted, lines: list[tuple[int, list[str]]], start: int) -> Block:
    table = list(zip(*(row for _, row in lines), strict=True))
    cells: list[Cells] = [list(table[i]) for i in layout.feature_at]
    labels = [] if layout.label_at is None else [text.strip() for text in table[layout.label_at]]
    kept: list[Any] = [list(table[i]) for i in layout.kept] or [list(range(start, start + len(lines)))]
    return layout.block(cells, lines_of(path, lines), labels, kept, wanted)


def _fast(path: Path, header: list[str], layout: Layout, wanted: Wanted) -> Generator[Block, None, tuple[int, bool]]:
    """Blocks for as long as every cell is what Arrow expects; how many rows that were, and if all.

    Without Arrow, none.
    """
    start = 0
    try:
        pyarrow, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return start, False
    numbers = {column.name for column in layout.columns if column.words is None and column.since is None}
    types = {name: pyarrow.float64() if name in numbers else pyarrow.string() for name in header}
    with path.open(encoding="utf-8-sig") as file:
        delimiter = delimiter_of(file.readline())
    try:
        batches = csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=header, skip_rows=1, block_size=BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, null_values=NO_NUMBER),
        )
        for batch in batches:
            labels = [] if layout.label_at is None else batch.column(layout.label_at).to_pylist()
            kept = [batch.column(i).to_pylist() for i in layout.kept]
            yield layout.block(
                _cells(path, header, batch, layout),
                rows_from(path, start),
                [text.strip() for text in labels],
                kept or [list(range(start, start + batch.num_rows))],
                wanted,
            )
            start += batch.num_rows
        return start, True
    except (pyarrow.ArrowException, TableError):
        return start, False


def open_parquet(path: Path, wanted: Wanted) -> Blocks:
    pyarrow, parquet = (optional_import(name, f"reading {path}", "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        file = parquet.ParquetFile(
            path, pre_buffer=False, buffer_size=1 << 16
        )  # or a whole group of rows is read at once
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {reason(error)}") from error
    schema = file.schema_arrow
    header = [str(name) for name in schema.names]
    layout = _layout(path, header, wanted)
    if file.metadata.num_rows == 0:
        raise PredictionDataError(f"{path} has no rows")

    def blocks() -> Iterator[Block]:
        start = 0
        try:
            for batch in file.iter_batches(batch_size=ROWS):
                labels = [] if layout.label_at is None else batch.column(layout.label_at).to_pylist()
                kept = [batch.column(i) for i in layout.kept]
                yield layout.block(
                    _cells(path, header, batch, layout),
                    rows_from(path, start),
                    list(map(label_text, labels)),
                    kept or [list(range(start, start + batch.num_rows))],
                    wanted,
                )
                start += batch.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise TableError(f"{path} is damaged: {reason(error)}") from error

    types = {header[i]: schema.field(i).type for i in layout.kept}
    return Blocks(list(types) or ["row"], layout.label_at is not None, blocks(), types, not types)


def _cells(path: Path, header: list[str], batch: Any, layout: Layout) -> list[Cells]:
    found = []
    for i, column in zip(layout.feature_at, layout.columns, strict=True):
        cells = arrow_cells(batch.column(i), words=column.words is not None)
        if cells is None:
            kind = batch.column(i).type
            raise PredictionDataError(
                f"{path}: column {header[i]!r} is {kind}; features must be numbers, dates or words"
            )
        found.append(cells)
    return found


def _layout(path: Path, header: list[str], wanted: Wanted) -> Layout:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise PredictionDataError(f"{path}: column {twice[0]!r} is there twice")
    label_at = header.index(wanted.label_column) if wanted.label_column in header else None
    if wanted.columns is None:  # trained on an array: the columns have no names there, only a number
        features = [i for i in range(len(header)) if i != label_at]
        if len(features) != wanted.shape[0]:
            raise PredictionDataError(
                f"{path}: the model was trained on {wanted.shape[0]} features, this table has {len(features)} columns"
            )
        return Layout(tuple(Column(header[i]) for i in features), features, label_at, [])
    missing = [column.name for column in wanted.columns if column.name not in header]
    if missing:
        raise PredictionDataError(
            f"{path} lacks {len(missing)} of the {len(wanted.columns)} columns that the model was trained on: "
            + listed(missing)
        )
    features = [header.index(column.name) for column in wanted.columns]
    known = {*features, label_at}
    return Layout(wanted.columns, features, label_at, [i for i in range(len(header)) if i not in known])
