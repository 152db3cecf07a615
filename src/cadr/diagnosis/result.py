"""The result of a diagnosis: figures per class, a verdict in two sentences, warnings."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from itertools import permutations
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

Flag = Literal["ok", "few", "not estimable"]

ALPHA = 0.05
ESTIMABLE = 2  # labels; the interval of a class with one label covers the truth less than half the time
ENOUGH = 10
TRIM = 10.0  # times the mean weight, above which a weight is cut
WEAK = 0.35  # of the way from guessing to certainty: below this the classes are hardly told apart
_TAIL = 0.05  # outside of a class's own interval on either side
CAVEAT = "A class that nobody labelled can never be ruled out: make sure that the classes listed are all there are."


def flag_of(labels: int) -> Flag:
    return "ok" if labels >= ENOUGH else "few" if labels >= ESTIMABLE else "not estimable"


@dataclass(frozen=True)
class ClassDiagnosis:
    """One class. Shares and propensities are between 0 and 1, intervals 90 %; None where nothing can be said."""

    name: str
    labels: int
    labelled_share: float  # of the labelled rows
    flag: Flag
    share: float | None = None  # of the unlabelled rows, estimated
    share_interval: tuple[float, float] | None = None
    propensity: float | None = None  # P(labelled | class)
    propensity_interval: tuple[float, float] | None = None
    prior: float | None = None  # share of all rows
    recall: float | None = None  # of the cross-fitted classifier among this class's labelled rows


class Pair(NamedTuple):
    """Two classes of which one is labelled less often than the other."""

    least: ClassDiagnosis
    most: ClassDiagnosis
    at_least: float  # times, by the intervals

    @property
    def ratio(self) -> float:
        """Times, by the estimates."""
        return _propensity(self.most) / _propensity(self.least)


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """How biased the labels of a data set are. `verdict` first; `str()` shows everything."""

    name: str
    labelled: int
    unlabelled: int
    classes: tuple[ClassDiagnosis, ...]
    statistic: float  # Hotelling's T² of labelled against unlabelled rows
    p_value: float  # of "labels are missing at random"
    balanced_accuracy: float  # of the cross-fitted classifier: the mean of the recalls, where they are known
    domain_auc: float  # labelled against unlabelled rows after reweighting the classes; a half is best
    domain_limit: float  # above which missingness does not look like a matter of class alone
    far_share: float  # of the unlabelled rows: far from every label, where a tenth is expected
    far_limit: float  # above which there may be a class that nobody labelled
    seed: int
    bent: bool = False  # the classifier also saw how near rows are to centres, as classes have several modes

    @property
    def classifier(self) -> str:
        """That the figures rest on, in words."""
        return "a classifier of clusters" if self.bent else "a linear classifier"

    @property
    def missing_at_random(self) -> bool:
        """Whether the test leaves that possible; it does not prove it."""
        return self.p_value >= ALPHA

    @property
    def effective_labels(self) -> float:
        """How many labels drawn at random would say as much: (Σw)²/Σw² with w = 1/propensity.

        Classes without an estimate are left out, which have the largest weights as a rule.
        """
        known = [(c.labels, c.propensity) for c in self.classes if c.propensity]
        return sum(n / phi for n, phi in known) ** 2 / sum(n / phi**2 for n, phi in known)

    @property
    def worth(self) -> str:
        """The effective number of labels in words; a label that is left out of it is worth one at most."""
        unknown = sum(c.labels for c in self.classes if c.propensity is None)
        return f"{'at most ' * bool(unknown)}about {self.effective_labels + unknown:,.0f}"

    @property
    def checkable(self) -> bool:
        """Whether several classes have a label to train on and another to check on."""
        return self._checked > 1

    @property
    def _checked(self) -> int:
        return sum(c.recall is not None for c in self.classes)

    @property
    def separability(self) -> float:
        """Balanced accuracy on a scale from guessing, 0, to certainty, 1; 0 where it could not be checked."""
        if not self.checkable:
            return 0.0
        guess = 1.0 / self._checked
        return (self.balanced_accuracy - guess) / (1.0 - guess)

    @property
    def weak(self) -> bool:
        """Whether a linear classifier hardly tells the classes apart, so that shares and propensities are no good."""
        return self.checkable and self.separability < WEAK

    @property
    def share_intervals(self) -> list[tuple[float, float] | None]:
        """Of the unlabelled rows, by class, at once; None where nothing can be said. They may pass 0 or 1.

        They are wider than each class's own, so that all hold as often as one: with ten classes one in ten misses the
        truth.
        """
        wider = NormalDist().inv_cdf(1 - _TAIL / len(self.classes)) / NormalDist().inv_cdf(1 - _TAIL)
        return [
            None
            if c.share is None or c.share_interval is None
            else (c.share + wider * (c.share_interval[0] - c.share), c.share + wider * (c.share_interval[1] - c.share))
            for c in self.classes
        ]

    @property
    def extremes(self) -> tuple[ClassDiagnosis, ClassDiagnosis] | None:
        """The classes labelled least and most often by their estimates, of those that have one."""
        known = [c for c in self.classes if c.propensity is not None]
        if len(known) < 2:
            return None
        return min(known, key=_propensity), max(known, key=_propensity)

    @property
    def propensity_ratio(self) -> float | None:
        """The largest estimate of a propensity over the smallest."""
        return None if self.extremes is None else Pair(*self.extremes, 1.0).ratio

    @property
    def apart(self) -> Pair | None:
        """The classes labelled least and most often, as far as their intervals say so; those of the estimates if these
        are apart, otherwise the pair that is farthest apart."""
        ranges = self._propensity_ranges()
        pairs = {
            (one.name, other.name): Pair(one, other, ranges[other.name][0] / ranges[one.name][1])
            for one, other in permutations([c for c in self.classes if c.name in ranges], 2)
        }
        found = [pair for pair in pairs.values() if pair.at_least > 1]
        if not found or self.extremes is None:
            return None
        least, most = self.extremes
        named = pairs.get((least.name, most.name))
        return named if named in found else max(found, key=lambda pair: pair.at_least)

    @property
    def allowed_ratio(self) -> float:
        """How many times as often as another the intervals allow a class to be labelled."""
        ranges = self._propensity_ranges().values()
        return max((one[1] / other[0] for one, other in permutations(ranges, 2)), default=1.0)

    def _propensity_ranges(self) -> dict[str, tuple[float, float]]:
        """By class, from shares that hold at once."""
        found = {}
        for c, interval in zip(self.classes, self.share_intervals, strict=True):
            if interval is not None and c.labels:
                low, high = (c.labels / (c.labels + self.unlabelled * min(max(q, 0.0), 1.0)) for q in interval)
                found[c.name] = (high, low)
        return found

    @property
    def verdict(self) -> str:
        """Two sentences: whether labels are missing at random, and what that means."""
        from cadr.diagnosis.text import finding, meaning

        return f"{finding(self)} {meaning(self)}"

    @property
    def other_than_class(self) -> str:
        """That something else than the class decides who is labelled, if it seems so."""
        if self.domain_auc <= self.domain_limit:
            return ""
        return (
            "Missingness does not look like a matter of class alone: with classes reweighted, labelled rows still "
            f"differ from unlabelled ones (AUC {self.domain_auc:.3f}, limit {self.domain_limit:.3f})."
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before relying on the figures; a sentence or two each."""
        from cadr.diagnosis.text import warnings

        return warnings(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        own = dataclasses.asdict(self)
        derived = ("verdict", "warnings", "missing_at_random", "effective_labels", "separability", "propensity_ratio")
        return {**own, **{name: getattr(self, name) for name in derived}, "caveat": CAVEAT}

    def to_json(self) -> str:
        """In ASCII, so that no encoding of a terminal or file can make it something that is no JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def __str__(self) -> str:
        from cadr.diagnosis.text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"Diagnosis({self.name}: {self.verdict})"

    def _repr_html_(self) -> str:
        from cadr.diagnosis.text import as_html

        return as_html(self)


def _propensity(c: ClassDiagnosis) -> float:
    assert c.propensity is not None  # only such are asked
    return c.propensity
