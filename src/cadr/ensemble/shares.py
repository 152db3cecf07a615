"""Class shares of the unlabelled rows from a stack's scores: how uncertain they are, and what that makes of them."""

from __future__ import annotations

import numpy as np

from cadr.ensemble.learners import Floats

ITERATIONS = 60
PRIOR = 0.04
_LEAST = 1e-12


def offsets_for_shares(scores: Floats, shares: Floats, weights: Floats | None = None, iterations: int = 50) -> Floats:
    """What to add to the scores (n, C) of each class, (C,), so that the mean of their softmax is `shares`."""
    likelihood, offsets = np.exp(scores - scores.max(1, keepdims=True)), np.zeros(scores.shape[1])
    for _ in range(iterations):
        posterior = likelihood * np.exp(offsets)
        posterior /= np.maximum(posterior.sum(1, keepdims=True), _LEAST)
        change = np.log(shares + _LEAST) - np.log(_mean(posterior, weights) + _LEAST)
        offsets = offsets + (change - change.mean())
        if np.abs(change).max() < 1e-4:
            break
    return offsets


def _mean(values: Floats, weights: Floats | None) -> Floats:
    return np.asarray(values.mean(0) if weights is None else weights @ values / weights.sum())


def posterior_with_shares(scores: Floats, shares: Floats, weights: Floats | None = None) -> Floats:
    """Class probabilities (n, C) whose mean is `shares`."""
    return softmax(scores + offsets_for_shares(scores, shares, weights))


def softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(1, keepdims=True))


def likeliest_shares(scores: Floats, prior: float = PRIOR, weights: Floats | None = None) -> Floats:
    """The shares of highest likelihood of rows with scores (n, C), by EM.

    As if `prior` times as many rows again, one at least of each class, were known to be of equally frequent classes: a
    class that has a label exists, however few rows look like it.
    """
    likelihood = np.exp(scores - scores.max(1, keepdims=True))
    classes = likelihood.shape[1]
    w = np.ones(len(likelihood)) if weights is None else weights
    n = w.sum()
    prior_rows, shares = max(1.0, prior * n / classes), np.full(classes, 1.0 / classes)
    for _ in range(ITERATIONS):
        posterior = likelihood * shares
        posterior /= posterior.sum(1, keepdims=True)
        new = ((posterior.sum(0) if weights is None else w @ posterior) + prior_rows) / (n + prior_rows * classes)
        if np.abs(new - shares).max() < 1e-6:
            return np.asarray(new)
        shares = new
    return shares


def shrunk(draws: Floats, counts: Floats) -> tuple[Floats, float]:
    """Shares (C,) from draws (B, C) of them, and how much of their mean is left in them.

    They are shrunk towards equal shares, or towards those of the labels (as if labels were missing at random) where the
    draws are nearer to these, as James and Stein do: by (d − 2) / d of the ratio of the draws' variance to their
    squared distance, with d = C − 1 numbers to estimate. So shares of two or three classes stay as they are estimated.
    """
    mean, variance = draws.mean(0), draws.var(0).sum()
    labelled = (counts + 1.0) / (counts + 1.0).sum()
    centres = [np.full(len(mean), 1.0 / len(mean)), labelled]
    distances = [float(((mean - centre) ** 2).sum()) for centre in centres]
    nearest = int(np.argmin(distances))
    free = len(mean) - 1
    shrinkage = max(0, free - 2) / free
    kept = max(0.0, 1.0 - shrinkage * variance / max(distances[nearest], _LEAST))
    return np.asarray(kept * mean + (1.0 - kept) * centres[nearest]), kept
