"""CSV files in UTF-8 with a line of column names; cells are separated by commas, or else by semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from cadr.errors import DataError
from cadr.utils.files import check_kind
from cadr.utils.text import listed, reason

CSV_SUFFIXES = (".csv", ".tsv")
LABEL_HINT = "; say which one holds the labels with --label-column"


class CsvError(DataError):
    """A CSV file cannot be read as a table."""


def read_csv(path: Path, blank: bool = False) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a CSV file and its rows with their line numbers; every row has as many cells as the header.

    Blank lines are passed over, unless they are wanted: in a file of one column they are rows with a blank cell.
    """
    check_kind(path)
    lines = _rows(path)
    header = [cell.strip() for cell in next(lines, (0, []))[1]]
    if not header or header == [""]:
        raise CsvError(f"{path} is empty; expected a line with the names of the columns")
    twice = sorted({c for c in header if header.count(c) > 1})
    if twice:
        raise CsvError(f"{path}: column {twice[0]!r} is there twice")
    return header, _checked(path, header, lines, blank and len(header) == 1)


def column(path: Path, header: list[str], name: str, hint: str = "", any_case: bool = False) -> int:
    """Where a column is; for people who write `File` where `file` is meant, in any case if nothing else fits."""
    if name in header:
        return header.index(name)
    alike = [i for i, other in enumerate(header) if other.lower() == name.lower()]
    if any_case and len(alike) == 1:
        return alike[0]
    raise CsvError(f"{path} has no column {name!r}; its columns are {listed(header)}, by its first line{hint}")


def delimiter_of(first_line: str) -> str:
    """Spreadsheets write semicolons where the comma is the decimal sign."""
    return next((sign for sign in ",;\t" if sign in first_line), ",")


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _without_nul(path, file)
            first = next(lines, "")
            reader = csv.reader(chain([first], lines), delimiter=delimiter_of(first), strict=True)
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


def _checked(
    path: Path, header: list[str], lines: Iterator[tuple[int, list[str]]], blank: bool
) -> Iterator[tuple[int, list[str]]]:
    for number, row in lines:
        if not row:
            if blank:
                yield number, [""]
            continue
        if len(row) != len(header):
            raise CsvError(f"{path}, line {number}: expected {len(header)} cells, got {len(row)}")
        yield number, row
