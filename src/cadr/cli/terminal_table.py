"""Tables on the terminal: drawn by rich where it is installed and somebody looks, aligned plain text elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from cadr.utils.text import printable


def fancy() -> bool:
    """Whether to draw: a terminal, and the drawing package is there."""
    return sys.stdout.isatty() and find_spec("rich") is not None


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; every column but the first is set flush right when it holds numbers."""
    columns, *rows = ([printable(cell) for cell in line] for line in (columns, *rows))  # classes have any names
    right = [i > 0 and all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    if fancy():
        _draw(columns, rows, title, right)
    else:
        print(plain_table(columns, rows, title, right))


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, right: Sequence[bool]) -> str:
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    lines = [line(columns), "  ".join("-" * w for w in widths), *map(line, rows)]
    return "\n".join([title, *lines] if title else lines)


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, right: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, flush in zip(columns, right, strict=True):
        # The first column is what one copies into the next command.
        table.add_column(Text(name), justify="right" if flush else "left", no_wrap=name == columns[0])
    for row in rows:
        table.add_row(*map(Text, row))  # as it stands: rich takes [this] for a style
    Console().print(table)


def _is_number(text: str) -> bool:
    """A figure, with or without ± and a unit, or the dash of an empty cell."""
    return re.fullmatch(r"[\d.,]*( ± [\d.]+)?( %)?|–", text.strip()) is not None
