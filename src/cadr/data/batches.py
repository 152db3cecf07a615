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
