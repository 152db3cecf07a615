"""A matrix or images in `.npy`, memory-mapped, with labels in a file beside it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.sources.arrays import ArrayError, array_blocks, as_examples, check_apart, from_arrays, label_names
from cadr.data.sources.base import Blocks, Kind, Options, Wanted
from cadr.data.sources.csv_file import LABEL_HINT, column, read_csv
from cadr.data.sources.label_exports import SUFFIXES
from cadr.data.sources.labels import Names, class_order, index_labels, names_of_texts
from cadr.data.sources.more_labels import row_labels
from cadr.utils.files import check_kind
from cadr.utils.text import reason

NAME, LABELS_BESIDE = "an array", True
KIND: Kind | None = None


def matches(path: Path) -> bool:
    return path.suffix.lower() == ".npy"


def open_pool(path: Path, options: Options) -> Pool:
    """The labels are another `.npy`, a CSV or an annotation tool's export.

    The CSV has a label per row of the matrix, or a column `row` that says which rows (from 0) its labels belong to.
    """
    labels = options.labels
    if labels is None:
        raise ArrayError(f"{path} has no labels; name a .npy or CSV file of them with --labels")
    array = read_npy(path)
    check_apart(path.stem, array)
    examples = as_examples(path.stem, array)
    if labels.suffix == ".npy":
        return from_arrays(examples, read_npy(labels), name=path.stem)
    texts = label_texts(labels, options.label_column, len(examples))
    names = class_order(str(labels), texts)
    return Pool(examples, index_labels(str(labels), texts, names), names, path.stem)


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    array = read_npy(path)
    return array_blocks(str(path), array, _labels(labels, array, wanted), wanted)


def _labels(labels: Path | None, array: NDArray[Any], wanted: Wanted) -> Names | None:
    if labels is None:
        return None
    if labels.suffix == ".npy":
        return label_names(labels, read_npy(labels), array, wanted.class_names, wanted)
    texts = label_texts(labels, wanted.label_column, array.shape[0] if array.ndim else 0)
    return names_of_texts(texts, wanted.class_names)


def read_npy(path: Path) -> NDArray[Any]:
    """A memory-mapped `.npy` array."""
    check_kind(path)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return check_text(array)
    except Exception as error:  # the header is a Python literal, which can be broken in many ways
        raise ArrayError(f"{path}: not an array that can be read safely: {reason(error)}") from error


def check_text(array: NDArray[Any]) -> NDArray[Any]:
    """Refuses what is no Unicode: NumPy believes any four bytes to be a sign, and Python fails on them."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        signs = np.ascontiguousarray(array).reshape(-1).view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
        if signs.max() > sys.maxunicode:
            raise ValueError(f"it holds strings that are no Unicode ({int(signs.max()):#x})")
    return array


def label_texts(path: Path, label_column: str, length: int) -> list[str]:
    """The labels of so many rows as a CSV or an annotation tool's export has them; blank where it has none."""
    if path.suffix.lower() in SUFFIXES:
        labelled = row_labels(path, label_column, length)
        return [labelled[i].label if i in labelled else "" for i in range(length)]
    header, rows = read_csv(path, blank=True)
    position = column(path, header, label_column, LABEL_HINT)
    if "row" not in header:
        texts = [row[position].strip() for _, row in rows]
        while len(texts) > length and not texts[-1]:
            texts.pop()  # a blank line at the end is none
        if len(texts) != length:
            raise ArrayError(f"{path} has {len(texts)} labels for {length} rows; add a column `row` to label only some")
        return texts
    found: dict[int, str] = {}
    for line, row in rows:
        text = row[header.index("row")].strip()
        if not text.isdecimal() or len(text) > 18 or int(text) >= length or int(text) in found:
            raise ArrayError(f"{path}, line {line}: row {text!r} is not a number below {length}, each once")
        found[int(text)] = row[position].strip()
    return [found.get(i, "") for i in range(length)]
