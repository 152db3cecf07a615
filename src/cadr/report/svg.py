"""SVG elements with everything escaped, scales, and ticks at round numbers.

Drawings are about 360 units wide, so that text is readable where the page is 400 pixels wide. Colours and dashes are
classes that the page's style sheet gives a meaning in light, in dark and on paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from markupsafe import Markup

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
