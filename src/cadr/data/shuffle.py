"""Random orders that are the same on every platform and with every NumPy version, and the rows that a step sees.

NumPy may change how its generators shuffle; the bits here are SplitMix64's (Steele, Lea and Flood, 2014), written out,
so that a split made today is the split made in ten years. Batches are a pure function of (seed, step), so that nothing
has to be saved to continue. Rows come in shuffled epochs, one after another without a gap: a batch may end one epoch
and begin the next.

Rows that keep a label are chosen class by class: one random order of the rows decides, the first so many of each class
are taken. How many follows long-tailed profiles N·γ^(−i/k), rounded exactly. In floating point 50·50^(−1) may come out
as 1.0000000000000002, whose ceiling is 2. Whether m ≥ N·γ^(−i/k) is decided in whole numbers instead
(m^k·γ^i ≥ N^k), so that every platform agrees.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.errors import ProtocolError

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def bits(seed: int, stream: int, n: int) -> NDArray[np.uint64]:
    """n random 64-bit words; another `stream` of the same seed is independent of this one."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 63:
        raise ProtocolError(f"a seed is a whole number from 0 to 2^63 − 1, got {seed!r}")
    start = _mix(np.array([int(seed) ^ ((stream + 1) * 0xD1342543DE82EF95 & _MASK)], dtype=np.uint64))
    return _mix(start + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GOLDEN))


def uniform(seed: int, stream: int, n: int) -> NDArray[np.float64]:
    """n numbers in [0, 1) with 53 random bits each."""
    return np.asarray((bits(seed, stream, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def order(seed: int, stream: int, n: int) -> NDArray[np.int64]:
    """A random order of 0 … n − 1."""
    return np.argsort(bits(seed, stream, n), kind="stable").astype(np.int64)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


LARGE = 1 << 20  # rows above which an order is not written out, as that takes memory and time that grow with them
_ROUNDS = 4
LABELLED, UNLABELLED = 1, 2  # the two streams' orders have nothing to do with each other


def indices(seed: int, stream: int, n: int, batch: int, start: int, stop: int) -> NDArray[np.int64]:
    """Positions in 0 … n − 1 for the steps start … stop − 1, (stop − start, batch)."""
    if n > LARGE:
        numbers = np.arange(start * batch, stop * batch, dtype=np.int64)
        return permuted(seed, stream, n, numbers).reshape(stop - start, batch)
    first, end = start * batch // n, -(-stop * batch // n)
    # Shifted clear of the small stream numbers from which splits are drawn with the same seed.
    epochs = [_epoch(seed, stream, n, epoch) for epoch in range(first, end)]
    offset = start * batch - first * n
    return np.concatenate(epochs)[offset : offset + (stop - start) * batch].reshape(stop - start, batch)


@lru_cache(maxsize=4)
def _epoch(seed: int, stream: int, n: int, epoch: int) -> NDArray[np.int64]:
    """The order of one epoch, kept while its steps come up."""
    found = order(seed, (epoch + 1 << 32) + stream, n)
    found.flags.writeable = False
    return found


def permuted(seed: int, stream: int, n: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where shuffled epochs of 0 … n − 1, one after another, have these places: each found by itself, whatever n is.

    An epoch's order is a Feistel network of four rounds on the next even power of two (Luby and Rackoff, 1988); what it
    takes beyond n is put through again until it lies below (Black and Rogaway, 2002), less than four times on average.
    """
    half = max(1, -(-(n - 1).bit_length() // 2))
    low = np.uint64((1 << half) - 1)
    epochs, places = numbers // n, (numbers % n).astype(np.uint64)
    streams = np.unique(epochs)
    keys = np.stack([bits(seed, (int(e) + 1 << 32) + stream, _ROUNDS) for e in streams])[
        np.searchsorted(streams, epochs)
    ]
    out = np.arange(len(places))  # those that still have to be put through
    while len(out):
        left, right = places[out] >> np.uint64(half), places[out] & low
        for turn in range(_ROUNDS):
            left, right = right, left ^ (_mix(right + keys[out, turn]) & low)
        places[out] = left << np.uint64(half) | right
        out = out[places[out] >= n]
    return places.astype(np.int64)


def balanced_indices(
    seed: int, stream: int, labels: NDArray[np.int64], batch: int, start: int, stop: int
) -> NDArray[np.int64]:
    """The same, with every class as often as any other: each C draws in a row hold each class once.

    The e-th round draws from a class the e-th row of that class's own shuffled epochs.
    """
    classes = np.unique(labels)
    rows = [np.flatnonzero(labels == c) for c in classes]
    first, end = start * batch // len(classes), -(-stop * batch // len(classes))
    rounds = np.arange(first, end)
    order_of_classes = np.stack([order(seed, (int(e) + 1 << 32) + stream, len(classes)) for e in rounds])
    drawn = np.empty_like(order_of_classes)
    for c, members in enumerate(rows):
        epochs = rounds // len(members)
        # Streams of one class are shifted clear of those of the others, and of the order of the classes.
        shuffled = {
            e: members[order(seed, (int(e) + 1 << 32) + (c + 1 << 8) + stream, len(members))] for e in set(epochs)
        }
        of_class = np.array([shuffled[e][i] for e, i in zip(epochs, rounds % len(members), strict=True)])
        drawn[order_of_classes == c] = of_class
    offset = start * batch - first * len(classes)
    return drawn.reshape(-1)[offset : offset + (stop - start) * batch].reshape(stop - start, batch)


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
    rows_in_turn = order(seed, stream, len(labels))
    shuffled = labels[rows_in_turn]
    rows = []
    for c, count in enumerate(counts):
        members = rows_in_turn[shuffled == c]
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
