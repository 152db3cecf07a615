"""Rows chosen class by class, and how many of each: long-tailed profiles N·γ^(−i/k), rounded exactly.

One random order of the rows decides, the first so many of each class are taken. In floating point 50·50^(−1) may come
out as 1.0000000000000002, whose ceiling is 2. Whether m ≥ N·γ^(−i/k) is decided in whole numbers instead
(m^k·γ^i ≥ N^k), so that every platform agrees.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data import shuffle
from cadr.errors import ProtocolError


def ceilings(n: int, gamma: float, num_classes: int) -> NDArray[np.int64]:
    """⌈N·γ^(−i/(C−1))⌉ for each class; with γ < 1 it is the last class that has N."""
    k = max(num_classes - 1, 1)
    if gamma < 1:
        return np.array([ceiling(n, gamma, i - k, k) for i in range(num_classes)], dtype=np.int64)
    return np.array([ceiling(n, gamma, i, k) for i in range(num_classes)], dtype=np.int64)


def floors(n: int, gamma: float, num_classes: int) -> NDArray[np.int64]:
    """⌊N·γ^(−i/(C−1))⌋ for each class."""
    k = max(num_classes - 1, 1)
    return np.array([floor(n, gamma, i, k) for i in range(num_classes)], dtype=np.int64)


def ceiling(n: int, gamma: float, i: int, k: int) -> int:
    """⌈N·γ^(−i/k)⌉."""
    m: int = max(0, round(n * gamma ** (-i / k)) - 1)
    while _compare(m, n, gamma, i, k) < 0:
        m += 1
    return m


def floor(n: int, gamma: float, i: int, k: int) -> int:
    """⌊N·γ^(−i/k)⌋."""
    m = ceiling(n, gamma, i, k)
    return m if _compare(m, n, gamma, i, k) == 0 else m - 1


def _compare(m: int, n: int, gamma: float, i: int, k: int) -> int:
    """The sign of m − N·γ^(−i/k), exactly; `i` may be negative."""
    typed = Fraction(repr(float(gamma)))  # 0.02 is a fiftieth, not the binary number next to it
    up, down = (typed.numerator, typed.denominator) if i >= 0 else (typed.denominator, typed.numerator)
    left: int = m**k * up ** abs(i)
    right: int = n**k * down ** abs(i)
    return (left > right) - (left < right)


Indices = NDArray[np.int64]

# One stream of random numbers per use, so that none is a copy of another.
ROWS, CLASSES, COINS, HELD_OUT, TEST, VALIDATION = range(6)


class Selection(NamedTuple):
    """Rows that keep their label, and rows of the unlabelled stream (None: every row)."""

    labelled: Indices
    unlabelled: Indices | None


def first(labels: Indices, counts: Indices, seed: int, stream: int = ROWS) -> Indices:
    """The first counts[i] rows of each class in the random order, sorted."""
    order = shuffle.order(seed, stream, len(labels))
    shuffled = labels[order]
    rows = []
    for c, count in enumerate(counts):
        members = order[shuffled == c]
        if count > len(members):
            raise ProtocolError(f"class {c} has {len(members)} rows but {count} are asked for; lower the numbers")
        rows.append(members[:count])
    return np.sort(np.concatenate(rows))


def from_every_row(labelled: Indices, labels: Indices, labelled_in_stream: bool) -> Selection:
    """The stream is every row, or every row that has not kept its label."""
    if labelled_in_stream:
        return Selection(labelled, None)
    return Selection(labelled, np.setdiff1d(np.arange(len(labels)), labelled))


def beside(labels: Indices, counts: Indices, others: Indices, seed: int, labelled_in_stream: bool) -> Selection:
    """counts[i] labelled rows of class i and, beside them, others[i] more in the stream."""
    labelled = first(labels, counts, seed)
    both = first(labels, counts + others, seed)
    return Selection(labelled, both if labelled_in_stream else np.setdiff1d(both, labelled))


def sizes(labels: Indices, num_classes: int) -> Indices:
    """Rows of each class; every row must have a label, or nobody can say what the stream looks like."""
    unknown = int((labels < 0).sum())
    if unknown:
        raise ProtocolError(
            "shaping the unlabelled stream by class needs the true label of every row, "
            f"but {unknown} rows have none; use gamma_unlabelled = 1"
        )
    return np.bincount(labels, minlength=num_classes)


def held_out(labels: Indices, num_classes: int, k: int) -> Indices:
    """k class-balanced rows to make decisions on. The same for every seed, so that decisions compare like with like."""
    if k < 0 or k % num_classes:
        raise ProtocolError(f"held_out takes as many rows of each class: expected a multiple of {num_classes}, got {k}")
    return first(labels, np.full(num_classes, k // num_classes), seed=0, stream=HELD_OUT)
