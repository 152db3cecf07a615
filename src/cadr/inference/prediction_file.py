"""Predictions as they stand in a file: each block of rows becomes a piece of it, by whichever process, in any order.

Whoever writes the pieces one after another has the same file, byte for byte.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.base import Block, Blocks
from cadr.data.sources.parsing import python_values
from cadr.errors import ConfigError, DataError
from cadr.utils.files import atomic_write
from cadr.utils.optional_imports import optional_import

Write = Callable[[Any], object]


@dataclass(frozen=True)
class PredictionFile(ABC):
    """The columns of a file, and how it is written."""

    classes: tuple[str, ...]
    kept: tuple[str, ...]  # columns that identify the rows
    new: tuple[str, ...]
    types: dict[str, Any]  # of those kept
    numbered: bool
    has_labels: bool

    @staticmethod
    def of(out: Path, classes: tuple[str, ...], opened: Blocks, top: int) -> PredictionFile:
        new = [f"{what}{'' if k == 1 else f'_{k}'}" for k in range(1, top + 1) for what in ("predicted", "probability")]
        new += ["label", "disagrees"] if opened.has_labels else []
        kind = CsvFile if out.suffix.lower() == ".csv" else ParquetFile
        return kind(classes, tuple(opened.columns), tuple(new), opened.types, opened.numbered, opened.has_labels)

    @abstractmethod
    def piece(
        self, block: Block, best: NDArray[np.int64], probabilities: NDArray[np.float32], wrong: NDArray[np.bool_] | None
    ) -> Any:
        """What is to be written for these rows: their best classes, and how probable each is."""

    @abstractmethod
    def open(self, out: Path, begins: bool) -> AbstractContextManager[Write]:
        """A function that writes pieces; `begins` unless the file goes on where another one ends."""


class CsvFile(PredictionFile):
    def piece(
        self, block: Block, best: NDArray[np.int64], probabilities: NDArray[np.float32], wrong: NDArray[np.bool_] | None
    ) -> bytes:
        names = np.array(self.classes, dtype=object)
        columns = [
            column if isinstance(column, list) else python_values(column, f"column {name!r}")
            for column, name in zip(block.kept, self.kept, strict=True)
        ]
        for k in range(best.shape[1]):
            columns.append(names[best[:, k]].tolist())
            columns.append(list(map("{:.6f}".format, probabilities[:, k].tolist())))
        if block.labels is not None and wrong is not None:
            columns.append(block.labels.tolist())
            columns.append(np.where(block.labels == "", "", np.where(wrong, "yes", "no")).tolist())
        return _lines(zip(*columns, strict=True))

    @contextmanager
    def open(self, out: Path, begins: bool) -> Iterator[Write]:
        with atomic_write(out) as path, path.open("wb") as file:
            if begins:
                file.write(_lines([[*self.kept, *self.new]]))
            yield file.write


def _lines(rows: Any) -> bytes:
    """A file name that is no UTF-8 is written as the bytes it is."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


class ParquetFile(PredictionFile):
    def schema(self) -> Any:
        pa = optional_import("pyarrow", "writing a .parquet file, where .csv would not,", "parquet")
        text = pa.dictionary(pa.int32(), pa.string())
        kinds = {"probability": pa.float32(), "disagrees": pa.bool_()}
        row = {"row": pa.int64()} if self.numbered else {}
        fields = [(name, self.types.get(name, row.get(name, pa.string()))) for name in self.kept]
        return pa.schema([*fields, *((name, kinds.get(name.split("_")[0], text)) for name in self.new)])

    def piece(
        self, block: Block, best: NDArray[np.int64], probabilities: NDArray[np.float32], wrong: NDArray[np.bool_] | None
    ) -> Any:
        pa = optional_import("pyarrow", "writing a .parquet file, where .csv would not,", "parquet")
        words, schema = pa.array(self.classes, pa.string()), self.schema()

        def named(indices: Any) -> Any:
            return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), words)

        types = [schema.field(i).type for i in range(len(block.kept))]
        try:
            kept = zip(block.kept, types, strict=True)
            columns = [c if isinstance(c, pa.Array) else pa.array(c, t) for c, t in kept]
        except UnicodeEncodeError as error:
            raise DataError(f"{error.object!r} is no UTF-8, which Parquet needs; write a .csv file") from None
        for k in range(best.shape[1]):
            columns += [named(best[:, k]), pa.array(probabilities[:, k])]
        if block.labels is not None and wrong is not None:
            missing = block.labels == ""
            columns.append(pa.array(block.labels, pa.string(), mask=missing).dictionary_encode())
            columns.append(pa.array(wrong, mask=missing))
        return pa.record_batch(columns, schema=schema)

    @contextmanager
    def open(self, out: Path, begins: bool) -> Iterator[Write]:
        what = f"writing {out}, where .csv would not,"
        parquet = optional_import("pyarrow.parquet", what, "parquet")
        with atomic_write(out) as path, parquet.ParquetWriter(path, self.schema()) as file:
            yield file.write_batch


def check_suffix(out: Path) -> None:
    if out.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise ConfigError(f"{out}: predictions are written to a file that ends in .csv or .parquet")
