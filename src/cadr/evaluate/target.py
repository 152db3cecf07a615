"""The class shares that training is told on data of one's own, where nobody knows that classes are equally frequent."""

from __future__ import annotations

from cadr.algorithms.base import Algorithm
from cadr.algorithms.class_aware import ClassAwarePropensity
from cadr.data.pool import Pool
from cadr.errors import DataError
from cadr.evaluate.diagnosis_result import WEAK

_DIGITS = 4


def takes_target(algorithm: type[Algorithm]) -> bool:
    """Whether a method draws predictions to class shares of its own accord, to equal ones if it is told none."""
    return issubclass(algorithm, ClassAwarePropensity)


def diagnosed_target(pool: Pool) -> list[float] | None:
    """The classes' shares of all rows, as diagnosed.

    None where the labels cannot tell: a class with a single one, classes that a linear classifier hardly tells apart.
    Equal shares, which the paper presumes, are then as good a guess as any. None, too, on a machine that can train but
    has no scikit-learn to diagnose with.
    """
    try:
        from cadr.evaluate.diagnosis import diagnose

        diagnosis = diagnose(pool)
    except (DataError, ImportError):
        return None
    shares = [c.prior for c in diagnosis.classes if c.flag != "not estimable" and c.prior]
    if diagnosis.separability < WEAK or len(shares) < pool.num_classes:
        return None
    return [max(round(share, _DIGITS), 10.0**-_DIGITS) for share in shares]
