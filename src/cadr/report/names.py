"""Names of classes in little room: broken between words, cut at the end of one, and never so that two look alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

Fitted = tuple[str, ...]  # the lines of one name
_WORD = re.compile(r"\s*[^\s_/,;:@-]*[_/,;:@-]*")  # with what separates it from the next, which stays behind it


def fit(names: Sequence[str], width: int, lines: int = 1) -> list[Fitted]:
    """Each name in at most so many lines of so many letters.

    Of names that would look alike the beginning that they share is left out, or all but the end, or they are numbered.
    """
    found = [_wrapped(name, width, lines) for name in names]
    room = width * lines
    for shorter in (_without_what_is_shared, _end):
        for alike in _alike(names, found):
            group = [names[i] for i in alike]
            for i in alike:
                found[i] = _wrapped(shorter(names[i], group, room), width, lines)
    for alike in _alike(names, found):
        for number, name in enumerate(dict.fromkeys(names[i] for i in alike), 1):
            for i in (i for i in alike if names[i] == name):
                found[i] = (*found[i][:-1], f"{found[i][-1][: width - 1 - len(str(number))]}…{number}")
    return found


def _alike(names: Sequence[str], found: Sequence[Fitted]) -> list[list[int]]:
    """Places of different names that look the same."""
    different = Counter(fitted for _, fitted in dict.fromkeys(zip(names, found, strict=True)))
    return [[i for i, fitted in enumerate(found) if fitted == shown] for shown, n in different.items() if n > 1]


def _wrapped(name: str, width: int, lines: int) -> Fitted:
    words = [word for word in _WORD.findall(name) if word]
    done: list[str] = []
    line = ""
    for at, word in enumerate(words):
        longer = line + word if line else word.lstrip()
        if len(longer.rstrip()) <= width:
            line = longer
            continue
        if line and len(done) < lines - 1:
            done.append(line.rstrip())
            line = word.lstrip()
            if len(line.rstrip()) <= width:
                continue
        rest = line + "".join(words[at:]) if not line.endswith(word.lstrip()) else line + "".join(words[at + 1 :])
        return (*done, _cut(rest, width))
    return (*done, line.rstrip())


def _cut(text: str, width: int) -> str:
    """The beginning, to the end of a word where that keeps at least half of the room."""
    if len(text) <= width:
        return text
    kept = text[: width - 1]
    ends = [m.end() for m in _WORD.finditer(text) if width // 2 <= m.end() <= width - 1 and m.end() > m.start()]
    return (kept[: max(ends)] if ends else kept).rstrip() + "…"


def _without_what_is_shared(name: str, group: Sequence[str], room: int) -> str:
    """Begins with a word that all share, if the rest has room then, or with the first that they do not share."""
    columns = zip(*group, strict=False)
    shared = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, columns))
    begins = [m.start() for m in _WORD.finditer(name) if 0 < m.start() <= shared]
    fitting = [start for start in begins if len(name[start:].lstrip()) < room]
    return "…" + name[min(fitting, default=max(begins, default=0)) :].lstrip() if begins else name


def _end(name: str, _: Sequence[str], room: int) -> str:
    return name if len(name) <= room else "…" + name[len(name) - room + 1 :]
