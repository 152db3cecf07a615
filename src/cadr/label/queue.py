"""Which unlabelled examples to ask for, and in which order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cadr.report.query_export import least_sure


def asked_first(probabilities: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """At most so many rows of (m, C) probabilities, those first whose labels are worth most."""
    return least_sure(probabilities)[:most]
