"""Random orders that are the same on every platform and with every NumPy version, and the rows that a step sees.

NumPy may change how its generators shuffle; the bits here are SplitMix64's (Steele, Lea and Flood, 2014), written out,
so that a split made today is the split made in ten years. Batches are a pure function of (seed, step), so that nothing
has to be saved to continue. Rows come in shuffled epochs, one after another without a gap: a batch may end one epoch
and begin the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cadr.errors import ProtocolError

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def bits(seed: int, stream: int, n: int) -> NDArray[np.uint64]:
    """n random 64-bit words; another `stream` of the same seed is independent of this one."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 63:
        raise ProtocolError(f"a seed is a whole number from 0 to 2^63 − 1, got {seed!r}")
    start = _mix(np.array([int(seed) ^ ((stream + 1) * 0xD1342543DE82EF95 & _MASK)], dtype=np.uint64))
    return _mix(start + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GOLDEN))


def uniform(seed: int, stream: int, n: int) -> NDArray[np.float64]:
    """n numbers in [0, 1) with 53 random bits each."""
    return np.asarray((bits(seed, stream, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def order(seed: int, stream: int, n: int) -> NDArray[np.int64]:
    """A random order of 0 … n − 1."""
    return np.argsort(bits(seed, stream, n), kind="stable").astype(np.int64)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


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
