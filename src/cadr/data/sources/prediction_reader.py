"""Data to predict on, some rows at a time in their own order, so that millions need no more memory than thousands.

What training data may be, these may be too, with or without labels. Columns of a table that the model does not know are
kept, and come back beside the predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data.benchmarks import BENCHMARKS, open_benchmark
from cadr.data.pool import chunks
from cadr.data.sources.arrays import as_examples, label_texts, read_npy, read_npz
from cadr.data.sources.columns import Column
from cadr.data.sources.csv_file import CSV_SUFFIXES
from cadr.data.sources.folder import LABELS, images_under, labelled_files
from cadr.data.sources.images import SUFFIXES, Unreadable, check_readable, decode_readable, resize_all
from cadr.data.sources.input_checks import check_kind, check_name
from cadr.data.sources.labels import Names, names_of_numbers, names_of_texts, whole_numbers
from cadr.data.sources.parsing import UnknownCategories
from cadr.errors import DataError
from cadr.utils.files import expand_home
from cadr.utils.text import counted, listed, shown

IMAGES = 512  # decoded together
ROWS = 8192  # of an array taken together, at most


class PredictionDataError(DataError):
    """Data to predict on are not like those the model was trained on."""


@dataclass(frozen=True)
class Wanted:
    """What the model takes, and what its classes are called."""

    shape: tuple[int, ...]  # of an example: (h, w, 3) or (d,)
    class_names: tuple[str, ...]
    columns: tuple[Column, ...] | None = None  # of the table that was trained on; None: it was no table
    label_column: str = "label"
    image_size: int | None = None  # to which images of other sizes are brought

    @property
    def images(self) -> bool:
        return len(self.shape) == 3

    def check(self, name: str, examples: NDArray[Any]) -> None:
        if (examples.ndim == 4) != self.images:
            raise self.other_kind(f"{name} holds {_shown(examples.shape[1:])}")
        if examples.shape[1:] != self.shape:
            raise PredictionDataError(
                f"{name}: the model was trained on {_shown(self.shape)}, these are {_shown(examples.shape[1:])}"
                + ("; train with --image-size to allow for other sizes" if self.images else "")
            )

    def other_kind(self, found: str) -> PredictionDataError:
        """Images were found where features are wanted, or the other way round; no size would help."""
        if self.images:
            trained, other = _shown(self.shape), "features"
        else:
            trained, other = f"{'an array' if self.columns is None else 'a table'} of {_shown(self.shape)}", "images"
        return PredictionDataError(
            f"{found}, but the model was trained on {trained}; give data like those, or a model trained on {other}"
        )


class Block(NamedTuple):
    examples: NDArray[Any]
    labels: Names | None  # blank where missing
    kept: list[Any]  # one list, or Arrow array, per column of `Blocks.columns`
    unseen: Mapping[str, UnknownCategories] = {}  # by column, where training has not seen some word


class Blocks(NamedTuple):
    """Rows to come. `types` are the Arrow types of the kept columns, where they have any but text.

    Rows that nothing identifies are `numbered`, in a column `row`; a table may have a column of that name itself.
    """

    columns: list[str]
    has_labels: bool
    blocks: Iterator[Block]
    types: dict[str, Any]
    numbered: bool = False


def open_blocks(spec: str, wanted: Wanted, labels: Path | None = None, root: str | Path | None = None) -> Blocks:
    """Open anything that can be trained on; `labels` names a file that labels a plain folder or an `.npy`."""
    from cadr.data.sources import table_reader

    path = expand_home(spec)
    if spec in BENCHMARKS:
        pool = open_benchmark(spec, root)
        return _array(spec, pool.examples, names_of_numbers(pool.labels, pool.class_names, wanted.class_names), wanted)
    if not path.exists():
        raise PredictionDataError(f"{spec} is neither a file or folder nor a benchmark ({', '.join(BENCHMARKS)})")
    check_name(path)
    check_kind(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        if not wanted.images:
            raise wanted.other_kind(f"{spec} is a folder, which is read as images")
        return _folder(path, labels, wanted)
    if suffix in SUFFIXES:
        if not wanted.images:
            raise wanted.other_kind(f"{spec} is a picture")
        if labels is not None:
            raise PredictionDataError(f"{spec} is one picture; --labels is for a folder of images or an .npy file")
        return _pictures([path], [Path(path.name)], names_of_texts([""], wanted.class_names), wanted)
    if labels is not None and suffix != ".npy":
        raise PredictionDataError(f"{spec} holds its own labels; --labels is for a folder of images or an .npy file")
    if suffix in (*CSV_SUFFIXES, ".parquet", ".pq"):
        if wanted.images:
            raise wanted.other_kind(f"{spec} is a table")
        return (table_reader.open_csv if suffix in CSV_SUFFIXES else table_reader.open_parquet)(path, wanted)
    if suffix == ".npy":
        array = read_npy(path)
        return _array(spec, array, _beside(labels, array, wanted), wanted)
    if suffix == ".npz":
        return _npz(path, wanted)
    raise PredictionDataError(
        f"{spec}: expected a folder, a picture, or a file that ends in .npz, .npy, .csv, .tsv or .parquet"
    )


def _npz(path: Path, wanted: Wanted) -> Blocks:
    arrays = read_npz(path)
    x, y = ("x_train", "y_train") if "x_train" in arrays else ("x", "y")
    if x not in arrays:
        raise PredictionDataError(f"{path}: expected an array x of examples, found {listed(list(arrays)) or 'none'}")
    labels = None if y not in arrays else _names(path, arrays[y], arrays[x], _own_names(path, arrays, wanted), wanted)
    return _array(str(path), arrays[x], labels, wanted)


def _own_names(path: Path, arrays: dict[str, NDArray[Any]], wanted: Wanted) -> tuple[str, ...]:
    """What the numbers in a file stand for: its own names, in its own order, where it has any."""
    names = arrays.get("class_names")
    if names is None:
        return wanted.class_names
    if names.dtype.kind != "U" or names.ndim != 1:
        raise PredictionDataError(f"{path}: class_names should be a list of strings, got {names.dtype} {names.shape}")
    return tuple(names.tolist())


def _beside(labels: Path | None, array: NDArray[Any], wanted: Wanted) -> Names | None:
    """The labels of an array in a file of their own."""
    if labels is None:
        return None
    if labels.suffix == ".npy":
        return _names(labels, read_npy(labels), array, wanted.class_names, wanted)
    texts = label_texts(labels, wanted.label_column, array.shape[0] if array.ndim else 0)
    return names_of_texts(texts, wanted.class_names)


def _names(path: Path, labels: NDArray[Any], array: NDArray[Any], names: tuple[str, ...], wanted: Wanted) -> Names:
    if labels.shape != array.shape[:1]:
        raise PredictionDataError(f"{path}: expected a label for every row, got shape {labels.shape} for {array.shape}")
    if labels.dtype.kind == "U":
        return names_of_texts(labels.tolist(), wanted.class_names)
    if labels.dtype.kind == "f":
        labels = whole_numbers(str(path), labels)
    if labels.dtype.kind not in "iu":
        raise PredictionDataError(f"{path}: labels should be whole numbers or strings, got {labels.dtype}")
    return names_of_numbers(labels, names, wanted.class_names)


def _array(name: str, array: NDArray[Any], labels: Names | None, wanted: Wanted) -> Blocks:
    if array.ndim not in (2, 3, 4) or len(array) == 0:
        raise PredictionDataError(f"{name}: expected rows of {_shown(wanted.shape)}, got shape {array.shape}")

    def blocks() -> Iterator[Block]:
        start = 0
        for part in (chunk[i : i + ROWS] for chunk in chunks(array) for i in range(0, len(chunk), ROWS)):
            examples = as_examples(name, part)
            if examples.ndim == 4:
                examples = resize_all(examples, wanted.image_size)
            wanted.check(name, examples)
            check_finite(name, examples, start)
            stop = start + len(part)
            yield Block(examples, None if labels is None else labels[start:stop], [list(range(start, stop))])
            start = stop

    return Blocks(["row"], labels is not None, blocks(), {}, numbered=True)


def _folder(root: Path, labels: Path | None, wanted: Wanted) -> Blocks:
    """Images under a folder; without a CSV of labels the name of a class's folder is a label."""
    if labels is None and (root / LABELS).is_file():
        labels = root / LABELS
    found = {} if labels is None else labelled_files(root, labels, "file", wanted.label_column)
    files = images_under(root, found)
    names = [f.relative_to(root) for f in files]
    if labels is not None:
        texts = [found.get(f, "") for f in files]
    else:
        texts = [n.parts[0] if len(n.parts) > 1 and n.parts[0] in wanted.class_names else "" for n in names]
    return _pictures(files, names, names_of_texts(texts, wanted.class_names), wanted)


def _pictures(files: list[Path], names: list[Path], called: Names, wanted: Wanted) -> Blocks:
    def blocks() -> Iterator[Block]:
        unreadable: Unreadable = []
        for start in range(0, len(files), IMAGES):
            part = slice(start, start + IMAGES)
            examples, more = decode_readable(files[part], wanted.image_size)
            unreadable += more
            if unreadable:
                continue  # all of them are named together, after which no prediction is kept
            wanted.check(shown(files[start]), examples)
            yield Block(examples, called[part], [[n.as_posix() for n in names[part]]])
        check_readable(unreadable, len(files))

    return Blocks(["file"], bool((called != "").any()), blocks(), {})


def check_finite(name: str, examples: NDArray[Any], start: int) -> None:
    if examples.dtype == np.float32 and not np.isfinite(examples).all():
        row, column = np.argwhere(~np.isfinite(examples))[0]
        raise PredictionDataError(
            f"{name}: row {start + row}, column {column} is {examples[row, column]}, not a finite number of 32 bits"
        )


def _shown(shape: tuple[int, ...]) -> str:
    if len(shape) == 3:
        return f"images of {shape[1]}×{shape[0]} pixels"
    return counted(shape[0], "feature") if len(shape) == 1 else f"arrays of shape {shape}"
