"""The rows without a label that a run learns from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, Pool


def unlabelled(pool: Pool) -> NDArray[np.int64]:
    """Rows of the stream without a label."""
    stream = np.arange(len(pool.labels)) if pool.stream is None else pool.stream
    found: NDArray[np.int64] = stream[pool.labels[stream] == MISSING]
    return found


def spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of them, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)]
