"""Class shares of the unlabelled rows while a network learns, from what lies around an example instead of on it.

A network knows its labelled examples by heart: its own probabilities for them say nothing of how it errs on others, and
an estimate that corrects for these errors needs just that. So every example, labelled or not, is given the mean
prediction v of its nearest unlabelled neighbours (`label_swap.around`), itself left out. No v has been fitted to the
example's own label, and those of a class are alike with and without labels; that is all that maximum likelihood under
label shift asks. The v are recalibrated on the labelled examples first (`label_shift.fit_scaling`), because what a
network is drawn to is in them as well.

The doubly robust estimate stands beside it. With p̂ the probabilities under shares q, and φ_c = n_c / (N q_c) the
propensities that follow from the same q,

    π̂_k = mean_i [p̂_ik + A_i/φ_{y_i} (1{y_i = k} − p̂_ik)] = mean_i p̂_ik + q_k − Σ_c q_c · mean_{i: y_i = c} p̂_ik,

as the weighted indicators add up to q_k. At the likelihood's summit the first term is q_k, too, so that one step is
2q − Mᵀq, M being the mean prediction of each class's labelled examples: a step from maximum likelihood to where
Mᵀq equals the mean prediction. That fixed point is the estimate from a soft confusion matrix, and with two labels in a
class M is mostly noise. So it is reported, and maximum likelihood is what training is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cadr.estimate.label_shift import Floats, Labels, fit_scaling, interval, label_shift, with_prior

DRAWS = 20
# Of the bootstrap's variance. It takes the network as given, whose errors all examples share; half as wide again as in
# a diagnosis before training.
RESAMPLED = 6.75
FEW_LABELS = 5.0  # of 1/n_c, as there
_FOLDS = 5
_LEAST = 1e-4  # share: no class is told to be absent


@dataclass(frozen=True, eq=False)
class RunningShares:
    """Of the rows without a label, each (C,), or (C, 2)."""

    share: Floats
    interval: Floats  # 90 %
    doubly_robust: Floats


def running_shares(labelled: Floats, labels: Labels, unlabelled: Floats, random: np.random.Generator) -> RunningShares:
    """From the neighbours' mean predictions of labelled (n, C) and unlabelled (m, C) rows; every class has a label."""
    counts = np.bincount(labels, minlength=labelled.shape[1])
    share, draws = _likeliest(labelled, labels, unlabelled), []
    for _ in range(DRAWS):
        w = random.standard_exponential(len(labels))
        w *= (counts / np.bincount(labels, w, minlength=len(counts)))[
            labels
        ]  # how many labels a class has is no chance
        draws.append(_likeliest(labelled, labels, unlabelled, w, random.standard_exponential(len(unlabelled)), 1e-5))
    deviation = np.sqrt(RESAMPLED * np.var(draws, axis=0, ddof=1) * (1.0 + FEW_LABELS / counts))
    return RunningShares(share, interval(share, deviation), doubly_robust(labelled, labels, unlabelled, share, random))


def _likeliest(
    labelled: Floats,
    labels: Labels,
    unlabelled: Floats,
    weights: Floats | None = None,
    others: Floats | None = None,
    tolerance: float = 1e-7,
) -> Floats:
    scaling = fit_scaling(labelled, labels, weights)
    reference = np.average(scaling.apply(labelled), axis=0, weights=weights)
    return label_shift(scaling.apply(unlabelled), reference, others, tolerance)


def doubly_robust(
    labelled: Floats, labels: Labels, unlabelled: Floats, share: Floats, random: np.random.Generator
) -> Floats:
    """One step from `share`, cross-fitted: a labelled row is judged by the recalibration of the other folds.

    A class with a single label stays in every fold, which would not know it otherwise.
    """
    counts = np.bincount(labels, minlength=len(share))
    order = np.lexsort((random.random(len(labels)), labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % _FOLDS
    mean, confusion = np.zeros(len(share)), np.zeros((len(share), len(share)))
    for k in range(_FOLDS):
        kept = (fold != k) | (counts[labels] == 1)
        scaling = fit_scaling(labelled[kept], labels[kept])
        reference = scaling.apply(labelled[kept]).mean(0)
        mean += with_prior(scaling.apply(unlabelled), reference, share).mean(0) / _FOLDS
        held = fold == k
        np.add.at(confusion, labels[held], with_prior(scaling.apply(labelled[held]), reference, share))
    step = mean + share - share @ (confusion / counts[:, None])
    return _distribution(np.clip(step, _LEAST, None))


def not_refuted(presumed: Floats, bounds: Floats) -> Floats:
    """Shares as near to the presumed ones as the intervals (C, 2) allow: their multiple, cut off at the bounds.

    A class about which the labels say little stays at what is presumed, and one that is said to be rarer or more
    frequent moves no further than to the near end of its interval.
    """
    low, high = np.maximum(bounds[:, 0], _LEAST), np.maximum(bounds[:, 1], _LEAST)
    if low.sum() >= 1.0 or high.sum() <= 1.0:
        return _distribution(low if low.sum() >= 1.0 else high)
    least, most = 0.0, float((high / presumed).max())
    for _ in range(60):
        factor = (least + most) / 2
        least, most = (factor, most) if np.clip(factor * presumed, low, high).sum() < 1.0 else (least, factor)
    return _distribution(np.clip(most * presumed, low, high))


def _distribution(values: Floats) -> Floats:
    return np.asarray(values / values.sum())
