"""STL-10: official binaries, 96×96. Labels are known for the 5,000 training images only.

The 100,000 unlabelled images follow the training images; their label is missing, not 0 as some readers make it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cadr.data.benchmarks.container import ArchivedFile, members
from cadr.data.pool import MISSING, Pool
from cadr.errors import DataError

CLASS_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
SIDE = 96
IMAGE = 3 * SIDE * SIDE
FILES = ("train_X.bin", "train_y.bin", "unlabeled_X.bin", "test_X.bin", "test_y.bin")
LIMIT = 1 << 20  # bytes of a label file; the larger has 8,000


class Stl10Error(DataError):
    """An STL-10 file is not in the official format."""


def open_stl10(path: Path, md5: dict[str, str] | None = None) -> Pool:
    images: dict[str, NDArray[np.uint8]] = {}
    labels: dict[str, NDArray[np.int64]] = {}
    for name, member in members(path, list(FILES)):
        part = name.split("_")[0]
        if name.endswith("X.bin"):
            images[part] = _images(member)
        else:
            labels[part] = _labels(member)
        member.verify((md5 or {}).get(name))
    for part, y in labels.items():
        if len(images[part]) != len(y):
            raise Stl10Error(f"{path}: {len(images[part])} images but {len(y)} labels in the {part} part")
    missing = np.full(len(images["unlabeled"]), MISSING, dtype=np.int64)
    return Pool(
        examples=np.concatenate([images["train"], images["unlabeled"]]),
        labels=np.concatenate([labels["train"], missing]),
        class_names=CLASS_NAMES,
        name="stl10",
        test_examples=np.ascontiguousarray(images["test"]),
        test_labels=labels["test"],
    )


def _images(member: ArchivedFile) -> NDArray[np.uint8]:
    """Stored channel by channel, and each column by column."""
    if member.size == 0 or member.size % IMAGE:
        raise Stl10Error(f"{member.where}: {member.size} bytes are not a whole number of {IMAGE}-byte images")
    stored = np.empty((member.size // IMAGE, 3, SIDE, SIDE), dtype=np.uint8)
    member.read_into(stored)
    return stored.transpose(0, 3, 2, 1)


def _labels(member: ArchivedFile) -> NDArray[np.int64]:
    stored = np.frombuffer(member.read(LIMIT), dtype=np.uint8).astype(np.int64)  # 1 … 10
    bad = np.flatnonzero((stored < 1) | (stored > len(CLASS_NAMES)))
    if len(bad):
        raise Stl10Error(f"{member.where}: label {stored[bad[0]]} of image {bad[0]} is not between 1 and 10")
    return stored - 1
