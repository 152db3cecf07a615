"""Data: pools of examples where −1 means *missing*, where they come from, and who keeps a label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cadr.data.benchmarks import BENCHMARKS
from cadr.data.pool import Pool
from cadr.data.protocols import PROTOCOLS, Protocol
from cadr.data.sources.arrays import from_arrays
from cadr.data.sources.base import Options
from cadr.data.sources.registry import open_pool
from cadr.data.sources.texts import ADVICE
from cadr.data.split import Split, apply, make_split
from cadr.errors import DataError
from cadr.utils.files import expand_home

if TYPE_CHECKING:
    from cadr.embedding.registry import Pretrained

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
    weight_column: str | None = None,
    features: str | None = None,
    text_column: str | None = None,
    device: str = "auto",
) -> Pool:
    """Open a benchmark by its name, or a user's own data: a folder of images, an `.npz`, `.npy`, CSV or Parquet file.

    `root` is where benchmarks are looked for; `labels` names the file that labels a plain folder or an `.npy`, or more
    rows of a table (a CSV with the columns `row` and label), which may be what Label Studio or CVAT exports;
    `label_column` is the column of labels in a CSV or Parquet file, `ignore_columns` are no features, and
    `weight_column` says for how many rows each one counts; images become `image_size` × `image_size` pixels.

    `features` names a pretrained model, by which pictures, folders of .txt files and columns of texts become vectors:
    a model of Hugging Face that is on this machine, a folder or an .onnx file; it runs on the `device`. A column
    whose words mostly differ from row to row is a text by itself, the `text_column` whatever it looks like.
    """
    if text_column is not None and features is None:
        raise DataError(f"--text-column {text_column} is learned from through a pretrained model: {ADVICE}")
    options = Options(
        labels=None if labels is None else expand_home(labels),
        label_column=label_column,
        image_size=image_size,
        ignore_columns=ignore_columns,
        weight_column=weight_column,
        features=None if features is None else _pretrained(features, device),
        text_column=text_column,
    )
    pool = open_pool(spec, options, root)
    if image_size is not None and pool.kind != "image":
        raise DataError(f"--image-size is for images, and {spec} holds features; leave it out")
    if text_column is not None and pool.feature_names is None:
        raise DataError(f"--text-column is for tables, and {spec} has no columns with names; leave it out")
    if weight_column is not None and pool.feature_names is None:
        raise DataError(f"--weight-column is for tables, and {spec} has no columns with names; leave it out")
    if ignore_columns and pool.feature_names is None:
        raise DataError(f"--ignore-columns is for tables, and {spec} has no columns with names; leave it out")
    return pool


def _pretrained(name: str, device: str) -> Pretrained:
    from cadr.embedding.registry import Pretrained  # here, as it brings torch along

    return Pretrained.find(name, device)
