"""Pictures or texts as vectors in an `.npz`, which opens like any other file of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.raw import PictureFiles, Raw, embed, raw_of
from cadr.data.sources import npy, text_folder
from cadr.data.sources.folder import files_under, find_labels
from cadr.data.sources.images import IMAGES, visible
from cadr.data.sources.npz import IDS
from cadr.data.sources.texts import TEXTS, read_texts
from cadr.embedding.registry import Pretrained
from cadr.errors import DataError
from cadr.utils.files import atomic_write
from cadr.utils.shard import Shard

TOGETHER = 256  # a multiple of every model's batch
Arrays = dict[str, NDArray[Any]]


def arrays_of(pool: Pool) -> Arrays:
    """Examples, labels and what they are called, by the names that an `.npz` to learn from has for them."""
    arrays: Arrays = {"x": pool.examples, "y": pool.labels}
    if pool.test_examples is not None and pool.test_labels is not None:
        arrays = {"x_train": pool.examples, "y_train": pool.labels}
        arrays |= {"x_test": pool.test_examples, "y_test": pool.test_labels}
    arrays["class_names"] = np.array(pool.class_names)
    return arrays | _ids(pool.identifiers)


def without_labels(
    path: Path, labels: Path | None, pretrained: Pretrained, shard: Shard | None = None
) -> Arrays | None:
    """Vectors of a plain folder, or an array of pictures, that nobody has labelled; None of all other data.

    Of a `shard` these rows alone, which go through the model in the same batches as they do with all others.
    """
    raw: Raw
    if npy.matches(path) and labels is None:
        raw, names = raw_of(str(path), np.asarray(npy.read_npy(path))), None
    elif path.is_dir() and find_labels(path, labels) is None and not any(f.is_dir() for f in visible(path)):
        kind = TEXTS if text_folder.matches(path) else IMAGES
        files = files_under(path, kind)
        raw = read_texts(files) if kind is TEXTS else PictureFiles(tuple(files))
        names = tuple(file.relative_to(path).as_posix() for file in files)
    else:
        return None
    if shard is not None:
        parts = shard.part(-(-len(raw) // TOGETHER))
        if not parts:
            raise DataError(f"shard {shard}: {path} has {len(raw):,} rows, too few for so many parts; take fewer")
        rows = slice(parts.start * TOGETHER, parts.stop * TOGETHER)
        raw, names = raw[rows], names and names[rows]
    return {"x": embed(pretrained, raw)} | _ids(names)


def write(path: Path, arrays: Arrays) -> None:
    with atomic_write(path) as new, new.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _ids(names: tuple[str, ...] | None) -> Arrays:
    return {} if names is None else {IDS: np.array(names)}
