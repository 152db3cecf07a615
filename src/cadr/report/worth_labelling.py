"""Which missing labels would make the doubly robust estimate most certain.

The estimate of the mean loss over n rows is (1/n) Σ ĝ_i + (r_i/φ_i)(ℓ_i − ĝ_i), with r_i = 1 where row i is labelled,
which happens with probability φ_i = φ(y_i), ℓ_i its loss and ĝ_i the loss imputed for it. Given the rows, only the r_i
are random, and independent, so its variance is a sum with one term per row:

    (1/n²) Σ v_i,    v_i = (1 − φ_i)/φ_i · (ℓ_i − ĝ_i)²

Asking for the label of row i makes φ_i = 1 and removes v_i, no more and no less. The terms add up, so the k rows with
the largest v_i are the best k to label together. (A labelled row shows its own v_i, and stands for 1/φ_i rows like it:
that is where the familiar (1 − φ)/φ² · residual² of the variance *estimate* comes from.) For a row without a label v_i
depends on the class it would turn out to have, so it is averaged over what that class may be, given that the row is
unlabelled: P(y | x, missing) ∝ P(y | x)(1 − φ_y). The loss is the cross-entropy −log P(y | x), and what is imputed is
its mean under the model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-12  # below this a probability is rounding, and its logarithm no loss


def variance_removed(probabilities: NDArray[np.float64], propensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the expected v_i of unlabelled rows, from (n, C) probabilities and (C,) propensities."""
    loss = -np.log(np.maximum(probabilities, _TINY))
    residual = loss - (probabilities * loss).sum(1, keepdims=True)
    missing = probabilities * (1.0 - propensity)
    total = missing.sum(1, keepdims=True)
    missing = np.divide(missing, total, out=np.zeros_like(missing), where=total > 0)
    odds = (1.0 - propensity) / propensity
    removed: NDArray[np.float64] = (missing * odds * residual**2).sum(1)
    return removed
