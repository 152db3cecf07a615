"""How much each learner counts, from its scores of labelled rows that it was not fitted to.

The stack's score of class c is Σ_m β_m s_m(x, c) + b_c. The weights β and offsets b are the most probable ones under
the held-out labels, each class with the same weight however many labels it has. β lies around equal weights of learners
whose sharpness has been put right one by one, and b around 0: a few dozen labels can support no more.

The labels that happen to be there decide this, so that it is done over for draws from them (a Bayesian bootstrap), each
with a random part of the learners. The draws' probabilities are averaged, and how far their class shares differ says
how uncertain the shares are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cadr.ensemble.imputation import log_softmax
from cadr.ensemble.learners import FITTING, Floats, Rows, one_hot
from cadr.ensemble.shares import likeliest_shares, softmax
from cadr.utils.optional_imports import optional_import

DRAWS = 20
CHANCE = 0.6  # of a learner to be in a draw
SHARE_ROWS = 5000  # unlabelled rows that shares are estimated from
_SHARPNESS_PRECISION, _WEIGHT_PRECISION, _OFFSET_PRECISION = 1.0, 1.0, 1.0


@dataclass(frozen=True, eq=False)
class Weights:
    """A draw's stack: what multiplies each learner's scores, and what is added to each class's."""

    learners: Floats  # (M,)
    offsets: Floats  # (C,)

    def scores(self, scores: Floats) -> Floats:
        """(M, n, C) to (n, C)."""
        return np.asarray(np.tensordot(self.learners, scores, 1) + self.offsets)


def draw_weights(
    held_out: Floats, labels: Rows, random: np.random.Generator, draws: int = DRAWS, rows: Floats | None = None
) -> list[Weights]:
    """Stacks of the learners' held-out scores (M, n, C) of labelled rows, one for each draw.

    `rows` (n,) is for how many rows each one counts: the sum of so many exponential weights is a gamma variable.
    """
    learners = len(held_out)
    found = []
    for _ in range(draws):
        drawn = random.exponential(size=len(labels)) if rows is None else random.standard_gamma(rows)
        weights = _balanced(labels, drawn, held_out.shape[2], rows)
        part = np.flatnonzero(random.random(learners) < CHANCE)
        if len(part) == 0:
            part = random.integers(learners, size=1)
        one = fit_weights(held_out[part], labels, weights)
        full = np.zeros(learners)
        full[part] = one.learners
        found.append(Weights(full, one.offsets))
    return found


def draw_shares(
    draws: list[Weights], scores: Floats, random: np.random.Generator, rows: Floats | None = None
) -> Floats:
    """The unlabelled rows' class shares as each draw sees them, (B, C), from the learners' scores (M, n, C)."""
    if scores.shape[1] > SHARE_ROWS:
        some = random.choice(scores.shape[1], SHARE_ROWS, replace=False)
        scores, rows = scores[:, some], None if rows is None else rows[some]
    return np.stack([likeliest_shares(one.scores(scores), weights=rows) for one in draws])


def mean_probabilities(draws: Sequence[Weights], scores: Floats) -> Floats:
    """(n, C) of the learners' scores (M, n, C), in the mean over the draws; never quite 0."""
    total = np.zeros(scores.shape[1:])
    for one in draws:
        total += softmax(one.scores(scores))
    return np.asarray(total / len(draws) + 1e-30)


def fit_weights(held_out: Floats, labels: Rows, weights: Floats) -> Weights:
    """The stack of highest posterior density for rows with these weights."""
    learners, _, classes = held_out.shape
    sharpness = np.array([_sharpness(scores, labels, weights) for scores in held_out])
    scaled = held_out * sharpness[:, None, None]
    target = one_hot(labels, classes)

    def objective(flat: Floats) -> tuple[float, Floats]:
        logs, offsets = flat[:learners], flat[learners:]
        share = np.exp(logs) / learners
        found = log_softmax(np.tensordot(share, scaled, 1) + offsets)
        error = weights[:, None] * (np.exp(found) - target)
        by_share = np.tensordot(scaled, error, ((1, 2), (0, 1)))
        value = -float((weights * found[np.arange(len(labels)), labels]).sum())
        value += 0.5 * _WEIGHT_PRECISION * float((logs**2).sum()) + 0.5 * _OFFSET_PRECISION * float((offsets**2).sum())
        by_logs, by_offsets = by_share * share + _WEIGHT_PRECISION * logs, error.sum(0) + _OFFSET_PRECISION * offsets
        return value, np.concatenate([by_logs, by_offsets])

    optimize = optional_import("scipy.optimize", FITTING)
    start = np.zeros(learners + classes)
    best = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return Weights(np.exp(best[:learners]) / learners * sharpness, best[learners:])


def _balanced(labels: Rows, drawn: Floats, num_classes: int, rows: Floats | None = None) -> Floats:
    """Drawn weights with which all classes count alike, adding up to the rows of equal weight that tell as much."""
    counts = np.bincount(labels, rows, minlength=num_classes)
    even = 1.0 / np.maximum(counts, 1 if rows is None else 1e-12)[labels]
    each = np.ones(len(labels)) if rows is None else rows
    effective = (each * even).sum() ** 2 / (each * even**2).sum()
    weights = drawn / np.maximum(np.bincount(labels, drawn, minlength=num_classes), 1e-300)[labels]
    return np.asarray(weights / weights.sum() * effective)


def _sharpness(scores: Floats, labels: Rows, weights: Floats) -> float:
    """What the scores are best multiplied by."""
    rows = np.arange(len(labels))

    def objective(log: float) -> float:
        fitted = float((weights * log_softmax(np.exp(log) * scores)[rows, labels]).sum())
        return 0.5 * _SHARPNESS_PRECISION * log**2 - fitted

    optimize = optional_import("scipy.optimize", FITTING)
    best = optimize.minimize_scalar(objective, bounds=(-2.5, 1.5), method="bounded", options={"xatol": 0.02})
    return float(np.exp(best.x))
