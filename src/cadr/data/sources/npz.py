"""Arrays in `.npz`: `x` and `y` (or `x_train`, `y_train`, `x_test`, `y_test`), and perhaps `class_names` and `ids`.

What the file stores uncompressed is memory-mapped, never copied. Object arrays, which are pickles, are refused.
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.sources.arrays import ArrayError, array_blocks, from_arrays, label_names
from cadr.data.sources.base import Blocks, Kind, Options, PredictionDataError, Wanted
from cadr.data.sources.npy import check_text, read_npy
from cadr.errors import DataError
from cadr.utils.files import check_kind, expand_home
from cadr.utils.text import listed, reason

NAME, LABELS_BESIDE = "a file of arrays", False
KIND: Kind | None = None
IDS = "ids"  # what the rows are called, as strings
_LOCAL_HEADER = 30  # bytes of a zip member's local header before its name and extra field
_LIMIT = 1 << 36  # bytes that one compressed member may unfold to


def matches(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def open_pool(path: Path, options: Options) -> Pool:
    """`class_names` and `ids` are optional."""
    arrays = read_npz(path)
    prefixed = "x_train" in arrays
    train, rest = ("x_train", "y_train") if prefixed else ("x", "y"), {"x_test", "y_test", "class_names", IDS}
    unknown = sorted(set(arrays) - {*train, *rest})
    missing = [name for name in train if name not in arrays]
    if missing or unknown:
        raise ArrayError(
            f"{path}: expected arrays x and y (or x_train and y_train), and perhaps x_test, y_test, class_names, ids; "
            + (f"there is no {missing[0]}" if missing else f"{unknown[0]!r} is none of them")
        )
    names = arrays.get("class_names")
    if names is not None and (names.dtype.kind != "U" or names.ndim != 1):
        raise ArrayError(f"{path}: class_names should be a list of strings, got {names.dtype} of shape {names.shape}")
    pool = from_arrays(
        arrays[train[0]],
        arrays[train[1]],
        name=path.stem,
        test_examples=arrays.get("x_test"),
        test_labels=arrays.get("y_test"),
        class_names=None if names is None else tuple(names.tolist()),
    )
    ids = _ids(path, arrays, len(pool.labels))
    return pool if ids is None else replace(pool, identifiers=tuple(ids))


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    arrays = read_npz(path)
    x, y = ("x_train", "y_train") if "x_train" in arrays else ("x", "y")
    if x not in arrays:
        raise PredictionDataError(f"{path}: expected an array x of examples, found {listed(list(arrays)) or 'none'}")
    found = (
        None if y not in arrays else label_names(path, arrays[y], arrays[x], _class_names(path, arrays, wanted), wanted)
    )
    return array_blocks(str(path), arrays[x], found, wanted, _ids(path, arrays, arrays[x].shape[0]))


def _ids(path: Path, arrays: dict[str, NDArray[Any]], rows: int) -> list[str] | None:
    ids = arrays.get(IDS)
    if ids is None:
        return None
    if ids.dtype.kind != "U" or ids.shape != (rows,):
        raise ArrayError(f"{path}: ids should be {rows} strings, got {ids.dtype} of shape {ids.shape}")
    named: list[str] = ids.tolist()
    return named


def _class_names(path: Path, arrays: dict[str, NDArray[Any]], wanted: Wanted) -> tuple[str, ...]:
    """What the numbers in a file stand for: its own names, in its own order, where it has any."""
    names = arrays.get("class_names")
    if names is None:
        return wanted.class_names
    if names.dtype.kind != "U" or names.ndim != 1:
        raise PredictionDataError(f"{path}: class_names should be a list of strings, got {names.dtype} {names.shape}")
    return tuple(names.tolist())


def kind_by_header(path: Path) -> Kind | None:
    """What an `.npz` or `.npy` holds; None where it cannot be read: whoever opens it says why."""
    try:
        path = expand_home(path)
        check_kind(path)
        if path.suffix.lower() == ".npy":
            dimensions = read_npy(path).ndim
        else:
            with zipfile.ZipFile(path) as archive:
                name = "x_train.npy" if "x_train.npy" in archive.namelist() else "x.npy"
                with archive.open(name) as file:
                    dimensions = len(_header(str(path), file)[0])
        return "features" if dimensions == 2 else "image"
    except Exception:  # a damaged zip file can fail in any way at all
        return None


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz`; those stored without compression are mapped, not read."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = [m.filename for m in members]
            if len(set(names)) != len(names):
                raise ArrayError(f"{path}: {next(n for n in names if names.count(n) > 1)!r} is there twice")
            return {m.filename.removesuffix(".npy"): check_text(_member(path, archive, m)) for m in members}
    except DataError:
        raise
    except Exception as error:  # a damaged zip file can fail in any way at all
        raise ArrayError(f"{path}: not an .npz that can be read: {reason(error)}") from error


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
