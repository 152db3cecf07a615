"""Which unlabelled examples to ask for: together, their labels should tell most about all that are uncertain.

Of vectors from a pretrained model, or any with as many columns, one example after another is taken that covers most:
every row without a label counts by how near its two likeliest classes are, and is covered as well as its nearest
labelled or chosen row is like it (facility location; the least sure alone are often alike, or odd ones of which nothing
follows). In a few columns of a table, and of pixels, such likeness says little: the least sure ones come first.

Chosen on seeds that benchmarks/labelling.md does not use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, Pool, spread

COLUMNS = 128  # from which on features are vectors whose directions tell what is alike
COMPONENTS = 64  # principal ones, in which rows are compared
ROWS = 4000  # that are chosen among and covered, at most

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def worth_labelling(probabilities: Floats, pool: Pool, rows: Rows, most: int) -> Rows:
    """At most so many places in `rows` (m,) of (m, C) probabilities, those first whose labels are worth most."""
    if pool.kind != "features" or pool.examples.shape[1] < COLUMNS or len(rows) <= 2:
        return least_sure(probabilities)[:most]
    places = spread(np.arange(len(rows)), ROWS)
    known = spread(np.flatnonzero(pool.labels != MISSING), ROWS)
    directions = _directions(pool, np.concatenate([rows[places], known]))
    new, old = directions[: len(places)], directions[len(places) :]
    return np.asarray(places[covering(new, old, 1.0 - margins(probabilities[places]), most)])


def covering(new: NDArray[np.float32], old: NDArray[np.float32], weights: Floats, most: int) -> Rows:
    """Of unit vectors (m, d), one after another that which makes Σ weight · (likeness to the nearest taken) grow most.

    Vectors of `old` (n, d) are taken from the start. Likeness is the cosine, if above 0.
    """
    alike = np.maximum(new @ new.T, 0.0)
    covered = np.maximum(new @ old.T, 0.0).max(1) if len(old) else np.zeros(len(new), np.float32)
    w = weights.astype(np.float32)
    taken: list[int] = []
    for _ in range(min(most, len(new))):
        gain = w @ np.maximum(alike - covered[:, None], 0.0)
        gain[taken] = -1.0
        taken.append(int(gain.argmax()))
        covered = np.maximum(covered, alike[:, taken[-1]])
    return np.array(taken, dtype=np.int64)


def least_sure(probabilities: Floats) -> Rows:
    """Rows of (n, C), those first in which the two most likely classes are nearest to each other."""
    return np.argsort(margins(probabilities), kind="stable")


def margins(probabilities: Floats) -> Floats:
    """(n,) by how much the likeliest class is more likely than the next one."""
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    return np.asarray(first - second)


def _directions(pool: Pool, rows: Rows) -> NDArray[np.float32]:
    """Unit vectors (n, d) of standardised rows in their main principal components."""
    x = np.asarray(pool.examples[rows], dtype=np.float64)
    x = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
    _, axes = np.linalg.eigh(x.T @ x)
    z = x @ axes[:, ::-1][:, :COMPONENTS]
    return np.asarray(z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12), dtype=np.float32)
