"""Real data whose labels are made to miss: by class, by features as well, or at random."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np

from cadr.data import Pool, open_data
from cadr.data.pool import MISSING
from cadr.data.profile import ceilings
from cadr.evaluate.diagnosis_features import fit_features

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


def _unlabelled(pool: Pool, seed: int, tail: float = 1.0) -> tuple[Pool, np.ndarray]:
    made, _ = by_count(pool, np.zeros(pool.num_classes, dtype=np.int64), seed, tail)
    assert made.hidden_labels is not None
    return made, made.hidden_labels


def _labelled(pool: Pool, rows: np.ndarray) -> Pool:
    assert pool.hidden_labels is not None
    labels = np.full(len(pool.labels), MISSING)
    labels[rows] = pool.hidden_labels[rows]
    return dataclasses.replace(pool, labels=labels)
