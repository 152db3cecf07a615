"""Do labelled and unlabelled rows look alike? Hotelling's T² on predicted probabilities, judged by permutation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Permutation(NamedTuple):
    statistic: float  # T²
    p_value: float


def hotelling_test(
    values: Floats,
    flags: NDArray[np.bool_],
    groups: NDArray[np.int64],
    permutations: int,
    random: np.random.Generator,
) -> Permutation:
    """T² of the flagged rows of `values` (n, k) against the others, and its p-value.

    Flags are permuted within `groups` (the folds of a cross-fit: each was scored by a classifier of its own, so values
    of different folds cannot be exchanged). The p-value counts the data themselves as one permutation: it is never 0.
    """
    white = _whitened(values, groups)
    n, flagged = len(values), int(flags.sum())
    fewer = flags if 2 * flagged <= n else ~flags  # the sum over either side decides: take the cheaper one
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    chosen = [int(fewer[rows].sum()) for rows in members]
    observed = _between(white[fewer].sum(0), int(fewer.sum()), n)
    at_least = 0
    for _ in range(permutations):
        total = np.zeros(white.shape[1])
        for rows, k in zip(members, chosen, strict=True):
            total += white[rows[random.choice(len(rows), k, replace=False, shuffle=False)]].sum(0)
        at_least += _between(total, int(fewer.sum()), n) >= observed * (1 - 1e-12)
    return Permutation(_t_squared(observed, n), (1 + at_least) / (1 + permutations))


def _whitened(values: Floats, groups: NDArray[np.int64]) -> Floats:
    """Centred within groups, with unit *total* covariance, which no permutation changes; null directions are dropped.

    Probabilities sum to one, so at least one direction is null.
    """
    centred = values.copy()
    for g in np.unique(groups):
        centred[groups == g] -= values[groups == g].mean(0)
    scale, axes = np.linalg.eigh(centred.T @ centred)
    kept = scale > max(scale[-1], 0.0) * 1e-10
    return np.asarray(centred @ (axes[:, kept] / np.sqrt(scale[kept])))


def _between(total: Floats, m: int, n: int) -> float:
    """The share of the scatter that lies between the two samples: rises with T², and needs only one sum."""
    return float(total @ total) * n / (m * (n - m))


def _t_squared(between: float, n: int) -> float:
    """T² = (n − 2)·B/(1 − B): the total scatter is the scatter within plus that between."""
    return (n - 2) * between / max(1.0 - between, np.finfo(float).tiny)
