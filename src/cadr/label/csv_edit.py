"""Change one cell or one row of a CSV file and leave every other byte as it is, whatever else wrote it.

The file is read anew for every change, under a lock, and replaced as a whole: nothing that somebody saved meanwhile is
lost, and a kill leaves the old file or the new one.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cadr.data.sources.csv_file import CsvError, delimiter_of
from cadr.utils.files import atomic_write
from cadr.utils.text import reason

_BOM = "\ufeff"


@dataclass
class Record:
    """One row: its text with the line's end, and its cells; a blank line has none."""

    text: str
    cells: list[str]

    def with_cell(self, at: int, value: str, sign: str) -> str:
        """The text with another value in one cell; the others keep their quotes and blanks."""
        spans = _spans(self.text, sign)
        start, stop = spans[at]
        return self.text[:start] + _cell(value, sign) + self.text[stop:]


@dataclass
class CsvText:
    """The whole file."""

    records: list[Record]
    sign: str  # between cells
    end: str  # of a line
    marked: bool  # begins with a byte order mark

    @property
    def header(self) -> list[str]:
        return [cell.strip() for cell in self.records[0].cells] if self.records else []

    @staticmethod
    def parse(path: Path, content: bytes) -> CsvText:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CsvError(f"{path} is not UTF-8 (byte {error.object[error.start]:#04x}); save it as UTF-8") from error
        marked = text.startswith(_BOM)
        lines = io.StringIO(text.removeprefix(_BOM), newline="").readlines()  # kept apart as the csv module does
        first = lines[0] if lines else ""
        sign = delimiter_of(first)
        reader = csv.reader(iter(lines), delimiter=sign, strict=True)
        records, before = [], 0
        try:
            for cells in reader:
                records.append(Record("".join(lines[before : reader.line_num]), cells))
                before = reader.line_num
        except csv.Error as error:
            raise CsvError(f"{path}, line {reader.line_num}: {reason(error)}") from error
        return CsvText(records, sign, "\r\n" if first.endswith("\r\n") else "\n", marked)

    def append(self, cells: Sequence[str]) -> None:
        if self.records and not self.records[-1].text.endswith(("\n", "\r")):
            self.records[-1].text += self.end
        text = self.sign.join(_cell(cell, self.sign) for cell in cells) + self.end
        self.records.append(Record(text, list(cells)))

    def to_bytes(self) -> bytes:
        return (_BOM * self.marked + "".join(record.text for record in self.records)).encode()


@contextmanager
def editing(path: Path) -> Iterator[CsvText]:
    """The file as it is now; what has been changed is written when the block ends, whole or not at all."""
    path = Path(os.path.realpath(path))
    with _locked(path) as content:
        text = CsvText.parse(path, content)
        yield text
        new = text.to_bytes()
        if new == content:
            return
        with atomic_write(path) as beside:
            beside.write_bytes(new)
            with suppress(OSError):  # a file system without modes
                beside.chmod(stat.S_IMODE(path.stat().st_mode))


@contextmanager
def _locked(path: Path) -> Iterator[bytes]:
    """Its bytes, while no other process of ours changes it. As it is replaced, the lock may be on the one before."""
    while True:
        with path.open("rb") as file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
            there = path.stat()
            if os.fstat(file.fileno()).st_ino == there.st_ino:
                yield file.read()
                return


def _cell(value: str, sign: str) -> str:
    quoted = any(c in value for c in (sign, '"', "\n", "\r")) or value != value.strip()
    return '"' + value.replace('"', '""') + '"' if quoted else value


def _spans(text: str, sign: str) -> list[tuple[int, int]]:
    """Where the cells of a record begin and end."""
    cell = re.compile(rf'"(?:[^"]|"")*"|[^{re.escape(sign)}\r\n]*')
    spans, at = [], 0
    while True:
        found = cell.match(text, at)
        assert found is not None  # the pattern takes nothing, too
        stop = found.end()
        spans.append((at, stop))
        if text[stop : stop + 1] != sign:
            return spans
        at = stop + 1
