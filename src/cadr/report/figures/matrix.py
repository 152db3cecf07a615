"""A confusion matrix: truth down, prediction across, the darker the larger the share of its row."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from cadr.report.figures.svg import drawing, shortened, tag, text

_WIDTH, _LEFT, _TOP = 360.0, 78.0, 34.0
_MOST_WRITTEN = 14  # classes up to which there is room for numbers
_MOST_NAMED = 36  # and for the names
_LONGEST = 12  # letters of a name
_LETTER = 7.0  # its width
_DARK = 0.7  # share from which a number is written in the colour of the paper


def matrix(title: str, names: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    size = (_WIDTH - _LEFT - 4) / len(names)
    top, longest = _TOP, max(len(shortened(name, _LONGEST)) for name in names)
    upright = len(names) <= _MOST_NAMED and longest * _LETTER > size  # side by side the names would run together
    if upright:
        top += (longest - 1) * _LETTER
    parts = [text("predicted", (_LEFT + _WIDTH) / 2, 11, "middle"), text("true", _LEFT - 6, top - 8, "end")]
    if len(names) <= _MOST_NAMED:
        parts += _names(names, size, top, upright)
    for row, (name, line) in enumerate(zip(names, counts, strict=True)):
        total = sum(line)
        for column, count in enumerate(line):
            share = count / total if total else 0.0
            said = f"{name} predicted as {names[column]}: {count} of {total}"
            parts.append(_cell(row, column, top, count, share, size, said, len(names) <= _MOST_WRITTEN))
    side = size * len(names)
    parts.append(tag("rect", x=_LEFT, y=top, width=side, height=side, class_="frame"))
    return drawing(_WIDTH, top + side + 4, title, _in_words(names, counts), *parts, kind="matrix")


def _names(names: Sequence[str], size: float, top: float, upright: bool) -> list[Markup]:
    small = "tiny" if size < 11 else None
    parts = []
    for i, name in enumerate(names):
        middle, short = (i + 0.5) * size, shortened(name, _LONGEST)
        parts.append(text(short, _LEFT - 5, top + middle + 4, "end", small))
        if upright:
            x, y = _LEFT + middle + 4, top - 6
            parts.append(tag("text", short, x=x, y=y, class_=small, transform=f"rotate(-90 {x:.2f} {y:.2f})"))
        else:
            parts.append(text(short, _LEFT + middle, top - 6, "middle", small))
    return parts


def _cell(row: int, column: int, top: float, count: int, share: float, size: float, said: str, written: bool) -> Markup:
    x, y = _LEFT + column * size, top + row * size
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
