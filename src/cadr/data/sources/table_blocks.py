"""Tables to predict on, some rows at a time. Columns are found by name, in whatever order they come."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib import import_module
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.reason import listed, reason
from cadr.data.sources.blocks import Block, Blocks, PredictionDataError, Wanted, check_finite
from cadr.data.sources.csv_file import delimiter_of, read_csv
from cadr.data.sources.label_names import names_of_texts
from cadr.data.sources.table import TableError, as_number, label_text, not_a_number

ROWS = 8192
Layout = tuple[list[int], int | None, list[int]]  # where the features, the label if any, and columns to keep are


def open_csv(path: Path, wanted: Wanted) -> Blocks:
    """Read by Arrow where it is installed, which is several times faster, and by Python elsewhere."""
    header, rows = read_csv(path)
    layout = _columns(path, header, wanted)
    _, label_at, kept = layout

    def blocks() -> Iterator[Block]:
        start, complete = yield from _fast(path, header, layout, wanted)
        # What Arrow does not understand is read again from where it stopped: it may be right, or deserve a sentence.
        rest = iter(()) if complete else islice(rows, start, None)
        while lines := list(islice(rest, ROWS)):
            block = _block(path, header, layout, wanted, lines, start)
            yield block
            start += len(lines)
        if start == 0:
            raise PredictionDataError(f"{path} has no rows, only the names of columns")

    return Blocks([header[i] for i in kept] or ["row"], label_at is not None, blocks(), {}, not kept)


def _block(
    path: Path, header: list[str], layout: Layout, wanted: Wanted, lines: list[tuple[int, list[str]]], start: int
) -> Block:
    features, label_at, kept = layout
    cells = [row for _, row in lines]
    examples = _numbers(path, lines, features, header)
    check_finite(str(path), examples, start)
    labels = None
    if label_at is not None:
        labels = names_of_texts([row[label_at].strip() for row in cells], wanted.class_names)
    return Block(
        examples, labels, [[row[i] for row in cells] for i in kept] or [list(range(start, start + len(cells)))]
    )


def _fast(path: Path, header: list[str], layout: Layout, wanted: Wanted) -> Generator[Block, None, tuple[int, bool]]:
    """Blocks for as long as every cell is what Arrow expects; how many rows that were, and if all.

    Without Arrow, none.
    """
    start = 0
    try:
        pyarrow, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return start, False
    features, label_at, kept = layout
    types = {name: pyarrow.float64() if i in set(features) else pyarrow.string() for i, name in enumerate(header)}
    with path.open(encoding="utf-8-sig") as file:
        delimiter = delimiter_of(file.readline())
    try:
        batches = csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=header, skip_rows=1, block_size=1 << 22),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types),
        )
        for batch in batches:
            if any(batch.column(i).null_count for i in features):
                return start, False
            examples = _matrix(path, header, batch, features, start)
            if not np.isfinite(examples).all():
                return start, False
            labels = None
            if label_at is not None:
                texts = [text.strip() for text in batch.column(label_at).to_pylist()]
                labels = names_of_texts(texts, wanted.class_names)
            columns = [batch.column(i).to_pylist() for i in kept]
            yield Block(examples, labels, columns or [list(range(start, start + batch.num_rows))])
            start += batch.num_rows
        return start, True
    except pyarrow.ArrowException:
        return start, False


def _matrix(path: Path, header: list[str], batch: Any, features: list[int], start: int) -> NDArray[np.float32]:
    examples = np.empty((batch.num_rows, len(features)), dtype=np.float32)
    with np.errstate(over="ignore"):  # what does not fit is reported as not finite
        for target, i in enumerate(features):
            examples[:, target] = _column(path, header[i], batch.column(i), start)
    return examples


def _numbers(path: Path, lines: list[tuple[int, list[str]]], features: list[int], header: list[str]) -> Any:
    """Cells as float32; one pass over all of them, and a second, slow one for truth values and mistakes."""
    pick = itemgetter(*features) if len(features) > 1 else lambda row: (row[features[0]],)
    try:
        cells = chain.from_iterable(pick(row) for _, row in lines)
        numbers = np.fromiter(map(float, cells), dtype=np.float64, count=len(lines) * len(features))
    except ValueError:
        numbers = np.array([_number(path, line, header[i], row[i]) for line, row in lines for i in features])
    with np.errstate(over="ignore"):  # what does not fit is reported as not finite
        return numbers.astype(np.float32).reshape(len(lines), len(features))


def _number(path: Path, line: int, name: str, cell: str) -> float:
    try:
        return as_number(cell)
    except ValueError:
        raise PredictionDataError(f"{path}, line {line}, column {name!r}: {not_a_number(cell)}") from None


def open_parquet(path: Path, wanted: Wanted) -> Blocks:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise TableError(f"reading {path} needs the package pyarrow: pip install 'cadr[parquet]'") from None
    try:
        file = parquet.ParquetFile(
            path, pre_buffer=False, buffer_size=1 << 16
        )  # or a whole group of rows is read at once
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {reason(error)}") from error
    schema = file.schema_arrow
    header = [str(name) for name in schema.names]
    features, label_at, kept = _columns(path, header, wanted)
    if file.metadata.num_rows == 0:
        raise PredictionDataError(f"{path} has no rows")

    def blocks() -> Iterator[Block]:
        start = 0
        try:
            for batch in file.iter_batches(batch_size=ROWS):
                examples = _matrix(path, header, batch, features, start)
                check_finite(str(path), examples, start)
                labels = None
                if label_at is not None:
                    texts = [label_text(value) for value in batch.column(label_at).to_pylist()]
                    labels = names_of_texts(texts, wanted.class_names)
                columns = [batch.column(i) for i in kept]
                yield Block(examples, labels, columns or [list(range(start, start + batch.num_rows))])
                start += batch.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise TableError(f"{path} is damaged: {reason(error)}") from error

    types = {header[i]: schema.field(i).type for i in kept}
    return Blocks([header[i] for i in kept] or ["row"], label_at is not None, blocks(), types, not kept)


def _column(path: Path, name: str, values: Any, start: int) -> NDArray[Any]:
    if values.null_count:
        row = next(i for i, value in enumerate(values) if not value.is_valid)
        raise PredictionDataError(f"{path}: column {name!r} has no value in row {start + row}")
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind not in "fiub":
        raise PredictionDataError(f"{path}: column {name!r} is {values.type}; features must be numbers")
    return numbers


def _columns(path: Path, header: list[str], wanted: Wanted) -> Layout:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise PredictionDataError(f"{path}: column {twice[0]!r} is there twice")
    label_at = header.index(wanted.label_column) if wanted.label_column in header else None
    if wanted.feature_names is None:  # trained on an array: the columns have no names there, only a number
        features = [i for i in range(len(header)) if i != label_at]
        if len(features) != wanted.shape[0]:
            raise PredictionDataError(
                f"{path}: the model was trained on {wanted.shape[0]} features, this table has {len(features)} columns"
            )
        return features, label_at, []
    missing = [name for name in wanted.feature_names if name not in header]
    if missing:
        raise PredictionDataError(
            f"{path} lacks {len(missing)} of the {len(wanted.feature_names)} columns that the model was trained on: "
            + listed(missing)
        )
    features = [header.index(name) for name in wanted.feature_names]
    known = {*features, label_at}
    return features, label_at, [i for i in range(len(header)) if i not in known]
