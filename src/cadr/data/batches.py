"""Which rows a step sees: a pure function of (seed, step), so that nothing has to be saved to continue.

Rows come in shuffled epochs, one after another without a gap: a batch may end one epoch and begin the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cadr.data.shuffle import order

LABELLED, UNLABELLED = 1, 2  # the two streams' orders have nothing to do with each other


def indices(seed: int, stream: int, n: int, batch: int, start: int, stop: int) -> NDArray[np.int64]:
    """Positions in 0 … n − 1 for the steps start … stop − 1, (stop − start, batch)."""
    first, end = start * batch // n, -(-stop * batch // n)
    # Shifted clear of the small stream numbers from which splits are drawn with the same seed.
    epochs = [order(seed, (epoch + 1 << 32) + stream, n) for epoch in range(first, end)]
    offset = start * batch - first * n
    return np.concatenate(epochs)[offset : offset + (stop - start) * batch].reshape(stop - start, batch)


def balanced_indices(
    seed: int, stream: int, labels: NDArray[np.int64], batch: int, start: int, stop: int
) -> NDArray[np.int64]:
    """The same, with every class as often as any other: each C draws in a row hold each class once.

    The e-th round draws from a class the e-th row of that class's own shuffled epochs.
    """
    classes = np.unique(labels)
    rows = [np.flatnonzero(labels == c) for c in classes]
    first, end = start * batch // len(classes), -(-stop * batch // len(classes))
    rounds = np.arange(first, end)
    order_of_classes = np.stack([order(seed, (int(e) + 1 << 32) + stream, len(classes)) for e in rounds])
    drawn = np.empty_like(order_of_classes)
    for c, members in enumerate(rows):
        epochs = rounds // len(members)
        # Streams of one class are shifted clear of those of the others, and of the order of the classes.
        shuffled = {
            e: members[order(seed, (int(e) + 1 << 32) + (c + 1 << 8) + stream, len(members))] for e in set(epochs)
        }
        of_class = np.array([shuffled[e][i] for e, i in zip(epochs, rounds % len(members), strict=True)])
        drawn[order_of_classes == c] = of_class
    offset = start * batch - first * len(classes)
    return drawn.reshape(-1)[offset : offset + (stop - start) * batch].reshape(stop - start, batch)
