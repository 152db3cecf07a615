"""Tables of numeric features with a label column: CSV, or Parquet through the `parquet` extra."""

from __future__ import annotations

import math
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.reason import reason
from cadr.data.sources.csv_file import LABEL_HINT, column, read_csv
from cadr.data.sources.labels import class_order, index_labels
from cadr.errors import DataError

LARGEST = float(np.finfo(np.float32).max)
ROWS = 4096  # turned into numbers together
FEW_ROWS = 20
_TRUTH = {"true": 1.0, "false": 0.0}
_ROW_NUMBERS = ("", "Unnamed: 0", "__index_level_0__")  # to CSV; to CSV, read and written again; to Parquet


class TableError(DataError):
    """A table is not numeric features with a label column."""


def open_csv(path: Path, label_column: str, ignored: tuple[str, ...] = ()) -> Pool:
    """Every column but the label and those ignored is a feature; a blank label is missing.

    The first ignored column says what the rows are called.
    """
    header, rows = read_csv(path)
    label_at = column(path, header, label_column, LABEL_HINT)
    feature_at = _feature_columns(path, header, label_at, ignored)
    features = tuple(header[i] for i in feature_at)
    called_at = header.index(ignored[0]) if ignored else None
    texts: list[str] = []
    called: list[str] = []
    blocks: list[NDArray[np.float32]] = []
    block: list[list[float]] = []
    for line, row in rows:
        texts.append(row[label_at].strip())
        if called_at is not None:
            called.append(row[called_at].strip())
        block.append([_number(path, line, header[i], row[i]) for i in feature_at])
        if len(block) == ROWS:
            blocks.append(np.array(block, dtype=np.float32))
            block = []
    blocks.append(np.array(block, dtype=np.float32).reshape(len(block), len(features)))
    return _pool(path, np.concatenate(blocks), texts, features, called)


def open_parquet(path: Path, label_column: str, ignored: tuple[str, ...] = ()) -> Pool:
    """As for CSV; a null label is missing."""
    try:
        pyarrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise TableError(f"reading {path} needs the package pyarrow: pip install 'cadr[parquet]'") from None
    try:
        table = parquet.read_table(path, memory_map=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path} is not a Parquet file that can be read: {reason(error)}") from error
    header = [str(name) for name in table.column_names]
    if len(set(header)) != len(header):
        raise TableError(f"{path}: column {next(n for n in header if header.count(n) > 1)!r} is there twice")
    label_at = column(path, header, label_column, LABEL_HINT)
    texts = [label_text(value) for value in table.column(label_at).to_pylist()]
    features = tuple(header[i] for i in _feature_columns(path, header, label_at, ignored))
    matrix = np.empty((len(texts), len(features)), dtype=np.float32)
    for target, name in enumerate(features):
        matrix[:, target] = _feature(path, name, table.column(name), pyarrow)
    called = [label_text(value) for value in table.column(ignored[0]).to_pylist()] if ignored else []
    return _pool(path, matrix, texts, features, called)


def _pool(
    path: Path, matrix: NDArray[np.float32], texts: list[str], features: tuple[str, ...], called: list[str]
) -> Pool:
    if not texts or not features:
        raise TableError(f"{path}: expected rows of features, found {len(texts)} rows and {len(features)} features")
    for name, values in zip(features, matrix.T, strict=True):
        if _counts_rows(values):
            raise TableError(
                f"{path}: column {name!r} only counts the rows, from {values[0]:.0f} to {values[-1]:.0f}; nothing can "
                "be learned from that: leave the column out with "
                f"--ignore-columns {shlex.quote(name)}, or put the rows in another order if it measures something"
            )
    names = class_order(str(path), texts)
    labels = index_labels(str(path), texts, names)
    return Pool(matrix, labels, names, path.stem, feature_names=features, identifiers=tuple(called) or None)


def _counts_rows(values: NDArray[np.float32]) -> bool:
    """Few rows may have such numbers by chance, and a time that counts them says no more than their order."""
    n = len(values)
    if n < FEW_ROWS or values[0] not in (0, 1) or values[-1] != values[0] + n - 1:
        return False
    return bool((values == np.arange(n, dtype=np.float32) + values[0]).all())


def _feature_columns(path: Path, header: list[str], label_at: int, ignored: tuple[str, ...]) -> list[int]:
    out = {label_at} | {column(path, header, name) for name in ignored}
    for name in (header[i] for i in range(len(header)) if i not in out):
        if name in _ROW_NUMBERS:
            raise TableError(
                f"{path}: column {name!r} looks like row numbers, as pandas and R write them; nothing can be learned "
                f"from them: leave the column out with --ignore-columns {shlex.quote(name)}, or give it a name"
            )
    return [i for i in range(len(header)) if i not in out]


def label_text(value: Any) -> str:
    """Labels with gaps are often kept as floating point, where the gaps are NaN."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def as_number(cell: str) -> float:
    """What a cell of a CSV says; pandas writes True and False, R writes TRUE and FALSE. A ValueError if no number."""
    try:
        return float(cell)
    except ValueError:
        if (word := cell.strip().lower()) in _TRUTH:
            return _TRUTH[word]
        raise


def not_a_number(cell: str) -> str:
    comma = " (decimals are written with a point)" if cell.strip().replace(",", "", 1).isdecimal() else ""
    return f"expected a number, got {cell!r}{comma}"


def _number(path: Path, line: int, name: str, cell: str) -> float:
    try:
        value = as_number(cell)
    except ValueError:
        raise TableError(
            f"{path}, line {line}, column {name!r}: {not_a_number(cell)}"
            "; if the column is no feature, leave it out with --ignore-columns"
        ) from None
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise TableError(f"{path}, line {line}, column {name!r}: {cell.strip()} is not a finite number of 32 bits")
    return value


def _feature(path: Path, name: str, values: Any, pyarrow: Any) -> NDArray[np.float64]:
    kind = values.type
    if not any(test(kind) for test in (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_boolean)):
        raise TableError(
            f"{path}: column {name!r} is {kind}; features must be numbers, "
            "and what is no feature is left out with --ignore-columns"
        )
    if values.null_count:
        row = next(i for i, value in enumerate(values) if not value.is_valid)
        raise TableError(f"{path}: column {name!r} has no value in row {row}")
    numbers = values.to_numpy().astype(np.float64)
    bad = np.flatnonzero(~(np.abs(numbers) <= LARGEST))
    if len(bad):
        raise TableError(f"{path}: column {name!r}, row {bad[0]}: {numbers[bad[0]]} is not a finite number of 32 bits")
    return np.asarray(numbers)
