"""Curves over training steps: one line per run, told apart by colour and by dashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from cadr.report.figures.svg import Scale, drawing, linear, round_ticks, short, shortened, tag, text


class Series(NamedTuple):
    """A curve; None where there is no value. `style` picks colour and dashes."""

    name: str
    style: int
    points: Sequence[tuple[float, float | None]]

    @property
    def last(self) -> float | None:
        return next((value for _, value in reversed(self.points) if value is not None), None)


class Extent(NamedTuple):
    """What the axes cover; given from outside where panels must compare."""

    steps: float
    low: float
    high: float


def lines(
    title: str, series: Sequence[Series], extent: Extent, unit: str = "", small: bool = False, of: str = ""
) -> Markup:
    """A line chart; `small` is for one panel of many, which are all `of` the same thing."""
    width, height = (172.0, 112.0) if small else (360.0, 210.0)
    left, right, top, bottom = (30.0, 6.0, 20.0, 18.0) if small else (36.0, 12.0, 12.0, 34.0)
    x = linear(0, extent.steps, left, width - right)
    y = linear(extent.low, extent.high, height - bottom, top)
    parts = [_grid(x, y, extent, (left, width - right), (top, height - bottom), 3 if small else 5)]
    parts += [_curve(s, x, y, unit) for s in series]
    if all(s.last is None for s in series):
        parts.append(text("no values", (left + width - right) / 2, (top + height - bottom) / 2, "middle", "quiet"))
    if small:
        parts.append(text(shortened(title, 26), left, 13, class_="name"))
    else:
        parts.append(text("training step", (left + width - right) / 2, height - 4, "middle"))
    described = "; ".join(f"{s.name}: {_course(s, unit)}" for s in series)
    named = f"{of}: {title}" if of else title
    words = f"Line chart over {extent.steps:,.0f} steps. {described}."
    return drawing(width, height, named, words, *parts, kind="panel" if small else "lines")


def extent_of(series: Sequence[Series], low: float | None = None, high: float | None = None) -> Extent:
    """Axes that hold all the points; ends that are not given follow the data, with a little air."""
    points = [p for s in series for p in s.points]
    values = [value for _, value in points if value is not None] or [0.0, 1.0]
    air = 0.05 * ((max(values) - min(values)) or abs(max(values)) or 1.0)
    return Extent(
        max((step for step, _ in points), default=1.0),
        min(values) - air if low is None else low,
        max(values) + air if high is None else high,
    )


def _grid(
    x: Scale, y: Scale, extent: Extent, across: tuple[float, float], down: tuple[float, float], most: int
) -> Markup:
    parts = []
    for value in round_ticks(extent.low, extent.high, most):
        parts.append(tag("line", x1=across[0], x2=across[1], y1=y(value), y2=y(value), class_="grid"))
        parts.append(text(short(value), across[0] - 4, y(value) + 3.5, "end"))
    for step in round_ticks(0, extent.steps, most):
        anchor = "middle" if across[0] + 8 < x(step) < across[1] - 8 else "start" if step == 0 else "end"
        parts.append(text(short(step), x(step), down[1] + 13, anchor))
    parts.append(tag("line", x1=across[0], x2=across[1], y1=down[1], y2=down[1], class_="axis"))
    return Markup().join(parts)


def _curve(series: Series, x: Scale, y: Scale, unit: str) -> Markup:
    path: list[str] = []
    broken = True
    for step, value in series.points:
        if value is not None:
            path.append(f"{'M' if broken else 'L'}{x(step):.1f} {y(value):.1f}")
        broken = value is None
    known = [(step, value) for step, value in series.points if value is not None]
    parts = [tag("path", tag("title", f"{series.name}: {_course(series, unit)}"), d=" ".join(path), class_="line")]
    if known:
        step, value = known[-1]
        parts.append(tag("circle", cx=x(step), cy=y(value), r=2.5, class_="end"))
    return tag("g", *parts, class_=f"s{series.style}")


def _course(series: Series, unit: str) -> str:
    known = [value for _, value in series.points if value is not None]
    if not known:
        return "no values"
    first, last, least, most = (f"{round(value, 4):.3g}" for value in (known[0], known[-1], min(known), max(known)))
    return f"from {first} to {last}{unit}, between {least} and {most}{unit}"
