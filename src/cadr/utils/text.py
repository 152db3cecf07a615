"""What another library says about a damaged file, and names of files, made fit for one line on a terminal.

Such messages can quote the file itself, at any length and with any control characters, and a name can hold these, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from unicodedata import bidirectional, category

LONGEST = 200
_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def reason(error: BaseException) -> str:
    printable = "".join(c if c.isprintable() else " " for c in str(error))
    text = " ".join(printable.split()) or type(error).__name__
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def printable(text: str) -> str:
    """A text in which whatever a terminal would obey, such as a file's name, can be read instead."""
    return "".join(c.encode("unicode_escape").decode() if _is_obeyed(c) else c for c in text)


def _is_obeyed(character: str) -> bool:
    """Control characters, line separators, halves of a sign, and what turns the direction of writing."""
    return category(character) in ("Cc", "Cs", "Zl", "Zp") or bidirectional(character) in _TURNS


def listed(names: tuple[str, ...] | list[str]) -> str:
    """Names found in a file, quoted; of very many, the first."""
    shown = ", ".join(repr(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"


def shown(path: Path | str) -> str:
    """A path in a sentence, quoted where blanks at the end of a name would not be seen."""
    return repr(str(path)) if any(part != part.strip() for part in Path(path).parts) else printable(str(path))


def counted(number: int, noun: str) -> str:
    """1 label, 2 labels."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(value: float) -> str:
    """A share in percent, with the digits that mean something: an estimate of 6.4e-07 % is an estimate of few."""
    if 0.0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:.1f} %" if value >= 1.0 or value == 0.0 else f"{value:.2g} %"


def duration(seconds: float | None) -> str:
    """3 s, 4 min 05 s, 2 h 30 min, 3 days 4 h."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 100 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} days {whole % 86400 // 3600} h"


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str) -> str:
    """A title and a small table for a notebook; every text is shown as it stands."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(printable(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    table = f"<table><thead>{line(columns, 'th')}</thead><tbody>{body}</tbody></table>" if body else ""
    return f"<p><b>{escape(printable(title))}</b></p>{table}"
