"""The result of a diagnosis: figures per class, a verdict in two sentences, warnings."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

Flag = Literal["ok", "few", "not estimable"]

ALPHA = 0.05
ESTIMABLE = 2  # labels; the interval of a class with one label covers the truth less than half the time
ENOUGH = 10
WEAK = 0.35  # of the way from guessing to certainty: below this the classes are hardly told apart
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


@dataclass(frozen=True)
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
    def extremes(self) -> tuple[ClassDiagnosis, ClassDiagnosis] | None:
        """The classes labelled least and most often, among those that can be estimated."""
        known = [c for c in self.classes if c.propensity is not None]
        if len(known) < 2:
            return None
        return min(known, key=_propensity), max(known, key=_propensity)

    @property
    def propensity_ratio(self) -> float | None:
        """The largest propensity over the smallest."""
        if self.extremes is None:
            return None
        least, most = self.extremes
        return _propensity(most) / _propensity(least)

    @property
    def verdict(self) -> str:
        """Two sentences: whether labels are missing at random, and what that means."""
        return f"{self._finding()} {self._meaning()}"

    def _finding(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        if self.missing_at_random:
            return (
                f"There is no sign that labels are missing other than at random ({p}), "
                f"which {self.labelled:,} labels cannot prove either."
            )
        if self.extremes is None or self.propensity_ratio is None:
            return f"Labels are NOT missing at random ({p})."
        (least, most), ratio = self.extremes, self.propensity_ratio
        times = f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.1f}"
        return (
            f"Labels are NOT missing at random ({p}): class {least.name} is labelled about {times} times less often "
            f"than class {most.name}, if the class alone decides."
        )

    def _meaning(self) -> str:
        if not self.checkable:
            return "But only one class has more than one label, so nothing of this could be checked: label more rows."
        if self.weak:
            return "But the classes can hardly be told apart from these features: do not trust the estimates below."
        if self.domain_auc > self.domain_limit:
            return "But the class alone does not explain which rows are labelled: take the estimates below as a hint."
        worth = f"The {self.labelled:,} labels are worth {self.worth} drawn at random"
        if self.missing_at_random:
            return f"{worth}, and methods that assume labels missing at random may be used."
        return f"{worth}; train with a method that corrects for the class, such as cadr train --algorithm cadr."

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
        found = []
        names = {flag: [c.name for c in self.classes if c.flag == flag] for flag in ("not estimable", "few")}
        if names["not estimable"]:
            found.append(
                f"At most one label, nothing can be said: {_listed(names['not estimable'])}. Label a few more."
            )
        if names["few"]:
            found.append(f"Under {ENOUGH} labels, intervals may be too narrow: {_listed(names['few'])}.")
        if self.weak:
            found.append(
                f"Weak separability: a linear classifier finds {100 * self.balanced_accuracy:.0f} % of a class on "
                "average, so shares and propensities cannot be trusted. Better features help, such as embeddings."
            )
        if self.other_than_class:
            found.append(self.other_than_class)
        if self.far_share > self.far_limit:
            doubted = self.weak or self.other_than_class
            found.append(
                f"There may be a class that nobody labelled: {100 * self.far_share:.0f} % of the unlabelled rows are "
                f"far from every label, where 10 % (at most {100 * self.far_limit:.0f} %) would be expected."
                + " But what the warning before this one says may be the reason."
                * bool(doubted)
            )
        return tuple(found)

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


def _propensity(c: ClassDiagnosis) -> float:
    assert c.propensity is not None  # only such are asked
    return c.propensity


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
