"""Numbers that a linear classifier can use, from any pool: images become principal components, features are rescaled.

Rows are read some at a time, so that a memory-mapped matrix of any size is never copied whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.sources.columns import RARE, Column

Rows = NDArray[np.int64]

SAMPLE = 10_000  # rows that the means, scales and components are computed from
COMPONENTS = 64  # of images
MOST_FEATURES = 1024  # wider matrices are reduced to components as well
LARGEST_SIDE = 32  # larger images are averaged down to this many pixels a side, or fewer
CHUNK = 1 << 24  # bytes read together
SPREAD = 100.0  # columns whose scales differ more than this have units of their own


@dataclass(frozen=True, eq=False)
class Features:
    """(x − mean) · axes · scale of any rows of a pool, as float32."""

    pool: Pool
    mean: NDArray[np.float32]  # (d,)
    axes: NDArray[np.float32] | None  # (d, k); None: the columns themselves
    scale: NDArray[np.float32]  # (k,)

    def __getitem__(self, rows: Rows) -> NDArray[np.float32]:
        return np.concatenate([part for _, part in self.parts(rows)])

    def parts(self, rows: Rows) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """The features of `rows`, some at a time, each with where they stand among `rows`."""
        step = max(1, CHUNK // max(1, self.pool.examples[:1].nbytes))
        for start in range(0, len(rows), step):
            x = _flat(self.pool.examples[rows[start : start + step]])
            yield slice(start, start + len(x)), _project(x, self.mean, self.axes) * self.scale


def fit_features(pool: Pool, rows: Rows, random: np.random.Generator) -> Features:
    """Means, components and scales from a sample of `rows`."""
    sample = rows if len(rows) <= SAMPLE else np.sort(random.choice(rows, SAMPLE, replace=False))
    x = _flat(pool.examples[sample])
    mean = x.mean(0, dtype=np.float64).astype(np.float32)
    axes: NDArray[np.float32] | None = None
    if pool.kind == "image" or x.shape[1] > MOST_FEATURES:
        axes = _components(x - mean, COMPONENTS if pool.kind == "image" else MOST_FEATURES // 4, random)
    spread = _project(x, mean, axes).std(0, dtype=np.float64)
    if axes is None and pool.columns is not None:
        spread = np.maximum(spread, _least(pool.columns))
    scale = _scale(spread, separate=pool.feature_names is not None)
    for part in _of_texts(pool.columns or ()) if axes is None else ():
        scale[part] = _scale(spread[part], separate=False)
    return Features(pool, mean, axes, scale)


def _of_texts(columns: Sequence[Column]) -> Iterator[slice]:
    """Where the numbers are that stand for texts, whose scale is one."""
    at = 0
    for column in columns:
        if column.texts is not None:
            yield slice(at, at + column.texts)
        at += len(column.features)


def _least(columns: Sequence[Column]) -> NDArray[np.float64]:
    """By how much a feature is divided at least: a rare word by as much as in training, or the classifier would learn
    the few labelled rows by it."""
    least = [RARE if column.words is not None else 0.0 for column in columns]
    return np.repeat(least, [len(column.features) for column in columns])


def _project(
    x: NDArray[np.float32], mean: NDArray[np.float32], axes: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    centred = np.subtract(x, mean, dtype=np.float32)
    return centred if axes is None else np.asarray(centred @ axes, dtype=np.float32)


def _scale(spread: NDArray[np.float64], separate: bool) -> NDArray[np.float32]:
    """Factors that bring features to unit scale.

    The columns of a table have units of their own. Those of a bare matrix (pixels, components, an embedding) share
    one, and to blow up the ones that vary least would blow up their noise; unless they vary so differently that they
    cannot be of one kind.
    """
    used = spread[spread > 0]
    if len(used) == 0:
        return np.zeros(len(spread), dtype=np.float32)
    if separate or used.max() > SPREAD * np.median(used):
        return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0).astype(np.float32)
    return np.full(len(spread), 1.0 / np.sqrt((used**2).mean()), dtype=np.float32)


def _components(centred: NDArray[np.float32], k: int, random: np.random.Generator) -> NDArray[np.float32]:
    from sklearn.utils.extmath import randomized_svd

    k = min(k, *centred.shape)
    seed = int(random.integers(1 << 31))
    axes = randomized_svd(centred, k, random_state=seed)[2].T
    return np.ascontiguousarray(axes, dtype=np.float32)


def _flat(examples: NDArray[Any]) -> NDArray[np.float32]:
    """Features as they are; images with their pixels averaged over squares, as numbers between 0 and 1."""
    if examples.ndim == 2:
        return np.asarray(examples, dtype=np.float32)
    n, height, width, _ = examples.shape
    square = -(-max(height, width) // LARGEST_SIDE)
    x = examples.astype(np.float32)
    if square > 1:
        tall, broad = min(square, height), min(square, width)
        high, wide = height // tall, width // broad  # what does not fill a square is left out
        x = x[:, : high * tall, : wide * broad].reshape(n, high, tall, wide, broad, 3).mean((2, 4))
    return np.asarray(x.reshape(n, -1) / np.float32(255), dtype=np.float32)
