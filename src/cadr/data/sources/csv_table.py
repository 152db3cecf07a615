"""Tables in CSV: as Python reads them, and to predict on as Arrow does, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from cadr.data.pool import Pool
from cadr.data.sources import table
from cadr.data.sources.base import Block, Blocks, Kind, Options, PredictionDataError, Wanted
from cadr.data.sources.csv_file import CSV_SUFFIXES, delimiter_of, read_csv
from cadr.data.sources.parsing import NO_NUMBER, Cells, TableError, lines_of, rows_from
from cadr.data.sources.table import Layout, Part, cells_of, layout_of, places, table_pool

NAME, LABELS_BESIDE = "a table", False
KIND: Kind | None = "features"
ROWS = 8192  # to predict on together
BYTES = 1 << 22  # that Arrow reads together


def matches(path: Path) -> bool:
    return path.suffix.lower() in CSV_SUFFIXES


def open_pool(path: Path, options: Options) -> Pool:
    """A blank label is missing."""
    header, _ = read_csv(path)
    at = places(path, header, options)

    def parts() -> Iterator[Part]:
        _, rows = read_csv(path)
        while lines := list(islice(rows, table.ROWS)):
            cells = list(zip(*(row for _, row in lines), strict=True))
            labels, *called = ([text.strip() for text in cells[i]] for i in (at.label, *at.called))
            features: list[Cells] = [list(cells[i]) for i in at.features]
            weights = None if at.weight is None else list(cells[at.weight])
            yield Part(labels, called[0] if called else [], features, lines_of(path, lines), weights)

    return table_pool(path, [header[i] for i in at.features], parts, options)


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    """Read by Arrow where it is installed, which is several times faster, and by Python elsewhere."""
    header, _ = read_csv(path)
    layout = layout_of(path, header, wanted)

    def read(first: int, last: int | None) -> Iterator[Block]:
        for part, block in enumerate(_blocks(path, header, layout, wanted, first)):
            if part == last:
                return
            if block is not None:
                yield block

    names = [header[i] for i in layout.kept]
    parts = _estimated_parts(path)
    return Blocks(names or ["row"], layout.label_at is not None, read, parts, {}, not names, sequential=True)


def _estimated_parts(path: Path) -> int:
    size = path.stat().st_size
    if find_spec("pyarrow"):
        return max(1, size // BYTES)
    with path.open("rb") as file:
        start = file.read(1 << 16)
    return max(1, size * start.count(b"\n") // (len(start) * ROWS))


def _blocks(path: Path, header: list[str], layout: Layout, wanted: Wanted, first: int) -> Iterator[Block | None]:
    """Block by block, None for those before the first one wanted: these are read, and nothing is made of them."""
    start = part = 0
    for batch in _arrow_batches(path, header, layout):
        yield None if part < first else _arrow_block(path, header, layout, wanted, batch, start)
        start, part = start + batch.num_rows, part + 1
    # What Arrow does not understand is read again from where it stopped: it may be right, or deserve a sentence.
    rest = islice(read_csv(path)[1], start, None)
    while lines := list(islice(rest, ROWS)):
        yield None if part < first else _block(path, layout, wanted, lines, start)
        start, part = start + len(lines), part + 1
    if start == 0:
        raise PredictionDataError(f"{path} has no rows, only the names of columns")


def _block(path: Path, layout: Layout, wanted: Wanted, lines: list[tuple[int, list[str]]], start: int) -> Block:
    cells_at = list(zip(*(row for _, row in lines), strict=True))
    cells: list[Cells] = [list(cells_at[i]) for i in layout.feature_at]
    labels = [] if layout.label_at is None else [text.strip() for text in cells_at[layout.label_at]]
    kept: list[Any] = [list(cells_at[i]) for i in layout.kept] or [list(range(start, start + len(lines)))]
    return layout.block(cells, lines_of(path, lines), labels, kept, wanted)


def _arrow_batches(path: Path, header: list[str], layout: Layout) -> Iterator[Any]:
    """For as long as every cell is of the type that Arrow expects; none without Arrow."""
    try:
        pyarrow, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return
    numbers = {c.name for c in layout.columns if c.words is None and c.since is None and c.texts is None}
    types = {name: pyarrow.float64() if name in numbers else pyarrow.string() for name in header}
    with path.open(encoding="utf-8-sig") as file:
        delimiter = delimiter_of(file.readline())
    with suppress(pyarrow.ArrowException):
        yield from csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=header, skip_rows=1, block_size=BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, null_values=NO_NUMBER),
        )


def _arrow_block(path: Path, header: list[str], layout: Layout, wanted: Wanted, batch: Any, start: int) -> Block:
    labels = [] if layout.label_at is None else batch.column(layout.label_at).to_pylist()
    kept = [batch.column(i).to_pylist() for i in layout.kept]
    rows = batch.num_rows
    try:
        return layout.block(
            cells_of(path, header, batch, layout),
            rows_from(path, start),
            [text.strip() for text in labels],
            kept or [list(range(start, start + rows))],
            wanted,
        )
    except (import_module("pyarrow").ArrowException, TableError):  # these rows once more, with lines to name
        return _block(path, layout, wanted, list(islice(read_csv(path)[1], start, start + rows)), start)
