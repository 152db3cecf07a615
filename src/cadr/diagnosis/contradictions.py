"""Whether what a model predicts can be squared with what the diagnosis says of the classes' shares.

Labels held out cannot tell: they are as biased as the others, and a model may be right about all of them and still give
most rows of a seldom labelled class another's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cadr.diagnosis.result import Diagnosis

_NAMED = 5  # classes in a sentence


class Outside(NamedTuple):
    """A class whose predicted share of the unlabelled rows lies outside its diagnosed interval; between 0 and 1."""

    name: str
    share: float
    low: float
    high: float

    @property
    def away(self) -> float:
        return max(self.low - self.share, self.share - self.high)

    def __str__(self) -> str:
        return f"{self.name!r} {_written(self.share)} % (estimated {_written(self.low)} to {_written(self.high)} %)"


def classes_outside(diagnosis: Diagnosis, shares: Sequence[float]) -> list[Outside]:
    """Of `shares`, those predicted of the unlabelled rows in the order of the classes. A row more or less is nothing.

    None where the diagnosis is weak.
    """
    if diagnosis.weak:
        return []
    found = []
    for c, share, interval in zip(diagnosis.classes, shares, diagnosis.share_intervals, strict=True):
        if interval is None:
            continue
        one = Outside(c.name, float(share), max(0.0, interval[0]), min(1.0, interval[1]))
        shown = {_written(one.low), _written(one.high)}
        if one.away > 1 / diagnosis.unlabelled and _written(one.share) not in shown:
            found.append(one)
    return found


def outside(diagnosis: Diagnosis, shares: Sequence[float]) -> str:
    """One sentence on the classes whose predicted shares lie outside the diagnosed intervals; empty if there are none.

    Those farthest outside come first.
    """
    found = classes_outside(diagnosis, shares)
    if not found:
        return ""
    named = sorted(found, key=lambda one: -one.away)[:_NAMED]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    these = "this class" if len(found) == 1 else "these classes"
    return (
        f"Predicted shares of the unlabelled rows contradict cadr diagnose: {', '.join(map(str, named))}{more}; either "
        f"the model or the estimate is wrong, so look at rows of {these} and label a few before you rely on either."
    )


def _written(share: float) -> str:
    """In percent, with two digits that mean something."""
    value = 100 * share
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"
