"""The class shares that training is told on data of one's own, where nobody knows that classes are equally frequent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from cadr.algorithms.base import Algorithm
from cadr.algorithms.class_aware import ClassAwarePropensity
from cadr.data.pool import Pool
from cadr.diagnosis.result import Diagnosis
from cadr.errors import DataError
from cadr.utils.text import listed

_DIGITS = 4
_DIAGNOSED = "that cadr diagnose estimates"
_OF_LABELS = "of the labels, which show no sign of bias"


def takes_target(algorithm: type[Algorithm]) -> bool:
    """Whether a method draws predictions to class shares of its own accord, to equal ones if it is told none."""
    return issubclass(algorithm, ClassAwarePropensity)


@dataclass(frozen=True)
class Target:
    """Shares of all rows that predictions are drawn to, or None for equal ones, as the paper presumes; and why."""

    shares: list[float] | None
    why: str
    diagnosis: Diagnosis | None = None  # where there could be one

    @property
    def warning(self) -> str:
        """That more than the class decides who is labelled, if so: then a model may learn just that."""
        return self.diagnosis.other_than_class if self.diagnosis else ""

    def sentences(self) -> list[str]:
        """What is presumed of the classes' shares, which decides a run."""
        warned = [f"Warning: {self.warning} See cadr diagnose."] if self.warning else []
        if self.shares is not None:
            return [f"The target is the class prior {self.why}; give --target-prior if you know better.", *warned]
        presumed = f"Classes are assumed to be equally frequent: {self.why}."
        return [f"{presumed} Give --target-prior if you know better.", *warned]


def diagnosed_target(pool: Pool) -> Target:
    """The classes' shares as diagnosed, where that refutes equal ones.

    A class with a single label has none that could be estimated: then the shares are those of the labels, if these show
    no sign of bias, and otherwise the class has what the others leave of the rows. Equal shares are as good a guess as
    any where they lie in the interval of every class, and for images that a linear classifier hardly tells apart: it
    then finds in all of them what is labelled most, while a network sees what it does not. Rows of a table that are
    hardly told apart have wide intervals, and these decide.
    """
    try:
        from cadr.diagnosis.diagnose import diagnose

        diagnosis = diagnose(pool)
    except ImportError:
        return Target(None, "nothing is here to estimate their shares with (pip install scikit-learn)")
    except DataError:
        return Target(None, "these labels say nothing about their shares")
    return dataclasses.replace(_by(diagnosis, of_images=pool.kind == "image"), diagnosis=diagnosis)


def _by(diagnosis: Diagnosis, of_images: bool) -> Target:
    unknown = [c.name for c in diagnosis.classes if c.prior is None]
    if of_images and diagnosis.weak:
        return Target(None, "a linear classifier hardly tells them apart, so that their shares cannot be estimated")
    if _may_be_equal(diagnosis):
        return Target(None, "the labels do not refute it")
    if unknown and not diagnosis.missing_at_random:
        return _with_what_is_left(diagnosis, unknown)
    if unknown:
        classes = diagnosis.classes
        # as Laplace's rule has it: what was met once may be a good deal more frequent than once in so many
        return Target(_rounded((c.labels + 1) / (diagnosis.labelled + len(classes)) for c in classes), _OF_LABELS)
    return Target(_rounded(c.prior or 0.0 for c in diagnosis.classes), _DIAGNOSED)


def _with_what_is_left(diagnosis: Diagnosis, unknown: list[str]) -> Target:
    """Shares of all classes, where those of some have no estimate.

    They divide what the others leave, but none of them is taken to be rarer than the rarest other: a class with one
    label is easily overlooked, and a class that is told to be rarer than it is will be lost.
    """
    known = [c.prior for c in diagnosis.classes if c.prior is not None]
    if len(known) == 1:
        return Target(None, f"shares cannot be estimated with so few labels of {listed(unknown)}")
    left, rarest = max(0.0, 1.0 - sum(known)) / len(unknown), min(known)
    shares = [max(left, rarest) if c.prior is None else c.prior for c in diagnosis.classes]
    what = f"what they leave for {listed(unknown)}" if left >= rarest else f"{listed(unknown)} like the rarest of them"
    return Target(_rounded(share / sum(shares) for share in shares), f"{_DIAGNOSED}, and {what}")


def _rounded(shares: Iterable[float]) -> list[float]:
    return [max(round(share, _DIGITS), 10.0**-_DIGITS) for share in shares]


def _may_be_equal(diagnosis: Diagnosis) -> bool:
    """Whether no class's interval speaks against equal shares of all rows."""
    rows, classes = diagnosis.labelled + diagnosis.unlabelled, diagnosis.classes
    for c, interval in zip(classes, diagnosis.share_intervals, strict=True):
        equal = (rows / len(classes) - c.labels) / diagnosis.unlabelled  # its share of the rows without a label, then
        if interval is not None and not interval[0] <= equal <= interval[1]:
            return False
    return True
