"""Intervals of the classes' shares that are to hold for all classes at once."""

from __future__ import annotations

from statistics import NormalDist

from cadr.diagnosis.result import Diagnosis

_TAIL = 0.05  # outside of a class's own interval on either side


def share_intervals(diagnosis: Diagnosis) -> list[tuple[float, float] | None]:
    """Of the unlabelled rows, by class; None where nothing can be said. They may pass 0 or 1.

    They are wider than each class's own, so that all hold as often as one: with ten classes one in ten misses the
    truth.
    """
    wider = NormalDist().inv_cdf(1 - _TAIL / len(diagnosis.classes)) / NormalDist().inv_cdf(1 - _TAIL)
    found: list[tuple[float, float] | None] = []
    for c in diagnosis.classes:
        if c.share is None or c.share_interval is None:
            found.append(None)
            continue
        low, high = c.share_interval
        found.append((c.share + wider * (low - c.share), c.share + wider * (high - c.share)))
    return found
