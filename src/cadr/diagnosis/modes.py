"""Features in which classes of several modes can be told apart by a plane, and whether the labels ask for them.

A class may consist of groups that lie apart, with other classes between them, as far as the features show: a linear
classifier cannot tell such classes apart, and shares that are estimated from what it says are wrong, without anything
that would show it. Beside the features themselves stand then how near a row is to each of so many centres, found among
all rows, labelled or not. They are taken only where they predict labels left out clearly better: otherwise there is
more to learn from the same few labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadr.diagnosis.cross_fit import CrossFit
from cadr.diagnosis.features import Features

Rows = NDArray[np.int64]
Matrix = NDArray[np.float32]

CENTRES, MOST = 6, 60  # for each class, and at most
SAMPLE = 5_000  # rows among which centres are looked for
LOUD = 3.0  # by how much a nearness counts more than a feature at unit scale
CLEARLY, AT_LEAST = 2.5, 0.02  # standard errors, and nats, by which the log-loss has to be lower
FEWEST = 30  # labels, below which nothing can be chosen by them
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class WithCentres(Features):
    """The features, and beside them how near each of the centres is."""

    centres: Matrix  # (K, d)
    width: float

    def parts(self, rows: Rows) -> Iterator[tuple[slice, Matrix]]:
        for where, x in super().parts(rows):
            squares = (x**2).sum(1)[:, None] + (self.centres**2).sum(1) - 2.0 * x @ self.centres.T
            near = LOUD * np.exp(-np.maximum(squares, 0.0) / (2.0 * self.width**2))
            yield where, np.concatenate([x, near], axis=1, dtype=np.float32)


def with_centres(features: Features, rows: Rows, classes: int, random: np.random.Generator) -> WithCentres:
    """Centres by k-means; the width is the root of the mean squared distance from a row to its own."""
    from sklearn.cluster import KMeans

    chosen = rows if len(rows) <= SAMPLE else np.sort(random.choice(rows, SAMPLE, replace=False))
    x = features[chosen]
    number = max(2, min(CENTRES * classes, MOST, len(x) // 10))
    found = KMeans(number, n_init=1, random_state=int(random.integers(1 << 31))).fit(x)
    width = float(np.sqrt(max(found.inertia_ / len(x), _TINY)))
    centres = np.asarray(found.cluster_centers_, dtype=np.float32)
    return WithCentres(features.pool, features.mean, features.axes, features.scale, centres, width)


def clearly_better(bent: CrossFit, straight: CrossFit, labels: Rows) -> bool:
    """Whether labels left out are clearly more probable by the first than by the second; both have the same folds.

    A class with a single label has been trained on, and tells nothing.
    """
    judged = bent.trained_on & straight.trained_on & (np.bincount(labels)[labels] > 1)
    if judged.sum() < FEWEST:
        return False
    places = np.flatnonzero(judged), labels[judged]
    gained = np.log(np.maximum(bent.labelled[places], _TINY)) - np.log(np.maximum(straight.labelled[places], _TINY))
    return bool(gained.mean() > max(AT_LEAST, CLEARLY * gained.std() / np.sqrt(len(gained))))
