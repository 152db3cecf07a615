"""Data whose truth is known and whose labels are made to miss: by class, by features as well, or at random."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np

from cadr.data import Pool, open_data
from cadr.data.pool import MISSING
from cadr.data.shuffle import ceilings
from cadr.diagnosis.features import fit_features

PER_CLASS = 600  # images of Fashion-MNIST
STRENGTH = 1.5  # of missingness by features


@lru_cache
def read(name: str, root: str | None) -> Pool:
    """The 64 principal components that `diagnose` would use, made once; of digits the test part too, as theirs."""
    pool = open_data(name, root=root)
    if pool.name == "digits":
        assert pool.test_examples is not None
        assert pool.test_labels is not None
        x, y = np.concatenate([pool.examples, pool.test_examples]), np.concatenate([pool.labels, pool.test_labels])
        pool = Pool(x, y, pool.class_names, name)
    rows = np.arange(len(pool.labels))
    return Pool(fit_features(pool, rows, np.random.default_rng(0))[rows], pool.labels, pool.class_names, name)


def by_count(pool: Pool, counts: np.ndarray, seed: int, reversed_tail: float = 1.0) -> tuple[Pool, np.ndarray]:
    """A pool with counts[c] labels of class c, chosen at random, and the class shares of the other rows."""
    random = np.random.default_rng([seed, *counts.tolist(), int(reversed_tail)])
    rows, labels = [], []
    size = PER_CLASS if pool.name == "fashion_mnist" else int(np.bincount(pool.labels).max())
    others = ceilings(size, reversed_tail, pool.num_classes)[::-1]
    for c, n in enumerate(counts):
        mine = random.permutation(np.flatnonzero(pool.labels == c))[:size]
        mine = mine if reversed_tail == 1.0 else mine[: n + others[c]]
        rows.append(mine)
        labels.append(np.where(np.arange(len(mine)) < n, c, MISSING))
    order = random.permutation(sum(map(len, rows)))
    chosen, known = np.concatenate(rows)[order], np.concatenate(labels)[order]
    truth = pool.labels[chosen]
    made = Pool(pool.examples[chosen], known, pool.class_names, pool.name, hidden_labels=truth)
    return made, np.bincount(truth[known == MISSING], minlength=pool.num_classes) / (known == MISSING).sum()


def by_chance(pool: Pool, labels: int, gamma: float, seed: int, tail: float = 1.0) -> Pool:
    """So many labels, drawn row by row; a row of the last class is γ times less likely to be next than a first one's.

    How many labels a class gets is left to chance, as it is when people label. γ = 1 is missing at random. The first
    class is `tail` times rarer than the last: then some classes have a single label, or none.
    """
    made, truth = _unlabelled(pool, seed, tail)
    odds = -np.log(gamma) * truth / (pool.num_classes - 1)
    random = np.random.default_rng([seed, labels, int(gamma)])
    return _labelled(made, np.argsort(-(odds + random.gumbel(size=len(truth))))[:labels])


def by_features(pool: Pool, counts: np.ndarray, seed: int) -> Pool:
    """Within a class, a row whose first component is z standard deviations up is labelled e^(1.5 z) times as often."""
    made, truth = _unlabelled(pool, seed)
    random = np.random.default_rng([seed, 1])
    first = made.examples[:, 0]
    chosen = []
    for c, n in enumerate(counts):
        rows = np.flatnonzero(truth == c)
        z = (first[rows] - first[rows].mean()) / first[rows].std()
        chosen.append(rows[np.argsort(-(STRENGTH * z + random.gumbel(size=len(rows))))[:n]])
    return _labelled(made, np.concatenate(chosen))


def table(name: str, seed: int) -> Pool:
    """All labels known: a table of scikit-learn, or one drawn for this seed, features at unit scale."""
    random = np.random.default_rng([seed, 2])
    if name in ("wine", "breast cancer"):
        from sklearn.datasets import load_breast_cancer, load_wine

        x, y = (load_wine if name == "wine" else load_breast_cancer)(return_X_y=True)
    elif name == "Gaussian classes":
        y = random.integers(0, 3, 1500)
        x = random.normal(size=(1500, 6)) + 1.8 * np.eye(3, 6)[y]
    else:
        y, angle = random.integers(0, 2, 1500), random.uniform(0, 2 * np.pi, 1500)
        radius = np.where(y == 0, 1.0, 2.2) + 0.25 * random.normal(size=1500)
        x = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), random.normal(size=(1500, 2))])
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    return Pool(x, y.astype(np.int64), tuple(map(str, range(int(y.max()) + 1))), name, hidden_labels=y.astype(np.int64))


def by_rates(pool: Pool, labels: int, gamma: float, by_feature: bool, seed: int) -> Pool:
    """About so many labels, row by row, γ times fewer of the last class; but one of each class at least.

    If a feature decides as well, the upper half of each class in the first column is labelled twelve times as often.
    """
    assert pool.hidden_labels is not None
    truth, first = pool.hidden_labels, pool.examples[:, 0]
    rate = np.geomspace(1.0, 1.0 / gamma, pool.num_classes)[truth]
    if by_feature:
        middle = np.array([np.median(first[truth == c]) for c in range(pool.num_classes)])
        rate = rate * np.where(first > middle[truth], 1.85, 0.15)
    random = np.random.default_rng([seed, labels, int(gamma), by_feature])
    while True:
        chosen = np.flatnonzero(random.random(len(truth)) < rate * labels / rate.sum())
        if len(np.unique(truth[chosen])) == pool.num_classes:
            return _labelled(pool, chosen)


def _unlabelled(pool: Pool, seed: int, tail: float = 1.0) -> tuple[Pool, np.ndarray]:
    made, _ = by_count(pool, np.zeros(pool.num_classes, dtype=np.int64), seed, tail)
    assert made.hidden_labels is not None
    return made, made.hidden_labels


def _labelled(pool: Pool, rows: np.ndarray) -> Pool:
    assert pool.hidden_labels is not None
    labels = np.full(len(pool.labels), MISSING)
    labels[rows] = pool.hidden_labels[rows]
    return dataclasses.replace(pool, labels=labels)
