"""Where answers go: into the CSV that labels the data, into a CSV beside them, or into the folder of a class.

Every answer is on disk before the next example is asked for, and can be taken back. Data are never written to.
"""

from __future__ import annotations

import csv
import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from cadr.config import Config
from cadr.data.pool import MISSING, Pool
from cadr.data.sources.csv_file import CSV_SUFFIXES, LABEL_HINT, column
from cadr.data.sources.folder import LABELS, UNLABELLED
from cadr.data.sources.labels import NO_LABEL
from cadr.data.sources.more_labels import CHECK, ROW, checks
from cadr.errors import DataError
from cadr.label.csv_edit import CsvText, Record, editing
from cadr.utils.files import as_there, atomic_write, expand_home

BESIDE = ".labels.csv"  # what the name of a file of answers ends in
_FILE = "file"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # what file systems without them say


class AnswerError(DataError):
    """An answer cannot be written."""


class Answers(ABC):
    """Takes labels of rows of a pool, and takes them back."""

    labels: Path | None  # what --labels of the next training is; None: the data say it themselves

    @abstractmethod
    def give(self, labels: Mapping[int, str]) -> None:
        """Label rows that have no label: all of them, or after an error none that is not on its own."""

    @abstractmethod
    def take_back(self, row: int) -> None:
        """Undo `give`: the row has no label again."""


class CsvAnswers(Answers):
    """In a CSV that has a line, or none yet, for every file or row, or one line for each in their order.

    `key` names a row, and `normal` is that name of a cell, however it is spelt; `digests` are for a column of them, and
    `make` makes a file that is not there yet.
    """

    def __init__(
        self,
        path: Path,
        label_column: str,
        key: Callable[[int], str],
        normal: Callable[[str], str] = str.strip,
        digests: Callable[[list[int]], dict[int, str]] = lambda rows: dict.fromkeys(rows, ""),
        make: Callable[[], None] = lambda: None,
    ) -> None:
        self.labels: Path = path
        self.label_column = label_column
        self.key, self.normal, self.digests, self.make = key, normal, digests, make
        self.added: set[int] = set()

    def give(self, labels: Mapping[int, str]) -> None:
        if not self.labels.exists():
            self.make()
        with editing(self.labels) as text:
            at, name, records = self._label_at(text), self._key_name(text), self._records(text)
            there = {row: self._find(records, row) for row in labels}
            new = [row for row, record in there.items() if record is None]
            digests = self.digests(new) if new and CHECK in text.header else {}
            for row, label in labels.items():
                record = there[row]
                if record is None:
                    cells = dict.fromkeys(text.header, "") | {text.header[at]: label, name: self.key(row)}
                    text.append(list((cells | ({CHECK: digests[row]} if digests else {})).values()))
                elif (before := (record.cells or [""])[at].strip()) in NO_LABEL:  # a blank line is a blank cell
                    record.text = record.with_cell(at, label, text.sign)
                elif before != label:
                    raise AnswerError(
                        f"{self.labels}: {self.key(row)!r} was labelled {before!r} meanwhile, which is kept"
                    )
        self.added |= set(new)

    def take_back(self, row: int) -> None:
        with editing(self.labels) as text:
            record = self._find(self._records(text), row)
            if record is not None and row in self.added:
                text.records.remove(record)
                self.added.discard(row)
            elif record is not None:
                record.text = record.with_cell(self._label_at(text), "", text.sign)

    def _label_at(self, text: CsvText) -> int:
        return column(self.labels, text.header, self.label_column, LABEL_HINT, any_case=True)

    def _key_name(self, text: CsvText) -> str:
        """The column that names rows; blank where a line's place does."""
        return next((name for name in text.header if name.lower() == _FILE), ROW if ROW in text.header else "")

    def _records(self, text: CsvText) -> Mapping[str, Record] | Sequence[Record]:
        """By name, or in order."""
        records = [record for record in text.records[1:] if record.cells or len(text.header) == 1]
        name = self._key_name(text)
        if not name:
            return records
        at = text.header.index(name)
        return {self.normal(r.cells[at]): r for r in reversed(records) if len(r.cells) == len(text.header)}

    def _find(self, records: Mapping[str, Record] | Sequence[Record], row: int) -> Record | None:
        if isinstance(records, Mapping):
            return records.get(self.key(row))
        if row < len(records):
            return records[row]
        raise AnswerError(f"{self.labels} has no line for row {row} any more; put it back as it was")


class FolderAnswers(Answers):
    """In a folder per class: an example that is labelled moves into the folder of its class."""

    def __init__(self, root: Path, key: Callable[[int], str], labels: Path | None) -> None:
        self.root, self.key, self.labels = root, key, labels
        self.moved: dict[int, Path] = {}

    def give(self, labels: Mapping[int, str]) -> None:
        for label in dict.fromkeys(labels.values()):
            if not (self.root / label).is_dir():
                raise AnswerError(
                    f"there is no folder {self.root / label}; make it, so that examples can be put into it"
                )
        for row, label in labels.items():
            source = self.root / self.key(row)
            self.moved[row] = _move(source, self.root / label / source.name)

    def take_back(self, row: int) -> None:
        _move(self.moved[row], self.root / self.key(row))
        del self.moved[row]


def _move(source: Path, target: Path) -> Path:
    """To the name, or one like it that is free. A kill in between leaves the file under both."""
    for number in range(1, 1000):
        name = target if number == 1 else target.with_stem(f"{target.stem}-{number}")
        if os.path.lexists(name):
            continue
        try:
            _rename(source, name)
        except FileExistsError:  # since just now
            continue
        except OSError as error:
            raise AnswerError(f"{source} cannot be moved to {name.parent} ({error.strerror})") from error
        return name
    raise AnswerError(f"there are too many files called {target.name} in {target.parent}")


def _rename(source: Path, name: Path) -> None:
    """By a link, which unlike a rename does not replace what has the name; where there are none, by a rename."""
    try:
        os.link(source, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        source.rename(name)
    else:
        source.unlink()


def labels_file(config: Config) -> Path | None:
    """The CSV that answers go to, which need not be there yet; None where they go into the folders of classes.

    What cannot be added to, as an annotation tool's export, is copied to a CSV beside it.
    """
    data = expand_home(config.data)
    given = None if config.source.labels is None else expand_home(config.source.labels)
    if given is None and data.is_dir() and (data / LABELS).is_file():
        given = data / LABELS
    if given is not None and given.suffix.lower() in CSV_SUFFIXES:
        return given
    if data.is_dir() and (given is None or any((data / name).is_dir() for name in UNLABELLED)):
        return None
    source = data if given is None else given
    return source.with_name(source.stem + BESIDE)


def answers_of(config: Config, pool: Pool) -> Answers:
    """Where the answers about a run's data go."""
    data, path, names = expand_home(config.data), labels_file(config), pool.identifiers
    given = None if config.source.labels is None else expand_home(config.source.labels)

    def called(row: int) -> str:
        return names[row] if names is not None else str(row)

    if path is None:
        return FolderAnswers(data, called, given)
    column_name = config.source.label_column
    copied = [i for i, c in enumerate(pool.labels) if c != MISSING] if given not in (None, path) else []
    label = {i: pool.class_names[pool.labels[i]] for i in copied}
    if data.is_dir():

        def as_named(cell: str) -> str:
            return PurePosixPath(as_there(data, cell)).as_posix()

        def files() -> None:
            _make(path, [_FILE, column_name], ([called(i), label[i]] for i in copied))

        return CsvAnswers(path, column_name, called, as_named, make=files)
    digests = checks(data, pool, column_name)

    def rows() -> None:
        known = digests(copied) if copied else {}
        _make(path, [ROW, CHECK, column_name], ([str(i), known[i], label[i]] for i in copied))

    return CsvAnswers(path, column_name, str, digests=digests, make=rows)


def _make(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with atomic_write(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
