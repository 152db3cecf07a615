"""Which rows there are and which are labelled: three kinds of missingness, each drawn anew by every seed.

    by class, near balanced   classes of 0.8 to 1 times the rarest one's size; the classes' labels fall geometrically
    by class, imbalanced      the set's own sizes where its commonest class has 2.5 times the rarest's or more; else a
                              long tail of 3 to 10 to 1 (2 to 5 with two classes), in an order of its own
    at random                 the set's own sizes; every row is as likely as any other to be labelled

By class, the order of the classes is drawn, so that the common ones need not be those with most labels. Five ratios of
most to fewest labels and five totals are met once in every five seeds. A total is at most a third of the rows, a class
has two labels or more, and at least two fifths of each class stay without one. Of the tail's orders that leaves most
rows of ten that are drawn, of the labels' that which allows most labels of three: else sets grow tiny. At random,
classes that got fewer than two labels are given what lacks.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSINGNESS = ("by class, near balanced", "by class, imbalanced", "at random")
RATIOS = (6.0, 12.0, 20.0, 35.0, 60.0)
TOTALS = (97, 183, 346, 653, 1234)
NATURAL = 2.5  # sets whose commonest class is so much larger than the rarest are imbalanced by themselves


class Drawn(NamedTuple):
    rows: NDArray[np.int64]  # of the set
    labelled: NDArray[np.bool_]  # which of these rows


def draw(name: str, y: NDArray[np.int64], missingness: str, seed: int) -> Drawn:
    """The population and the labelled rows in it."""
    digest = hashlib.sha256(f"{name}, {missingness}".encode()).digest()
    base = int.from_bytes(digest[:6], "big")
    grid = np.random.default_rng([base, (seed - 1) // 5])  # the same for five seeds in a row
    place = (seed - 1) % 5
    ratio, total = grid.permutation(RATIOS)[place], grid.permutation(TOTALS)[place]
    random = np.random.default_rng([base, seed, 1])
    sizes = population(np.bincount(y), missingness, random)
    rows = _choose(y, sizes, random)
    total = min(total, len(rows) // 3)
    if missingness == "at random":
        labelled = np.zeros(len(rows), dtype=bool)
        labelled[random.permutation(len(rows))[:total]] = True
        counts = np.maximum(np.bincount(y[rows][labelled], minlength=len(sizes)), 2)
        for c in np.flatnonzero(np.bincount(y[rows][labelled], minlength=len(sizes)) < 2):
            labelled[random.permutation(np.flatnonzero(y[rows] == c))[: counts[c]]] = True
        return Drawn(rows, labelled)
    counts = label_counts(sizes, total, ratio, random)
    labelled = np.zeros(len(rows), dtype=bool)
    labelled[_choose(y[rows], counts, random)] = True
    return Drawn(rows, labelled)


def population(counts: NDArray[np.int64], missingness: str, random: np.random.Generator) -> NDArray[np.int64]:
    """Rows of every class."""
    classes = len(counts)
    if missingness == "by class, near balanced":
        return np.asarray(np.round(counts.min() * random.uniform(0.8, 1.0, classes)), dtype=np.int64)
    if missingness == "at random" or counts.max() >= NATURAL * counts.min():
        return counts
    tail = random.uniform(2, 5) if classes == 2 else random.uniform(3, 10)
    return max((_tail(counts, tail, random) for _ in range(10)), key=lambda sizes: int(sizes.sum()))


def _tail(counts: NDArray[np.int64], tail: float, random: np.random.Generator) -> NDArray[np.int64]:
    weights = tail ** -(random.permutation(len(counts)) / (len(counts) - 1))
    return np.asarray(np.floor(weights * (counts / weights).min()), dtype=np.int64)


def label_counts(sizes: NDArray[np.int64], total: int, ratio: float, random: np.random.Generator) -> NDArray[np.int64]:
    """Labels of every class: geometric in a drawn order, as many as `total` where the classes' sizes allow it."""
    most = np.maximum(0.6 * sizes, 2)
    found = []
    for _ in range(3):
        weights = ratio ** -(random.permutation(len(sizes)) / (len(sizes) - 1))
        scale = min(total / weights.sum(), float((most / weights).min()))
        found.append(np.clip(np.round(scale * weights), 2, most).astype(np.int64))
    return max(found, key=lambda counts: int(counts.sum()))


def _choose(y: NDArray[np.int64], counts: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """So many rows of every class, in the order of the set."""
    chosen = [random.permutation(np.flatnonzero(y == c))[:n] for c, n in enumerate(counts)]
    return np.sort(np.concatenate(chosen))
