"""Bars, curves, confusion matrices and reliability diagrams, as SVG that scales, prints and follows the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cadr.report.names import fit

_BARS_WIDTH, _BARS_LEFT, _BARS_RIGHT = 360.0, 144.0, 14.0
_VALUES = 44.0  # the room for figures, between the names and the bars
_BAR, _GAP, _LINE = 10.0, 8.0, 12.0
_NAME, _NAME_LINES = 15, 2  # letters of a line, and lines
_MATRIX_WIDTH, _MATRIX_LEFT, _MATRIX_TOP = 360.0, 78.0, 34.0
_SIZE, _LEFT, _RIGHT, _BOTTOM, _TOP = 320.0, 40.0, 16.0, 36.0, 10.0  # of a reliability diagram
_MOST_WRITTEN = 14  # classes up to which there is room for numbers
_MOST_NAMED = 36  # and for the names
_LONGEST = 12  # letters of a name
_LETTER = 7.0  # its width
_DARK = 0.7  # share from which a number is written in the colour of the paper


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
    of_all: Sequence[Sequence[Bar]] = (),
) -> Markup:
    """A group of bars per name; `legend` says in words what the bars of a group are. The axis has room for `of_all`."""
    ends = [v for group in of_all or groups for bar in group for v in _ends(bar)]
    low, high = _range(ends, log)
    x = (logarithmic if log else linear)(low, high, _BARS_LEFT, _BARS_WIDTH - _BARS_RIGHT)
    ticks = _powers(low, high) if log else round_ticks(low, high, 4)
    parts, y = [], 6.0
    for name, fitted, group in zip(names, fit(names, _NAME, _NAME_LINES), groups, strict=True):
        tall = max(_BAR * len(group), _LINE * len(fitted))
        first = y + tall / 2 + 4 - _LINE * (len(fitted) - 1) / 2
        label = [text(line, _BARS_LEFT - _VALUES, first + _LINE * i, "end", "name") for i, line in enumerate(fitted)]
        parts.append(tag("g", tag("title", name), *label))
        for i, bar in enumerate(group):
            parts.append(_bar(bar, name, y + (tall - _BAR * len(group)) / 2 + _BAR * i, x, _BARS_LEFT, written))
        y += tall + _GAP
    grid = [tag("line", x1=x(t), x2=x(t), y1=2.0, y2=y, class_="grid") for t in ticks]
    marks = [text(short(t), x(t), y + 13, "middle") for t in ticks]
    parts = [*grid, *parts, tag("line", x1=_BARS_LEFT, x2=_BARS_LEFT, y1=2.0, y2=y, class_="axis"), *marks]
    words = "; ".join(
        f"{name}: " + ", ".join(f"{what} {_said(bar, written)}" for what, bar in zip(legend, group, strict=True))
        for name, group in zip(names, groups, strict=True)
    )
    return drawing(_BARS_WIDTH, y + 20, title, f"Bar chart. {words}.", *parts, kind="bars")


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
    parts.append(text(written(bar.value), start - 4, y + _BAR - 1.5, "end", "value"))
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


class Series(NamedTuple):
    """A curve; None where there is no value. `style` picks colour and dashes, `band` are intervals about its points."""

    name: str
    style: int
    points: Sequence[tuple[float, float | None]]
    band: Sequence[tuple[float, float, float]] = ()  # step, lower and upper end

    @property
    def last(self) -> float | None:
        return next((value for _, value in reversed(self.points) if value is not None), None)


class Extent(NamedTuple):
    """What the axes cover; given from outside where panels must compare."""

    steps: float
    low: float
    high: float


def lines(
    title: str, series: Sequence[Series], extent: Extent, unit: str = "", small: bool = False, of: str = "",
    short_title: str = "",
) -> Markup:  # fmt: skip
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
        parts.append(text(short_title or title, left, 13, class_="name"))
    else:
        parts.append(text("training step", (left + width - right) / 2, height - 4, "middle"))
    described = "; ".join(f"{s.name}: {_course(s, unit)}" for s in series)
    named = f"{of}: {title}" if of else title
    words = f"Line chart over {extent.steps:,.0f} steps. {described}."
    return drawing(width, height, named, words, *parts, kind="panel" if small else "lines")


def extent_of(series: Sequence[Series], low: float | None = None, high: float | None = None) -> Extent:
    """Axes that hold all the points; ends that are not given follow the data, with a little air."""
    points = [p for s in series for p in s.points]
    points += [(step, end) for s in series for step, *ends in s.band for end in ends]
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
    parts = []
    if series.band:
        there = [f"{x(step):.1f} {y(low):.1f}" for step, low, _ in series.band]
        back = [f"{x(step):.1f} {y(high):.1f}" for step, _, high in reversed(series.band)]
        parts.append(tag("path", d=f"M{'L'.join([*there, *back])}Z", class_="band"))
    parts += [tag("path", tag("title", f"{series.name}: {_course(series, unit)}"), d=" ".join(path), class_="line")]
    if known:
        step, value = known[-1]
        parts.append(tag("circle", cx=x(step), cy=y(value), r=2.5, class_="end"))
    return tag("g", *parts, class_=f"s{series.style}")


def _course(series: Series, unit: str) -> str:
    known = [value for _, value in series.points if value is not None]
    if not known:
        return "no values"
    first, last, least, most = (f"{round(value, 4):.3g}" for value in (known[0], known[-1], min(known), max(known)))
    said = f"from {first} to {last}{unit}, between {least} and {most}{unit}"
    if series.band:
        said += ", its last interval from {:.3g} to {:.3g}".format(*series.band[-1][1:]) + unit
    return said


def matrix(title: str, names: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    size = (_MATRIX_WIDTH - _MATRIX_LEFT - 4) / len(names)
    short = [line for (line,) in fit(names, _LONGEST)]
    top, longest = _MATRIX_TOP, max(map(len, short))
    upright = len(names) <= _MOST_NAMED and longest * _LETTER > size  # side by side the names would run together
    if upright:
        top += (longest - 1) * _LETTER
    parts = [
        text("predicted", (_MATRIX_LEFT + _MATRIX_WIDTH) / 2, 11, "middle"),
        text("true", _MATRIX_LEFT - 6, top - 8, "end"),
    ]
    if len(names) <= _MOST_NAMED:
        parts += _names(short, size, top, upright)
    for row, (name, line) in enumerate(zip(names, counts, strict=True)):
        total = sum(line)
        for column, count in enumerate(line):
            share = count / total if total else 0.0
            said = f"{name} predicted as {names[column]}: {count} of {total}"
            parts.append(_cell(row, column, top, count, share, size, said, len(names) <= _MOST_WRITTEN))
    side = size * len(names)
    parts.append(tag("rect", x=_MATRIX_LEFT, y=top, width=side, height=side, class_="frame"))
    return drawing(_MATRIX_WIDTH, top + side + 4, title, _in_words(names, counts), *parts, kind="matrix")


def _names(names: Sequence[str], size: float, top: float, upright: bool) -> list[Markup]:
    small = "tiny" if size < 11 else None
    parts = []
    for i, name in enumerate(names):
        middle = (i + 0.5) * size
        parts.append(text(name, _MATRIX_LEFT - 5, top + middle + 4, "end", small))
        if upright:
            x, y = _MATRIX_LEFT + middle + 4, top - 6
            parts.append(tag("text", name, x=x, y=y, class_=small, transform=f"rotate(-90 {x:.2f} {y:.2f})"))
        else:
            parts.append(text(name, _MATRIX_LEFT + middle, top - 6, "middle", small))
    return parts


def _cell(row: int, column: int, top: float, count: int, share: float, size: float, said: str, written: bool) -> Markup:
    x, y = _MATRIX_LEFT + column * size, top + row * size
    shape = tag("rect", tag("title", said), x=x, y=y, width=size, height=size, class_="heat", fill_opacity=share)
    if not (written and count):
        return shape
    number = text(str(count), x + size / 2, y + size / 2 + 4, "middle", "strong" if share > _DARK else "weak")
    return tag("g", shape, number)


def _in_words(names: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    right = sum(line[i] for i, line in enumerate(counts))
    total = sum(map(sum, counts))
    wrong = sorted(((c, names[i], names[j]) for i, line in enumerate(counts) for j, c in enumerate(line) if i != j))
    worst = "; ".join(f"{true} taken for {taken} {count} times" for count, true, taken in wrong[:-4:-1] if count)
    return f"Confusion matrix of {total} examples, {right} of them right. Most frequent mistakes: {worst or 'none'}."


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


Scale = Callable[[float], float]


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """`tag("text", "a < b", text_anchor="end")`: children and values are escaped, unless they are Markup already."""
    written = Markup().join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, Markup().join(children))


def _number(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def drawing(width: float, height: float, title: str, description: str, *children: str, kind: str) -> Markup:
    """A whole figure, with its name and its content in words for who cannot see it."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *children,
        role="img",
        class_=f"plot {kind}",
        aria_label=f"{title}. {description}",
        viewBox=f"0 0 {width:g} {height:g}",
    )


def text(content: str, x: float, y: float, anchor: str = "start", class_: str | None = None) -> Markup:
    return tag("text", content, x=float(x), y=float(y), text_anchor=anchor, class_=class_)


def linear(low: float, high: float, start: float, end: float) -> Scale:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    inner = linear(math.log(low), math.log(high), start, end)
    return lambda value: inner(math.log(value))


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between the two, as near as can be to the number asked for."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10(high - low))
    choices = [_multiples(m * power, low, high) for m in (0.1, 0.2, 0.5, 1, 2)]
    return min(choices, key=lambda ticks: (abs(len(ticks) - most), len(ticks)))


def _multiples(step: float, low: float, high: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def short(value: float) -> str:
    """A number on an axis: 20000 as 20k, and no digits that say nothing."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
