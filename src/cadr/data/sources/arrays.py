"""Arrays: `.npz` with `x` and `y` (or `x_train`, `y_train`, `x_test`, `y_test`), `.npy` with labels beside it.

What the file stores uncompressed is memory-mapped, never copied. Object arrays, which are pickles, are refused.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from cadr.data.pool import Pool, chunks
from cadr.data.sources.csv_file import LABEL_HINT, column, read_csv
from cadr.data.sources.data_frame import columns_of, frame_features, is_frame
from cadr.data.sources.in_memory import examples_array, labels_array
from cadr.data.sources.input_checks import check_kind
from cadr.data.sources.label_exports import SUFFIXES
from cadr.data.sources.labels import class_order, encode_labels, index_labels
from cadr.data.sources.more_labels import row_labels
from cadr.data.sources.schema_inference import Rounding
from cadr.errors import DataError
from cadr.utils.files import expand_home
from cadr.utils.text import reason

_LOCAL_HEADER = 30  # bytes of a zip member's local header before its name and extra field
_LIMIT = 1 << 36  # bytes that one compressed member may unfold to


class ArrayError(DataError):
    """An array file is damaged, or holds something other than numbers."""


def open_npz(path: Path) -> Pool:
    """A pool from an `.npz` file; optional `class_names`."""
    arrays = read_npz(path)
    prefixed = "x_train" in arrays
    train, rest = ("x_train", "y_train") if prefixed else ("x", "y"), {"x_test", "y_test", "class_names"}
    unknown = sorted(set(arrays) - {*train, *rest})
    missing = [name for name in train if name not in arrays]
    if missing or unknown:
        raise ArrayError(
            f"{path}: expected arrays x and y (or x_train and y_train), and perhaps x_test, y_test, class_names; "
            + (f"there is no {missing[0]}" if missing else f"{unknown[0]!r} is none of them")
        )
    names = arrays.get("class_names")
    if names is not None and (names.dtype.kind != "U" or names.ndim != 1):
        raise ArrayError(f"{path}: class_names should be a list of strings, got {names.dtype} of shape {names.shape}")
    return from_arrays(
        arrays[train[0]],
        arrays[train[1]],
        name=path.stem,
        test_examples=arrays.get("x_test"),
        test_labels=arrays.get("y_test"),
        class_names=None if names is None else tuple(names.tolist()),
    )


def open_npy(path: Path, labels: Path | None, label_column: str) -> Pool:
    """A pool from a matrix in `.npy` and its labels, which are another `.npy` or a CSV.

    The CSV has a label per row of the matrix, or a column `row` that says which rows (from 0) its labels belong to.
    """
    if labels is None:
        raise ArrayError(f"{path} has no labels; name a .npy or CSV file of them with --labels")
    array = read_npy(path)
    check_apart(path.stem, array)
    examples = as_examples(path.stem, array)
    if labels.suffix == ".npy":
        return from_arrays(examples, read_npy(labels), name=path.stem)
    texts = label_texts(labels, label_column, len(examples))
    names = class_order(str(labels), texts)
    return Pool(examples, index_labels(str(labels), texts, names), names, path.stem)


def from_arrays(
    examples: ArrayLike,
    labels: ArrayLike,
    *,
    name: str = "arrays",
    test_examples: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Pool:
    """A pool from uint8 images (grey, RGB or RGBA) or numbers, as arrays, lists or pandas' tables and columns.

    Columns of a DataFrame may hold words, dates and gaps: they are encoded as those of a table in a file.
    Labels are whole numbers or strings. One is missing where it is −1, NaN or None, or the empty string.
    """
    given = [None if part is None else labels_array(name, part) for part in (labels, test_labels)]
    names, (train, test) = encode_labels(name, given, class_names)
    assert train is not None
    columns = columns_of(name, examples) if is_frame(examples) else None
    if columns is not None:
        return Pool(
            examples=frame_features(name, examples, columns),
            labels=train,
            class_names=names,
            name=name,
            test_examples=None if test_examples is None else frame_features(name, test_examples, columns),
            test_labels=test,
            feature_names=tuple(feature for column in columns for feature in column.features),
            columns=columns,
        )
    array = examples_array(name, examples)
    check_apart(name, array)
    return Pool(
        examples=as_examples(name, array),
        labels=train,
        class_names=names,
        name=name,
        test_examples=None if test_examples is None else as_examples(name, examples_array(name, test_examples)),
        test_labels=test,
    )


def as_examples(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """uint8 (n, h, w, 3) or float32 (n, d); nothing is copied that already has that form."""
    if array.dtype == np.uint8 and array.ndim in (3, 4):
        if array.ndim == 3:
            array = array[..., None]
        if array.shape[-1] == 1:
            return np.repeat(array, 3, axis=-1)
        if array.shape[-1] == 3:
            return array
        if array.shape[-1] == 4:
            return _on_white(array)
    elif array.ndim == 2 and array.dtype.kind in "fiub":
        return array if array.dtype == np.float32 else _to_float32(name, array)
    raise ArrayError(
        f"{name}: expected uint8 images (n, height, width[, channels]) or numeric features (n, d), "
        f"got {array.dtype} of shape {array.shape}"
    )


def check_apart(name: str, array: NDArray[Any]) -> None:
    """Refuse features to train on that 32 bits would merge: of a row alone to predict on, nobody can tell."""
    seen = merging(array)
    if seen is not None:
        at = int(seen.merges.argmax())
        raise ArrayError(
            f"{name}: column {at} holds numbers from {seen.low[at]:.15g} to {seen.high[at]:.15g}, too close together, "
            "so far from 0, to be told apart in 32 bits; subtract an offset, such as their mean"
        )


def merging(array: NDArray[Any]) -> Rounding | None:
    """What 32 bits would merge, if anything."""
    if array.ndim != 2 or array.dtype.kind not in "fiu" or np.can_cast(array.dtype, np.float32):
        return None
    seen = Rounding(array.shape[1])
    for chunk in chunks(array):
        seen.add(chunk)
    return seen if seen.merges.any() else None


def holds_features(path: Path) -> bool:
    """Whether an `.npz` or `.npy` holds rows of numbers, not images, by its header alone.

    What cannot be read does not: whoever opens it says why.
    """
    try:
        path = expand_home(path)
        check_kind(path)
        if path.suffix.lower() == ".npy":
            return read_npy(path).ndim == 2
        with zipfile.ZipFile(path) as archive:
            name = "x_train.npy" if "x_train.npy" in archive.namelist() else "x.npy"
            with archive.open(name) as file:
                return len(_header(str(path), file)[0]) == 2
    except Exception:  # a damaged zip file can fail in any way at all
        return False


def read_npy(path: Path) -> NDArray[Any]:
    """A memory-mapped `.npy` array."""
    check_kind(path)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except Exception as error:  # the header is a Python literal, which can be broken in many ways
        raise ArrayError(f"{path}: not an array that can be read safely: {reason(error)}") from error


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz`; those stored without compression are mapped, not read."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = [m.filename for m in members]
            if len(set(names)) != len(names):
                raise ArrayError(f"{path}: {next(n for n in names if names.count(n) > 1)!r} is there twice")
            return {m.filename.removesuffix(".npy"): _member(path, archive, m) for m in members}
    except DataError:
        raise
    except Exception as error:  # a damaged zip file can fail in any way at all
        raise ArrayError(f"{path}: not an .npz that can be read: {reason(error)}") from error


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
        if not text.isdecimal() or int(text) >= length or int(text) in found:
            raise ArrayError(f"{path}, line {line}: row {text!r} is not a number below {length}, each once")
        found[int(text)] = row[position].strip()
    return [found.get(i, "") for i in range(length)]


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if not member.filename.endswith(".npy"):
        raise ArrayError(f"{path}: {member.filename!r} is not an array (.npy)")
    where = f"{path}: {member.filename!r}"
    with archive.open(member) as file:
        shape, fortran, dtype, offset = _header(where, file)
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if size + offset != member.file_size or size > _LIMIT:
            raise ArrayError(f"{where} holds {member.file_size - offset} bytes of numbers, expected {size}")
        if member.compress_type != zipfile.ZIP_STORED or size == 0:
            data = np.frombuffer(file.read(), dtype=dtype)
            return data.reshape(shape, order="F" if fortran else "C")
    start = _data_start(where, path, member) + offset
    return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape, order="F" if fortran else "C")


def _header(where: str, file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # the header is a Python literal, which can be broken in many ways
        raise ArrayError(f"{where} is not a NumPy array: {reason(error)}") from error
    if dtype.hasobject:
        raise ArrayError(f"{where} holds Python objects, which could run code; save plain numbers or strings")
    return shape, fortran, dtype, file.tell()


def _data_start(where: str, path: Path, member: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin: its local header may be longer than the directory says."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER)
        length = file.seek(0, 2)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise ArrayError(f"{where}: the zip file is damaged")
    name, extra = struct.unpack("<HH", header[26:30])
    start = member.header_offset + _LOCAL_HEADER + int(name) + int(extra)
    if start + member.file_size > length:
        raise ArrayError(f"{where}: the file ends too early")
    return start


def _on_white(array: NDArray[Any]) -> NDArray[Any]:
    """The colours that image files with such transparency are read as, too; what is opaque is not copied."""
    if all((part[..., 3] == 255).all() for part in chunks(array)):
        return array[..., :3]
    shown = np.empty((*array.shape[:-1], 3), np.uint8)
    start = 0
    for part in chunks(array):
        opaque = part[..., 3:].astype(np.uint16)
        shown[start : start + len(part)] = (part[..., :3] * opaque + 255 * (255 - opaque) + 127) // 255
        start += len(part)
    return shown


def _to_float32(name: str, array: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        result = array.astype(np.float32)
    if array.dtype.kind == "f":
        lost = np.argwhere(np.isfinite(array) & ~np.isfinite(result))
        if len(lost):
            raise ArrayError(
                f"{name}: {array[tuple(lost[0])]} at row {lost[0][0]} is too large for float32; rescale it"
            )
    return result
