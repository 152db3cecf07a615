"""Data: pools of examples where −1 means *missing*, where they come from, and who keeps a label."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from cadr.data.benchmarks import BENCHMARKS, open_benchmark
from cadr.data.pool import Pool
from cadr.data.protocols import PROTOCOLS, Protocol
from cadr.data.sources.arrays import from_arrays, open_npy, open_npz
from cadr.data.sources.csv_file import CSV_SUFFIXES
from cadr.data.sources.folder import open_folder
from cadr.data.sources.images import resize_all
from cadr.data.sources.input_checks import check_kind, check_name
from cadr.data.sources.more_labels import with_row_labels
from cadr.data.sources.table import open_csv, open_parquet
from cadr.data.split import Split, apply, make_split
from cadr.errors import DataError
from cadr.utils.files import expand_home

__all__ = [
    "BENCHMARKS",
    "PROTOCOLS",
    "Pool",
    "Protocol",
    "Split",
    "apply",
    "from_arrays",
    "make_split",
    "open_data",
]


def open_data(
    spec: str | Path,
    *,
    root: str | Path | None = None,
    labels: str | Path | None = None,
    label_column: str = "label",
    image_size: int | None = None,
    ignore_columns: tuple[str, ...] = (),
) -> Pool:
    """Open a benchmark by its name, or a user's own data: a folder of images, an `.npz`, `.npy`, CSV or Parquet file.

    `root` is where benchmarks are looked for; `labels` names the file that labels a plain folder or an `.npy`, or more
    rows of a table (a CSV with the columns `row` and label), which may be what Label Studio or CVAT exports;
    `label_column` is the column of labels in a CSV or Parquet file and `ignore_columns` are no features; images become
    `image_size` × `image_size` pixels.
    """
    pool = _open(spec, root, labels, label_column, image_size, ignore_columns)
    if image_size is not None and pool.kind != "image":
        raise DataError(f"--image-size is for images, and {spec} holds features; leave it out")
    if ignore_columns and pool.feature_names is None:
        raise DataError(f"--ignore-columns is for tables, and {spec} has no columns with names; leave it out")
    return pool


def _open(
    spec: str | Path,
    root: str | Path | None,
    labels: str | Path | None,
    label_column: str,
    image_size: int | None,
    ignore_columns: tuple[str, ...],
) -> Pool:
    if spec in BENCHMARKS:
        return _resized(open_benchmark(str(spec), root), image_size)
    path = expand_home(spec)
    if not path.exists():
        raise DataError(f"{spec} is neither a file or folder nor a benchmark ({', '.join(BENCHMARKS)})")
    beside = None if labels is None else expand_home(labels)
    for given in (path, beside):
        if given is not None:
            check_name(given)
            check_kind(given)
    if path.is_dir():
        return open_folder(path, beside, label_column, image_size)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _resized(open_npy(path, beside, label_column), image_size)
    if beside is not None and not beside.exists():
        raise DataError(f"{spec} holds its own labels, and {labels}, which should add to them, is not there")
    opened = None
    if suffix == ".npz":
        opened = _resized(open_npz(path), image_size)
    elif suffix in CSV_SUFFIXES:
        opened = open_csv(path, label_column, ignore_columns)
    elif suffix in (".parquet", ".pq"):
        opened = open_parquet(path, label_column, ignore_columns)
    if opened is not None:
        return opened if beside is None else with_row_labels(opened, path, beside, label_column)
    raise DataError(f"{spec}: expected a folder, or a file that ends in .npz, .npy, .csv, .tsv or .parquet")


def _resized(pool: Pool, size: int | None) -> Pool:
    if size is None or pool.kind != "image":
        return pool
    test = None if pool.test_examples is None else resize_all(pool.test_examples, size)
    return dataclasses.replace(pool, examples=resize_all(pool.examples, size), test_examples=test)
