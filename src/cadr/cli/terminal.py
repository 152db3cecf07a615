"""The terminal: tables on it, standard streams as a shell may leave them, and being asked to stop.

Tables are drawn by rich where it is installed and somebody looks, and are aligned plain text elsewhere. The streams may
be closed, or in an encoding without half our signs. Whoever asks us to stop, it is like Ctrl-C, so that what can be
saved is, and no half files are left.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from cadr.utils.progress import fancy
from cadr.utils.text import printable


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


def make_writable() -> None:
    """Whatever is printed from here on is taken: a sign that the encoding lacks as an escape, all of it when closed."""
    _fill()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fill() -> None:
    """A closed stream's number would go to the next file that is opened, and into it whatever a library prints."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # processes that are started have three streams, too
    os.close(number)


def complain(sentence: str) -> None:
    try:
        print(f"cadr: {sentence}", file=sys.stderr, flush=True)
    except OSError:  # nobody hears it any more; the exit status says the rest
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Drop what it still holds: Python would complain about it once more while shutting down."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


@contextmanager
def stopping_politely() -> Iterator[None]:
    """While this lasts, a scheduler's time limit (SIGTERM) and a closed terminal (SIGHUP) raise KeyboardInterrupt.

    Only where they would kill: who started us with nohup wants them ignored, and a program around us may have handlers
    of its own.
    """
    wanted = {signal.SIGTERM: signal.default_int_handler, signal.SIGHUP: _terminate}
    killing = [number for number in wanted if signal.getsignal(number) == signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        killing = []  # other threads may not say what signals do
    for number in killing:
        signal.signal(number, wanted[number])
    try:
        yield
    finally:
        for number in killing:
            signal.signal(number, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    """One signal for both: training knows when SIGTERM may interrupt it."""
    signal.raise_signal(signal.SIGTERM)
