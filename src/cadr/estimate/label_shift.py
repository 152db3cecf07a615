"""The class distribution of unlabelled rows by maximum likelihood, when P(x | class) is that of the labelled rows.

Saerens, Latinne and Decaestecker (2002): a classifier with probabilities f, whose mean over the labelled rows is p,
gives an unlabelled row the likelihood Σ_c q_c f_c / p_c, up to a factor, and EM climbs to the best q. The likelihood
is concave, so there is one summit. Far from it EM creeps; SQUAREM (Varadhan and Roland, 2008) extrapolates its steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-300  # keeps a class that the likelihood sends to zero a positive number


def label_shift(
    probabilities: Floats, reference: Floats, weights: Floats | None = None, tolerance: float = 1e-7, steps: int = 1000
) -> Floats:
    """q for `probabilities` f (m, C) of the unlabelled rows and the labelled rows' mean p, (C,).

    Several problems at once: p of shape (C, B) and weights of the rows of shape (m, B) give q of shape (C, B), where
    (m, B) times (C, B) are matrix products and far faster than B problems one by one.
    """
    single = reference.ndim == 1
    p = np.maximum(reference.reshape(len(reference), -1), TINY)
    w = np.full((len(probabilities), 1), 1.0) if weights is None else weights.reshape(len(probabilities), -1)
    w = w / w.sum(0)
    q = np.broadcast_to(1.0 / len(p), p.shape)
    for _ in range(steps):
        first, before = _step(probabilities, p, w, q)
        second, _ = _step(probabilities, p, w, first)
        if np.abs(second - first).max() < tolerance:
            q = second
            break
        third, after = _step(probabilities, p, w, _extrapolated(q, first, second))
        q = np.where(after >= before, third, second)  # a leap that loses likelihood is not made
    return q[:, 0] if single else q


def _step(f: Floats, p: Floats, w: Floats, q: Floats) -> tuple[Floats, Floats]:
    """One EM step for each column, and the log-likelihood before it."""
    ratio = q / p
    likelihood = np.maximum(f @ ratio, TINY)
    new = np.maximum(ratio * (f.T @ (w / likelihood)), TINY)
    return new / new.sum(0), (w * np.log(likelihood)).sum(0)


def _extrapolated(q: Floats, first: Floats, second: Floats) -> Floats:
    """SQUAREM's leap from two steps of EM, kept a distribution."""
    change = first - q
    bend = (second - first) - change
    length = -np.sqrt((change**2).sum(0) / np.maximum((bend**2).sum(0), TINY))
    leap = q - 2.0 * length * change + length**2 * bend
    leap = np.where(np.isfinite(leap).all(0) & (leap > 0).all(0), leap, second)
    return np.asarray(leap / leap.sum(0))


def with_prior(probabilities: Floats, before: Floats, after: Floats) -> Floats:
    """P(class | x) of rows (n, C) where the classes have the shares `after` instead of `before`, each (C,).

    By Bayes' rule, where P(x | class) stays as it was. A row that the new shares leave no class for is not changed.
    """
    weighted = probabilities * (after / np.maximum(before, TINY))
    total = weighted.sum(1, keepdims=True)
    return np.where(total > 0, weighted / np.where(total > 0, total, 1.0), probabilities)
