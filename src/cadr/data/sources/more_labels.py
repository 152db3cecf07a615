"""Labels in a file beside the data: of some rows of a table or of arrays, or of pictures that a folder holds.

A CSV with the columns `row` (from 0) and the label's, as `cadr label` writes it, or the export of an annotation tool.
Where it has a column `check`, a row must be the one that was labelled: a table that was sorted since is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, Pool
from cadr.data.sources import label_exports
from cadr.data.sources.csv_file import CSV_SUFFIXES, LABEL_HINT, column, read_csv
from cadr.data.sources.labels import class_order, index_labels, label_spelling
from cadr.data.sources.parsing import TableError, python_values
from cadr.errors import DataError
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason

ROW, CHECK = "row", "check"


class MoreLabelsError(DataError):
    """Labels beside the data do not belong to them."""


class RowLabel(NamedTuple):
    label: str
    where: str  # for a sentence
    check: str | None = None


def row_labels(path: Path, label_column: str, length: int) -> dict[int, RowLabel]:
    """The labels of rows in a CSV with a column `row`, or in an export; a blank one is none."""
    found: dict[int, RowLabel] = {}
    for row, one in _of_export(path) if path.suffix.lower() in label_exports.SUFFIXES else _of_csv(path, label_column):
        if row is None or not 0 <= row < length or row in found:
            raise MoreLabelsError(f"{one.where}: row {row!r} is not a number below {length}, each once")
        found[row] = one
    return {row: one for row, one in found.items() if one.label}


def _of_csv(path: Path, label_column: str) -> list[tuple[int | None, RowLabel]]:
    header, rows = read_csv(path)
    label_at = column(path, header, label_column, LABEL_HINT, any_case=True)
    if ROW not in header:
        raise MoreLabelsError(
            f"{path}: expected a column {ROW!r} that says which rows (from 0) the labels belong to, as the data have "
            "labels of their own"
        )
    row_at, check_at = header.index(ROW), header.index(CHECK) if CHECK in header else None
    found: list[tuple[int | None, RowLabel]] = []
    for line, row in rows:
        number = row[row_at].strip()
        check = row[check_at].strip() if check_at is not None else ""
        labelled = RowLabel(row[label_at].strip(), f"{path}, line {line}", check or None)
        found.append((int(number) if number.isdecimal() and len(number) < 19 else None, labelled))
    return found


def _of_export(path: Path) -> list[tuple[int | None, RowLabel]]:
    found: list[tuple[int | None, RowLabel]] = []
    for one in label_exports.read_annotations(path):
        if one.row is None:
            raise MoreLabelsError(
                f"{one.where} is of the file {one.file!r}; expected a row, as cadr export-tasks writes"
            )
        found.append((one.row, RowLabel(one.label, one.where, one.check)))
    return found


def checks(path: Path, pool: Pool, label_column: str) -> Callable[[list[int]], dict[int, str]]:
    """What gives the digests of rows: of their cells in a table, or of their numbers or pixels in an array."""

    def of_table(rows: list[int]) -> dict[int, str]:
        found = raw_rows(path, rows, label_column)
        return {row: found.check(row) for row in found.cells}

    def of_array(rows: list[int]) -> dict[int, str]:
        content = (np.ascontiguousarray(pool.examples[row]).tobytes() for row in rows)
        return {row: hashlib.sha256(each).hexdigest()[:12] for row, each in zip(rows, content, strict=True)}

    return of_table if path.suffix.lower() in TABLES else of_array


def with_row_labels(pool: Pool, path: Path, beside: Path, label_column: str) -> Pool:
    """A pool of the file `path` with the labels of `beside` added to its own."""
    found = row_labels(beside, label_column, len(pool.labels))
    checked = [row for row, one in found.items() if one.check is not None]
    digests = checks(path, pool, label_column)(checked) if checked else {}
    for row in checked:
        if digests.get(row) != found[row].check:
            raise MoreLabelsError(
                f"{found[row].where}: row {row} of {path} is not the one that was labelled; put its rows back into "
                "the order that they had, or label them again"
            )
    return _with_labels(pool, str(beside), found)


def with_file_labels(pool: Pool, root: Path, beside: Path, found: Mapping[Path, str]) -> Pool:
    """A pool of the files under `root`, named by its identifiers, with labels added."""
    rows = {name: row for row, name in enumerate(pool.identifiers or ())}
    labels = {}
    for path, label in found.items():
        name = path.relative_to(root).as_posix()
        if name not in rows:
            raise MoreLabelsError(f"{beside}: {name!r} is none of the examples in {root} that may be labelled")
        labels[rows[name]] = RowLabel(label, f"{beside}: {name!r}")
    return _with_labels(pool, str(beside), labels)


def _with_labels(pool: Pool, source: str, found: Mapping[int, RowLabel]) -> Pool:
    pool = _with_names(pool, source, [one.label for one in found.values()])
    labels, names = pool.labels.copy(), pool.class_names
    added = index_labels(source, [one.label for one in found.values()], names)
    for (row, one), label in zip(found.items(), added, strict=True):
        if labels[row] not in (MISSING, label):
            raise MoreLabelsError(
                f"{one.where}: row {row} is labelled {one.label!r}, and {names[labels[row]]!r} in the data; keep one"
            )
        labels[row] = label
    return dataclasses.replace(pool, labels=labels)


def _with_names(pool: Pool, source: str, labels: list[str]) -> Pool:
    """The pool with classes that only the labels beside it name, in the order that they would have had at once."""
    known = {label_spelling(name) for name in pool.class_names}
    if all(label_spelling(label) in known for label in labels):
        return pool
    names = class_order(source, [*pool.class_names, *labels])
    places = np.append(index_labels(source, list(pool.class_names), names), MISSING)  # the last is what -1 finds

    def renumbered(old: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        return None if old is None else places[old]

    return dataclasses.replace(
        pool,
        class_names=names,
        labels=places[pool.labels],
        test_labels=renumbered(pool.test_labels),
        hidden_labels=renumbered(pool.hidden_labels),
    )


TABLES = (*CSV_SUFFIXES, ".parquet", ".pq")


@dataclass(frozen=True)
class RawRows:
    header: tuple[str, ...]
    cells: dict[int, tuple[str, ...]]  # by row

    def check(self, row: int) -> str:
        """A digest, by which the row is known again after the table was sorted or added to."""
        return hashlib.sha256("\x1f".join(self.cells[row]).encode(errors="surrogatepass")).hexdigest()[:12]


def raw_rows(path: Path, rows: Iterable[int], without: str) -> RawRows:
    """Those of the rows, counted from 0, that there are; `without` the column of labels, which may be filled in."""
    read = _csv_rows if path.suffix.lower() in CSV_SUFFIXES else _parquet_rows
    return read(path, set(map(int, rows)), without)


def _csv_rows(path: Path, wanted: set[int], without: str) -> RawRows:
    header, lines = read_csv(path)
    kept = [i for i, name in enumerate(header) if name != without]
    last = max(wanted, default=-1)
    cells = {}
    for number, (_, row) in enumerate(lines):
        if number > last:
            break
        if number in wanted:
            cells[number] = tuple(row[i] for i in kept)
    return RawRows(tuple(header[i] for i in kept), cells)


def _parquet_rows(path: Path, wanted: set[int], without: str) -> RawRows:
    pyarrow, parquet = (optional_import(name, f"reading {path}", "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        table = parquet.read_table(path, memory_map=True)
        names = [str(name) for name in table.column_names]
        kept = [i for i, name in enumerate(names) if name != without]
        inside = np.array(sorted(row for row in wanted if row < table.num_rows), dtype=np.int64)
        found = table.select(kept).take(pyarrow.array(inside))
        found.validate(full=True)
        columns = [python_values(found.column(i), f"{path}: column {names[at]!r}") for i, at in enumerate(kept)]
    except TableError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {reason(error)}") from error
    rows = zip(*columns, strict=True) if columns else ((),) * len(inside)
    texts = (tuple("" if value is None else str(value) for value in row) for row in rows)
    return RawRows(tuple(names[i] for i in kept), dict(zip(inside.tolist(), texts, strict=True)))
