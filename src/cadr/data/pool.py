"""The data of a problem: examples, the labels there are, and nothing that knows how they will be learned from."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cadr.data.description import class_table, describe, headline
from cadr.data.sources.columns import Column
from cadr.errors import DataError
from cadr.utils.text import html_table, listed

if TYPE_CHECKING:
    from cadr.data.raw import Embedded

MISSING = -1
CHUNK = 1 << 22  # bytes looked at together, so that a memory-mapped array of any size is checked in little memory
EAGER = 1 << 24  # bytes of a memory-mapped array that are few enough to check when it is opened
WHOLE = 1 << 26  # bytes up to which all are read, and the most that is read of a larger array
STRETCHES = 64  # few enough for a disk that has to seek each of them
STRETCH = 1 << 18  # bytes


@dataclass(frozen=True, eq=False, repr=False)
class Pool:
    """Examples with labels, where −1 means *missing*.

    The arrays are kept as read-only views, not copied. Shapes, types and labels are checked at once. That features are
    finite is checked at once too, except in memory-mapped arrays of more than 16 MiB, which may be far larger than
    memory: there `check_finite()` does it, and whoever reads all the rows (training does) should ask for it.
    """

    examples: NDArray[Any]  # uint8 (n, h, w, 3) or float32 (n, d)
    labels: NDArray[np.int64]  # (n,)
    class_names: tuple[str, ...]
    name: str = "pool"
    test_examples: NDArray[Any] | None = None
    test_labels: NDArray[np.int64] | None = None
    hidden_labels: NDArray[np.int64] | None = None  # the truth where a benchmark knows it: for evaluation only
    stream: NDArray[np.int64] | None = None  # rows of the unlabelled stream; None: every row
    feature_names: tuple[str, ...] | None = None
    columns: tuple[Column, ...] | None = None  # of a table that has words, dates or gaps: how they became features
    identifiers: tuple[str, ...] | None = field(default=None, repr=False)  # what the rows are called: file names, ids
    embedded: Embedded | None = field(default=None, repr=False)  # of pictures and texts that became vectors
    weights: NDArray[np.float64] | None = None  # (n,) for how many rows each one counts; None: each for one

    def __post_init__(self) -> None:
        for name in ("examples", "labels", "test_examples", "test_labels", "hidden_labels", "stream", "weights"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, _read_only(self.name, name, array))
        object.__setattr__(self, "class_names", tuple(self.class_names))
        self._check_examples()
        self._check_classes()
        self._check_rows()

    @property
    def kind(self) -> Literal["image", "features"]:
        return "image" if self.examples.ndim == 4 else "features"

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Labelled examples of each class."""
        return _count(self.labels, self.num_classes)

    @cached_property
    def weighted_counts(self) -> NDArray[np.float64]:
        """The same, each as often as its weight says."""
        known = np.flatnonzero(self.labels != MISSING)
        w = None if self.weights is None else self.weights[known]
        return np.bincount(self.labels[known], w, minlength=self.num_classes).astype(np.float64)

    def total(self, rows: NDArray[np.int64]) -> float:
        """How many rows these count for."""
        return float(len(rows)) if self.weights is None else float(self.weights[rows].sum())

    @property
    def num_labelled(self) -> int:
        return int(self.counts.sum())

    @property
    def num_streamed(self) -> int:
        """Rows of the unlabelled stream."""
        return len(self.labels) if self.stream is None else len(self.stream)

    @property
    def num_unlabelled(self) -> int:
        """Rows of the unlabelled stream that have no label: labelled ones may be in it too."""
        if self.stream is None:
            return len(self.labels) - self.num_labelled
        return int((self.labels[self.stream] == MISSING).sum())

    @cached_property
    def sha256(self) -> str:
        """A hash of everything that training and testing can see. Reads all the data: once, and only when asked."""
        digest = hashlib.sha256(repr((self.kind, self.class_names)).encode())
        for array in (self.examples, self.labels, self.stream, self.test_examples, self.test_labels):
            digest.update(repr(None if array is None else (array.shape, array.dtype.str)).encode())
            for chunk in chunks(array):
                digest.update(np.ascontiguousarray(chunk).data)
        return digest.hexdigest()

    @cached_property
    def contents(self) -> str:
        """A hash of pixels or features, and of what is tested on. Of large arrays it reads a part alone."""
        if self.embedded is not None:
            known = self.embedded.model + self.embedded.contents + contents_hash(self.test_labels)
            return hashlib.sha256(known.encode()).hexdigest()
        return contents_hash(self.examples, self.test_examples, self.test_labels)

    @property
    def in_files(self) -> bool:
        """Whether the rows are files, if they are called anything."""
        return self.kind == "image" or (self.embedded is not None and not self.embedded.in_columns)

    @property
    def has_pictures(self) -> bool:
        return self.kind == "image" or (self.embedded is not None and self.embedded.raw.modality == "pictures")

    def picture(self, row: int, side: int) -> NDArray[np.uint8] | None:
        """The row as a picture (h, w, 3), if it is one; if large, perhaps smaller than it was, but not than `side`."""
        if self.kind == "image" or not self.has_pictures or self.embedded is None:
            return np.asarray(self.examples[row]) if self.kind == "image" else None
        return np.asarray(self.embedded.raw.read(row, side))

    def text(self, row: int) -> str | None:
        """The row as a text, if it is one or has one."""
        if self.embedded is None or self.has_pictures:
            return None
        return str(self.embedded.raw.read(row))

    def __repr__(self) -> str:
        return f"Pool({headline(self)})"

    def _repr_html_(self) -> str:
        return html_table(*class_table(self), headline(self))

    def describe(self) -> str:
        """What is there, as a table with bars."""
        return describe(self)

    def check_finite(self) -> None:
        """Raise unless every feature is a finite number; memory-mapped data are read in chunks."""
        for array, what in ((self.examples, "examples"), (self.test_examples, "test_examples")):
            if array is not None and array.dtype == np.float32:
                _check_finite(self.name, what, array)

    def _fail(self, message: str) -> None:
        raise DataError(f"{self.name}: {message}")

    def _check_examples(self) -> None:
        x, test = self.examples, self.test_examples
        images = x.ndim == 4 and x.shape[-1] == 3 and x.dtype == np.uint8
        if not images and not (x.ndim == 2 and x.dtype == np.float32):
            self._fail(
                "examples must be uint8 images of shape (n, height, width, 3) or float32 features of shape (n, d), "
                f"got {x.dtype} of shape {x.shape}"
            )
        if x.size == 0:
            self._fail(f"there are no examples (shape {x.shape})")
        if test is not None and (test.shape[1:] != x.shape[1:] or test.dtype != x.dtype or len(test) == 0):
            self._fail(
                f"test examples must be like the training examples, {x.dtype} of shape (n, {_shape(x)}), "
                f"got {test.dtype} of shape {test.shape}"
            )
        if self.feature_names is not None and (x.ndim != 2 or len(self.feature_names) != x.shape[1]):
            self._fail(f"{len(self.feature_names)} feature names for examples of shape {x.shape}")
        for array, what in ((x, "examples"), (test, "test_examples")):
            if array is not None and array.dtype == np.float32 and (not is_mapped(array) or array.nbytes <= EAGER):
                _check_finite(self.name, what, array)

    def _check_classes(self) -> None:
        names = self.class_names
        if len(names) < 2:
            self._fail(
                f"at least two classes are needed to classify, got {len(names)} ({listed(names) or 'none'}); "
                "label examples of each"
            )
        if len(set(names)) != len(names):
            self._fail(f"class {next(n for n in names if names.count(n) > 1)!r} is named twice")
        for labels, what, length, lowest in (
            (self.labels, "labels", len(self.examples), MISSING),
            (self.hidden_labels, "hidden_labels", len(self.examples), MISSING),
            (self.test_labels, "test_labels", 0 if self.test_examples is None else len(self.test_examples), 0),
        ):
            if labels is not None:
                self._check_labels(labels, what, length, lowest)
        if (self.test_labels is None) != (self.test_examples is None):
            self._fail("a test part needs both test_examples and test_labels")
        if (
            self.hidden_labels is not None
            and ((self.labels != MISSING) & (self.hidden_labels != MISSING) & (self.labels != self.hidden_labels)).any()
        ):
            self._fail("labels and hidden_labels disagree")

    def _check_labels(self, labels: NDArray[Any], what: str, length: int, lowest: int) -> None:
        if labels.shape != (length,) or labels.dtype != np.int64:
            self._fail(f"{what} must be {length} int64 numbers, got {labels.dtype} of shape {labels.shape}")
        position = 0
        for chunk in chunks(labels):
            bad = np.flatnonzero((chunk < lowest) | (chunk >= self.num_classes))
            if len(bad):
                self._fail(
                    f"{what}[{position + bad[0]}] is {chunk[bad[0]]}; expected 0 to {self.num_classes - 1}"
                    + (" or −1 for missing" if lowest == MISSING else "")
                )
            position += len(chunk)

    def _check_rows(self) -> None:
        n = len(self.examples)
        if self.stream is not None:
            s = self.stream
            if s.ndim != 1 or s.dtype != np.int64 or len(s) == 0 or s[0] < 0 or s[-1] >= n or (np.diff(s) <= 0).any():
                self._fail(f"stream must be rising int64 rows between 0 and {n - 1}, at least one")
        if self.weights is not None:
            w = self.weights
            if w.shape != (n,) or w.dtype != np.float64 or not np.isfinite(w).all() or (w <= 0).any():
                self._fail(f"weights must be {n} finite float64 numbers above 0; leave out rows that do not count")
        if self.identifiers is not None and len(self.identifiers) != n:
            self._fail(f"{len(self.identifiers)} identifiers for {n} examples")


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether the numbers are in a file rather than in memory."""
    return isinstance(_bases(array)[-1], mmap.mmap)


def _bases(array: NDArray[Any]) -> list[Any]:
    """The array, what it is a view of, and so on to what owns the memory."""
    bases: list[Any] = [array]
    while isinstance(bases[-1], np.ndarray) and bases[-1].base is not None:
        bases.append(bases[-1].base)
    return bases


def _read_only(pool: str, name: str, array: Any) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        raise DataError(f"{pool}: {name} must be a NumPy array, got {type(array).__name__}")
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def _shape(array: NDArray[Any]) -> str:
    return ", ".join(map(str, array.shape[1:]))


def chunks(array: NDArray[Any] | None) -> Iterator[NDArray[Any]]:
    """The rows, some at a time; what was mapped to read them is let go again."""
    if array is not None and len(array):
        *_, memory = bases = _bases(array)
        unchanged = any(isinstance(base, np.memmap) and base.mode == "r" for base in bases)
        rows = max(1, CHUNK // max(1, array[:1].nbytes))
        for start in range(0, len(array), rows):
            yield array[start : start + rows]
            if unchanged and isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                memory.madvise(mmap.MADV_DONTNEED)


def _count(labels: NDArray[np.int64], num_classes: int) -> NDArray[np.int64]:
    total = np.zeros(num_classes, dtype=np.int64)
    for chunk in chunks(labels):
        total += np.bincount(chunk[chunk != MISSING], minlength=num_classes)
    return total


def _check_finite(pool: str, what: str, array: NDArray[np.float32]) -> None:
    position = 0
    for chunk in chunks(array):
        finite = np.isfinite(chunk)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise DataError(f"{pool}: {what}[{position + row}, {column}] is {chunk[row, column]}, not a finite number")
        position += len(chunk)


def contents_hash(*arrays: NDArray[np.generic] | None) -> str:
    """A hash of what arrays hold, at a cost that does not grow with them.

    Of an array that is read in no time every byte counts; of a larger one, which may be a file that memory cannot hold,
    rows in stretches that are evenly spread. Other pictures or features are noticed either way, a single one in the
    first.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(None if array is None else (array.shape, array.dtype.str)).encode())
        for rows in [] if array is None else _looked_at(array):
            digest.update(np.ascontiguousarray(rows).data)
    return digest.hexdigest()


def _looked_at(array: NDArray[np.generic]) -> list[NDArray[np.generic]]:
    if array.nbytes <= WHOLE:
        return [array]
    row = array[:1].nbytes
    rows = max(1, STRETCH // row)
    count = min(STRETCHES, max(1, WHOLE // (rows * row)))
    starts = np.linspace(0, len(array) - rows, count).astype(np.int64)
    return [array[start : start + rows] for start in starts]


def unlabelled(pool: Pool) -> NDArray[np.int64]:
    """Rows of the stream without a label."""
    stream = np.arange(len(pool.labels)) if pool.stream is None else pool.stream
    found: NDArray[np.int64] = stream[pool.labels[stream] == MISSING]
    return found


def spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of them, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)]
