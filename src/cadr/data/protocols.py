"""Who keeps a label: one pure function of (labels, number of classes, seed, parameters) per protocol.

Rows whose label is unknown (−1) can be in the unlabelled stream but never among the labelled. Within a class one random
order of the rows decides everything: the first N_i keep their label. A function's parameters are the fields of the
dataclass of the same name, which is what the command line makes its flags from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cadr.data import selection, shuffle
from cadr.data.parameters import Protocol
from cadr.data.selection import CLASSES, COINS, ROWS, Indices, Selection, beside, first, from_every_row, sizes
from cadr.errors import ProtocolError
from cadr.utils.options import option

__all__ = ["PROTOCOLS", "Protocol", "Selection"]

LARGEST_PRG_GAMMA = 99_999


def mcar(labels: Indices, num_classes: int, seed: int, n: int, labelled_in_stream: bool = True) -> Selection:
    """Missing completely at random, class-balanced: n/C labels per class (what is left over goes to random classes)."""
    counts = np.full(num_classes, n // num_classes)
    counts[shuffle.order(seed, CLASSES, num_classes)[: n % num_classes]] += 1
    return from_every_row(first(labels, counts, seed), labels, labelled_in_stream)


def uniform(labels: Indices, num_classes: int, seed: int, n: int, labelled_in_stream: bool = True) -> Selection:
    """A plain random subset of n rows, whatever their classes."""
    known = np.flatnonzero(labels >= 0)
    if n > len(known):
        raise ProtocolError(f"uniform asks for {n} labels but only {len(known)} rows have one; lower n")
    chosen = np.sort(known[shuffle.order(seed, ROWS, len(known))[:n]])
    return from_every_row(chosen, labels, labelled_in_stream)


def longtail(
    labels: Indices,
    num_classes: int,
    seed: int,
    n_max: int,
    gamma: float,
    gamma_unlabelled: float = 1.0,
    labelled_in_stream: bool = True,
) -> Selection:
    """The paper's protocol: N_i = ⌈N_max·γ^(−i/(C−1))⌉ labels for class i = 0 … C−1.

    The stream is every row when γ_u = 1. Otherwise class i has ⌈M·γ_u^(−i/(C−1))⌉ rows in it, M being the size of the
    largest class; γ_u < 1 makes the last class the largest. With `labelled_in_stream` the labelled rows are always
    among them, even where that is more than the profile asks for.
    """
    counts = selection.ceilings(n_max, gamma, num_classes)
    labelled = first(labels, counts, seed)
    if gamma_unlabelled == 1.0:
        return from_every_row(labelled, labels, labelled_in_stream)
    available = sizes(labels, num_classes)
    wanted = selection.ceilings(int(available.max()), gamma_unlabelled, num_classes)
    stream = first(labels, np.minimum(np.maximum(wanted, counts), available), seed)
    return Selection(labelled, stream if labelled_in_stream else np.setdiff1d(stream, labelled))


def random_rates(labels: Indices, num_classes: int, seed: int, n: int, labelled_in_stream: bool = True) -> Selection:
    """The paper's "random subset": class rates drawn U(0, 1), n labels in proportion to them.

    Shares are rounded by the largest remainder, so that they sum to n; a class that runs out of rows passes its excess
    on to the others.
    """
    available = np.bincount(labels[labels >= 0], minlength=num_classes)
    rates = shuffle.uniform(seed, CLASSES, num_classes)
    if n > available.sum():
        raise ProtocolError(f"random_rates asks for {n} labels but only {available.sum()} rows have one; lower n")
    counts = np.zeros(num_classes, dtype=np.int64)
    while (left := n - int(counts.sum())) > 0:
        open_rates = np.where(counts < available, rates, 0.0)
        shares = open_rates * (left / open_rates.sum())
        extra = np.floor(shares).astype(np.int64)
        largest = np.argsort(-(shares - extra), kind="stable")[: left - int(extra.sum())]
        extra[largest] += 1
        counts = np.minimum(counts + extra, available)
    return from_every_row(first(labels, counts, seed), labels, labelled_in_stream)


def prg(
    labels: Indices,
    num_classes: int,
    seed: int,
    n: int,
    n_max: int,
    gamma_unlabelled: float = 1.0,
    labelled_in_stream: bool = True,
) -> Selection:
    """PRG's protocol: n labels in all, N_0 = n_max of them in the head class (`prg_counts`).

    With γ_u > 1 the other rows of the stream are long-tailed the other way round, ⌈M·γ_u^(−(C−1−i)/(C−1))⌉ of class i,
    M being the size of the largest class (no more than there are).
    """
    counts = np.array(prg_counts(n, n_max, num_classes))
    if gamma_unlabelled == 1.0:
        return from_every_row(first(labels, counts, seed), labels, labelled_in_stream)
    available = sizes(labels, num_classes)
    others = selection.ceilings(int(available.max()), gamma_unlabelled, num_classes)[::-1]
    return beside(labels, counts, np.clip(available - counts, 0, others), seed, labelled_in_stream)


def prg_counts(n: int, n_max: int, num_classes: int) -> list[int]:
    """N_i = max(1, ⌊N_0·γ^(−i/C)⌋) with the whole γ below 100,000 (as released) whose sum comes closest to n; then
    classes 1 … C−3 change by one in turn until the sum is n."""
    least, most = n_max + num_classes - 1, n_max * num_classes
    if num_classes < 4 or not least <= n <= most:
        raise ProtocolError(
            f"prg needs at least 4 classes and, for {num_classes} classes with a head of {n_max}, "
            f"between {least} and {most} labels in all, got n = {n}"
        )

    def counts(gamma: int) -> list[int]:
        return [max(1, selection.floor(n_max, gamma, i, num_classes)) for i in range(num_classes)]

    low, high = 1, LARGEST_PRG_GAMMA
    while low < high:  # the smallest γ whose sum is not above n: the sum falls as γ grows
        middle = (low + high) // 2
        low, high = (middle + 1, high) if sum(counts(middle)) > n else (low, middle)
    below, above = counts(low), counts(max(1, low - 1))
    result = below if abs(n - sum(below)) < sum(above) - n else above
    turn = range(1, num_classes - 2)
    while (excess := sum(result) - n) != 0:
        before = list(result)
        for i in turn[: abs(excess)]:
            result[i] = max(1, result[i] - (1 if excess > 0 else -1))
        if result == before:
            raise ProtocolError(
                f"prg cannot reach {n} labels with a head of {n_max} in {num_classes} classes; change n"
            )
    return result


def darp(
    labels: Indices,
    num_classes: int,
    seed: int,
    n_max: int,
    gamma: float,
    m_max: int,
    gamma_unlabelled: float,
    labelled_in_stream: bool = True,
) -> Selection:
    """DARP's protocol: ⌊N_1·γ^(−i/(C−1))⌋ labelled, ⌊M_1·γ_u^(−i/(C−1))⌋ more in the stream, of class i."""
    sizes(labels, num_classes)
    counts = selection.floors(n_max, gamma, num_classes)
    return beside(labels, counts, selection.floors(m_max, gamma_unlabelled, num_classes), seed, labelled_in_stream)


def darp_reversed(
    labels: Indices,
    num_classes: int,
    seed: int,
    n_max: int,
    gamma: float,
    m_max: int,
    gamma_unlabelled: float,
    labelled_in_stream: bool = True,
) -> Selection:
    """DARP's protocol with the order of the unlabelled classes reversed: the rarest labelled class is the commonest."""
    sizes(labels, num_classes)
    counts = selection.floors(n_max, gamma, num_classes)
    others = selection.floors(m_max, gamma_unlabelled, num_classes)[::-1]
    return beside(labels, counts, others, seed, labelled_in_stream)


def propensity(
    labels: Indices,
    num_classes: int,
    seed: int,
    probabilities: tuple[float, ...],
    labelled_in_stream: bool = True,
) -> Selection:
    """Each row of class i keeps its label with probability `probabilities[i]`, independently of the others."""
    if len(probabilities) != num_classes:
        raise ProtocolError(
            f"propensity needs one probability for each of the {num_classes} classes, got {len(probabilities)}"
        )
    known = np.flatnonzero(labels >= 0)
    coins = shuffle.uniform(seed, COINS, len(labels))[known]
    kept = known[coins < np.asarray(probabilities, dtype=np.float64)[labels[known]]]
    return from_every_row(kept, labels, labelled_in_stream)


_IN_STREAM = "labelled rows also stay in the unlabelled stream"


@dataclass(frozen=True)
class Mcar(Protocol):
    """Class-balanced labels, missing completely at random."""

    name: ClassVar[str] = "mcar"
    function = staticmethod(mcar)
    n: int = option(40, "labels in all")
    labelled_in_stream: bool = option(True, _IN_STREAM)


@dataclass(frozen=True)
class Uniform(Protocol):
    """A plain random subset."""

    name: ClassVar[str] = "uniform"
    function = staticmethod(uniform)
    n: int = option(40, "labels in all")
    labelled_in_stream: bool = option(True, _IN_STREAM)


@dataclass(frozen=True)
class Longtail(Protocol):
    """The paper's MNAR protocol: long-tailed labels over balanced data."""

    name: ClassVar[str] = "longtail"
    function = staticmethod(longtail)
    least_gamma_unlabelled: ClassVar[float] = 1e-6
    n_max: int = option(50, "labels of the first class (the paper: as many as gamma)")
    gamma: float = option(50.0, "labels of the first class for each of the last")
    gamma_unlabelled: float = option(1.0, "the same for the unlabelled stream; below 1 the last class is the largest")
    labelled_in_stream: bool = option(True, _IN_STREAM)


@dataclass(frozen=True)
class RandomRates(Protocol):
    """The paper's "random subset": every class with a labelling rate of its own."""

    name: ClassVar[str] = "random_rates"
    function = staticmethod(random_rates)
    n: int = option(5000, "labels in all")
    labelled_in_stream: bool = option(True, _IN_STREAM)


@dataclass(frozen=True)
class Prg(Protocol):
    """PRG's protocol: the number of labels and the head class's share of them are given."""

    name: ClassVar[str] = "prg"
    function = staticmethod(prg)
    n: int = option(40, "labels in all")
    n_max: int = option(10, "labels of the first class")
    gamma_unlabelled: float = option(1.0, "above 1 the unlabelled stream is long-tailed the other way round")
    labelled_in_stream: bool = option(True, _IN_STREAM)


@dataclass(frozen=True)
class Darp(Protocol):
    """DARP's protocol: labelled and unlabelled rows are both long-tailed."""

    name: ClassVar[str] = "darp"
    function = staticmethod(darp)
    n_max: int = option(1500, "labels of the first class (CIFAR-100: 150)")
    gamma: float = option(100.0, "labels of the first class for each of the last")
    m_max: int = option(3000, "unlabelled rows of the largest class (CIFAR-100: 300)")
    gamma_unlabelled: float = option(1.0, "unlabelled rows of the largest class for each of the smallest")
    labelled_in_stream: bool = option(True, _IN_STREAM)


@dataclass(frozen=True)
class DarpReversed(Darp):
    """DARP's protocol with the order of the unlabelled classes reversed."""

    name: ClassVar[str] = "darp_reversed"
    function = staticmethod(darp_reversed)
    gamma_unlabelled: float = option(100.0, "unlabelled rows of the largest class for each of the smallest")


@dataclass(frozen=True)
class Propensity(Protocol):
    """Each class keeps its labels with a probability of its own."""

    name: ClassVar[str] = "propensity"
    function = staticmethod(propensity)
    probabilities: tuple[float, ...] = option((), "one probability of keeping a label per class, by class index")
    labelled_in_stream: bool = option(True, _IN_STREAM)


PROTOCOLS: dict[str, type[Protocol]] = {
    kind.name: kind for kind in (Mcar, Uniform, Longtail, RandomRates, Prg, Darp, DarpReversed, Propensity)
}
