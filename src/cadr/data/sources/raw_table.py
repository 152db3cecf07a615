"""The cells of a few rows of a table, as they stand in the file: to show them, and to know them again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cadr.data.sources.csv_file import CSV_SUFFIXES, read_csv
from cadr.data.sources.parsing import TableError, python_values
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason

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
    read = _of_csv if path.suffix.lower() in CSV_SUFFIXES else _of_parquet
    return read(path, set(map(int, rows)), without)


def _of_csv(path: Path, wanted: set[int], without: str) -> RawRows:
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


def _of_parquet(path: Path, wanted: set[int], without: str) -> RawRows:
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
