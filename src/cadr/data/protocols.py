"""Who keeps a label: a dataclass for each protocol, whose fields are its parameters and flags of the command line.

What a protocol draws is a pure function of (labels, number of classes, seed, parameters). Rows whose label is unknown
(−1) can be in the unlabelled stream but never among the labelled. Within a class one random order of the rows decides
everything: the first N_i keep their label. Parameters are checked, and have the types that a split file is hashed with.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cadr.data import shuffle
from cadr.data.shuffle import (
    CLASSES,
    COINS,
    ROWS,
    Indices,
    Selection,
    beside,
    ceilings,
    first,
    floor,
    floors,
    from_every_row,
    sizes,
)
from cadr.errors import ProtocolError
from cadr.utils.options import option

__all__ = ["PROTOCOLS", "Protocol", "Selection"]

LARGEST_PRG_GAMMA = 99_999
_IN_STREAM = "labelled rows also stay in the unlabelled stream"


@dataclass(frozen=True)
class Protocol:
    """A protocol with its parameters."""

    name: ClassVar[str]
    least_gamma_unlabelled: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, self._checked(field.name, getattr(self, field.name)))

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        """What the protocol says of the true labels."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def select(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        """Carry the protocol out on the true labels; some row must keep its label."""
        chosen = self.draw(labels, num_classes, seed)
        if len(chosen.labelled) == 0:
            raise ProtocolError(f"{self.name} with {self.parameters()} leaves no row with a label; raise its numbers")
        return chosen

    def _checked(self, name: str, value: Any) -> Any:
        if name == "labelled_in_stream":
            if not isinstance(value, bool):
                raise ProtocolError(f"{self.name}: {name} is true or false, got {value!r}")
            return value
        if name == "probabilities":
            return tuple(self._number(name, p, 0.0, 1.0) for p in value)
        if name == "gamma_unlabelled":
            return self._number(name, value, self.least_gamma_unlabelled, 1e6)
        if name == "gamma":
            return self._number(name, value, 1.0, 1e6)
        whole = self._number(name, value, 1, 1e9)
        if whole != int(whole):
            raise ProtocolError(f"{self.name}: {name} is a whole number, got {value!r}")
        return int(whole)

    def _number(self, name: str, value: Any, low: float, high: float) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ProtocolError(f"{self.name}: {name} is a number, got {value!r}")
        if not low <= value <= high:
            raise ProtocolError(f"{self.name}: {name} lies between {low:g} and {high:g}, got {value!r}")
        return float(value)


@dataclass(frozen=True)
class Mcar(Protocol):
    """Class-balanced labels, missing completely at random.

    n/C labels per class; what is left over goes to random classes.
    """

    name: ClassVar[str] = "mcar"
    n: int = option(40, "labels in all")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        counts = np.full(num_classes, self.n // num_classes)
        counts[shuffle.order(seed, CLASSES, num_classes)[: self.n % num_classes]] += 1
        return from_every_row(first(labels, counts, seed), labels, self.labelled_in_stream)


@dataclass(frozen=True)
class Uniform(Protocol):
    """A plain random subset, whatever the classes."""

    name: ClassVar[str] = "uniform"
    n: int = option(40, "labels in all")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        known = np.flatnonzero(labels >= 0)
        if self.n > len(known):
            raise ProtocolError(f"uniform asks for {self.n} labels but only {len(known)} rows have one; lower n")
        chosen = np.sort(known[shuffle.order(seed, ROWS, len(known))[: self.n]])
        return from_every_row(chosen, labels, self.labelled_in_stream)


@dataclass(frozen=True)
class Longtail(Protocol):
    """The paper's MNAR protocol: long-tailed labels over balanced data.

    N_i = ⌈N_max·γ^(−i/(C−1))⌉ labels for class i = 0 … C−1. The stream is every row when γ_u = 1. Otherwise class i has
    ⌈M·γ_u^(−i/(C−1))⌉ rows in it, M being the size of the largest class; γ_u < 1 makes the last class the largest. With
    `labelled_in_stream` the labelled rows are always among them, even where that is more than the profile asks for.
    """

    name: ClassVar[str] = "longtail"
    least_gamma_unlabelled: ClassVar[float] = 1e-6
    n_max: int = option(50, "labels of the first class (the paper: as many as gamma)")
    gamma: float = option(50.0, "labels of the first class for each of the last")
    gamma_unlabelled: float = option(1.0, "the same for the unlabelled stream; below 1 the last class is the largest")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        counts = ceilings(self.n_max, self.gamma, num_classes)
        labelled = first(labels, counts, seed)
        if self.gamma_unlabelled == 1.0:
            return from_every_row(labelled, labels, self.labelled_in_stream)
        available = sizes(labels, num_classes)
        wanted = ceilings(int(available.max()), self.gamma_unlabelled, num_classes)
        stream = first(labels, np.minimum(np.maximum(wanted, counts), available), seed)
        return Selection(labelled, stream if self.labelled_in_stream else np.setdiff1d(stream, labelled))


@dataclass(frozen=True)
class RandomRates(Protocol):
    """The paper's "random subset": every class with a labelling rate of its own.

    Rates are drawn U(0, 1), and n labels in proportion to them. Shares are rounded by the largest remainder, so that
    they sum to n; a class that runs out of rows passes its excess on to the others.
    """

    name: ClassVar[str] = "random_rates"
    n: int = option(5000, "labels in all")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        available = np.bincount(labels[labels >= 0], minlength=num_classes)
        rates = shuffle.uniform(seed, CLASSES, num_classes)
        if self.n > available.sum():
            raise ProtocolError(
                f"random_rates asks for {self.n} labels but only {available.sum()} rows have one; lower n"
            )
        counts = np.zeros(num_classes, dtype=np.int64)
        while (left := self.n - int(counts.sum())) > 0:
            open_rates = np.where(counts < available, rates, 0.0)
            shares = open_rates * (left / open_rates.sum())
            extra = np.floor(shares).astype(np.int64)
            largest = np.argsort(-(shares - extra), kind="stable")[: left - int(extra.sum())]
            extra[largest] += 1
            counts = np.minimum(counts + extra, available)
        return from_every_row(first(labels, counts, seed), labels, self.labelled_in_stream)


@dataclass(frozen=True)
class Prg(Protocol):
    """PRG's protocol: the number of labels and the head class's share of them are given.

    n labels in all, N_0 = n_max of them in the head class (`prg_counts`). With γ_u > 1 the other rows of the stream are
    long-tailed the other way round, ⌈M·γ_u^(−(C−1−i)/(C−1))⌉ of class i, M being the size of the largest class (no more
    than there are).
    """

    name: ClassVar[str] = "prg"
    n: int = option(40, "labels in all")
    n_max: int = option(10, "labels of the first class")
    gamma_unlabelled: float = option(1.0, "above 1 the unlabelled stream is long-tailed the other way round")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        counts = np.array(prg_counts(self.n, self.n_max, num_classes))
        if self.gamma_unlabelled == 1.0:
            return from_every_row(first(labels, counts, seed), labels, self.labelled_in_stream)
        available = sizes(labels, num_classes)
        others = ceilings(int(available.max()), self.gamma_unlabelled, num_classes)[::-1]
        return beside(labels, counts, np.clip(available - counts, 0, others), seed, self.labelled_in_stream)


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
        return [max(1, floor(n_max, gamma, i, num_classes)) for i in range(num_classes)]

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


@dataclass(frozen=True)
class Darp(Protocol):
    """DARP's protocol: labelled and unlabelled rows are both long-tailed.

    ⌊N_1·γ^(−i/(C−1))⌋ labelled, ⌊M_1·γ_u^(−i/(C−1))⌋ more in the stream, of class i.
    """

    name: ClassVar[str] = "darp"
    reverse: ClassVar[bool] = False
    n_max: int = option(1500, "labels of the first class (CIFAR-100: 150)")
    gamma: float = option(100.0, "labels of the first class for each of the last")
    m_max: int = option(3000, "unlabelled rows of the largest class (CIFAR-100: 300)")
    gamma_unlabelled: float = option(1.0, "unlabelled rows of the largest class for each of the smallest")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        sizes(labels, num_classes)
        others = floors(self.m_max, self.gamma_unlabelled, num_classes)
        if self.reverse:
            others = others[::-1]
        return beside(labels, floors(self.n_max, self.gamma, num_classes), others, seed, self.labelled_in_stream)


@dataclass(frozen=True)
class DarpReversed(Darp):
    """DARP's protocol with the order of the unlabelled classes reversed: the rarest labelled class is the commonest."""

    name: ClassVar[str] = "darp_reversed"
    reverse: ClassVar[bool] = True
    gamma_unlabelled: float = option(100.0, "unlabelled rows of the largest class for each of the smallest")


@dataclass(frozen=True)
class Propensity(Protocol):
    """Each class keeps its labels with a probability of its own, independently of each other."""

    name: ClassVar[str] = "propensity"
    probabilities: tuple[float, ...] = option((), "one probability of keeping a label per class, by class index")
    labelled_in_stream: bool = option(True, _IN_STREAM)

    def draw(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        if len(self.probabilities) != num_classes:
            raise ProtocolError(
                f"propensity needs one probability for each of the {num_classes} classes, got {len(self.probabilities)}"
            )
        known = np.flatnonzero(labels >= 0)
        coins = shuffle.uniform(seed, COINS, len(labels))[known]
        kept = known[coins < np.asarray(self.probabilities, dtype=np.float64)[labels[known]]]
        return from_every_row(kept, labels, self.labelled_in_stream)


PROTOCOLS: dict[str, type[Protocol]] = {
    kind.name: kind for kind in (Mcar, Uniform, Longtail, RandomRates, Prg, Darp, DarpReversed, Propensity)
}
