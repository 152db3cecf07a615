"""Shares of the classes among unlabelled rows, and how far they can be trusted.

The estimate is a weighted mean of two label-shift estimates, one from the probabilities as they are and one from
recalibrated ones. Neither is always the better one, and how far they are apart says how far to trust them: it enters
the interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadr.estimate.label_shift import label_shift
from cadr.estimate.temperature import fit_scaling

Floats = NDArray[np.float64]
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


def class_shares(labelled: Floats, labels: Labels, unlabelled: Floats) -> Shares:
    """Both estimates, from out-of-fold probabilities of the labelled and the unlabelled rows, (n, C) and (m, C)."""
    scaling = fit_scaling(labelled, labels)
    return Shares(
        raw=label_shift(unlabelled, labelled.mean(0)),
        recalibrated=label_shift(scaling.apply(unlabelled), scaling.apply(labelled).mean(0)),
    )


def bootstrap_shares(
    labelled: Floats, labels: Labels, unlabelled: Floats, draws: int, random: np.random.Generator
) -> Floats:
    """Bayesian bootstrap of the share, (draws, C): every row gets an exponential weight; the classifier stays as it is.

    Labelled rows are normalised within their class, because how many labels a class has is no accident of sampling
    here, it is the bias itself.
    """
    w = random.standard_exponential((len(labels), draws))
    for c in np.unique(labels):
        rows = labels == c
        w[rows] *= rows.sum() / w[rows].sum(0)
    v = random.standard_exponential((len(unlabelled), draws))
    raw = label_shift(unlabelled, labelled.T @ w / w.sum(0), v, tolerance=1e-5)
    recalibrated = np.empty_like(raw)
    for b in range(draws):
        scaling = fit_scaling(labelled, labels, w[:, b])
        reference = w[:, b] @ scaling.apply(labelled) / w[:, b].sum()
        recalibrated[:, b] = label_shift(scaling.apply(unlabelled), reference, v[:, b], tolerance=1e-5)
    return _mean(raw, recalibrated).T


def standard_deviation(shares: Shares, draws: Floats, counts: Labels) -> Floats:
    """√(3·sd_boot² + 2·(raw − recalibrated)²)·√(1 + 5/n_c), (C,)."""
    gap = shares.raw - shares.recalibrated
    variance = RESAMPLED * draws.var(0, ddof=1) + APART * gap**2
    return np.asarray(np.sqrt(variance * (1.0 + FEW_LABELS / np.maximum(counts, 1))))


def interval(share: Floats, deviation: Floats) -> Floats:
    """The 90 % interval, (C, 2), within [0, 1]."""
    return np.clip(np.stack([share - Z90 * deviation, share + Z90 * deviation], axis=1), 0.0, 1.0)
