"""Labels as people write them, turned into class indices."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, chunks
from cadr.data.reason import listed, reason
from cadr.errors import DataError

MANY = 1 << 20  # more classes than anybody has


class LabelError(DataError):
    """Labels cannot be understood."""


class CsvError(DataError):
    """A CSV file cannot be read as a table."""


def encode_labels(
    name: str, parts: list[NDArray[Any] | None], class_names: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], list[NDArray[np.int64] | None]]:
    """Class names, and labels as indices into them. Whole numbers are indices already; strings are put in order."""
    given = [p for p in parts if p is not None]
    for part in given:
        if part.ndim != 1 or part.dtype.kind not in "iuU":
            raise LabelError(
                f"{name}: labels should be one whole number (−1 for missing) or string per row, "
                f"got {part.dtype} of shape {part.shape}"
            )
    kinds = {part.dtype.kind == "U" for part in given}
    if kinds == {True}:
        texts = [None if p is None else [str(v) for v in p.tolist()] for p in parts]
        names = class_names or class_order(label for text in texts if text for label in text)
        return names, [None if text is None else index_labels(name, text, names) for text in texts]
    if len(kinds) > 1:
        raise LabelError(f"{name}: training and test labels should both be whole numbers or both strings")
    highest = max((int(chunk.max()) for part in given for chunk in chunks(part)), default=MISSING)
    if class_names is None and highest >= MANY:
        raise LabelError(f"{name}: a label of {highest} would mean more than a million classes; labels count from 0")
    encoded = [None if p is None else p if p.dtype == np.int64 else p.astype(np.int64) for p in parts]
    return class_names or tuple(str(c) for c in range(highest + 1)), encoded


def class_order(labels: Iterable[str]) -> tuple[str, ...]:
    """The classes among labels as text: numbers by size if all are whole numbers (−1 is missing), else by alphabet."""
    names = set(labels) - {""}
    if all(_is_whole(name) for name in names):
        return tuple(sorted(names - {str(MISSING)}, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def index_labels(name: str, labels: list[str], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Indices of labels as text; blank is missing, and so is −1 unless a class is called that."""
    index = {"": MISSING, str(MISSING): MISSING} | {n: i for i, n in enumerate(names)}
    try:
        return np.array([index[label] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise LabelError(f"{name}: label {error} is not among the class names {listed(names)}") from None


def read_csv(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a CSV file and its rows with their line numbers; every row has as many cells as the header."""
    lines = _rows(path)
    header = [cell.strip() for cell in next(lines, (0, []))[1]]
    if not header or header == [""]:
        raise CsvError(f"{path} is empty; expected a line with the names of the columns")
    twice = sorted({c for c in header if header.count(c) > 1})
    if twice:
        raise CsvError(f"{path}: column {twice[0]!r} is there twice")
    return header, _checked(path, header, lines)


def column(path: Path, header: list[str], name: str) -> int:
    if name not in header:
        raise CsvError(f"{path} has no column {name!r}; its columns are {listed(header)}")
    return header.index(name)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(_without_nul(path, file), strict=True)
            for row in reader:
                yield reader.line_num, row
    except UnicodeDecodeError as error:
        raise CsvError(f"{path} is not UTF-8 (byte {error.object[error.start]:#04x}); save it as UTF-8") from error
    except csv.Error as error:
        raise CsvError(f"{path}, line {reader.line_num}: {reason(error)}") from error
    except OSError as error:
        raise CsvError(f"cannot read {path}: {error.strerror}") from error


def _without_nul(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise CsvError(f"{path}, line {number}: there is a NUL character; this is not a text file")
        yield line


def _checked(path: Path, header: list[str], lines: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    for number, row in lines:
        if not row:
            continue  # a blank line
        if len(row) != len(header):
            raise CsvError(f"{path}, line {number}: expected {len(header)} cells, got {len(row)}")
        yield number, row


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
