"""Tables in Parquet, through the `parquet` extra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from cadr.data.pool import Pool
from cadr.data.sources import table
from cadr.data.sources.base import Block, Blocks, Kind, Options, PredictionDataError, Wanted
from cadr.data.sources.labels import label_text
from cadr.data.sources.parsing import Cells, TableError, arrow_cells, python_values, rows_from
from cadr.data.sources.table import Part, cells_of, layout_of, places, table_pool
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason

NAME, LABELS_BESIDE = "a table", False
KIND: Kind | None = "features"
ROWS = 8192  # to predict on together


def matches(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def open_pool(path: Path, options: Options) -> Pool:
    """A null label is missing."""
    return table_of(path, _read(path, lambda parquet: parquet.read_table(path, memory_map=True)), options)


def table_of(path: Path, whole: Any, options: Options) -> Pool:
    """A pool from an Arrow table, whatever file it was read from."""
    header = [str(name) for name in whole.column_names]
    at = places(path, header, options)

    def parts() -> Iterator[Part]:
        start = 0
        for batch in whole.to_batches(max_chunksize=table.ROWS):
            _check(path, batch)
            named = ((batch.column(i), f"{path}: column {header[i]!r}") for i in (at.label, *at.called))
            labels, *called = (list(map(label_text, python_values(*column))) for column in named)
            cells: list[Cells] = []
            for i in at.features:
                found = arrow_cells(batch.column(i))
                if found is None:
                    raise TableError(
                        f"{path}: column {header[i]!r} is {batch.column(i).type}; features must be numbers, dates "
                        "or categories, and what is no feature is left out with --ignore-columns"
                    )
                cells.append(found)
            weights = None if at.weight is None else arrow_cells(batch.column(at.weight))
            if at.weight is not None and weights is None:
                raise TableError(f"{path}: column {header[at.weight]!r} is no column of numbers, as weights are")
            yield Part(labels, called[0] if called else [], cells, rows_from(path, start), weights)
            start += len(labels)

    return table_pool(path, [header[i] for i in at.features], parts, options)


def _read(path: Path, read: Callable[[Any], Any]) -> Any:
    """What `read` makes of the file with Arrow's Parquet."""
    pyarrow, parquet = (optional_import(name, f"reading {path}", "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        return read(parquet)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {reason(error)}") from error


def _check(path: Path, batch: Any) -> None:
    """Whether texts are texts, and whatever points somewhere points into the data."""
    try:
        batch.validate(full=True)
    except ValueError as error:
        raise TableError(f"{path} is damaged: {reason(error)}") from None


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    # Without these two a whole group of rows is read at once.
    file = _read(path, lambda parquet: parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16))
    schema = file.schema_arrow
    header = [str(name) for name in schema.names]
    layout = layout_of(path, header, wanted)
    if file.metadata.num_rows == 0:
        raise PredictionDataError(f"{path} has no rows")

    parts = -(-file.metadata.num_rows // ROWS)

    def read(first: int, last: int | None) -> Iterator[Block]:
        start = first * ROWS
        wanted_parts = len(range(parts)[first:last])
        try:
            for batch in islice(_from_row(path, file, start), wanted_parts):
                given = None if layout.label_at is None else batch.column(layout.label_at)
                labels = [] if given is None else python_values(given, f"{path}: column {wanted.label_column!r}")
                kept = [batch.column(i) for i in layout.kept]
                yield layout.block(
                    cells_of(path, header, batch, layout),
                    rows_from(path, start),
                    list(map(label_text, labels)),
                    kept or [list(range(start, start + batch.num_rows))],
                    wanted,
                )
                start += batch.num_rows
        except (optional_import("pyarrow", f"reading {path}").ArrowException, OSError) as error:
            raise TableError(f"{path} is damaged: {reason(error)}") from error

    types = {header[i]: schema.field(i).type for i in layout.kept}
    return Blocks(list(types) or ["row"], layout.label_at is not None, read, parts, types, not types)


def table_blocks(path: Path, whole: Any, wanted: Wanted) -> Blocks:
    """Rows of an Arrow table in memory to predict on."""
    header = [str(name) for name in whole.column_names]
    layout = layout_of(path, header, wanted)
    whole = whole.combine_chunks()

    def read(first: int, last: int | None) -> Iterator[Block]:
        for part in range(parts)[first:last]:
            start = part * ROWS
            (batch,) = whole.slice(start, ROWS).combine_chunks().to_batches()
            _check(path, batch)
            given = None if layout.label_at is None else batch.column(layout.label_at)
            labels = [] if given is None else python_values(given, f"{path}: column {wanted.label_column!r}")
            kept = [batch.column(i) for i in layout.kept]
            yield layout.block(
                cells_of(path, header, batch, layout),
                rows_from(path, start),
                list(map(label_text, labels)),
                kept or [list(range(start, start + batch.num_rows))],
                wanted,
            )

    parts = -(-whole.num_rows // ROWS)
    types = {header[i]: whole.schema.field(i).type for i in layout.kept}
    return Blocks(list(types) or ["row"], layout.label_at is not None, read, parts, types, not types)


def _from_row(path: Path, file: Any, first: int) -> Iterator[Any]:
    """Batches of `ROWS` rows from row `first` on; groups of rows that lie before it are not read."""
    groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    skipped = 0
    while groups and skipped + groups[0] <= first:
        skipped += groups.pop(0)
    rest = range(file.metadata.num_row_groups - len(groups), file.metadata.num_row_groups)
    before = first - skipped  # rows of the first group read
    over = None
    for batch in file.iter_batches(batch_size=ROWS, row_groups=rest):
        _check(path, batch)
        here, before = min(before, batch.num_rows), max(0, before - batch.num_rows)
        if not here and over is None:  # as it is from the start of a group that begins with a part
            yield batch
            continue
        over = _joined(over, batch.slice(here))
        if over.num_rows >= ROWS:
            yield over.slice(0, ROWS)
            over = over.slice(ROWS)
    if over is not None and over.num_rows:
        yield over


def _joined(before: Any, batch: Any) -> Any:
    if before is None or not before.num_rows:
        return batch
    pyarrow = import_module("pyarrow")
    return pyarrow.Table.from_batches([before, batch]).combine_chunks().to_batches()[0]
