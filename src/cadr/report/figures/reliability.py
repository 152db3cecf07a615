"""A reliability diagram: how often predictions of a given confidence are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cadr.report.figures.svg import drawing, linear, tag, text

_SIZE, _LEFT, _RIGHT, _BOTTOM, _TOP = 320.0, 40.0, 16.0, 36.0, 10.0


class Bin(NamedTuple):
    """Predictions of similar confidence."""

    confidence: float  # mean
    right: float  # share
    size: int


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 10) -> list[Bin]:
    """Predictions sorted into `bins` equal ranges of confidence; empty ones are left out."""
    at = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    chosen = [np.flatnonzero(at == b) for b in range(bins)]
    return [Bin(float(confidence[c].mean()), float(right[c].mean()), len(c)) for c in chosen if len(c)]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: mean distance between confidence and share right, by number of predictions."""
    total = sum(b.size for b in bins)
    return sum(b.size * abs(b.confidence - b.right) for b in bins) / total


def reliability_diagram(title: str, bins: Sequence[Bin], style: int = 0) -> Markup:
    """Points on the diagonal are right as often as they claim; the larger the point, the more predictions."""
    width = height = _SIZE
    x = linear(0, 1, _LEFT, width - _RIGHT)
    y = linear(0, 1, height - _BOTTOM, _TOP)
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(tag("line", x1=x(0), x2=x(1), y1=y(tick), y2=y(tick), class_="grid"))
        parts.append(text(f"{tick:.0%}", x(0) - 4, y(tick) + 3, "end"))
        parts.append(text(f"{tick:.0%}", x(tick), height - _BOTTOM + 15, "start" if tick == 0 else "middle"))
    parts.append(tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="ideal"))
    parts.append(text("confidence", (x(0) + x(1)) / 2, height - 4, "middle"))
    parts.append(text("right", x(0) + 4, _TOP + 12, class_="quiet"))
    path = " ".join(f"{'L' if i else 'M'}{x(b.confidence):.1f} {y(b.right):.1f}" for i, b in enumerate(bins))
    parts.append(tag("path", d=path, class_="line"))
    most = max(b.size for b in bins)
    for b in bins:
        said = tag("title", f"{b.size} predictions of {b.confidence:.0%} confidence: {b.right:.0%} right")
        radius = 2.5 + 5.5 * (b.size / most) ** 0.5
        parts.append(tag("circle", said, cx=x(b.confidence), cy=y(b.right), r=radius, class_="end"))
    words = "; ".join(f"{b.size} predictions of {b.confidence:.0%} confidence are {b.right:.0%} right" for b in bins)
    described = f"Reliability diagram. {words}. Expected calibration error {calibration_error(bins):.1%}."
    return drawing(width, height, title, described, tag("g", *parts, class_=f"s{style}"), kind="reliability")
