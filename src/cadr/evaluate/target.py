"""The class shares that training is told on data of one's own, where nobody knows that classes are equally frequent."""

from __future__ import annotations

from statistics import NormalDist

from cadr.algorithms.base import Algorithm
from cadr.algorithms.class_aware import ClassAwarePropensity
from cadr.data.pool import Pool
from cadr.errors import DataError
from cadr.evaluate.diagnosis_result import WEAK, Diagnosis

_DIGITS = 4
_TAIL = 0.05  # outside of an interval on either side


def takes_target(algorithm: type[Algorithm]) -> bool:
    """Whether a method draws predictions to class shares of its own accord, to equal ones if it is told none."""
    return issubclass(algorithm, ClassAwarePropensity)


def diagnosed_target(pool: Pool) -> list[float] | None:
    """The classes' shares of all rows, as diagnosed, where that refutes equal ones.

    None where equal shares, which the paper presumes, are as good a guess as any: where they lie in the interval of
    every class, and where the labels cannot tell (a class with a single one, classes that a linear classifier hardly
    tells apart). None, too, on a machine that can train but has no scikit-learn to diagnose with.
    """
    try:
        from cadr.evaluate.diagnosis import diagnose

        diagnosis = diagnose(pool)
    except (DataError, ImportError):
        return None
    shares = [c.prior for c in diagnosis.classes if c.flag != "not estimable" and c.prior]
    if diagnosis.separability < WEAK or len(shares) < pool.num_classes or _may_be_equal(diagnosis):
        return None
    return [max(round(share, _DIGITS), 10.0**-_DIGITS) for share in shares]


def _may_be_equal(diagnosis: Diagnosis) -> bool:
    """Whether no class's interval speaks against equal shares of all rows.

    The intervals are widened so that all hold at once as often as one: with ten classes one in ten misses the truth.
    """
    classes = len(diagnosis.classes)
    wider = NormalDist().inv_cdf(1 - _TAIL / classes) / NormalDist().inv_cdf(1 - _TAIL)
    rows = diagnosis.labelled + diagnosis.unlabelled
    for c in diagnosis.classes:
        if c.share is None or c.share_interval is None:
            continue
        equal = (rows / classes - c.labels) / diagnosis.unlabelled  # its share of the rows without a label, then
        low, high = c.share_interval
        if not wider * (low - c.share) <= equal - c.share <= wider * (high - c.share):
            return False
    return True
