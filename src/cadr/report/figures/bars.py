"""Horizontal bars, a few per class, with intervals where there are any; on a linear or a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from cadr.report.figures.svg import drawing, linear, logarithmic, round_ticks, short, shortened, tag, text

_WIDTH, _LEFT, _RIGHT = 360.0, 92.0, 46.0
_BAR, _GAP = 10.0, 8.0


class Bar(NamedTuple):
    """One number of one class; None where it is not known. `style` picks its colour and hatching."""

    value: float | None
    style: str
    interval: tuple[float, float] | None = None


def bars(
    title: str,
    names: Sequence[str],
    groups: Sequence[Sequence[Bar]],
    legend: Sequence[str],
    written: Callable[[float], str],
    log: bool = False,
) -> Markup:
    """A group of bars per name; `legend` says in words what the bars of a group are."""
    ends = [v for group in groups for bar in group for v in _ends(bar)]
    low, high = _range(ends, log)
    x = (logarithmic if log else linear)(low, high, _LEFT, _WIDTH - _RIGHT)
    ticks = _powers(low, high) if log else round_ticks(low, high, 4)
    parts, y = [], 6.0
    for name, group in zip(names, groups, strict=True):
        tall = _BAR * len(group)
        label = text(shortened(name, 14), _LEFT - 6, y + tall / 2 + 4, "end", "name")
        parts.append(tag("g", tag("title", name), label))
        for bar in group:
            parts.append(_bar(bar, name, y, x, _LEFT, written))
            y += _BAR
        y += _GAP
    grid = [tag("line", x1=x(t), x2=x(t), y1=2.0, y2=y, class_="grid") for t in ticks]
    marks = [text(short(t), x(t), y + 13, "middle") for t in ticks]
    parts = [*grid, *parts, tag("line", x1=_LEFT, x2=_LEFT, y1=2.0, y2=y, class_="axis"), *marks]
    words = "; ".join(
        f"{name}: " + ", ".join(f"{what} {_said(bar, written)}" for what, bar in zip(legend, group, strict=True))
        for name, group in zip(names, groups, strict=True)
    )
    return drawing(_WIDTH, y + 20, title, f"Bar chart. {words}.", *parts, kind="bars")


def _bar(
    bar: Bar, name: str, y: float, x: Callable[[float], float], start: float, written: Callable[[float], str]
) -> Markup:
    if bar.value is None:
        return text("not known", start + 4, y + _BAR - 1.5, class_="quiet")
    end = max(x(bar.value), start + 1)
    said = tag("title", f"{name}: {_said(bar, written)}")
    parts = [tag("rect", said, x=start, y=y + 0.5, width=end - start, height=_BAR - 1, class_=f"bar {bar.style}")]
    if bar.interval is not None:
        low, high = (max(x(v), start) for v in bar.interval)
        middle = y + _BAR / 2
        whisker = f"M{low:.1f} {middle - 3}v6M{low:.1f} {middle}H{high:.1f}M{high:.1f} {middle - 3}v6"
        parts.append(tag("path", d=whisker, class_="whisker"))
        end = max(end, high)
    parts.append(text(written(bar.value), end + 4, y + _BAR - 1.5, class_="value"))
    return tag("g", *parts)


def _said(bar: Bar, written: Callable[[float], str]) -> str:
    if bar.value is None:
        return "not known"
    between = "" if bar.interval is None else f" (between {written(bar.interval[0])} and {written(bar.interval[1])})"
    return written(bar.value) + between


def _ends(bar: Bar) -> list[float]:
    return [v for v in (bar.value, *(bar.interval or ())) if v is not None]


def _range(ends: Sequence[float], log: bool) -> tuple[float, float]:
    if not log:
        return 0.0, max(ends, default=0.0) or 1.0
    positive = [v for v in ends if v > 0] or [1.0]
    low = 10.0 ** math.floor(math.log10(min(positive)) - 1e-9)
    return low, max(10.0 ** math.ceil(math.log10(max(positive)) - 1e-9), 10 * low)


def _powers(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, math.ceil((last - first) / 4))
    return [10.0**k for k in range(first, last + 1, step)]
