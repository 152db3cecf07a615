"""Shares of the classes among unlabelled rows, and how far they can be trusted.

Maximum likelihood, when P(x | class) is that of the labelled rows (Saerens, Latinne and Decaestecker, 2002): a
classifier with probabilities f, whose mean over the labelled rows is p, gives an unlabelled row the likelihood
Σ_c q_c f_c / p_c, up to a factor, and EM climbs to the best q. The likelihood is concave, so there is one summit. Far
from it EM creeps; SQUAREM (Varadhan and Roland, 2008) extrapolates its steps.

The estimate is a weighted mean of two of these, one from the probabilities as they are and one from recalibrated ones
(bias-corrected temperature scaling: Alexandari, Kundaje and Shrikumar, 2020). Neither is always the better one, and how
far they are apart says how far to trust them: it enters the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RIDGE = 10.0  # on b, against a log-loss summed over rows: a class with one label must not buy a huge intercept
SLOPE_RIDGE = 0.01  # on a − 1: predictions without an error would otherwise ask for an infinite slope
FLOOR = 1e-12  # of a probability whose logarithm is needed


class Scaling(NamedTuple):
    slope: float  # a
    intercept: Floats  # b, (C,)

    def apply(self, probabilities: Floats) -> Floats:
        """softmax(a·log f + b), (m, C)."""
        return _softmax(self.slope * np.log(np.maximum(probabilities, FLOOR)) + self.intercept)


def fit_scaling(
    probabilities: Floats, labels: NDArray[np.int64], weights: Floats | None = None, ridge: float = RIDGE
) -> Scaling:
    """a and b that minimise the weighted log-loss plus (ridge/2)·|b|², by Newton's method with step halving.

    A touch of the same on a − 1 keeps the slope finite. Written out, as a bootstrap asks for hundreds of these: SciPy's
    `trust-exact` takes the same two derivatives and goes the same steps, in twice the time and more.
    """
    logs = np.log(np.maximum(probabilities, FLOOR))
    w = np.ones(len(logs)) if weights is None else weights
    theta = np.concatenate([[1.0], np.zeros(logs.shape[1])])
    loss = _loss(theta, logs, labels, w, ridge)
    for _ in range(50):
        gradient, hessian = _derivatives(theta, logs, labels, w, ridge)
        step = np.linalg.solve(hessian, gradient)
        if np.abs(step).max() < 1e-7:
            break
        for _ in range(30):
            new = _loss(theta - step, logs, labels, w, ridge)
            if new <= loss:
                break
            step = step / 2
        else:
            break
        theta, loss = theta - step, new
    return Scaling(float(theta[0]), theta[1:])


def _softmax(logits: Floats) -> Floats:
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(shifted / shifted.sum(1, keepdims=True))


def _loss(theta: Floats, logs: Floats, labels: NDArray[np.int64], w: Floats, ridge: float) -> float:
    logits = theta[0] * logs + theta[1:]
    top = logits.max(1)
    log_sum = top + np.log(np.exp(logits - top[:, None]).sum(1))
    chosen = logits[np.arange(len(labels)), labels]
    penalty = ridge * (theta[1:] ** 2).sum() + SLOPE_RIDGE * (theta[0] - 1.0) ** 2
    return float(w @ (log_sum - chosen) + penalty / 2)


def _derivatives(
    theta: Floats, logs: Floats, labels: NDArray[np.int64], w: Floats, ridge: float
) -> tuple[Floats, Floats]:
    p = _softmax(theta[0] * logs + theta[1:])
    rows, size = np.arange(len(labels)), logs.shape[1]
    mean = (p * logs).sum(1)
    residual = w[:, None] * p
    residual[rows, labels] -= w
    slope = (residual * logs).sum() + SLOPE_RIDGE * (theta[0] - 1.0)
    gradient = np.concatenate([[slope], residual.sum(0) + ridge * theta[1:]])
    hessian = np.empty((size + 1, size + 1))
    hessian[0, 0] = w @ ((p * logs**2).sum(1) - mean**2) + SLOPE_RIDGE
    hessian[0, 1:] = hessian[1:, 0] = (w[:, None] * p * (logs - mean[:, None])).sum(0)
    weighted = w[:, None] * p
    hessian[1:, 1:] = np.diag(weighted.sum(0) + ridge) - weighted.T @ p
    return gradient, hessian


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


Labels = NDArray[np.int64]

Z90 = 1.6448536269514722  # the normal distribution's 95 % point
# Chosen by benchmarks/diagnosis_tune.py on draws that no reported figure uses: the weight for the smallest error, the
# factors for the narrowest intervals that cover everywhere.
RAW = 0.75  # weight of the estimate from probabilities as they are
RESAMPLED = 3.0  # of the bootstrap's variance, which has nothing of how the classifier varies and errs
APART = 2.0  # of the squared difference of the two estimates, which hints at such errors
FEW_LABELS = 5.0  # of 1/n_c: a bootstrap of few labels is too sure of them


@dataclass(frozen=True, eq=False)
class Shares:
    """q of the unlabelled rows, each (C,)."""

    raw: Floats  # from the probabilities as they are
    recalibrated: Floats

    @property
    def share(self) -> Floats:
        return _mean(self.raw, self.recalibrated)


def _mean(raw: Floats, recalibrated: Floats) -> Floats:
    return np.asarray(RAW * raw + (1.0 - RAW) * recalibrated)


def class_shares(
    labelled: Floats, labels: Labels, unlabelled: Floats, weights: Floats | None = None, others: Floats | None = None
) -> Shares:
    """Both estimates, from out-of-fold probabilities of the labelled and the unlabelled rows, (n, C) and (m, C).

    Rows count as often as their weights say: `weights` (n,) of the labelled, `others` (m,) of the unlabelled ones.
    """
    scaling = fit_scaling(labelled, labels, weights)
    again = scaling.apply(labelled)
    return Shares(
        raw=label_shift(unlabelled, np.average(labelled, axis=0, weights=weights), others),
        recalibrated=label_shift(scaling.apply(unlabelled), np.average(again, axis=0, weights=weights), others),
    )


def bootstrap_shares(
    labelled: Floats,
    labels: Labels,
    unlabelled: Floats,
    draws: int,
    random: np.random.Generator,
    weights: Floats | None = None,
    others: Floats | None = None,
) -> Floats:
    """Bayesian bootstrap of the share, (draws, C): every row gets an exponential weight; the classifier stays as it is.

    A row that counts for k rows gets the sum of k of them, a gamma variable.

    Labelled rows are normalised within their class, because how many labels a class has is no accident of sampling
    here, it is the bias itself.
    """
    w = _bootstrap_weights(len(labels), draws, random, weights)
    for c in np.unique(labels):
        rows = labels == c
        w[rows] *= (rows.sum() if weights is None else weights[rows].sum()) / w[rows].sum(0)
    v = _bootstrap_weights(len(unlabelled), draws, random, others)
    raw = label_shift(unlabelled, labelled.T @ w / w.sum(0), v, tolerance=1e-5)
    recalibrated = np.empty_like(raw)
    for b in range(draws):
        scaling = fit_scaling(labelled, labels, w[:, b])
        reference = w[:, b] @ scaling.apply(labelled) / w[:, b].sum()
        recalibrated[:, b] = label_shift(scaling.apply(unlabelled), reference, v[:, b], tolerance=1e-5)
    return _mean(raw, recalibrated).T


def _bootstrap_weights(n: int, draws: int, random: np.random.Generator, weights: Floats | None) -> Floats:
    if weights is None:
        return random.standard_exponential((n, draws))
    return np.maximum(random.standard_gamma(weights[:, None], (n, draws)), TINY)


def standard_deviation(shares: Shares, draws: Floats, counts: Labels | Floats) -> Floats:
    """√(3·sd_boot² + 2·(raw − recalibrated)²)·√(1 + 5/n_c), (C,)."""
    gap = shares.raw - shares.recalibrated
    variance = RESAMPLED * draws.var(0, ddof=1) + APART * gap**2
    return np.asarray(np.sqrt(variance * (1.0 + FEW_LABELS / np.maximum(counts, 1))))


def interval(share: Floats, deviation: Floats) -> Floats:
    """The 90 % interval, (C, 2), within [0, 1]."""
    return np.clip(np.stack([share - Z90 * deviation, share + Z90 * deviation], axis=1), 0.0, 1.0)
