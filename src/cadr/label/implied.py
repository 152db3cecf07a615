"""What answers imply for the class shares.

The examples were chosen by what the model makes of them, so shares among the answers say nothing. But whoever chose
them did not look at the answers: given the example, its answer is still a draw from P(class | example). So where the
classes turn up more often than the model expected *of these very examples*, it gives that class too little everywhere:
each class gets a factor w_c, an answered example the likelihood w_y p_y / Σ_c w_c p_c, and log w a normal prior around
no change. The other examples' probabilities, multiplied by w, add up to the sizes that are implied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PRECISION = 1.0  # of log w: a factor of e either way is one standard deviation
DRAWS = 200  # from the posterior, for the interval
NUMBERS = 200_000  # probabilities that each draw is applied to; more rows are thinned out
_STEPS = 100
_FLOOR = 1e-9  # of a probability


@dataclass(frozen=True, eq=False)
class Implied:
    """Shares of all examples, (C,), of which the labelled ones count as what they are labelled."""

    believed: Floats  # by the model
    implied: Floats
    low: Floats  # 90 % interval
    high: Floats
    expected: Floats  # answers of each class that the model expected
    given: Floats

    @property
    def surprising(self) -> NDArray[np.int64]:
        """Classes whose interval does not hold what the model believes, the farthest out first."""
        out = np.maximum(self.low - self.believed, self.believed - self.high)
        order = np.argsort(-out, kind="stable")
        return order[out[order] > 0]


def implied_sizes(probabilities: Floats, answered: NDArray[np.int64], labels: NDArray[np.int64], counts: Floats,
                  unlabelled: int) -> Implied:  # fmt: skip
    """From (m, C) probabilities of unlabelled examples, of which those `answered` turned out to be of `labels`.

    `counts` (C,) are the labels there were before, `unlabelled` the examples without one then, m of which are here.
    """
    p = np.maximum(probabilities, _FLOOR)
    classes = p.shape[1]
    given = np.bincount(labels, minlength=classes).astype(np.float64)
    rest = np.delete(p, answered, axis=0)
    rest = rest[:: max(1, rest.size // NUMBERS)]
    total, left = counts.sum() + unlabelled, unlabelled - len(answered)

    def shares(theta: Floats) -> Floats:
        """(C,) from log w."""
        mean = _normalised(rest * np.exp(theta - theta.max())).mean(0) if len(rest) else 0.0
        return np.asarray((counts + given + left * mean) / total)

    theta, covariance = _fit(p[answered], given)
    random = np.random.default_rng(0)
    draws = [shares(one) for one in random.multivariate_normal(theta, covariance, DRAWS, method="eigh")]
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    believed = (counts + unlabelled * _normalised(p).mean(0)) / total
    return Implied(believed, shares(theta), low, high, _normalised(p[answered]).sum(0), given)


def _fit(seen: Floats, given: Floats) -> tuple[Floats, Floats]:
    """The most probable log w, and the inverse of the curvature there. By Newton's method: the posterior is concave."""
    theta = np.zeros(len(given))
    for _ in range(_STEPS):
        expected = _normalised(seen * np.exp(theta - theta.max()))
        gradient = given - expected.sum(0) - PRECISION * theta
        curvature = np.diag(expected.sum(0) + PRECISION) - expected.T @ expected
        step = np.linalg.solve(curvature, gradient)
        theta = theta + step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < 1e-9:
            break
    return theta, np.asarray(np.linalg.inv(curvature))


def _normalised(p: Floats) -> Floats:
    return np.asarray(p / p.sum(1, keepdims=True))
